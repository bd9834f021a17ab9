"""Slots that speak of one thing from several sides: where somebody works, as what, and in which field.

What is held of such a slot is one sentence; a new side completes it, and another employer or school begins it anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from told.core.alike import WordingRelation, compare_wordings
from told.core.entry import Claim
from told.core.fact import Fact
from told.core.lazy import lazy_regex


@dataclass(frozen=True, slots=True)
class SlotTemplate:
    """How a slot's sides make a sentence: its verb, the word before each side, the side that decides, the vaguest."""

    verb: str
    facets: Mapping[str, str]
    key_facet: str
    vague_facet: str | None = None


SLOT_TEMPLATES: Final[Mapping[str, SlotTemplate]] = {
    "work": SlotTemplate(
        "works", {"works_at": "at", "works_as": "as", "works_in": "in"}, "works_at", "works_in"
    ),
    "study": SlotTemplate("studies", {"studies": "", "studies_at": "at"}, "studies_at"),
}
_WORK_PATTERNS: Final = (
    lazy_regex(
        r"works?(?: (?:at|for) (?P<works_at>.+?))?(?: as (?P<works_as>.+?))?(?: in (?P<works_in>.+?))?"
    ),
    lazy_regex(r"works?(?: as (?P<works_as>.+?))?(?: (?:at|for) (?P<works_at>.+?))?"),
)
_STUDY_PATTERNS: Final = (lazy_regex(r"stud(?:ies|y)(?! at )(?: (?P<studies>.+?))?(?: at (?P<studies_at>.+?))?"),
                 lazy_regex(r"stud(?:ies|y) at (?P<studies_at>.+?)"))  # fmt: skip
_SLOT_PATTERNS: Final = {"work": _WORK_PATTERNS, "study": _STUDY_PATTERNS}
_ARTICLE: Final = lazy_regex(r"(?:an?|the)\s", re.IGNORECASE)


def parse_facets(slot: str, statement: Claim | Fact) -> dict[str, str]:
    """What a claim or a memory says of each side of its slot."""
    template = SLOT_TEMPLATES[slot]
    text = statement.text.removeprefix(f"{statement.subject} ").rstrip(".")
    matches = (pattern.fullmatch(text) for pattern in _SLOT_PATTERNS[slot])
    groups = next(
        (match.groupdict() for match in matches if match and any(match.groupdict().values())), {}
    )
    facets = {name: value for name, value in groups.items() if value}
    name, value = statement.predicate or "", statement.object
    if (
        name in template.facets
        and value
        and (name not in facets or compare_wordings(facets[name], value) is WordingRelation.OTHER)
    ):
        facets[name] = value
    return facets


def merge_facets(slot: str, claim: Claim, fact: Fact) -> tuple[WordingRelation, Claim]:
    """What a claim is to what is held of its slot, and the claim that says both where they complete each other."""
    template, new, old = SLOT_TEMPLATES[slot], parse_facets(slot, claim), parse_facets(slot, fact)
    comparison = {name: compare_wordings(new[name], old[name]) for name in new if name in old}
    if comparison.get(template.key_facet) is WordingRelation.OTHER:
        return WordingRelation.OTHER, claim
    if (
        template.vague_facet is not None
        and set(new) == {template.vague_facet}
        and set(old) - {template.vague_facet}
    ):
        return WordingRelation.LESS, claim
    if new and all(
        comparison.get(name) in (WordingRelation.SAME, WordingRelation.LESS) for name in new
    ):
        return (WordingRelation.SAME if new.keys() == old.keys() else WordingRelation.LESS), claim
    kept = {
        name: value
        for name, value in old.items()
        if name not in new or comparison[name] is WordingRelation.LESS
    }
    merged = {**new, **kept}
    if template.vague_facet in kept and len(merged) > 1:
        del merged[template.vague_facet]
    changed = any(likeness is WordingRelation.OTHER for likeness in comparison.values())
    outcome = WordingRelation.OTHER if changed else WordingRelation.MORE
    return outcome, claim if merged == new else _render_claim(template, claim, merged)


def remove_facets(slot: str, claim: Claim, fact: Fact) -> Claim | None:
    """What is left of a memory once the sides a claim denies are taken off; nothing, if it denies what decides."""
    template, denied, old = (
        SLOT_TEMPLATES[slot],
        parse_facets(slot, claim),
        parse_facets(slot, fact),
    )
    kept = {
        name
        for name in old
        if name not in denied or compare_wordings(denied[name], old[name]) is WordingRelation.OTHER
    }
    remaining = {name: value for name, value in old.items() if name in kept}
    if len(remaining) == len(old) or template.key_facet not in remaining:
        return None
    return _render_claim(template, claim, remaining)


def _render_claim(template: SlotTemplate, claim: Claim, facets: Mapping[str, str]) -> Claim:
    parts = [template.verb]
    for name, word in template.facets.items():
        if name in facets:
            parts += [word, _add_article(facets[name]) if word == "as" else facets[name]]
    text = f"{claim.subject} {' '.join(part for part in parts if part)}"
    name = next(name for name in (template.key_facet, *template.facets) if name in facets)
    return replace(claim, text=text, predicate=name, object=facets[name], polarity="asserted")


def _add_article(role: str) -> str:
    """A role as it follows "as"."""
    if _ARTICLE.match(role) or role[:1].isupper():
        return role
    return f"{'an' if role[:1].lower() in 'aeiou' else 'a'} {role}"
