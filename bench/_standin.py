"""A stand-in language model that answers the write path at once, from the facts that rules find."""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench._corpus import DIM
from bench._hashed import vector
from told.curation import llm as curate
from told.extraction import apertures, closed_world, graph, llm
from told.ingest.types import ExtractionInput, ExtractionResult
from told.model.entry import Claim
from told.ports import ChatLine, Purpose, Reply, Tool, ToolCall, ToolReply, Usage, Vector

NOTHING_YET = ExtractionResult()


@dataclass(slots=True)
class Spent:
    """Processor time of the stand-ins, in any thread."""

    nanos: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time spent inside the block."""
        start = time.thread_time_ns()
        yield
        with self.lock:
            self.nanos += time.thread_time_ns() - start


class Vectors:
    """A cheap embedder whose time is counted separately."""

    model = "bench:hashed"
    dim = DIM
    local = True

    def __init__(self, spent: Spent) -> None:
        self.spent = spent

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:  # noqa: ARG002
        """Return one unit vector per text."""
        with self.spent.counted():
            return [array("f", vector(text).tobytes()) for text in texts]


class StandIn:
    """Answer with the facts that rules find in the current turn, and keep every prompt and answer.

    It answers the same through every aperture and nothing new in a second pass. With tools it looks
    up memories, then writes and finishes. It never says that one memory replaces another, and
    leaves that to the rules.
    """

    model, local = "stand-in", True

    def __init__(self, spent: Spent) -> None:
        self.spent = spent
        self.heard: ExtractionInput | None = None
        self.found = NOTHING_YET
        self.asked: list[tuple[str, str]] = []
        self._answers: Sequence[tuple[Mapping[str, Any], Callable[[str, str], Any]]] = (
            (llm.SCHEMA, self._facts),
            (closed_world.SCHEMA, self._form),
            (apertures.SCHEMA, self._triples),
            (curate.SCHEMA, _decisions),
        )

    def hear(self, heard: ExtractionInput, found: ExtractionResult) -> None:
        """Set the current turn."""
        self.heard, self.found, self.asked = heard, found, []

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """Return an answer in the form of the schema."""
        with self.spent.counted():
            answer = next(answer for known, answer in self._answers if known == schema)
            said = json.dumps(answer(system, user), ensure_ascii=False)
            self.asked.append((f"{system}\n{user}\n{json.dumps(schema)}", said))
            return Reply(said, Usage(calls=1))

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """Return the next calls."""
        with self.spent.counted():
            calls = tuple(
                self._drawn()
                if tools[0].name == graph.ENTITIES_TOOL.name
                else self._written(lines, tools)
            )
            offered = json.dumps([[tool.name, tool.description, tool.parameters] for tool in tools])
            said = "\n".join(f"{line.role}: {line.text} {_dumped(line.calls)}" for line in lines)
            self.asked.append((f"{system}\n{offered}\n{said}", _dumped(calls)))
            return ToolReply("", calls, Usage(calls=1))

    # Answers

    def _facts(self, _system: str, _user: str) -> Any:
        return {"facts": [one.claim.text for one in self.found.claims]}

    def _form(self, system: str, _user: str) -> Any:
        fitting = (
            (claim, quote) for claim, quote in self._quoted() if f"\n- {claim.kind}: " in system
        )
        return {
            "facts": [
                {
                    "concept": claim.kind,
                    "value": claim.object,
                    "polarity": claim.polarity,
                    "evidence": quote,
                }
                for claim, quote in fitting
            ]
        }

    def _triples(self, _system: str, user: str) -> Any:
        again = "=== found-" in user
        return {
            "facts": [
                {
                    "subject": claim.subject,
                    "predicate": claim.predicate,
                    "object_lit": {"v": claim.object},
                    "confidence": claim.confidence,
                    "modality": "asserted",
                    "evidence": quote,
                }
                for claim, quote in (() if again else self._quoted())
            ]
        }

    def _written(self, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Iterator[ToolCall]:
        """Look up first, then write everything and finish; finish at once if there is nothing."""
        offered = {tool.name: tool for tool in tools}
        wanted = [(f"extract_{claim.kind}", claim, quote) for claim, quote in self._quoted()]
        wanted = [row for row in wanted if row[0] in offered]
        if wanted and len(lines) == 1:
            yield ToolCall("0", "list", {"kind": ""})
            return
        for number, (name, claim, quote) in enumerate(wanted):
            yield ToolCall(str(number), name, _arguments(offered[name], claim, quote))
        yield ToolCall("done", "done", {})

    def _drawn(self) -> Iterator[ToolCall]:
        entities = [
            {"name": one.name, "type": one.type, "description": one.description}
            for one in self.found.entities
        ]
        relations = [
            {"source": one.src, "relation": one.rel, "target": one.dst}
            for one in self.found.relations
        ]
        yield ToolCall("0", graph.ENTITIES_TOOL.name, {"entities": entities})
        yield ToolCall("1", graph.RELATIONS_TOOL.name, {"relations": relations})

    def _quoted(self) -> Iterator[tuple[Claim, str]]:
        """Return every claim with its quote."""
        assert self.heard is not None
        for one in self.found.claims:
            yield (
                one.claim,
                self.heard.turns[one.turn].evidence.content[slice(*(one.claim.span or (0, None)))],
            )


def _decisions(_system: str, user: str) -> Any:
    """Decide that everything is new."""
    count = sum(line[:1].isdigit() for line in user.partition("New facts:")[2].splitlines())
    return {"decisions": [{"fact": number, "event": "ADD"} for number in range(1, count + 1)]}


def _arguments(tool: Tool, claim: Claim, quote: str) -> dict[str, Any]:
    """Return a tool's arguments: a text if it wants one, else the claim's fields."""
    whole = {"content": claim.text, "abstract": claim.text, "evidence": quote}
    return {name: whole.get(name, claim.object) for name in tool.parameters["required"]}


def _dumped(calls: Sequence[ToolCall]) -> str:
    return (
        json.dumps([[call.name, call.arguments] for call in calls], ensure_ascii=False)
        if calls
        else ""
    )
