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
from told.faces.eval.data import Conversation, Question, Turn, folded
from told.faces.eval.measure import BUDGETS, Answer, Figures, Seen
from told.faces.eval.vectors import Embedders, Remembering
from told.faces.sdk import Memory
from told.read.tokens import count
from told.settings import check

DEFAULT = "told"
DEPTH = max(measure.DEPTHS)
OURS = {"store": "Name it with --store.", "account": "Name it with --account."}
"""Settings a variant cannot change, and what to do instead."""

Tick: TypeAlias = Callable[[int], None]


class Contender(Protocol):
    """One way to remember a conversation."""

    name: str

    def ingest(self, conversation: Conversation) -> None:
        """Read the whole conversation; questions are about the one read last."""

    def search(self, question: Question) -> Answer:
        """The best hits."""

    def context(self, question: Question, budget: int) -> str:
        """A text of at most so many tokens."""


@dataclass(frozen=True, slots=True)
class Variant:
    """told with some settings changed."""

    name: str = DEFAULT
    knobs: Mapping[str, Any] = field(default_factory=dict)


def knobs(pairs: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings by name, each of the right type and range."""
    for name in pairs:
        if name in OURS:
            raise ConfigError(f"{where}: {name} is the same for every variant.", hint=OURS[name])
    return {name: check(name, value, where) for name, value in pairs.items()}


# told -----------------------------------------------------------------------------------------------------------------


class Told:
    """told as its users have it."""

    def __init__(self, memory: Memory, name: str = DEFAULT) -> None:
        self.name = name
        self.memory = memory
        self.user = ""
        self.same: Mapping[str, tuple[str, ...]] = {}
        self.warnings: dict[str, None] = {}

    def ingest(self, conversation: Conversation) -> None:
        """Add the turns of each session in one call, with their times, speakers and ids."""
        self.turn_to(conversation)
        for session, turns in groupby(conversation.turns, key=lambda turn: turn.session):
            try:
                done = self.memory.add([message(turn) for turn in turns], user_id=self.user)
            except InvalidInput as error:
                where = f"conversation {self.user!r}, session {session!r}"
                raise type(error)(f"{where}: {error.message}", hint=error.hint) from error
            skipped = [f"a turn of {self.user} was not kept: {row['reason']}" for row in done.get("skipped", ())]
            self._note([*skipped, *done.get("warnings", ())])

    def turn_to(self, conversation: Conversation) -> None:
        """Ask about this conversation from now on."""
        self.user, self.same = conversation.id, by_text(conversation.turns)

    def search(self, question: Question) -> Answer:
        """The best hits, each as the turns it stands for."""
        asked = _accepted(self.memory.search, reference_date=question.date)
        found = self.memory.search(question.text, user_id=self.user, limit=DEPTH, explain=True, **asked)
        self._note(found.get("warnings", ()))
        return Answer(tuple(self._turns(hit) for hit in found["results"]), confidence(found))

    def context(self, question: Question, budget: int) -> str:
        """The context for a question, counted once more by whoever measures."""
        asked = _accepted(self.memory.context, reference_date=question.date)
        bundle = self.memory.context(question.text, user_id=self.user, budget=budget, **asked)
        assert count(bundle.text, self.memory.engine.settings.encoding) <= budget, "told went over its budget"
        return bundle.text

    def why(self, question: Question, missing: Turn) -> dict[str, Any]:
        """What the trace says of a turn that was not found: its fate, and where its score falls behind the best."""
        asked = _accepted(self.memory.explain, reference_date=question.date)
        candidates = self.memory.explain(question.text, user_id=self.user, limit=DEPTH, **asked)["candidates"]
        wanted = folded(missing.content)
        found = next((row for row in candidates if folded(row["memory"]) == wanted), None)
        if found is None:
            return {"fate": "never a candidate", "parts": []}
        best = max(candidates, key=lambda row: (row["kept"], row["score"]))
        fate = found["reason"] or "found, but it did not fit"
        return {"fate": fate, "parts": measure.telling(found["parts"], best["parts"])}

    def _turns(self, hit: Mapping[str, Any]) -> tuple[str, ...]:
        """The turns a hit stands for: its own and those that said the very same."""
        own = hit["metadata"].get("id")
        return tuple(dict.fromkeys([*([own] if own else ()), *self.same.get(folded(hit["memory"]), ())]))

    def _note(self, warnings: Sequence[str]) -> None:
        self.warnings.update(dict.fromkeys(warnings))


def message(turn: Turn) -> dict[str, Any]:
    """A turn as told takes it."""
    who = {"role": turn.speaker} if turn.is_role else {"role": "user", "name": turn.speaker}
    told_apart = {"id": turn.id, "session": turn.session}
    return {**who, "content": turn.content, "timestamp": turn.date, "metadata": told_apart}


def by_text(turns: Sequence[Turn]) -> dict[str, tuple[str, ...]]:
    """Turns that say the same are one memory, so a hit on one is a hit on all."""
    same: dict[str, list[str]] = {}
    for turn in turns:
        same.setdefault(folded(turn.content), []).append(turn.id)
    return {text: tuple(ids) for text, ids in same.items()}


def confidence(found: Mapping[str, Any]) -> float:
    """How sure a search is: its own word where it gives one, else the best raw cosine, else the best score."""
    if found.get("confidence") is not None:
        return float(found["confidence"])
    hits = found["results"]
    cosines = [hit["score_details"].get("cosine") for hit in hits]
    known = [cosine for cosine in cosines if cosine is not None]
    return max(known) if known else max((hit["score"] for hit in hits), default=0.0)


def _accepted(verb: Any, **options: Any) -> dict[str, Any]:
    """The options that are given and that this version of the verb takes."""
    taken = inspect.signature(verb).parameters
    return {name: value for name, value in options.items() if value is not None and name in taken}


# Measuring ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """What one contender did on one file."""

    name: str
    budgets: Sequence[int] = BUDGETS
    rows: list[Seen] = field(default_factory=list)
    turns: int = 0
    ingest: float = 0.0
    search: float = 0.0
    context: float = 0.0
    bytes: int | None = None
    knobs: Mapping[str, Any] = field(default_factory=dict)
    embedder: str | None = None
    misses: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def all(self) -> Figures:
        """The figures over every question."""
        return measure.summary(self.rows)

    @property
    def cost(self) -> dict[str, float | None]:
        """What it took beside the embedding: milliseconds of a turn, a search and a context, and bytes of a turn."""
        asked = max(len(self.rows), 1)
        return {
            "ingest_ms_per_turn": 1e3 * self.ingest / max(self.turns, 1), "search_ms": 1e3 * self.search / asked,
            "context_ms": 1e3 * self.context / (asked * len(self.budgets)),
            "bytes_per_turn": None if self.bytes is None else self.bytes / max(self.turns, 1),
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "name": self.name, "settings": dict(self.knobs), "embedder": self.embedder, "all": self.all,
            "categories": measure.by_category(self.rows),
            "conversations": measure.grouped(self.rows, lambda row: row.conversation),
            "cost": self.cost, "misses": self.misses, "questions": [row.as_dict() for row in self.rows],
        }  # fmt: skip


def measured(
    contender: Contender, conversations: Sequence[Conversation], *, budgets: Sequence[int] = BUDGETS,
    clock: Callable[[], float] = perf_counter, tick: Tick = lambda _: None,
) -> Run:  # fmt: skip
    """One contender on every conversation; `tick` hears of each turn and question that is done."""
    run = Run(contender.name, budgets)
    for conversation in conversations:
        start = clock()
        contender.ingest(conversation)
        run.ingest += clock() - start
        run.turns += len(conversation.turns)
        tick(len(conversation.turns))
        for question in conversation.questions:
            run.rows.append(_asked(contender, conversation, question, run, clock))
            tick(1)
    return run


def _asked(
    contender: Contender, conversation: Conversation, question: Question, run: Run, clock: Callable[[], float]
) -> Seen:
    start = clock()
    answer = contender.search(question)
    middle = clock()
    contexts = {budget: contender.context(question, budget) for budget in run.budgets}
    run.search += middle - start
    run.context += clock() - middle
    return measure.seen(conversation, question, answer, contexts)


def steps(conversations: Sequence[Conversation]) -> int:
    """How many ticks one contender takes."""
    return sum(len(one.turns) + len(one.questions) for one in conversations)


# Variants -------------------------------------------------------------------------------------------------------------


def evaluate(
    conversations: Sequence[Conversation], variants: Sequence[Variant], embedders: Embedders, *,
    budgets: Sequence[int] = BUDGETS, misses: int = 0, store: str | None = None, account: str | None = None,
    tick: Tick = lambda _: None,
) -> list[Run]:  # fmt: skip
    """Every variant on the same conversations, each in a new store; the first in a store to keep, if one is named."""
    return [
        _tried(variant, conversations, embedders, budgets, misses, None if place else store, account, tick)
        for place, variant in enumerate(variants)
    ]


def _tried(
    variant: Variant, conversations: Sequence[Conversation], embedders: Embedders, budgets: Sequence[int],
    misses: int, store: str | None, account: str | None, tick: Tick,
) -> Run:  # fmt: skip
    with TemporaryDirectory(prefix="told-eval-") as folder:
        url = store or f"sqlite:///{Path(folder) / 'eval.db'}"
        with _opened(variant, embedders, url, account) as told:
            run = measured(told, conversations, budgets=budgets, clock=_without(embedders), tick=tick)
            run.misses = explained(told, conversations, run, misses)
            run.embedder = None if told.memory.embedder is None else told.memory.embedder.model
        run.knobs, run.warnings, run.bytes = variant.knobs, list(told.warnings), _bytes(url, account)
    return run


def _without(embedders: Embedders) -> Callable[[], float]:
    """A clock that stands still while an embedder computes."""
    return lambda: perf_counter() - embedders.seconds


@contextmanager
def _opened(variant: Variant, embedders: Embedders, url: str, account: str | None) -> Iterator[Told]:
    """A memory with the settings of a variant, in a store that must be empty."""
    embedder: Remembering | str = embedders.get(variant.knobs.get("embedder")) or "none"
    settings = {"durability": "normal", **{name: one for name, one in variant.knobs.items() if name != "embedder"}}
    with Memory(url, embedder=embedder, account=account, **settings) as memory:
        if memory.stats()["entries"]:
            raise InvalidInput(f"{url} holds memories already.", hint="Name a new store to keep the run in.")
        yield Told(memory, variant.name)


def _bytes(url: str, account: str | None) -> int | None:
    """The size of a store once it was closed, which moves its log into place; one in RAM is gone by then."""
    with Memory(url, embedder="none", account=account) as memory:
        found = memory.stats()
    return int(found["bytes"]) if found["entries"] else None


def explained(told: Told, conversations: Sequence[Conversation], run: Run, most: int) -> list[dict[str, Any]]:
    """Some of the misses at the budget that stands for the run, each with what the trace says of it."""
    named = {one.id: one for one in conversations}
    budget = measure.nearest(run.budgets)
    return [_miss(told, named[row.conversation], row, budget) for row in measure.spread(run.rows, budget, most)]


def _miss(told: Told, conversation: Conversation, row: Seen, budget: int) -> dict[str, Any]:
    told.turn_to(conversation)
    turns = {turn.id: turn for turn in conversation.turns}
    missing = [
        {"id": one, "text": turns[one].text, "rank": row.ranks[one], **told.why(row.question, turns[one])}
        for one in row.missing[budget]
    ]
    return {
        "conversation": conversation.id, "id": row.question.id, "question": row.question.text,
        "category": row.question.category, "answer": row.question.answer, "budget": budget,
        "evidence": len(row.question.evidence), "missing": missing,
    }  # fmt: skip
