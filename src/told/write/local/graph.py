"""Whom and what was spoken of, and how they bear on each other: entities and relations out of what was understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from told.write.local.said import ASSERTED, Said
from told.write.local.tables import pattern, words
from told.write.local.value import is_name
from told.write.shape import Entity, Relation

_TYPES: Final = {
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
TYPES: Final[Mapping[str, str]] = {predicate: sort for sort, names in _TYPES.items() for predicate in names.split()}
_NAMED: Final = frozenset(("person", "event", "thing"))
"""What is an entity only if it has a name."""
_LONGEST: Final = 4
_MET: Final = 0.6
"""How sure it is that somebody met at a place works there."""


def drawn(
    found: Iterable[tuple[int, Said]], names: Mapping[str, str]
) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """The entities and relations of what was said in each turn; a speaker who gave a name goes by it."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    for turn, said in found:
        source = names.get(said.subject, said.subject)
        if said.predicate == "name":
            entities.append(Entity(said.object, "person"))
        sort = _type(said)
        if sort is not None and said.polarity == ASSERTED:
            entities += [Entity(source, "person"), Entity(said.object, sort, said.meta.get("relation", ""))]
            relations.append(Relation(source, said.predicate, said.object, said.confidence, turn))
    return once(entities), _once(relations)


def once(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Each entity once, as it was first spoken of."""
    seen: dict[str, Entity] = {}
    for entity in entities:
        seen.setdefault(entity.name.lower(), entity)
    return tuple(seen.values())


def _once(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    seen: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        seen.setdefault((relation.src.lower(), relation.rel, relation.dst.lower()), relation)
    return tuple(seen.values())


def _type(said: Said) -> str | None:
    sort = TYPES.get(said.predicate)
    if len(said.object.split()) > _LONGEST or (sort in _NAMED and not said.object[:1].isupper()):
        return None
    return sort


def met(text: str, turn: int) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """People named together with where they work: "Alice at Google"."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    known = words("FIRST_NAMES")
    for found in pattern("graph.colleague").finditer(text):
        who, where = found["who"], found["where"].rstrip(".")
        if is_name(who, known=True) and who.split()[0].lower() in known and where.lower() not in known:
            entities += [Entity(who, "person"), Entity(where, "organization")]
            relations.append(Relation(who, "works_at", where, _MET, turn))
    return tuple(entities), tuple(relations)
