"""How the memories of a kind are written: the policy picks the thread and has the last word.

A claim with a predicate is one sentence about one thing, and its slot is its thread. A claim without one is a document
of its kind: a whole profile, all that is known of a topic, a skill. One with a subject alone is a sentence nobody could
read: it is no profile, and known by its words. Here documents find their thread: one for each
owner (merge), one for each routing key (aggregate, cumulative), or one of their own (append). Whatever was decided, a
kind that is full lets its oldest or weakest memory go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from told.core import address
from told.core.alike import same_text, similar_slugs
from told.core.entry import Claim
from told.core.errors import InvalidInput
from told.core.fact import Fact
from told.core.fading import strength
from told.core.ids import made_at
from told.core.kind import Eviction, Field, Kind, Semantics, Write
from told.core.lazy import regex
from told.core.text import sentences, shown
from told.core.trust import STAMP, channel, source_of
from told.write.curate.scene import Scene
from told.write.curate.verdicts import (
    EVICTED,
    NEGATED,
    add,
    delete,
    ended,
    historical,
    joined,
    late,
    none,
    outranks,
    quarantined,
    said,
    update,
)
from told.write.shape import Decision

ABSTRACT_LIMIT: Final = 200
VALUE: Final = "value"
USES: Final = "usage_count"
STEPS: Final = "steps"
_ITEM: Final = regex(r"(?:[-*\u2022]|\d+[.)])\s")


def decide(scene: Scene, claim: Claim) -> list[Decision]:
    """What becomes of a document of a kind; nothing, if its kind has no thread for it."""
    kind = scene.kind(claim.kind)
    if kind is None or kind.write is Write.APPEND or (kind.write is Write.MERGE and claim.subject is not None):
        return []
    key = routed(kind, claim)
    if key is None and kind.keyed:
        return []
    held = _thread(scene, kind, key)
    if claim.polarity == NEGATED:
        return [_denied(scene, claim, held)]
    if held is None:
        return [add(claim, f"the first {kind.name} of its thread")]
    if late(claim, held, scene.now):
        return [add(historical(claim, held, scene.now), "it was said before what is held, so it replaces nothing")]
    if not outranks(claim, held):
        return [quarantined(claim, held)]
    return [_written(kind, claim, held)]


def routed(kind: Kind, claim: Claim) -> str | None:
    """The routing key of a document as a slug; of an ontology's concept, its value."""
    if kind.key is None:
        return None
    value = claim.meta.get(kind.key, claim.object if kind.key == VALUE else None)
    return address.slug(str(value)) or None if value is not None else None


def _thread(scene: Scene, kind: Kind, key: str | None) -> Fact | None:
    """The memory whose thread a document goes on: the latest of its owner, or the one with this or a similar key."""
    documents = [
        fact
        for fact in reversed(scene.held)
        if fact.kind == kind.name
        and fact.predicate is None
        and not ended(fact, scene.now)
        and (kind.write is not Write.MERGE or fact.subject is None)
    ]
    if key is None or _latest_only(kind):
        return next(iter(documents), None)
    keyed = [(fact, found) for fact in documents if (found := _key_of(kind, fact)) is not None]
    exact = (fact for fact, found in keyed if found == key)
    similar = (fact for fact, found in keyed if similar_slugs(found, key))
    return next(exact, None) or next(similar, None)


def _latest_only(kind: Kind) -> bool:
    """Whether a concept holds one value at a time, so that another takes its place."""
    return kind.key == VALUE and kind.semantics is Semantics.FUNCTIONAL


def _key_of(kind: Kind, fact: Fact) -> str | None:
    value = fact.meta.get(kind.key or "", fact.object if kind.key == VALUE else None)
    return None if value is None else address.slug(str(value))


def _denied(scene: Scene, claim: Claim, held: Fact | None) -> Decision:
    if held is None or late(claim, held, scene.now):
        return none(claim, held, "nothing is held that it could end")
    return delete(claim, held, NEGATED) if outranks(claim, held) else quarantined(claim, held)


def _written(kind: Kind, claim: Claim, held: Fact) -> Decision:
    """A document on the thread of an earlier one, as its kind says they meet."""
    if kind.write is Write.CUMULATIVE:
        return update(_grown(kind, claim, held), held, "every use adds to what is known")
    again = kind.key == VALUE and similar_slugs(_key_of(kind, held) or "", routed(kind, claim) or "")
    meta = _merged(kind, held, claim)
    if again or (same_text(claim.text, held.text) and meta == held.meta):
        return none(claim, held, "it is held already")
    if kind.semantics is not Semantics.MULTI:
        return update(replace(claim, meta=meta), held, "the newer view takes its place")
    text = union(held.text, claim.text)
    return update(replace(claim, text=text, meta=meta | _worth(held, claim)), held, "it adds to what is known")


def _merged(kind: Kind, held: Fact, claim: Claim) -> dict[str, Any]:
    """The fields of both; the newer count, but a thread keeps the key it is known by."""
    key, old = kind.key or "", held.meta
    kept = {key: old[key]} if key in old and not _latest_only(kind) else {}
    return joined(held, claim) | kept


def _worth(held: Fact, claim: Claim) -> dict[str, str]:
    """The stamp of a text made of both, where the older is worth less than the newer."""
    least = min(source_of(held), source_of(claim))
    return {STAMP: least.label} if least < channel(claim.role) else {}


def _grown(kind: Kind, claim: Claim, held: Fact) -> Claim:
    """What is known and what this use adds to it."""
    old, new = held.meta, claim.meta
    both = {name: union(str(old[name]), str(new[name])) for name in (STEPS, "content") if name in old and name in new}
    meta = {**_merged(kind, held, claim), **both, USES: _count(old) + _count(new), **_worth(held, claim)}
    return replace(claim, text=union(held.text, claim.text), meta=meta)


def _count(meta: Mapping[str, Any]) -> int:
    value = meta.get(USES, 1)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def union(old: str, new: str) -> str:
    """Two texts as one, each sentence or item once, the older first."""
    known = _statements(old)
    fresh = [each for each in _statements(new) if not any(same_text(each, before) for before in known)]
    return "\n".join((old, *fresh))


def _statements(text: str) -> list[str]:
    """The sentences of a text; an item of a list is one, whatever stops it holds."""
    lines = (line.strip() for line in text.splitlines())
    return [each for line in lines for each in ([line] if _ITEM.match(line) else sentences(line))]


# Room -----------------------------------------------------------------------------------------------------------------


def evicted(scene: Scene, decision: Decision) -> list[Decision]:
    """The memories that leave because a kind is over its cardinality, the newcomer only if all others outrank it."""
    claim = decision.claim
    kind = scene.kind(claim.kind) if claim is not None and decision.event == "ADD" else None
    if claim is None or kind is None or kind.cardinality is None or claim.polarity != "asserted":
        return []
    here = [f for f in scene.held if f.kind == kind.name and f.polarity == "asserted" and not ended(f, scene.now)]
    *others, newcomer = here
    leaving = _weakest(scene, kind, [fact for fact in others if outranks(claim, fact)])
    return [delete(claim, fact, EVICTED) for fact in [*leaving, newcomer][: max(0, len(here) - kind.cardinality)]]


def _weakest(scene: Scene, kind: Kind, facts: Sequence[Fact]) -> list[Fact]:
    worth = _last_said if kind.eviction is Eviction.RECENCY else _salience
    return sorted(facts, key=lambda fact: (worth(scene, kind, fact), fact.seq))


def _last_said(scene: Scene, _: Kind, fact: Fact) -> float:
    """When a memory was said last."""
    return max(said(fact, scene.now), *(made_at(link.src) or 0 for link in scene.again.get(fact.id, ())), 0)


def _salience(scene: Scene, kind: Kind, fact: Fact) -> float:
    """What a memory weighs by now."""
    return strength(fact, kind, scene.clocks, scene.said(fact)).weight


# Fields ---------------------------------------------------------------------------------------------------------------


def checked(kind: Kind, values: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The fields of a document with their defaults, or an error that names what is wrong with each of them."""
    if wrong := [*misfits(kind, values), *_missing(kind, values, text)]:
        raise InvalidInput(f"This is no {kind.name}: {'; '.join(wrong)}.", hint=f"See `told kinds show {kind.name}`.")
    defaults = {field.name: field.default for field in kind.fields if field.default is not None}
    return {**defaults, **values}


def looked_over(kind: Kind, values: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say of the fields somebody gives to a memory of a kind; one that holds something else is an error."""
    if wrong := list(misfits(kind, values)):
        raise InvalidInput(f"This is no {kind.name}: {'; '.join(wrong)}.", hint=f"See `told kinds show {kind.name}`.")
    if kind.keyed and not address.slug(str(values.get(kind.key or "") or "")):
        return (f"A {kind.name} without {kind.key} in its metadata has no thread to go on, and is known by its text.",)
    return ()


def misfits(kind: Kind, values: Mapping[str, Any]) -> Iterable[str]:
    """What is wrong with the fields that are given."""
    for field in kind.fields:
        if field.name in values and (problem := _misfit(field, values[field.name])):
            yield problem


def _misfit(field: Field, value: Any) -> str:
    if not field.type.fits(value):
        return f"{field.name} is {shown(value)}, not a {field.type}"
    if field.enum and value not in field.enum:
        return f"{field.name} is {shown(value)}, not one of {', '.join(map(str, field.enum))}"
    return ""


def _missing(kind: Kind, values: Mapping[str, Any], text: str) -> Iterable[str]:
    """Required fields that are not there; the text is the content, and of a short one the abstract too."""
    said_by_text = {"content"} | ({"abstract"} if len(text) <= ABSTRACT_LIMIT else set())
    for field in kind.fields:
        if field.required and not str(values.get(field.name) or "").strip() and field.name not in said_by_text:
            yield f"{field.name} is missing"
