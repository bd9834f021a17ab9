"""Passages into an order: relevance, who is asked about, when, who speaks, whom to believe, and what is newest."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import exp, log, sqrt
from typing import NamedTuple

from told.core.almanac import time_words
from told.core.fact import Fact
from told.core.kind import Ontology
from told.core.query import Mark, Ranked, Touch
from told.core.score import cosine
from told.core.text import terms
from told.core.trust import FOREIGN, Trust, channel
from told.core.when import Interval
from told.read.asked import Asked, Sort
from told.read.cache import hotness
from told.read.fuse import FUSED, SCALE, Relevance, fusion
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


def unmeasured(fact: Fact, like: Mark | None = None) -> Mark:
    """A fact that no search offered, as one would mark it; it may be taken to be like another."""
    said = fact.updated_at if fact.said_at is None else fact.said_at
    mark = Mark(fact.seq, 0, said, fact.seq, fact.role, fact.actor)
    return mark if like is None else mark._replace(hub=like.hub, code=like.code)


def ranked(found: Ranked, asked: Asked, settings: Settings, spread: float) -> list[Scored]:
    """Every passage offered, best first; the newer of equals before the older."""
    relevance = fusion(found, settings, spread)
    if settings.fusion == FUSED:
        return ordered(map(_bare, found.marks, relevance))
    lent, share = _lent(found.marks, relevance), settings.rank_talk
    sources = {role: channel(role) for role in {mark.role for mark in found.marks}}
    beside = _beside(found, asked, settings, sources.keys())
    scored: list[Scored] = []
    for mark, (dense, cover) in zip(found.marks, relevance, strict=True):
        talk = share * lent[mark.talk]
        score, parts = dense + cover + talk, {"dense": dense, "cover": cover, "talk": talk}
        for part, tells in beside:
            if (more := tells(mark)) is not None:
                score += more
                parts[part] = more
        scored.append(_scored((mark, score, parts)))
    best = ordered(scored)
    if FOREIGN.isdisjoint(sources.values()):
        return best
    return user_first(best, lambda one: sources[one.mark.role], asked, settings)


def _bare(mark: Mark, relevance: tuple[float, float]) -> Scored:
    dense, cover = relevance
    return Scored(mark, dense + cover, {"dense": dense, "cover": cover})


def _beside(
    found: Ranked, asked: Asked, settings: Settings, roles: Iterable[str | None]
) -> list[tuple[str, Callable[[Mark], float | None]]]:
    """What may count beside relevance: being said by the one person who is named, by an assistant, or at a time."""
    person = found.named[0] if len(found.named) == 1 else None
    by_assistant = settings.rank_reply if asked.asks_reply else settings.rank_assistant
    spans = [span for span in map(_bounded, asked.spans) if span is not None]

    def timed(mark: Mark) -> float | None:
        near = max(timely(mark.said_at, *span) for span in spans)
        return settings.rank_time * near if near else None

    told: list[tuple[str, Callable[[Mark], float | None]]] = []
    if person is not None:
        told.append(("speaker", lambda mark: settings.rank_speaker if mark.actor == person else None))
    if ASSISTANT in roles:
        told.append(("role", lambda mark: by_assistant if mark.role == ASSISTANT else None))
    if spans:
        told.append(("time", timed))
    return told


def _lent(marks: Iterable[Mark], relevance: Relevance) -> dict[int, float]:
    """How relevant the best turns of each conversation are on the average."""
    talks, scores = [mark.talk for mark in marks], [dense + cover for dense, cover in relevance]
    lent = dict(zip(talks, scores, strict=True))
    if len(lent) < len(talks):
        several: defaultdict[int, list[float]] = defaultdict(list)
        for talk, score in zip(talks, scores, strict=True):
            several[talk].append(score)
        lent = {talk: _mean_of_best(scores) for talk, scores in several.items()}
    return lent


def _mean_of_best(scores: list[float]) -> float:
    best = sorted(scores, reverse=True)[:LENDING]
    return sum(best) / len(best)


def user_first(
    scored: Sequence[Scored], source: Callable[[Scored], Trust], asked: Asked, settings: Settings
) -> list[Scored]:
    """What a tool or a document says goes behind all that users said, but for what it matches that much better than.

    Only what stands in the way is set back, and no farther than that. A question for a document is left alone.
    """
    if not settings.rank_trust or asked.sort is Sort.RESOURCE:
        return list(scored)
    theirs = [one for one in scored if source(one) in FOREIGN]
    if not theirs:
        return list(scored)
    own = sorted(one.score for one in scored if source(one) is Trust.USER)
    back: dict[tuple[int, int], float] = {}
    for place, one in enumerate(theirs, 1):
        first = bisect_left(own, one.score - settings.rank_trust)
        if first < len(own) and own[first] <= one.score:
            back[one.mark.seq, one.mark.slot] = own[first] - NUDGE * place - one.score
    return ordered(one.plus(trust=back.get((one.mark.seq, one.mark.slot), 0.0)) for one in scored)


def ordered(scored: Iterable[Scored]) -> list[Scored]:
    """Best first; the newer of equals before the older."""
    return sorted(scored, key=_rank, reverse=True)


def before(one: Scored, other: Scored) -> bool:
    """Whether one comes before another."""
    return _rank(one) > _rank(other)


def _rank(one: Scored) -> tuple[float, int, int]:
    return one.score, one.mark.seq, one.mark.slot


def best_of_facts(scored: Iterable[Scored]) -> list[Scored]:
    """The best passage of each fact, in the order they come."""
    found: dict[int, Scored] = {}
    for one in scored:
        found.setdefault(one.mark.seq, one)
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
    names = {term for name in asked.names for term in terms(name)}
    sought = SOUGHT.get(asked.sort, ())
    changed: list[Scored] = []
    for one in scored:
        fact = facts.get(one.mark.seq)
        if fact is None:
            continue
        fresh, weight = recency(fact, kinds, settings, now), importance(fact, kinds)
        touch = touches.get(fact.id)
        changed.append(one.plus(
            recency=settings.rank_recency * fresh, importance=settings.rank_importance * weight,
            salience=settings.rank_salience * alive.get(fact.seq, 0.0),
            hotness=0.0 if touch is None else settings.rank_hotness * heat(touch, now, settings),
            entity=settings.rank_entity * _share(names, fact.text) if names and settings.rank_entity else 0.0,
            kind=settings.rank_kind if fact.kind in sought else 0.0,
            when=_timed(fact.text) * settings.rank_when if asked.asks_when and settings.rank_when else 0.0,
        ))  # fmt: skip
    return ordered(changed)


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
            if _supersedes(later.mark, earlier.mark) and alike(later.mark, earlier.mark, mean) >= settings.newest_alike:
                scores[low] = max(scores[low], scores[high] + NUDGE * (low + 1))
    raised = [one.plus(newer=score - one.score) for one, score in zip(few, scores, strict=True)]
    return [*ordered(raised), *scored[len(few) :]]


def _supersedes(later: Mark, earlier: Mark) -> bool:
    same = (later.role, later.actor) == (earlier.role, earlier.actor)
    return same and later.seq != earlier.seq and (later.said_at, later.seq) > (earlier.said_at, earlier.seq)


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
    """A score as a number from 0 to 1: about how often a passage with that score is what was asked for.

    Among more passages more score high by chance, so the same score tells less. Without vectors there is only the query
    to measure by: half of it covered is shown as 0.5. The fused score is such a number itself.
    """
    if settings.fusion == FUSED:
        return min(max(score / SCALE, 0.0), 1.0)
    if found.near:
        crowd = settings.score_crowd * log(max(found.visible, 1) / AMONG)
        odds = (score - settings.score_middle) / settings.score_width - crowd
    else:
        whole = settings.rank_cover * (1.0 + settings.rank_talk) * sqrt(found.mass)
        odds = (score / whole - 0.5) / COVERED if whole else 0.0
    return 1.0 / (1.0 + exp(min(max(-odds, -60.0), 60.0)))


def confidence(scored: Sequence[Scored], found: Ranked, settings: Settings) -> float:
    """How sure it is that the answer is here: who said it, how much of the query it covers, and how well it scores.

    Where the query names one speaker, what others said speaks against an answer.
    """
    if not scored:
        return 0.0
    covered = min(scored[0].mark.cover / sqrt(found.mass), 1.0) if found.mass else 0.5
    person = found.named[0] if len(found.named) == 1 else None
    bare = [one.score - one.parts.get("speaker", 0.0) - one.parts.get("newer", 0.0) for one in scored]
    top = max(bare)
    sure = 0.2 + 0.5 * covered + 0.3 * calibrated(top, found, settings)
    if person is None:
        return sure
    weights = [exp(score - top) for score in bare]
    theirs = sum(weight for one, weight in zip(scored, weights, strict=True) if one.mark.actor == person)
    return theirs / sum(weights) * sure
