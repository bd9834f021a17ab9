"""Memory and AsyncMemory: the same verbs over the same engine, in two colours; every method is one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from told.api import verbs
from told.api.mixins import (
    AsyncCounted,
    AsyncFaded,
    AsyncMinded,
    AsyncTiered,
    AsyncTopical,
    Counted,
    Faded,
    Minded,
    Tiered,
    Topical,
)
from told.api.reflection import AsyncReflected, Reflected
from told.api.verbs import UNSET, scope_ids
from told.model.query import Bundle
from told.ports import View


class Memory(Counted, Faded, Tiered, Reflected, Topical, Minded):
    """told, blocking."""

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
        """Remember what was said: a string, a message or a list of messages.

        The words are kept, and the facts in them become memories. `extract` names who finds the facts; `infer=False`
        keeps the words alone. `prompt` takes the place of the extractor's own, `facts` that of its answer. `deferred`
        returns before a model is asked, which is the default where the model is far away; `wait()` waits for it.
        """
        return self._wake_worker_if_pending(
            self._run(
                verbs.add(
                    self.engine,
                    messages,
                    scope_ids(user_id, agent_id, run_id),
                    metadata=metadata,
                    timestamp=timestamp,
                    expiration_date=expiration_date,
                    kind=kind,
                    memory_type=memory_type,
                    source=source,
                    idempotency_key=idempotency_key,
                    prompt=prompt,
                    filters=filters,
                    infer=infer,
                    extract=extract,
                    facts=facts,
                    deferred=deferred,
                )
            )
        )

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
        """The memories that answer a query best, each with its score."""
        return self._run(
            verbs.search(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
                explain=explain,
                threshold=threshold,
                min_score=min_score,
                rerank=rerank,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """A block of memories for a prompt that never costs more tokens than its budget."""
        return self._run(
            verbs.context(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
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
            )
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
        """Why a search finds what it finds: every candidate, its scores, and what became of it."""
        return self._run(
            verbs.explain(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
                threshold=threshold,
                min_score=min_score,
                rerank=rerank,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """What keeps a memory out of a search, or where it stands in it."""
        return self._run(
            verbs.why_not(
                self.engine,
                query,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                threshold=threshold,
                min_score=min_score,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """One memory, now or as it was; None when there is none."""
        return self._run(
            verbs.get(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                as_of=as_of,
                valid_at=valid_at,
            )
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
        """Everything a scope holds, oldest first."""
        return self._run(
            verbs.get_all(
                self.engine,
                scope_ids(user_id, agent_id, run_id),
                offset=offset,
                filters=filters,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                kinds=kinds,
                belief=belief,
            )
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
        """A new version of a memory; the earlier one stays in its history."""
        return self._run(
            verbs.update(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                text=text,
                data=data,
                metadata=metadata,
                expiration_date=expiration_date,
                timestamp=timestamp,
            )
        )

    def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory; its history stays. To destroy content use erase()."""
        return self._run(verbs.delete(self.engine, memory_id, scope_ids(user_id, agent_id, run_id)))

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up everything a scope holds."""
        return self._run(verbs.delete_all(self.engine, scope_ids(user_id, agent_id, run_id)))

    def retract(
        self,
        memory_id: str,
        *,
        why: str = "retracted",
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory and say why."""
        return self._run(
            verbs.retract(self.engine, memory_id, scope_ids(user_id, agent_id, run_id), why=why)
        )

    def history(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """Everything that happened to a memory, in order."""
        return self._run(
            verbs.history(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )

    def timeline(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Everything a scope came to believe or gave up, in order."""
        return self._run(
            verbs.timeline(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
        )

    def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """What changed in a scope between two moments."""
        return self._run(
            verbs.diff(self.engine, before, after, scope_ids(user_id, agent_id, run_id))
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
        """Say that one memory bears on another."""
        return self._run(
            verbs.link(
                self.engine,
                src,
                rel,
                dst,
                scope_ids(user_id, agent_id, run_id),
                weight=weight,
                metadata=metadata,
            )
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
        """Remember a document: a path, bytes, a binary file or a URL; one of the same source is revised."""
        return self._run(
            verbs.upload(
                self.engine,
                content,
                scope_ids(user_id, agent_id, run_id),
                name=name,
                source=source,
                media_type=media_type,
                metadata=metadata,
                timestamp=timestamp,
                expiration_date=expiration_date,
            )
        )

    def blob(
        self,
        hash: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The bytes of a document or an image that came with evidence of the scope, in base64."""
        return self._run(verbs.blob(self.engine, hash, scope_ids(user_id, agent_id, run_id)))

    def blobs(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Every document and image that came with evidence of the scope."""
        return self._run(verbs.blobs(self.engine, scope_ids(user_id, agent_id, run_id)))

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
        """Destroy content and everything derived from it, and return the certificate; a dry run only looks."""
        return self._run(
            verbs.erase(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                source=source,
                why=why,
                dry_run=dry_run,
            )
        )

    def reset(self) -> dict[str, Any]:
        """Destroy everything in the account and begin anew."""
        return self._run(verbs.reset(self.engine))

    def verify(self) -> dict[str, Any]:
        """Prove that the ledger is what it was when it was written."""
        return self._run(verbs.verify(self.engine))

    def rebuild(self, views: Sequence[View] | None = None) -> dict[str, Any]:
        """Drop views and fold them again from the ledger."""
        return self._run(verbs.rebuild(self.engine, views))

    def export(self, target: Any) -> dict[str, Any]:
        """Write the ledger as one portable JSONL to a path or a binary file."""
        return self._run(verbs.export(self.engine, target))

    def import_(self, source: Any) -> dict[str, Any]:
        """Append an exported ledger from a path, bytes or a binary file."""
        return self._run(verbs.import_(self.engine, source))

    def backup(self, target: Any) -> dict[str, Any]:
        """Write a consistent copy of the store while others go on."""
        return self._run(verbs.backup(self.engine, target))

    def reindex(self, embedder: Any = None) -> dict[str, Any]:
        """Embed everything with another model, or what has no vector yet with this one; searches go on."""
        engine = self._engine_with_embedder(embedder)
        report = self._run(verbs.reindex(engine, engine.embedder))
        self._engine = engine
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncMemory(AsyncCounted, AsyncFaded, AsyncTiered, AsyncReflected, AsyncTopical, AsyncMinded):
    """told, on the event loop."""

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
        """Remember what was said: a string, a message or a list of messages.

        The words are kept, and the facts in them become memories. `extract` names who finds the facts; `infer=False`
        keeps the words alone. `prompt` takes the place of the extractor's own, `facts` that of its answer. `deferred`
        returns before a model is asked, which is the default where the model is far away; `wait()` waits for it.
        """
        return self._wake_worker_if_pending(
            await self._arun(
                verbs.add(
                    self.engine,
                    messages,
                    scope_ids(user_id, agent_id, run_id),
                    metadata=metadata,
                    timestamp=timestamp,
                    expiration_date=expiration_date,
                    kind=kind,
                    memory_type=memory_type,
                    source=source,
                    idempotency_key=idempotency_key,
                    prompt=prompt,
                    filters=filters,
                    infer=infer,
                    extract=extract,
                    facts=facts,
                    deferred=deferred,
                )
            )
        )

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
        """The memories that answer a query best, each with its score."""
        return await self._arun(
            verbs.search(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
                explain=explain,
                threshold=threshold,
                min_score=min_score,
                rerank=rerank,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """A block of memories for a prompt that never costs more tokens than its budget."""
        return await self._arun(
            verbs.context(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
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
            )
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
        """Why a search finds what it finds: every candidate, its scores, and what became of it."""
        return await self._arun(
            verbs.explain(
                self.engine,
                query,
                scope_ids(user_id, agent_id, run_id),
                threshold=threshold,
                min_score=min_score,
                rerank=rerank,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """What keeps a memory out of a search, or where it stands in it."""
        return await self._arun(
            verbs.why_not(
                self.engine,
                query,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                threshold=threshold,
                min_score=min_score,
                reference_date=reference_date,
                filters=filters,
                kinds=kinds,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                belief=belief,
                lens=lens,
            )
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
        """One memory, now or as it was; None when there is none."""
        return await self._arun(
            verbs.get(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                as_of=as_of,
                valid_at=valid_at,
            )
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
        """Everything a scope holds, oldest first."""
        return await self._arun(
            verbs.get_all(
                self.engine,
                scope_ids(user_id, agent_id, run_id),
                offset=offset,
                filters=filters,
                limit=limit,
                top_k=top_k,
                show_expired=show_expired,
                as_of=as_of,
                valid_at=valid_at,
                kinds=kinds,
                belief=belief,
            )
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
        """A new version of a memory; the earlier one stays in its history."""
        return await self._arun(
            verbs.update(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                text=text,
                data=data,
                metadata=metadata,
                expiration_date=expiration_date,
                timestamp=timestamp,
            )
        )

    async def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory; its history stays. To destroy content use erase()."""
        return await self._arun(
            verbs.delete(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )

    async def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up everything a scope holds."""
        return await self._arun(verbs.delete_all(self.engine, scope_ids(user_id, agent_id, run_id)))

    async def retract(
        self,
        memory_id: str,
        *,
        why: str = "retracted",
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Give up a memory and say why."""
        return await self._arun(
            verbs.retract(self.engine, memory_id, scope_ids(user_id, agent_id, run_id), why=why)
        )

    async def history(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[dict[str, Any]]:
        """Everything that happened to a memory, in order."""
        return await self._arun(
            verbs.history(self.engine, memory_id, scope_ids(user_id, agent_id, run_id))
        )

    async def timeline(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Everything a scope came to believe or gave up, in order."""
        return await self._arun(
            verbs.timeline(self.engine, scope_ids(user_id, agent_id, run_id), limit=limit)
        )

    async def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """What changed in a scope between two moments."""
        return await self._arun(
            verbs.diff(self.engine, before, after, scope_ids(user_id, agent_id, run_id))
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
        """Say that one memory bears on another."""
        return await self._arun(
            verbs.link(
                self.engine,
                src,
                rel,
                dst,
                scope_ids(user_id, agent_id, run_id),
                weight=weight,
                metadata=metadata,
            )
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
        """Remember a document: a path, bytes, a binary file or a URL; one of the same source is revised."""
        return await self._arun(
            verbs.upload(
                self.engine,
                content,
                scope_ids(user_id, agent_id, run_id),
                name=name,
                source=source,
                media_type=media_type,
                metadata=metadata,
                timestamp=timestamp,
                expiration_date=expiration_date,
            )
        )

    async def blob(
        self,
        hash: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """The bytes of a document or an image that came with evidence of the scope, in base64."""
        return await self._arun(verbs.blob(self.engine, hash, scope_ids(user_id, agent_id, run_id)))

    async def blobs(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Every document and image that came with evidence of the scope."""
        return await self._arun(verbs.blobs(self.engine, scope_ids(user_id, agent_id, run_id)))

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
        """Destroy content and everything derived from it, and return the certificate; a dry run only looks."""
        return await self._arun(
            verbs.erase(
                self.engine,
                memory_id,
                scope_ids(user_id, agent_id, run_id),
                source=source,
                why=why,
                dry_run=dry_run,
            )
        )

    async def reset(self) -> dict[str, Any]:
        """Destroy everything in the account and begin anew."""
        return await self._arun(verbs.reset(self.engine))

    async def verify(self) -> dict[str, Any]:
        """Prove that the ledger is what it was when it was written."""
        return await self._arun(verbs.verify(self.engine))

    async def rebuild(self, views: Sequence[View] | None = None) -> dict[str, Any]:
        """Drop views and fold them again from the ledger."""
        return await self._arun(verbs.rebuild(self.engine, views))

    async def export(self, target: Any) -> dict[str, Any]:
        """Write the ledger as one portable JSONL to a path or a binary file."""
        return await self._arun(verbs.export(self.engine, target))

    async def import_(self, source: Any) -> dict[str, Any]:
        """Append an exported ledger from a path, bytes or a binary file."""
        return await self._arun(verbs.import_(self.engine, source))

    async def backup(self, target: Any) -> dict[str, Any]:
        """Write a consistent copy of the store while others go on."""
        return await self._arun(verbs.backup(self.engine, target))

    async def reindex(self, embedder: Any = None) -> dict[str, Any]:
        """Embed everything with another model, or what has no vector yet with this one; searches go on."""
        engine = self._engine_with_embedder(embedder)
        report = await self._arun(verbs.reindex(engine, engine.embedder))
        self._engine = engine
        return report

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
