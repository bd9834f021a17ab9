"""What people do, where no rule knows the thing itself: again and again, at a time that is past, at one to come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.write.local import dates
from told.write.local.render import build_sentence, format_interval, to_third_person
from told.write.local.said import (
    HEDGED_CONFIDENCE,
    NEGATED,
    STATED_CONFIDENCE,
    RuleClaim,
    TurnContext,
)
from told.write.local.sentence import Clause
from told.write.local.speaker import Referent, parse_subject
from told.write.local.tables import get_pattern, load_words
from told.write.local.value import ValueSpan, find_value_end, trim_value
from told.write.local.verb import ING, PAST, PRESENT, ParsedVerb

_MAX_ACTIVITY_WORDS: Final = 12


def parse_activity(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """A habit, an event or a plan."""
    features = verb.features
    frequency = get_pattern("doings.often").search(ctx.text, clause.lead, clause.end)
    if (
        features.ended
        and frequency
        and not features.negated
        and verb.lemma not in load_words("NO_HABITS")
    ):
        for claim in _parse_habit(ctx, clause, referent, verb, frequency):
            text = claim.text.replace(f"{referent.name} ", f"{referent.name} no longer ", 1)
            yield replace(claim, polarity=NEGATED, text=text)
    if features.perfect and features.tense == ING and not features.negated:
        yield from _parse_lasting(ctx, clause, referent, verb)
    if features.negated or features.ended or features.wished or features.able or features.perfect:
        return
    if features.tense == PRESENT and not features.future:
        if (frequency or features.habit) and verb.lemma not in load_words("NO_HABITS"):
            yield from _parse_habit(ctx, clause, referent, verb, frequency)
    elif not frequency:
        yield from _parse_event(ctx, clause, referent, verb)


def parse_livelihood(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What somebody does for a living, whatever it is: "I weave rugs for a living"."""
    match = get_pattern("doings.livelihood").search(ctx.text, clause.start, clause.end)
    subject = (
        parse_subject(ctx.text, clause.start, clause.end, ctx.speaker, ctx.last_referent)
        if match
        else None
    )
    if match is None or subject is None:
        return
    value = trim_value(ctx.text, subject.verb_start, match.start(), strip_article=False)
    if 1 < len(value.text.split()) <= _MAX_ACTIVITY_WORDS and not get_pattern(
        "doings.pointing"
    ).search(value.text):
        text = build_sentence(
            subject.referent.name,
            f"{'' if subject.referent.is_speaker else '='}{to_third_person(value.text)} for a living",
        )
        yield RuleClaim(
            subject.referent.name, "works_as", value.text, text, clause.start, value.end
        )


def _parse_habit(
    ctx: TurnContext,
    clause: Clause,
    referent: Referent,
    verb: ParsedVerb,
    frequency: re.Match[str] | None,
) -> Iterator[RuleClaim]:
    is_after_verb = frequency is not None and frequency.start() >= verb.complement_start
    stop = (
        frequency.end()
        if frequency and is_after_verb
        else find_value_end(ctx.text, verb.complement_start, clause.end)
    )
    if (
        not ctx.text[verb.complement_start : stop].strip()
        and len(ctx.text[verb.complement_start : clause.end].split()) < _MAX_ACTIVITY_WORDS
    ):
        stop = clause.end
    time_match = get_pattern("doings.clock").match(ctx.text, stop, clause.end)
    value = trim_value(
        ctx.text,
        verb.word_start,
        max(time_match.end() if time_match else stop, verb.complement_start),
        strip_article=False,
    )
    if _is_meaningful(value):
        text = build_sentence(
            referent.name, f"{verb.lemma} {to_third_person(value.text.partition(' ')[2])}"
        )
        yield RuleClaim(referent.name, "habit", value.text, text, clause.start, value.end)


def _parse_lasting(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """What has been done for years is a habit: I've been climbing since 2019."""
    time = dates.find_time(ctx.text, clause.lead, clause.end, ctx.speech_time)
    if (
        time is None
        or time.marker != "since"
        or verb.lemma in load_words("NO_HABITS") | load_words("NO_EVENTS")
    ):
        return
    value = trim_value(
        ctx.text,
        verb.word_start,
        max(find_value_end(ctx.text, verb.complement_start, clause.end), verb.complement_start),
        strip_article=False,
    )
    if (
        value.text
        and len(value.text.split()) <= _MAX_ACTIVITY_WORDS
        and not get_pattern("doings.pointing").search(value.text)
    ):
        text = build_sentence(referent.name, f"have been {to_third_person(value.text)}")
        yield RuleClaim(
            referent.name,
            "habit",
            value.text,
            text,
            clause.start,
            value.end,
            valid=dates.compute_validity(time, is_state=True, default=ctx.default_interval),
        )


def _parse_event(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Something done at a time, or planned: that needs a time too, unless it is one of the great things of a life."""
    features = verb.features
    is_future = features.future or features.tense == ING
    time = dates.find_time(ctx.text, clause.lead, clause.end, ctx.speech_time, is_future=is_future)
    is_life_event = features.future and get_pattern("words.life").match(
        ctx.text, verb.word_start, clause.end
    )
    if (verb.lemma in load_words("NO_EVENTS") and not is_life_event) or (
        time is None and not is_life_event
    ):
        return
    if (time is not None and time.is_open_ended) or (not is_future and features.tense != PAST):
        return
    value = trim_value(
        ctx.text,
        verb.word_start,
        find_value_end(ctx.text, verb.complement_start, clause.end),
        strip_article=False,
    )
    if not _is_meaningful(value):
        return
    plan_phrase = to_third_person(f"plan to {verb.lemma} {value.text.partition(' ')[2]}")
    text = build_sentence(
        referent.name, plan_phrase if is_future else f"={to_third_person(value.text)}"
    ) + (format_interval(time.interval) if time else "")
    modality = "hedged" if features.doubted else "planned" if is_future else "stated"
    yield RuleClaim(
        referent.name,
        "plans" if is_future else "did",
        value.text,
        text,
        clause.start,
        value.end,
        modality=modality,
        confidence=HEDGED_CONFIDENCE if features.doubted else STATED_CONFIDENCE,
        valid=time.interval if time else ctx.default_interval,
    )


def _is_meaningful(value: ValueSpan) -> bool:
    """Whether a doing can be understood without what was pointed at."""
    return 2 <= len(value.text.split()) <= _MAX_ACTIVITY_WORDS and not get_pattern(
        "doings.pointing"
    ).search(value.text)
