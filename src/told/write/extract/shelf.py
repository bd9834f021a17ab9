"""What a model may look at while it writes: the memories of one scope, one by one or by kind, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from told.core.fact import QUARANTINE, UNLISTED_KINDS, Fact, Link
from told.core.filter import parse_filter
from told.core.query import LATEST, AccessCount, AsOf, FactQuery
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store


class MemoryReader(Protocol):
    """The memories of a scope, to be read."""

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """The memory of this id as it is held now, if it is here."""

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """The memories of a kind, or of every kind if it is empty, the newest last."""

    def list_links(self, id: str) -> Flow[Sequence[Link]]:
        """What leads to and from a memory."""

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """How often a memory was recalled and when last; None if it is not here."""


@dataclass(frozen=True, slots=True)
class StoreMemoryReader:
    """The shelf of a store; `now` decides what has expired."""

    store: Store
    scope: Scope
    now: int
    limit: int = 50

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """The memory of this id, if the scope covers it and it is not in doubt."""
        fact = yield from call(self.store.get_fact, self.scope.account, id)
        return (
            fact
            if fact is not None and fact.kind != QUARANTINE and self.scope.covers(fact.scope)
            else None
        )

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """The newest of a kind, oldest first."""
        query = FactQuery(
            self.scope, AsOf(LATEST, self.now), parse_filter({"kind": kind} if kind else None)
        )
        facts = yield from call(self.store.find_facts, query)
        return [fact for fact in facts if fact.kind not in UNLISTED_KINDS][-self.limit :]

    def list_links(self, id: str) -> Flow[Sequence[Link]]:
        """The links of a memory of the scope to others of it."""
        if (yield from self.read_memory(id)) is None:
            return ()
        links = yield from call(self.store.find_links, self.scope.account, [id])
        return [link for link in links if self.scope.covers(link.scope)][: self.limit]

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """The recalls of a memory of the scope."""
        if (yield from self.read_memory(id)) is None:
            return None
        counts = yield from call(self.store.access_counts, self.scope.account, [id])
        return counts.get(id, AccessCount(0, 0))


@dataclass(frozen=True, slots=True)
class StaticMemoryReader:
    """A shelf of the few memories that came with what was heard, where there is no store to look into."""

    facts: tuple[Fact, ...] = ()

    def read_memory(self, id: str) -> Flow[Fact | None]:
        """The memory of this id, if it came along."""
        return next((fact for fact in self.facts if fact.id == id), None)
        yield  # a flow, though it asks for nothing

    def list_memories(self, kind: str) -> Flow[Sequence[Fact]]:
        """Those of a kind."""
        return [fact for fact in self.facts if kind in ("", fact.kind)]
        yield  # a flow, though it asks for nothing

    def list_links(self, id: str) -> Flow[Sequence[Link]]:
        """None are known."""
        return ()
        yield  # a flow, though it asks for nothing

    def get_access_stats(self, id: str) -> Flow[AccessCount | None]:
        """Never recalled, as far as is known."""
        return None if (yield from self.read_memory(id)) is None else AccessCount(0, 0)
