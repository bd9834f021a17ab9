"""The walk through the remembered story: one act after another, each a real call and its real result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from told.core.errors import InvalidInput
from told.core.ids import Mint
from told.faces import shapes
from told.faces.demo.story import Clock
from told.faces.sdk import Memory

FILE = "demo.db"
SECRET = "Falcon-4711"  # noqa: S105 - the detail of the story that is erased


@dataclass(frozen=True, slots=True)
class Act:
    """A call, what it returned, and what to notice; a title opens a new scene."""

    verb: str
    call: str
    result: Any
    say: str = ""
    title: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The act as JSON."""
        return {"title": self.title, "say": self.say, "call": self.call, "result": self.result}


@dataclass(frozen=True, slots=True)
class Actor:
    """Calls a memory and keeps the call as the Python that was run."""

    memory: Memory
    names: Mapping[str, str]

    def act(self, title: str, say: str, verb: str, *args: Any, **options: Any) -> Act:
        """Make the call and record it."""
        result = getattr(self.memory, verb)(*args, **options)
        if verb == "context":
            result = shapes.bundle(result)
        words = [*map(self._word, args), *(f"{name}={value!r}" for name, value in options.items())]
        return Act(verb, f"memory.{verb}({', '.join(words)})", result, say, title)

    def _word(self, value: Any) -> str:
        """An argument as it would be written; an id by the name the story gave it."""
        return next((name for name, known in self.names.items() if known == value), repr(value))


@contextmanager
def opened(keep: Path | None = None, embedder: str | None = None) -> Iterator[tuple[Memory, Clock, Path]]:
    """A new memory in a folder that is gone afterwards, unless one to keep is named, and the clock it goes by."""
    with ExitStack() as stack:
        if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            raise InvalidInput(f"{keep} is not an empty folder.", hint="Name a new folder for --keep.")
        if keep is None:
            keep = Path(stack.enter_context(TemporaryDirectory(prefix="told-demo-")))
        clock = Clock()
        memory = Memory(
            f"sqlite:///{keep / FILE}", embedder=embedder, llm="none", extract="local", secrets="redact",
            mint=Mint(clock), account="default",
        )  # fmt: skip
        yield stack.enter_context(memory), clock, keep


def walk(memory: Memory, ids: Mapping[str, str], folder: Path) -> Iterator[Act]:
    """What a memory can do, shown on the story it was told."""
    actor = Actor(memory, ids)
    yield from _understanding(actor, ids)
    yield from _searching(actor)
    yield from _travelling(actor)
    yield from _changing(actor, ids)
    yield from _explaining(actor)
    yield from _erasing(actor, ids, folder)


def _understanding(actor: Actor, ids: Mapping[str, str]) -> Iterator[Act]:
    said = "I speak Portuguese and English, and I have a brother called Nuno."
    yield actor.act(
        "From words to facts", "One sentence, three facts: found by rules, offline, with no model.",
        "add", said, user_id="mara",
    )  # fmt: skip
    yield actor.act(
        "", "She never said that anything was to be updated; the new home took the place of the old.",
        "history", ids["home"],
    )  # fmt: skip
    yield actor.act("", "Two things that cannot both be true are both kept.", "contradictions", user_id="mara")


def _searching(actor: Actor) -> Iterator[Act]:
    where = "Where does Mara live?"
    yield actor.act("Search", "The best answers first, and only hers.", "search", where, user_id="mara", limit=3)
    yield actor.act(
        "", "Another user asks the same: no word of hers can reach him.", "search", where, user_id="jonas", limit=1
    )
    yield actor.act(
        "", "A detail mentioned once, eight months ago.",
        "search", "the frame number of my bike", user_id="mara", limit=1,
    )  # fmt: skip


def _travelling(actor: Actor) -> Iterator[Act]:
    yield actor.act(
        "Travel in time", "The same question, answered with what was known at the end of March.",
        "search", "Where does Mara live?", user_id="mara", limit=1, as_of="March 2026",
    )  # fmt: skip
    papers = {"user_id": "mara", "filters": {"topic": "papers"}}
    yield actor.act(
        "", "Two clocks: her passport was renewed in February, and she told of it in August. In June nobody knew,",
        "get_all", **papers, as_of="June 2026",
    )  # fmt: skip
    yield actor.act("", "and yet it held in June.", "get_all", **papers, valid_at="June 2026")
    yield actor.act("", "What changed in May: a job and a home.", "diff", "April 2026", "May 2026", user_id="mara")


def _changing(actor: Actor, ids: Mapping[str, str]) -> Iterator[Act]:
    yield actor.act(
        "Change without losing", "She moves once more.", "add", "I moved to Braga last week.", user_id="mara",
    )  # fmt: skip
    yield actor.act("", "Every version, with the day it was believed.", "history", ids["home"])
    yield actor.act("", "By hand, if you like.", "update", ids["home"], "User lives in Braga, in the old town")
    yield actor.act("", "The newest of everything that happened.", "timeline", user_id="mara", limit=3)


def _explaining(actor: Actor) -> Iterator[Act]:
    yield actor.act(
        "Why?", "What was understood, what each stage kept, and the sum behind every score.",
        "explain", "Who is my manager at work?", user_id="mara", limit=3,
    )  # fmt: skip
    yield actor.act(
        "A prompt that fits", "As many memories as 140 tokens hold, marked as data, never as instructions.",
        "context", "Plan a day for Mara: work, a run, some tea, the cat.", user_id="mara", budget=140,
    )  # fmt: skip


def _erasing(actor: Actor, ids: Mapping[str, str], folder: Path) -> Iterator[Act]:
    yield _scan(folder, "Erase for good", "Deleting hides; erasing destroys. The door code is in the file now:")
    yield actor.act("", "The memory, its evidence and all that was made from it.", "erase", ids["secret"])
    yield _scan(folder, "", "No byte of it is left in any file of the store,")
    yield actor.act("", "and the ledger still proves that nothing else was touched.", "verify")


def _scan(folder: Path, title: str, say: str) -> Act:
    """How often the erased text stands in the bytes of each file of the store."""
    found = {file.name: file.read_bytes().count(SECRET.encode()) for file in sorted(folder.iterdir())}
    call = f"{{file.name: file.read_bytes().count({SECRET.encode()!r}) for file in folder.iterdir()}}"
    return Act("scan", call, found, say, title)
