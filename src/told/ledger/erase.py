"""Forgetting that can be proven: find everything that holds or was made from the target, destroy it, and certify it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.core.entry import Draft, Erased
from told.core.errors import NotFoundError
from told.core.ids import HASH
from told.core.query import Certificate
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store
from told.views.links import DERIVED_FROM

SUPPORTS = "supports"


@dataclass(slots=True)
class Closure:
    """What an erasure reaches: threads, evidence, and the ledger positions of both."""

    threads: dict[str, None] = field(default_factory=dict)
    evidence: dict[str, None] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)

    def as_dict(self) -> dict[str, Any]:
        """The closure as JSON."""
        return {"memories": list(self.threads), "evidence": len(self.evidence), "entries": len(self.seqs)}


def of_thread(store: Store, account: str, thread: str) -> Flow[Closure]:
    """A memory, the evidence it was taken from or supported by, and whatever was derived from it."""
    if not (yield from call(store.thread, account, thread)):
        raise NotFoundError(f"There is no memory {thread!r} here.")
    return (yield from _close(store, account, [thread], (), upstream=True))


def of_scope(store: Store, scope: Scope) -> Flow[Closure]:
    """Everything a scope holds, and whatever was derived from it anywhere in the account."""
    versions = yield from call(store.lives, scope)
    witnesses = yield from call(store.witnesses, scope.account, scope=scope)
    threads = [fact.id for fact in versions]
    return (yield from _close(store, scope.account, threads, [w.id for w in witnesses], upstream=False))


def of_source(store: Store, account: str, source: str) -> Flow[Closure]:
    """Everything a source said, and whatever was derived from it."""
    witnesses = yield from call(store.witnesses, account, source=source)
    return (yield from _close(store, account, (), [w.id for w in witnesses], upstream=False))


def _close(
    store: Store, account: str, threads: Iterable[str], evidence: Iterable[str], *, upstream: bool
) -> Flow[Closure]:
    """Follow derivations downwards until nothing new is reached; then, if asked, up to the evidence of it all."""
    found = Closure(dict.fromkeys(threads), dict.fromkeys(evidence))
    fresh = [*found.threads, *found.evidence]
    while fresh:
        asked = set(fresh)
        links = yield from call(store.links, account, fresh)
        derived = dict.fromkeys(link.src for link in links if link.rel == DERIVED_FROM and link.dst in asked)
        fresh = [thread for thread in derived if thread not in found.threads]
        found.threads.update(dict.fromkeys(fresh))
    if upstream:
        for link in (yield from call(store.links, account, list(found.threads))):
            if link.rel == DERIVED_FROM and link.src in found.threads:
                found.evidence[link.dst] = None
            elif link.rel == SUPPORTS and link.dst in found.threads:
                found.evidence[link.src] = None
    yield from _positions(store, account, found)
    return found


def _positions(store: Store, account: str, found: Closure) -> Flow[None]:
    """Every ledger entry that holds content of the closure; a sibling taken from the same evidence stays."""
    witnesses = yield from call(store.witnesses, account, ids=list(found.evidence))
    found.evidence = {witness.id: None for witness in witnesses}
    found.seqs.update(witness.seq for witness in witnesses)
    for thread in found.threads:
        entries = yield from call(store.thread, account, thread)
        found.seqs.update(entry.seq for entry in entries if entry.envelope is not None)
    nodes = {*found.threads, *found.evidence}
    for link in (yield from call(store.links, account, list(nodes))):
        if link.src in nodes or link.rel != DERIVED_FROM:
            found.seqs.add(link.seq)


def destroy(store: Store, account: str, found: Closure, why: str) -> Flow[Certificate]:
    """Shred the closure in one transaction and say what was destroyed."""
    seqs: Sequence[int] = sorted(found.seqs)
    draft = Draft(Erased(tuple(seqs), why), None, author="told")
    tombstone, destroyed = yield from call(store.erase, account, seqs, draft)
    warnings = yield from call(store.scrub)
    return Certificate(
        tombstone.seq, tombstone.at, f"{HASH}:{tombstone.hash.hex()}", len(seqs),
        tuple(found.threads), len(found.evidence), destroyed, tuple(warnings),
    )  # fmt: skip
