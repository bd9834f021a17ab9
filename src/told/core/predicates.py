"""What can be said of somebody or something, and what a second value does to the first.

A predicate belongs to a slot: predicates of one slot speak of one thing ("works in tech", "works at Google"), so that a
later one refines or replaces an earlier one instead of standing beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from told.core.kind import Semantics

FUNCTIONAL, MULTI, IMMUTABLE = Semantics.FUNCTIONAL, Semantics.MULTI, Semantics.IMMUTABLE
FAVOURITE_PREFIX = "favourite_"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate, the slot it belongs to, the kind of memory it makes, and what a second value does."""

    name: str
    slot: str
    kind: str
    semantics: Semantics


def _build_predicates(kind: str, semantics: Semantics, *names: str) -> list[Predicate]:
    """Predicates of one kind; `slot:name` puts several into one slot."""
    pairs = (name.rpartition(":") for name in names)
    return [Predicate(name, slot or name, kind, semantics) for slot, _, name in pairs]


PREDICATES: Mapping[str, Predicate] = {
    row.name: row
    for row in (
        *_build_predicates(
            "profile", FUNCTIONAL, "name", "nickname", "pronouns", "age", "lives_in", "timezone", "email", "phone",
            "work:works_in", "work:works_at", "work:works_as", "study:studies_at", "study:studies", "married_to",
            "relationship_status", "diet", "height", "weight", "budget", "team", "manager",
        ),
        *_build_predicates("profile", IMMUTABLE, "born_on", "birthday", "born_in", "comes_from", "native_language"),
        *_build_predicates(
            "profile", MULTI, "speaks", "allergic_to", "has_condition", "takes", "has_partner", "has_child",
            "has_sibling", "has_parent", "has_relative", "has_friend", "has_colleague", "has_pet", "owns", "drives",
            "plays", "knows", "skilled_in", "graduated_from", "believes", "is", "has", "member_of",
        ),
        *_build_predicates("preference", MULTI, "likes", "dislikes", "prefers", "wants", "avoids", "interested_in", "habit"),
        *_build_predicates("preference", FUNCTIONAL, "reply_style"),
        *_build_predicates("event", MULTI, "plans", "did", "attended", "visited", "bought", "started", "finished", "happened"),
        *_build_predicates("pattern", FUNCTIONAL, "deadline"),
        *_build_predicates("pattern", MULTI, "goal", "learning", "works_on", "uses", "project_uses", "project_needs"),
    )
}  # fmt: skip


SAFETY_PREDICATES = frozenset({"allergic_to", "has_condition", "takes"})
"""Predicates of which there may be many and none may be forgotten: what can hurt somebody."""


def lookup_predicate(name: str) -> Predicate:
    """What is known of a predicate; an unknown one holds many values, and each favourite is one of its own."""
    known = PREDICATES.get(name)
    if known is not None:
        return known
    if name.startswith(FAVOURITE_PREFIX):
        return Predicate(name, name, "preference", FUNCTIONAL)
    return Predicate(name, name, "memory", MULTI)
