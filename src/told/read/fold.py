"""A turn and the claims taken from it are one answer, not several.

A search shows the claim, for it is the memory, and names the turn behind it; a context shows the turn, for it has the
words and the day. A turn whose claim was replaced since is stale where what replaced it answers the query about as well
as the turn does, and better than anything that is still held of it: then what replaced it goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from told.core.fact import PIECE, TURN, UNLISTED, Fact
from told.core.query import AsOf, counting
from told.core.text import terms
from told.read.rank import NUDGE, Scored, best_of_facts, ordered, unmeasured
from told.read.render import PEOPLE

SLACK: Final = 2.0
"""So much less than the words it replaced may a claim match a query and still be what is asked for."""

KEY: Final = "key"


def is_extracted(fact: Fact) -> bool:
    """Whether a fact is a turn that claims were taken from, or may itself be a claim that was."""
    plain = fact.kind == "memory" and fact.predicate is None and fact.author in PEOPLE
    return fact.evidence is not None and not plain


def is_wording(fact: Fact) -> bool:
    """Whether a fact is what was said, word for word."""
    return fact.kind == TURN or not is_extracted(fact)


@dataclass(frozen=True, slots=True)
class Kin:
    """What was said, the claims still held that were taken from it, and those that are not, with what replaced each."""

    words: Fact | None = None
    held: tuple[Fact, ...] = ()
    ended: tuple[tuple[Fact, Fact | None], ...] = ()

    @property
    def turn(self) -> Fact | None:
        """The words, where they stand behind claims and are no memory of their own."""
        return self.words if self.words is not None and self.words.kind == TURN else None

    @property
    def emptied(self) -> bool:
        """Whether claims were taken from the words and all of them given up, and none replaced."""
        return bool(self.ended) and not self.held and all(heir is None for _, heir in self.ended)


def kindred(lives: Iterable[Fact], as_of: AsOf, lost: Mapping[str, Fact]) -> dict[str, Kin]:
    """What belongs together by its evidence, at a point in time, given all versions of all threads taken from it.

    `lost` are threads that are held, and what is believed instead.
    """
    threads: dict[str, list[Fact]] = {}
    for fact in lives:
        if fact.seq <= as_of.seq:
            threads.setdefault(fact.id, []).append(fact)
    found: dict[str, _Family] = {}
    for thread, versions in threads.items():
        now = counting(versions, as_of)
        for evidence, last in {one.evidence: one for one in versions}.items():
            if evidence is not None:
                _place(found.setdefault(evidence, _Family()), last, now, lost.get(thread))
    return {evidence: Kin(one.words, tuple(one.held), tuple(one.ended)) for evidence, one in found.items()}


@dataclass(slots=True)
class _Family:
    words: Fact | None = None
    held: list[Fact] = field(default_factory=list)
    ended: list[tuple[Fact, Fact | None]] = field(default_factory=list)


def _place(family: _Family, last: Fact, now: Fact | None, winner: Fact | None) -> None:
    """Put a thread where it belongs: `last` is what it said on this evidence, `now` what it says."""
    here = now is not None and now.evidence == last.evidence
    if is_wording(last):
        family.words = now if here else family.words
    elif last.kind in UNLISTED:
        return
    elif here and now is not None and winner is None:
        family.held.append(now)
    else:
        family.ended.append((last, winner or (None if here else now)))


# Stale turns ----------------------------------------------------------------------------------------------------------

Relevance: TypeAlias = Callable[[int], float | None]
"""How well the fact at a position matches the query by itself; nothing, if it is no candidate."""

GIVEN_UP: Final = "what was taken from it was given up"


@dataclass(frozen=True, slots=True)
class Stale:
    """A turn that no longer holds, for what; nothing stands in the place of what was given up."""

    heir: Fact | None = None

    @property
    def reason(self) -> str:
        """Why it is not shown as it stands."""
        return GIVEN_UP if self.heir is None else f"superseded by {self.heir.id}"


def stale(kin: Kin, relevance: Relevance, query: frozenset[str]) -> Stale | None:
    """Whether what the query asks of a turn no longer holds; `query` are its terms."""
    if kin.turn is None or not kin.ended:
        return None
    heirs = [(found, heir) for _, heir in kin.ended if heir and (found := relevance(heir.seq)) is not None]
    if heirs:
        best, heir = max(heirs, key=lambda pair: (pair[0], pair[1].seq))
        kept = [found for fact in kin.held if (found := relevance(fact.seq)) is not None]
        own = relevance(kin.turn.seq)
        near = own is None or best >= own - SLACK or _says_as_much(query, kin.turn, heir)
        return Stale(heir) if best >= max(kept, default=best) and near else None
    gone = [old for old, heir in kin.ended if heir is None]
    return Stale() if gone and _asks_only(query, kin.turn, gone, kin.held) else None


def _says_as_much(query: frozenset[str], turn: Fact, heir: Fact) -> bool:
    """Whether every word the query has in common with a turn is in what replaced it too."""
    shared = query.intersection(terms(turn.text))
    return bool(shared) and shared <= set(terms(heir.text))


def _asks_only(query: frozenset[str], turn: Fact, gone: Sequence[Fact], held: Sequence[Fact]) -> bool:
    """Whether the words the query has in common with a turn are those of claims that were given up."""
    shared = query.intersection(terms(turn.text))
    if not shared:
        return not held
    kept = {term for fact in held for term in terms(fact.text)}
    return shared <= {term for fact in gone for term in terms(fact.text)} and not shared <= kept


# Folding --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Folded:
    """What is left, what was folded into what by position, and the words that only a claim led to."""

    scored: list[Scored]
    into: dict[int, int] = field(default_factory=dict)
    led: list[Scored] = field(default_factory=list)


def folded(
    scored: Sequence[Scored], kins: Iterable[Kin], outdated: Mapping[int, Stale], *, verbatim: bool, past: bool = False,
    share: float = 0.5,
) -> Folded:  # fmt: skip
    """The candidates with each turn and its claims as one: by the claim that fits best, or, verbatim, by the turn.

    A claim takes the better of the two scores. Words meet a claim that is better than they are some share of the way.
    A stale turn stands alone, below what replaced it unless the past is asked for.
    """
    best = {one.mark.seq: one for one in best_of_facts(scored)}
    done = Folded([])
    raised: dict[int, tuple[str, float]] = {}
    for kin in kins:
        if kin.words is None or kin.words.seq in outdated:
            continue
        claims = [best[fact.seq] for fact in kin.held if fact.seq in best]
        if claims:
            _fold(done, raised, kin.words, best.get(kin.words.seq), ordered(claims), share, verbatim=verbatim)
    lowered = {} if past else _outranked(outdated, best, done.into, raised)
    left = (one for one in (*scored, *done.led) if one.mark.seq not in done.into)
    done.scored = ordered(_moved(one, best, raised, lowered) for one in left)
    return done


def _fold(
    done: Folded, raised: dict[int, tuple[str, float]], words: Fact, own: Scored | None, claims: Sequence[Scored],
    share: float, *, verbatim: bool,
) -> None:  # fmt: skip
    """One turn and its claims, the best of them first."""
    top = claims[0]
    if words.kind == TURN and not verbatim:
        if own is not None:
            done.into[words.seq] = top.mark.seq
            _raise(raised, top, "turn", own.score)
    elif own is None and len(words.text) > PIECE:
        return
    else:
        if own is None:
            own = led(words, top, 1.0 if verbatim else share)
            done.led.append(own)
        if verbatim:
            done.into.update({claim.mark.seq: words.seq for claim in claims})
            _raise(raised, own, "claim", own.score + (top.score - own.score) * share)


def led(words: Fact, claim: Scored, share: float) -> Scored:
    """Words that a claim leads to, worth a share of what the claim is."""
    return Scored(unmeasured(words, claim.mark), share * claim.score, {"parent": share * claim.score})


def _raise(raised: dict[int, tuple[str, float]], one: Scored, part: str, score: float) -> None:
    if score > max(one.score, raised.get(one.mark.seq, ("", one.score))[1]):
        raised[one.mark.seq] = part, score


def _outranked(
    outdated: Mapping[int, Stale], best: Mapping[int, Scored], into: Mapping[int, int],
    raised: dict[int, tuple[str, float]],
) -> dict[int, float]:  # fmt: skip
    """What stale turns sink to: just below what replaced them, which takes their place."""
    lowered: dict[int, float] = {}
    for seq, found in outdated.items():
        own = best.get(seq)
        if own is None or found.heir is None:
            continue
        place = into.get(found.heir.seq, found.heir.seq)
        heir = best.get(place) or best[found.heir.seq]
        _raise(raised, heir._replace(mark=heir.mark._replace(seq=place)), "heir", own.score)
        lowered[seq] = max(raised.get(place, ("", heir.score))[1], heir.score) - NUDGE
    return lowered


def _moved(
    one: Scored, best: Mapping[int, Scored], raised: Mapping[int, tuple[str, float]], lowered: Mapping[int, float]
) -> Scored:
    """A passage where it belongs; only the best passage of a fact is raised."""
    seq = one.mark.seq
    if seq in lowered:
        return one.plus(heir=min(lowered[seq] - one.score, 0.0))
    first = best.get(seq)
    if seq in raised and (first is None or first.mark.slot == one.mark.slot):
        part, score = raised[seq]
        return one.plus(**{part: score - one.score})
    return one
