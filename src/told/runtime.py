"""Frozen values that are quick to make.

A frozen dataclass sets each of its fields through `object.__setattr__`, at ten times the cost of an assignment. While a
quick one is made it is of an open twin, whose fields are assigned, and it freezes by becoming what it was made as.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import MISSING, Field, fields
from functools import partial, wraps
from itertools import count
from typing import Any, AnyStr, Final, Generic, TypeVar, cast

T = TypeVar("T")

BEFORE, IN_PARENT, IN_CHILD = "before", "after_in_parent", "after_in_child"
_HOOK_IDS: Final = count()
_HOOKS: Final[dict[int, tuple[weakref.ref[Any], Mapping[str, str]]]] = {}
"""What is called around a fork, in the order in which it came; what nobody has any longer is not in it."""


def at_fork(target: object, *, in_child: str, before: str = "", in_parent: str = "") -> None:
    """Call methods of something, by their names, around every fork, as long as somebody still has it."""
    hook_id = next(_HOOK_IDS)
    reference = weakref.ref(target, lambda _: _HOOKS.pop(hook_id, None))
    _HOOKS[hook_id] = reference, {BEFORE: before, IN_PARENT: in_parent, IN_CHILD: in_child}


def reset_on_fork(lock: T) -> T:
    """A lock that nobody has in a child process: for what is sound whenever its holder is interrupted."""
    at_fork(lock, in_child="_at_fork_reinit")
    return lock


def acquire_on_fork(lock: T) -> T:
    """A lock that every fork waits for: for what is sound only while nobody has it."""
    at_fork(lock, before="acquire", in_parent="release", in_child="release")
    return lock


def _list_hooks(moment: str) -> list[Callable[[], Any]]:
    targets = [(ref(), names[moment]) for ref, names in list(_HOOKS.values())]
    return [getattr(target, name) for target, name in targets if target is not None and name]


def _run_hooks(moment: str) -> None:
    """Call the newest first before a fork and the oldest first after it, each of them whatever another may raise."""
    methods = _list_hooks(moment)
    with ExitStack() as calls:  # which calls what came last first
        for method in methods if moment == BEFORE else reversed(methods):
            calls.callback(method)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        **{moment: partial(_run_hooks, moment) for moment in (BEFORE, IN_PARENT, IN_CHILD)}
    )


class cached_property(Generic[T]):
    """A property that is worked out once for each object, or by several threads at once if they come together.

    The one of functools lets only one thread work at a time before Python 3.12, for all objects there are, and a child
    process forked meanwhile waits for that thread forever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern that `re.compile` would give, but not yet."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    """Stands for a pattern; a method that was used once is found as fast as the pattern's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self._flags)

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_regex, (self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(self._compiled, name)
        return value


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
