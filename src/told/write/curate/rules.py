"""The rule curator: offline, deterministic, and careful never to retire what a claim does not speak of.

A claim with a subject and a predicate is held against what the scope holds of that subject in the predicate's slot, and
against nothing else. A claim without them is compared by its text. What cannot be told for certain stands beside what
is held; a contradiction is recorded, never resolved by forgetting both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from told.core.alike import Likeness, adds_to, compare, names, same_text
from told.core.entry import Claim
from told.core.fact import QUARANTINE, UNLISTED, Fact
from told.core.kind import Semantics, Write
from told.core.predicates import TABLE, predicate
from told.core.trust import source_of, trust_of
from told.flow import Flow
from told.ports import Store
from told.settings import Settings
from told.write.curate import policies
from told.write.curate.facets import FORMS, completed, sides, without
from told.write.curate.scene import Scene, judged, look
from told.write.curate.slots import OPPOSITES, ceased, denies, described, eats_meat, loose, meatless, siblings, slot_of
from told.write.curate.verdicts import (
    NEGATED,
    SUPERSEDED,
    add,
    contradiction,
    delete,
    ended,
    historical,
    joined,
    late,
    none,
    outranks,
    quarantined,
    said,
    tentative,
    update,
)
from told.write.shape import QUARANTINED, Curated, Decision, Found, Heard

SAME, MORE, LESS, OTHER = Likeness.SAME, Likeness.MORE, Likeness.LESS, Likeness.OTHER
AGREES: Final = (SAME, LESS)


@dataclass(frozen=True, slots=True)
class RuleCurator:
    """Decides by declared rules what becomes of claims."""

    store: Store
    settings: Settings = field(default_factory=Settings)

    def decide(self, heard: Heard, claims: Sequence[Found]) -> Flow[Curated]:
        """One or more decisions for every claim; a later claim sees what earlier ones came to."""
        scene = yield from look(self.store, heard, claims, self.settings)
        for found in claims:
            settle(scene, heard, found)
        return Curated(tuple(scene.decisions))


def settle(scene: Scene, heard: Heard, found: Found) -> None:
    """Decide about one claim and let the scene know."""
    claim = judged(heard, found)
    for decision in weigh(scene, claim):
        scene.take(replace(decision, turn=found.turn))
        for gone in policies.evicted(scene, decision):
            scene.take(replace(gone, turn=found.turn))


def weigh(scene: Scene, claim: Claim) -> list[Decision]:
    """What becomes of a claim, given what is held."""
    if claim.kind == QUARANTINE or claim.modality == QUARANTINED:
        return [_by_text(scene, claim)]
    if claim.subject is None or claim.predicate is None:
        return policies.decide(scene, claim) or [_by_text(scene, claim)]
    exact = _said_already(scene, claim)
    if exact is not None:
        return [_again(claim, exact, "it is held in these very words")]
    decisions = _denied(scene, claim) if claim.polarity == NEGATED else _asserted(scene, claim)
    return [_revived(scene, decision) for decision in decisions]


def _again(claim: Claim, fact: Fact, why: str) -> Decision:
    """What is held is said again: it gains a witness, or a better one takes it over."""
    if trust_of(claim) > trust_of(fact):
        return update(claim, fact, "a more trusted source says it too")
    return none(claim, fact, why)


def _by_text(scene: Scene, claim: Claim) -> Decision:
    """A claim that nothing is known about but its words: it is held already, or it is new."""
    exact = scene.same(claim)
    if exact is None:
        return add(claim, "nothing held says this")
    if exact.kind in UNLISTED and claim.kind not in UNLISTED:
        return update(claim, exact, "what was evidence is a memory now")
    if exact.expires <= scene.now and outranks(claim, exact):
        return update(claim, exact, "it had expired and is said again")
    return none(claim, exact, "it is held in these very words")


def _said_already(scene: Scene, claim: Claim) -> Fact | None:
    """The memory that says exactly this of the same time, if there is one."""
    fact = scene.same(claim)
    if fact is None or fact.kind in UNLISTED or fact.expires <= scene.now or fact.polarity != claim.polarity:
        return None
    return fact if ended(fact, scene.now) == ended(claim, scene.now) and not _another_day(claim, fact) else None


def _revived(scene: Scene, decision: Decision) -> Decision:
    """An addition whose very words have expired goes on where they ended."""
    faded = scene.same(decision.claim) if decision.event == "ADD" and decision.claim else None
    if faded is None or faded.expires > scene.now or faded.kind in UNLISTED:
        return decision
    if decision.claim is not None and not outranks(decision.claim, faded):
        return none(decision.claim, faded, "what somebody more trusted said had expired")
    return replace(decision, event="UPDATE", fact=faded, why="it had expired and is said again")


# What is asserted -----------------------------------------------------------------------------------------------------


def _asserted(scene: Scene, claim: Claim) -> list[Decision]:
    now, mine = scene.now, scene.of(claim.subject, siblings(claim.predicate or ""))
    past = ended(claim, now)
    mates = [fact for fact in mine if fact.polarity == "asserted" and ended(fact, now) == past]
    bearings = [(fact, *_bearing(scene, claim, fact)) for fact in mates]
    unsure = [fact for fact in mates if tentative(fact, now)]
    settled = bearings if tentative(claim, now) else [row for row in bearings if row[0] not in unsure]
    for fact, likeness, _ in settled:
        if likeness is SAME:
            return [_again(claim, fact, "it is held in other words")]
    for fact, likeness, _ in settled:
        if likeness is LESS and trust_of(claim) <= trust_of(fact):
            return [none(claim, fact, "what is held says more")]
    if past:
        return [_over(scene, claim, [fact for fact in mine if fact not in mates])]
    if tentative(claim, now):
        return [add(claim, "it is not certain, so it stands beside what is")]
    guessed = [fact for fact in unsure if _of_value(claim, fact) is SAME and not late(claim, fact, now)]
    return [*_placed(scene, claim, settled, [*_flipped(scene, claim, mine), *guessed]), *_belied(scene, claim)]


def _bearing(scene: Scene, claim: Claim, fact: Fact) -> tuple[Likeness, Claim]:
    """What a claim is to one memory of its slot, and the claim that says both where they complete each other.

    What somebody trusted less said completes nothing.
    """
    slot = slot_of(claim.predicate or "")
    if slot in FORMS:
        likeness, both = completed(slot, claim, fact)
        both = both if source_of(fact) >= source_of(claim) else claim
    else:
        likeness, both = _of_value(claim, fact), claim
    if likeness is SAME and (adds_to(claim.text, fact.text) or names(claim.text) - names(f"{fact.text} {fact.object}")):
        likeness = MORE
    kind = scene.kind(claim.kind)
    if kind is not None and kind.write is Write.APPEND:
        unlike = likeness is not SAME or _another_day(claim, fact)
        likeness = OTHER if unlike else SAME
    return likeness, both


def _of_value(claim: Claim, fact: Fact) -> Likeness:
    if claim.object is None or fact.object is None:
        return SAME if same_text(claim.text, fact.text) else OTHER
    loosely = loose(claim.predicate or "")
    likeness = compare(claim.object, fact.object, loose=loosely)
    return likeness if likeness is not OTHER else compare(described(claim), described(fact), loose=loosely)


def _another_day(claim: Claim, fact: Fact) -> bool:
    """Whether a claim names a time of its own that is not the memory's: the same happened again."""
    return claim.valid.precision != "open" and claim.valid != fact.valid() and claim.valid.end is not None


def _over(scene: Scene, claim: Claim, present: Sequence[Fact]) -> Decision:
    """A claim about the past: it ends the present it speaks of, or it is history; it never replaces anything else."""
    for fact in present:
        likeness = _of_value(claim, fact) if fact.polarity == "asserted" else OTHER
        if likeness is OTHER:
            continue
        newer = not late(claim, fact, scene.now) and outranks(claim, fact)
        if newer and ceased(claim.text):
            return update(claim, fact, "it came to an end")
        return none(claim, fact, "it is held of the present too")
    return add(claim, "it is history, so it replaces nothing")


def _flipped(scene: Scene, claim: Claim, mine: Sequence[Fact]) -> list[Fact]:
    """Memories that deny just this, or say the opposite of the very same thing."""
    denied = [fact for fact in mine if fact.polarity == NEGATED]
    opposite = scene.of(claim.subject, OPPOSITES.get(claim.predicate or "", ()))
    rivals = [*denied, *(fact for fact in opposite if fact.polarity == "asserted" and not ended(fact, scene.now))]
    return [fact for fact in rivals if _of_value(claim, fact) is SAME]


def _placed(
    scene: Scene, claim: Claim, settled: Sequence[tuple[Fact, Likeness, Claim]], flipped: Sequence[Fact]
) -> list[Decision]:
    """Where a claim about the present goes that nothing held says yet."""
    semantics = _semantics(scene, claim)
    rivals = list(settled) if semantics is Semantics.FUNCTIONAL else [row for row in settled if row[1] is MORE][:1]
    rivals += [(fact, OTHER, claim) for fact in flipped]
    if newer := [fact for fact, _, _ in rivals if late(claim, fact, scene.now)]:
        return [_too_late(scene, claim, newer[0], functional=semantics is Semantics.FUNCTIONAL)]
    if above := [fact for fact, _, _ in rivals if not outranks(claim, fact)]:
        return [_outranked(scene, claim, above[0])]
    if rivals:
        (fact, likeness, both), *others = rivals
        why = "it says more than what is held" if likeness is MORE else "it takes the place of what was held"
        merged = replace(both, meta=joined(fact, claim)) if likeness is MORE else both
        return [update(merged, fact, why), *(delete(claim, other, SUPERSEDED) for other, _, _ in others)]
    if semantics is Semantics.IMMUTABLE and settled:
        return [_contended(scene, claim, [fact for fact, _, _ in settled])]
    return [add(claim, "nothing held says this")]


def _semantics(scene: Scene, claim: Claim) -> Semantics:
    """What a second value does to the first: as the predicate says, or the concept of that name."""
    kind = scene.kind(claim.predicate or "")
    unknown = claim.predicate not in TABLE and kind is not None
    return kind.semantics if unknown and kind is not None else predicate(claim.predicate or "").semantics


def _too_late(scene: Scene, claim: Claim, newer: Fact, *, functional: bool) -> Decision:
    """A claim from before what is held: it was true until then, which history may know already."""
    now = scene.now
    for fact in scene.of(claim.subject, siblings(claim.predicate or "")):
        then = ended(fact, now) and fact.valid().contains(said(claim, now))
        if then and fact.polarity == "asserted" and _bearing(scene, claim, fact)[0] in AGREES:
            return none(claim, fact, "history has it already")
    kept = historical(claim, newer, now) if functional else claim
    return add(kept, "it was said before what is held, so it replaces nothing")


def _outranked(scene: Scene, claim: Claim, above: Fact) -> Decision:
    waiting = scene.same(claim)
    if waiting is not None and waiting.kind == QUARANTINE:
        return none(claim, waiting, "it waits for a review already")
    return quarantined(claim, above)


def _contended(scene: Scene, claim: Claim, held: Sequence[Fact]) -> Decision:
    """A second value of what cannot change: both stay, and the contradiction is recorded."""
    if above := [fact for fact in held if not outranks(claim, fact)]:
        return _outranked(scene, claim, above[0])
    links = [contradiction(claim, fact) for fact in held]
    return add(claim, "what is held cannot change, so both are kept and the contradiction is recorded", *links)


def _belied(scene: Scene, claim: Claim) -> list[Decision]:
    """Memories of another slot that cannot be true beside this claim: who eats meat again is no vegetarian."""
    if claim.predicate == "diet" or not eats_meat(claim):
        return []
    diets = [fact for fact in scene.of(claim.subject, ("diet",)) if meatless(fact) and not ended(fact, scene.now)]
    return [delete(claim, fact, NEGATED) for fact in diets if _may_end(scene, claim, fact)]


def _may_end(scene: Scene, claim: Claim, fact: Fact) -> bool:
    return outranks(claim, fact) and not late(claim, fact, scene.now)


# What is denied -------------------------------------------------------------------------------------------------------


def _denied(scene: Scene, claim: Claim) -> list[Decision]:
    """What a denial does: it ends the memory it denies and no other; with none to end, it is a memory itself."""
    names = siblings(claim.predicate or "")
    mine = scene.of(claim.subject, names)
    present = [fact for fact in mine if fact.polarity == "asserted" and not ended(fact, scene.now)]
    exact, wider = _targets(scene, claim, present)
    if not exact and len(wider) > 1:
        if above := [fact for fact in wider if not outranks(claim, fact)]:
            return [_outranked(scene, claim, above[0])]
        links = [contradiction(claim, fact) for fact in wider]
        return [add(claim, "it denies one of several and does not say which", *links)]
    if targets := exact or wider:
        return [_ended(scene, claim, fact) for fact in targets]
    opposite = scene.of(claim.subject, OPPOSITES.get(claim.predicate or "", ()))
    agreeing = [*(fact for fact in mine if fact.polarity == NEGATED), *opposite]
    for fact in agreeing:
        if _of_value(claim, fact) in AGREES:
            return [none(claim, fact, "what is held denies it already")]
    if ceased(claim.text) or tentative(claim, scene.now):
        return [none(claim, None, "nothing is held that it could end")]
    return [add(claim, "nothing held says this")]


def _targets(scene: Scene, claim: Claim, present: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """The memories that say exactly what is denied, and those that say more than that."""
    if claim.object is None:
        return (list(present), []) if _semantics(scene, claim) is Semantics.FUNCTIONAL else ([], [])
    exact, wider = [], []
    for fact in present:
        likeness = _denial(claim, fact)
        if likeness is SAME or denies(claim, fact):
            exact.append(fact)
        elif likeness is LESS:
            wider.append(fact)
    return exact, wider


def _denial(claim: Claim, fact: Fact) -> Likeness:
    slot = slot_of(claim.predicate or "")
    if slot not in FORMS:
        return _of_value(claim, fact)
    gone, old = sides(slot, claim), sides(slot, fact)
    bearings = [compare(gone[name], old[name]) for name in gone if name in old]
    return SAME if bearings and all(bearing in AGREES for bearing in bearings) else OTHER


def _ended(scene: Scene, claim: Claim, fact: Fact) -> Decision:
    """A memory that is denied by somebody who may and who spoke later."""
    if late(claim, fact, scene.now):
        return none(claim, fact, "it was said before what is held")
    if not outranks(claim, fact):
        return _outranked(scene, claim, fact)
    slot = slot_of(claim.predicate or "")
    rest = without(slot, claim, fact) if slot in FORMS else None
    return delete(claim, fact, NEGATED) if rest is None else update(rest, fact, "a part of it was denied")
