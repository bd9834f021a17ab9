"""Whom and what was spoken of, and how they bear on each other: entities and relations out of what was understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from told.write.local.said import ASSERTED, RuleClaim
from told.write.local.tables import get_pattern, load_words
from told.write.local.value import is_name
from told.write.shape import Entity, Relation

_PREDICATES_BY_TYPE: Final = {
    "place": "lives_in comes_from born_in visited",
    "organization": "works_at studies_at graduated_from member_of",
    "person": """has_partner has_child has_sibling has_parent has_relative has_friend has_colleague married_to
        manager""",
    "product": "uses project_uses owns drives bought",
    "event": "attended plans",
    "thing": "has_pet",
    "concept": """likes dislikes prefers interested_in skilled_in learning speaks plays allergic_to has_condition diet
        works_in studies""",
}
TYPE_BY_PREDICATE: Final[Mapping[str, str]] = {
    predicate: sort for sort, names in _PREDICATES_BY_TYPE.items() for predicate in names.split()
}
_NAMED_TYPES: Final = frozenset(("person", "event", "thing"))
"""What is an entity only if it has a name."""
_MAX_WORDS: Final = 4
_COLLEAGUE_CONFIDENCE: Final = 0.6
"""How sure it is that somebody met at a place works there."""


def build_graph(
    claims: Iterable[tuple[int, RuleClaim]], names: Mapping[str, str]
) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """The entities and relations of what was said in each turn; a speaker who gave a name goes by it."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    for turn, claim in claims:
        source = names.get(claim.subject, claim.subject)
        if claim.predicate == "name":
            entities.append(Entity(claim.object, "person"))
        object_type = _get_object_type(claim)
        if object_type is not None and claim.polarity == ASSERTED:
            entities += [
                Entity(source, "person"),
                Entity(claim.object, object_type, claim.meta.get("relation", "")),
            ]
            relations.append(
                Relation(source, claim.predicate, claim.object, claim.confidence, turn)
            )
    return dedupe_entities(entities), _dedupe_relations(relations)


def dedupe_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Each entity once, as it was first spoken of."""
    unique: dict[str, Entity] = {}
    for entity in entities:
        unique.setdefault(entity.name.lower(), entity)
    return tuple(unique.values())


def _dedupe_relations(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    unique: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        unique.setdefault((relation.src.lower(), relation.rel, relation.dst.lower()), relation)
    return tuple(unique.values())


def _get_object_type(claim: RuleClaim) -> str | None:
    object_type = TYPE_BY_PREDICATE.get(claim.predicate)
    if len(claim.object.split()) > _MAX_WORDS or (
        object_type in _NAMED_TYPES and not claim.object[:1].isupper()
    ):
        return None
    return object_type


def find_colleagues(text: str, turn: int) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """People named together with where they work: "Alice at Google"."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    first_names = load_words("FIRST_NAMES")
    for match in get_pattern("graph.colleague").finditer(text):
        person, employer = match["who"], match["where"].rstrip(".")
        if (
            is_name(person, require_known=True)
            and person.split()[0].lower() in first_names
            and employer.lower() not in first_names
        ):
            entities += [Entity(person, "person"), Entity(employer, "organization")]
            relations.append(Relation(person, "works_at", employer, _COLLEAGUE_CONFIDENCE, turn))
    return tuple(entities), tuple(relations)
