"""Values as people say them: where one ends, what it may be, the items of a list, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.write.local.tables import get_pattern, load_words

MAX_ITEMS: Final = 8
_MAX_VALUE_CHARS: Final = 80
_MAX_TRADE_WORDS: Final = 3
_NON_JOB_ADJECTIVES: Final = frozenset(("such", "real", "regular", "proper", "right"))
"""What stands before a trade nobody means: such a great cook, a real athlete."""


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value and the stretch of the text it stands in."""

    text: str
    start: int
    end: int


def find_value_end(text: str, start: int, end: int) -> int:
    """Where the value that begins at a place ends."""
    for match in get_pattern("value.end").finditer(text, start, end):
        if match[0] not in (".", ":") or not get_pattern("value.harmless_stop").match(
            text, match.start(), end
        ):
            return match.start()
    return end


def trim_value(text: str, start: int, end: int, *, strip_article: bool = True) -> ValueSpan:
    """The stretch without what does not belong to the value at either side; articles go too unless they are wanted."""
    if strip_article and (lead_match := get_pattern("value.before").match(text, start, end)):
        start = lead_match.end()
    while start < end and text[start] in " \n,\"'*_":
        start += 1
    if tail_match := get_pattern("value.after").search(text, start, end):
        end = tail_match.start()
    return ValueSpan(text[start:end], start, end)


def split_items(text: str, start: int, end: int) -> Iterator[ValueSpan]:
    """The items of a list such as "hiking, chess and sushi"; it stops at the first that is none."""
    position, count = start, 0
    for comma in (*get_pattern("value.comma").finditer(text, start, end), None):
        if comma is not None and comma["whole"]:
            continue
        stop = end if comma is None else comma.start()
        if count and get_pattern("value.no_item").match(text, position, stop):
            return
        item = trim_value(text, position, stop)
        if item.text:
            yield item
            count += 1
        if comma is None or count >= MAX_ITEMS:
            return
        position = comma.end()


# ------------------------------------------------------------------------------------------------------- what it may be


def is_thing(value: str, max_words: int = 6) -> bool:
    """Whether a value says something by itself."""
    if (
        not 0 < len(value) <= _MAX_VALUE_CHARS
        or len(value.split()) > max_words
        or value.lower() in load_words("EMPTY")
    ):
        return False
    if get_pattern("value.vague").search(value) or get_pattern("value.weak_start").match(value):
        return False
    return re.search(r"\w\w|[A-Z]|\d", value) is not None


def is_name(value: str, *, require_known: bool = False) -> bool:
    """Whether a value can be somebody's name; `known` asks for a capital or a name everybody knows."""
    if not get_pattern("value.name").fullmatch(value):
        return False
    parts = value.split()
    lowered = [part.lower().strip(".") for part in parts]
    if lowered[0] in load_words("TITLES") and len(parts) > 1:
        return is_name(value.split(None, 1)[1], require_known=require_known)
    if lowered[0] in _load_qualities() or not load_words("NOT_NAMES").isdisjoint(lowered):
        return False
    if not require_known:
        return True
    if value in load_words("ALSO_WORDS"):
        return False
    if lowered[0] in load_words("FIRST_NAMES") and (
        len(parts) == 1 or parts[1][0].isupper() or value.islower()
    ):
        return len(parts) <= 3
    return len(value) > 1 and all(
        part[0].isupper() or part in load_words("PARTICLES") for part in parts
    )


@cache
def _load_qualities() -> frozenset[str]:
    """What people are rather than are called, even with a capital."""
    return (
        load_words("NATIONS")
        | load_words("DIETS")
        | load_words("STATES")
        | load_words("TRAIT_ADJECTIVES")
    )


def is_place(value: str) -> bool:
    """Whether a value can be the name of a place."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or parts[0] in load_words("PLACE_STOPS") | load_words("MONTHS"):
        return False
    if value.lower() in load_words("EMPTY") or (
        value[0].islower() and parts[0] in load_words("EMPTY")
    ):
        return False
    if re.search(r"\d{4,}", value) or not re.match(r"[^\W\d_]", value):
        return False
    if value[0].isupper():
        return len(parts) <= 3 or sum(part[0].isupper() for part in value.split()) >= 2
    return (
        len(parts) <= 3
        and load_words("EMPTY").isdisjoint(parts)
        and parts[-1] not in load_words("DWELLINGS")
    )


def is_organization(value: str) -> bool:
    """Whether a value can be the name of an employer, a school or the like."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or (value[0].islower() and parts[0] in load_words("NO_WORKPLACE")):
        return False
    if len(parts) == 1 and parts[0] in load_words("EMPTY") | load_words("PLACE_STOPS"):
        return False
    if get_pattern("value.duration").search(value):
        return False
    return value[0].isdigit() or any(c.isupper() for c in value) or len(parts) <= 3


def is_job(value: str) -> bool:
    """Whether a value names something one is for a living."""
    lowered = re.sub(r"[^\w' &/-]", "", value.lower())
    parts = re.split(r"\s+(?:of|at|for|in|on|and|with|to)\s+", lowered)[0].replace("/", " ").split()
    if not parts or parts[0] in _NON_JOB_ADJECTIVES or len(lowered.split()) > 8:
        return False
    if get_pattern("value.head_of").match(lowered):
        return True
    jobs, last = load_words("OCCUPATIONS"), parts[-1]
    last = last if last in jobs else last.removesuffix("s")
    if len(parts) == 1 and last in load_words("NOT_JOBS"):
        return False
    return (
        last in jobs
        or " ".join(parts[-2:]) in jobs
        or get_pattern("value.craft").fullmatch(last) is not None
    )


def is_trade(value: str) -> bool:
    """Whether a value sounds like something one is for a living, which an article before it must confirm."""
    parts = value.lower().split()
    last = parts[-1] if parts else ""
    return (
        len(parts) <= _MAX_TRADE_WORDS
        and last not in load_words("NO_TRADE")
        and get_pattern("value.trade").fullmatch(last) is not None
    )


def is_activity(value: str) -> bool:
    """Whether a value can be something to do."""
    parts = value.lower().split()
    if get_pattern("slots.empty_doing").fullmatch(value):
        return False
    is_valid_start = parts and (
        parts[0] not in load_words("NO_DOING")
        or get_pattern("slots.being").match(value) is not None
    )
    return (
        bool(is_valid_start) and len(parts) <= 12 and not get_pattern("value.vague").search(value)
    )


VALUE_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "thing": is_thing,
    "long": lambda value: is_thing(value, 10),
    "whole": lambda value: is_thing(value, 12),
    "name": is_name,
    "known": lambda value: is_name(value, require_known=True),
    "place": is_place,
    "org": is_organization,
    "job": is_job,
    "vp": is_activity,
}
"""What a value of each sort must be."""
