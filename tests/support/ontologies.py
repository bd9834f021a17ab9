"""Ontologies for tests, and stores over them: in this process and on two backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from told import Memory
from told.ontology import MemoryStore
from told.testing import ManualClock, seeded_mint

KEEPERS = ("inside", "ram", "sqlite")

STYLE = "ArtInterest.Style"
SEED: dict[str, Any] = {
    "concepts": {
        STYLE: {
            "label": "Art style or medium",
            "examples": ["I love X", "I'm into X"],
            "persistence_class": "long_term",
            "salience_weight": 0.7,
            "cardinality": "unlimited",
            "eviction": "salience",
        }
    }
}

SPOKEN = (
    ("photography", "I really love photography, especially mid-century stuff."),
    ("Picasso", "Picasso is incredible."),
    ("photos", "Honestly, I just adore old photos."),
    ("Pablo Picasso", "Anything by Pablo Picasso, really."),
    ("photographs", "These vintage photographs are amazing."),
)
"""Values extracted in five turns, each with its sentence."""


def concept(
    tier: str,
    weight: float = 1.0,
    cardinality: Any = "unlimited",
    eviction: str = "salience",
    label: str = "",
    examples: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """Build the rules of a concept."""
    return {
        "persistence_class": tier,
        "salience_weight": weight,
        "cardinality": cardinality,
        "eviction": eviction,
        "label": label or tier,
        "examples": list(examples),
        **more,
    }


MUSEUM: dict[str, Any] = {
    "version": "0.2",
    "description": "A museum",
    "concepts": {
        "SpecialNeed.Hearing": concept(
            "permanent", 1.0, 1, "recency", "Hearing impairment", ("I'm deaf",)
        ),
        "SpecialNeed.Mobility": concept(
            "permanent", 1.0, 1, "recency", "Mobility need", ("I use a wheelchair",)
        ),
        STYLE: concept(
            "long_term", 0.7, 8, "salience", "Art style or medium", ("I love X", "I'm into X")
        ),
        "Position.CurrentArea": concept(
            "session", 0.6, 1, "recency", "Where the visitor is", ("I'm in the X",)
        ),
        "VisitPlan.TimeBudget": concept(
            "session", 0.8, 1, "recency", "Time available", ("I only have X",)
        ),
        "ImmediateNeed.Refreshment": concept(
            "ephemeral", 0.9, 3, "recency", "Wants", ("I could use X",)
        ),
    },
}


def tiers(weight: float = 1.0) -> dict[str, Any]:
    """Build one concept per tier, named after it."""
    return {
        "concepts": {
            tier: concept(tier, weight)
            for tier in ("permanent", "long_term", "session", "ephemeral")
        }
    }


@contextlib.contextmanager
def opened(keeper: str, folder: Any, clock: ManualClock | None = None) -> Iterator[dict[str, Any]]:
    """Return the arguments that make a store keep its facts there."""
    clock = clock or ManualClock()
    if keeper == "inside":
        yield {"now": clock}
        return
    url = "ram://" if keeper == "ram" else f"sqlite:///{folder}/facts.db"
    with Memory(url, embedder="none", mint=seeded_mint("ontology", clock)) as memory:
        yield {"memory": memory, "user_id": "ann"}


def five_turns(store: MemoryStore) -> str:
    """Play the five turns and return the contents of the store."""
    for value, evidence in SPOKEN:
        store.upsert(STYLE, value, "asserted", evidence)
        store.tick()
    return store.dump()


def values(store: MemoryStore, prefix: str = "") -> list[str]:
    """Return the values in a store, strongest first."""
    held = sorted(store.facts.values(), key=lambda fact: -fact.salience)
    return [fact.value for fact in held if fact.concept.startswith(prefix)]


FULL: dict[str, Any] = {
    "concepts": {
        "Likes": concept("permanent", 0.5, 5),
        "Where": concept("session", 0.5, 1, "recency"),
        "Drinks": concept("permanent", 0.5),
    }
}


def chatter(store: MemoryStore, name: str, rounds: int) -> None:
    """Upsert in a loop, concurrently with other threads."""
    for number in range(rounds):
        store.upsert("Likes", f"{name} {number % 4}", "asserted", f"{name} {number}")
        store.upsert("Where", f"{name} {number}", "asserted", f"at {name} {number}")
        store.upsert("Drinks", "tea", "asserted", f"tea, says {name}")
        store.tick()
