"""A conversation as the ram store tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from told.backends.ram_rows import copy_row
from told.backends.ram_shelf import InMemoryAccounts, with_lock
from told.core.fact import NEVER, NODE, QUARANTINE, UNLISTED_KINDS, EvidenceRow, Fact, Link
from told.core.scope import Scope
from told.ports import ScopeTally, StoredTurn

SPEAKER_ROLES = ("user", "assistant")


class InMemoryTurns(InMemoryAccounts):
    """`told.ports.Turns` over accounts in memory."""

    @with_lock
    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something is left of."""
        return sorted(
            self._get_account(account).collect_scopes(),
            key=lambda scope: sorted(scope.ids().items()),
        )

    @with_lock
    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """How much is in every exact scope."""
        state, seqs_by_scope = self._get_account(account), defaultdict[Scope, list[int]](list)
        rows: tuple[Fact | EvidenceRow | Link, ...] = (
            *state.facts.values(),
            *state.evidence.values(),
            *state.links,
        )
        for row in rows:
            seqs_by_scope[row.scope].append(row.seq)
        memories = Counter(fact.scope for fact in state.facts.values() if _is_memory(fact))
        instants = {entry.seq: entry.at for entry in state.entries}
        spans = [(scope, seqs_by_scope[scope]) for scope in self.list_scopes(account)]
        return [
            ScopeTally(scope, memories[scope], instants[min(seqs)], instants[max(seqs)])
            for scope, seqs in spans
        ]

    @with_lock
    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """The turns of exactly this scope between two positions."""
        facts = (
            fact for fact in self._get_account(scope.account).facts.values() if fact.scope == scope
        )
        matching = [
            turn
            for turn in _list_turns(sorted(facts, key=lambda fact: fact.seq))
            if after < turn.said_seq < before
        ]
        chosen = matching[max(len(matching) - limit, 0) :] if newest else matching[:limit]
        return [StoredTurn(turn.said_seq, copy_row(turn.fact)) for turn in chosen]


def _is_memory(fact: Fact) -> bool:
    return fact.until == NEVER and fact.kind not in UNLISTED_KINDS


@dataclass(slots=True)
class _TurnOrigin:
    """What a thread was last told by, and the position where that was first said since it was last given up."""

    evidence: str | None = None
    said_seq: int | None = None

    def update(self, fact: Fact) -> None:
        """Go on to the next version."""
        if fact.evidence is not None:
            current_seq = self.said_seq if fact.evidence == self.evidence else None
            self.evidence, self.said_seq = (
                fact.evidence,
                fact.seq if current_seq is None and fact.gone == NEVER else current_seq,
            )


def _list_turns(facts: Sequence[Fact]) -> list[StoredTurn]:
    """The turns among all versions of a scope, in the order they were said in."""
    first_threads: dict[str, str] = {}
    origins: dict[str, _TurnOrigin] = {}
    for fact in facts:
        origins.setdefault(fact.id, _TurnOrigin()).update(fact)
        if fact.evidence is not None:
            first_threads.setdefault(fact.evidence, fact.id)
    spoken = ((origins[fact.id], fact) for fact in facts if _is_spoken(fact))
    turns = [
        StoredTurn(origin.said_seq, fact)
        for origin, fact in spoken
        if origin.said_seq is not None
        and origin.evidence is not None
        and first_threads[origin.evidence] == fact.id
    ]
    return sorted(turns, key=lambda turn: turn.said_seq)


def _is_spoken(fact: Fact) -> bool:
    return (
        fact.until == NEVER and fact.role in SPEAKER_ROLES and fact.kind not in (NODE, QUARANTINE)
    )
