"""Slots that speak of one thing from several sides: where somebody works, as what, and in which field.

What is held of such a slot is one sentence; a new side completes it, and another employer or school begins it anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from told.core.alike import Likeness, compare
from told.core.entry import Claim
from told.core.fact import Fact
from told.core.lazy import regex


@dataclass(frozen=True, slots=True)
class Form:
    """How a slot's sides make a sentence: its verb, the word before each side, the side that decides, the vaguest."""

    verb: str
    sides: Mapping[str, str]
    first: str
    vague: str | None = None


FORMS: Final[Mapping[str, Form]] = {
    "work": Form("works", {"works_at": "at", "works_as": "as", "works_in": "in"}, "works_at", "works_in"),
    "study": Form("studies", {"studies": "", "studies_at": "at"}, "studies_at"),
}
_WORK: Final = (
    regex(r"works?(?: (?:at|for) (?P<works_at>.+?))?(?: as (?P<works_as>.+?))?(?: in (?P<works_in>.+?))?"),
    regex(r"works?(?: as (?P<works_as>.+?))?(?: (?:at|for) (?P<works_at>.+?))?"),
)
_STUDY: Final = (regex(r"stud(?:ies|y)(?! at )(?: (?P<studies>.+?))?(?: at (?P<studies_at>.+?))?"),
                 regex(r"stud(?:ies|y) at (?P<studies_at>.+?)"))  # fmt: skip
_WORDINGS: Final = {"work": _WORK, "study": _STUDY}
_ARTICLE: Final = regex(r"(?:an?|the)\s", re.IGNORECASE)


def sides(slot: str, said: Claim | Fact) -> dict[str, str]:
    """What a claim or a memory says of each side of its slot."""
    form = FORMS[slot]
    text = said.text.removeprefix(f"{said.subject} ").rstrip(".")
    parsed = (wording.fullmatch(text) for wording in _WORDINGS[slot])
    found = next((match.groupdict() for match in parsed if match and any(match.groupdict().values())), {})
    known = {name: value for name, value in found.items() if value}
    name, value = said.predicate or "", said.object
    if name in form.sides and value and (name not in known or compare(known[name], value) is Likeness.OTHER):
        known[name] = value
    return known


def completed(slot: str, claim: Claim, fact: Fact) -> tuple[Likeness, Claim]:
    """What a claim is to what is held of its slot, and the claim that says both where they complete each other."""
    form, new, old = FORMS[slot], sides(slot, claim), sides(slot, fact)
    bearing = {name: compare(new[name], old[name]) for name in new if name in old}
    if bearing.get(form.first) is Likeness.OTHER:
        return Likeness.OTHER, claim
    if form.vague is not None and set(new) == {form.vague} and set(old) - {form.vague}:
        return Likeness.LESS, claim
    if new and all(bearing.get(name) in (Likeness.SAME, Likeness.LESS) for name in new):
        return (Likeness.SAME if new.keys() == old.keys() else Likeness.LESS), claim
    kept = {name: value for name, value in old.items() if name not in new or bearing[name] is Likeness.LESS}
    both = {**new, **kept}
    if form.vague in kept and len(both) > 1:
        del both[form.vague]
    changed = any(each is Likeness.OTHER for each in bearing.values())
    outcome = Likeness.OTHER if changed else Likeness.MORE
    return outcome, claim if both == new else _said(form, claim, both)


def without(slot: str, claim: Claim, fact: Fact) -> Claim | None:
    """What is left of a memory once the sides a claim denies are taken off; nothing, if it denies what decides."""
    form, gone, old = FORMS[slot], sides(slot, claim), sides(slot, fact)
    stays = {name for name in old if name not in gone or compare(gone[name], old[name]) is Likeness.OTHER}
    rest = {name: value for name, value in old.items() if name in stays}
    if len(rest) == len(old) or form.first not in rest:
        return None
    return _said(form, claim, rest)


def _said(form: Form, claim: Claim, both: Mapping[str, str]) -> Claim:
    parts = [form.verb]
    for name, word in form.sides.items():
        if name in both:
            parts += [word, _titled(both[name]) if word == "as" else both[name]]
    text = f"{claim.subject} {' '.join(part for part in parts if part)}"
    name = next(name for name in (form.first, *form.sides) if name in both)
    return replace(claim, text=text, predicate=name, object=both[name], polarity="asserted")


def _titled(role: str) -> str:
    """A role as it follows "as"."""
    if _ARTICLE.match(role) or role[:1].isupper():
        return role
    return f"{'an' if role[:1].lower() in 'aeiou' else 'a'} {role}"
