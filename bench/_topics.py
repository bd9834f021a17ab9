"""Calibrate the topic thresholds of an embedder on conversations with known sessions.

- `join`: agreement of topics with sessions over all pairs of exchanges (precision, recall, F1),
  and the share of a topic's exchanges from its main session (purity). The highest threshold with
  nearly the best F1 is chosen, because sessions cover several subjects.
- `near`: a question and the topics of its evidence against all others. The lowest threshold that
  admits on average no more than six others is chosen, as many as the seed looks at.
- `hot`: a question and the turns of its evidence against all others; the best separation.
- `merge`: as far from `join` towards equality as in the seed.
- `group`: the cosine that one in twenty pairs of topics reaches.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import _table
from bench._recall.data import load
from bench._recall.vectors import File
from told.maintenance import topic_assignment
from told.model.scoring import quantise
from told.model.topics import Thresholds, TopicIndex, VectorMean, find_topic_to_join
from told.tools.evaluate.data import EvalConversation
from told.tools.evaluate.run import CachingEmbedder, EmbedderPool

Floats = npt.NDArray[np.float64]
JOINS = [round(0.30 + 0.05 * step, 2) for step in range(9)] + [
    round(0.72 + 0.02 * step, 2) for step in range(12)
]
NEARS = [round(0.10 + 0.05 * step, 2) for step in range(12)] + [
    round(0.66 + 0.01 * step, 2) for step in range(25)
]
NEARLY, SIX, OFTEN = 0.97, 6.0, 0.95
SEED = Thresholds()


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as vectors: exchanges, turns, questions and how they relate."""

    codes: list[bytes]
    sessions: list[str]
    turns: list[tuple[str, ...]]
    said: Floats
    names: list[str]
    asked: Floats
    evidence: list[frozenset[str]]


def talk_of(conversation: EvalConversation, embedder: CachingEmbedder) -> Talk:
    """Embed a conversation; two consecutive turns of a session are an exchange."""
    pairs: list[list[Any]] = []
    for turn in conversation.turns:
        open_ = pairs and len(pairs[-1]) == 1 and pairs[-1][0].session == turn.session
        pairs[-1].append(turn) if open_ else pairs.append([turn])
    texts = [
        "\n".join(f"{who}: {t.text}" for who, t in zip(("User", "Agent"), pair, strict=False))
        for pair in pairs
    ]
    questions = [question for question in conversation.questions if question.is_measurable]
    said = embedder.embed([f"{turn.speaker}: {turn.text}" for turn in conversation.turns])
    return Talk(
        [quantise(vector) for vector in embedder.embed(texts)],
        [pair[0].session for pair in pairs],
        [tuple(turn.id for turn in pair) for pair in pairs],
        _units(said),
        [turn.id for turn in conversation.turns],
        _units(embedder.embed([question.text for question in questions], "query")),
        [frozenset(question.evidence) for question in questions],
    )


def _units(vectors: Sequence[Sequence[float]]) -> Floats:
    rows: Floats = np.array(vectors, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def topics_of(talk: Talk, threshold: float) -> tuple[list[str], dict[str, VectorMean]]:
    """Return the topic of each exchange and the mean of each topic."""
    shelf, means, topics = (
        TopicIndex(dot_fn=topic_assignment.choose_dot_products()),
        dict[str, VectorMean](),
        list[str](),
    )
    for number, code in enumerate(talk.codes):
        topic = find_topic_to_join(code, shelf, threshold) or f"{number:06}"
        means[topic] = means.get(topic, VectorMean()).add(code)
        shelf.put_topic(topic, means[topic].code)
        topics.append(topic)
    return topics, means


def agreement(talk: Talk, threshold: float) -> dict[str, float]:
    """Measure how well topics agree with sessions."""
    found, _ = topics_of(talk, threshold)
    topics, sessions = np.array(found), np.array(talk.sessions)
    one, other = np.triu_indices(len(found), 1)
    together, same = topics[one] == topics[other], sessions[one] == sessions[other]
    both = float((together & same).sum())
    precision, recall = both / max(together.sum(), 1), both / max(same.sum(), 1)
    main = sum(max(Counter(sessions[topics == topic]).values()) for topic in set(found))
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        "purity": main / len(found),
        "size": len(found) / len(set(found)),
    }


def nearness(
    talk: Talk, threshold: float
) -> tuple[list[tuple[Floats, Floats]], list[tuple[Floats, Floats]], Floats]:
    """Return cosines of questions with topics and turns, of their evidence and others, and of
    topics.
    """
    found, means = topics_of(talk, threshold)
    names = list(means)
    centres = _units([np.frombuffer(means[name].code, np.int8).tolist() for name in names])
    where = {turn: topic for turns, topic in zip(talk.turns, found, strict=True) for turn in turns}
    by_topic, by_turn = talk.asked @ centres.T, talk.asked @ talk.said.T
    topical, turning = [], []
    for row, evidence in enumerate(talk.evidence):
        inside = {where[turn] for turn in evidence if turn in where}
        mask = np.array([name in inside for name in names])
        topical.append((by_topic[row][mask], by_topic[row][~mask]))
        mask = np.array([name in evidence for name in talk.names])
        turning.append((by_turn[row][mask], by_turn[row][~mask]))
    return topical, turning, (centres @ centres.T)[np.triu_indices(len(names), 1)]


def chosen(
    talks: Sequence[Talk],
) -> tuple[Thresholds, list[dict[str, float]], list[dict[str, float]]]:
    """Return the chosen thresholds and the figures behind them."""
    joins = []
    for threshold in JOINS:
        figures = [agreement(talk, threshold) for talk in talks]
        joins.append(
            {
                "join": threshold,
                **{key: float(np.mean([one[key] for one in figures])) for key in figures[0]},
            }
        )
    best = max(row["f1"] for row in joins)
    at = max(row["join"] for row in joins if row["f1"] >= NEARLY * best)
    parts = [nearness(talk, at) for talk in talks]
    topical, turning = (
        [pair for part in parts for pair in part[0]],
        [pair for part in parts for pair in part[1]],
    )
    nears = [_apart(threshold, topical, turning) for threshold in NEARS]
    near = min(row["near"] for row in nears if row["others"] <= SIX)
    hot = max(nears, key=lambda row: row["turns"] - row["other turns"])["near"]
    merge = at + (SEED.merge - SEED.join) / (1 - SEED.join) * (1 - at)
    group = float(np.quantile(np.concatenate([part[2] for part in parts]), OFTEN))
    return Thresholds(at, round(merge, 2), near, hot, round(min(group, at - 0.02), 2)), joins, nears


def _apart(
    threshold: float,
    topical: Sequence[tuple[Floats, Floats]],
    turning: Sequence[tuple[Floats, Floats]],
) -> dict[str, float]:
    return {
        "near": threshold,
        "topics": float(np.mean(np.concatenate([inside for inside, _ in topical]) >= threshold)),
        "others": float(np.mean([(outside >= threshold).sum() for _, outside in topical])),
        "turns": float(np.mean(np.concatenate([inside for inside, _ in turning]) >= threshold)),
        "other turns": float(np.mean([np.mean(outside >= threshold) for _, outside in turning])),
    }


def calibrate(folder: Path | None, names: Sequence[str]) -> None:
    """Print and save the thresholds of some local embedders."""
    conversations = None if folder is None else load(Path(folder), "locomo")
    if conversations is None:
        raise SystemExit("The data is not here: name its folder with --data or TOLD_EVAL_DATA.")
    kept = File(_table.RESULTS / "work-recall" / "vectors.db")
    embedders, results = EmbedderPool("none", kept), dict[str, Any]()
    for name in names:
        embedder = embedders.get(f"local:{name}")
        if embedder is None:
            raise SystemExit(f"The model {name} is not installed: `told models install {name}`.")
        talks = [talk_of(conversation, embedder) for conversation in conversations]
        print(f"{name}: {embedder.seconds:.0f} s to embed", file=sys.stderr)
        limits, joins, nears = chosen(talks)
        for rows in (joins, nears):
            head = list(rows[0])
            print(_table.plain(head, [[f"{row[key]:.3f}" for key in head] for row in rows]), "\n")
        print(f"{name}: {limits}\n")
        results[name] = {"thresholds": str(limits), "joins": joins, "nears": nears}
    print(_table.save("topics-calibration", {"machine": _table.machine(), **results}))
