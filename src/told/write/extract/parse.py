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
from told.core.lazy import lazy_regex
from told.core.text import JsonReply, format_value, make_snippet, parse_reply, to_plain_str
from told.write.shape import RejectedClaim

T = TypeVar("T")

REPLY_LIMIT: Final = 400_000
"""How many characters of an answer are read, and kept where it cannot be read."""
TEXT_LIMIT: Final = 2_000
MAX_DEPTH: Final = 6
DISPLAY_LIMIT: Final = 200

MALFORMED: Final = "not in the shape asked for"
TOO_MANY_ITEMS: Final = "more items than are read"
DUPLICATE: Final = "said twice"

_WRAPPERS: Final = (
    "facts", "memories", "memory", "claims", "triples", "statements", "results", "result", "data", "items", "output",
    "response", "answer", "arguments", "parameters", "input", "function", "function_call", "tool_call", "tool_calls",
    "choices", "message", "content",
)  # fmt: skip
_FENCE: Final = lazy_regex(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_JOINERS: Final = "\u200c\u200d"
_TRUE, _FALSE = frozenset(("true", "yes", "1", "on")), frozenset(("false", "no", "0", "off", ""))


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What could be read of a model's answer; a fault is an answer of which nothing could be."""

    items: tuple[Any, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: ParsedReply) -> ParsedReply:
        """Both; a fault that came twice is one."""
        return ParsedReply(
            self.items + other.items,
            self.rejected + other.rejected,
            tuple(dict.fromkeys(self.unreadable_replies + other.unreadable_replies)),
            self.warnings + other.warnings,
        )


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """Why an item was not taken, and what it would have been where somebody may want to look at it."""

    reason: str = MALFORMED
    rejected_claim: RejectedClaim | None = None


# Answers --------------------------------------------------------------------------------------------------------------


def parse_items(
    raw: object, keys: Sequence[str], *, item_keys: Sequence[str], max_items: int, label: str
) -> ParsedReply:
    """The items of an answer: a list, or a list inside an object under one of the keys.

    An object that has one of the `marks` is itself an item. What broke off loses its unfinished end only.
    """
    if not isinstance(raw, str):
        return ParsedReply(unreadable_replies=(format_value(raw),))
    reply = _parse_reply(raw)
    items = (
        None
        if reply is None
        else _find_items(reply.value, (*keys, *_WRAPPERS), item_keys, MAX_DEPTH)
    )
    is_truncated = reply is not None and (reply.truncated or len(raw) > REPLY_LIMIT)
    if items is None or (is_truncated and not items):
        return ParsedReply(unreadable_replies=(raw[:REPLY_LIMIT],))
    if not items and (last_block := _find_last_fenced(raw)) is not None:
        return parse_items(last_block, keys, item_keys=item_keys, max_items=max_items, label=label)
    warnings = (
        [f"The answer of {label} broke off; the {len(items)} items before that were kept."]
        if is_truncated
        else []
    )
    if len(items) > max_items:
        warnings.append(f"{label} gave {len(items)} items; the first {max_items} were read.")
    excess = tuple(
        RejectedClaim(TOO_MANY_ITEMS, format_item(item))
        for item in items[max_items : max_items + 1]
    )
    return ParsedReply(tuple(items[:max_items]), excess, (), tuple(warnings))


def convert_items(
    parsed: ParsedReply, raw: object, convert: Callable[[Any], T | RejectedItem]
) -> tuple[list[T], ParsedReply]:
    """The items as something; those that are not go to the dropped, and if all are malformed the answer is a fault."""
    converted: list[T] = []
    rejected: list[RejectedClaim] = []
    for item in parsed.items:
        result = convert(item)
        if isinstance(result, RejectedItem):
            rejected.append(
                result.rejected_claim or RejectedClaim(result.reason, format_item(item))
            )
        else:
            converted.append(result)
    is_malformed = (
        bool(rejected)
        and not converted
        and all(rejected_claim.reason == MALFORMED for rejected_claim in rejected)
    )
    reply = raw[:REPLY_LIMIT] if isinstance(raw, str) else format_value(raw)
    unreadable_replies = (
        (*parsed.unreadable_replies, reply) if is_malformed else parsed.unreadable_replies
    )
    return converted, ParsedReply(
        parsed.items, (*parsed.rejected, *rejected), unreadable_replies, parsed.warnings
    )


def _parse_reply(raw: str) -> JsonReply | None:
    try:
        return parse_reply(raw[:REPLY_LIMIT].lstrip("\ufeff"))
    except InvalidInput:
        return None


def _find_last_fenced(raw: str) -> str | None:
    """The last fenced block, where there are several: a draft may stand before the answer."""
    blocks = _FENCE.findall(raw[:REPLY_LIMIT])
    last = blocks[-1] if len(blocks) > 1 else None
    return last if last is not None and last.strip() not in ("", "[]", "{}") else None


def _find_items(
    value: object, keys: Sequence[str], item_keys: Sequence[str], depth: int
) -> list[Any] | None:
    """The items in a value; an empty object holds none, anything that cannot be understood is None."""
    if isinstance(value, list):
        return _unwrap_list(value, keys, item_keys, depth)
    if isinstance(value, str):
        inner = (
            _parse_reply(value) if depth and value.lstrip().startswith(("[", "{", '"')) else None
        )
        return None if inner is None else _find_items(inner.value, keys, item_keys, depth - 1)
    if not isinstance(value, dict) or not depth:
        return None
    if not value:
        return []
    members = {str(key).strip().casefold(): member for key, member in value.items()}
    if any(item_key in members for item_key in item_keys):
        return [value]
    if all(name.isdecimal() for name in members):
        return list(value.values())
    candidates = (
        _find_items(members[key], keys, item_keys, depth - 1) for key in keys if key in members
    )
    return next((items for items in candidates if items is not None), None)


def _unwrap_list(
    items: list[Any], keys: Sequence[str], item_keys: Sequence[str], depth: int
) -> list[Any]:
    """The items of a list, or of the lists that stand in its members, such as the choices of an API."""
    if not depth or not items or not all(isinstance(item, dict) for item in items):
        return items
    if any(_has_key(item, item_keys) for item in items):
        return items
    inner = [_find_items(item, keys, item_keys, depth - 1) for item in items]
    return [member for group in inner if group for member in group] if any(inner) else items


def _has_key(item: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(str(key).strip().casefold() in names for key in item)


# Values ---------------------------------------------------------------------------------------------------------------


def get_first(item: Mapping[str, Any], *names: str) -> Any:
    """The first value an object has under any of these names, however they are capitalised."""
    if not isinstance(item, Mapping):
        return None
    lowered = {str(key).strip().casefold(): value for key, value in item.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def to_line(value: object, limit: int = TEXT_LIMIT) -> str | None:
    """A value as one clean line of text: a string or a plain number; None if it is neither, broken or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > limit * 4:
        return None
    try:
        text = " ".join(
            _strip_invisible(to_plain_str(value) if isinstance(value, str) else str(value)).split()
        )
        text.encode()
    except ValueError:  # half a character, or a number with more digits than Python agrees to write
        return None
    return text if text and len(text) <= limit else None


def _strip_invisible(text: str) -> str:
    """The text without controls and marks that nobody sees, but for those that join letters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _is_control(char) else char for char in text if not _is_invisible(char))


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in _JOINERS


def parse_confidence(value: object, default: float = 1.0) -> float:
    """A confidence from 0 to 1 out of a number, a numeral or a percentage."""
    number = _parse_float(value)
    return default if number is None else min(max(number, 0.0), 1.0)


def _parse_float(value: object) -> float | None:
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


def parse_flag(value: object) -> bool | None:
    """A boolean out of a boolean, a word or a number; None if it is none."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int | float) else None
    return True if word in _TRUE else False if word in _FALSE else None


def format_item(item: object) -> str:
    """An item as a report shows it."""
    try:
        return make_snippet(json.dumps(item, ensure_ascii=False, default=str), DISPLAY_LIMIT)
    except (TypeError, ValueError, RecursionError):
        return format_value(item)


def split_duplicates(items: Iterable[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """The items whose key comes for the first time, and those whose key came before."""
    seen: set[object] = set()
    unique: list[T] = []
    duplicates: list[T] = []
    for item in items:
        item_key = key(item)
        (duplicates if item_key in seen else unique).append(item)
        seen.add(item_key)
    return unique, duplicates
