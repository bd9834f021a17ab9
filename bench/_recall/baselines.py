"""Baseline rankers, measured like told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench._recall.vectors import matrix
from told.model.scoring import CorpusStatistics, bm25, count_term_frequencies, idf
from told.retrieval.render import count_tokens, count_tokens_batch
from told.text.tokens import extract_query_terms, extract_terms
from told.tools.evaluate.data import EvalConversation, EvalQuestion, EvalTurn, normalize_whitespace
from told.tools.evaluate.run import SEARCH_DEPTH, CachingEmbedder, EvalAnswer

ENCODING = "o200k_base"
RRF_K = 60

Scores = npt.NDArray[np.float64]


def wording(turn: EvalTurn) -> str:
    """Return the indexed text of a turn: the speaker's name, if any, and the content."""
    return turn.content if turn.has_role_only else f"{turn.speaker}: {turn.content}"


def line(turn: EvalTurn) -> str:
    """Format a turn for a baseline's context."""
    return f"[{turn.date[:10]}] {turn.speaker}: {normalize_whitespace(turn.content)}"


def packed(
    turns: Sequence[EvalTurn], costs: Sequence[int], best: Sequence[int], budget: int
) -> str:
    """Return the lines of the best turns that fit, in chronological order."""
    kept, left = [], budget
    for place in best:
        if costs[place] <= left:
            kept.append(place)
            left -= costs[place]
    text = "\n".join(line(turns[place]) for place in sorted(kept))
    assert count_tokens(text, ENCODING) <= budget
    return text


def line_costs(turns: Sequence[EvalTurn]) -> list[int]:
    """Return the tokens of each turn's line."""
    return count_tokens_batch([line(turn) + "\n" for turn in turns], ENCODING)


class Plain:
    """Rank whole turns by one score; the context takes lines in that order while they fit."""

    name = "plain"

    def __init__(self) -> None:
        self.turns: Sequence[EvalTurn] = ()
        self.costs: Sequence[int] = ()

    def ingest(self, conversation: EvalConversation) -> None:
        self.turns = conversation.turns
        self.costs = line_costs(self.turns)

    def scores(self, question: EvalQuestion) -> Scores:
        """Return a score for each turn."""
        raise NotImplementedError

    def search(self, question: EvalQuestion) -> EvalAnswer:
        scores = self.scores(question)
        best = order(scores)[:SEARCH_DEPTH]
        return EvalAnswer(tuple((self.turns[place].id,) for place in best), float(scores[best[0]]))

    def context(self, question: EvalQuestion, budget: int) -> str:
        return packed(self.turns, self.costs, order(self.scores(question)), budget)


class Words(Plain):
    """BM25 over turns with their speaker."""

    name = "BM25 turns"

    def ingest(self, conversation: EvalConversation) -> None:
        super().ingest(conversation)
        found = [extract_terms(wording(turn)) for turn in self.turns]
        self.lengths = [len(one) for one in found]
        self.corpus = CorpusStatistics(len(found), sum(self.lengths))
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for place, one in enumerate(found):
            for term, often in count_term_frequencies(one).items():
                self.postings.setdefault(term, []).append((place, often))

    def scores(self, question: EvalQuestion) -> Scores:
        found = np.zeros(len(self.turns))
        for term in dict.fromkeys(extract_query_terms(question.text)):
            rows = self.postings.get(term, ())
            weight = idf(self.corpus, len(rows))
            for place, often in rows:
                found[place] += bm25(weight, often, self.lengths[place], self.corpus.average_length)
        return found


class Vectors(Plain):
    """Cosine of the local embedder over turns with their speaker."""

    name = "e5 turns"

    def __init__(self, embedder: CachingEmbedder) -> None:
        super().__init__()
        self.embedder = embedder

    def ingest(self, conversation: EvalConversation) -> None:
        super().ingest(conversation)
        self.rows = matrix(self.embedder, [wording(turn) for turn in self.turns])

    def scores(self, question: EvalQuestion) -> Scores:
        found: Scores = (self.rows @ matrix(self.embedder, [question.text], "query")[0]).astype(
            np.float64
        )
        return found


class Fused(Plain):
    """Reciprocal rank fusion of both."""

    name = "RRF of both"

    def __init__(self, parts: Sequence[Plain]) -> None:
        super().__init__()
        self.parts = parts

    def ingest(self, conversation: EvalConversation) -> None:
        super().ingest(conversation)
        for part in self.parts:
            part.ingest(conversation)

    def scores(self, question: EvalQuestion) -> Scores:
        found = np.zeros(len(self.turns))
        for part in self.parts:
            found[order(part.scores(question))] += 1.0 / (RRF_K + 1 + np.arange(len(self.turns)))
        return found


class Newest(Plain):
    """The latest turns, whatever the question."""

    name = "newest first"

    def scores(self, question: EvalQuestion) -> Scores:  # noqa: ARG002
        return np.arange(len(self.turns), dtype=np.float64)


def order(scores: Scores) -> list[int]:
    """Return positions by descending score; ties keep their order."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def baselines(embedder: CachingEmbedder) -> list[Plain]:
    """Return the baseline rankers of every run."""
    return [Words(), Vectors(embedder), Fused([Words(), Vectors(embedder)]), Newest()]
