"""Erase content: find everything that holds or derives from it, destroy it, and certify it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.errors import NotFoundError
from told.flow import Flow, call
from told.ids import HASH_ALGORITHM
from told.model.entry import Asserted, Draft, Entry, Erased, Linked
from told.model.fact import NODE, EvidenceRow, Link
from told.model.query import Certificate
from told.model.scope import Scope
from told.ports import Store

DERIVED_FROM = "derived_from"
SUPPORTS = "supports"
EVIDENCE_KEY = "evidence"
"""The metadata key of a link that names the evidence it was derived from."""


@dataclass(slots=True)
class ErasureClosure:
    """The content that an erasure covers: threads, evidence and their ledger positions."""

    threads: dict[str, None] = field(default_factory=dict)
    evidence: dict[str, None] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)

    def as_dict(self) -> dict[str, Any]:
        """Return the closure as a JSON object."""
        return {
            "memories": list(self.threads),
            "evidence": len(self.evidence),
            "entries": len(self.seqs),
        }


def collect_thread_closure(store: Store, account: str, thread: str) -> Flow[ErasureClosure]:
    """Collect a memory, its evidence, and everything derived from either."""
    if not (yield from call(store.scan_entries, account, thread=thread)):
        raise NotFoundError(f"There is no memory {thread!r} here.")
    closure = ErasureClosure({thread: None})
    texts: set[str] = set()
    targets = {thread}
    while targets:
        texts |= yield from _add_thread_evidence(store, account, closure, targets)
        known_threads = set(closure.threads)
        yield from _add_derived(store, account, closure)
        targets = yield from _find_copies(
            store, account, closure.threads.keys() - known_threads, texts
        )
    yield from _add_orphaned_nodes(store, account, closure)
    yield from _collect_positions(store, account, closure)
    return closure


def collect_scope_closure(store: Store, scope: Scope) -> Flow[ErasureClosure]:
    """Collect everything in a scope, and what was derived from it anywhere in the account."""
    versions = yield from call(store.find_versions, scope.account, scope=scope)
    evidence_rows = yield from call(store.evidence_rows, scope.account, scope=scope)
    return (
        yield from _collect_closure(
            store, scope.account, (fact.id for fact in versions), evidence_rows
        )
    )


def collect_source_closure(store: Store, account: str, source: str) -> Flow[ErasureClosure]:
    """Collect everything from a source, and what was derived from it."""
    evidence_rows = yield from call(store.evidence_rows, account, source=source)
    return (yield from _collect_closure(store, account, (), evidence_rows))


def _collect_closure(
    store: Store, account: str, threads: Iterable[str], evidence_rows: Sequence[EvidenceRow]
) -> Flow[ErasureClosure]:
    closure = ErasureClosure(
        dict.fromkeys(threads), {evidence_row.id: None for evidence_row in evidence_rows}
    )
    yield from _add_derived(store, account, closure)
    yield from _add_orphaned_nodes(store, account, closure)
    yield from _collect_positions(store, account, closure)
    return closure


def _add_derived(store: Store, account: str, closure: ErasureClosure) -> Flow[None]:
    """Add what was derived from the closure's evidence and memories, transitively."""
    facts = yield from call(store.find_versions, account, evidence=list(closure.evidence))
    closure.threads.update({fact.id: None for fact in facts if fact.kind != NODE})
    fresh = [*closure.threads, *closure.evidence]
    while fresh:
        frontier = set(fresh)
        links = yield from call(store.find_links, account, fresh)
        derived = [link.src for link in links if link.rel == DERIVED_FROM and link.dst in frontier]
        fresh = [thread for thread in dict.fromkeys(derived) if thread not in closure.threads]
        closure.threads.update(dict.fromkeys(fresh))


def _add_orphaned_nodes(store: Store, account: str, closure: ErasureClosure) -> Flow[None]:
    """Add the entities of the evidence that are described or that no other link references."""
    facts = yield from call(store.find_versions, account, evidence=list(closure.evidence))
    nodes = {
        fact.id: None for fact in facts if fact.kind == NODE and fact.id not in closure.threads
    }
    described = {fact.id for fact in facts if fact.meta.get("description")}
    links = yield from call(store.find_links, account, list(nodes))
    referenced = {
        end
        for link in links
        if not _is_link_in_closure(link, closure)
        for end in (link.src, link.dst)
    }
    closure.threads.update(
        {node: None for node in nodes if node in described or node not in referenced}
    )


def _is_link_in_closure(link: Link, closure: ErasureClosure) -> bool:
    """Return whether a link touches a memory of the closure or derives from its evidence."""
    return _is_drawn_from_evidence(link, closure) or not closure.threads.keys().isdisjoint(
        (link.src, link.dst)
    )


def _is_drawn_from_evidence(link: Link, closure: ErasureClosure) -> bool:
    """Return whether a link derives from evidence of the closure."""
    evidence = link.meta.get(EVIDENCE_KEY)
    return isinstance(evidence, str) and evidence in closure.evidence


def _add_thread_evidence(
    store: Store, account: str, closure: ErasureClosure, threads: Iterable[str]
) -> Flow[set[str]]:
    """Add the evidence of threads to the closure; return every text the threads ever had."""
    texts: set[str] = set()
    for thread in threads:
        for entry in (yield from call(store.scan_entries, account, thread=thread)):
            match entry.verb:
                case Asserted(claim=claim):
                    texts.add(claim.text)
                    closure.evidence.update(
                        {} if claim.evidence is None else {claim.evidence: None}
                    )
                case Linked(src=src, rel=rel) if rel == SUPPORTS:
                    closure.evidence[src] = None
                case _:
                    pass
    return texts


def _find_copies(
    store: Store, account: str, threads: Iterable[str], texts: set[str]
) -> Flow[set[str]]:
    """Return the threads with one of these texts, such as a deleted duplicate."""
    copies: set[str] = set()
    for thread in threads:
        entries = yield from call(store.scan_entries, account, thread=thread)
        if any(
            isinstance(entry.verb, Asserted) and entry.verb.claim.text in texts for entry in entries
        ):
            copies.add(thread)
    return copies


def _collect_positions(store: Store, account: str, closure: ErasureClosure) -> Flow[None]:
    """Add the position of every entry with content of the closure; drop unknown evidence ids."""
    for thread in closure.threads:
        entries = yield from call(store.scan_entries, account, thread=thread)
        closure.seqs.update(entry.seq for entry in entries if entry.envelope is not None)
    evidence_rows = yield from call(store.evidence_rows, account, ids=list(closure.evidence))
    closure.evidence = {evidence_row.id: None for evidence_row in evidence_rows}
    closure.seqs.update(evidence_row.seq for evidence_row in evidence_rows)
    links = yield from call(store.find_links, account, [*closure.threads, *closure.evidence])
    closure.seqs.update(link.seq for link in links)
    closure.seqs.update(
        (
            yield from _find_drawn_links(
                store, account, {evidence_row.scope for evidence_row in evidence_rows}, closure
            )
        )
    )


def _find_drawn_links(
    store: Store, account: str, scopes: Iterable[Scope], closure: ErasureClosure
) -> Flow[set[int]]:
    """Return the links between remaining nodes that derive from evidence of the closure."""
    seqs: set[int] = set()
    for scope in scopes:
        versions = yield from call(store.find_versions, scope.account, scope=scope)
        nodes = {fact.id: None for fact in versions if fact.kind == NODE}
        links = yield from call(store.find_links, account, list(nodes))
        seqs.update(link.seq for link in links if _is_drawn_from_evidence(link, closure))
    return seqs


def destroy_closure(
    store: Store, account: str, closure: ErasureClosure, why: str
) -> Flow[Certificate]:
    """Destroy the closure in one transaction, then any version written meanwhile; certify it."""
    tombstone, destroyed = yield from _shred_entries(store, account, closure.seqs, why)
    entries = len(closure.seqs)
    while late_seqs := (yield from _find_late_entries(store, account, closure)):
        tombstone, counts = yield from _shred_entries(store, account, late_seqs, why)
        destroyed = {sort: destroyed.get(sort, 0) + count for sort, count in counts.items()}
        entries += len(late_seqs)
    warnings = yield from call(store.scrub)
    return Certificate(
        tombstone.seq,
        tombstone.at,
        f"{HASH_ALGORITHM}:{tombstone.hash.hex()}",
        entries,
        tuple(closure.threads),
        len(closure.evidence),
        destroyed,
        tuple(warnings),
    )


def _shred_entries(
    store: Store, account: str, seqs: set[int], why: str
) -> Flow[tuple[Entry, Mapping[str, int]]]:
    ordered = sorted(seqs)
    return (
        yield from call(
            store.erase, account, ordered, Draft(Erased(tuple(ordered), why), None, author="told")
        )
    )


def _find_late_entries(store: Store, account: str, closure: ErasureClosure) -> Flow[set[int]]:
    """Return entries of the closure's threads that were written after it was collected."""
    latest = ErasureClosure(dict(closure.threads))
    yield from _collect_positions(store, account, latest)
    return latest.seqs
