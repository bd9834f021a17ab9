"""Frozen values that are quick to make.

A frozen dataclass sets each of its fields through `object.__setattr__`, at ten times the cost of an assignment. While a
quick one is made it is of an open twin, whose fields are assigned, and it freezes by becoming what it was made as.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_CLASS: Any = object.__dict__["__class__"]


def quick(cls: type[T]) -> type[T]:
    """Let a frozen dataclass with slots be made in a fraction of the time that its own `__init__` takes."""
    slow = cls.__init__

    @wraps(slow)
    def first(self: T, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = wraps(slow)(_written(cls))  # type: ignore[method-assign]
        cls.__init__(self, *args, **kwargs)

    cls.__init__ = first  # type: ignore[method-assign, assignment]
    return cls


def _written(cls: type[Any]) -> Callable[..., None]:
    """The `__init__` of a class, made when it is first needed, for to compile it takes a while."""
    writable = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    twin = type(cls.__name__, (cls,), writable)
    names: dict[str, Any] = {"__twin": twin, "__become": _CLASS.__set__, "__missing": MISSING}
    given = fields(cls)
    lines = (
        f"def __init__(self, {', '.join(map(_parameter, given))}):",
        "__kind = self.__class__",
        "__become(self, __twin)",
        *map(_assignment, given),
        "self.__class__ = __kind",
        *(["self.__post_init__()"] if hasattr(cls, "__post_init__") else []),
    )
    names |= {f"_{each.name}": each.default if _is_plain(each) else each.default_factory for each in given}
    exec("\n  ".join(lines), names)  # noqa: S102 - dataclasses writes its own the same way
    made: Callable[..., None] = names["__init__"]
    return made


def _is_plain(each: Field[Any]) -> bool:
    return each.default_factory is MISSING


def _parameter(each: Field[Any]) -> str:
    if _is_plain(each):
        return each.name if each.default is MISSING else f"{each.name}=_{each.name}"
    return f"{each.name}=__missing"


def _assignment(each: Field[Any]) -> str:
    value = each.name if _is_plain(each) else f"_{each.name}() if {each.name} is __missing else {each.name}"
    return f"self.{each.name} = {value}"
