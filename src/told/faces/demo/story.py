"""The sample conversation, and how it is told again: line by line, with the clock set to each line's day."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from told.core.when import parse_instant
from told.faces.sdk import Memory

DEMO_NOW = parse_instant("2026-09-30T18:00:00Z")
"""When the walk through the memory takes place."""


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One thing that was said: to whom it belongs, when told heard it, and when it was said if that was earlier."""

    at: str
    user: str
    text: str
    role: str = "user"
    said: str | None = None
    topic: str | None = None
    key: str | None = None


class DemoClock:
    """A clock that shows what it is set to."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        """Microseconds since 1970."""
        return self.now


def load_story() -> Sequence[StoryLine]:
    """The sample conversation, in order."""
    text = files("told.faces.demo").joinpath("story.jsonl").read_text("utf-8")
    return [StoryLine(**json.loads(row)) for row in text.splitlines()]


def replay_story(memory: Memory, clock: DemoClock, tick: Callable[[int], None]) -> dict[str, str]:
    """Tell the story to a memory, each line on its day; return the first memory made of each line that has a key."""
    ids: dict[str, str] = {}
    for line in load_story():
        clock.now = parse_instant(line.at)
        message = {"role": line.role, "content": line.text, "timestamp": line.said or line.at}
        receipt = memory.add(message, user_id=line.user, metadata={"topic": line.topic})
        if line.key:
            ids[line.key] = receipt["results"][0]["id"]
        tick(1)
    clock.now = DEMO_NOW
    return ids
