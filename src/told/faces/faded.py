"""The verbs about forgetting, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.faces import fading
from told.faces.opened import Opened
from told.faces.verbs import scope_ids


class Faded(Opened):
    """How memories fade, blocking."""

    def decay(
        self,
        memory_id: str,
        *,
        points: int = 60,
        clock: str | None = None,
        as_of: Any = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """How a memory fades: what it weighs, when it was said, until when it lasts, and the curve to draw.

        Readings are turns or days since it was first said. `clock` draws it as if its kind faded by another clock.
        """
        ids = scope_ids(user_id, agent_id, run_id)
        return self._run(
            fading.decay(self.engine, memory_id, ids, points=points, clock=clock, as_of=as_of)
        )

    def about(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """What is remembered of somebody: each memory with its words, how strong it is, and when it will fade."""
        return self._run(
            fading.about(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
        )

    def forget(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory, or with a scope alone everything in it that has faded; the past keeps it."""
        return self._run(
            fading.forget(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )


class AsyncFaded(Opened):
    """How memories fade, on the event loop."""

    async def decay(
        self,
        memory_id: str,
        *,
        points: int = 60,
        clock: str | None = None,
        as_of: Any = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """How a memory fades: what it weighs, when it was said, until when it lasts, and the curve to draw.

        Readings are turns or days since it was first said. `clock` draws it as if its kind faded by another clock.
        """
        ids = scope_ids(user_id, agent_id, run_id)
        return await self._arun(
            fading.decay(self.engine, memory_id, ids, points=points, clock=clock, as_of=as_of)
        )

    async def about(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """What is remembered of somebody: each memory with its words, how strong it is, and when it will fade."""
        return await self._arun(
            fading.about(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
        )

    async def forget(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory, or with a scope alone everything in it that has faded; the past keeps it."""
        return await self._arun(
            fading.forget(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )
