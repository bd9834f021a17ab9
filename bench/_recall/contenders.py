"""Who is measured: told by its public face, and the plain rankers everybody can build."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bench._recall.data import Conversation, Question, Turn, folded
from bench._recall.vectors import Remembered
from told import Memory
from told.core.score import Corpus, bm25, frequencies, idf
from told.core.text import query_terms, terms
from told.read.tokens import count, counts

ENCODING = "o200k_base"
DEPTH = 50
RRF_K = 60

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contender offers for a question: the turns behind each hit, best first, and how sure it is."""

    ranked: tuple[tuple[str, ...], ...]
    confidence: float


class Contender(Protocol):
    """One way to remember a conversation."""

    name: str

    def ingest(self, conversation: Conversation) -> None:
        """Read the whole conversation; what was read before is forgotten."""

    def search(self, question: Question) -> Answer:
        """The best hits."""

    def context(self, question: Question, budget: int) -> str:
        """A text of at most so many tokens."""


# ----------------------------------------------------------------------------------------------------------------- told


class Told:
    """told as its users have it."""

    name = "told"

    def __init__(self, folder: Path, embedder: Remembered, knobs: Mapping[str, Any]) -> None:
        self.path = folder / "told.db"
        self.memory = Memory(f"sqlite:///{self.path}", embedder=embedder, durability="normal", **knobs)
        self.user = ""
        self.ids: dict[str, tuple[str, ...]] = {}

    def ingest(self, conversation: Conversation) -> None:
        self.user = conversation.id
        self.ids = _by_text(conversation.turns)
        for _, turns in groupby(conversation.turns, key=lambda turn: turn.session):
            self.memory.add([message(turn) for turn in turns], user_id=self.user)

    def search(self, question: Question) -> Answer:
        asked = _accepted(self.memory.search, reference_date=question.date)
        found = self.memory.search(question.text, user_id=self.user, limit=DEPTH, explain=True, **asked)
        hits = found["results"]
        return Answer(tuple(self._turns(hit) for hit in hits), _confidence(found))

    def context(self, question: Question, budget: int) -> str:
        asked = _accepted(self.memory.context, reference_date=question.date)
        return str(self.memory.context(question.text, user_id=self.user, budget=budget, **asked))

    def close(self) -> int:
        """Let go of the file, and say how many bytes it has."""
        self.memory.close()
        return self.path.stat().st_size

    def _turns(self, hit: Mapping[str, Any]) -> tuple[str, ...]:
        """The turns a hit stands for: its own and those that said the very same."""
        own = hit["metadata"].get("id")
        return tuple(dict.fromkeys([*([own] if own else ()), *self.ids.get(folded(hit["memory"]), ())]))


def message(turn: Turn) -> dict[str, Any]:
    """A turn as told takes it."""
    who = {"role": turn.speaker} if turn.is_role else {"role": "user", "name": turn.speaker}
    told_apart = {"id": turn.id, "session": turn.session}
    return {**who, "content": turn.content, "timestamp": turn.date, "metadata": told_apart}


def _by_text(turns: Sequence[Turn]) -> dict[str, tuple[str, ...]]:
    """Turns that say the same are one memory, so a hit on one is a hit on all."""
    same: dict[str, list[str]] = {}
    for turn in turns:
        same.setdefault(folded(turn.content), []).append(turn.id)
    return {text: tuple(ids) for text, ids in same.items()}


def _accepted(verb: Any, **options: Any) -> dict[str, Any]:
    """The options that are given and that this version of the verb takes."""
    known = inspect.signature(verb).parameters
    return {name: value for name, value in options.items() if value is not None and name in known}


def _confidence(found: Mapping[str, Any]) -> float:
    """The calibrated score of the answer where there is one, else the best raw cosine, else the best score."""
    if "confidence" in found:
        return float(found["confidence"])
    hits = found["results"]
    cosines = [hit["score_details"].get("cosine") for hit in hits]
    known = [cosine for cosine in cosines if cosine is not None]
    return max(known) if known else max((hit["score"] for hit in hits), default=0.0)


# ------------------------------------------------------------------------------------------------------------ baselines


class Plain:
    """Whole turns ranked by one list of scores; the context takes lines in that order while they fit."""

    name = "plain"

    def __init__(self) -> None:
        self.turns: Sequence[Turn] = ()
        self.costs: Sequence[int] = ()

    def ingest(self, conversation: Conversation) -> None:
        self.turns = conversation.turns
        self.costs = counts([turn.line + "\n" for turn in self.turns], ENCODING)

    def scores(self, question: Question) -> Scores:
        """A score for each turn."""
        raise NotImplementedError

    def search(self, question: Question) -> Answer:
        scores = self.scores(question)
        best = order(scores)[:DEPTH]
        return Answer(tuple((self.turns[place].id,) for place in best), float(scores[best[0]]))

    def context(self, question: Question, budget: int) -> str:
        kept, left = [], budget
        for place in order(self.scores(question)):
            if self.costs[place] <= left:
                kept.append(place)
                left -= self.costs[place]
        text = "\n".join(self.turns[place].line for place in sorted(kept))
        assert count(text, ENCODING) <= budget
        return text


class Words(Plain):
    """BM25 over turns with their speaker."""

    name = "BM25 turns"

    def ingest(self, conversation: Conversation) -> None:
        super().ingest(conversation)
        found = [terms(turn.wording) for turn in self.turns]
        self.lengths = [len(one) for one in found]
        self.corpus = Corpus(len(found), sum(self.lengths))
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for place, one in enumerate(found):
            for term, often in frequencies(one).items():
                self.postings.setdefault(term, []).append((place, often))

    def scores(self, question: Question) -> Scores:
        found = np.zeros(len(self.turns))
        for term in dict.fromkeys(query_terms(question.text)):
            rows = self.postings.get(term, ())
            weight = idf(self.corpus, len(rows))
            for place, often in rows:
                found[place] += bm25(weight, often, self.lengths[place], self.corpus.average)
        return found


class Vectors(Plain):
    """Cosine of the local embedder over turns with their speaker."""

    name = "e5 turns"

    def __init__(self, embedder: Remembered) -> None:
        super().__init__()
        self.embedder = embedder

    def ingest(self, conversation: Conversation) -> None:
        super().ingest(conversation)
        self.rows = self.embedder.matrix([turn.wording for turn in self.turns])

    def scores(self, question: Question) -> Scores:
        found: Scores = (self.rows @ self.embedder.matrix([question.text], "query")[0]).astype(np.float64)
        return found


class Fused(Plain):
    """Reciprocal rank fusion of the two."""

    name = "RRF of both"

    def __init__(self, parts: Sequence[Plain]) -> None:
        super().__init__()
        self.parts = parts

    def ingest(self, conversation: Conversation) -> None:
        super().ingest(conversation)
        for part in self.parts:
            part.ingest(conversation)

    def scores(self, question: Question) -> Scores:
        found = np.zeros(len(self.turns))
        for part in self.parts:
            found[order(part.scores(question))] += 1.0 / (RRF_K + 1 + np.arange(len(self.turns)))
        return found


class Newest(Plain):
    """What was said last, whatever is asked."""

    name = "newest first"

    def scores(self, question: Question) -> Scores:  # noqa: ARG002
        return np.arange(len(self.turns), dtype=np.float64)


def order(scores: Scores) -> list[int]:
    """Places, the best first, the earlier of equals before the later."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def baselines(embedder: Remembered) -> list[Plain]:
    """The plain rankers of every run."""
    return [Words(), Vectors(embedder), Fused([Words(), Vectors(embedder)]), Newest()]
