"""From candidates to answers: one side of each contradiction, and a turn and its claims as one.

What was found is looked up in two places at most: the links of the facts, where the account has any, and the threads
that were taken from the same evidence, where a fact was extracted at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from told.core.belief import CONTRADICTS, SUPERSEDES, sides
from told.core.fact import NODE, PIECE, Fact
from told.core.filter import matches, record, speaks_of
from told.core.query import LATEST, Find
from told.core.text import normalise
from told.flow import Flow, call
from told.read.fold import Kin, folded, is_extracted, kindred, stale
from told.read.gather import Eye, by_id
from told.read.guard import denials
from told.read.leads import links_of
from told.read.rank import Scored, best_of_facts, of_facts, ordered, seqs_of
from told.read.recall import Recall, first_seqs
from told.settings import Settings

NO_KIN: Final = Kin()
A_NODE: Final = "it leads to memories and is none"


# What belongs to what was found ---------------------------------------------------------------------------------------


def related(eye: Eye, recall: Recall, reach: int) -> Flow[None]:
    """Look up which of the first facts contradict each other, and what else was taken from the same evidence."""
    recall.shown |= recall.facts.keys() & first_seqs(recall.scored, reach)
    if recall.found.linked:
        yield from _sided(eye, recall)
    while missing := _unknown(recall):
        lives = yield from call(eye.store.taken, recall.want.find.scope.account, missing)
        _bring_in(eye, recall, missing, lives)


def _unknown(recall: Recall) -> list[str]:
    """The evidence of what may be shown that was not looked up yet; what replaced a claim brings its own."""
    facts = [recall.facts[seq] for seq in recall.shown]
    return sorted({fact.evidence for fact in facts if is_extracted(fact) and fact.evidence} - recall.kins.keys())


def _sided(eye: Eye, recall: Recall) -> Flow[None]:
    """The contradictions of what was found, with the other side of each, wherever it stands."""
    find = recall.want.find
    known = {fact.id: fact for fact in (recall.facts[seq] for seq in recall.shown)}
    links = yield from links_of(eye, find, list(known), recall.web)
    disputes = [link for link in links if link.rel in (CONTRADICTS, SUPERSEDES)]
    unseen = {end for link in disputes for end in (link.src, link.dst)} - known.keys()
    found = (yield from by_id(eye, find, unseen)) if unseen else ()
    denied = denials(found, eye.guards)
    others = [fact for fact in found if fact.seq not in denied]
    recall.show(others)
    recall.sides = sides([*known.values(), *others], links, recall.want.belief)


def at(find: Find) -> int | None:
    """The position links are read at; nothing for now."""
    return None if find.as_of.seq >= LATEST else find.as_of.seq


def _bring_in(eye: Eye, recall: Recall, evidence: Sequence[str], lives: Sequence[Fact]) -> None:
    """Take in what was said and what is held of it, as far as this read may see it; of other evidence that is half."""
    find = recall.want.find
    denied = denials(lives, eye.guards)
    seen = [fact for fact in lives if fact.seq not in denied and find.scope.covers(fact.scope)]
    known = {fact.id: fact for fact in recall.facts.values()}
    lost = {loser: known[winner] for loser, winner in recall.sides.lost.items()}
    candidates = set(seqs_of(recall.scored))
    kins = kindred(seen, find.as_of, lost)
    for name in evidence:
        kin = kins.get(name, NO_KIN)
        words = kin.words if kin.words is not None and _visible(kin.words, find) else None
        recall.kins[name] = replace(kin, words=words)
        heirs = [heir for _, heir in kin.ended if heir is not None]
        found = [fact for fact in (*kin.held, *heirs) if fact.seq in candidates]
        recall.show(found if words is None else [*found, words])


def _visible(fact: Fact, find: Find) -> bool:
    fresh = find.show_expired or fact.expires > find.as_of.at
    return fresh and matches(find.filter, record(fact))


# What is left ---------------------------------------------------------------------------------------------------------


def settled(recall: Recall, settings: Settings) -> None:
    """Keep one of each that says the same, drop what is not believed, and make one of each turn and its claims."""
    inside = recall.shown & recall.facts.keys()
    recall.keep(of_facts(recall.scored, inside), "select", "after the limit")
    if not speaks_of(recall.want.find.filter, "kind"):
        recall.drop({seq: A_NODE for seq, fact in recall.facts.items() if fact.kind == NODE}, "expand")
    recall.keep(_distinct(recall), "fuse", "says the same as one before it")
    if recall.sides.lost:
        _believe(recall)
    if recall.kins:
        _fold(recall, 1.0 - settings.expand_own)


def _distinct(recall: Recall) -> list[Scored]:
    """One of those that say the same thing by the same speaker; it remembers the others."""
    first: dict[tuple[str | None, str], int] = {}
    kept: list[Scored] = []
    for one in recall.scored:
        fact = recall.facts[one.mark.seq]
        words = normalise(fact.text) if len(fact.text) < PIECE else fact.md5
        seq = first.setdefault((fact.actor, words), fact.seq)
        if seq == fact.seq:
            kept.append(one)
        else:
            recall.stand_for(seq, fact.id)
    return kept


def _believe(recall: Recall) -> None:
    """Who lost a contradiction makes room for who won it, if that was found too; else it only says so."""
    threads = {fact.id: fact for fact in recall.facts.values()}
    best = {one.mark.seq: one for one in best_of_facts(recall.scored)}
    reasons: dict[int, str] = {}
    places: dict[tuple[int, int], float] = {}
    for loser, winner in recall.sides.lost.items():
        lost, won = best.get(threads[loser].seq), best.get(threads[winner].seq)
        recall.superseded[threads[loser].seq] = winner
        if lost is not None and won is not None:
            reasons[lost.mark.seq] = f"contradicted by {winner}"
            place = (won.mark.seq, won.mark.slot)
            places[place] = max(lost.score, places.get(place, won.score))
    recall.drop(reasons, "believe")
    moved = (
        one.plus(newer=places.get((one.mark.seq, one.mark.slot), one.score) - one.score) for one in recall.scored
    )
    recall.scored = ordered(moved)


def _fold(recall: Recall, share: float) -> None:
    """A turn and its claims as one; a turn that no longer holds makes room for what replaced it."""
    relevance = {one.mark.seq: _relevance(one) for one in best_of_facts(recall.scored)}
    terms = frozenset(recall.probe.terms)
    outdated = {
        kin.turn.seq: found for kin in recall.kins.values()
        if kin.turn is not None and (found := stale(kin, relevance.get, terms)) is not None
    }  # fmt: skip
    recall.superseded |= {seq: one.heir.id for seq, one in outdated.items() if one.heir is not None}
    past = recall.asked.asks_past or recall.want.belief == "all"
    done = folded(
        recall.scored, recall.kins.values(), outdated, verbatim=recall.want.verbatim, past=past, share=share
    )
    for seq, place in done.into.items():
        recall.stand_for(place, recall.facts[seq].id)
    recall.drop({seq: f"folded into {recall.facts[place].id}" for seq, place in done.into.items()}, "fold")
    recall.scored, recall.led = done.scored, done.led
    if not past:
        gone = (found for found in outdated.items() if found[1].heir is None or not recall.want.verbatim)
        recall.drop({seq: found.reason for seq, found in gone}, "fold")


def _relevance(one: Scored) -> float:
    """How well a passage matches by itself, whoever said it and when."""
    return one.parts.get("dense", 0.0) + one.parts.get("cover", 0.0)
