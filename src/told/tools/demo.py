"""The demo: load a sample conversation and run a sequence of real calls on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from told.api import serialize
from told.errors import InvalidInput
from told.ids import IdGenerator
from told.text.dates import parse_instant

if TYPE_CHECKING:
    from told.api.memory import Memory

DEMO_NOW = parse_instant("2026-09-30T18:00:00Z")
"""The time at which the demo's calls run."""


@dataclass(frozen=True, slots=True)
class StoryLine:
    """A line of the story: its owner, when it was added and when it was said."""

    at: str
    user: str
    text: str
    role: str = "user"
    said: str | None = None
    topic: str | None = None
    key: str | None = None


class DemoClock:
    """A clock that returns the time it was set to."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        """Return microseconds since 1970."""
        return self.now


def load_story() -> Sequence[StoryLine]:
    """Load the sample conversation in order."""
    text = files("told.tools").joinpath("story.jsonl").read_text("utf-8")
    return [StoryLine(**json.loads(row)) for row in text.splitlines()]


def replay_story(memory: Memory, clock: DemoClock, tick: Callable[[int], None]) -> dict[str, str]:
    """Add each line on its day; return the first memory id of each keyed line."""
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


STORE_FILE = "demo.db"
SECRET = "Falcon-4711"  # noqa: S105


@dataclass(frozen=True, slots=True)
class DemoAct:
    """A call, its result and a comment; a title starts a new section."""

    verb: str
    call: str
    result: Any
    comment: str = ""
    title: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the act as JSON."""
        return {"title": self.title, "say": self.comment, "call": self.call, "result": self.result}


@dataclass(frozen=True, slots=True)
class DemoRunner:
    """Calls a memory and records each call as Python source."""

    memory: Memory
    names: Mapping[str, str]

    def run_call(self, title: str, comment: str, verb: str, *args: Any, **options: Any) -> DemoAct:
        """Make a call and record it."""
        result = getattr(self.memory, verb)(*args, **options)
        if verb == "context":
            result = serialize.bundle_to_dict(result)
        arguments = [
            *map(self._format_argument, args),
            *(f"{name}={value!r}" for name, value in options.items()),
        ]
        return DemoAct(verb, f"memory.{verb}({', '.join(arguments)})", result, comment, title)

    def _format_argument(self, value: Any) -> str:
        """Format an argument as source; show story ids by name."""
        return next(
            (name for name, known_id in self.names.items() if known_id == value), repr(value)
        )


@contextmanager
def open_demo_memory(
    keep: Path | None = None, embedder: str | None = None
) -> Iterator[tuple[Memory, DemoClock, Path]]:
    """Open a new memory in a temporary or kept folder, with its clock."""
    from told.api.memory import Memory

    with ExitStack() as stack:
        if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            raise InvalidInput(
                f"{keep} is not an empty folder.", hint="Name a new folder for --keep."
            )
        if keep is None:
            keep = Path(stack.enter_context(TemporaryDirectory(prefix="told-demo-")))
        clock = DemoClock()
        memory = Memory(
            f"sqlite:///{keep / STORE_FILE}",
            embedder=embedder,
            llm="none",
            extract="local",
            secrets="redact",
            mint=IdGenerator(clock),
            account="default",
        )
        yield stack.enter_context(memory), clock, keep


def iter_acts(memory: Memory, ids: Mapping[str, str], folder: Path) -> Iterator[DemoAct]:
    """Yield the acts of the demo."""
    runner = DemoRunner(memory, ids)
    yield from _show_extraction(runner, ids)
    yield from _show_search(runner)
    yield from _show_time_travel(runner)
    yield from _show_changes(runner, ids)
    yield from _show_explain(runner)
    yield from _show_erasure(runner, ids, folder)


def _show_extraction(runner: DemoRunner, ids: Mapping[str, str]) -> Iterator[DemoAct]:
    message = "I speak Portuguese and English, and I have a brother called Nuno."
    yield runner.run_call(
        "From words to facts",
        "One sentence, three facts: found by rules, offline, with no model.",
        "add",
        message,
        user_id="mara",
    )
    yield runner.run_call(
        "",
        "Nobody asked for an update: the new home replaced the old one by itself.",
        "history",
        ids["home"],
    )
    yield runner.run_call(
        "", "Two things that cannot both be true are both kept.", "contradictions", user_id="mara"
    )


def _show_search(runner: DemoRunner) -> Iterator[DemoAct]:
    question = "Where does Mara live?"
    yield runner.run_call(
        "Search",
        "The best answers first, and only hers.",
        "search",
        question,
        user_id="mara",
        limit=3,
    )
    yield runner.run_call(
        "",
        "Another user asks the same question and gets none of her memories.",
        "search",
        question,
        user_id="jonas",
        limit=1,
    )
    yield runner.run_call(
        "",
        "A detail mentioned once, eight months ago.",
        "search",
        "the frame number of my bike",
        user_id="mara",
        limit=1,
    )


def _show_time_travel(runner: DemoRunner) -> Iterator[DemoAct]:
    yield runner.run_call(
        "Travel in time",
        "The same question, answered with what was known at the end of March.",
        "search",
        "Where does Mara live?",
        user_id="mara",
        limit=1,
        as_of="March 2026",
    )
    papers = {"user_id": "mara", "filters": {"topic": "papers"}}
    yield runner.run_call(
        "",
        "Two clocks: her passport was renewed in February, and she told of it in August. In June "
        "nobody knew,",
        "get_all",
        **papers,
        as_of="June 2026",
    )
    yield runner.run_call("", "and yet it held in June.", "get_all", **papers, valid_at="June 2026")
    yield runner.run_call(
        "",
        "What changed in May: a job and a home.",
        "diff",
        "April 2026",
        "May 2026",
        user_id="mara",
    )


def _show_changes(runner: DemoRunner, ids: Mapping[str, str]) -> Iterator[DemoAct]:
    yield runner.run_call(
        "Change without losing",
        "She moves once more.",
        "add",
        "I moved to Braga last week.",
        user_id="mara",
    )
    yield runner.run_call(
        "", "Every version, with the day it was believed.", "history", ids["home"]
    )
    yield runner.run_call(
        "", "By hand, if you like.", "update", ids["home"], "User lives in Braga, in the old town"
    )
    yield runner.run_call(
        "", "The newest of everything that happened.", "timeline", user_id="mara", limit=3
    )


def _show_explain(runner: DemoRunner) -> Iterator[DemoAct]:
    yield runner.run_call(
        "Why?",
        "What was understood, what each stage kept, and the sum behind every score.",
        "explain",
        "Who is my manager at work?",
        user_id="mara",
        limit=3,
    )
    yield runner.run_call(
        "A prompt that fits",
        "As many memories as 140 tokens hold, marked as data, never as instructions.",
        "context",
        "Plan a day for Mara: work, a run, some tea, the cat.",
        user_id="mara",
        budget=140,
    )


def _show_erasure(runner: DemoRunner, ids: Mapping[str, str], folder: Path) -> Iterator[DemoAct]:
    yield _count_secret(
        folder,
        "Erase for good",
        "Deleting hides; erasing destroys. The door code is in the file now:",
    )
    yield runner.run_call(
        "", "The memory, its evidence and all that was made from it.", "erase", ids["secret"]
    )
    yield _count_secret(folder, "", "No byte of it is left in any file of the store,")
    yield runner.run_call(
        "", "and the ledger still proves that nothing else was touched.", "verify"
    )


def _count_secret(folder: Path, title: str, comment: str) -> DemoAct:
    """Count the erased text's occurrences in each store file."""
    counts = {
        file.name: file.read_bytes().count(SECRET.encode()) for file in sorted(folder.iterdir())
    }
    call = (
        f"{{file.name: file.read_bytes().count({SECRET.encode()!r}) for file in folder.iterdir()}}"
    )
    return DemoAct("scan", call, counts, comment, title)


__all__ = [
    "STORE_FILE",
    "DEMO_NOW",
    "DemoAct",
    "DemoClock",
    "StoryLine",
    "open_demo_memory",
    "replay_story",
    "load_story",
    "iter_acts",
]
