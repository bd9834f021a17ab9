"""Why the answer is what it is: the steps of a read as they happen, and what became of every candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

from told.core.fact import LEVELS, Fact
from told.core.query import Candidate, Mark, Probe, Step
from told.core.when import iso
from told.read.asked import Asked
from told.read.rank import Scored

Note: TypeAlias = Callable[[], str]
"""What there is to say of a stage, put into words only for who wants to know."""


@dataclass(slots=True)
class Clock:
    """The stages of a read as they happen."""

    stages: list[tuple[str, int, int, float, Note]] = field(default_factory=list)
    last: int = field(default_factory=perf_counter_ns)

    def mark(self, stage: str, kept: int, dropped: int = 0, note: Note = str) -> None:
        """A stage ended just now."""
        now = perf_counter_ns()
        self.stages.append((stage, kept, dropped, (now - self.last) / 1000, note))
        self.last = now

    def recount(self, stage: str, kept: int, dropped: int, note: Note) -> None:
        """More went through a stage later on."""
        self.stages = [(s[0], kept, dropped, s[3], note) if s[0] == stage else s for s in self.stages]

    def steps(self) -> tuple[Step, ...]:
        """The steps of a trace."""
        return tuple(Step(stage, kept, dropped, micros, note()) for stage, kept, dropped, micros, note in self.stages)


def understood(asked: Asked) -> dict[str, Any]:
    """What was read out of a query, as JSON."""
    spans = [
        {"from": None if span.start is None else iso(span.start), "to": None if span.end is None else iso(span.end)}
        for span in asked.spans
    ]
    flags = {"when": asked.asks_when, "reply": asked.asks_reply, "past": asked.asks_past}
    return {
        "sort": str(asked.sort), "intent": str(asked.intent), "language": asked.language, "names": list(asked.names),
        "times": spans, "asks": [name for name, said in flags.items() if said],
    }  # fmt: skip


def sources(mark: Mark, probe: Probe, extra: Mapping[int, str], heat: Mapping[int, str]) -> tuple[str, ...]:
    """The lists a passage came from, with its place in those that have places."""
    found = [f"vector #{mark.near}"] if mark.near else []
    found += [f"words #{mark.words}"] if mark.words else []
    if any(start <= mark.said_at < end for start, end in probe.spans):
        found.append("time")
    if mark.seq in heat:
        found.append(heat[mark.seq])
    if mark.seq in extra:
        found.append(extra[mark.seq])
    return tuple(found) or ("beside a hit",)


def parts(one: Scored) -> dict[str, float | None]:
    """What a score is made of, after what the index measured."""
    mark = one.mark
    return {
        "cosine": mark.cosine, "cosine_rank": mark.near, "bm25": mark.bm25 or None, "bm25_rank": mark.words,
        **one.parts, "raw": one.score,
    }  # fmt: skip


def level(mark: Mark) -> str:
    """Which form of a memory a passage is."""
    return LEVELS.get(mark.slot, "content")


Fate: TypeAlias = tuple[str, str]
"""The stage at which a candidate ended, and why; without a reason it did not."""

KEPT: Final[Fate] = ("select", "")


@dataclass(slots=True)
class Ledger:
    """Who went on from each stage; what became of each candidate is told only when somebody asks."""

    stages: list[tuple[Sequence[Scored], Sequence[Scored], str, str | Mapping[int, str]]] = field(default_factory=list)

    def part(self, before: Sequence[Scored], after: Sequence[Scored], stage: str, why: str | Mapping[int, str]) -> None:
        """Of those before only those after went on; the others ended for one reason, or each for its own."""
        self.stages.append((before, after, stage, why))

    def fates(self) -> dict[tuple[int, int], Fate]:
        """What became of those that ended, by position and slot; the first end counts."""
        found: dict[tuple[int, int], Fate] = {}
        for before, after, stage, why in self.stages:
            gone = {_key(one): one.mark.seq for one in before}
            for one in after:
                gone.pop(_key(one), None)
            for key, seq in gone.items():
                found.setdefault(key, (stage, why if isinstance(why, str) else why[seq]))
        return found


def _key(one: Scored) -> tuple[int, int]:
    return one.mark.seq, one.mark.slot


def candidate(one: Scored, fact: Fact, score: float, came: tuple[str, ...], fate: Fate) -> Candidate:
    """A candidate with what became of it."""
    stage, reason = fate
    return Candidate(fact.id, fact.seq, fact.text, score, parts(one), stage, not reason, reason, came, level(one.mark))
