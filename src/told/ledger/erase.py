"""Forgetting that can be proven: find everything that holds or was made from the target, destroy it, and certify it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.core.entry import Asserted, Draft, Entry, Erased, Linked
from told.core.errors import NotFoundError
from told.core.fact import NODE, Link, Witness
from told.core.ids import HASH
from told.core.query import Certificate
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store

DERIVED_FROM = "derived_from"
SUPPORTS = "supports"
DRAWN_FROM = "evidence"
"""The metadata of a link that names the evidence it was drawn from."""


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
    """A memory, the evidence it was taken from or supported by, and whatever was taken or derived from either."""
    if not (yield from call(store.thread, account, thread)):
        raise NotFoundError(f"There is no memory {thread!r} here.")
    found = Closure({thread: None})
    said: set[str] = set()
    targets = {thread}
    while targets:
        said |= yield from _witnessed(store, account, found, targets)
        before = set(found.threads)
        yield from _follow(store, account, found)
        targets = yield from _saying(store, account, found.threads.keys() - before, said)
    yield from _forsake(store, account, found)
    yield from _positions(store, account, found)
    return found


def of_scope(store: Store, scope: Scope) -> Flow[Closure]:
    """Everything a scope holds, and whatever was derived from it anywhere in the account."""
    versions = yield from call(store.lives, scope)
    witnesses = yield from call(store.witnesses, scope.account, scope=scope)
    return (yield from _closed(store, scope.account, (fact.id for fact in versions), witnesses))


def of_source(store: Store, account: str, source: str) -> Flow[Closure]:
    """Everything a source said, and whatever was derived from it."""
    witnesses = yield from call(store.witnesses, account, source=source)
    return (yield from _closed(store, account, (), witnesses))


def _closed(store: Store, account: str, threads: Iterable[str], witnesses: Sequence[Witness]) -> Flow[Closure]:
    found = Closure(dict.fromkeys(threads), {witness.id: None for witness in witnesses})
    yield from _follow(store, account, found)
    yield from _forsake(store, account, found)
    yield from _positions(store, account, found)
    return found


def _follow(store: Store, account: str, found: Closure) -> Flow[None]:
    """Follow what was taken from evidence and derived from memories, until nothing new is reached."""
    taken = yield from call(store.taken, account, list(found.evidence))
    found.threads.update({fact.id: None for fact in taken if fact.kind != NODE})
    fresh = [*found.threads, *found.evidence]
    while fresh:
        asked = set(fresh)
        links = yield from call(store.links, account, fresh)
        derived = [link.src for link in links if link.rel == DERIVED_FROM and link.dst in asked]
        fresh = [thread for thread in dict.fromkeys(derived) if thread not in found.threads]
        found.threads.update(dict.fromkeys(fresh))


def _forsake(store: Store, account: str, found: Closure) -> Flow[None]:
    """Put in whom and what the evidence spoke of: whoever else is said to be there stays, as a name and no more."""
    taken = yield from call(store.taken, account, list(found.evidence))
    nodes = {fact.id: None for fact in taken if fact.kind == NODE and fact.id not in found.threads}
    described = {fact.id for fact in taken if fact.meta.get("description")}
    links = yield from call(store.links, account, list(nodes))
    named = {end for link in links if not _drew(link, found) for end in (link.src, link.dst)}
    found.threads.update({node: None for node in nodes if node in described or node not in named})


def _drew(link: Link, found: Closure) -> bool:
    """Whether a link touches a memory of the closure, or its evidence drew it."""
    return _said(link, found) or not found.threads.keys().isdisjoint((link.src, link.dst))


def _said(link: Link, found: Closure) -> bool:
    """Whether evidence of the closure is what a link is drawn from."""
    evidence = link.meta.get(DRAWN_FROM)
    return isinstance(evidence, str) and evidence in found.evidence


def _witnessed(store: Store, account: str, found: Closure, threads: Iterable[str]) -> Flow[set[str]]:
    """Put the evidence of threads into the closure; what they say and ever said."""
    said: set[str] = set()
    for thread in threads:
        for entry in (yield from call(store.thread, account, thread)):
            match entry.verb:
                case Asserted(claim=claim):
                    said.add(claim.text)
                    found.evidence.update({} if claim.evidence is None else {claim.evidence: None})
                case Linked(src=src, rel=rel) if rel == SUPPORTS:
                    found.evidence[src] = None
                case _:
                    pass
    return said


def _saying(store: Store, account: str, threads: Iterable[str], said: set[str]) -> Flow[set[str]]:
    """Which of these threads say the very same, such as an earlier one that was deleted: their evidence says it too."""
    copies: set[str] = set()
    for thread in threads:
        entries = yield from call(store.thread, account, thread)
        if any(isinstance(entry.verb, Asserted) and entry.verb.claim.text in said for entry in entries):
            copies.add(thread)
    return copies


def _positions(store: Store, account: str, found: Closure) -> Flow[None]:
    """Every ledger entry that holds content of the closure, and none of what is no evidence after all."""
    for thread in found.threads:
        entries = yield from call(store.thread, account, thread)
        found.seqs.update(entry.seq for entry in entries if entry.envelope is not None)
    witnesses = yield from call(store.witnesses, account, ids=list(found.evidence))
    found.evidence = {witness.id: None for witness in witnesses}
    found.seqs.update(witness.seq for witness in witnesses)
    links = yield from call(store.links, account, [*found.threads, *found.evidence])
    found.seqs.update(link.seq for link in links)
    found.seqs.update((yield from _drawn(store, account, {witness.scope for witness in witnesses}, found)))


def _drawn(store: Store, account: str, scopes: Iterable[Scope], found: Closure) -> Flow[set[int]]:
    """The links that evidence of the closure drew between what stays."""
    drawn: set[int] = set()
    for scope in scopes:
        lives = yield from call(store.lives, scope)
        nodes = {fact.id: None for fact in lives if fact.kind == NODE}
        links = yield from call(store.links, account, list(nodes))
        drawn.update(link.seq for link in links if _said(link, found))
    return drawn


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
    yield from _positions(store, account, again)
    return again.seqs
