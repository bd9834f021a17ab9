"""The verbs about what was understood, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.api import verbs
from told.api.session import Opened
from told.api.verbs import scope_ids


class Counted(Opened):
    """How much there is and whose it is, blocking."""

    def stats(self) -> dict[str, Any]:
        """Counts and sizes."""
        return self._run(verbs.stats(self.engine))

    def users(self, *, type: str | None = None) -> dict[str, Any]:
        """Every user, agent and run, or those of one type: how many memories are theirs, and since when."""
        return self._run(verbs.users(self.engine, type=type))


class AsyncCounted(Opened):
    """How much there is and whose it is, for an event loop."""

    async def stats(self) -> dict[str, Any]:
        """Counts and sizes."""
        return await self._arun(verbs.stats(self.engine))

    async def users(self, *, type: str | None = None) -> dict[str, Any]:
        """Every user, agent and run, or those of one type: how many memories are theirs, and since when."""
        return await self._arun(verbs.users(self.engine, type=type))


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
            verbs.decay(self.engine, memory_id, ids, points=points, clock=clock, as_of=as_of)
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
            verbs.about(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
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
        return self._run(verbs.forget(self.engine, memory_id, scope_ids(user_id, agent_id, run_id)))


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
            verbs.decay(self.engine, memory_id, ids, points=points, clock=clock, as_of=as_of)
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
            verbs.about(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
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
            verbs.forget(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )


class Minded(Opened):
    """What was understood, blocking."""

    def wait(self) -> dict[str, Any]:
        """Ask the model about everything that waits for it, and say what came of it."""
        return self._run(verbs.wait(self.engine))

    def faults(self) -> dict[str, Any]:
        """What could not be done, with what a model answered."""
        return self._run(verbs.faults(self.engine))

    def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Ask the model again about what failed: all of it, or these numbers."""
        return self._run(verbs.retry_faults(self.engine, ids))

    def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Forget what failed: all of it, or these numbers; the words are kept."""
        return self._run(verbs.drop_faults(self.engine, ids))

    def contradictions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Memories that say different things of the same."""
        return self._run(verbs.contradictions(self.engine, scope_ids(user_id, agent_id, run_id)))

    def entities(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Whom and what a scope speaks of."""
        return self._run(verbs.entities(self.engine, scope_ids(user_id, agent_id, run_id)))

    def relations(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """How one that is spoken of bears on others."""
        return self._run(verbs.relations(self.engine, name, scope_ids(user_id, agent_id, run_id)))

    def identify(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Draw edges between names that may mean the same, for reads with a `lens`; nothing is merged."""
        return self._run(verbs.identify(self.engine, scope_ids(user_id, agent_id, run_id)))

    def quarantine(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The claims that wait for a review; no search finds them."""
        return self._run(verbs.quarantine(self.engine, scope_ids(user_id, agent_id, run_id)))

    def reveal(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """What a memory says with the secrets in it that are kept encrypted."""
        return self._run(verbs.reveal(self.engine, memory_id, scope_ids(user_id, agent_id, run_id)))

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
        return self._run(verbs.review(self.engine, memory_id, ids, accept=accept))

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
        return self._run(verbs.tool_result(self.engine, text, ids, tool=tool, source=source))

    def revoke(self, source: str) -> dict[str, Any]:
        """Give up everything that was taken from a source; its history stays."""
        return self._run(verbs.revoke(self.engine, source))

    def infer_kinds(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The kinds that claims in quarantine ask for."""
        return self._run(verbs.infer_kinds(self.engine, scope_ids(user_id, agent_id, run_id)))


class AsyncMinded(Opened):
    """What was understood, on the event loop."""

    async def wait(self) -> dict[str, Any]:
        """Ask the model about everything that waits for it, and say what came of it."""
        return await self._arun(verbs.wait(self.engine))

    async def faults(self) -> dict[str, Any]:
        """What could not be done, with what a model answered."""
        return await self._arun(verbs.faults(self.engine))

    async def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Ask the model again about what failed: all of it, or these numbers."""
        return await self._arun(verbs.retry_faults(self.engine, ids))

    async def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Forget what failed: all of it, or these numbers; the words are kept."""
        return await self._arun(verbs.drop_faults(self.engine, ids))

    async def contradictions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Memories that say different things of the same."""
        return await self._arun(
            verbs.contradictions(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def entities(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Whom and what a scope speaks of."""
        return await self._arun(verbs.entities(self.engine, scope_ids(user_id, agent_id, run_id)))

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
            verbs.relations(self.engine, name, scope_ids(user_id, agent_id, run_id))
        )

    async def identify(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Draw edges between names that may mean the same, for reads with a `lens`; nothing is merged."""
        return await self._arun(verbs.identify(self.engine, scope_ids(user_id, agent_id, run_id)))

    async def quarantine(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The claims that wait for a review; no search finds them."""
        return await self._arun(verbs.quarantine(self.engine, scope_ids(user_id, agent_id, run_id)))

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
            verbs.reveal(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
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
        return await self._arun(verbs.review(self.engine, memory_id, ids, accept=accept))

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
        return await self._arun(verbs.tool_result(self.engine, text, ids, tool=tool, source=source))

    async def revoke(self, source: str) -> dict[str, Any]:
        """Give up everything that was taken from a source; its history stays."""
        return await self._arun(verbs.revoke(self.engine, source))

    async def infer_kinds(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The kinds that claims in quarantine ask for."""
        return await self._arun(
            verbs.infer_kinds(self.engine, scope_ids(user_id, agent_id, run_id))
        )


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
            verbs.consolidate(self.engine, scope_ids(user_id, agent_id, run_id), force=force)
        )

    def tiers(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Where the turns of a scope are: tail, index, hot buffer, registry and topics."""
        return self._run(verbs.tiers(self.engine, scope_ids(user_id, agent_id, run_id)))

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
            verbs.registry(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
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
            verbs.consolidate(self.engine, scope_ids(user_id, agent_id, run_id), force=force)
        )

    async def tiers(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Where the turns of a scope are: tail, index, hot buffer, registry and topics."""
        return await self._arun(verbs.tiers(self.engine, scope_ids(user_id, agent_id, run_id)))

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
            verbs.registry(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
        )


class Topical(Opened):
    """Topics, blocking."""

    def topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """What exchanges of a scope are about: each topic with its label, its members and its neighbours."""
        return self._run(
            verbs.topics(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
        )

    def topic(
        self,
        topic_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """One topic, with the turns in it."""
        return self._run(verbs.topic(self.engine, topic_id, scope_ids(user_id, agent_id, run_id)))

    def file_topics(self) -> dict[str, Any]:
        """Put every exchange that waits into a topic."""
        return self._run(verbs.file_topics(self.engine))

    def merge_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make one of topics that are nearly the same; the older takes the members of the younger."""
        return self._run(verbs.merge_topics(self.engine, scope_ids(user_id, agent_id, run_id)))

    def abstract_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make topics of topics, named by the language model if there is one."""
        return self._run(verbs.abstract_topics(self.engine, scope_ids(user_id, agent_id, run_id)))


class AsyncTopical(Opened):
    """Topics, on the event loop."""

    async def topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """What exchanges of a scope are about: each topic with its label, its members and its neighbours."""
        return await self._arun(
            verbs.topics(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
        )

    async def topic(
        self,
        topic_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """One topic, with the turns in it."""
        return await self._arun(
            verbs.topic(self.engine, topic_id, scope_ids(user_id, agent_id, run_id))
        )

    async def file_topics(self) -> dict[str, Any]:
        """Put every exchange that waits into a topic."""
        return await self._arun(verbs.file_topics(self.engine))

    async def merge_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make one of topics that are nearly the same; the older takes the members of the younger."""
        return await self._arun(
            verbs.merge_topics(self.engine, scope_ids(user_id, agent_id, run_id))
        )

    async def abstract_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make topics of topics, named by the language model if there is one."""
        return await self._arun(
            verbs.abstract_topics(self.engine, scope_ids(user_id, agent_id, run_id))
        )
