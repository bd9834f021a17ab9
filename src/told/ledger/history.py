"""The history of a thread, the timeline of a scope, and the difference between two points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.flow import Flow, call
from told.model.entry import Asserted, Draft, Entry, Linked, Retracted
from told.model.fact import NEVER, UNLISTED_KINDS, Fact
from told.model.query import AsOf, FactQuery, exclude_unlisted
from told.model.scope import Scope
from told.ports import Store
from told.text.dates import format_iso


@dataclass(frozen=True, slots=True)
class ThreadChange:
    """One change of a thread."""

    event: str
    seq: int
    at: int
    id: str
    old: str | None = None
    new: str | None = None
    why: str = ""
    role: str | None = None
    actor: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the change as a JSON object, with both spellings of the field names."""
        when = format_iso(self.at)
        return {
            "id": f"{self.id}#{self.seq}",
            "memory_id": self.id,
            "event": self.event,
            "old_value": self.old,
            "new_value": self.new,
            "old_memory": self.old,
            "new_memory": self.new,
            "timestamp": when,
            "created_at": when,
            "updated_at": when,
            "is_deleted": self.event in ("DELETE", "ERASE"),
            "actor_id": self.actor,
            "role": self.role,
            **({"why": self.why} if self.why else {}),
        }


def load_threads_from_evidence(
    store: Store, account: str, evidence: Sequence[str]
) -> Flow[list[str]]:
    """Return the threads with a version taken from any of this evidence, in ledger order."""
    versions = yield from call(store.find_versions, account, evidence=evidence)
    return list(dict.fromkeys(fact.id for fact in versions if fact.evidence in evidence))


def load_history(
    store: Store, account: str, thread: str, scope: Scope | None = None
) -> Flow[Sequence[ThreadChange]]:
    """Return every change of a thread in order; erased content appears as an ERASE event.

    A thread that another scope wrote to has no history here.
    """
    entries = yield from call(store.scan_entries, account, thread=thread)
    if scope is not None and not all(_is_visible(scope, entry) for entry in entries):
        return []
    changes: list[ThreadChange] = []
    current: str | None = None
    for entry in entries:
        change = _to_change(entry, thread, current)
        if change is not None:
            changes.append(change)
            current = change.new if change.event in ("ADD", "UPDATE") else current
            current = None if change.event in ("DELETE", "ERASE") else current
    return changes


def _is_visible(scope: Scope, entry: Entry) -> bool:
    """Return whether a scope may see an entry of a thread; links are always visible."""
    if entry.draft is None or isinstance(entry.draft.verb, Linked):
        return True
    return entry.draft.scope is not None and scope.covers(entry.draft.scope)


def _to_change(entry: Entry, thread: str, current: str | None) -> ThreadChange | None:
    match entry.draft:
        case None if entry.sort != "linked":
            return ThreadChange("ERASE", entry.seq, entry.at, thread, why="erased on request")
        case Draft(verb=Asserted(claim=claim)):
            event = "ADD" if current is None else "UPDATE"
            return ThreadChange(
                event, entry.seq, entry.at, thread, current, claim.text, "", claim.role, claim.actor
            )
        case Draft(verb=Retracted(why=why)):
            return ThreadChange("DELETE", entry.seq, entry.at, thread, current, None, why)
        case Draft(verb=Linked(meta={"said": "again"})):
            return ThreadChange("NONE", entry.seq, entry.at, thread, current, current, "said again")
        case _:
            return None


def load_timeline(store: Store, scope: Scope) -> Flow[Sequence[ThreadChange]]:
    """Return every change of a scope's listed facts in ledger order."""
    versions = [
        fact
        for fact in (yield from call(store.find_versions, scope.account, scope=scope))
        if fact.kind not in UNLISTED_KINDS
    ]
    instants = yield from _load_instants(
        store, scope.account, [f.gone for f in versions if f.gone != NEVER]
    )
    latest: dict[str, Fact] = {}
    changes: list[ThreadChange] = []
    for fact in versions:
        previous = latest.get(fact.id)
        is_update = previous is not None and previous.gone > fact.seq
        old = previous.text if previous is not None and is_update else None
        event = "UPDATE" if is_update else "ADD"
        changes.append(
            ThreadChange(
                event,
                fact.seq,
                fact.updated_at,
                fact.id,
                old,
                fact.text,
                role=fact.role,
                actor=fact.actor,
            )
        )
        latest[fact.id] = fact
        if fact.gone != NEVER and fact.until == fact.gone:
            changes.append(
                ThreadChange("DELETE", fact.gone, instants[fact.gone], fact.id, fact.text, None)
            )
    return sorted(changes, key=lambda change: change.seq)


def _load_instants(store: Store, account: str, seqs: Sequence[int]) -> Flow[Mapping[int, int]]:
    instants: dict[int, int] = {}
    for seq in dict.fromkeys(seqs):
        entries = yield from call(store.scan_entries, account, seq - 1, 1)
        instants[seq] = entries[0].at
    return instants


def diff_beliefs(
    store: Store, scope: Scope, before: AsOf, after: AsOf, hidden: frozenset[str] = frozenset()
) -> Flow[dict[str, Any]]:
    """Compare the facts of a scope at two points: added, changed and removed."""
    earlier = yield from call(
        store.find_facts, exclude_unlisted(FactQuery(scope, before, show_expired=True))
    )
    later = yield from call(
        store.find_facts, exclude_unlisted(FactQuery(scope, after, show_expired=True))
    )
    old, new = (
        {fact.id: fact for fact in facts if fact.id not in hidden} for facts in (earlier, later)
    )
    return {
        "added": [
            {"id": thread, "memory": version.text}
            for thread, version in new.items()
            if thread not in old
        ],
        "changed": [
            {"id": thread, "old_memory": old[thread].text, "new_memory": version.text}
            for thread, version in new.items()
            if thread in old
            and (old[thread].text, old[thread].meta) != (version.text, version.meta)
        ],
        "removed": [
            {"id": thread, "memory": version.text}
            for thread, version in old.items()
            if thread not in new
        ],
    }
