"""Predicate slots, opposites, synonyms and implied denials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from told.model.entry import Claim
from told.model.fact import Fact
from told.model.kind import FAVOURITE_PREFIX, PREDICATES, lookup_predicate
from told.runtime import lazy_regex
from told.text.similarity import WordingRelation, compare_wordings, stem_words


@dataclass(frozen=True, slots=True)
class SlotTemplate:
    """The sentence template of a slot.

    `facets` maps each predicate to the word before its value. `key_facet` identifies the statement,
    and `vague_facet` is the least specific one.
    """

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
        r"works?(?: (?:at|for) (?P<works_at>.+?))?(?: as (?P<works_as>.+?))?"
        r"(?: in (?P<works_in>.+?))?"
    ),
    lazy_regex(r"works?(?: as (?P<works_as>.+?))?(?: (?:at|for) (?P<works_at>.+?))?"),
)
_STUDY_PATTERNS: Final = (
    lazy_regex(r"stud(?:ies|y)(?! at )(?: (?P<studies>.+?))?(?: at (?P<studies_at>.+?))?"),
    lazy_regex(r"stud(?:ies|y) at (?P<studies_at>.+?)"),
)
_SLOT_PATTERNS: Final = {"work": _WORK_PATTERNS, "study": _STUDY_PATTERNS}
_ARTICLE: Final = lazy_regex(r"(?:an?|the)\s", re.IGNORECASE)


def parse_facets(slot: str, statement: Claim | Fact) -> dict[str, str]:
    """Return the value of each facet stated by a claim or fact."""
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
    """Compare a claim with a fact of the same slot and merge them where they are complementary."""
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
    """Return the claim left after removing the denied facets, or None if nothing may be kept."""
    template = SLOT_TEMPLATES[slot]
    denied = parse_facets(slot, claim)
    old = parse_facets(slot, fact)
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
    """Add an indefinite article to a role where needed."""
    if _ARTICLE.match(role) or role[:1].isupper():
        return role
    return f"{'an' if role[:1].lower() in 'aeiou' else 'a'} {role}"


OPPOSITES: Final[Mapping[str, tuple[str, ...]]] = {
    "likes": ("dislikes", "avoids"),
    "prefers": ("dislikes", "avoids"),
    "interested_in": ("dislikes",),
    "dislikes": ("likes", "prefers", "interested_in"),
    "avoids": ("likes", "prefers"),
}
"""Predicates that cannot both hold for one value; the later statement wins."""

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {"has": ("owns",), "owns": ("has",)}
"""Predicates with the same meaning."""
_SPELLING_PAIRS: Final = (
    ("colour", "color"),
    ("flavour", "flavor"),
    ("theatre", "theater"),
    ("programme", "program"),
)

LOOSE_PREDICATES: Final = frozenset({"name", "nickname", "owns", "drives", "has"})
"""Predicates whose values get more specific with every added word, like all `has_…`."""

MEATLESS_DIETS: Final = frozenset({"vegetarian", "vegan", "meatless", "plant-based"})
_IMPLIED_DENIALS: Final[Mapping[str, frozenset[str]]] = {
    "vegetarian": MEATLESS_DIETS,
    "meatless": MEATLESS_DIETS,
    "plant-based": MEATLESS_DIETS,
}
_MEAT_PHRASE: Final = lazy_regex(
    r"\b(?:eat|eats|eating|ate|back to)\b[^.;]*"
    r"\b(?:meat|chicken|beef|steaks?|pork|bacon|lamb|burgers?)\b",
    re.IGNORECASE,
)
_REFUSAL: Final = lazy_regex(
    r"\b(?:no longer|not|never|stopped|stops|quit|gave up|avoids?|without)\b|n't\b", re.IGNORECASE
)
_END_MARKER: Final = lazy_regex(
    r"\b(?:no longer|any ?more|used to|stopped|stops|quit|quits"
    r"|gave up|gives up|given up|formerly|until|no more)\b",
    re.IGNORECASE,
)


def get_slot(name: str) -> str:
    """Return the slot of a predicate."""
    return lookup_predicate(name).slot


def get_sibling_predicates(name: str) -> tuple[str, ...]:
    """Return all predicates of the same slot, with synonyms and spelling variants."""
    slot = get_slot(name)
    rows = (row.name for row in PREDICATES.values() if row.slot == slot)
    return tuple(
        dict.fromkeys((name, *rows, *SYNONYMS.get(name, ()), *_get_spelling_variants(name)))
    )


def _get_spelling_variants(name: str) -> tuple[str, ...]:
    """Return British and American spellings of a favourite predicate."""
    if not name.startswith(FAVOURITE_PREFIX):
        return ()
    pairs = (pair for spellings in _SPELLING_PAIRS for pair in (spellings, spellings[::-1]))
    variants = (re.sub(rf"{spelling}(?![a-z])", variant, name) for spelling, variant in pairs)
    return tuple(other for other in variants if other != name)


def is_loose(name: str) -> bool:
    """Return True if extra words make a value of this predicate more specific."""
    return name in LOOSE_PREDICATES or name.startswith("has_")


def describe_value(statement: Claim | Fact) -> str:
    """Return the value with its relation, if known, e.g. "dog named Rex"."""
    value, relation = statement.object or "", statement.meta.get("relation")
    if not isinstance(relation, str) or relation.lower() in value.lower().split():
        return value
    return f"{relation} named {value}"


def is_same_statement(claim: Claim, other: Claim) -> bool:
    """Return True if two claims say the same, even if one says more."""
    if compare_wordings(claim.text, other.text) is not WordingRelation.OTHER:
        return True
    if claim.object is None or other.object is None or claim.polarity != other.polarity:
        return False
    alike = claim.subject == other.subject and get_slot(claim.predicate or "") == get_slot(
        other.predicate or ""
    )
    return (
        alike
        and compare_wordings(describe_value(claim), describe_value(other))
        is not WordingRelation.OTHER
    )


def build_lookup_pairs(claim: Claim) -> tuple[tuple[str, str], ...]:
    """Return the (subject, predicate) pairs to load before deciding about a claim."""
    if claim.subject is None or claim.predicate is None:
        return ()
    names = (*get_sibling_predicates(claim.predicate), *OPPOSITES.get(claim.predicate, ()))
    diet_predicates = ("diet",) if is_eating_meat(claim) else ()
    return tuple((claim.subject, name) for name in dict.fromkeys((*names, *diet_predicates)))


def has_end_marker(text: str) -> bool:
    """Return True if a text says that something has ended."""
    return _END_MARKER.search(text) is not None


def is_eating_meat(claim: Claim) -> bool:
    """Return True if a claim says that somebody eats meat."""
    return claim.polarity == "asserted" and _has_meat_phrase(claim.text)


def is_explicit_denial(claim: Claim) -> bool:
    """Return True if a denied diet is stated by eating meat, so it is no inference."""
    return (
        claim.predicate == "diet" and claim.polarity == "negated" and _has_meat_phrase(claim.text)
    )


def _has_meat_phrase(text: str) -> bool:
    return _MEAT_PHRASE.search(text) is not None and _REFUSAL.search(text) is None


def is_meatless(fact: Fact) -> bool:
    """Return True if a fact says that somebody eats no meat."""
    return (
        fact.predicate == "diet"
        and fact.polarity == "asserted"
        and bool(MEATLESS_DIETS & set(stem_words(fact.object or "")))
    )


def is_implied_denial(claim: Claim, fact: Fact) -> bool:
    """Return True if denying one diet denies another: a non-vegetarian is no vegan."""
    value = " ".join(stem_words(claim.object or ""))
    implied = _IMPLIED_DENIALS.get(value, frozenset())
    return claim.predicate == "diet" and bool(implied & set(stem_words(fact.object or "")))
