"""A chat over one memory: store each message, answer from memory or a model, explain answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from told.api.serialize import bundle_to_dict
from told.errors import InvalidInput, LLMError, NotFoundError, ToldError
from told.extraction.prompting import ask_llm, fence_as_data
from told.flow import call, run
from told.model.query import MAX_LIMIT
from told.ports import LLM
from told.text.dates import localise

if TYPE_CHECKING:
    from told.api.memory import Memory

MIN_ANSWER_SCORE: Final = 0.7
"""Minimum score of a hit to serve as an answer."""

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
    """A reply, the memories it used, what was learned and any warnings.

    `model` is the answering model, or None if the reply came from memory alone.
    """

    text: str
    used: tuple[Mapping[str, Any], ...] = ()
    learned: tuple[Mapping[str, Any], ...] = ()
    skipped: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    model: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the reply as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def select_answers(rows: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the hits that can serve as an answer: scored high enough and not questions."""
    confident = [row for row in rows if (row["score"] or 0.0) >= MIN_ANSWER_SCORE]
    return tuple(row for row in confident if not is_question(row["memory"]))[:MAX_ANSWERS]


def find_changed_ids(results: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of memories that a receipt updated or deleted."""
    return frozenset(row["id"] for row in results if row["event"] in ("UPDATE", "DELETE"))


def is_question(text: str) -> bool:
    """Return whether a text is a question."""
    return text.rstrip().endswith(("?", "？", "؟"))


def format_memory_reply(
    message: str,
    used: Sequence[Mapping[str, Any]],
    receipt: Mapping[str, Any],
    zone: str | None = None,
) -> str:
    """Format a reply without a model: what was learned and what is known."""
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
    """Return the facts learned from a message, without verbatim turns."""
    changed = [row for row in receipt["results"] if row["event"] in EVENT_LABELS]
    return tuple(
        row for row in changed if " ".join(_row_text(row).split()) != " ".join(message.split())
    )


def _row_text(row: Mapping[str, Any]) -> str:
    return str(row["memory"] if row["memory"] is not None else row["previous_memory"])


def format_memory_line(row: Mapping[str, Any], zone: str | None = None) -> str:
    """Format a memory with its day and source."""
    said_at = datetime.fromisoformat(row.get("said_at") or row["updated_at"])
    day = localise(said_at, zone).date().isoformat()
    speaker = row.get("actor_id") or SPEAKER_LABELS.get(
        row.get("role") or "", row.get("role") or ""
    )
    source = f", from {row['source']}" if row.get("source") else ""
    return f"{' '.join(row['memory'].split())} ({', '.join(filter(None, (day, speaker)))}{source})"


HISTORY_TURNS: Final = 10
"""Recent turns shown to the model."""

NOW_WORDS: Final = frozenset({"", "now"})


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """The last message and the ledger position it was answered at."""

    text: str
    as_of: str


class ChatSession:
    """A chat in one scope of a memory, answered by a model or from memory."""

    def __init__(
        self,
        memory: Memory,
        llm: LLM | None = None,
        ids: Mapping[str, Any] | None = None,
        *,
        turns: int = HISTORY_TURNS,
    ) -> None:
        """Start a chat; `ids` are the scope's `user_id`, `agent_id` and `run_id`.

        `turns` is the number of recent turns shown to the model.
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

    # Talking

    def say(self, text: str) -> ChatReply:
        """Store a message, reply to it, and store the model's reply."""
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
        """Reply from memory; the reply is not stored again."""
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
        """Reply with the model; if it fails, warn and reply from memory."""
        text = query.text
        context = bundle_to_dict(self.memory.context(text, as_of=self.as_of, **self.ids))
        receipt = self._remember("user", text)
        try:
            answer_text = self._ask_model(llm, text, context["text"])
        except ToldError as error:
            result = self._search(text, query.as_of)
            return self._build_memory_reply(
                text, result, receipt, f"{error} Replying from memory instead."
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
        """Ask the model with the context and, unless time-travelling, recent turns."""
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
        """Return the current ledger position as an `as_of` value."""
        engine = self.memory.engine
        return f"#{max(run(call(engine.store.get_head, engine.account)).seq, 1)}"

    # Inspecting

    def list_memories(self) -> dict[str, Any]:
        """List what is remembered, with source, salience and fading."""
        return self.memory.about(as_of=self.as_of, **self.ids)

    def explain_reply(self) -> dict[str, Any]:
        """Explain the last reply: every candidate and the stage that kept or dropped it."""
        query, reply = self._require_last()
        explanation = self.memory.explain(query.text, as_of=query.as_of, **self.ids)
        return {"used": [row["id"] for row in reply.used], "model": reply.model, **explanation}

    def explain_memory(self, id_or_words: str) -> dict[str, Any]:
        """Explain why a memory, given by id or words, was or was not used for the last reply."""
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
        asks_question = is_question(row["memory"])
        is_new = row["id"] in find_changed_ids(reply.learned)
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
        """Return the counts of tail, index, hot buffer, registry and topics."""
        return self.memory.tiers(**self.ids)

    # Changing

    def find_memory(self, id_or_words: str) -> dict[str, Any]:
        """Find a memory by id or words: the newest exact match, else the best hit."""
        needle = " ".join(id_or_words.split())
        if not needle:
            raise InvalidInput(
                "No memory is named.", hint="Give its id or some of its words; /memory lists them."
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
            raise NotFoundError(f"No memory matches {needle!r}.", hint="/memory lists them all.")
        return dict(hits[0])

    def forget(self, memory_id: str) -> dict[str, Any]:
        """Forget a memory and drop it from this chat; its history is kept until erased."""
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
        """Answer as of a time from now on; `now` returns to the present."""
        as_of = time.strip()
        if as_of.casefold() not in NOW_WORDS:
            self.memory.get_all(limit=1, as_of=as_of, **self.ids)
        self.as_of = None if as_of.casefold() in NOW_WORDS else as_of
        return self.as_of


def ask_model(llm: LLM, system: str, text: str) -> str:
    """Ask a model; raise `LLMError` if it fails or returns nothing."""
    reply_text, _ = run(ask_llm(llm, system, text))
    if not isinstance(reply_text, str) or not reply_text.strip():
        raise LLMError(f"The language model {llm.model} returned an empty reply.")
    return reply_text.strip()


@cache
def load_prompt() -> str:
    """Load the assistant prompt."""
    return (
        resources.files("told.tools").joinpath("prompts", "assistant.md").read_text("utf-8").strip()
    )


def _match_priority(row: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return the sort key of a word match: statements first, then user turns."""
    return not is_question(row["memory"]), row.get("role") != "assistant"


def _format_turn(message: str, reply_text: str) -> tuple[str, str]:
    """Format a chat turn for the model, one line per speaker."""
    return f"user: {' '.join(message.split())}", f"assistant: {' '.join(reply_text.split())}"


def _with_learned(
    reply: ChatReply, text: str, receipt: Mapping[str, Any], *warnings: str
) -> ChatReply:
    """Add what was learned to a reply and deduplicate its warnings."""
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
