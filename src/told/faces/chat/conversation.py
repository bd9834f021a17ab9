"""The conversation: what is said is remembered, what is remembered answers, and every answer can be asked why."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from told.core.errors import InvalidInput, LLMError, NotFoundError, ToldError
from told.core.query import MAX_LIMIT
from told.faces.chat.reply import SHOWN, SURE, Reply, answering, changed, facts, from_memory, is_question
from told.faces.sdk import Memory
from told.faces.shapes import bundle
from told.flow import call, run
from told.ports import LLM
from told.write.extract.brief import asked, fenced

TURNS: Final = 10
"""How many of the last turns of the conversation a model is shown."""

NOW: Final = frozenset({"", "now"})


@dataclass(frozen=True, slots=True)
class Asked:
    """The last thing said, and the point at which memory was asked about it."""

    text: str
    as_of: str


class Chat:
    """A conversation in one scope of a memory, answered by a model or, without one, by what is remembered."""

    def __init__(
        self, memory: Memory, llm: LLM | None = None, ids: Mapping[str, Any] | None = None, *, turns: int = TURNS
    ) -> None:
        """Begin to talk; `ids` are the `user_id`, `agent_id` and `run_id` that everything is remembered under.

        `turns` is how many of the last turns of this conversation a model is shown beside what is remembered.
        """
        self.ids: dict[str, Any] = {name: value for name, value in (ids or {}).items() if value is not None}
        memory.engine.scope(self.ids)
        self.memory, self.llm = memory, llm
        self.talk: deque[tuple[str, str]] = deque(maxlen=turns)
        self.as_of: str | None = None
        self.last: Asked | None = None
        self.reply: Reply | None = None

    # Talking ----------------------------------------------------------------------------------------------------------

    def say(self, text: str) -> Reply:
        """Say something: it is remembered whatever becomes of the answer, and so is what a model answers."""
        now = Asked(text, self.as_of or self._position())
        reply = self._by_memory(text) if self.llm is None else self._by_model(self.llm, now)
        self.last, self.reply = now, reply
        self.talk.append((text, reply.text))
        return reply

    def _by_memory(self, text: str) -> Reply:
        """What memory holds on it; all of that was said before, so that the answer is not remembered again."""
        found = self._found(text, self.as_of)
        return self._told(text, found, self._heard("user", text))

    def _found(self, text: str, as_of: str | None) -> dict[str, Any]:
        return self.memory.search(text, limit=2 * SHOWN, as_of=as_of, **self.ids)

    def _told(self, text: str, found: Mapping[str, Any], heard: Mapping[str, Any], *warnings: str) -> Reply:
        gone = changed(heard["results"]) if self.as_of is None else frozenset()
        used = answering(row for row in found["results"] if row["id"] not in gone)
        said = from_memory(text, used, heard, self.memory.engine.settings.zone or None)
        return _noting(Reply(said, used), text, heard, *found.get("warnings", ()), *warnings)

    def _by_model(self, llm: LLM, now: Asked) -> Reply:
        """What a model makes of it; one that fails is a warning, and memory answers in its place."""
        text = now.text
        context = bundle(self.memory.context(text, as_of=self.as_of, **self.ids))
        heard = self._heard("user", text)
        try:
            said = self._answer(llm, text, context["text"])
        except ToldError as error:
            found = self._found(text, now.as_of)
            return self._told(text, found, heard, f"{error} So this is what memory says by itself.")
        kept = self._heard("assistant", said)
        used = tuple(context["results"])
        return _noting(
            Reply(said, used, model=llm.model), text, heard, *context.get("warnings", ()), *kept.get("warnings", ())
        )

    def _answer(self, llm: LLM, text: str, context: str) -> str:
        """What a model says who is shown what is remembered and, unless it is to speak as of then, the talk so far."""
        past = f"Answer as of {self.as_of}: what you remember is what was known then." if self.as_of else ""
        said = [] if self.as_of else [line for turn in self.talk for line in _lines(*turn)]
        before = f"{fenced('conversation', said)}\n\nThe message to answer:\n" if said else ""
        return answer(llm, "\n\n".join(filter(None, (prompt(), past, context))), f"{before}{text}")

    def _heard(self, role: str, text: str) -> dict[str, Any]:
        return self.memory.add([{"role": role, "content": text}], **self.ids)

    def _position(self) -> str:
        """Where the ledger stands, as a point in time to go back to."""
        engine = self.memory.engine
        return f"#{max(run(call(engine.store.head, engine.account)).seq, 1)}"

    # Looking into it --------------------------------------------------------------------------------------------------

    def memories(self) -> dict[str, Any]:
        """What is held, by kind: each with the words it comes from, how strong it is, and when it will fade."""
        return self.memory.about(as_of=self.as_of, **self.ids)

    def explain(self) -> dict[str, Any]:
        """Why the last reply rests on what it rests on: every memory that was looked at, and what became of it."""
        last, said = self._last()
        found = self.memory.explain(last.text, as_of=last.as_of, **self.ids)
        return {"used": [row["id"] for row in said.used], "model": said.model, **found}

    def why(self, which: str) -> dict[str, Any]:
        """Why a memory, by its id or its words, was or was not used for the last reply."""
        last, said = self._last()
        row = self.find(which)
        used = any(row["id"] in (one["id"], *one.get("also", ())) for one in said.used)
        choosy: dict[str, Any] = {"limit": SHOWN, "min_score": SURE} if said.model is None else {}
        found = self.memory.why_not(last.text, row["id"], as_of=last.as_of, **choosy, **self.ids)
        asks, new = is_question(row["memory"]), row["id"] in changed(said.learned)
        if found["found"] and not used and (asks or new):
            reason = "a question answers nothing" if asks else "it is new, by what you just said"
            found |= {"found": False, "stage": "chat", "reason": reason}
        return {"memory": row, "used": used, **found}

    def _last(self) -> tuple[Asked, Reply]:
        if self.last is None or self.reply is None:
            raise InvalidInput("Nothing was said yet.", hint="Say something first, then ask why.")
        return self.last, self.reply

    def tiers(self) -> dict[str, Any]:
        """Where memories are: the tail, the index, the hot buffer, the registry and the topics."""
        return self.memory.tiers(**self.ids)

    # Changing it ------------------------------------------------------------------------------------------------------

    def find(self, which: str) -> dict[str, Any]:
        """The memory of an id or of some words: the newest that tells them, else the one that is most likely meant."""
        wanted = " ".join(which.split())
        if not wanted:
            raise InvalidInput("Say which memory.", hint="By its id, or by some words of it; /memory lists them.")
        held = self.memory.get_all(limit=MAX_LIMIT, as_of=self.as_of, **self.ids)["results"]
        named = [row for row in held if row["id"] == wanted or wanted.casefold() in row["memory"].casefold()]
        if named:
            meant: dict[str, Any] = max(reversed(named), key=_telling)
            return meant
        likely = self.memory.search(wanted, limit=1, min_score=SURE, as_of=self.as_of, **self.ids)["results"]
        if not likely:
            raise NotFoundError(f"No memory has {wanted!r}.", hint="/memory lists what is held.")
        return dict(likely[0])

    def forget(self, memory_id: str) -> dict[str, Any]:
        """Give up a memory; its history stays until it is erased, and this conversation no longer holds its words."""
        held = [row for row in self.memory.about(**self.ids)["results"] if row["id"] == memory_id]
        done = self.memory.forget(memory_id, **self.ids)
        gone = [words for row in held for words in (row["words"], row["memory"]) if words]
        kept = [turn for turn in self.talk if not any(words in part for words in gone for part in turn)]
        self.talk = deque(kept, self.talk.maxlen)
        return done

    def at(self, time: str) -> str | None:
        """Answer from what was known at a time from now on; `now` goes back to the present."""
        wanted = time.strip()
        if wanted.casefold() not in NOW:
            self.memory.get_all(limit=1, as_of=wanted, **self.ids)
        self.as_of = None if wanted.casefold() in NOW else wanted
        return self.as_of


def answer(llm: LLM, system: str, text: str) -> str:
    """What a model says to a text; one that fails or says nothing is an `LLMError`."""
    said, _ = run(asked(llm, system, text))
    if not isinstance(said, str) or not said.strip():
        raise LLMError(f"The language model {llm.model} answered nothing.")
    return said.strip()


@cache
def prompt() -> str:
    """The prompt of the assistant."""
    return resources.files("told.faces.chat").joinpath("prompts", "assistant.md").read_text("utf-8").strip()


def _telling(row: Mapping[str, Any]) -> tuple[bool, bool]:
    """What makes a memory the one that is meant: it tells rather than asks, and no assistant said it."""
    return not is_question(row["memory"]), row.get("role") != "assistant"


def _lines(said: str, answered: str) -> tuple[str, str]:
    """A turn of the talk as a model reads it, one line each."""
    return f"user: {' '.join(said.split())}", f"assistant: {' '.join(answered.split())}"


def _noting(said: Reply, text: str, heard: Mapping[str, Any], *warnings: str) -> Reply:
    """A reply with what was learned on the way to it, and every warning once."""
    every = dict.fromkeys((*warnings, *heard.get("warnings", ())))
    return Reply(
        said.text, said.used, facts(text, heard), tuple(heard.get("skipped", ())), tuple(every), said.model
    )
