"""Whom and what was spoken of, and how they bear on each other: entities and relations out of what was understood."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from told.write.local.said import Said
from told.write.local.speaker import NAME
from told.write.local.value import is_name
from told.write.shape import Entity, Relation

_TYPES: Final = {
    "place": "lives_in comes_from born_in visited",
    "organization": "works_at studies_at graduated_from member_of",
    "person": "has_partner has_child has_sibling has_parent has_relative has_friend has_colleague married_to manager",
    "product": "uses project_uses owns drives bought",
    "event": "attended plans",
    "concept": "likes dislikes prefers interested_in skilled_in learning speaks plays allergic_to has_condition diet works_in studies",
}
TYPES: Final = {predicate: sort for sort, names in _TYPES.items() for predicate in names.split()}
_LONGEST = 4


def drawn(found: Iterable[tuple[int, Said]], speakers: dict[str, str]) -> tuple[list[Entity], list[Relation]]:
    """The entities and relations of what was said in each turn; a speaker who gave a name goes by it."""
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    for turn, said in found:
        source = speakers.get(said.subject, said.subject)
        if said.predicate == "name":
            entities.setdefault(said.object.lower(), Entity(said.object, "person"))
        sort = _type(said)
        if sort is None or said.polarity != "asserted":
            continue
        entities.setdefault(source.lower(), Entity(source, "person"))
        entities.setdefault(said.object.lower(), Entity(said.object, sort, said.meta.get("relation", "")))
        key = (source.lower(), said.predicate, said.object.lower())
        relations.setdefault(key, Relation(source, said.predicate, said.object, said.confidence, turn))
    return list(entities.values()), list(relations.values())


def _type(said: Said) -> str | None:
    if said.predicate == "has_pet":
        return "thing" if said.object[:1].isupper() else None
    sort = TYPES.get(said.predicate)
    if sort is None or len(said.object.split()) > _LONGEST or (sort == "person" and not said.object[:1].isupper()):
        return None
    return None if sort == "event" and not said.object[:1].isupper() else sort


@cache
def _colleague() -> re.Pattern[str]:
    return re.compile(rf"\b(?P<who>{NAME})\s+(?:from|at|over\s+at|works\s+(?:at|for)|who\s+works\s+(?:at|for))\s+(?P<where>(?-i:[A-Z])[\w&.-]*(?:\s(?-i:[A-Z])[\w&.-]*)?)")


def met(text: str, turn: int) -> tuple[list[Entity], list[Relation]]:
    """People named together with where they work: "Alice at Google"."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    for found in _colleague().finditer(text):
        who, where = found["who"].split()[-1] if found["who"].split()[0] in ("I", "Met", "With", "And") else found["who"], found["where"].rstrip(".")
        if is_name(who, known=True) and who.split()[0].lower() in _known() and where.lower() not in _known():
            entities += [Entity(who, "person"), Entity(where, "organization")]
            relations.append(Relation(who, "works_at", where, 0.6, turn))
    return entities, relations


def _known() -> frozenset[str]:
    from told.write.local.words import first_names

    return first_names()
