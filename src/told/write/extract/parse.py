"""Out of whatever a model answers: the items that can be read, and the answer itself where none can."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeVar

from told.core.errors import InvalidInput
from told.core.lazy import regex
from told.core.text import Reply, plain, read_reply, shown, snippet
from told.write.shape import Dropped

T = TypeVar("T")

REPLY_LIMIT: Final = 400_000
"""How many characters of an answer are read, and kept where it cannot be read."""
TEXT_LIMIT: Final = 2_000
DEEPEST: Final = 6
SHOWN: Final = 200

MALFORMED: Final = "not in the shape asked for"
TOO_MANY: Final = "more items than are read"
DUPLICATE: Final = "said twice"

_WRAPPERS: Final = (
    "facts", "memories", "memory", "claims", "triples", "statements", "results", "result", "data", "items", "output",
    "response", "answer", "arguments", "parameters", "input", "function", "function_call", "tool_call", "tool_calls",
    "choices", "message", "content",
)  # fmt: skip
_FENCE: Final = regex(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_KEPT_MARKS: Final = "\u200c\u200d"
_TRUE, _FALSE = frozenset(("true", "yes", "1", "on")), frozenset(("false", "no", "0", "off", ""))


@dataclass(frozen=True, slots=True)
class Answer:
    """What could be read of a model's answer; a fault is an answer of which nothing could be."""

    items: tuple[Any, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        """Both; a fault that came twice is one."""
        return Answer(
            self.items + other.items, self.dropped + other.dropped,
            tuple(dict.fromkeys(self.faults + other.faults)), self.warnings + other.warnings,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unread:
    """Why an item was not taken, and what it would have been where somebody may want to look at it."""

    reason: str = MALFORMED
    dropped: Dropped | None = None


# Answers --------------------------------------------------------------------------------------------------------------


def read_items(raw: object, keys: Sequence[str], *, marks: Sequence[str], most: int, who: str) -> Answer:
    """The items of an answer: a list, or a list inside an object under one of the keys.

    An object that has one of the `marks` is itself an item. What broke off loses its unfinished end only.
    """
    if not isinstance(raw, str):
        return Answer(faults=(shown(raw),))
    reply = _reply(raw)
    items = None if reply is None else _dug(reply.value, (*keys, *_WRAPPERS), marks, DEEPEST)
    torn = reply is not None and (reply.truncated or len(raw) > REPLY_LIMIT)
    if items is None or (torn and not items):
        return Answer(faults=(raw[:REPLY_LIMIT],))
    if not items and (later := _last_fenced(raw)) is not None:
        return read_items(later, keys, marks=marks, most=most, who=who)
    warnings = [f"The answer of {who} broke off; the {len(items)} items before that were kept."] if torn else []
    if len(items) > most:
        warnings.append(f"{who} gave {len(items)} items; the first {most} were read.")
    over = tuple(Dropped(TOO_MANY, display(item)) for item in items[most : most + 1])
    return Answer(tuple(items[:most]), over, (), tuple(warnings))


def take(answer: Answer, raw: object, read: Callable[[Any], T | Unread]) -> tuple[list[T], Answer]:
    """The items as something; those that are not go to the dropped, and if all are malformed the answer is a fault."""
    taken: list[T] = []
    dropped: list[Dropped] = []
    for item in answer.items:
        got = read(item)
        if isinstance(got, Unread):
            dropped.append(got.dropped or Dropped(got.reason, display(item)))
        else:
            taken.append(got)
    hopeless = bool(dropped) and not taken and all(one.reason == MALFORMED for one in dropped)
    reply = raw[:REPLY_LIMIT] if isinstance(raw, str) else shown(raw)
    faults = (*answer.faults, reply) if hopeless else answer.faults
    return taken, Answer(answer.items, (*answer.dropped, *dropped), faults, answer.warnings)


def _reply(raw: str) -> Reply | None:
    try:
        return read_reply(raw[:REPLY_LIMIT].lstrip("\ufeff"))
    except InvalidInput:
        return None


def _last_fenced(raw: str) -> str | None:
    """The last fenced block, where there are several: a draft may stand before the answer."""
    fenced = _FENCE.findall(raw[:REPLY_LIMIT])
    last = fenced[-1] if len(fenced) > 1 else None
    return last if last is not None and last.strip() not in ("", "[]", "{}") else None


def _dug(value: object, keys: Sequence[str], marks: Sequence[str], depth: int) -> list[Any] | None:
    """The items in a value; an empty object holds none, anything that cannot be understood is None."""
    if isinstance(value, list):
        return _unwrapped(value, keys, marks, depth)
    if isinstance(value, str):
        inner = _reply(value) if depth and value.lstrip().startswith(("[", "{", '"')) else None
        return None if inner is None else _dug(inner.value, keys, marks, depth - 1)
    if not isinstance(value, dict) or not depth:
        return None
    if not value:
        return []
    named = {str(key).strip().casefold(): member for key, member in value.items()}
    if any(mark in named for mark in marks):
        return [value]
    if all(name.isdecimal() for name in named):
        return list(value.values())
    found = (_dug(named[key], keys, marks, depth - 1) for key in keys if key in named)
    return next((items for items in found if items is not None), None)


def _unwrapped(items: list[Any], keys: Sequence[str], marks: Sequence[str], depth: int) -> list[Any]:
    """The items of a list, or of the lists that stand in its members, such as the choices of an API."""
    if not depth or not items or not all(isinstance(item, dict) for item in items):
        return items
    if any(_named(item, marks) for item in items):
        return items
    inner = [_dug(item, keys, marks, depth - 1) for item in items]
    return [one for found in inner if found for one in found] if any(inner) else items


def _named(item: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(str(key).strip().casefold() in names for key in item)


# Values ---------------------------------------------------------------------------------------------------------------


def first(item: Mapping[str, Any], *names: str) -> Any:
    """The first value an object has under any of these names, however they are capitalised."""
    if not isinstance(item, Mapping):
        return None
    lowered = {str(key).strip().casefold(): value for key, value in item.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def line(value: object, limit: int = TEXT_LIMIT) -> str | None:
    """A value as one clean line of text: a string or a plain number; None if it is neither, broken or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > limit * 4:
        return None
    try:
        text = " ".join(_visible(plain(value) if isinstance(value, str) else str(value)).split())
        text.encode()
    except ValueError:  # half a character, or a number with more digits than Python agrees to write
        return None
    return text if text and len(text) <= limit else None


def _visible(text: str) -> str:
    """The text without controls and marks that nobody sees, but for those that join letters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _control(char) else char for char in text if not _hidden(char))


def _control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _hidden(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in _KEPT_MARKS


def share(value: object, default: float = 1.0) -> float:
    """A confidence from 0 to 1 out of a number, a numeral or a percentage."""
    number = _number(value)
    return default if number is None else min(max(number, 0.0), 1.0)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            text = value.strip()
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        elif isinstance(value, int | float):
            number = float(value)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def flag(value: object) -> bool | None:
    """A boolean out of a boolean, a word or a number; None if it is none."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int | float) else None
    return True if word in _TRUE else False if word in _FALSE else None


def display(item: object) -> str:
    """An item as a report shows it."""
    try:
        return snippet(json.dumps(item, ensure_ascii=False, default=str), SHOWN)
    except (TypeError, ValueError, RecursionError):
        return shown(item)


def once(items: Iterable[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """The items whose key comes for the first time, and those whose key came before."""
    seen: set[object] = set()
    fresh: list[T] = []
    again: list[T] = []
    for item in items:
        mark = key(item)
        (again if mark in seen else fresh).append(item)
        seen.add(mark)
    return fresh, again
