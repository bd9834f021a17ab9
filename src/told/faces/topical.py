"""The verbs about topics, in both colours; every method is one line."""

from __future__ import annotations

from typing import Any

from told.faces import clustered
from told.faces.opened import Opened
from told.faces.verbs import scope_ids


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
            clustered.topics(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
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
        return self._run(
            clustered.topic(self.engine, topic_id, scope_ids(user_id, agent_id, run_id))
        )

    def file_topics(self) -> dict[str, Any]:
        """Put every exchange that waits into a topic."""
        return self._run(clustered.file_topics(self.engine))

    def merge_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make one of topics that are nearly the same; the older takes the members of the younger."""
        return self._run(clustered.merge_topics(self.engine, scope_ids(user_id, agent_id, run_id)))

    def abstract_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make topics of topics, named by the language model if there is one."""
        return self._run(
            clustered.abstract_topics(self.engine, scope_ids(user_id, agent_id, run_id))
        )


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
            clustered.topics(self.engine, scope_ids(user_id, agent_id, run_id), as_of=as_of)
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
            clustered.topic(self.engine, topic_id, scope_ids(user_id, agent_id, run_id))
        )

    async def file_topics(self) -> dict[str, Any]:
        """Put every exchange that waits into a topic."""
        return await self._arun(clustered.file_topics(self.engine))

    async def merge_topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Make one of topics that are nearly the same; the older takes the members of the younger."""
        return await self._arun(
            clustered.merge_topics(self.engine, scope_ids(user_id, agent_id, run_id))
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
            clustered.abstract_topics(self.engine, scope_ids(user_id, agent_id, run_id))
        )
