"""Run the recall benchmark through the public API, once per settings variant."""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from math import log2
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from told.errors import ConfigError, InvalidInput
from told.flow import call, run
from told.model.topics import Thresholds
from told.ports import DEFAULT_SPREAD, Embedder, Purpose, Vector
from told.retrieval.render import count_tokens
from told.settings import check_setting
from told.tools.evaluate.data import (
    EvalConversation,
    EvalQuestion,
    EvalTurn,
    content_words,
    normalize_whitespace,
)

if TYPE_CHECKING:
    from told.api.memory import Memory

BUDGETS = (500, 1000, 2000, 4000)
RECALL_DEPTHS = (5, 10, 20, 50)
NOT_FOUND = 10**6
MAX_SCORE_PARTS = 3
"""Score parts reported per miss."""

Metrics: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class EvalAnswer:
    """The turns behind each hit, best first, and the confidence."""

    ranked: tuple[tuple[str, ...], ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The figures of one question."""

    conversation: str
    question: EvalQuestion
    confidence: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    """For each evidence turn, the 1-based rank of the first hit that shows it."""
    missing: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """For each budget, the evidence that is not in the context."""

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON."""
        question = self.question
        return {
            "conversation": self.conversation,
            "id": question.id,
            "question": question.text,
            "category": question.category,
            "answerable": question.answerable,
            "confidence": self.confidence,
            "figures": dict(self.metrics),
            "ranks": dict(self.ranks),
            "missing": {str(budget): list(ids) for budget, ids in self.missing.items()},
        }


def measure_question(
    conversation: EvalConversation,
    question: EvalQuestion,
    answer: EvalAnswer,
    contexts: Mapping[int, str],
) -> QuestionResult:
    """Measure one question against its evidence."""
    if not question.is_measurable:
        return QuestionResult(conversation.id, question, answer.confidence)
    evidence = [turn for turn in conversation.turns if turn.id in question.evidence]
    metrics = measure_ranking(answer.ranked, question.evidence)
    missing = {budget: find_missing_turns(text, evidence) for budget, text in contexts.items()}
    for budget, text in contexts.items():
        metrics[f"R@{budget}t"] = 1 - len(missing[budget]) / len(evidence)
        metrics[f"all@{budget}t"] = float(not missing[budget])
        metrics[f"words@{budget}t"] = compute_word_coverage(question.answer, text)
    if question.superseded and question.newest:
        metrics["newest first"] = float(is_newest_first(answer.ranked, question))
    positions = first_positions(answer.ranked)
    ranks = {
        turn_id: positions[turn_id] + 1 if turn_id in positions else None
        for turn_id in question.evidence
    }
    return QuestionResult(conversation.id, question, answer.confidence, metrics, ranks, missing)


def measure_ranking(ranked: Sequence[Sequence[str]], evidence: Sequence[str]) -> dict[str, float]:
    """Compute recall at each depth and nDCG@10 from the turns behind the hits."""
    positions = first_positions(ranked)
    evidence_positions = [positions.get(turn_id, NOT_FOUND) for turn_id in evidence]
    recalls = {
        f"R@{depth}": sum(position < depth for position in evidence_positions) / len(evidence)
        for depth in RECALL_DEPTHS
    }
    return {**recalls, "nDCG@10": compute_ndcg(evidence_positions, 10)}


def compute_ndcg(positions: Sequence[int], depth: int) -> float:
    """Compute nDCG from 0-based positions; turns behind one hit count once."""
    hits = set(positions) - {NOT_FOUND}
    relevant_count = len(hits) + positions.count(NOT_FOUND)
    gain = sum(1 / log2(position + 2) for position in hits if position < depth)
    return gain / sum(1 / log2(position + 2) for position in range(min(depth, relevant_count)))


def first_positions(ranked: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the first 0-based position of each turn."""
    positions: dict[str, int] = {}
    for position, ids in enumerate(ranked):
        for turn_id in ids:
            positions.setdefault(turn_id, position)
    return positions


def find_missing_turns(text: str, evidence: Iterable[EvalTurn]) -> tuple[str, ...]:
    """Return the evidence turns whose text is not verbatim in a context."""
    normalized = normalize_whitespace(text)
    return tuple(turn.id for turn in evidence if normalize_whitespace(turn.text) not in normalized)


def compute_word_coverage(answer: str, text: str) -> float:
    """Return the share of the answer's content words found in a text."""
    answer_words = content_words(answer)
    return len(answer_words & content_words(text)) / len(answer_words) if answer_words else 1.0


def is_newest_first(ranked: Sequence[Sequence[str]], question: EvalQuestion) -> bool:
    """Return whether current evidence ranks above superseded evidence."""
    positions = first_positions(ranked)
    newest_position = min(positions.get(turn_id, NOT_FOUND) for turn_id in question.newest)
    return newest_position < min(
        positions.get(turn_id, NOT_FOUND) for turn_id in question.superseded
    )


def compute_auroc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """Compute the AUROC of confidence, answerable against unanswerable."""
    if not answerable or not unanswerable:
        return None
    wins = sum(
        (score > other_score) + 0.5 * (score == other_score)
        for score in answerable
        for other_score in unanswerable
    )
    return wins / (len(answerable) * len(unanswerable))


# Aggregation


def summarize(rows: Sequence[QuestionResult]) -> Metrics:
    """Average every figure and compute the AUROC."""
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    means: Metrics = {
        name: fmean(row.metrics[name] for row in rows if name in row.metrics) for name in names
    }
    means["AUROC"] = compute_auroc(
        [row.confidence for row in rows if row.question.answerable],
        [row.confidence for row in rows if not row.question.answerable],
    )
    return means


def summarize_by_category(rows: Sequence[QuestionResult]) -> dict[str, Metrics]:
    """Summarise each category."""
    return summarize_groups(rows, lambda row: row.question.category)


def summarize_groups(
    rows: Sequence[QuestionResult], key: Callable[[QuestionResult], str]
) -> dict[str, Metrics]:
    """Summarise each group in which recall is measurable."""
    names = sorted({key(row) for row in rows if row.question.is_measurable})
    return {name: summarize([row for row in rows if key(row) == name]) for name in names}


def diff_metrics(metrics: Metrics, base: Metrics) -> Metrics:
    """Subtract base figures where both exist."""
    return {
        name: value - base_value
        for name, value in metrics.items()
        if value is not None and (base_value := base.get(name)) is not None
    }


# Misses


def headline_budget(budgets: Sequence[int], target: int = 1000) -> int:
    """Return the budget nearest to the default context budget."""
    return min(budgets, key=lambda budget: (abs(budget - target), budget))


def sample_misses(rows: Sequence[QuestionResult], budget: int, limit: int) -> list[QuestionResult]:
    """Sample questions with missing evidence, evenly spaced."""
    missed = [row for row in rows if row.missing.get(budget)]
    count = min(limit, len(missed))
    return [missed[index * len(missed) // count] for index in range(count)]


def compare_score_parts(
    parts: Mapping[str, float | None], best: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """Return the score parts of a missed memory that differ most from the best hit's."""

    def relative_gap(name: str) -> float:
        missed_score, best_score = (scores.get(name) or 0.0 for scores in (parts, best))
        return abs(missed_score - best_score) / (max(abs(missed_score), abs(best_score)) or 1.0)

    names = sorted(dict.fromkeys([*best, *parts]), key=relative_gap, reverse=True)
    rows = [
        {"part": name, "missed": parts.get(name), "best": best.get(name)}
        for name in names
        if relative_gap(name) > 0
    ]
    return rows[:MAX_SCORE_PARTS]


EMBED_BATCH_SIZE = 256

VectorMap = MutableMapping[bytes, bytes]


class CachingEmbedder:
    """An embedder that caches its vectors; `seconds` is the time spent embedding."""

    def __init__(self, inner: Embedder, cache: VectorMap) -> None:
        self.inner = inner
        self.cache = cache
        self.model = inner.model
        self.dim = inner.dim
        self.local = inner.local
        self.usual = getattr(inner, "usual", 0.0)
        self.spread = getattr(inner, "spread", DEFAULT_SPREAD)
        self.topics = getattr(inner, "topics", Thresholds())
        self.seconds = 0.0

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return one vector per text, cached or computed."""
        started = perf_counter()
        keys = [self._cache_key(text, purpose) for text in texts]
        missing = list(
            {
                key: text for key, text in zip(keys, texts, strict=True) if key not in self.cache
            }.items()
        )
        for start in range(0, len(missing), EMBED_BATCH_SIZE):
            self._compute_vectors(missing[start : start + EMBED_BATCH_SIZE], purpose)
        vectors = [array("f", self.cache[key]) for key in keys]
        self.seconds += perf_counter() - started
        return vectors

    def _compute_vectors(self, rows: Sequence[tuple[bytes, str]], purpose: Purpose) -> None:
        vectors = run(call(self.inner.embed, [text for _, text in rows], purpose))
        self.cache.update(
            {
                key: array("f", vector).tobytes()
                for (key, _), vector in zip(rows, vectors, strict=True)
            }
        )

    def _cache_key(self, text: str, purpose: Purpose) -> bytes:
        return sha256(f"{self.model}\0{purpose}\0{text}".encode()).digest()[:16]


class EmbedderPool:
    """The embedders of a run by name, opened once, with a shared cache."""

    def __init__(self, default: str, cache: VectorMap | None = None) -> None:
        self.default = default
        self.cache: VectorMap = {} if cache is None else cache
        self._opened: dict[str, CachingEmbedder | None] = {}

    def get(self, choice: str | None = None) -> CachingEmbedder | None:
        """Return the chosen or default embedder, or None if there is none."""
        from told.api.memory import Memory

        name = choice or self.default
        if name not in self._opened:
            with Memory("ram://", embedder=name) as memory:
                inner = memory.embedder
            self._opened[name] = None if inner is None else CachingEmbedder(inner, self.cache)
        return self._opened[name]

    @property
    def seconds(self) -> float:
        """Return the time spent embedding."""
        return sum(embedder.seconds for embedder in self._opened.values() if embedder is not None)


DEFAULT_VARIANT = "told"
SEARCH_DEPTH = max(RECALL_DEPTHS)
FIXED_SETTINGS = {"store": "Name it with --store.", "account": "Name it with --account."}
"""Settings a variant cannot change, and the alternative."""

EvalProgress: TypeAlias = Callable[[int], None]


class EvalTarget(Protocol):
    """A memory system under test."""

    name: str

    def ingest(self, conversation: EvalConversation) -> None:
        """Ingest a conversation; later questions are about it."""

    def search(self, question: EvalQuestion) -> EvalAnswer:
        """Return the best hits."""

    def context(self, question: EvalQuestion, budget: int) -> str:
        """Return a context within a token budget."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A named set of changed settings."""

    name: str = DEFAULT_VARIANT
    settings: Mapping[str, Any] = field(default_factory=dict)


def check_settings(pairs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Validate settings given as name-value pairs."""
    for name in pairs:
        if name in FIXED_SETTINGS:
            raise ConfigError(
                f"{where}: a variant cannot change {name}.", hint=FIXED_SETTINGS[name]
            )
    return {name: check_setting(name, value, where) for name, value in pairs.items()}


# told


class ToldTarget:
    """told through its public API."""

    def __init__(self, memory: Memory, name: str = DEFAULT_VARIANT) -> None:
        self.name = name
        self.memory = memory
        self.user = ""
        self.turn_ids_by_text: Mapping[str, tuple[str, ...]] = {}
        self.warnings: dict[str, None] = {}

    def ingest(self, conversation: EvalConversation) -> None:
        """Add each session's turns in one call, with times, speakers and ids."""
        self.select_conversation(conversation)
        for session, turns in groupby(conversation.turns, key=lambda turn: turn.session):
            try:
                receipt = self.memory.add([to_message(turn) for turn in turns], user_id=self.user)
            except InvalidInput as error:
                where = f"conversation {self.user!r}, session {session!r}"
                raise type(error)(f"{where}: {error.message}", hint=error.hint) from error
            skipped = [
                f"a turn of {self.user} was not kept: {row['reason']}"
                for row in receipt.get("skipped", ())
            ]
            self._collect_warnings([*skipped, *receipt.get("warnings", ())])

    def select_conversation(self, conversation: EvalConversation) -> None:
        """Ask about this conversation from now on."""
        self.user = conversation.id
        self.turn_ids_by_text = group_turn_ids_by_text(conversation.turns)

    def search(self, question: EvalQuestion) -> EvalAnswer:
        """Return the best hits as turn ids."""
        options = _supported_options(self.memory.search, reference_date=question.date)
        result = self.memory.search(
            question.text, user_id=self.user, limit=SEARCH_DEPTH, explain=True, **options
        )
        self._collect_warnings(result.get("warnings", ()))
        return EvalAnswer(
            tuple(self._turn_ids(hit) for hit in result["results"]), search_confidence(result)
        )

    def context(self, question: EvalQuestion, budget: int) -> str:
        """Build the context for a question; check its token count."""
        options = _supported_options(self.memory.context, reference_date=question.date)
        bundle = self.memory.context(question.text, user_id=self.user, budget=budget, **options)
        assert count_tokens(bundle.text, self.memory.engine.settings.encoding) <= budget, (
            "told went over its budget"
        )
        return bundle.text

    def explain_missing_turn(self, question: EvalQuestion, missing: EvalTurn) -> dict[str, Any]:
        """Explain a missed turn: the stage that dropped it and where its score falls short."""
        options = _supported_options(self.memory.explain, reference_date=question.date)
        candidates = self.memory.explain(
            question.text, user_id=self.user, limit=SEARCH_DEPTH, **options
        )["candidates"]
        wanted_text = normalize_whitespace(missing.content)
        candidate = next(
            (row for row in candidates if normalize_whitespace(row["memory"]) == wanted_text), None
        )
        if candidate is None:
            return {"fate": "never a candidate", "parts": []}
        best = max(candidates, key=lambda row: (row["kept"], row["score"]))
        fate = candidate["reason"] or "found, but it did not fit"
        return {
            "fate": fate,
            "parts": compare_score_parts(candidate["parts"], best["parts"]),
        }

    def _turn_ids(self, hit: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the turns of a hit: its own and exact duplicates."""
        own_id = hit["metadata"].get("id")
        return tuple(
            dict.fromkeys(
                [
                    *([own_id] if own_id else ()),
                    *self.turn_ids_by_text.get(normalize_whitespace(hit["memory"]), ()),
                ]
            )
        )

    def _collect_warnings(self, warnings: Sequence[str]) -> None:
        self.warnings.update(dict.fromkeys(warnings))


def to_message(turn: EvalTurn) -> dict[str, Any]:
    """Convert a turn to a message for `add`."""
    speaker = (
        {"role": turn.speaker} if turn.has_role_only else {"role": "user", "name": turn.speaker}
    )
    metadata = {"id": turn.id, "session": turn.session}
    return {**speaker, "content": turn.content, "timestamp": turn.date, "metadata": metadata}


def group_turn_ids_by_text(turns: Sequence[EvalTurn]) -> dict[str, tuple[str, ...]]:
    """Group turn ids by text; identical turns are one memory."""
    ids_by_text: dict[str, list[str]] = {}
    for turn in turns:
        ids_by_text.setdefault(normalize_whitespace(turn.content), []).append(turn.id)
    return {text: tuple(ids) for text, ids in ids_by_text.items()}


def search_confidence(result: Mapping[str, Any]) -> float:
    """Return a search's confidence: its own, else the best cosine, else the best score."""
    if result.get("confidence") is not None:
        return float(result["confidence"])
    hits = result["results"]
    cosines = [hit["score_details"].get("cosine") for hit in hits]
    known_cosines = [cosine for cosine in cosines if cosine is not None]
    return max(known_cosines) if known_cosines else max((hit["score"] for hit in hits), default=0.0)


def _supported_options(verb: Any, **options: Any) -> dict[str, Any]:
    """Return the given options that this version of the verb accepts."""
    parameters = inspect.signature(verb).parameters
    return {
        name: value for name, value in options.items() if value is not None and name in parameters
    }


# Measuring


@dataclass(slots=True)
class EvalRun:
    """The results of one target on one file."""

    name: str
    budgets: Sequence[int] = BUDGETS
    rows: list[QuestionResult] = field(default_factory=list)
    turns: int = 0
    ingest_seconds: float = 0.0
    search_seconds: float = 0.0
    context_seconds: float = 0.0
    store_bytes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    embedder: str | None = None
    misses: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def overall(self) -> Metrics:
        """Return the figures over every question."""
        return summarize(self.rows)

    @property
    def cost(self) -> dict[str, float | None]:
        """Return milliseconds per operation and bytes per turn, without embedding."""
        question_count = max(len(self.rows), 1)
        return {
            "ingest_ms_per_turn": 1e3 * self.ingest_seconds / max(self.turns, 1),
            "search_ms": 1e3 * self.search_seconds / question_count,
            "context_ms": 1e3 * self.context_seconds / (question_count * len(self.budgets)),
            "bytes_per_turn": None
            if self.store_bytes is None
            else self.store_bytes / max(self.turns, 1),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the run as JSON."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "embedder": self.embedder,
            "all": self.overall,
            "categories": summarize_by_category(self.rows),
            "conversations": summarize_groups(self.rows, lambda row: row.conversation),
            "cost": self.cost,
            "misses": self.misses,
            "questions": [row.as_dict() for row in self.rows],
        }


def measure_target(
    target: EvalTarget,
    conversations: Sequence[EvalConversation],
    *,
    budgets: Sequence[int] = BUDGETS,
    clock: Callable[[], float] = perf_counter,
    tick: EvalProgress = lambda _: None,
) -> EvalRun:
    """Measure a target on every conversation; call `tick` after each turn and question."""
    run = EvalRun(target.name, budgets)
    for conversation in conversations:
        start = clock()
        target.ingest(conversation)
        run.ingest_seconds += clock() - start
        run.turns += len(conversation.turns)
        tick(len(conversation.turns))
        for question in conversation.questions:
            run.rows.append(_measure_question(target, conversation, question, run, clock))
            tick(1)
    return run


def _measure_question(
    target: EvalTarget,
    conversation: EvalConversation,
    question: EvalQuestion,
    run: EvalRun,
    clock: Callable[[], float],
) -> QuestionResult:
    start = clock()
    answer = target.search(question)
    middle = clock()
    contexts = {budget: target.context(question, budget) for budget in run.budgets}
    run.search_seconds += middle - start
    run.context_seconds += clock() - middle
    return measure_question(conversation, question, answer, contexts)


def count_steps(conversations: Sequence[EvalConversation]) -> int:
    """Return the number of ticks per target."""
    return sum(
        len(conversation.turns) + len(conversation.questions) for conversation in conversations
    )


# Variants


def evaluate(
    conversations: Sequence[EvalConversation],
    variants: Sequence[Variant],
    embedders: EmbedderPool,
    *,
    budgets: Sequence[int] = BUDGETS,
    misses: int = 0,
    store: str | None = None,
    account: str | None = None,
    tick: EvalProgress = lambda _: None,
) -> list[EvalRun]:
    """Run every variant on the same conversations, each in a new store."""
    return [
        _measure_variant(
            variant,
            conversations,
            embedders,
            budgets,
            misses,
            None if index else store,
            account,
            tick,
        )
        for index, variant in enumerate(variants)
    ]


def _measure_variant(
    variant: Variant,
    conversations: Sequence[EvalConversation],
    embedders: EmbedderPool,
    budgets: Sequence[int],
    misses: int,
    store: str | None,
    account: str | None,
    tick: EvalProgress,
) -> EvalRun:
    """Measure one variant in its own store and explain some of its misses."""
    with TemporaryDirectory(prefix="told-eval-") as folder:
        url = store or f"sqlite:///{Path(folder) / 'eval.db'}"
        with _open_target(variant, embedders, url, account) as target:
            run = measure_target(
                target,
                conversations,
                budgets=budgets,
                clock=_clock_without_embedding(embedders),
                tick=tick,
            )
            run.misses = explain_misses(target, conversations, run, misses)
            run.embedder = None if target.memory.embedder is None else target.memory.embedder.model
        run.settings = variant.settings
        run.warnings = list(target.warnings)
        run.store_bytes = _store_size(url, account)
    return run


def _clock_without_embedding(embedders: EmbedderPool) -> Callable[[], float]:
    """Return a clock that pauses while an embedder computes."""
    return lambda: perf_counter() - embedders.seconds


@contextmanager
def _open_target(
    variant: Variant, embedders: EmbedderPool, url: str, account: str | None
) -> Iterator[ToldTarget]:
    """Open a memory with a variant's settings in an empty store."""
    from told.api.memory import Memory

    embedder: CachingEmbedder | str = embedders.get(variant.settings.get("embedder")) or "none"
    settings = {
        "durability": "normal",
        **{name: value for name, value in variant.settings.items() if name != "embedder"},
    }
    with Memory(url, embedder=embedder, account=account, **settings) as memory:
        if memory.stats()["entries"]:
            raise InvalidInput(
                f"{url} holds memories already.", hint="Name a new store to keep the run in."
            )
        yield ToldTarget(memory, variant.name)


def _store_size(url: str, account: str | None) -> int | None:
    """Return a closed store's size in bytes, or None for an in-memory store."""
    from told.api.memory import Memory

    with Memory(url, embedder="none", account=account) as memory:
        stats = memory.stats()
    return int(stats["bytes"]) if stats["entries"] else None


def explain_misses(
    target: ToldTarget, conversations: Sequence[EvalConversation], run: EvalRun, limit: int
) -> list[dict[str, Any]]:
    """Explain sampled misses at the headline budget."""
    by_id = {conversation.id: conversation for conversation in conversations}
    budget = headline_budget(run.budgets)
    return [
        _explain_miss(target, by_id[row.conversation], row, budget)
        for row in sample_misses(run.rows, budget, limit)
    ]


def _explain_miss(
    target: ToldTarget, conversation: EvalConversation, row: QuestionResult, budget: int
) -> dict[str, Any]:
    """Describe a missed question with the trace of each missing turn."""
    target.select_conversation(conversation)
    turns = {turn.id: turn for turn in conversation.turns}
    missing = [
        {
            "id": turn_id,
            "text": turns[turn_id].text,
            "rank": row.ranks[turn_id],
            **target.explain_missing_turn(row.question, turns[turn_id]),
        }
        for turn_id in row.missing[budget]
    ]
    return {
        "conversation": conversation.id,
        "id": row.question.id,
        "question": row.question.text,
        "category": row.question.category,
        "answer": row.question.answer,
        "budget": budget,
        "evidence": len(row.question.evidence),
        "missing": missing,
    }
