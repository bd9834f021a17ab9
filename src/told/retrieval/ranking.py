"""Passages into an order: relevance, who is asked about, when, who speaks, whom to believe, and what is newest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, log, sqrt
from operator import add, attrgetter
from typing import NamedTuple, TypeAlias, final, overload

from told.model.beliefs import EXTERNAL_SOURCES, Trust, trust_of_channel
from told.model.fact import Fact
from told.model.kind import Ontology
from told.model.query import AccessCount, Candidate, Candidates, IndexResult, to_candidates
from told.model.salience import fuse_scores
from told.model.scoring import cosine
from told.retrieval.access_log import compute_hotness
from told.retrieval.intent import AnswerSource, QueryIntent
from told.settings import Settings
from told.text.date_lexicon import count_time_words
from told.text.dates import Interval
from told.text.tokens import extract_terms

SCORE_SCALE = 10.0
FUSED_METHOD = "fused"
"""The way of fusing by which nothing counts but how similar, recent and important something is."""

BM25_HALF = 4.0
"""The BM25 score that is half of what any could be worth."""

RelevanceColumns: TypeAlias = tuple[list[float], list[float]]
"""What the vectors of the passages offered bring to their relevance, and what their words do."""


def compute_relevance(
    index_result: IndexResult, settings: Settings, spread: float
) -> RelevanceColumns:
    """How relevant everything offered is, by the way of fusing that the settings name."""
    return FUSION_METHODS[settings.fusion](index_result, settings, spread)


def fuse_weighted(index_result: IndexResult, settings: Settings, spread: float) -> RelevanceColumns:
    """How many spreads nearer than the average, and how much of the query is covered."""
    dense_weight, cover_weight = settings.rank_dense / spread, settings.rank_cover
    candidates = to_candidates(index_result.candidates)
    dense = [
        0.0 if dense is None else dense_weight * dense for dense in candidates.get_column("dense")
    ]
    return dense, [cover_weight * cover for cover in candidates.get_column("cover")]


def fuse_rrf(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """Reciprocal rank fusion: a place near the top of either list counts, and a place in both counts more."""
    k = settings.rrf_k
    max_score = (bool(index_result.by_vector) + bool(index_result.by_terms)) / (k + 1)

    def score_rank(rank: int | None) -> float:
        return SCORE_SCALE / (k + rank) / max_score if rank else 0.0

    candidates = to_candidates(index_result.candidates)
    return list(map(score_rank, candidates.get_column("near"))), list(
        map(score_rank, candidates.get_column("words"))
    )


def fuse_anchored(index_result: IndexResult, settings: Settings, _: float) -> RelevanceColumns:
    """The vector leads and the words help: so much of the cosine, and the rest of a BM25 that saturates."""
    alpha, candidates = settings.fusion_alpha, to_candidates(index_result.candidates)
    dense = [
        SCORE_SCALE * alpha * max(cosine or 0.0, 0.0) for cosine in candidates.get_column("cosine")
    ]
    return dense, [
        SCORE_SCALE * (1.0 - alpha) * (bm25 / (bm25 + BM25_HALF))
        for bm25 in candidates.get_column("bm25")
    ]


def fuse_tiered(index_result: IndexResult, _: Settings, __: float) -> RelevanceColumns:
    """What similarity brings to the score of the tiers: the cosine, or without vectors the share of the query held."""
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
    "weighted": fuse_weighted, "rrf": fuse_rrf, "anchored": fuse_anchored, FUSED_METHOD: fuse_tiered,
}  # fmt: skip


DAY_US = 86_400_000_000
ASSISTANT = "assistant"
SCORE_EPSILON = 1e-4
REFERENCE_PASSAGES = 1000
"""How many passages the score that is shown as 0.5 is meant for."""

COVER_WIDTH = 0.15
"""How fast the shown score rises around half a query covered."""

DIVERSITY_DEPTH = 50
"""How many of the first passages are kept apart from each other; comparing more takes longer than it helps."""

TALK_TOP_TURNS = 3
"""How many of the best turns of a conversation lend to the others."""

MAX_TIME_WORDS = 2
"""So many words of time are as good as any more."""

KINDS_BY_SOURCE: Mapping[AnswerSource, tuple[str, ...]] = {
    AnswerSource.SKILL: ("skill", "case", "tool"),
    AnswerSource.RESOURCE: ("document",),
}
"""The kinds a query of a sort asks for."""


class ScoredCandidate(NamedTuple):
    """A passage with its score and what the score is the sum of."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]

    def add_parts(self, **more: float) -> ScoredCandidate:
        """The same with more parts."""
        nonzero = {name: value for name, value in more.items() if value}
        return (
            ScoredCandidate(
                self.candidate, self.score + sum(nonzero.values()), {**self.parts, **nonzero}
            )
            if nonzero
            else self
        )


_make_scored = partial(tuple.__new__, ScoredCandidate)
"""What makes one of its three parts; by name it takes twice as long."""

ScoreColumn: TypeAlias = Sequence[float | None]
"""What counts of each passage offered; nothing, where it does not."""


@final
class RankedCandidates(Sequence[ScoredCandidate]):
    """Passages offered, best first and the newer of equals before the older; each is made when somebody looks at it.

    A search looks at the first few, and of all others only at whose they are.
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
        """Those at some places, in that order."""
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
    """Which fact each passage belongs to, by its position."""
    return (
        scored.seqs if type(scored) is RankedCandidates else [item.candidate.seq for item in scored]
    )


def filter_by_seq(scored: Sequence[ScoredCandidate], seqs: Container[int]) -> list[ScoredCandidate]:
    """The passages of some facts, in the order they come."""
    positions = [position for position, seq in enumerate(list_seqs(scored)) if seq in seqs]
    return (
        scored.get_many(positions)
        if type(scored) is RankedCandidates
        else [scored[position] for position in positions]
    )


def build_unscored(fact: Fact, like: Candidate | None = None) -> Candidate:
    """A fact that no search offered, as one would mark it; it may be taken to be like another."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    candidate = Candidate(fact.seq, 0, said_at, fact.seq, fact.role, fact.actor)
    return candidate if like is None else candidate._replace(hub=like.hub, code=like.code)


def rank_candidates(
    index_result: IndexResult, intent: QueryIntent, settings: Settings, spread: float
) -> Sequence[ScoredCandidate]:
    """Every passage offered, best first; the newer of equals before the older."""
    candidates, (dense, cover) = (
        to_candidates(index_result.candidates),
        compute_relevance(index_result, settings, spread),
    )
    scores, parts = list(map(add, dense, cover)), dict[str, ScoreColumn](dense=dense, cover=cover)
    if settings.fusion == FUSED_METHOD:
        return RankedCandidates(candidates, scores, parts)
    bonus = settings.rank_talk
    talk = [
        bonus * average for average in _average_talk_scores(candidates.get_column("talk"), scores)
    ]
    scores, parts["talk"] = list(map(add, scores, talk)), talk
    sources = {role: trust_of_channel(role) for role in set(candidates.get_column("role"))}
    for name, column in _iter_bonuses(
        candidates, index_result.named_speakers, intent, settings, sources.keys()
    ):
        scores, parts[name] = (
            [score + (part or 0.0) for score, part in zip(scores, column, strict=True)],
            column,
        )
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
    """What may count beside relevance: being said by the one person who is named, by an assistant, or at a time."""
    if len(named) == 1:
        [speaker], bonus = named, settings.rank_speaker
        yield (
            "speaker",
            [bonus if actor == speaker else None for actor in candidates.get_column("actor")],
        )
    if ASSISTANT in roles:
        bonus = settings.rank_reply if intent.asks_reply else settings.rank_assistant
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
            at: settings.rank_time * share if share else None for at, share in fit_by_time.items()
        }
        yield "time", [bonus_by_time[at] for at in said_times]


def _average_talk_scores(talks: Sequence[int], scores: list[float]) -> list[float]:
    """How relevant the best turns of the conversation of each passage are on the average."""
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
    """What a tool or a document says goes behind all that users said, but for what it matches that much better than.

    `sources` says where each came from. Only what stands in the way is set back, and no farther than that. A question
    for a document is left alone.
    """
    if not settings.rank_trust or intent.answer_source is AnswerSource.RESOURCE:
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
        lowest = bisect_left(user_scores, item.score - settings.rank_trust)
        if lowest < len(user_scores) and user_scores[lowest] <= item.score:
            penalties[item.candidate.seq, item.candidate.slot] = (
                user_scores[lowest] - SCORE_EPSILON * position - item.score
            )
    return sort_by_score(
        item.add_parts(trust=penalties.get((item.candidate.seq, item.candidate.slot), 0.0))
        for item in scored
    )


def sort_by_score(scored: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Best first; the newer of equals before the older."""
    return sorted(scored, key=_sort_key, reverse=True)


def pick_best(scored: Iterable[ScoredCandidate]) -> ScoredCandidate:
    """The one that would be first in order."""
    return max(scored, key=_sort_key)


def is_ranked_before(item: ScoredCandidate, other: ScoredCandidate) -> bool:
    """Whether one comes before another."""
    return bool(_sort_key(item) > _sort_key(other))


_sort_key = attrgetter("score", "candidate.seq", "candidate.slot")


def keep_best_per_fact(scored: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """The best passage of each fact, in the order they come."""
    best_by_seq: dict[int, ScoredCandidate] = {}
    for item in scored:
        if (seq := item.candidate.seq) not in best_by_seq:
            best_by_seq[seq] = item
    return list(best_by_seq.values())


# ----------------------------------------------------------------------------------------------------------------- time


def _get_bounds(span: Interval) -> tuple[int, int] | None:
    return None if span.start is None or span.end is None else (span.start, span.end)


def score_time_fit(said_at: int, start: int, end: int) -> float:
    """How well the time something was said fits a time asked about: inside it, or near a single day.

    The longer the time asked about, the less it tells to lie inside it.
    """
    length = end - start
    if start <= said_at < end:
        return (
            1.0
            if length <= 40 * DAY_US
            else 0.5
            if length <= 100 * DAY_US
            else 0.2
            if length <= 400 * DAY_US
            else 0.0
        )
    if length > 2 * DAY_US:
        return 0.0
    distance = max(start - said_at, said_at - end)
    return 0.5 if distance <= 7 * DAY_US else 0.2 if distance <= 31 * DAY_US else 0.0


# ------------------------------------------------------------------------------------------------- what the facts tell


def needs_facts(intent: QueryIntent, settings: Settings) -> bool:
    """Whether any part of the score needs more than the index knows."""
    return any(
        (
            settings.rank_recency,
            settings.rank_importance,
            settings.rank_salience,
            settings.rank_hotness,
            settings.rank_entity,
            settings.rank_when and intent.asks_when,
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
    """The order once what only the facts tell is added: how recent, important, alive, in use, and about whom.

    `alive` is the salience of facts by their positions, where that counts.
    """
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
    """What each part that counts at all is worth, by the position of the fact."""

    def score_all(weight: float, score_fact: Callable[[Fact], float]) -> Mapping[int, float]:
        return {fact.seq: weight * score_fact(fact) for fact in facts}

    if settings.rank_recency:
        yield (
            "recency",
            score_all(
                settings.rank_recency, lambda fact: score_recency(fact, kinds, settings, now)
            ),
        )
    if settings.rank_importance:
        yield (
            "importance",
            score_all(settings.rank_importance, lambda fact: score_importance(fact, kinds)),
        )
    if settings.rank_salience:
        yield (
            "salience",
            score_all(settings.rank_salience, lambda fact: salience.get(fact.seq, 0.0)),
        )
    if settings.rank_hotness:
        hotness_by_thread = {
            thread: score_hotness(access_count, now, settings)
            for thread, access_count in access_counts.items()
        }
        yield (
            "hotness",
            score_all(settings.rank_hotness, lambda fact: hotness_by_thread.get(fact.id, 0.0)),
        )
    if settings.rank_entity and (
        names := {term for name in intent.names for term in extract_terms(name)}
    ):
        yield (
            "entity",
            score_all(settings.rank_entity, lambda fact: _score_name_overlap(names, fact.text)),
        )
    if wanted_kinds := KINDS_BY_SOURCE.get(intent.answer_source):
        yield "kind", score_all(settings.rank_kind, lambda fact: float(fact.kind in wanted_kinds))
    if intent.asks_when and settings.rank_when:
        yield "when", score_all(settings.rank_when, lambda fact: _score_time_words(fact.text))


def score_recency(fact: Fact, kinds: Ontology, settings: Settings, now: int) -> float:
    """1 for what was said just now, half of it after the half-life of its kind."""
    kind = kinds.get(fact.kind)
    days = (kind.half_life_days if kind else None) or settings.recency_days
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    return float(2.0 ** (-max(now - said_at, 0) / (days * DAY_US)))


def score_importance(fact: Fact, kinds: Ontology) -> float:
    """What its metadata says it is worth, else what its kind is worth."""
    stated = fact.meta.get("importance")
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated <= 1:
        return float(stated)
    kind = kinds.get(fact.kind)
    return kind.weight if kind else 0.5


def score_hotness(access_count: AccessCount, now: int, settings: Settings) -> float:
    """How much a memory is in use."""
    return compute_hotness(access_count.count, access_count.last, now, settings.hotness_days)


def _score_time_words(text: str) -> float:
    return count_time_words(text, MAX_TIME_WORDS) / MAX_TIME_WORDS


def _score_name_overlap(names: set[str], text: str) -> float:
    return len(names.intersection(extract_terms(text))) / len(names)


# --------------------------------------------------------------------------------------------- what says the same thing


def measure_similarity(a: Candidate, b: Candidate, mean: float) -> float:
    """How alike two passages are beside what all of their scope have in common."""
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
    """Among the first few, what was said later goes before what the same speaker said alike, and takes its score.

    A question about how things were is left alone.
    """
    head = list(scored[: settings.newest_among])
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
                    >= settings.newest_alike
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
    """The same, each passage set back by how alike it is to one chosen before it, if the settings ask for it."""
    if not settings.diversity:
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
            penalty[number] = max(penalty[number], settings.diversity * similarity)
    return [*chosen, *scored[len(remaining) :]]


# ----------------------------------------------------------------------------------------------------------- how sure


def calibrate_score(score: float, index_result: IndexResult, settings: Settings) -> float:
    """A score as a number from 0 to 1: about how often a passage with that score is what was asked for."""
    return build_calibration(index_result, settings)(score)


def build_calibration(index_result: IndexResult, settings: Settings) -> Callable[[float], float]:
    """What makes a number from 0 to 1 of a score.

    Among more passages more score high by chance, so the same score tells less. Without vectors there is only the query
    to measure by: half of it covered is shown as 0.5. The fused score is such a number itself.
    """
    if settings.fusion == FUSED_METHOD:
        return lambda score: min(max(score / SCORE_SCALE, 0.0), 1.0)
    if index_result.by_vector:
        crowd = settings.score_crowd * log(max(index_result.passage_count, 1) / REFERENCE_PASSAGES)
        middle, width = settings.score_middle, settings.score_width
        return lambda score: _sigmoid((score - middle) / width - crowd)
    full_score = settings.rank_cover * (1.0 + settings.rank_talk) * sqrt(index_result.total_weight)
    return lambda score: _sigmoid((score / full_score - 0.5) / COVER_WIDTH if full_score else 0.0)


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + exp(min(max(-odds, -60.0), 60.0)))


def estimate_confidence(
    scored: Sequence[ScoredCandidate], index_result: IndexResult, settings: Settings
) -> float:
    """How sure it is that the answer is here: who said it, how much of the query it covers, and how well it scores.

    Where the query names one speaker, what others said speaks against an answer.
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
