"""Forgetting that can be proven: find everything that holds or was made from the target, destroy it, and certify it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from told.core.entry import Asserted, Draft, Entry, Erased, Linked, Verb
from told.core.errors import NotFoundError
from told.core.ids import HASH
from told.core.query import Certificate
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store

DERIVED_FROM = "derived_from"
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
    derived = yield from call(store.derived, account, list(found.evidence))
    found.threads.update(dict.fromkeys(derived))
    fresh = [*found.threads, *found.evidence]
    while fresh:
        asked = set(fresh)
        links = yield from call(store.links, account, fresh)
        sources = [link.src for link in links if link.rel == DERIVED_FROM and link.dst in asked]
        fresh = [thread for thread in dict.fromkeys(sources) if thread not in found.threads]
        found.threads.update(dict.fromkeys(fresh))
    yield from _positions(store, account, found, upstream=upstream)
    return found


def _positions(store: Store, account: str, found: Closure, *, upstream: bool) -> Flow[None]:
    """Every ledger entry that holds content of the closure; a sibling taken from the same evidence stays."""
    texts: set[str] = set()
    for thread in found.threads:
        for entry in (yield from call(store.thread, account, thread)):
            if entry.envelope is not None:
                found.seqs.add(entry.seq)
            if isinstance(entry.verb, Asserted):
                texts.add(entry.verb.claim.text)
            if upstream:
                found.evidence.update(dict.fromkeys(_sources(entry.verb)))
    witnesses = yield from call(store.witnesses, account, ids=list(found.evidence))
    found.evidence = {witness.id: None for witness in witnesses}
    found.seqs.update(witness.seq for witness in witnesses)
    links = yield from call(store.links, account, [*found.threads, *found.evidence])
    found.seqs.update(link.seq for link in links)
    if upstream:
        yield from _copies(store, account, found, texts)


def _sources(verb: Verb | None) -> tuple[str, ...]:
    """The evidence an entry points to."""
    match verb:
        case Asserted(claim=claim) if claim.evidence is not None:
            return (claim.evidence,)
        case Linked(src=src, rel=rel) if rel == SUPPORTS:
            return (src,)
        case _:
            return ()


def _copies(store: Store, account: str, found: Closure, texts: set[str]) -> Flow[None]:
    """Other threads taken from the same evidence that say the very same, such as an earlier one that was deleted."""
    for thread in (yield from call(store.derived, account, list(found.evidence))):
        if thread in found.threads:
            continue
        entries = yield from call(store.thread, account, thread)
        if any(isinstance(entry.verb, Asserted) and entry.verb.claim.text in texts for entry in entries):
            found.threads[thread] = None
            found.seqs.update(entry.seq for entry in entries if entry.envelope is not None)


def destroy(store: Store, account: str, found: Closure, why: str) -> Flow[Certificate]:
    """Shred the closure in one transaction and say what was destroyed; a version that came meanwhile goes too."""
    tombstone, destroyed = yield from _shred(store, account, found.seqs, why)
    entries = len(found.seqs)
    while late := (yield from _left(store, account, found)):
        tombstone, counts = yield from _shred(store, account, late, why)
        destroyed = {sort: destroyed.get(sort, 0) + count for sort, count in counts.items()}
        entries += len(late)
    warnings = yield from call(store.scrub)
    return Certificate(
        tombstone.seq, tombstone.at, f"{HASH}:{tombstone.hash.hex()}", entries,
        tuple(found.threads), len(found.evidence), destroyed, tuple(warnings),
    )  # fmt: skip


def _shred(store: Store, account: str, seqs: set[int], why: str) -> Flow[tuple[Entry, Mapping[str, int]]]:
    ordered = sorted(seqs)
    return (yield from call(store.erase, account, ordered, Draft(Erased(tuple(ordered), why), None, author="told")))


def _left(store: Store, account: str, found: Closure) -> Flow[set[int]]:
    """What of the closure's threads was written after it was drawn."""
    again = Closure(dict(found.threads))
    yield from _positions(store, account, again, upstream=False)
    return again.seqs
