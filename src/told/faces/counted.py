"""The verbs that count, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.faces import counting
from told.faces.opened import Opened


class Counted(Opened):
    """How much there is and whose it is, blocking."""

    def stats(self) -> dict[str, Any]:
        """Counts and sizes."""
        return self._run(counting.stats(self.engine))

    def users(self, *, type: str | None = None) -> dict[str, Any]:
        """Every user, agent and run, or those of one type: how many memories are theirs, and since when."""
        return self._run(counting.users(self.engine, type=type))


class AsyncCounted(Opened):
    """How much there is and whose it is, for an event loop."""

    async def stats(self) -> dict[str, Any]:
        """Counts and sizes."""
        return await self._arun(counting.stats(self.engine))

    async def users(self, *, type: str | None = None) -> dict[str, Any]:
        """Every user, agent and run, or those of one type: how many memories are theirs, and since when."""
        return await self._arun(counting.users(self.engine, type=type))
