"""What a claim has to be held against: the predicates of its slot, their opposites, and what it denies in passing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from told.core.alike import WordingRelation, compare_wordings, stem_words
from told.core.entry import Claim
from told.core.fact import Fact
from told.core.lazy import lazy_regex
from told.core.predicates import FAVOURITE_PREFIX, PREDICATES, lookup_predicate

OPPOSITES: Final[Mapping[str, tuple[str, ...]]] = {
    "likes": ("dislikes", "avoids"),
    "prefers": ("dislikes", "avoids"),
    "interested_in": ("dislikes",),
    "dislikes": ("likes", "prefers", "interested_in"),
    "avoids": ("likes", "prefers"),
}
"""Predicates that cannot both be true of one thing: the later one takes the place of the earlier."""

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {"has": ("owns",), "owns": ("has",)}
"""Predicates that say the same of the same thing."""
_SPELLING_PAIRS: Final = (
    ("colour", "color"),
    ("flavour", "flavor"),
    ("theatre", "theater"),
    ("programme", "program"),
)

LOOSE_PREDICATES: Final = frozenset({"name", "nickname", "owns", "drives", "has"})
"""Predicates whose value says more whenever it has more words, as every `has_…` does: a dog, Rex the black dog."""

MEATLESS_DIETS: Final = frozenset({"vegetarian", "vegan", "meatless", "plant-based"})
_IMPLIED_DENIALS: Final[Mapping[str, frozenset[str]]] = {
    "vegetarian": MEATLESS_DIETS,
    "meatless": MEATLESS_DIETS,
    "plant-based": MEATLESS_DIETS,
}
_MEAT_PHRASE: Final = lazy_regex(
    r"\b(?:eat|eats|eating|ate|back to)\b[^.;]*\b(?:meat|chicken|beef|steaks?|pork|bacon|lamb|burgers?)\b",
    re.IGNORECASE,
)
_REFUSAL: Final = lazy_regex(
    r"\b(?:no longer|not|never|stopped|stops|quit|gave up|avoids?|without)\b|n't\b", re.IGNORECASE
)
_END_MARKER: Final = lazy_regex(
    r"\b(?:no longer|any ?more|used to|stopped|stops|quit|quits|gave up|gives up|given up|formerly|until|no more)\b",
    re.IGNORECASE,
)


def get_slot(name: str) -> str:
    """The slot of a predicate."""
    return lookup_predicate(name).slot


def get_sibling_predicates(name: str) -> tuple[str, ...]:
    """Every predicate that speaks of the same as a predicate: those of its slot, synonyms, and other spellings."""
    slot = get_slot(name)
    rows = (row.name for row in PREDICATES.values() if row.slot == slot)
    return tuple(
        dict.fromkeys((name, *rows, *SYNONYMS.get(name, ()), *_get_spelling_variants(name)))
    )


def _get_spelling_variants(name: str) -> tuple[str, ...]:
    """A favourite as it is spelt on the other side of the Atlantic."""
    if not name.startswith(FAVOURITE_PREFIX):
        return ()
    pairs = (pair for spellings in _SPELLING_PAIRS for pair in (spellings, spellings[::-1]))
    variants = (re.sub(rf"{spelling}(?![a-z])", variant, name) for spelling, variant in pairs)
    return tuple(other for other in variants if other != name)


def is_loose(name: str) -> bool:
    """Whether a value of this predicate says more whenever it has more words."""
    return name in LOOSE_PREDICATES or name.startswith("has_")


def describe_value(statement: Claim | Fact) -> str:
    """The value with what it is to somebody, where that is known beside its name: the dog named Rex."""
    value, relation = statement.object or "", statement.meta.get("relation")
    if not isinstance(relation, str) or relation.lower() in value.lower().split():
        return value
    return f"{relation} named {value}"


def is_same_statement(claim: Claim, other: Claim) -> bool:
    """Whether a claim says what another says, in as many words or more, or in fewer."""
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
    """The pairs of subject and predicate to look up before anything is decided about a claim."""
    if claim.subject is None or claim.predicate is None:
        return ()
    names = (*get_sibling_predicates(claim.predicate), *OPPOSITES.get(claim.predicate, ()))
    diet_predicates = ("diet",) if is_eating_meat(claim) else ()
    return tuple((claim.subject, name) for name in dict.fromkeys((*names, *diet_predicates)))


def has_end_marker(text: str) -> bool:
    """Whether a text says that something came to an end."""
    return _END_MARKER.search(text) is not None


def is_eating_meat(claim: Claim) -> bool:
    """Whether a claim tells of eating meat, which nobody does who lives without it."""
    return claim.polarity == "asserted" and _has_meat_phrase(claim.text)


def is_explicit_denial(claim: Claim) -> bool:
    """Whether a denial that is marked as a guess is none: who eats meat again has said all there is to say."""
    return (
        claim.predicate == "diet" and claim.polarity == "negated" and _has_meat_phrase(claim.text)
    )


def _has_meat_phrase(text: str) -> bool:
    return _MEAT_PHRASE.search(text) is not None and _REFUSAL.search(text) is None


def is_meatless(fact: Fact) -> bool:
    """Whether a memory says that somebody eats no meat."""
    return (
        fact.predicate == "diet"
        and fact.polarity == "asserted"
        and bool(MEATLESS_DIETS & set(stem_words(fact.object or "")))
    )


def is_implied_denial(claim: Claim, fact: Fact) -> bool:
    """Whether who is no longer this cannot be that either: who is no vegetarian is no vegan."""
    value = " ".join(stem_words(claim.object or ""))
    implied = _IMPLIED_DENIALS.get(value, frozenset())
    return claim.predicate == "diet" and bool(implied & set(stem_words(fact.object or "")))
