"""A conversation for decay tests: a small ontology with every tier and clock, and a visitor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from histories import Stage, stage
from told import Memory
from told.ledger.views import fold_all
from told.model.entry import Draft, Evidence, Observed
from told.model.scope import Scope
from told.ports import Batch

DAY = 86_400_000_000


def concept(
    tier: str,
    weight: float,
    cardinality: int | str = "unlimited",
    eviction: str = "salience",
    **more: Any,
) -> dict[str, Any]:
    """Build a concept of an ontology."""
    return {
        "label": tier,
        "persistence_class": tier,
        "salience_weight": weight,
        "cardinality": cardinality,
        "eviction": eviction,
        **more,
    }


VISIT: Mapping[str, Any] = {
    "concepts": {
        "Need.Deaf": concept("permanent", 1.0),
        "Art.Style": concept("long_term", 0.7),
        "Plan.Hours": concept("session", 0.6),
        "Need.Coffee": concept("ephemeral", 0.9),
        "Art.Few": concept("long_term", 0.7, 3),
        "Art.Last": concept("long_term", 0.7, 3, "recency"),
        "Mood.Day": concept("session", 0.8, clock="time", half_life_days=1),
        "Mood.Talk": concept("session", 0.8, clock="tokens"),
    }
}


@dataclass
class Visit:
    """A conversation with one visitor."""

    here: Stage
    ids: dict[str, Any] = field(default_factory=lambda: {"user_id": "ann"})
    turns: int = 0

    @property
    def memory(self) -> Memory:
        """Return the memory."""
        return self.here.memory

    def says(
        self, kind: str, value: str, polarity: str = "asserted", **ids: Any
    ) -> list[dict[str, Any]]:
        """Say one thing in its own turn."""
        self.turns += 1
        said = f"In turn {self.turns} I say {value}"
        fact = {"concept": kind, "value": value, "polarity": polarity, "evidence": value}
        made: list[dict[str, Any]] = self.memory.add(said, **(ids or self.ids), facts=[fact])[
            "results"
        ]
        return made

    def passes(self, turns: int = 1, tokens: int = 0, days: float = 0.0) -> None:
        """Let silent turns, tokens or days pass."""
        self.here.clock.tick(round(days * DAY))
        if turns or tokens:
            store, scope = self.memory.engine.store, Scope.create(**self.ids)
            heard = Evidence("", "user", sort="tick", meta={"turns": turns, "tokens": tokens})
            store.commit(
                Batch("default", [Draft(Observed(store.mint.new_id(), heard), scope)]), fold_all
            )

    def weights(self, **options: Any) -> dict[str, float]:
        """Return the salience of each memory by its text."""
        rows = self.memory.about(**self.ids, **options)["results"]
        return {row["memory"].rpartition(": ")[2]: row["salience"] for row in rows}

    def held(self) -> set[str]:
        """Return the current values."""
        rows = self.memory.get_all(**self.ids, limit=1000)["results"]
        return {row["metadata"]["value"] for row in rows if "value" in row["metadata"]}


@contextmanager
def visit(kind: str = "ram", **knobs: Any) -> Iterator[Visit]:
    """Open a visit that begins now."""
    with stage(kind, embedder=None, ontology=VISIT, extract="closed", **knobs) as here:
        yield Visit(here)
