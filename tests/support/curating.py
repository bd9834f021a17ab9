"""Helpers to test curation: short claims, a store, and committed decisions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from told.backends.memory.store import InMemoryStore
from told.backends.sqlite import open_store
from told.curation.decisions import PlanContext, plan_claims
from told.curation.rules import RuleCurator
from told.flow import run
from told.ingest.messages import InputTurn
from told.ingest.types import CurationResult, Curator, ExtractedClaim, ExtractionInput
from told.ledger.views import fold_all
from told.model.entry import Claim, Draft, Evidence, Observed
from told.model.fact import Fact
from told.model.kind import Ontology, load_builtin_ontology, lookup_predicate
from told.model.query import LATEST, AsOf, Event, FactQuery
from told.model.scope import Scope
from told.ports import Batch, Store
from told.testing import ManualClock, seeded_mint

ALICE = Scope(user_id="alice")
DAY = 86_400_000_000


def claim(
    predicate_: str, value: str | None, text: str = "", *, subject: str = "User", **more: Any
) -> Claim:
    """Build a claim; its kind comes from its predicate."""
    said = text or f"{subject} {predicate_.replace('_', ' ')} {value}"
    kind = more.pop("kind", lookup_predicate(predicate_).kind)
    return Claim(said, kind, subject, predicate_, value, **{"role": "user", **more})


def denied(predicate_: str, value: str | None, text: str = "", **more: Any) -> Claim:
    """Build a claim that denies something."""
    said = text or f"User no longer {predicate_.replace('_', ' ')} {value}"
    return claim(predicate_, value, said, polarity="negated", **more)


@dataclass
class World:
    """A store and a clock; each call decides about claims and commits the result."""

    store: Store
    clock: ManualClock
    curator: Curator | None = None
    ontology: Ontology = field(default_factory=load_builtin_ontology)
    scope: Scope = ALICE
    curated: CurationResult = field(default_factory=CurationResult)
    calls: int = 0

    def tell(
        self, *claims: Claim, role: str = "user", sort: str = "turn", source: str | None = None
    ) -> list[Event]:
        """Add claims in one turn and return the resulting events."""
        self.calls += 1
        self.clock.tick()
        said = Evidence(
            f"turn {self.calls}: {'; '.join(each.text for each in claims)}",
            role,
            sort=sort,
            source=source,
        )
        spoken = [each if each.role == role else replace(each, role=role) for each in claims]
        heard = ExtractionInput((InputTurn(said, {}),), self.clock.now, self.scope, self.ontology)
        seen = self.store.get_head(self.scope.account).seq
        curator = self.curator or RuleCurator(self.store)
        self.curated = run(curator.decide(heard, [ExtractedClaim(each, 0) for each in spoken]))
        place = PlanContext(self.scope, "local", seen, self.clock.now, self.store.mint)
        evidence = self.store.mint.new_id()
        plan = plan_claims(place, self.curated.decisions, [evidence])
        drafts = [Draft(Observed(evidence, said), self.scope), *plan.drafts]
        self.store.commit(Batch(self.scope.account, drafts, list(plan.guards), -1), fold_all)
        return plan.events

    def events(self, *claims: Claim, **more: Any) -> list[str]:
        """Return the names of the events of one turn's claims."""
        return [event.event for event in self.tell(*claims, **more)]

    def facts(self, **find: Any) -> Sequence[Fact]:
        """Return the current facts."""
        return self.store.find_facts(FactQuery(self.scope, AsOf(LATEST, self.clock.now), **find))

    def texts(self) -> list[str]:
        """Return the texts of the current facts."""
        return [fact.text for fact in self.facts()]

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return the links of one relation by the texts they connect; evidence has no text."""
        texts = {fact.id: fact.text for fact in self.facts()}
        found = {
            link.seq: link
            for link in self.store.find_links(self.scope.account, list(texts))
            if link.rel == rel
        }
        return [(texts.get(link.src, ""), texts.get(link.dst, "")) for link in found.values()]

    def whys(self) -> list[str]:
        """Return the reasons of the last decisions."""
        return [decision.why for decision in self.curated.decisions]


@contextmanager
def world(kind: str = "ram", *, seed: int = 0, **more: Any) -> Iterator[World]:
    """Open a fresh world on a store of a kind, and remove it afterwards."""
    clock = ManualClock()
    mint = seeded_mint(seed, clock)
    with tempfile.TemporaryDirectory(prefix="told-curate-") as folder:
        url = f"sqlite:///{folder}/m.db"
        opened = (
            InMemoryStore(mint)
            if kind == "ram"
            else open_store(url, mint=mint, settings={"durability": "normal"})
        )
        store = cast(Store, opened)
        try:
            yield World(store, clock, **more)
        finally:
            store.close()
