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
from told.write.local.attributes import build_favourite
from told.write.local.render import add_article, format_interval, to_third_person
from told.write.local.said import FRAGMENT_CONFIDENCE, RuleClaim, TurnContext
from told.write.local.speaker import capitalise_name
from told.write.local.tables import get_pattern
from told.write.local.value import ValueSpan, is_job, is_name, trim_value

_MIN_PAIRS: Final = 2
_MAX_PAIR_WORDS: Final = 10

Pairs = list[re.Match[str]]


def parse_pair_list(ctx: TurnContext) -> Iterator[RuleClaim]:
    """What the pairs of a list say; they are blanked, so that nobody reads them twice."""
    if "\n" not in ctx.text or get_pattern("noted.not_mine").search(ctx.text):
        return
    pairs = list(get_pattern("lists.pair").finditer(ctx.text))
    if len(pairs) < _MIN_PAIRS:
        return
    heading = ctx.text[: pairs[0].start()].rstrip().rpartition("\n")[2]
    parser = _choose_pair_parser(ctx, heading, pairs)
    claims = [claim for pair in pairs for claim in parser(ctx, pair)] if parser else []
    yield from claims
    for pair in pairs if claims else ():
        ctx.text = ctx.text[: pair.start()] + re.sub(r"\S", " ", pair[0]) + ctx.text[pair.end() :]


def _choose_pair_parser(
    ctx: TurnContext, heading: str, pairs: Pairs
) -> Callable[[TurnContext, re.Match[str]], Iterator[RuleClaim]] | None:
    """How the list is to be read, as the line above it and its first words tell."""
    if get_pattern("lists.favourites").search(heading):
        return _parse_favourite_pair
    if get_pattern("lists.people").search(heading) and all(
        _is_person_key(pair["key"]) for pair in pairs
    ):
        return _parse_person_pair
    if all(
        _parse_pair_time(ctx, pair) and not get_pattern("dates.bare").fullmatch(pair["key"])
        for pair in pairs
    ):
        return partial(_parse_day_pair, is_future=get_pattern("lists.past").search(heading) is None)
    return None


def _parse_pair_time(
    ctx: TurnContext, pair: re.Match[str], *, is_future: bool = True
) -> dates.TimeMention | None:
    return dates.find_time(pair["key"], 0, len(pair["key"]), ctx.speech_time, is_future=is_future)


def _is_person_key(key: str) -> bool:
    if get_pattern("lists.field").fullmatch(key):
        return False
    return key.lower() in ("me", "myself", "i") or is_name(key, require_known=True)


def _parse_favourite_pair(ctx: TurnContext, pair: re.Match[str]) -> Iterator[RuleClaim]:
    value = _parse_pair_value(ctx, pair)
    if value.text:
        yield build_favourite(ctx.speaker, pair["key"].lower(), value, pair.start("key"), value.end)


def _parse_person_pair(ctx: TurnContext, pair: re.Match[str]) -> Iterator[RuleClaim]:
    value = _parse_pair_value(ctx, pair)
    is_speaker = pair["key"].lower() in ("me", "myself", "i")
    person = ctx.speaker if is_speaker else capitalise_name(pair["key"])
    if value.text:
        text = (
            f"{person} works as {add_article(value.text)}"
            if is_job(value.text)
            else f"{person} does {value.text}"
        )
        yield RuleClaim(
            person,
            "works_as",
            value.text,
            text,
            pair.start("key"),
            value.end,
            confidence=FRAGMENT_CONFIDENCE,
        )


def _parse_day_pair(
    ctx: TurnContext, pair: re.Match[str], *, is_future: bool
) -> Iterator[RuleClaim]:
    value, time = _parse_pair_value(ctx, pair), _parse_pair_time(ctx, pair, is_future=is_future)
    if not value.text or time is None:
        return
    is_past = time.interval.end is not None and time.interval.end <= to_us(ctx.speech_time.now)
    text = f"{ctx.speaker} {'had' if is_past else 'has'} {add_article(to_third_person(value.text))}{format_interval(time.interval)}"
    yield RuleClaim(
        ctx.speaker,
        "did" if is_past else "plans",
        value.text,
        text,
        pair.start("key"),
        value.end,
        modality="stated" if is_past else "planned",
        confidence=FRAGMENT_CONFIDENCE,
        valid=time.interval,
    )


def _parse_pair_value(ctx: TurnContext, pair: re.Match[str]) -> ValueSpan:
    value = trim_value(ctx.text, *pair.span("value"))
    return (
        value
        if len(value.text.split()) <= _MAX_PAIR_WORDS
        else ValueSpan("", value.start, value.start)
    )
