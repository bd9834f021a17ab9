"""Lists of pairs: people and what they do, days and what is on, favourites by their sort.

"- Ilze: backend", "- 6 June: Freya's christening", "film - Paris, Texas": the line above says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from told.core.when import to_us
from told.write.local import dates
from told.write.local.attributes import favourite
from told.write.local.render import article, theirs, when
from told.write.local.said import BARE, Said, Talk
from told.write.local.speaker import titled
from told.write.local.tables import pattern
from told.write.local.value import Value, is_job, is_name, trimmed

_FEWEST: Final = 2
_LONGEST: Final = 10

Pairs = list[re.Match[str]]


def listed(talk: Talk) -> Iterator[Said]:
    """What the pairs of a list say; they are blanked, so that nobody reads them twice."""
    if "\n" not in talk.text or pattern("noted.not_mine").search(talk.text):
        return
    pairs = list(pattern("lists.pair").finditer(talk.text))
    if len(pairs) < _FEWEST:
        return
    above = talk.text[: pairs[0].start()].rstrip().rpartition("\n")[2]
    reader = _reader(talk, above, pairs)
    said = [each for pair in pairs for each in reader(talk, pair)] if reader else []
    yield from said
    for pair in pairs if said else ():
        talk.text = talk.text[: pair.start()] + re.sub(r"\S", " ", pair[0]) + talk.text[pair.end() :]


def _reader(talk: Talk, above: str, pairs: Pairs) -> Callable[[Talk, re.Match[str]], Iterator[Said]] | None:
    """How the list is to be read, as the line above it and its first words tell."""
    if pattern("lists.favourites").search(above):
        return _favourite
    if pattern("lists.people").search(above) and all(_is_somebody(pair["key"]) for pair in pairs):
        return _somebody
    if all(_time(talk, pair) and not pattern("dates.bare").fullmatch(pair["key"]) for pair in pairs):
        return partial(_day, ahead=pattern("lists.past").search(above) is None)
    return None


def _time(talk: Talk, pair: re.Match[str], *, ahead: bool = True) -> dates.Time | None:
    return dates.named(pair["key"], 0, len(pair["key"]), talk.clock, ahead=ahead)


def _is_somebody(key: str) -> bool:
    if pattern("lists.field").fullmatch(key):
        return False
    return key.lower() in ("me", "myself", "i") or is_name(key, known=True)


def _favourite(talk: Talk, pair: re.Match[str]) -> Iterator[Said]:
    value = _value(talk, pair)
    if value.text:
        yield favourite(talk.speaker, pair["key"].lower(), value, pair.start("key"), value.end)


def _somebody(talk: Talk, pair: re.Match[str]) -> Iterator[Said]:
    value = _value(talk, pair)
    me = pair["key"].lower() in ("me", "myself", "i")
    who = talk.speaker if me else titled(pair["key"])
    if value.text:
        text = f"{who} works as {article(value.text)}" if is_job(value.text) else f"{who} does {value.text}"
        yield Said(who, "works_as", value.text, text, pair.start("key"), value.end, confidence=BARE)


def _day(talk: Talk, pair: re.Match[str], *, ahead: bool) -> Iterator[Said]:
    value, time = _value(talk, pair), _time(talk, pair, ahead=ahead)
    if not value.text or time is None:
        return
    past = time.interval.end is not None and time.interval.end <= to_us(talk.clock.now)
    what = f"{talk.speaker} {'had' if past else 'has'} {article(theirs(value.text))}{when(time.interval)}"
    yield Said(
        talk.speaker, "did" if past else "plans", value.text, what, pair.start("key"), value.end,
        modality="stated" if past else "planned", confidence=BARE, valid=time.interval,
    )  # fmt: skip


def _value(talk: Talk, pair: re.Match[str]) -> Value:
    value = trimmed(talk.text, *pair.span("value"))
    return value if len(value.text.split()) <= _LONGEST else Value("", value.start, value.start)
