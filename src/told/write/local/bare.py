"""Clauses whose subject is left out: "Moved to Berlin last month", "Allergic to nuts", "As a vegan, …", "Sam here"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from told.write.local import dates
from told.write.local.render import add_article, format_interval
from told.write.local.said import FRAGMENT_CONFIDENCE, RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.speaker import Referent, capitalise_name
from told.write.local.tables import get_pattern, load_words
from told.write.local.value import is_name, trim_value
from told.write.local.verb import PAST, ParsedVerb, VerbFeatures, parse_verb
from told.write.local.verbal import parse_notes, parse_verb_clause

_NOTE_COUNT_RANGE: Final = (2, 8)


def parse_bare_clause(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What a clause says of the speaker without naming them."""
    referent = Referent(ctx.speaker, is_speaker=True)
    name_match = get_pattern("bare.named").match(ctx.text, clause.start, clause.end)
    if (
        name_match
        and is_name(name_match["name"], require_known=True)
        and (name_match["intro"] or _is_first_name(name_match["name"]))
    ):
        name = capitalise_name(name_match["name"])
        yield RuleClaim(
            ctx.speaker,
            "name",
            name,
            f"{ctx.speaker}'s name is {name}",
            clause.start,
            name_match.end("name"),
        )
    elif verb := _find_bare_verb(ctx, clause):
        claims = parse_verb_clause(ctx, clause, referent, verb)
        yield from (
            replace(claim, confidence=min(claim.confidence, FRAGMENT_CONFIDENCE))
            for claim in claims
            if claim.predicate != "name"
        )
        comma = ctx.text.find(",", verb.complement_start, clause.end)
        if comma > 0:
            yield from (
                replace(claim, confidence=FRAGMENT_CONFIDENCE)
                for claim in parse_notes(ctx, clause, referent, comma + 1)
            )
    else:
        yield from _parse_fragments(ctx, clause, referent)


def parse_booking(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What is on, and when: "Dentist on Thursday at 3pm", "Flight to Oslo 3 March"."""
    match = get_pattern("bare.booked").match(ctx.text, clause.start, clause.end)
    time = (
        dates.find_time(ctx.text, match.end("what"), clause.end, ctx.speech_time, is_future=True)
        if match
        else None
    )
    if (
        match is None
        or time is None
        or get_pattern("bare.rest").match(ctx.text, time.end, clause.end)
    ):
        return
    value = trim_value(ctx.text, *match.span("what"))
    text_value = (
        value.text if value.text[1:2].isupper() else value.text[:1].lower() + value.text[1:]
    )
    text = f"{ctx.speaker} has {add_article(text_value)}{format_interval(time.interval)}"
    yield RuleClaim(
        ctx.speaker,
        "plans",
        value.text,
        text,
        clause.start,
        value.end,
        modality="planned",
        confidence=FRAGMENT_CONFIDENCE,
        valid=time.interval,
    )


def _is_first_name(name: str) -> bool:
    """Whether it is a given name: "Same here" says nobody's."""
    return name.partition(" ")[0].lower() in load_words("FIRST_NAMES")


def _find_bare_verb(ctx: TurnContext, clause: Clause) -> ParsedVerb | None:
    """The verb of the clause: one that needs no "I", or the "am" that is left out too."""
    match = get_pattern("bare.verb").match(ctx.text, clause.start, clause.end)
    verb = parse_verb(ctx.text, match.start("verb") if match else clause.start, clause.end)
    if match is None:
        is_standalone = (
            verb is not None and verb.lemma in load_words("ALONE") and verb.features.tense == PAST
        )
        return verb if verb and is_standalone and not verb.features.negated else None
    if match["state"] is not None:
        complement_start = match.end("state")
        return ParsedVerb(
            "be", VerbFeatures(negated=bool(match["no"])), complement_start, complement_start
        )
    return verb


def _parse_fragments(ctx: TurnContext, clause: Clause, referent: Referent) -> Iterator[RuleClaim]:
    """Notes about oneself; one alone may be about anything."""
    if (
        _NOTE_COUNT_RANGE[0]
        <= ctx.text.count(",", clause.start, clause.end) + 1
        <= _NOTE_COUNT_RANGE[1]
    ):
        claims = parse_notes(ctx, clause, referent, clause.start)
        predicates = {claim.predicate for claim in claims}
        if len(predicates) > 1 or (
            len(claims) > 1 and all(name.startswith("has_") for name in predicates)
        ):
            yield from (replace(claim, confidence=FRAGMENT_CONFIDENCE) for claim in claims)
