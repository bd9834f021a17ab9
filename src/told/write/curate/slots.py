"""What a claim has to be held against: the predicates of its slot, their opposites, and what it denies in passing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from told.core.alike import Likeness, compare, words
from told.core.entry import Claim
from told.core.fact import Fact
from told.core.lazy import regex
from told.core.predicates import FAVOURITE, TABLE, predicate

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
_SPELT: Final = (("colour", "color"), ("flavour", "flavor"), ("theatre", "theater"), ("programme", "program"))

LOOSE: Final = frozenset({"name", "nickname", "owns", "drives", "has"})
"""Predicates whose value says more whenever it has more words, as every `has_…` does: a dog, Rex the black dog."""

MEATLESS: Final = frozenset({"vegetarian", "vegan", "meatless", "plant-based"})
_DENIED: Final[Mapping[str, frozenset[str]]] = {"vegetarian": MEATLESS, "meatless": MEATLESS, "plant-based": MEATLESS}
_EATS_MEAT: Final = regex(
    r"\b(?:eat|eats|eating|ate|back to)\b[^.;]*\b(?:meat|chicken|beef|steaks?|pork|bacon|lamb|burgers?)\b",
    re.IGNORECASE,
)
_REFUSES: Final = regex(
    r"\b(?:no longer|not|never|stopped|stops|quit|gave up|avoids?|without)\b|n't\b", re.IGNORECASE
)
_CEASED: Final = regex(
    r"\b(?:no longer|any ?more|used to|stopped|stops|quit|quits|gave up|gives up|given up|formerly|until|no more)\b",
    re.IGNORECASE,
)


def slot_of(name: str) -> str:
    """The slot of a predicate."""
    return predicate(name).slot


def siblings(name: str) -> tuple[str, ...]:
    """Every predicate that speaks of the same as a predicate: those of its slot, synonyms, and other spellings."""
    slot = slot_of(name)
    rows = (row.name for row in TABLE.values() if row.slot == slot)
    return tuple(dict.fromkeys((name, *rows, *SYNONYMS.get(name, ()), *_spelt_otherwise(name))))


def _spelt_otherwise(name: str) -> tuple[str, ...]:
    """A favourite as it is spelt on the other side of the Atlantic."""
    if not name.startswith(FAVOURITE):
        return ()
    pairs = (pair for spelling in _SPELT for pair in (spelling, spelling[::-1]))
    swapped = (re.sub(rf"{ours}(?![a-z])", theirs, name) for ours, theirs in pairs)
    return tuple(other for other in swapped if other != name)


def loose(name: str) -> bool:
    """Whether a value of this predicate says more whenever it has more words."""
    return name in LOOSE or name.startswith("has_")


def described(row: Claim | Fact) -> str:
    """The value with what it is to somebody, where that is known beside its name: the dog named Rex."""
    value, relation = row.object or "", row.meta.get("relation")
    if not isinstance(relation, str) or relation.lower() in value.lower().split():
        return value
    return f"{relation} named {value}"


def tells(claim: Claim, other: Claim) -> bool:
    """Whether a claim says what another says, in as many words or more, or in fewer."""
    if compare(claim.text, other.text) is not Likeness.OTHER:
        return True
    if claim.object is None or other.object is None or claim.polarity != other.polarity:
        return False
    alike = claim.subject == other.subject and slot_of(claim.predicate or "") == slot_of(other.predicate or "")
    return alike and compare(described(claim), described(other)) is not Likeness.OTHER


def about(claim: Claim) -> tuple[tuple[str, str], ...]:
    """The pairs of subject and predicate to look up before anything is decided about a claim."""
    if claim.subject is None or claim.predicate is None:
        return ()
    names = (*siblings(claim.predicate), *OPPOSITES.get(claim.predicate, ()))
    denied = ("diet",) if eats_meat(claim) else ()
    return tuple((claim.subject, name) for name in dict.fromkeys((*names, *denied)))


def ceased(text: str) -> bool:
    """Whether a text says that something came to an end."""
    return _CEASED.search(text) is not None


def eats_meat(claim: Claim) -> bool:
    """Whether a claim tells of eating meat, which nobody does who lives without it."""
    return claim.polarity == "asserted" and _of_meat(claim.text)


def says_outright(claim: Claim) -> bool:
    """Whether a denial that is marked as a guess is none: who eats meat again has said all there is to say."""
    return claim.predicate == "diet" and claim.polarity == "negated" and _of_meat(claim.text)


def _of_meat(text: str) -> bool:
    return _EATS_MEAT.search(text) is not None and _REFUSES.search(text) is None


def meatless(fact: Fact) -> bool:
    """Whether a memory says that somebody eats no meat."""
    return fact.predicate == "diet" and fact.polarity == "asserted" and bool(MEATLESS & set(words(fact.object or "")))


def denies(claim: Claim, fact: Fact) -> bool:
    """Whether who is no longer this cannot be that either: who is no vegetarian is no vegan."""
    value = " ".join(words(claim.object or ""))
    wider = _DENIED.get(value, frozenset())
    return claim.predicate == "diet" and bool(wider & set(words(fact.object or "")))
