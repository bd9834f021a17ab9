"""A conversation as the ram store tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from told.backends.ram_rows import owned
from told.backends.ram_shelf import Shelf, locked
from told.core.fact import NEVER, NODE, QUARANTINE, UNLISTED, Fact, Link, Witness
from told.core.scope import Scope
from told.ports import Tally, Turn

SPEAKERS = ("user", "assistant")


class RamTurns(Shelf):
    """`told.ports.Turns` over accounts in memory."""

    @locked
    def scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something is left of."""
        return sorted(self._account(account).scopes(), key=lambda scope: sorted(scope.ids().items()))

    @locked
    def tallies(self, account: str) -> Sequence[Tally]:
        """How much is in every exact scope."""
        book, places = self._account(account), defaultdict[Scope, list[int]](list)
        rows: tuple[Fact | Witness | Link, ...] = (*book.facts.values(), *book.evidence.values(), *book.links)
        for row in rows:
            places[row.scope].append(row.seq)
        memories = Counter(fact.scope for fact in book.facts.values() if _is_memory(fact))
        at = {entry.seq: entry.at for entry in book.entries}
        spans = [(scope, places[scope]) for scope in self.scopes(account)]
        return [Tally(scope, memories[scope], at[min(found)], at[max(found)]) for scope, found in spans]

    @locked
    def turns(
        self, scope: Scope, after: int = 0, before: int = NEVER, limit: int = 1000, *, newest: bool = False
    ) -> Sequence[Turn]:
        """The turns of exactly this scope between two positions."""
        facts = (fact for fact in self._account(scope.account).facts.values() if fact.scope == scope)
        found = [turn for turn in _said(sorted(facts, key=lambda fact: fact.seq)) if after < turn.place < before]
        chosen = found[max(len(found) - limit, 0) :] if newest else found[:limit]
        return [Turn(turn.place, owned(turn.fact)) for turn in chosen]


def _is_memory(fact: Fact) -> bool:
    return fact.until == NEVER and fact.kind not in UNLISTED


@dataclass(slots=True)
class _Words:
    """What a thread was last told by, and the position where that was first said since it was last given up."""

    evidence: str | None = None
    place: int | None = None

    def take(self, fact: Fact) -> None:
        """Go on to the next version."""
        if fact.evidence is not None:
            known = self.place if fact.evidence == self.evidence else None
            self.evidence, self.place = fact.evidence, fact.seq if known is None and fact.gone == NEVER else known


def _said(facts: Sequence[Fact]) -> list[Turn]:
    """The turns among all versions of a scope, in the order they were said in."""
    first: dict[str, str] = {}
    words: dict[str, _Words] = {}
    for fact in facts:
        words.setdefault(fact.id, _Words()).take(fact)
        if fact.evidence is not None:
            first.setdefault(fact.evidence, fact.id)
    held = ((words[fact.id], fact) for fact in facts if _spoken(fact))
    found = [
        Turn(told.place, fact) for told, fact in held
        if told.place is not None and told.evidence is not None and first[told.evidence] == fact.id
    ]  # fmt: skip
    return sorted(found, key=lambda turn: turn.place)


def _spoken(fact: Fact) -> bool:
    return fact.until == NEVER and fact.role in SPEAKERS and fact.kind not in (NODE, QUARANTINE)
