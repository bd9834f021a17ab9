"""Rank passages by relevance, speaker, time, trust and recency."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, exp2, log, log1p, sqrt
from operator import add, attrgetter
from typing import NamedTuple, TypeAlias, final, overload

from told.model.beliefs import EXTERNAL_SOURCES, Trust, trust_of_channel
from told.model.fact import Fact
from told.model.kind import Ontology
from told.model.query import AccessCount, Candidate, Candidates, IndexResult, to_candidates
from told.model.salience import fuse_scores
from told.model.scoring import cosine
from told.retrieval.intent import AnswerSource, QueryIntent
from told.settings import Settings
from told.text.date_lexicon import count_time_words
from told.text.dates import Interval
from told.text.tokens import extract_terms

SCORE_SCALE = 10.0
FUSED_METHOD = "fused"
"""The fusion method that scores by similarity, recency and importance only."""

BM25_HALF = 4.0
"""The BM25 score that maps to half of the maximum."""

RelevanceColumns: TypeAlias = tuple[list[float], list[float]]
"""The vector part and the word part of each candidate's relevance."""


def compute_relevance(
    index_result: IndexResult, settings: Settings, spread: float
) -> RelevanceColumns:
    """Return the relevance of all candidates, using the configured fusion method."""
    return FUSION_METHODS[settings.fusion](index_result, settings, spread)


def fuse_weighted(index_result: IndexResult, settings: Settings, spread: float) -> RelevanceColumns:
    """Weight the cosine above average, in spreads, and the share of the query covered."""
    dense_weight, cover_weight = settings.ranking.dense / spread, settings.ranking.cover
    candidates = to_candidates(index_result.candidates)
    dense = [
        0.0 if dense is None else dense_weight * dense for dense in candidates.get_column("dense")
    ]
    return dense, [cover_weight * cover for cover in candidates.get_column("cover")]


def fuse_rrf(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """Fuse by reciprocal rank: a high rank in either list counts, and in both counts more."""
    k = settings.ranking.rrf_k
    max_score = (bool(index_result.by_vector) + bool(index_result.by_terms)) / (k + 1)

    def score_rank(rank: int | None) -> float:
        return SCORE_SCALE / (k + rank) / max_score if rank else 0.0

    candidates = to_candidates(index_result.candidates)
    return list(map(score_rank, candidates.get_column("near"))), list(
        map(score_rank, candidates.get_column("words"))
    )


def fuse_anchored(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """Combine the cosine with a saturating BM25 score, weighted by `fusion_alpha`."""
    alpha, candidates = settings.ranking.fusion_alpha, to_candidates(index_result.candidates)
    dense = [
        SCORE_SCALE * alpha * max(cosine or 0.0, 0.0) for cosine in candidates.get_column("cosine")
    ]
    return dense, [
        SCORE_SCALE * (1.0 - alpha) * (bm25 / (bm25 + BM25_HALF))
        for bm25 in candidates.get_column("bm25")
    ]


def fuse_tiered(index_result: IndexResult, _: Settings, __: float) -> RelevanceColumns:
    """Return the similarity part of the tiered score: cosine, or query coverage without vectors."""
    full_cover, candidates = sqrt(index_result.total_weight), to_candidates(index_result.candidates)

    def score_cover(cover: float) -> float:
        return 0.0 if index_result.by_vector or not full_cover else min(cover / full_cover, 1.0)

    dense = [
        SCORE_SCALE * fuse_scores(similarity=max(cosine or 0.0, 0.0))
        for cosine in candidates.get_column("cosine")
    ]
    return dense, [
        SCORE_SCALE * fuse_scores(similarity=score_cover(cover))
        for cover in candidates.get_column("cover")
    ]


FUSION_METHODS: Mapping[str, Callable[[IndexResult, Settings, float], RelevanceColumns]] = {
    "weighted": fuse_weighted,
    "rrf": fuse_rrf,
    "anchored": fuse_anchored,
    FUSED_METHOD: fuse_tiered,
}


DAY_US = 86_400_000_000
ASSISTANT = "assistant"
SCORE_EPSILON = 1e-4
REFERENCE_PASSAGES = 1000
"""Number of passages at which the calibration's midpoint score maps to 0.5."""

COVER_WIDTH = 0.15
"""Width of the calibration curve around half a query covered."""

DIVERSITY_DEPTH = 50
"""Number of leading passages to diversify; comparing more costs more than it helps."""

TALK_TOP_TURNS = 3
"""Number of a conversation's best turns that raise the score of the others."""

SPAN_SCORES = ((40, 1.0), (100, 0.5), (400, 0.2))
"""Score of a time inside a span of at most this many days."""

DISTANCE_SCORES = ((7, 0.5), (31, 0.2))
"""Score of a time at most this many days before or after a short span."""

MAX_TIME_WORDS = 2
"""Number of time words at which their bonus saturates."""

KINDS_BY_SOURCE: Mapping[AnswerSource, tuple[str, ...]] = {
    AnswerSource.SKILL: ("skill", "case", "tool"),
    AnswerSource.RESOURCE: ("document",),
}
"""The kinds a query for an answer source prefers."""


class ScoredCandidate(NamedTuple):
    """A passage with its score and the parts that add up to it."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]

    def add_parts(self, **more: float) -> ScoredCandidate:
        """Return a copy with more score parts."""
        nonzero = {name: value for name, value in more.items() if value}
        return (
            ScoredCandidate(
                self.candidate, self.score + sum(nonzero.values()), {**self.parts, **nonzero}
            )
            if nonzero
            else self
        )


_make_scored = partial(tuple.__new__, ScoredCandidate)
"""Build a ScoredCandidate from a tuple; twice as fast as its constructor."""

ScoreColumn: TypeAlias = Sequence[float | None]
"""One score part for every candidate; None where it does not apply."""


@final
class RankedCandidates(Sequence[ScoredCandidate]):
    """Candidates in rank order, newest first among equals; items are built on access.

    A search looks at the first few items and only needs the seqs of the others.
    """

    def __init__(
        self, candidates: Candidates, scores: list[float], parts: Mapping[str, ScoreColumn]
    ) -> None:
        self._candidates, self._parts = candidates, parts
        seqs = candidates.get_column("seq")
        order = list(range(len(seqs) - 1, -1, -1))
        if seqs != sorted(seqs):
            order.sort(key=seqs.__getitem__, reverse=True)
        order.sort(key=scores.__getitem__, reverse=True)
        self._order = order
        self.seqs = [seqs[position] for position in order]
        self.scores = [scores[position] for position in order]
        self._cache: dict[int, ScoredCandidate] = {}

    def get_many(self, places: Iterable[int]) -> list[ScoredCandidate]:
        """Return the items at these places, in that order."""
        positions, cache = list(places), self._cache
        if missing := [position for position in positions if position not in cache]:
            numbers = [self._order[position] for position in missing]
            for position, number, candidate in zip(
                missing, numbers, self._candidates.take(numbers), strict=True
            ):
                parts: dict[str, float] = {}
                for name, column in self._parts.items():
                    if (part := column[number]) is not None:
                        parts[name] = part
                cache[position] = _make_scored((candidate, self.scores[position], parts))
        return list(map(cache.__getitem__, positions))

    @overload
    def __getitem__(self, index: int) -> ScoredCandidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[ScoredCandidate]: ...
    def __getitem__(self, index: int | slice) -> ScoredCandidate | list[ScoredCandidate]:
        positions = range(len(self.seqs))[index]
        return (
            self.get_many(positions)
            if isinstance(positions, range)
            else self.get_many((positions,))[0]
        )

    def __len__(self) -> int:
        return len(self.seqs)

    def __iter__(self) -> Iterator[ScoredCandidate]:
        return iter(self.get_many(range(len(self.seqs))))


def list_seqs(scored: Sequence[ScoredCandidate]) -> Sequence[int]:
    """Return the fact seq of each passage."""
    return (
        scored.seqs if type(scored) is RankedCandidates else [item.candidate.seq for item in scored]
    )


def filter_by_seq(scored: Sequence[ScoredCandidate], seqs: Container[int]) -> list[ScoredCandidate]:
    """Return the passages of some facts, in order."""
    positions = [position for position, seq in enumerate(list_seqs(scored)) if seq in seqs]
    return (
        scored.get_many(positions)
        if type(scored) is RankedCandidates
        else [scored[position] for position in positions]
    )


def build_unscored(fact: Fact, like: Candidate | None = None) -> Candidate:
    """Build a candidate for a fact the index did not return; copy the vector data of `like`."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    candidate = Candidate(fact.seq, 0, said_at, fact.seq, fact.role, fact.actor)
    return candidate if like is None else candidate._replace(hub=like.hub, code=like.code)


def rank_candidates(
    index_result: IndexResult, intent: QueryIntent, settings: Settings, spread: float
) -> Sequence[ScoredCandidate]:
    """Return all candidates, best first, newest first among equals."""
    candidates = to_candidates(index_result.candidates)
    dense, cover = compute_relevance(index_result, settings, spread)
    scores, parts = list(map(add, dense, cover)), dict[str, ScoreColumn](dense=dense, cover=cover)
    if settings.fusion == FUSED_METHOD:
        return RankedCandidates(candidates, scores, parts)
    bonus = settings.ranking.talk
    talk = [
        bonus * average for average in _average_talk_scores(candidates.get_column("talk"), scores)
    ]
    scores, parts["talk"] = list(map(add, scores, talk)), talk
    sources = {role: trust_of_channel(role) for role in set(candidates.get_column("role"))}
    for name, column in _iter_bonuses(
        candidates, index_result.named_speakers, intent, settings, sources.keys()
    ):
        scores = [score + (part or 0.0) for score, part in zip(scores, column, strict=True)]
        parts[name] = column
    scored = RankedCandidates(candidates, scores, parts)
    if EXTERNAL_SOURCES.isdisjoint(sources.values()):
        return scored
    return put_users_first(
        scored, [sources[item.candidate.role] for item in scored], intent, settings
    )


def _iter_bonuses(
    candidates: Candidates,
    named: Sequence[str],
    intent: QueryIntent,
    settings: Settings,
    roles: Iterable[str | None],
) -> Iterator[tuple[str, ScoreColumn]]:
    """Iterate over score columns for the named speaker, assistant turns and time."""
    if len(named) == 1:
        [speaker], bonus = named, settings.ranking.speaker
        yield (
            "speaker",
            [bonus if actor == speaker else None for actor in candidates.get_column("actor")],
        )
    if ASSISTANT in roles:
        bonus = settings.ranking.reply if intent.asks_reply else settings.ranking.assistant
        yield (
            "role",
            [bonus if role == ASSISTANT else None for role in candidates.get_column("role")],
        )
    if spans := [span for span in map(_get_bounds, intent.spans) if span is not None]:
        said_times = candidates.get_column("said_at")
        fit_by_time = {
            at: max(score_time_fit(at, *span) for span in spans) for at in set(said_times)
        }
        bonus_by_time = {
            at: settings.ranking.time * share if share else None
            for at, share in fit_by_time.items()
        }
        yield "time", [bonus_by_time[at] for at in said_times]


def _average_talk_scores(talks: Sequence[int], scores: list[float]) -> list[float]:
    """Return the average score of the best turns in each passage's conversation."""
    distinct_talks = set(talks)
    if len(distinct_talks) == len(talks):
        return scores
    scores_by_talk: dict[int, list[float]] = {talk: [] for talk in distinct_talks}
    for talk, score in zip(talks, scores, strict=True):
        scores_by_talk[talk].append(score)
    averages = {
        talk: talk_scores[0] if len(talk_scores) == 1 else _average_best(talk_scores)
        for talk, talk_scores in scores_by_talk.items()
    }
    return [averages[talk] for talk in talks]


def _average_best(scores: list[float]) -> float:
    best = sorted(scores, reverse=True)[:TALK_TOP_TURNS]
    return sum(best) / len(best)


def put_users_first(
    scored: Sequence[ScoredCandidate],
    sources: Sequence[Trust],
    intent: QueryIntent,
    settings: Settings,
) -> list[ScoredCandidate]:
    """Rank external sources behind user statements unless they match much better.

    `sources` holds the trust of each item. An item moves back only as far as needed; queries for a
    document are left alone.
    """
    if not settings.ranking.trust or intent.answer_source is AnswerSource.RESOURCE:
        return list(scored)
    if EXTERNAL_SOURCES.isdisjoint(sources):
        return list(scored)
    foreign = [
        item for item, trust in zip(scored, sources, strict=True) if trust in EXTERNAL_SOURCES
    ]
    user_scores = sorted(
        item.score for item, trust in zip(scored, sources, strict=True) if trust is Trust.USER
    )
    penalties: dict[tuple[int, int], float] = {}
    for position, item in enumerate(foreign, 1):
        lowest = bisect_left(user_scores, item.score - settings.ranking.trust)
        if lowest < len(user_scores) and user_scores[lowest] <= item.score:
            penalties[item.candidate.seq, item.candidate.slot] = (
                user_scores[lowest] - SCORE_EPSILON * position - item.score
            )
    return sort_by_score(
        item.add_parts(trust=penalties.get((item.candidate.seq, item.candidate.slot), 0.0))
        for item in scored
    )


def sort_by_score(scored: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Sort best first, newest first among equals."""
    return sorted(scored, key=_sort_key, reverse=True)


def pick_best(scored: Iterable[ScoredCandidate]) -> ScoredCandidate:
    """Return the item that ranks first."""
    return max(scored, key=_sort_key)


def is_ranked_before(item: ScoredCandidate, other: ScoredCandidate) -> bool:
    """Return True if `item` ranks before `other`."""
    return bool(_sort_key(item) > _sort_key(other))


_sort_key = attrgetter("score", "candidate.seq", "candidate.slot")


def keep_best_per_fact(scored: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the first passage of each fact, in order."""
    best_by_seq: dict[int, ScoredCandidate] = {}
    for item in scored:
        if (seq := item.candidate.seq) not in best_by_seq:
            best_by_seq[seq] = item
    return list(best_by_seq.values())


# Time


def _get_bounds(span: Interval) -> tuple[int, int] | None:
    return None if span.start is None or span.end is None else (span.start, span.end)


def score_time_fit(said_at: int, start: int, end: int) -> float:
    """Return how well a time fits a span: inside it, or near a span of at most two days.

    The longer the span, the lower the score.
    """
    length = end - start
    if start <= said_at < end:
        return next((score for days, score in SPAN_SCORES if length <= days * DAY_US), 0.0)
    if length > 2 * DAY_US:
        return 0.0
    distance = max(start - said_at, said_at - end)
    return next((score for days, score in DISTANCE_SCORES if distance <= days * DAY_US), 0.0)


# Facts


def needs_facts(intent: QueryIntent, settings: Settings) -> bool:
    """Return True if any enabled score part needs data beyond the index."""
    return any(
        (
            settings.ranking.recency,
            settings.ranking.importance,
            settings.ranking.salience,
            settings.ranking.hotness,
            settings.ranking.entity,
            settings.ranking.when and intent.asks_when,
            intent.answer_source in KINDS_BY_SOURCE,
        )
    )


def add_fact_scores(
    scored: Sequence[ScoredCandidate],
    facts: Mapping[int, Fact],
    access_counts: Mapping[str, AccessCount],
    intent: QueryIntent,
    kinds: Ontology,
    settings: Settings,
    now: int,
    salience: Mapping[int, float],
) -> list[ScoredCandidate]:
    """Add the score parts that need facts, such as recency and salience (by seq), and sort."""
    score_parts = list(
        _iter_fact_scores(facts.values(), access_counts, intent, kinds, settings, now, salience)
    )
    rescored: list[ScoredCandidate] = []
    for item in scored:
        if (seq := item.candidate.seq) in facts:
            parts = {
                part: part_scores[seq] for part, part_scores in score_parts if part_scores[seq]
            }
            rescored.append(item.add_parts(**parts) if parts else item)
    return sort_by_score(rescored)


def _iter_fact_scores(
    facts: Collection[Fact],
    access_counts: Mapping[str, AccessCount],
    intent: QueryIntent,
    kinds: Ontology,
    settings: Settings,
    now: int,
    salience: Mapping[int, float],
) -> Iterator[tuple[str, Mapping[int, float]]]:
    """Iterate over the enabled fact-based parts with their scores by seq."""

    def score_all(weight: float, score_fact: Callable[[Fact], float]) -> Mapping[int, float]:
        return {fact.seq: weight * score_fact(fact) for fact in facts}

    if settings.ranking.recency:
        weight = settings.ranking.recency
        yield "recency", score_all(weight, lambda fact: score_recency(fact, kinds, settings, now))
    if settings.ranking.importance:
        weight = settings.ranking.importance
        yield "importance", score_all(weight, lambda fact: score_importance(fact, kinds))
    if settings.ranking.salience:
        weight = settings.ranking.salience
        yield "salience", score_all(weight, lambda fact: salience.get(fact.seq, 0.0))
    if settings.ranking.hotness:
        weight = settings.ranking.hotness
        hotness_by_thread = {
            thread: score_hotness(access_count, now, settings)
            for thread, access_count in access_counts.items()
        }
        yield "hotness", score_all(weight, lambda fact: hotness_by_thread.get(fact.id, 0.0))
    if settings.ranking.entity and (
        names := {term for name in intent.names for term in extract_terms(name)}
    ):
        weight = settings.ranking.entity
        yield "entity", score_all(weight, lambda fact: _score_name_overlap(names, fact.text))
    if wanted_kinds := KINDS_BY_SOURCE.get(intent.answer_source):
        yield (
            "kind",
            score_all(settings.ranking.kind, lambda fact: float(fact.kind in wanted_kinds)),
        )
    if intent.asks_when and settings.ranking.when:
        yield "when", score_all(settings.ranking.when, lambda fact: _score_time_words(fact.text))


def score_recency(fact: Fact, kinds: Ontology, settings: Settings, now: int) -> float:
    """Return 1 for a statement made now, halving with the half-life of its kind."""
    kind = kinds.get(fact.kind)
    days = (kind.half_life_days if kind else None) or settings.ranking.recency_days
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    return float(2.0 ** (-max(now - said_at, 0) / (days * DAY_US)))


def score_importance(fact: Fact, kinds: Ontology) -> float:
    """Return the importance in the metadata, else the weight of the kind."""
    stated = fact.meta.get("importance")
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated <= 1:
        return float(stated)
    kind = kinds.get(fact.kind)
    return kind.weight if kind else 0.5


def score_hotness(access_count: AccessCount, now: int, settings: Settings) -> float:
    """Return how much a memory is in use."""
    return compute_hotness(
        access_count.count, access_count.last, now, settings.ranking.hotness_days
    )


def compute_hotness(count: int, last: int, now: int, half_life_days: float = 7.0) -> float:
    """Return how much a memory is in use, from 0 to 1; it grows with accesses and decays."""
    volume = log1p(max(count, 0))
    return volume / (1 + volume) * exp2(-max(now - last, 0) / (half_life_days * DAY_US))


def _score_time_words(text: str) -> float:
    return count_time_words(text, MAX_TIME_WORDS) / MAX_TIME_WORDS


def _score_name_overlap(names: set[str], text: str) -> float:
    return len(names.intersection(extract_terms(text))) / len(names)


# Similarity


def measure_similarity(a: Candidate, b: Candidate, mean: float) -> float:
    """Return the similarity of two passages with the scope's mean vector removed."""
    if not a.code or not b.code:
        return 0.0
    if a.code == b.code:
        return 1.0
    mean_squared = mean * mean
    lengths = (1.0 - 2.0 * a.hub + mean_squared) * (1.0 - 2.0 * b.hub + mean_squared)
    return (
        (cosine(a.code, b.code) - a.hub - b.hub + mean_squared) / sqrt(lengths)
        if lengths > 0.0
        else 0.0
    )


def put_newest_first(
    scored: Sequence[ScoredCandidate], intent: QueryIntent, mean: float, settings: Settings
) -> list[ScoredCandidate]:
    """Rank a newer similar statement by the same speaker before the older, among the first few.

    Queries about the past are left alone.
    """
    head = list(scored[: settings.ranking.newest_among])
    if intent.asks_past or len(head) < 2:
        return list(scored)
    scores = [item.score for item in head]
    for low, later in enumerate(head):
        for high, earlier in enumerate(head[:low]):
            raised_score = scores[high] + SCORE_EPSILON * (low + 1)
            if raised_score > scores[low] and _is_newer_statement(
                later.candidate, earlier.candidate
            ):
                is_same = (
                    measure_similarity(later.candidate, earlier.candidate, mean)
                    >= settings.ranking.newest_alike
                )
                scores[low] = raised_score if is_same else scores[low]
    for position, (item, score) in enumerate(zip(head, scores, strict=True)):
        if score > item.score:
            head[position] = item.add_parts(newer=score - item.score)
    return [*sort_by_score(head), *scored[len(head) :]]


def _is_newer_statement(later: Candidate, earlier: Candidate) -> bool:
    if later.seq == earlier.seq or later.role != earlier.role or later.actor != earlier.actor:
        return False
    return (later.said_at, later.seq) > (earlier.said_at, earlier.seq)


def diversify(
    scored: Sequence[ScoredCandidate], mean: float, settings: Settings
) -> list[ScoredCandidate]:
    """Lower each passage by its similarity to those chosen before, if enabled."""
    if not settings.ranking.diversity:
        return list(scored)
    remaining, chosen = list(scored[:DIVERSITY_DEPTH]), list[ScoredCandidate]()
    penalty = dict.fromkeys(range(len(remaining)), 0.0)
    while penalty:
        position = max(penalty, key=lambda number: remaining[number].score - penalty[number])
        chosen.append(remaining[position].add_parts(diversity=-penalty.pop(position)))
        for number in penalty:
            similarity = max(
                measure_similarity(remaining[number].candidate, chosen[-1].candidate, mean), 0.0
            )
            penalty[number] = max(penalty[number], settings.ranking.diversity * similarity)
    return [*chosen, *scored[len(remaining) :]]


# Calibration


def calibrate_score(score: float, index_result: IndexResult, settings: Settings) -> float:
    """Map a score to the probability, from 0 to 1, that the passage is the answer."""
    return build_calibration(index_result, settings)(score)


def build_calibration(index_result: IndexResult, settings: Settings) -> Callable[[float], float]:
    """Return a function that maps scores to 0..1.

    Among more passages more score high by chance, so the same score says less. Without vectors,
    half of the query covered maps to 0.5. A fused score is already calibrated.
    """
    if settings.fusion == FUSED_METHOD:
        return lambda score: min(max(score / SCORE_SCALE, 0.0), 1.0)
    if index_result.by_vector:
        crowd = settings.ranking.score_crowd * log(
            max(index_result.passage_count, 1) / REFERENCE_PASSAGES
        )
        middle, width = settings.ranking.score_middle, settings.ranking.score_width
        return lambda score: _sigmoid((score - middle) / width - crowd)
    full_score = (
        settings.ranking.cover * (1.0 + settings.ranking.talk) * sqrt(index_result.total_weight)
    )
    return lambda score: _sigmoid((score / full_score - 0.5) / COVER_WIDTH if full_score else 0.0)


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + exp(min(max(-odds, -60.0), 60.0)))


def estimate_confidence(
    scored: Sequence[ScoredCandidate], index_result: IndexResult, settings: Settings
) -> float:
    """Estimate the probability that the answer was found.

    If the query names one speaker, passages by others lower it.
    """
    if not scored:
        return 0.0
    covered = (
        min(scored[0].candidate.cover / sqrt(index_result.total_weight), 1.0)
        if index_result.total_weight
        else 0.5
    )
    if len(index_result.named_speakers) != 1:
        return _combine_confidence(covered, _get_top_score(scored), index_result, settings)
    [speaker] = index_result.named_speakers
    bare_scores = [score - parts.get("speaker", 0.0) for _, score, parts in scored]
    top = max(bare_scores)
    weights = [exp(score - top) for score in bare_scores]
    speaker_weight = sum(
        [
            weight
            for item, weight in zip(scored, weights, strict=True)
            if item.candidate.actor == speaker
        ]
    )
    return speaker_weight / sum(weights) * _combine_confidence(covered, top, index_result, settings)


def _get_top_score(scored: Sequence[ScoredCandidate]) -> float:
    return (
        scored.scores[0]
        if type(scored) is RankedCandidates
        else max([item.score for item in scored])
    )


def _combine_confidence(
    covered: float, top: float, index_result: IndexResult, settings: Settings
) -> float:
    return 0.2 + 0.5 * covered + 0.3 * calibrate_score(top, index_result, settings)
