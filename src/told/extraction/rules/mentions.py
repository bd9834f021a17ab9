"""Parse facts mentioned in passing, even in questions.

Examples: "a strap for my Omega", "near my flat in Lyon", "my knee hurts".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.extraction.rules.claim import (
    FRAGMENT_CONFIDENCE,
    NEGATED,
    STATED_CONFIDENCE,
    RuleClaim,
    TurnContext,
    add_article,
    find_time,
    format_interval,
)
from told.extraction.rules.grammar import (
    Clause,
    ParsedVerb,
    Referent,
    ValueSpan,
    VerbFeatures,
    is_place,
    parse_verb,
    trim_value,
)
from told.extraction.rules.lexicon import get_pattern, load_predicates, load_words
from told.extraction.rules.people import get_relation_predicate, parse_household
from told.extraction.rules.verb_rules import apply_verb_rules
from told.text.dates import to_us

MENTION_CONFIDENCE: Final = 0.75
"""Confidence of a fact mentioned in passing."""


_SPEAKER_PATTERNS: Final = (
    ("budget", "budget", "has a budget of"),
    ("learning", "learning", "is learning"),
    ("course", "learning", "is learning"),
    ("has_condition", "has_condition", "has"),
)


def parse_mentions(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse possessions, people, homes, ailments and plans mentioned in a span."""
    if get_pattern("mention.likely").search(ctx.text, start, end) is None:
        return
    for parser in (
        _parse_home,
        _parse_things,
        _parse_pets,
        _parse_family,
        _parse_ailment,
        _parse_papers,
        _parse_speaker_patterns,
        _parse_kin_job,
        _parse_cancelled_plan,
        _parse_languages,
        _parse_companions,
        _parse_avoided_food,
        _parse_misfortune,
        _parse_trip,
        _parse_confided,
        _parse_asking_as,
        _parse_asking_as_with,
        _parse_shifts,
        _parse_medicine,
        _parse_upcoming,
        _parse_tool,
    ):
        yield from parser(ctx, start, end)


def _parse_home(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for match in get_pattern("mention.home").finditer(ctx.text, start, end):
        place = trim_value(ctx.text, *match.span("place" if match["place"] else "here"))
        if is_place(place.text):
            yield _build_mention(ctx, "lives_in", place, f"lives in {place.text}", match.start())


def _parse_things(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for name in ("mention.brand", "mention.thing", "mention.household_item"):
        for match in get_pattern(name).finditer(ctx.text, start, end):
            value = trim_value(ctx.text, *match.span("thing"))
            yield _build_mention(
                ctx, "owns", value, f"has {add_article(value.text)}", match.start()
            )


def _parse_pets(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for match in get_pattern("mention.pet").finditer(ctx.text, start, end):
        group = next(name for name in ("pet", "walked", "house") if match[name])
        noun = match[group]
        if noun.lower() not in load_words("ALSO_FOOD") and not get_pattern(
            "mention.put_down"
        ).search(ctx.text, start, end):
            value = ValueSpan(noun, *match.span(group))
            yield _build_mention(ctx, "has_pet", value, f"has {add_article(noun)}", match.start())


def _parse_family(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for match in get_pattern("mention.family").finditer(ctx.text, start, end):
        group = next(name for name in ("kin", "kids", "me_and", "and_i", "gift") if match[name])
        noun = match[group]
        value = ValueSpan(noun, *match.span(group))
        yield _build_mention(
            ctx, get_relation_predicate(noun), value, f"has {add_article(noun)}", match.start()
        )


def _parse_ailment(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.ailment").search(ctx.text, start, end):
        value = ValueSpan(match["ailment"], *match.span("ailment"))
        yield RuleClaim(
            ctx.speaker,
            "has_condition",
            value.text,
            f"{ctx.speaker}'s {value.text}",
            match.start(),
            value.end,
            confidence=STATED_CONFIDENCE,
        )


def _parse_papers(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.papers").search(ctx.text, start, end):
        value = trim_value(ctx.text, *match.span("paper"))
        paper_text = trim_value(ctx.text, *match.span("said")).text
        yield RuleClaim(
            ctx.speaker,
            "has",
            value.text,
            f"{ctx.speaker}'s {paper_text}",
            match.start(),
            match.end("said"),
        )


def _parse_speaker_patterns(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for name, predicate, phrase in _SPEAKER_PATTERNS:
        if match := get_pattern(f"mention.{name}").search(ctx.text, start, end):
            value = trim_value(ctx.text, *match.span("value"))
            yield _build_mention(ctx, predicate, value, f"{phrase} {value.text}", match.start())


def _parse_avoided_food(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for match in get_pattern("mention.avoided_food").finditer(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        claim = _build_mention(ctx, "avoids", value, f"avoids {value.text}", match.start("value"))
        yield replace(claim, confidence=FRAGMENT_CONFIDENCE)


def _parse_kin_job(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.kin_employer").search(ctx.text, start, end):
        relative = f"{ctx.speaker}'s {match['kin'].lower()}"
        yield RuleClaim(
            relative,
            "works_at",
            match["org"],
            f"{relative} works at {match['org']}",
            match.start(),
            match.end("org"),
        )


def _parse_cancelled_plan(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.cancelled").search(ctx.text, start, end):
        value = trim_value(ctx.text, *match.span("plan"))
        text = f"{ctx.speaker} no longer plans {add_article(value.text)}"
        yield RuleClaim(ctx.speaker, "plans", value.text, text, match.start(), value.end, NEGATED)


def _parse_languages(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    for match in get_pattern("mention.language").finditer(ctx.text, start, end):
        value = ValueSpan(
            match["language"] or match["home"],
            *match.span("language" if match["language"] else "home"),
        )
        yield _build_mention(ctx, "speaks", value, f"speaks {value.text}", match.start())


def _parse_companions(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.companions").search(ctx.text, start, end):
        yield from parse_household(
            ctx, Clause(match.start(), end), Referent(ctx.speaker, is_speaker=True), match.end()
        )


def _parse_misfortune(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse what happened to a possession, e.g. "the car got broken into"."""
    if match := get_pattern("mention.misfortune").search(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        possession = f"{ctx.speaker}'s {match['thing'].lower()}"
        time = find_time(ctx.text, start, end, ctx.speech_time)
        valid = time.interval if time else ctx.default_interval
        text = f"{possession} {value.text}{format_interval(valid)}"
        yield RuleClaim(
            possession,
            "happened",
            value.text,
            text,
            match.start(),
            value.end,
            confidence=MENTION_CONFIDENCE,
            valid=valid,
        )


def _parse_trip(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    if match := get_pattern("mention.trip").search(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        claim = _build_mention(ctx, "plans", value, f"plans {value.text}", value.start)
        yield replace(claim, modality="planned")


def _parse_confided(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse a confided fact, e.g. "how do I tell my boss that I'm pregnant?"."""
    if match := get_pattern("mention.confided").search(ctx.text, start, end):
        verb = parse_verb(ctx.text, match.end(), end)
        yield from _parse_about_speaker(ctx, verb, match.start("me"), end)


def _parse_asking_as(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse the speaker's role in a question: "which visa do I need as a Dutch citizen?"."""
    for match in get_pattern("mention.role").finditer(ctx.text, start, end):
        complement_start = match.start("one")
        yield from _parse_about_speaker(
            ctx,
            ParsedVerb("be", VerbFeatures(), complement_start, complement_start),
            match.start(),
            match.end("one"),
        )


def _parse_asking_as_with(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse details of such a role, e.g. "as a vegetarian with a nut allergy"."""
    if get_pattern("mention.role_marker").search(ctx.text, start, end) is None:
        return
    for match in get_pattern("mention.role_detail").finditer(ctx.text, start, end):
        complement_start = match.start("one")
        verb = (
            ParsedVerb("have", VerbFeatures(), complement_start, complement_start)
            if match["with"]
            else parse_verb(ctx.text, complement_start, match.end())
        )
        yield from _parse_about_speaker(
            ctx,
            verb,
            match.start(),
            match.end(),
            extra_predicates=("likes", "dislikes", "avoids", "owns"),
        )


def _parse_shifts(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse working hours, e.g. "I work night shifts at the warehouse"."""
    if match := get_pattern("mention.shifts").search(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        yield replace(
            _build_mention(ctx, "habit", value, f"works {value.text}", match.start()),
            confidence=STATED_CONFIDENCE,
        )


def _parse_medicine(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse medication in a question, e.g. "when should I take my vitamin D?"."""
    for match in get_pattern("mention.medicine").finditer(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        yield _build_mention(ctx, "takes", value, f"takes {value.text}", match.start())


def _parse_tool(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse a second tool, e.g. "mostly Rust at work but Python for the data bits"."""
    if match := get_pattern("mention.tool").search(ctx.text, start, end):
        value = ValueSpan(match["value"], *match.span("value"))
        yield replace(
            _build_mention(ctx, "uses", value, f"uses {value.text}", match.start("value")),
            confidence=FRAGMENT_CONFIDENCE,
        )


def _parse_upcoming(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse a dated event that something is due before: "… before the beta on July 1st"."""
    match = get_pattern("mention.upcoming").search(ctx.text, start, end)
    if match and get_pattern("mention.own_need").match(ctx.text, start, match.start()) is None:
        return
    time = (
        find_time(ctx.text, match.end("value"), end, ctx.speech_time, is_future=True)
        if match
        else None
    )
    if (
        match
        and time
        and (time.interval.end is None or time.interval.end > to_us(ctx.speech_time.now))
    ):
        value = ValueSpan(match["value"], *match.span("value"))
        text = f"{ctx.speaker} has {add_article(value.text)}{format_interval(time.interval)}"
        yield RuleClaim(
            ctx.speaker,
            "plans",
            value.text,
            text,
            match.start(),
            value.end,
            modality="planned",
            confidence=FRAGMENT_CONFIDENCE,
            valid=time.interval,
        )


def _parse_about_speaker(
    ctx: TurnContext,
    verb: ParsedVerb | None,
    start: int,
    end: int,
    *,
    extra_predicates: tuple[str, ...] = (),
) -> Iterator[RuleClaim]:
    clause = Clause(start, end, lead=start)
    claims = (
        apply_verb_rules(ctx, clause, Referent(ctx.speaker, is_speaker=True), verb) if verb else ()
    )
    yield from (
        claim
        for claim in claims
        if claim.predicate in load_predicates("CONFIDED_PREDICATES")
        or claim.predicate in extra_predicates
    )


def _build_mention(
    ctx: TurnContext, predicate: str, value: ValueSpan, phrase: str, start: int
) -> RuleClaim:
    return RuleClaim(
        ctx.speaker,
        predicate,
        value.text,
        f"{ctx.speaker} {phrase}",
        start,
        value.end,
        confidence=MENTION_CONFIDENCE,
    )
