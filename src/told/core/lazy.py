"""What is made when it is first asked for: regular expressions, most of which never are, and properties."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic, TypeVar, cast

T = TypeVar("T")


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
