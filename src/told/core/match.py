"""How well passages match a query, in plain Python: what every index computes, however it does it.

A passage is any key that grows in the order passages were written; what is said of passages is said by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from told.core.query import Mark
from told.core.question import Question
from told.core.score import REACH, above, bm25, cosine, cover, norm, share, toward

K = TypeVar("K", int, tuple[int, int])
NOWHERE = 1 << 62


@dataclass(frozen=True, slots=True)
class Voice:
    """Who said a passage, in which slot of which fact, when, and in which conversation."""

    seq: int
    slot: int
    said_at: int
    talk: int
    role: str | None
    actor: str | None


def summed(codes: Iterable[bytes]) -> tuple[Sequence[int], int]:
    """The sum of codes, each times its share, and how many there are."""
    total: list[int] = []
    count = 0
    for code in codes:
        weight, values = share(norm(code)), memoryview(code).cast("b")
        total = [a + weight * b for a, b in zip(total or [0] * len(values), values, strict=True)]
        count += 1
    return total, count


@dataclass(frozen=True, slots=True)
class Turns(Generic[K]):
    """Which visible turn was said after which; of several after one, the first."""

    before: Mapping[K, K]
    after: Mapping[K, K]

    @classmethod
    def of(cls, before: Mapping[K, K]) -> Turns[K]:
        """From the turn before each, in the order they were written."""
        after: dict[K, K] = {}
        for key, earlier in before.items():
            after.setdefault(earlier, key)
        return cls(before, after)

    def step(self, key: K, distance: int) -> K | None:
        """The turn so many turns later, or earlier."""
        way, found = self.after if distance > 0 else self.before, key
        for _ in range(abs(distance)):
            if found not in way:
                return None
            found = way[found]
        return found

    def around(self, key: K) -> list[tuple[K, float]]:
        """A turn and those around it, each with what its words count for."""
        found = [(key, 1.0)]
        for distance, part in REACH:
            if (other := self.step(key, distance)) is not None:
                found.append((other, part))
        return found


@dataclass(slots=True)
class Matches(Generic[K]):
    """The visible passages held against a question: their lengths, their terms of it, their vectors and their turns."""

    question: Question
    lengths: Mapping[K, int]
    counts: Mapping[K, Mapping[str, int]]
    codes: Mapping[K, bytes]
    turns: Turns[K]
    cosines: dict[K, float] = field(init=False)
    hubs: dict[K, float] = field(init=False)
    near: dict[K, float] = field(init=False)
    words: dict[K, float] = field(init=False)

    def __post_init__(self) -> None:
        asked, middle = self.question.asked, self.question.middle
        codes = {key: code for key, code in self.codes.items() if any(code)} if asked else {}
        self.cosines = {key: toward(asked, code) for key, code in codes.items()}
        self.hubs = {key: middle.hub(cosine(middle.code, code)) for key, code in codes.items() if middle.length}
        off = self.question.off
        self.near = {key: above(near, self.hubs.get(key, 0.0), off) for key, near in self.cosines.items()}
        self.words = {key: self._bm25(key) for key in self.counts}

    def _bm25(self, key: K) -> float:
        """A passage's score by its words; each term counts once, in the order it was asked in."""
        counts, length, average = self.counts[key], self.lengths[key], self.question.average
        score = 0.0
        for term, weight in self.question.weights.items():
            if term in counts:
                score += bm25(weight, counts[term], length, average)
        return score

    def told(self, key: K) -> float:
        """What the terms tell that stand in a turn or near it, each counted where it counts most."""
        turns, total = self.turns.around(key), 0.0
        for term, weight in self.question.weights.items():
            total += weight * max((part for other, part in turns if term in self.counts.get(other, ())), default=0.0)
        return total

    def dense(self, key: K) -> float | None:
        """How much nearer than the average a turn is, over its own window and that of the turn after it."""
        own, after = self.near.get(key), self.turns.after.get(key)
        other = None if after is None else self.near.get(after)
        if own is None:
            return None
        return (own if other is None else (own + other) / 2) - self.question.level

    def best(self, scores: Mapping[K, float], chosen: Iterable[K]) -> list[tuple[float, K]]:
        """The best of the chosen by some scores, at most as deep as asked; equals go to the newer."""
        ranked = [(scores[key], key) for key in chosen if key in scores]
        return sorted(ranked, reverse=True)[: self.question.probe.depth]

    def offered(self, listed: Mapping[K, int], chosen: Mapping[K, Voice]) -> list[K]:
        """What is offered of the chosen: what is listed, the turns around the first, and what the probe asks for."""
        probe = self.question.probe
        found = set(listed)
        for key, place in listed.items():
            if place <= probe.beside:
                found.update(other for other, _ in self.turns.around(key))
        found.update(key for key, voice in chosen.items() if voice.seq in probe.also)
        said = [key for key, voice in chosen.items() if any(a <= voice.said_at < b for a, b in probe.spans)]
        found.update(sorted(said)[-probe.depth :])
        return sorted(key for key in found if key in chosen)

    def mark(self, key: K, voice: Voice, near: int | None, words: int | None) -> Mark:
        """Everything known of a passage."""
        code: Any = self.codes.get(key, b"") if self.question.asked else b""
        return Mark(
            voice.seq, voice.slot, voice.said_at, voice.talk, voice.role, voice.actor, self.cosines.get(key),
            self.dense(key),
            self.hubs.get(key, 0.0), self.words.get(key, 0.0), cover(self.told(key), self.question.mass),
            near, words, bytes(code),
        )  # fmt: skip


def places(near: Mapping[K, int], words: Mapping[K, int]) -> dict[K, int]:
    """The better of the places each passage has in the two lists."""
    return {key: min(near.get(key, NOWHERE), words.get(key, NOWHERE)) for key in near.keys() | words.keys()}
