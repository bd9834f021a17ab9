"""The runner: told by its public face, over conversations whose evidence is known, once for each variant of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Protocol, TypeAlias

from told.core.errors import ConfigError, InvalidInput
from told.faces.eval import measure
from told.faces.eval.data import EvalConversation, EvalQuestion, EvalTurn, normalize_whitespace
from told.faces.eval.measure import BUDGETS, EvalAnswer, Metrics, QuestionResult
from told.faces.eval.vectors import CachingEmbedder, EmbedderPool
from told.faces.sdk import Memory
from told.read.tokens import count_tokens
from told.settings import check_setting

DEFAULT_VARIANT = "told"
SEARCH_DEPTH = max(measure.RECALL_DEPTHS)
FIXED_SETTINGS = {"store": "Name it with --store.", "account": "Name it with --account."}
"""Settings a variant cannot change, and what to do instead."""

EvalProgress: TypeAlias = Callable[[int], None]


class EvalTarget(Protocol):
    """One way to remember a conversation."""

    name: str

    def ingest(self, conversation: EvalConversation) -> None:
        """Read the whole conversation; questions are about the one read last."""

    def search(self, question: EvalQuestion) -> EvalAnswer:
        """The best hits."""

    def context(self, question: EvalQuestion, budget: int) -> str:
        """A text of at most so many tokens."""


@dataclass(frozen=True, slots=True)
class Variant:
    """told with some settings changed."""

    name: str = DEFAULT_VARIANT
    settings: Mapping[str, Any] = field(default_factory=dict)


def check_settings(pairs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings by name, each of the right type and range."""
    for name in pairs:
        if name in FIXED_SETTINGS:
            raise ConfigError(
                f"{where}: {name} is the same for every variant.", hint=FIXED_SETTINGS[name]
            )
    return {name: check_setting(name, value, where) for name, value in pairs.items()}


# told -----------------------------------------------------------------------------------------------------------------


class ToldTarget:
    """told as its users have it."""

    def __init__(self, memory: Memory, name: str = DEFAULT_VARIANT) -> None:
        self.name = name
        self.memory = memory
        self.user = ""
        self.turn_ids_by_text: Mapping[str, tuple[str, ...]] = {}
        self.warnings: dict[str, None] = {}

    def ingest(self, conversation: EvalConversation) -> None:
        """Add the turns of each session in one call, with their times, speakers and ids."""
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
        self.user, self.turn_ids_by_text = (
            conversation.id,
            group_turn_ids_by_text(conversation.turns),
        )

    def search(self, question: EvalQuestion) -> EvalAnswer:
        """The best hits, each as the turns it stands for."""
        options = _supported_options(self.memory.search, reference_date=question.date)
        result = self.memory.search(
            question.text, user_id=self.user, limit=SEARCH_DEPTH, explain=True, **options
        )
        self._collect_warnings(result.get("warnings", ()))
        return EvalAnswer(
            tuple(self._turn_ids(hit) for hit in result["results"]), search_confidence(result)
        )

    def context(self, question: EvalQuestion, budget: int) -> str:
        """The context for a question, counted once more by whoever measures."""
        options = _supported_options(self.memory.context, reference_date=question.date)
        bundle = self.memory.context(question.text, user_id=self.user, budget=budget, **options)
        assert count_tokens(bundle.text, self.memory.engine.settings.encoding) <= budget, (
            "told went over its budget"
        )
        return bundle.text

    def explain_missing_turn(self, question: EvalQuestion, missing: EvalTurn) -> dict[str, Any]:
        """What the trace says of a turn that was not found: its fate, and where its score falls behind the best."""
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
            "parts": measure.compare_score_parts(candidate["parts"], best["parts"]),
        }

    def _turn_ids(self, hit: Mapping[str, Any]) -> tuple[str, ...]:
        """The turns a hit stands for: its own and those that said the very same."""
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
    """A turn as told takes it."""
    speaker = (
        {"role": turn.speaker} if turn.has_role_only else {"role": "user", "name": turn.speaker}
    )
    metadata = {"id": turn.id, "session": turn.session}
    return {**speaker, "content": turn.content, "timestamp": turn.date, "metadata": metadata}


def group_turn_ids_by_text(turns: Sequence[EvalTurn]) -> dict[str, tuple[str, ...]]:
    """Turns that say the same are one memory, so a hit on one is a hit on all."""
    ids_by_text: dict[str, list[str]] = {}
    for turn in turns:
        ids_by_text.setdefault(normalize_whitespace(turn.content), []).append(turn.id)
    return {text: tuple(ids) for text, ids in ids_by_text.items()}


def search_confidence(result: Mapping[str, Any]) -> float:
    """How sure a search is: its own word where it gives one, else the best raw cosine, else the best score."""
    if result.get("confidence") is not None:
        return float(result["confidence"])
    hits = result["results"]
    cosines = [hit["score_details"].get("cosine") for hit in hits]
    known_cosines = [cosine for cosine in cosines if cosine is not None]
    return max(known_cosines) if known_cosines else max((hit["score"] for hit in hits), default=0.0)


def _supported_options(verb: Any, **options: Any) -> dict[str, Any]:
    """The options that are given and that this version of the verb takes."""
    parameters = inspect.signature(verb).parameters
    return {
        name: value for name, value in options.items() if value is not None and name in parameters
    }


# Measuring ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class EvalRun:
    """What one contender did on one file."""

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
        """The figures over every question."""
        return measure.summarize(self.rows)

    @property
    def cost(self) -> dict[str, float | None]:
        """What it took beside the embedding: milliseconds of a turn, a search and a context, and bytes of a turn."""
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
        """The run as JSON."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "embedder": self.embedder,
            "all": self.overall,
            "categories": measure.summarize_by_category(self.rows),
            "conversations": measure.summarize_groups(self.rows, lambda row: row.conversation),
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
    """One contender on every conversation; `tick` hears of each turn and question that is done."""
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
    return measure.measure_question(conversation, question, answer, contexts)


def count_steps(conversations: Sequence[EvalConversation]) -> int:
    """How many ticks one contender takes."""
    return sum(
        len(conversation.turns) + len(conversation.questions) for conversation in conversations
    )


# Variants -------------------------------------------------------------------------------------------------------------


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
    """Every variant on the same conversations, each in a new store; the first in a store to keep, if one is named."""
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
        run.settings, run.warnings, run.store_bytes = (
            variant.settings,
            list(target.warnings),
            _store_size(url, account),
        )
    return run


def _clock_without_embedding(embedders: EmbedderPool) -> Callable[[], float]:
    """A clock that stands still while an embedder computes."""
    return lambda: perf_counter() - embedders.seconds


@contextmanager
def _open_target(
    variant: Variant, embedders: EmbedderPool, url: str, account: str | None
) -> Iterator[ToldTarget]:
    """A memory with the settings of a variant, in a store that must be empty."""
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
    """The size of a store once it was closed, which moves its log into place; one in RAM is gone by then."""
    with Memory(url, embedder="none", account=account) as memory:
        stats = memory.stats()
    return int(stats["bytes"]) if stats["entries"] else None


def explain_misses(
    target: ToldTarget, conversations: Sequence[EvalConversation], run: EvalRun, limit: int
) -> list[dict[str, Any]]:
    """Some of the misses at the budget that stands for the run, each with what the trace says of it."""
    by_id = {conversation.id: conversation for conversation in conversations}
    budget = measure.headline_budget(run.budgets)
    return [
        _explain_miss(target, by_id[row.conversation], row, budget)
        for row in measure.sample_misses(run.rows, budget, limit)
    ]


def _explain_miss(
    target: ToldTarget, conversation: EvalConversation, row: QuestionResult, budget: int
) -> dict[str, Any]:
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
