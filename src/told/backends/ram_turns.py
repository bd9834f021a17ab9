"""A conversation as the ram store tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from told.backends.ram_rows import owned
from told.backends.ram_shelf import Shelf, locked
from told.core.fact import NEVER, NODE, QUARANTINE, Fact, Link, Witness
from told.core.scope import Scope

SPEAKERS = ("user", "assistant")


class RamTurns(Shelf):
    """`told.ports.Turns` over accounts in memory."""

    @locked
    def scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something is left of."""
        here = self._account(account)
        rows: tuple[Fact | Witness | Link, ...] = (*here.facts.values(), *here.evidence.values(), *here.links)
        return sorted({row.scope for row in rows}, key=lambda scope: sorted(scope.ids().items()))

    @locked
    def turns(
        self, scope: Scope, after: int = 0, before: int = NEVER, limit: int = 1000, *, newest: bool = False
    ) -> Sequence[Fact]:
        """The turns of exactly this scope between two positions."""
        facts = sorted(self._account(scope.account).facts.values(), key=lambda fact: fact.seq)
        first: dict[str, str] = {}
        for fact in facts:
            if fact.evidence is not None:
                first.setdefault(fact.evidence, fact.id)
        said = [f for f in facts if after < f.seq < before and f.scope == scope and first.get(f.evidence or "") == f.id]
        held = [owned(fact) for fact in said if _spoken(fact)]
        return held[max(len(held) - limit, 0) :] if newest else held[:limit]

    @locked
    def gathered(self, scope: Scope, rel: str) -> int:
        """How many things a relation of exactly this scope leads to."""
        links = self._account(scope.account).links
        return len({link.dst for link in links if link.scope == scope and link.rel == rel})


def _spoken(fact: Fact) -> bool:
    return fact.until == NEVER and fact.role in SPEAKERS and fact.kind not in (NODE, QUARANTINE)
