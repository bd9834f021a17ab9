"""The asynchronous client. Generated from spec.py by `make generate`; do not edit."""

# mypy: disable-error-code="no-any-return"
# `BaseMemory` runs a verb by its name, so its result has no static type.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from told.api.base import BaseMemory
from told.api.verb import UNSET
from told.model.query import Bundle
from told.ports import View


class AsyncMemory(BaseMemory):
    """The asynchronous client of a memory."""

    async def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        kind: str | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        filters: Any = None,
        source: str | None = None,
        idempotency_key: str | None = None,
        extract: str | None = None,
        facts: Sequence[Any] | None = None,
        deferred: bool | None = None,
    ) -> dict[str, Any]:
        """Store messages and the facts extracted from them.

        `messages` is a string, a message or a list of messages. The text is kept verbatim;
        `extract` names the extractor, and `infer=False` extracts nothing. `prompt` replaces the
        extractor's prompt, `facts` its answer. `deferred` returns before the model is called, which
        is the default for a remote model; `wait()` waits for it.
        """
        return await self._acall(
            "add",
            messages=messages,
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expiration_date,
            kind=kind,
            infer=infer,
            memory_type=memory_type,
            prompt=prompt,
            filters=filters,
            source=source,
            idempotency_key=idempotency_key,
            extract=extract,
            facts=facts,
            deferred=deferred,
            scope=(user_id, agent_id, run_id),
        )

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
        *,
        timestamp: Any = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Add a new version of a memory; earlier versions stay in its history."""
        return await self._acall(
            "update",
            memory_id=memory_id,
            text=text,
            metadata=metadata,
            expiration_date=expiration_date,
            data=data,
            timestamp=timestamp,
            scope=(user_id, agent_id, run_id),
        )

    async def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Delete a memory; its history is kept. Use erase() to destroy content."""
        return await self._acall("delete", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Delete all memories of a scope; their history is kept."""
        return await self._acall("delete_all", scope=(user_id, agent_id, run_id))

    async def retract(
        self,
        memory_id: str,
        *,
        why: str = "retracted",
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Delete a memory and record the reason."""
        return await self._acall(
            "retract", memory_id=memory_id, why=why, scope=(user_id, agent_id, run_id)
        )

    async def upload(
        self,
        content: Any,
        *,
        name: str | None = None,
        source: str | None = None,
        media_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Store a document, or revise the one with the same source.

        `content` is a path, bytes, a binary file or a URL.
        """
        return await self._acall(
            "upload",
            content=content,
            name=name,
            source=source,
            media_type=media_type,
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expiration_date,
            scope=(user_id, agent_id, run_id),
        )

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
        """Store a tool's output and return a version short enough for a prompt.

        `blob` returns the original by its hash.
        """
        return await self._acall(
            "tool_result", text=text, tool=tool, source=source, scope=(user_id, agent_id, run_id)
        )

    async def link(
        self,
        src: str,
        rel: str,
        dst: str,
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Link two memories by a relation."""
        return await self._acall(
            "link",
            src=src,
            rel=rel,
            dst=dst,
            weight=weight,
            metadata=metadata,
            scope=(user_id, agent_id, run_id),
        )

    async def erase(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        source: str | None = None,
        why: str = "requested",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Destroy content and everything derived from it, and return a certificate.

        Pass exactly one of `memory_id`, a scope and `source`.
        """
        return await self._acall(
            "erase",
            memory_id=memory_id,
            source=source,
            why=why,
            dry_run=dry_run,
            scope=(user_id, agent_id, run_id),
        )

    async def reset(self) -> dict[str, Any]:
        """Destroy everything in the account and start a new ledger."""
        return await self._acall("reset")

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Any = None,
        kinds: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        as_of: Any = None,
        valid_at: Any = None,
        threshold: float | None = None,
        min_score: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        belief: str | None = None,
        lens: str | None = None,
    ) -> dict[str, Any]:
        """Return the memories that match a query best, with scores."""
        return await self._acall(
            "search",
            query=query,
            filters=filters,
            kinds=kinds,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
            as_of=as_of,
            valid_at=valid_at,
            threshold=threshold,
            min_score=min_score,
            rerank=rerank,
            explain=explain,
            reference_date=reference_date,
            belief=belief,
            lens=lens,
            scope=(user_id, agent_id, run_id),
        )

    async def context(
        self,
        query: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        budget: int | None = None,
        format: str | None = None,
        tail: int | None = None,
        filters: Any = None,
        kinds: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        as_of: Any = None,
        valid_at: Any = None,
        threshold: float | None = None,
        min_score: float | None = None,
        rerank: bool = False,
        reference_date: Any = None,
        belief: str | None = None,
        lens: str | None = None,
    ) -> Bundle:
        """Return memories as a block for a prompt, within a token budget.

        Without a query, the block holds the newest memories.
        """
        return await self._acall(
            "context",
            query=query,
            budget=budget,
            format=format,
            tail=tail,
            filters=filters,
            kinds=kinds,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
            as_of=as_of,
            valid_at=valid_at,
            threshold=threshold,
            min_score=min_score,
            rerank=rerank,
            reference_date=reference_date,
            belief=belief,
            lens=lens,
            scope=(user_id, agent_id, run_id),
        )

    async def explain(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Any = None,
        kinds: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        as_of: Any = None,
        valid_at: Any = None,
        threshold: float | None = None,
        min_score: float | None = None,
        rerank: bool = False,
        reference_date: Any = None,
        belief: str | None = None,
        lens: str | None = None,
    ) -> dict[str, Any]:
        """Run a search and trace every candidate with its scores and outcome."""
        return await self._acall(
            "explain",
            query=query,
            filters=filters,
            kinds=kinds,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
            as_of=as_of,
            valid_at=valid_at,
            threshold=threshold,
            min_score=min_score,
            rerank=rerank,
            reference_date=reference_date,
            belief=belief,
            lens=lens,
            scope=(user_id, agent_id, run_id),
        )

    async def why_not(
        self,
        query: str,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Any = None,
        kinds: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        as_of: Any = None,
        valid_at: Any = None,
        threshold: float | None = None,
        min_score: float | None = None,
        reference_date: Any = None,
        belief: str | None = None,
        lens: str | None = None,
    ) -> dict[str, Any]:
        """Explain why a search leaves a memory out, or return its rank."""
        return await self._acall(
            "why_not",
            query=query,
            memory_id=memory_id,
            filters=filters,
            kinds=kinds,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
            as_of=as_of,
            valid_at=valid_at,
            threshold=threshold,
            min_score=min_score,
            reference_date=reference_date,
            belief=belief,
            lens=lens,
            scope=(user_id, agent_id, run_id),
        )

    async def get(
        self,
        memory_id: str,
        *,
        as_of: Any = None,
        valid_at: Any = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any] | None:
        """Return a memory, now or at an earlier point, or None."""
        return await self._acall(
            "get",
            memory_id=memory_id,
            as_of=as_of,
            valid_at=valid_at,
            scope=(user_id, agent_id, run_id),
        )

    async def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Any = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
        as_of: Any = None,
        valid_at: Any = None,
        offset: int = 0,
        kinds: Any = None,
        belief: str | None = None,
    ) -> dict[str, Any]:
        """List the memories of a scope, oldest first."""
        return await self._acall(
            "get_all",
            filters=filters,
            limit=limit,
            top_k=top_k,
            show_expired=show_expired,
            as_of=as_of,
            valid_at=valid_at,
            offset=offset,
            kinds=kinds,
            belief=belief,
            scope=(user_id, agent_id, run_id),
        )

    async def history(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """List all changes of a memory in order."""
        return await self._acall("history", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    async def timeline(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """List all changes of a scope in order."""
        return await self._acall("timeline", limit=limit, scope=(user_id, agent_id, run_id))

    async def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Compare the memories of a scope at two points in time."""
        return await self._acall(
            "diff", before=before, after=after, scope=(user_id, agent_id, run_id)
        )

    async def blob(
        self,
        hash: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return the bytes of a document or an image of the scope, in base64."""
        return await self._acall("blob", hash=hash, scope=(user_id, agent_id, run_id))

    async def blobs(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the documents and images of the scope."""
        return await self._acall("blobs", scope=(user_id, agent_id, run_id))

    async def wait(self) -> dict[str, Any]:
        """Wait until all pending evidence has been extracted, and return the events."""
        return await self._acall("wait")

    async def faults(self) -> dict[str, Any]:
        """List failed jobs with the model's raw replies."""
        return await self._acall("faults")

    async def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Retry failed jobs, all of them or the given ids."""
        return await self._acall("retry_faults", ids=ids)

    async def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Delete failed jobs, all of them or the given ids; the evidence is kept."""
        return await self._acall("drop_faults", ids=ids)

    async def contradictions(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List conflicting memories."""
        return await self._acall("contradictions", scope=(user_id, agent_id, run_id))

    async def entities(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the entities mentioned in a scope."""
        return await self._acall("entities", scope=(user_id, agent_id, run_id))

    async def relations(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """List an entity's relations."""
        return await self._acall("relations", name=name, scope=(user_id, agent_id, run_id))

    async def identify(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Link names that may mean the same entity, for reads with a `lens`; nothing is merged."""
        return await self._acall("identify", scope=(user_id, agent_id, run_id))

    async def quarantine(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the claims that wait for a review; searches do not return them."""
        return await self._acall("quarantine", scope=(user_id, agent_id, run_id))

    async def review(
        self,
        memory_id: str,
        accept: bool,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Accept or reject a quarantined claim."""
        return await self._acall(
            "review", memory_id=memory_id, accept=accept, scope=(user_id, agent_id, run_id)
        )

    async def reveal(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a memory's text with its encrypted secrets decrypted."""
        return await self._acall("reveal", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    async def revoke(self, source: str) -> dict[str, Any]:
        """Delete everything derived from a source and restore what it had changed."""
        return await self._acall("revoke", source=source)

    async def infer_kinds(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Propose kinds for quarantined claims."""
        return await self._acall("infer_kinds", scope=(user_id, agent_id, run_id))

    async def recalls(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a memory's access log and access states."""
        return await self._acall("recalls", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    async def enqueue(
        self,
        memory_id: str,
        *,
        reason: str = "explicit",
        priority: float = 1.0,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Queue a memory for reconsolidation by `reflect()`."""
        return await self._acall(
            "enqueue",
            memory_id=memory_id,
            reason=reason,
            priority=priority,
            scope=(user_id, agent_id, run_id),
        )

    async def queue(self, *, limit: int | None = None) -> dict[str, Any]:
        """List the reconsolidation queue, most urgent first."""
        return await self._acall("queue", limit=limit)

    async def reflect(self, *, limit: int | None = None) -> dict[str, Any]:
        """Reconsolidate the queued memories that are due; the originals are kept."""
        return await self._acall("reflect", limit=limit)

    async def apply_delta(
        self,
        delta: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Apply an operation or a list of operations, all or none."""
        return await self._acall("apply_delta", delta=delta, scope=(user_id, agent_id, run_id))

    async def topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """List the topics of a scope with their labels, members and neighbours."""
        return await self._acall("topics", as_of=as_of, scope=(user_id, agent_id, run_id))

    async def topic(
        self,
        topic_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a topic and its turns."""
        return await self._acall("topic", topic_id=topic_id, scope=(user_id, agent_id, run_id))

    async def file_topics(self) -> dict[str, Any]:
        """Assign every pending exchange to a topic."""
        return await self._acall("file_topics")

    async def merge_topics(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Merge topics that are nearly the same into the older one."""
        return await self._acall("merge_topics", scope=(user_id, agent_id, run_id))

    async def abstract_topics(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Group topics into supertopics, named by the language model if there is one."""
        return await self._acall("abstract_topics", scope=(user_id, agent_id, run_id))

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
        """Return a memory's strength, its mentions, when it fades, and its decay curve.

        Readings are turns or days since it was first said. `clock` draws the curve as if its kind
        faded by another clock.
        """
        return await self._acall(
            "decay",
            memory_id=memory_id,
            points=points,
            clock=clock,
            as_of=as_of,
            scope=(user_id, agent_id, run_id),
        )

    async def about(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """List a scope's memories with their quotes, strengths and fading times."""
        return await self._acall("about", as_of=as_of, scope=(user_id, agent_id, run_id))

    async def forget(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Archive one memory, or every faded memory of a scope; history keeps them."""
        return await self._acall("forget", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    async def consolidate(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        force: bool = False,
    ) -> dict[str, Any]:
        """Move old turns out of the tail and file cold exchanges; `force` files all of them.

        Without an id, it runs for the whole account.
        """
        return await self._acall("consolidate", force=force, scope=(user_id, agent_id, run_id))

    async def tiers(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Return what is in the tail, index, hot buffer, registry and topics of a scope."""
        return await self._acall("tiers", scope=(user_id, agent_id, run_id))

    async def registry(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """List a scope's filed exchanges with their summaries, newest first."""
        return await self._acall("registry", limit=limit, scope=(user_id, agent_id, run_id))

    async def verify(self) -> dict[str, Any]:
        """Verify the ledger's hash chain, the store and every view."""
        return await self._acall("verify")

    async def rebuild(self, views: Sequence[View] | None = None) -> dict[str, Any]:
        """Drop views and rebuild them from the ledger."""
        return await self._acall("rebuild", views=views)

    async def reindex(self, embedder: Any = None) -> dict[str, Any]:
        """Embed everything with another embedder, or what has no vector yet with this one.

        Searches work meanwhile.
        """
        return await self._acall("reindex", embedder=embedder)

    async def stats(self) -> dict[str, Any]:
        """Return counts and sizes."""
        return await self._acall("stats")

    async def users(self, *, type: str | None = None) -> dict[str, Any]:
        """List users, agents and runs with their memory counts and dates."""
        return await self._acall("users", type=type)

    async def export(self, target: Any) -> dict[str, Any]:
        """Write the ledger as JSON Lines to a path or a binary file."""
        return await self._acall("export", target=target)

    async def import_(self, source: Any) -> dict[str, Any]:
        """Append an exported ledger from a path, bytes or a binary file."""
        return await self._acall("import_", source=source)

    async def backup(self, target: Any) -> dict[str, Any]:
        """Write a consistent copy of the store; reads and writes continue meanwhile."""
        return await self._acall("backup", target=target)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
