"""The conversation: what is said is remembered, what is remembered answers, and every answer can be asked why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from told.api.memory import Memory
from told.api.serialize import bundle_to_dict
from told.errors import InvalidInput, LLMError, NotFoundError, ToldError
from told.extraction.prompting import ask_llm, fence_as_data
from told.flow import call, run
from told.model.query import MAX_LIMIT
from told.ports import LLM
from told.text.dates import localise

MIN_ANSWER_SCORE: Final = 0.7
"""From this score on a memory answers; below it what is found is more likely to be about something else."""

MAX_ANSWERS: Final = 5
EVENT_LABELS: Final = {"ADD": "Noted", "UPDATE": "Changed", "DELETE": "Given up"}
SPEAKER_LABELS: Final = {
    "user": "you said",
    "assistant": "I said",
    "document": "read",
    "tool": "a tool said",
}
NO_MEMORY_REPLY: Final = "I remember nothing about that."
REMEMBERED_REPLY: Final = "I will remember that you said so."
NOT_REMEMBERED_REPLY: Final = "There is nothing in that for me to remember."


@dataclass(frozen=True, slots=True)
class ChatReply:
    """An answer, the memories it rests on, what was learned from the question, and what was not as it should be.

    `model` is who answered; nobody did where the memory speaks for itself.
    """

    text: str
    used: tuple[Mapping[str, Any], ...] = ()
    learned: tuple[Mapping[str, Any], ...] = ()
    skipped: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    model: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The reply as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def select_answers(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Of what a search found, what can stand as an answer: sure enough, and not itself a question."""
    confident = [row for row in rows if (row["score"] or 0.0) >= MIN_ANSWER_SCORE]
    return tuple(row for row in confident if not is_question(row["memory"]))[:MAX_ANSWERS]


def find_changed_ids(results: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The memories that a receipt says are no longer what they were."""
    return frozenset(row["id"] for row in results if row["event"] in ("UPDATE", "DELETE"))


def is_question(text: str) -> bool:
    """Whether a text asks rather than tells."""
    return text.rstrip().endswith(("?", "？", "؟"))


def format_memory_reply(
    message: str,
    used: Sequence[Mapping[str, Any]],
    receipt: Mapping[str, Any],
    zone: str | None = None,
) -> str:
    """What memory says by itself: what it took in, and what it holds on it, each with its day and its source."""
    learned_lines = [
        f"{EVENT_LABELS[row['event']]}: {_row_text(row)}"
        for row in select_learned(message, receipt)
    ]
    remembered = (
        [
            "This is what I remember about it:",
            *(f"- {format_memory_line(row, zone)}" for row in used),
        ]
        if used
        else []
    )
    if learned_lines or remembered:
        return "\n".join([*learned_lines, *remembered])
    if is_question(message):
        return NO_MEMORY_REPLY
    return (
        REMEMBERED_REPLY
        if any(row["event"] == "ADD" for row in receipt["results"])
        else NOT_REMEMBERED_REPLY
    )


def select_learned(message: str, receipt: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What was taken from what was said; words that are only kept as they are tell nothing new."""
    changed = [row for row in receipt["results"] if row["event"] in EVENT_LABELS]
    return tuple(
        row for row in changed if " ".join(_row_text(row).split()) != " ".join(message.split())
    )


def _row_text(row: Mapping[str, Any]) -> str:
    return str(row["memory"] if row["memory"] is not None else row["previous_memory"])


def format_memory_line(row: Mapping[str, Any], zone: str | None = None) -> str:
    """A memory with its day, and who or what it comes from."""
    said_at = datetime.fromisoformat(row.get("said_at") or row["updated_at"])
    day = localise(said_at, zone).date().isoformat()
    speaker = row.get("actor_id") or SPEAKER_LABELS.get(
        row.get("role") or "", row.get("role") or ""
    )
    source = f", from {row['source']}" if row.get("source") else ""
    return f"{' '.join(row['memory'].split())} ({', '.join(filter(None, (day, speaker)))}{source})"


HISTORY_TURNS: Final = 10
"""How many of the last turns of the conversation a model is shown."""

NOW_WORDS: Final = frozenset({"", "now"})


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """The last thing said, and the point at which memory was asked about it."""

    text: str
    as_of: str


class ChatSession:
    """A conversation in one scope of a memory, answered by a model or, without one, by what is remembered."""

    def __init__(
        self,
        memory: Memory,
        llm: LLM | None = None,
        ids: Mapping[str, Any] | None = None,
        *,
        turns: int = HISTORY_TURNS,
    ) -> None:
        """Begin to talk; `ids` are the `user_id`, `agent_id` and `run_id` that everything is remembered under.

        `turns` is how many of the last turns of this conversation a model is shown beside what is remembered.
        """
        self.ids: dict[str, Any] = {
            name: value for name, value in (ids or {}).items() if value is not None
        }
        memory.engine.resolve_scope(self.ids)
        self.memory, self.llm = memory, llm
        self.history: deque[tuple[str, str]] = deque(maxlen=turns)
        self.as_of: str | None = None
        self.last_query: ChatQuery | None = None
        self.last_reply: ChatReply | None = None

    # Talking ----------------------------------------------------------------------------------------------------------

    def say(self, text: str) -> ChatReply:
        """Say something: it is remembered whatever becomes of the answer, and so is what a model answers."""
        query = ChatQuery(text, self.as_of or self._ledger_position())
        reply = (
            self._reply_from_memory(text)
            if self.llm is None
            else self._reply_from_model(self.llm, query)
        )
        self.last_query, self.last_reply = query, reply
        self.history.append((text, reply.text))
        return reply

    def _reply_from_memory(self, text: str) -> ChatReply:
        """What memory holds on it; all of that was said before, so that the answer is not remembered again."""
        result = self._search(text, self.as_of)
        return self._build_memory_reply(text, result, self._remember("user", text))

    def _search(self, text: str, as_of: str | None) -> dict[str, Any]:
        return self.memory.search(text, limit=2 * MAX_ANSWERS, as_of=as_of, **self.ids)

    def _build_memory_reply(
        self, text: str, result: Mapping[str, Any], receipt: Mapping[str, Any], *warnings: str
    ) -> ChatReply:
        changed_ids = find_changed_ids(receipt["results"]) if self.as_of is None else frozenset()
        used = select_answers(row for row in result["results"] if row["id"] not in changed_ids)
        reply_text = format_memory_reply(
            text, used, receipt, self.memory.engine.settings.zone or None
        )
        return _with_learned(
            ChatReply(reply_text, used), text, receipt, *result.get("warnings", ()), *warnings
        )

    def _reply_from_model(self, llm: LLM, query: ChatQuery) -> ChatReply:
        """What a model makes of it; one that fails is a warning, and memory answers in its place."""
        text = query.text
        context = bundle_to_dict(self.memory.context(text, as_of=self.as_of, **self.ids))
        receipt = self._remember("user", text)
        try:
            answer_text = self._ask_model(llm, text, context["text"])
        except ToldError as error:
            result = self._search(text, query.as_of)
            return self._build_memory_reply(
                text, result, receipt, f"{error} So this is what memory says by itself."
            )
        answer_receipt = self._remember("assistant", answer_text)
        used = tuple(context["results"])
        return _with_learned(
            ChatReply(answer_text, used, model=llm.model),
            text,
            receipt,
            *context.get("warnings", ()),
            *answer_receipt.get("warnings", ()),
        )

    def _ask_model(self, llm: LLM, text: str, context: str) -> str:
        """What a model says who is shown what is remembered and, unless it is to speak as of then, the talk so far."""
        as_of_note = (
            f"Answer as of {self.as_of}: what you remember is what was known then."
            if self.as_of
            else ""
        )
        history_lines = (
            [] if self.as_of else [line for turn in self.history for line in _format_turn(*turn)]
        )
        preamble = (
            f"{fence_as_data('conversation', history_lines)}\n\nThe message to answer:\n"
            if history_lines
            else ""
        )
        return ask_model(
            llm,
            "\n\n".join(filter(None, (load_prompt(), as_of_note, context))),
            f"{preamble}{text}",
        )

    def _remember(self, role: str, text: str) -> dict[str, Any]:
        return self.memory.add([{"role": role, "content": text}], **self.ids)

    def _ledger_position(self) -> str:
        """Where the ledger stands, as a point in time to go back to."""
        engine = self.memory.engine
        return f"#{max(run(call(engine.store.get_head, engine.account)).seq, 1)}"

    # Looking into it --------------------------------------------------------------------------------------------------

    def list_memories(self) -> dict[str, Any]:
        """What is held, by kind: each with the words it comes from, how strong it is, and when it will fade."""
        return self.memory.about(as_of=self.as_of, **self.ids)

    def explain_reply(self) -> dict[str, Any]:
        """Why the last reply rests on what it rests on: every memory that was looked at, and what became of it."""
        query, reply = self._require_last()
        explanation = self.memory.explain(query.text, as_of=query.as_of, **self.ids)
        return {"used": [row["id"] for row in reply.used], "model": reply.model, **explanation}

    def explain_memory(self, id_or_words: str) -> dict[str, Any]:
        """Why a memory, by its id or its words, was or was not used for the last reply."""
        query, reply = self._require_last()
        row = self.find_memory(id_or_words)
        used = any(
            row["id"] in (used_row["id"], *used_row.get("also", ())) for used_row in reply.used
        )
        limits: dict[str, Any] = (
            {"limit": MAX_ANSWERS, "min_score": MIN_ANSWER_SCORE} if reply.model is None else {}
        )
        explanation = self.memory.why_not(
            query.text, row["id"], as_of=query.as_of, **limits, **self.ids
        )
        asks_question, is_new = (
            is_question(row["memory"]),
            row["id"] in find_changed_ids(reply.learned),
        )
        if explanation["found"] and not used and (asks_question or is_new):
            reason = (
                "a question answers nothing"
                if asks_question
                else "it is new, by what you just said"
            )
            explanation |= {"found": False, "stage": "chat", "reason": reason}
        return {"memory": row, "used": used, **explanation}

    def _require_last(self) -> tuple[ChatQuery, ChatReply]:
        if self.last_query is None or self.last_reply is None:
            raise InvalidInput("Nothing was said yet.", hint="Say something first, then ask why.")
        return self.last_query, self.last_reply

    def get_tiers(self) -> dict[str, Any]:
        """Where memories are: the tail, the index, the hot buffer, the registry and the topics."""
        return self.memory.tiers(**self.ids)

    # Changing it ------------------------------------------------------------------------------------------------------

    def find_memory(self, id_or_words: str) -> dict[str, Any]:
        """The memory of an id or of some words: the newest that tells them, else the one that is most likely meant."""
        needle = " ".join(id_or_words.split())
        if not needle:
            raise InvalidInput(
                "Say which memory.", hint="By its id, or by some words of it; /memory lists them."
            )
        rows = self.memory.get_all(limit=MAX_LIMIT, as_of=self.as_of, **self.ids)["results"]
        matches = [
            row
            for row in rows
            if row["id"] == needle or needle.casefold() in row["memory"].casefold()
        ]
        if matches:
            best_match: dict[str, Any] = max(reversed(matches), key=_match_priority)
            return best_match
        hits = self.memory.search(
            needle, limit=1, min_score=MIN_ANSWER_SCORE, as_of=self.as_of, **self.ids
        )["results"]
        if not hits:
            raise NotFoundError(f"No memory has {needle!r}.", hint="/memory lists what is held.")
        return dict(hits[0])

    def forget(self, memory_id: str) -> dict[str, Any]:
        """Give up a memory; its history stays until it is erased, and this conversation no longer holds its words."""
        rows = [row for row in self.memory.about(**self.ids)["results"] if row["id"] == memory_id]
        result = self.memory.forget(memory_id, **self.ids)
        forgotten_texts = [
            words for row in rows for words in (row["words"], row["memory"]) if words
        ]
        kept_turns = [
            turn
            for turn in self.history
            if not any(words in part for words in forgotten_texts for part in turn)
        ]
        self.history = deque(kept_turns, self.history.maxlen)
        return result

    def set_as_of(self, time: str) -> str | None:
        """Answer from what was known at a time from now on; `now` goes back to the present."""
        as_of = time.strip()
        if as_of.casefold() not in NOW_WORDS:
            self.memory.get_all(limit=1, as_of=as_of, **self.ids)
        self.as_of = None if as_of.casefold() in NOW_WORDS else as_of
        return self.as_of


def ask_model(llm: LLM, system: str, text: str) -> str:
    """What a model says to a text; one that fails or says nothing is an `LLMError`."""
    reply_text, _ = run(ask_llm(llm, system, text))
    if not isinstance(reply_text, str) or not reply_text.strip():
        raise LLMError(f"The language model {llm.model} answered nothing.")
    return reply_text.strip()


@cache
def load_prompt() -> str:
    """The prompt of the assistant."""
    return (
        resources.files("told.tools").joinpath("prompts", "assistant.md").read_text("utf-8").strip()
    )


def _match_priority(row: Mapping[str, Any]) -> tuple[bool, bool]:
    """What makes a memory the one that is meant: it tells rather than asks, and no assistant said it."""
    return not is_question(row["memory"]), row.get("role") != "assistant"


def _format_turn(message: str, reply_text: str) -> tuple[str, str]:
    """A turn of the talk as a model reads it, one line each."""
    return f"user: {' '.join(message.split())}", f"assistant: {' '.join(reply_text.split())}"


def _with_learned(
    reply: ChatReply, text: str, receipt: Mapping[str, Any], *warnings: str
) -> ChatReply:
    """A reply with what was learned on the way to it, and every warning once."""
    all_warnings = dict.fromkeys((*warnings, *receipt.get("warnings", ())))
    return ChatReply(
        reply.text,
        reply.used,
        select_learned(text, receipt),
        tuple(receipt.get("skipped", ())),
        tuple(all_warnings),
        reply.model,
    )


__all__ = ["ChatSession", "ChatReply", "ask_model"]
