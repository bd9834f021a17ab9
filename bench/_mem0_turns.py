"""The peer with extraction (`infer=True`), turn by turn, in a separate environment.

`_mem0_turns.py <folder>` reads turns and their facts from standard input. It prints the prompts,
the answers, and the processor time of each turn without model and embedder. Nothing here imports
told.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._hashed import vector
from bench._mem0 import Mem0

USER = "listener"


class Clock:
    """Processor time spent in a stand-in."""

    def __init__(self) -> None:
        self.nanos = 0

    def __enter__(self) -> None:
        self.start = time.thread_time_ns()

    def __exit__(self, *_: object) -> None:
        self.nanos += time.thread_time_ns() - self.start


class StandIn:
    """The model interface of mem0; it returns the known facts in the form the prompt wants."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.facts: Sequence[str] = ()
        self.asked: list[tuple[str, str]] = []

    def generate_response(self, messages: Sequence[dict[str, Any]], **_: object) -> str:
        """Return the facts, the decisions about them, or both."""
        with self.clock:
            prompt = "\n".join(message["content"] for message in messages)
            answer = json.dumps(self._answer(prompt))
            self.asked.append((prompt, answer))
            return answer

    def _answer(self, prompt: str) -> dict[str, Any]:
        if '"event"' in prompt:
            rows = [
                {"id": str(n), "text": fact, "event": "ADD"} for n, fact in enumerate(self.facts)
            ]
        elif '"facts"' in prompt:
            return {"facts": list(self.facts)}
        else:
            rows = [
                {"id": str(n), "text": fact, "attributed_to": "user"}
                for n, fact in enumerate(self.facts)
            ]
        return {"memory": rows}


class Embedder:
    """The embedder interface of mem0."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        """Return the vector of a text."""
        with self.clock:
            row: list[float] = vector(text).tolist()
            return row

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        """Return the vectors of some texts."""
        return [self.embed(text, memory_action) for text in texts]


def heard(folder: Path, turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add every turn and return its cost."""
    clock = Clock()
    model = StandIn(clock)
    peer = Mem0(folder)
    peer.memory.llm, peer.memory.embedding_model = model, Embedder(clock)
    found: list[dict[str, Any]] = []
    for turn in turns:
        model.facts, model.asked, clock.nanos = turn["facts"], [], 0
        busy = time.process_time_ns()
        done = peer.memory.add(turn["messages"], user_id=USER)
        nanos = time.process_time_ns() - busy - clock.nanos
        found.append({"asked": model.asked, "nanos": nanos, "memories": len(done["results"])})
    peer.close()
    return found


def main() -> None:
    """Read turns, add them and print the costs."""
    out, sys.stdout = sys.stdout, sys.stderr  # keep library output off standard output
    logging.disable()
    turns = heard(Path(sys.argv[1]), json.load(sys.stdin))
    print(json.dumps({"name": f"mem0 {version('mem0ai')}", "turns": turns}), file=out, flush=True)


if __name__ == "__main__":
    main()
