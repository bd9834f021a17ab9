"""What is said by naming the thing itself: "my name is Bob", "my wife's birthday is 3 March", "Favourite: sushi"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.write.local import dates, people
from told.write.local.render import add_article, build_sentence, format_interval, to_third_person
from told.write.local.said import ASSERTED, NEGATED, RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.speaker import DEFAULT_SPEAKER, Referent, capitalise_name
from told.write.local.tables import get_pattern, load_sections
from told.write.local.value import (
    VALUE_CHECKS,
    ValueSpan,
    find_value_end,
    is_name,
    is_thing,
    split_items,
    trim_value,
)

_VAGUE_TOPICS: Final = frozenset("thing things part one way of person is".split())


@dataclass(frozen=True, slots=True)
class _Attribute:
    predicate: str
    value_type: str
    phrase: str


@cache
def _load_attributes() -> dict[str, _Attribute]:
    return {
        noun: _Attribute(*(*row.split(" | "), "")[:3])
        for nouns, (row, *_) in load_sections("attributes.txt").items()
        for noun in nouns.split("|")
    }


def parse_attribute(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What a clause says of an attribute it names."""
    text, start, end = ctx.text, clause.start, clause.end
    if match := get_pattern("attributes.frame").match(text, start, end):
        owner = _find_owner(ctx, match)
        if owner is not None:
            yield from _parse_attribute_values(ctx, clause, match, owner)
    elif match := get_pattern("attributes.listed").match(text, start, end):
        if get_pattern("noted.not_mine").search(text) is None:
            yield from _parse_attribute_values(ctx, clause, match, ctx.speaker)
    elif match := get_pattern("attributes.bare").match(text, start, end):
        yield from _parse_attribute_values(ctx, clause, match, ctx.speaker)
    elif match := get_pattern("attributes.turned").match(text, start, end):
        value = trim_value(text, *match.span("value"))
        if is_thing(value.text) and match["topic"].lower().split()[0] not in _VAGUE_TOPICS:
            yield build_favourite(ctx.speaker, match["topic"].lower(), value, start, match.end())


def _find_owner(ctx: TurnContext, match: re.Match[str]) -> str | None:
    """Whose attribute it is, if that can be told."""
    if match["my"]:
        return ctx.speaker
    if match["user"]:
        return DEFAULT_SPEAKER
    if match["kin"]:
        return f"{ctx.speaker}'s {match['kin'].split(None, 1)[1].lower()}"
    if match["named"]:
        return (
            capitalise_name(match["named"]) if is_name(match["named"], require_known=True) else None
        )
    if match["the"]:
        return (
            ctx.speaker
            if (match["noun"] or "").lower().endswith(("deadline", "due date"))
            else None
        )
    return ctx.last_referent.name if ctx.last_referent is not None else None


def build_favourite(owner: str, topic: str, value: ValueSpan, start: int, end: int) -> RuleClaim:
    """The one thing of its sort that somebody likes best; a topic in the plural is the same topic."""
    singular = topic.removesuffix("s") if not topic.endswith("ss") else topic
    slug = re.sub(r"[^a-z0-9]+", "_", singular)
    text = f"{owner}'s favourite {topic} {'is' if singular == topic else 'are'} {to_third_person(value.text)}"
    return RuleClaim(owner, f"favourite_{slug}", value.text, text, start, end)


def _parse_attribute_values(
    ctx: TurnContext, clause: Clause, match: re.Match[str], owner: str
) -> Iterator[RuleClaim]:
    """The attribute with each value that stands behind it."""
    is_negated = bool(match.groupdict().get("no"))
    if match["topic"]:
        is_plural = match["topic"].lower().endswith("s") and not match["topic"].lower().endswith(
            "ss"
        )
        value = parse_value(ctx.text, match.end(), clause.end, "whole" if is_plural else "thing")
        if value and match["topic"].lower().split()[0] not in _VAGUE_TOPICS and not is_negated:
            yield build_favourite(owner, match["topic"].lower(), value, clause.start, value.end)
        return
    noun = match["noun"].lower()
    row = _load_attributes()[noun]
    is_plural = row.value_type == "things"
    start, end = match.end(), clause.end
    for value in (
        parse_values(ctx.text, start, end)
        if is_plural
        else [parse_value(ctx.text, start, end, row.value_type)]
    ):
        if value is None or (is_negated and row.predicate == "goal"):
            continue
        if noun == "name" and match.groupdict().get("kin"):
            relation = owner.rpartition(" ")[2]
            ctx.last_referent = Referent(capitalise_name(value.text), relation=relation)
            yield people.build_relation_claim(
                ctx.speaker, relation, capitalise_name(value.text), clause.start, value.end
            )
        else:
            yield _date_deadline(
                ctx, _build_attribute_claim(owner, noun, row, value, clause.start, is_negated)
            )


def _build_attribute_claim(
    owner: str, noun: str, row: _Attribute, value: ValueSpan, start: int, is_negated: bool
) -> RuleClaim:
    shown = capitalise_name(value.text) if row.value_type == "name" else value.text
    polarity = NEGATED if is_negated else ASSERTED
    phrase = row.phrase.replace("{a}", add_article(shown)).replace("{}", to_third_person(shown))
    if not phrase:
        verb = ("are" if noun.endswith("s") else "is") + (" not" if is_negated else "")
        infinitive = (
            " to" if row.value_type == "vp" and not shown.split()[0].endswith("ing") else ""
        )
        text = f"{owner}'s {noun} {verb}{infinitive} {to_third_person(shown)}"
    else:
        text = build_sentence(owner, phrase, polarity)
    return RuleClaim(owner, row.predicate, shown, text, start, value.end, polarity)


def _date_deadline(ctx: TurnContext, claim: RuleClaim) -> RuleClaim:
    """A deadline with its day: the word for it will mean another day tomorrow."""
    if claim.predicate != "deadline":
        return claim
    time = dates.find_time(claim.object, 0, len(claim.object), ctx.speech_time, is_future=True)
    return (
        replace(claim, text=f"{claim.subject}'s deadline is {time.interval}", valid=time.interval)
        if time
        else claim
    )


# --------------------------------------------------------------------------------------------------------------- values


def parse_values(text: str, start: int, end: int) -> list[ValueSpan]:
    """The things that are listed at a place."""
    return [
        item
        for item in split_items(text, start, find_value_end(text, start, end))
        if is_thing(item.text)
    ]


def parse_value(text: str, start: int, end: int, value_type: str) -> ValueSpan | None:
    """The one value that stands at a place, if it is of the right sort."""
    if value_type in ("number", "email", "phone", "pronouns"):
        match = get_pattern(f"value.{value_type}").match(text, start, end)
        return ValueSpan(match["value"], *match.span("value")) if match else None
    if value_type == "date":
        return dates.match_day(text, start, end)
    stop = find_value_end(text, start, end)
    value = trim_value(
        text,
        start,
        stop
        if value_type == "whole"
        else _find_value_comma(text, start, stop, keep=value_type == "place"),
    )
    if value_type == "name":
        value = _trim_name(value)
    return value if value.text and _is_of_type(value_type, value, text[start:stop]) else None


def _is_of_type(value_type: str, value: ValueSpan, source_text: str) -> bool:
    match value_type:
        case "proper":
            return value.text[:1].isupper() and len(value.text.split()) <= 4
        case "model":
            return value.text[:1].isupper() or (
                source_text.lower().startswith(("a ", "an ")) and is_thing(value.text, 4)
            )
        case "vp":
            return len(value.text.split()) >= 2 and VALUE_CHECKS["vp"](value.text)
    return VALUE_CHECKS[value_type](value.text)


def _trim_name(value: ValueSpan) -> ValueSpan:
    """A name ends before what is no part of one."""
    end_match = get_pattern("attributes.name_end").search(value.text)
    return (
        value
        if end_match is None
        else ValueSpan(
            value.text[: end_match.start()], value.start, value.start + end_match.start()
        )
    )


def _find_value_comma(text: str, start: int, end: int, *, keep: bool) -> int:
    comma_match = re.compile(r",(?!\d)").search(text, start, end)
    comma = comma_match.start() if comma_match else -1
    if comma < 0 or (keep and re.match(r",\s*[A-Z][\w.]+(?:\s[A-Z]\w+)?\s*$", text[comma:end])):
        return end
    return comma


# --------------------------------------------------------------------------------------------------------- appointments


def parse_appointment(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What "my flight is on 3 March" says: something with its day."""
    match = get_pattern("attributes.appointment").match(ctx.text, clause.start, clause.end)
    if match is None or not _has_date_at(ctx, match.end(), clause.end):
        return
    time = dates.find_time(
        ctx.text,
        max(clause.start, match.end() - len(" on ")),
        clause.end,
        ctx.speech_time,
        is_future=True,
    )
    if time is not None:
        noun = match["noun"].strip()
        text = f"{ctx.speaker} has {add_article(to_third_person(noun))}{format_interval(time.interval)}"
        yield RuleClaim(
            ctx.speaker,
            "plans",
            noun,
            text,
            clause.start,
            time.end,
            modality="planned",
            valid=time.interval,
        )


def _has_date_at(ctx: TurnContext, start: int, end: int) -> bool:
    """Whether a time stands right here, rather than somewhere behind."""
    day = dates.match_day(ctx.text, start, end)
    return (
        day is not None
        or dates.find_time(ctx.text, start, min(end, start + 12), ctx.speech_time) is not None
    )
