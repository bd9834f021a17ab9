"""The verbs about the tiers, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.faces import tiering
from told.faces.opened import Opened
from told.faces.verbs import scope_ids


class Tiered(Opened):
    """The tiers, blocking."""

    def consolidate(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        force: bool = False,
    ) -> dict[str, Any]:
        """Weigh the turns that have left the tail and file those that are cold; with `force`, all there are.

        With no id it is done for everybody in the account.
        """
        return self._run(
            tiering.consolidate(self.engine, scope_ids(user_id, agent_id, run_id), force=force)
        )

    def tiers(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Where the turns of a scope are: tail, index, hot buffer, registry and topics."""
        return self._run(tiering.tiers(self.engine, scope_ids(user_id, agent_id, run_id)))

    def registry(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The exchanges that were filed and were said last, the newest first, each with a summary."""
        return self._run(
            tiering.registry(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
        )


class AsyncTiered(Opened):
    """The tiers, for an event loop."""

    async def consolidate(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        force: bool = False,
    ) -> dict[str, Any]:
        """Weigh the turns that have left the tail and file those that are cold; with `force`, all there are.

        With no id it is done for everybody in the account.
        """
        return await self._arun(
            tiering.consolidate(self.engine, scope_ids(user_id, agent_id, run_id), force=force)
        )

    async def tiers(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Where the turns of a scope are: tail, index, hot buffer, registry and topics."""
        return await self._arun(tiering.tiers(self.engine, scope_ids(user_id, agent_id, run_id)))

    async def registry(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The exchanges that were filed and were said last, the newest first, each with a summary."""
        return await self._arun(
            tiering.registry(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
        )
