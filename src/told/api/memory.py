"""The synchronous client. Generated from spec.py by `make generate`; do not edit."""

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


class Memory(BaseMemory):
    """The synchronous client of a memory."""

    def add(
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
        return self._call(
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

    def update(
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
        return self._call(
            "update",
            memory_id=memory_id,
            text=text,
            metadata=metadata,
            expiration_date=expiration_date,
            data=data,
            timestamp=timestamp,
            scope=(user_id, agent_id, run_id),
        )

    def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Delete a memory; its history is kept. Use erase() to destroy content."""
        return self._call("delete", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Delete all memories of a scope; their history is kept."""
        return self._call("delete_all", scope=(user_id, agent_id, run_id))

    def retract(
        self,
        memory_id: str,
        *,
        why: str = "retracted",
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Delete a memory and record the reason."""
        return self._call(
            "retract", memory_id=memory_id, why=why, scope=(user_id, agent_id, run_id)
        )

    def upload(
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
        return self._call(
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
        """Store a tool's output and return a version short enough for a prompt.

        `blob` returns the original by its hash.
        """
        return self._call(
            "tool_result", text=text, tool=tool, source=source, scope=(user_id, agent_id, run_id)
        )

    def link(
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
        return self._call(
            "link",
            src=src,
            rel=rel,
            dst=dst,
            weight=weight,
            metadata=metadata,
            scope=(user_id, agent_id, run_id),
        )

    def erase(
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
        return self._call(
            "erase",
            memory_id=memory_id,
            source=source,
            why=why,
            dry_run=dry_run,
            scope=(user_id, agent_id, run_id),
        )

    def reset(self) -> dict[str, Any]:
        """Destroy everything in the account and start a new ledger."""
        return self._call("reset")

    def search(
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
        return self._call(
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

    def context(
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
        return self._call(
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

    def explain(
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
        return self._call(
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

    def why_not(
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
        return self._call(
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

    def get(
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
        return self._call(
            "get",
            memory_id=memory_id,
            as_of=as_of,
            valid_at=valid_at,
            scope=(user_id, agent_id, run_id),
        )

    def get_all(
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
        return self._call(
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

    def history(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """List all changes of a memory in order."""
        return self._call("history", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    def timeline(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """List all changes of a scope in order."""
        return self._call("timeline", limit=limit, scope=(user_id, agent_id, run_id))

    def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Compare the memories of a scope at two points in time."""
        return self._call("diff", before=before, after=after, scope=(user_id, agent_id, run_id))

    def blob(
        self,
        hash: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return the bytes of a document or an image of the scope, in base64."""
        return self._call("blob", hash=hash, scope=(user_id, agent_id, run_id))

    def blobs(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the documents and images of the scope."""
        return self._call("blobs", scope=(user_id, agent_id, run_id))

    def wait(self) -> dict[str, Any]:
        """Wait until all pending evidence has been extracted, and return the events."""
        return self._call("wait")

    def faults(self) -> dict[str, Any]:
        """List failed jobs with the model's raw replies."""
        return self._call("faults")

    def retry_faults(self, ids: Any = None) -> dict[str, Any]:
        """Retry failed jobs, all of them or the given ids."""
        return self._call("retry_faults", ids=ids)

    def drop_faults(self, ids: Any = None) -> dict[str, Any]:
        """Delete failed jobs, all of them or the given ids; the evidence is kept."""
        return self._call("drop_faults", ids=ids)

    def contradictions(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List conflicting memories."""
        return self._call("contradictions", scope=(user_id, agent_id, run_id))

    def entities(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the entities mentioned in a scope."""
        return self._call("entities", scope=(user_id, agent_id, run_id))

    def relations(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """List an entity's relations."""
        return self._call("relations", name=name, scope=(user_id, agent_id, run_id))

    def identify(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Link names that may mean the same entity, for reads with a `lens`; nothing is merged."""
        return self._call("identify", scope=(user_id, agent_id, run_id))

    def quarantine(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """List the claims that wait for a review; searches do not return them."""
        return self._call("quarantine", scope=(user_id, agent_id, run_id))

    def review(
        self,
        memory_id: str,
        accept: bool,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Accept or reject a quarantined claim."""
        return self._call(
            "review", memory_id=memory_id, accept=accept, scope=(user_id, agent_id, run_id)
        )

    def reveal(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a memory's text with its encrypted secrets decrypted."""
        return self._call("reveal", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    def revoke(self, source: str) -> dict[str, Any]:
        """Delete everything derived from a source and restore what it had changed."""
        return self._call("revoke", source=source)

    def infer_kinds(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Propose kinds for quarantined claims."""
        return self._call("infer_kinds", scope=(user_id, agent_id, run_id))

    def recalls(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a memory's access log and access states."""
        return self._call("recalls", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    def enqueue(
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
        return self._call(
            "enqueue",
            memory_id=memory_id,
            reason=reason,
            priority=priority,
            scope=(user_id, agent_id, run_id),
        )

    def queue(self, *, limit: int | None = None) -> dict[str, Any]:
        """List the reconsolidation queue, most urgent first."""
        return self._call("queue", limit=limit)

    def reflect(self, *, limit: int | None = None) -> dict[str, Any]:
        """Reconsolidate the queued memories that are due; the originals are kept."""
        return self._call("reflect", limit=limit)

    def apply_delta(
        self,
        delta: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Apply an operation or a list of operations, all or none."""
        return self._call("apply_delta", delta=delta, scope=(user_id, agent_id, run_id))

    def topics(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """List the topics of a scope with their labels, members and neighbours."""
        return self._call("topics", as_of=as_of, scope=(user_id, agent_id, run_id))

    def topic(
        self,
        topic_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Return a topic and its turns."""
        return self._call("topic", topic_id=topic_id, scope=(user_id, agent_id, run_id))

    def file_topics(self) -> dict[str, Any]:
        """Assign every pending exchange to a topic."""
        return self._call("file_topics")

    def merge_topics(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Merge topics that are nearly the same into the older one."""
        return self._call("merge_topics", scope=(user_id, agent_id, run_id))

    def abstract_topics(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Group topics into supertopics, named by the language model if there is one."""
        return self._call("abstract_topics", scope=(user_id, agent_id, run_id))

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
        """Return a memory's strength, its mentions, when it fades, and its decay curve.

        Readings are turns or days since it was first said. `clock` draws the curve as if its kind
        faded by another clock.
        """
        return self._call(
            "decay",
            memory_id=memory_id,
            points=points,
            clock=clock,
            as_of=as_of,
            scope=(user_id, agent_id, run_id),
        )

    def about(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: Any = None,
    ) -> dict[str, Any]:
        """List a scope's memories with their quotes, strengths and fading times."""
        return self._call("about", as_of=as_of, scope=(user_id, agent_id, run_id))

    def forget(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Archive one memory, or every faded memory of a scope; history keeps them."""
        return self._call("forget", memory_id=memory_id, scope=(user_id, agent_id, run_id))

    def consolidate(
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
        return self._call("consolidate", force=force, scope=(user_id, agent_id, run_id))

    def tiers(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Return what is in the tail, index, hot buffer, registry and topics of a scope."""
        return self._call("tiers", scope=(user_id, agent_id, run_id))

    def registry(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """List a scope's filed exchanges with their summaries, newest first."""
        return self._call("registry", limit=limit, scope=(user_id, agent_id, run_id))

    def verify(self) -> dict[str, Any]:
        """Verify the ledger's hash chain, the store and every view."""
        return self._call("verify")

    def rebuild(self, views: Sequence[View] | None = None) -> dict[str, Any]:
        """Drop views and rebuild them from the ledger."""
        return self._call("rebuild", views=views)

    def reindex(self, embedder: Any = None) -> dict[str, Any]:
        """Embed everything with another embedder, or what has no vector yet with this one.

        Searches work meanwhile.
        """
        return self._call("reindex", embedder=embedder)

    def stats(self) -> dict[str, Any]:
        """Return counts and sizes."""
        return self._call("stats")

    def users(self, *, type: str | None = None) -> dict[str, Any]:
        """List users, agents and runs with their memory counts and dates."""
        return self._call("users", type=type)

    def export(self, target: Any) -> dict[str, Any]:
        """Write the ledger as JSON Lines to a path or a binary file."""
        return self._call("export", target=target)

    def import_(self, source: Any) -> dict[str, Any]:
        """Append an exported ledger from a path, bytes or a binary file."""
        return self._call("import_", source=source)

    def backup(self, target: Any) -> dict[str, Any]:
        """Write a consistent copy of the store; reads and writes continue meanwhile."""
        return self._call("backup", target=target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
