"""Passages into an order: relevance, who is asked about, when, who speaks, whom to believe, and what is newest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, log, sqrt
from operator import add, attrgetter
from typing import NamedTuple, TypeAlias, final, overload

from told.core.almanac import time_words
from told.core.fact import Fact
from told.core.kind import Ontology
from told.core.query import Mark, Marks, Ranked, Touch, columns
from told.core.score import cosine
from told.core.text import terms
from told.core.trust import FOREIGN, Trust, channel
from told.core.when import Interval
from told.read.asked import Asked, Sort
from told.read.cache import hotness
from told.read.fuse import FUSED, SCALE, fusion
from told.settings import Settings

DAY = 86_400_000_000
ASSISTANT = "assistant"
NUDGE = 1e-4
AMONG = 1000
"""How many passages the score that is shown as 0.5 is meant for."""

COVERED = 0.15
"""How fast the shown score rises around half a query covered."""

DIVERSE = 50
"""How many of the first passages are kept apart from each other; comparing more takes longer than it helps."""

LENDING = 3
"""How many of the best turns of a conversation lend to the others."""

SPEAKS_OF_TIME = 2
"""So many words of time are as good as any more."""

SOUGHT: Mapping[Sort, tuple[str, ...]] = {Sort.SKILL: ("skill", "case", "tool"), Sort.RESOURCE: ("document",)}
"""The kinds a query of a sort asks for."""


class Scored(NamedTuple):
    """A passage with its score and what the score is the sum of."""

    mark: Mark
    score: float
    parts: Mapping[str, float]

    def plus(self, **more: float) -> Scored:
        """The same with more parts."""
        given = {name: value for name, value in more.items() if value}
        return Scored(self.mark, self.score + sum(given.values()), {**self.parts, **given}) if given else self


_scored = partial(tuple.__new__, Scored)
"""What makes one of its three parts; by name it takes twice as long."""

Column: TypeAlias = Sequence[float | None]
"""What counts of each passage offered; nothing, where it does not."""


@final
class Lineup(Sequence[Scored]):
    """Passages offered, best first and the newer of equals before the older; each is made when somebody looks at it.

    A search looks at the first few, and of all others only at whose they are.
    """

    def __init__(self, marks: Marks, scores: list[float], parts: Mapping[str, Column]) -> None:
        self._marks, self._parts = marks, parts
        seqs = marks.column("seq")
        order = list(range(len(seqs) - 1, -1, -1))
        if seqs != sorted(seqs):
            order.sort(key=seqs.__getitem__, reverse=True)
        order.sort(key=scores.__getitem__, reverse=True)
        self._order = order
        self.seqs = [seqs[place] for place in order]
        self.scores = [scores[place] for place in order]
        self._made: dict[int, Scored] = {}

    def at(self, places: Iterable[int]) -> list[Scored]:
        """Those at some places, in that order."""
        wanted, made = list(places), self._made
        if missing := [place for place in wanted if place not in made]:
            offered = [self._order[place] for place in missing]
            for place, number, mark in zip(missing, offered, self._marks.some(offered), strict=True):
                parts: dict[str, float] = {}
                for name, column in self._parts.items():
                    if (part := column[number]) is not None:
                        parts[name] = part
                made[place] = _scored((mark, self.scores[place], parts))
        return list(map(made.__getitem__, wanted))

    @overload
    def __getitem__(self, place: int) -> Scored: ...
    @overload
    def __getitem__(self, place: slice) -> list[Scored]: ...
    def __getitem__(self, place: int | slice) -> Scored | list[Scored]:
        places = range(len(self.seqs))[place]
        return self.at(places) if isinstance(places, range) else self.at((places,))[0]

    def __len__(self) -> int:
        return len(self.seqs)

    def __iter__(self) -> Iterator[Scored]:
        return iter(self.at(range(len(self.seqs))))


def seqs_of(scored: Sequence[Scored]) -> Sequence[int]:
    """Which fact each passage belongs to, by its position."""
    return scored.seqs if type(scored) is Lineup else [one.mark.seq for one in scored]


def of_facts(scored: Sequence[Scored], facts: Container[int]) -> list[Scored]:
    """The passages of some facts, in the order they come."""
    places = [place for place, seq in enumerate(seqs_of(scored)) if seq in facts]
    return scored.at(places) if type(scored) is Lineup else [scored[place] for place in places]


def unmeasured(fact: Fact, like: Mark | None = None) -> Mark:
    """A fact that no search offered, as one would mark it; it may be taken to be like another."""
    said = fact.updated_at if fact.said_at is None else fact.said_at
    mark = Mark(fact.seq, 0, said, fact.seq, fact.role, fact.actor)
    return mark if like is None else mark._replace(hub=like.hub, code=like.code)


def ranked(found: Ranked, asked: Asked, settings: Settings, spread: float) -> Sequence[Scored]:
    """Every passage offered, best first; the newer of equals before the older."""
    marks, (dense, cover) = columns(found.marks), fusion(found, settings, spread)
    scores, parts = list(map(add, dense, cover)), dict[str, Column](dense=dense, cover=cover)
    if settings.fusion == FUSED:
        return Lineup(marks, scores, parts)
    worth = settings.rank_talk
    talk = [worth * lent for lent in _lent(marks.column("talk"), scores)]
    scores, parts["talk"] = list(map(add, scores, talk)), talk
    sources = {role: channel(role) for role in set(marks.column("role"))}
    for name, column in _beside(marks, found.named, asked, settings, sources.keys()):
        scores, parts[name] = [score + (more or 0.0) for score, more in zip(scores, column, strict=True)], column
    scored = Lineup(marks, scores, parts)
    if FOREIGN.isdisjoint(sources.values()):
        return scored
    return user_first(scored, [sources[one.mark.role] for one in scored], asked, settings)


def _beside(
    marks: Marks, named: Sequence[str], asked: Asked, settings: Settings, roles: Iterable[str | None]
) -> Iterator[tuple[str, Column]]:
    """What may count beside relevance: being said by the one person who is named, by an assistant, or at a time."""
    if len(named) == 1:
        [person], worth = named, settings.rank_speaker
        yield "speaker", [worth if actor == person else None for actor in marks.column("actor")]
    if ASSISTANT in roles:
        worth = settings.rank_reply if asked.asks_reply else settings.rank_assistant
        yield "role", [worth if role == ASSISTANT else None for role in marks.column("role")]
    if spans := [span for span in map(_bounded, asked.spans) if span is not None]:
        said = marks.column("said_at")
        near = {at: max(timely(at, *span) for span in spans) for at in set(said)}
        worths = {at: settings.rank_time * share if share else None for at, share in near.items()}
        yield "time", [worths[at] for at in said]


def _lent(talks: Sequence[int], scores: list[float]) -> list[float]:
    """How relevant the best turns of the conversation of each passage are on the average."""
    apart = set(talks)
    if len(apart) == len(talks):
        return scores
    several: dict[int, list[float]] = {talk: [] for talk in apart}
    for talk, score in zip(talks, scores, strict=True):
        several[talk].append(score)
    lent = {talk: own[0] if len(own) == 1 else _mean_of_best(own) for talk, own in several.items()}
    return [lent[talk] for talk in talks]


def _mean_of_best(scores: list[float]) -> float:
    best = sorted(scores, reverse=True)[:LENDING]
    return sum(best) / len(best)


def user_first(
    scored: Sequence[Scored], sources: Sequence[Trust], asked: Asked, settings: Settings
) -> list[Scored]:
    """What a tool or a document says goes behind all that users said, but for what it matches that much better than.

    `sources` says where each came from. Only what stands in the way is set back, and no farther than that. A question
    for a document is left alone.
    """
    if not settings.rank_trust or asked.sort is Sort.RESOURCE:
        return list(scored)
    if FOREIGN.isdisjoint(sources):
        return list(scored)
    theirs = [one for one, whose in zip(scored, sources, strict=True) if whose in FOREIGN]
    own = sorted(one.score for one, whose in zip(scored, sources, strict=True) if whose is Trust.USER)
    back: dict[tuple[int, int], float] = {}
    for place, one in enumerate(theirs, 1):
        first = bisect_left(own, one.score - settings.rank_trust)
        if first < len(own) and own[first] <= one.score:
            back[one.mark.seq, one.mark.slot] = own[first] - NUDGE * place - one.score
    return ordered(one.plus(trust=back.get((one.mark.seq, one.mark.slot), 0.0)) for one in scored)


def ordered(scored: Iterable[Scored]) -> list[Scored]:
    """Best first; the newer of equals before the older."""
    return sorted(scored, key=_rank, reverse=True)


def best(scored: Iterable[Scored]) -> Scored:
    """The one that would be first in order."""
    return max(scored, key=_rank)


def before(one: Scored, other: Scored) -> bool:
    """Whether one comes before another."""
    return bool(_rank(one) > _rank(other))


_rank = attrgetter("score", "mark.seq", "mark.slot")


def best_of_facts(scored: Iterable[Scored]) -> list[Scored]:
    """The best passage of each fact, in the order they come."""
    found: dict[int, Scored] = {}
    for one in scored:
        if (seq := one.mark.seq) not in found:
            found[seq] = one
    return list(found.values())


# ----------------------------------------------------------------------------------------------------------------- time


def _bounded(span: Interval) -> tuple[int, int] | None:
    return None if span.start is None or span.end is None else (span.start, span.end)


def timely(said_at: int, start: int, end: int) -> float:
    """How well the time something was said fits a time asked about: inside it, or near a single day.

    The longer the time asked about, the less it tells to lie inside it.
    """
    long = end - start
    if start <= said_at < end:
        return 1.0 if long <= 40 * DAY else 0.5 if long <= 100 * DAY else 0.2 if long <= 400 * DAY else 0.0
    if long > 2 * DAY:
        return 0.0
    away = max(start - said_at, said_at - end)
    return 0.5 if away <= 7 * DAY else 0.2 if away <= 31 * DAY else 0.0


# ------------------------------------------------------------------------------------------------- what the facts tell


def wants_facts(asked: Asked, settings: Settings) -> bool:
    """Whether any part of the score needs more than the index knows."""
    return any((
        settings.rank_recency, settings.rank_importance, settings.rank_salience, settings.rank_hotness,
        settings.rank_entity, settings.rank_when and asked.asks_when, asked.sort in SOUGHT,
    ))  # fmt: skip


def with_facts(
    scored: Sequence[Scored], facts: Mapping[int, Fact], touches: Mapping[str, Touch], asked: Asked, kinds: Ontology,
    settings: Settings, now: int, alive: Mapping[int, float],
) -> list[Scored]:  # fmt: skip
    """The order once what only the facts tell is added: how recent, important, alive, in use, and about whom.

    `alive` is the salience of facts by their positions, where that counts.
    """
    telling = list(_told(facts.values(), touches, asked, kinds, settings, now, alive))
    changed: list[Scored] = []
    for one in scored:
        if (seq := one.mark.seq) in facts:
            more = {part: worths[seq] for part, worths in telling if worths[seq]}
            changed.append(one.plus(**more) if more else one)
    return ordered(changed)


def _told(
    facts: Collection[Fact], touches: Mapping[str, Touch], asked: Asked, kinds: Ontology, settings: Settings, now: int,
    alive: Mapping[int, float],
) -> Iterator[tuple[str, Mapping[int, float]]]:  # fmt: skip
    """What each part that counts at all is worth, by the position of the fact."""

    def each(weight: float, tells: Callable[[Fact], float]) -> Mapping[int, float]:
        return {fact.seq: weight * tells(fact) for fact in facts}

    if settings.rank_recency:
        yield "recency", each(settings.rank_recency, lambda fact: recency(fact, kinds, settings, now))
    if settings.rank_importance:
        yield "importance", each(settings.rank_importance, lambda fact: importance(fact, kinds))
    if settings.rank_salience:
        yield "salience", each(settings.rank_salience, lambda fact: alive.get(fact.seq, 0.0))
    if settings.rank_hotness:
        warm = {thread: heat(touch, now, settings) for thread, touch in touches.items()}
        yield "hotness", each(settings.rank_hotness, lambda fact: warm.get(fact.id, 0.0))
    if settings.rank_entity and (names := {term for name in asked.names for term in terms(name)}):
        yield "entity", each(settings.rank_entity, lambda fact: _share(names, fact.text))
    if sought := SOUGHT.get(asked.sort):
        yield "kind", each(settings.rank_kind, lambda fact: float(fact.kind in sought))
    if asked.asks_when and settings.rank_when:
        yield "when", each(settings.rank_when, lambda fact: _timed(fact.text))


def recency(fact: Fact, kinds: Ontology, settings: Settings, now: int) -> float:
    """1 for what was said just now, half of it after the half-life of its kind."""
    kind = kinds.get(fact.kind)
    days = (kind.half_life_days if kind else None) or settings.recency_days
    said = fact.updated_at if fact.said_at is None else fact.said_at
    return float(2.0 ** (-max(now - said, 0) / (days * DAY)))


def importance(fact: Fact, kinds: Ontology) -> float:
    """What its metadata says it is worth, else what its kind is worth."""
    stated = fact.meta.get("importance")
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated <= 1:
        return float(stated)
    kind = kinds.get(fact.kind)
    return kind.weight if kind else 0.5


def heat(touch: Touch, now: int, settings: Settings) -> float:
    """How much a memory is in use."""
    return hotness(touch.count, touch.last, now, settings.hotness_days)


def _timed(text: str) -> float:
    return time_words(text, SPEAKS_OF_TIME) / SPEAKS_OF_TIME


def _share(names: set[str], text: str) -> float:
    return len(names.intersection(terms(text))) / len(names)


# --------------------------------------------------------------------------------------------- what says the same thing


def alike(a: Mark, b: Mark, mean: float) -> float:
    """How alike two passages are beside what all of their scope have in common."""
    if not a.code or not b.code:
        return 0.0
    if a.code == b.code:
        return 1.0
    shared = mean * mean
    lengths = (1.0 - 2.0 * a.hub + shared) * (1.0 - 2.0 * b.hub + shared)
    return (cosine(a.code, b.code) - a.hub - b.hub + shared) / sqrt(lengths) if lengths > 0.0 else 0.0


def newest_first(scored: Sequence[Scored], asked: Asked, mean: float, settings: Settings) -> list[Scored]:
    """Among the first few, what was said later goes before what the same speaker said alike, and takes its score.

    A question about how things were is left alone.
    """
    few = list(scored[: settings.newest_among])
    if asked.asks_past or len(few) < 2:
        return list(scored)
    scores = [one.score for one in few]
    for low, later in enumerate(few):
        for high, earlier in enumerate(few[:low]):
            above = scores[high] + NUDGE * (low + 1)
            if above > scores[low] and _supersedes(later.mark, earlier.mark):
                same = alike(later.mark, earlier.mark, mean) >= settings.newest_alike
                scores[low] = above if same else scores[low]
    for place, (one, score) in enumerate(zip(few, scores, strict=True)):
        if score > one.score:
            few[place] = one.plus(newer=score - one.score)
    return [*ordered(few), *scored[len(few) :]]


def _supersedes(later: Mark, earlier: Mark) -> bool:
    if later.seq == earlier.seq or later.role != earlier.role or later.actor != earlier.actor:
        return False
    return (later.said_at, later.seq) > (earlier.said_at, earlier.seq)


def diverse(scored: Sequence[Scored], mean: float, settings: Settings) -> list[Scored]:
    """The same, each passage set back by how alike it is to one chosen before it, if the settings ask for it."""
    if not settings.diversity:
        return list(scored)
    left, chosen = list(scored[:DIVERSE]), list[Scored]()
    penalty = dict.fromkeys(range(len(left)), 0.0)
    while penalty:
        place = max(penalty, key=lambda number: left[number].score - penalty[number])
        chosen.append(left[place].plus(diversity=-penalty.pop(place)))
        for number in penalty:
            near = max(alike(left[number].mark, chosen[-1].mark, mean), 0.0)
            penalty[number] = max(penalty[number], settings.diversity * near)
    return [*chosen, *scored[len(left) :]]


# ----------------------------------------------------------------------------------------------------------- how sure


def calibrated(score: float, found: Ranked, settings: Settings) -> float:
    """A score as a number from 0 to 1: about how often a passage with that score is what was asked for."""
    return scale(found, settings)(score)


def scale(found: Ranked, settings: Settings) -> Callable[[float], float]:
    """What makes a number from 0 to 1 of a score.

    Among more passages more score high by chance, so the same score tells less. Without vectors there is only the query
    to measure by: half of it covered is shown as 0.5. The fused score is such a number itself.
    """
    if settings.fusion == FUSED:
        return lambda score: min(max(score / SCALE, 0.0), 1.0)
    if found.near:
        crowd = settings.score_crowd * log(max(found.visible, 1) / AMONG)
        middle, width = settings.score_middle, settings.score_width
        return lambda score: _share_of((score - middle) / width - crowd)
    whole = settings.rank_cover * (1.0 + settings.rank_talk) * sqrt(found.mass)
    return lambda score: _share_of((score / whole - 0.5) / COVERED if whole else 0.0)


def _share_of(odds: float) -> float:
    return 1.0 / (1.0 + exp(min(max(-odds, -60.0), 60.0)))


def confidence(scored: Sequence[Scored], found: Ranked, settings: Settings) -> float:
    """How sure it is that the answer is here: who said it, how much of the query it covers, and how well it scores.

    Where the query names one speaker, what others said speaks against an answer.
    """
    if not scored:
        return 0.0
    covered = min(scored[0].mark.cover / sqrt(found.mass), 1.0) if found.mass else 0.5
    if len(found.named) != 1:
        return _sure(covered, _top(scored), found, settings)
    [person] = found.named
    bare = [score - parts.get("speaker", 0.0) for _, score, parts in scored]
    top = max(bare)
    weights = [exp(score - top) for score in bare]
    theirs = sum([weight for one, weight in zip(scored, weights, strict=True) if one.mark.actor == person])
    return theirs / sum(weights) * _sure(covered, top, found, settings)


def _top(scored: Sequence[Scored]) -> float:
    return scored.scores[0] if type(scored) is Lineup else max([one.score for one in scored])


def _sure(covered: float, top: float, found: Ranked, settings: Settings) -> float:
    return 0.2 + 0.5 * covered + 0.3 * calibrated(top, found, settings)
