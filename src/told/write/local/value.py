"""Values as people say them: where one ends, what it may be, the items of a list, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.write.local.tables import pattern, words

MOST_ITEMS: Final = 8
_LONGEST: Final = 80
_TRADE: Final = 3
_NO_JOB: Final = frozenset(("such", "real", "regular", "proper", "right"))
"""What stands before a trade nobody means: such a great cook, a real athlete."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the stretch of the text it stands in."""

    text: str
    start: int
    end: int


def until(text: str, start: int, end: int) -> int:
    """Where the value that begins at a place ends."""
    for found in pattern("value.end").finditer(text, start, end):
        if found[0] not in (".", ":") or not pattern("value.harmless_stop").match(text, found.start(), end):
            return found.start()
    return end


def trimmed(text: str, start: int, end: int, *, article: bool = True) -> Value:
    """The stretch without what does not belong to the value at either side; articles go too unless they are wanted."""
    if article and (before := pattern("value.before").match(text, start, end)):
        start = before.end()
    while start < end and text[start] in " \n,\"'*_":
        start += 1
    if after := pattern("value.after").search(text, start, end):
        end = after.start()
    return Value(text[start:end], start, end)


def items(text: str, start: int, end: int) -> Iterator[Value]:
    """The items of a list such as "hiking, chess and sushi"; it stops at the first that is none."""
    at, number = start, 0
    for comma in (*pattern("value.comma").finditer(text, start, end), None):
        if comma is not None and comma["whole"]:
            continue
        stop = end if comma is None else comma.start()
        if number and pattern("value.no_item").match(text, at, stop):
            return
        item = trimmed(text, at, stop)
        if item.text:
            yield item
            number += 1
        if comma is None or number >= MOST_ITEMS:
            return
        at = comma.end()


# ------------------------------------------------------------------------------------------------------- what it may be


def is_thing(value: str, most: int = 6) -> bool:
    """Whether a value says something by itself."""
    if not 0 < len(value) <= _LONGEST or len(value.split()) > most or value.lower() in words("EMPTY"):
        return False
    if pattern("value.vague").search(value) or pattern("value.weak_start").match(value):
        return False
    return re.search(r"\w\w|[A-Z]|\d", value) is not None


def is_name(value: str, *, known: bool = False) -> bool:
    """Whether a value can be somebody's name; `known` asks for a capital or a name everybody knows."""
    if not pattern("value.name").fullmatch(value):
        return False
    parts = value.split()
    low = [part.lower().strip(".") for part in parts]
    if low[0] in words("TITLES") and len(parts) > 1:
        return is_name(value.split(None, 1)[1], known=known)
    if low[0] in _qualities() or not words("NOT_NAMES").isdisjoint(low):
        return False
    if not known:
        return True
    if value in words("ALSO_WORDS"):
        return False
    if low[0] in words("FIRST_NAMES") and (len(parts) == 1 or parts[1][0].isupper() or value.islower()):
        return len(parts) <= 3
    return len(value) > 1 and all(part[0].isupper() or part in words("PARTICLES") for part in parts)


@cache
def _qualities() -> frozenset[str]:
    """What people are rather than are called, even with a capital."""
    return words("NATIONS") | words("DIETS") | words("STATES") | words("TRAIT_ADJECTIVES")


def is_place(value: str) -> bool:
    """Whether a value can be the name of a place."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or parts[0] in words("PLACE_STOPS") | words("MONTHS"):
        return False
    if value.lower() in words("EMPTY") or (value[0].islower() and parts[0] in words("EMPTY")):
        return False
    if re.search(r"\d{4,}", value) or not re.match(r"[^\W\d_]", value):
        return False
    if value[0].isupper():
        return len(parts) <= 3 or sum(part[0].isupper() for part in value.split()) >= 2
    return len(parts) <= 3 and words("EMPTY").isdisjoint(parts) and parts[-1] not in words("DWELLINGS")


def is_organization(value: str) -> bool:
    """Whether a value can be the name of an employer, a school or the like."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or (value[0].islower() and parts[0] in words("NO_WORKPLACE")):
        return False
    if len(parts) == 1 and parts[0] in words("EMPTY") | words("PLACE_STOPS"):
        return False
    if pattern("value.duration").search(value):
        return False
    return value[0].isdigit() or any(c.isupper() for c in value) or len(parts) <= 3


def is_job(value: str) -> bool:
    """Whether a value names something one is for a living."""
    low = re.sub(r"[^\w' &/-]", "", value.lower())
    parts = re.split(r"\s+(?:of|at|for|in|on|and|with|to)\s+", low)[0].replace("/", " ").split()
    if not parts or parts[0] in _NO_JOB or len(low.split()) > 8:
        return False
    if pattern("value.head_of").match(low):
        return True
    jobs, last = words("OCCUPATIONS"), parts[-1]
    last = last if last in jobs else last.removesuffix("s")
    if len(parts) == 1 and last in words("NOT_JOBS"):
        return False
    return last in jobs or " ".join(parts[-2:]) in jobs or pattern("value.craft").fullmatch(last) is not None


def is_trade(value: str) -> bool:
    """Whether a value sounds like something one is for a living, which an article before it must confirm."""
    parts = value.lower().split()
    last = parts[-1] if parts else ""
    return len(parts) <= _TRADE and last not in words("NO_TRADE") and pattern("value.trade").fullmatch(last) is not None


def is_doing(value: str) -> bool:
    """Whether a value can be something to do."""
    parts = value.lower().split()
    if pattern("slots.empty_doing").fullmatch(value):
        return False
    begins = parts and (parts[0] not in words("NO_DOING") or pattern("slots.being").match(value) is not None)
    return bool(begins) and len(parts) <= 12 and not pattern("value.vague").search(value)


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "thing": is_thing,
    "long": lambda value: is_thing(value, 10),
    "whole": lambda value: is_thing(value, 12),
    "name": is_name,
    "known": lambda value: is_name(value, known=True),
    "place": is_place,
    "org": is_organization,
    "job": is_job,
    "vp": is_doing,
}
"""What a value of each sort must be."""
