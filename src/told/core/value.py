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
_CLASS_DESCRIPTOR: Any = object.__dict__["__class__"]


def fast_frozen_init(cls: type[T]) -> type[T]:
    """Let a frozen dataclass with slots be made in a fraction of the time that its own `__init__` takes."""
    original_init = cls.__init__

    @wraps(original_init)
    def init_on_first_use(self: T, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = wraps(original_init)(_compile_init(cls))  # type: ignore[method-assign]
        cls.__init__(self, *args, **kwargs)

    cls.__init__ = init_on_first_use  # type: ignore[method-assign, assignment]
    return cls


def _compile_init(cls: type[Any]) -> Callable[..., None]:
    """The `__init__` of a class, made when it is first needed, for to compile it takes a while."""
    writable = {
        "__slots__": (),
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
    }
    twin = type(cls.__name__, (cls,), writable)
    namespace: dict[str, Any] = {
        "__twin": twin,
        "__become": _CLASS_DESCRIPTOR.__set__,
        "__missing": MISSING,
    }
    init_fields = fields(cls)
    lines = (
        f"def __init__(self, {', '.join(map(_format_parameter, init_fields))}):",
        "__kind = self.__class__",
        "__become(self, __twin)",
        *map(_format_assignment, init_fields),
        "self.__class__ = __kind",
        *(["self.__post_init__()"] if hasattr(cls, "__post_init__") else []),
    )
    namespace |= {
        f"_{field.name}": field.default if _has_no_factory(field) else field.default_factory
        for field in init_fields
    }
    exec("\n  ".join(lines), namespace)
    init: Callable[..., None] = namespace["__init__"]
    return init


def _has_no_factory(field: Field[Any]) -> bool:
    return field.default_factory is MISSING


def _format_parameter(field: Field[Any]) -> str:
    if _has_no_factory(field):
        return field.name if field.default is MISSING else f"{field.name}=_{field.name}"
    return f"{field.name}=__missing"


def _format_assignment(field: Field[Any]) -> str:
    value = (
        field.name
        if _has_no_factory(field)
        else f"_{field.name}() if {field.name} is __missing else {field.name}"
    )
    return f"self.{field.name} = {value}"
