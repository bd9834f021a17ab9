"""The verbs about what was understood, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.faces import understood
from told.faces.opened import Opened
from told.faces.verbs import scope_ids


class Minded(Opened):
    """What was understood, blocking."""

    def wait(self) -> dict[str, Any]:
        """Ask the model about everything that waits for it, and say what came of it."""
        return self._run(understood.wait(self.engine))

    def faults(self) -> dict[str, Any]:
        """What could not be done, with what a model answered."""
        return self._run(understood.faults(self.engine))

    def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Ask the model again about what failed: all of it, or these numbers."""
        return self._run(understood.retry_faults(self.engine, ids))

    def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Forget what failed: all of it, or these numbers; the words are kept."""
        return self._run(understood.drop_faults(self.engine, ids))

    def contradictions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Memories that say different things of the same."""
        return self._run(
            understood.contradictions(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    def entities(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Whom and what a scope speaks of."""
        return self._run(understood.entities(self.engine, scope_ids(user_id, agent_id, run_id)))

    def relations(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """How one that is spoken of bears on others."""
        return self._run(
            understood.relations(self.engine, name, scope_ids(user_id, agent_id, run_id))
        )

    def identify(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Draw edges between names that may mean the same, for reads with a `lens`; nothing is merged."""
        return self._run(understood.identify(self.engine, scope_ids(user_id, agent_id, run_id)))

    def quarantine(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The claims that wait for a review; no search finds them."""
        return self._run(understood.quarantine(self.engine, scope_ids(user_id, agent_id, run_id)))

    def reveal(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """What a memory says with the secrets in it that are kept encrypted."""
        return self._run(
            understood.reveal(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )

    def review(
        self,
        memory_id: str,
        accept: bool,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Let a claim out of quarantine, or give it up."""
        ids = scope_ids(user_id, agent_id, run_id)
        return self._run(understood.review(self.engine, memory_id, ids, accept=accept))

    def tool_result(
        self,
        text: str,
        *,
        tool: str | None = None,
        source: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Keep a tool's output whole, and give back as much of it as an agent needs; `blob` fetches the original."""
        ids = scope_ids(user_id, agent_id, run_id)
        return self._run(understood.tool_result(self.engine, text, ids, tool=tool, source=source))

    def revoke(self, source: str) -> dict[str, Any]:
        """Give up everything that was taken from a source; its history stays."""
        return self._run(understood.revoke(self.engine, source))

    def infer_kinds(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The kinds that claims in quarantine ask for."""
        return self._run(understood.infer_kinds(self.engine, scope_ids(user_id, agent_id, run_id)))


class AsyncMinded(Opened):
    """What was understood, on the event loop."""

    async def wait(self) -> dict[str, Any]:
        """Ask the model about everything that waits for it, and say what came of it."""
        return await self._arun(understood.wait(self.engine))

    async def faults(self) -> dict[str, Any]:
        """What could not be done, with what a model answered."""
        return await self._arun(understood.faults(self.engine))

    async def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Ask the model again about what failed: all of it, or these numbers."""
        return await self._arun(understood.retry_faults(self.engine, ids))

    async def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Forget what failed: all of it, or these numbers; the words are kept."""
        return await self._arun(understood.drop_faults(self.engine, ids))

    async def contradictions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Memories that say different things of the same."""
        return await self._arun(
            understood.contradictions(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def entities(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Whom and what a scope speaks of."""
        return await self._arun(
            understood.entities(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def relations(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """How one that is spoken of bears on others."""
        return await self._arun(
            understood.relations(self.engine, name, scope_ids(user_id, agent_id, run_id))
        )

    async def identify(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Draw edges between names that may mean the same, for reads with a `lens`; nothing is merged."""
        return await self._arun(
            understood.identify(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def quarantine(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The claims that wait for a review; no search finds them."""
        return await self._arun(
            understood.quarantine(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def reveal(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """What a memory says with the secrets in it that are kept encrypted."""
        return await self._arun(
            understood.reveal(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )

    async def review(
        self,
        memory_id: str,
        accept: bool,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Let a claim out of quarantine, or give it up."""
        ids = scope_ids(user_id, agent_id, run_id)
        return await self._arun(understood.review(self.engine, memory_id, ids, accept=accept))

    async def tool_result(
        self,
        text: str,
        *,
        tool: str | None = None,
        source: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Keep a tool's output whole, and give back as much of it as an agent needs; `blob` fetches the original."""
        ids = scope_ids(user_id, agent_id, run_id)
        return await self._arun(
            understood.tool_result(self.engine, text, ids, tool=tool, source=source)
        )

    async def revoke(self, source: str) -> dict[str, Any]:
        """Give up everything that was taken from a source; its history stays."""
        return await self._arun(understood.revoke(self.engine, source))

    async def infer_kinds(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The kinds that claims in quarantine ask for."""
        return await self._arun(
            understood.infer_kinds(self.engine, scope_ids(user_id, agent_id, run_id))
        )
