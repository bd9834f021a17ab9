"""Regular expressions that are compiled when they are first asked, for most of them never are."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, AnyStr, cast


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern that `re.compile` would give, but not yet."""
    return cast("re.Pattern[AnyStr]", _Lazy(source, flags))


class _Lazy:
    """Stands for a pattern; a method that was used once is found as fast as the pattern's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self._flags)

    def __reduce__(self) -> tuple[Any, ...]:
        return regex, (self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(self._compiled, name)
        return value
