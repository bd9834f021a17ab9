"""Parse attributes, answers, bare clauses, deadlines and requests.

Examples: "my name is Bob", "my wife's birthday is 3 March", "Dentist on Thursday".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.extraction.rules import people
from told.extraction.rules.claim import (
    ASSERTED,
    FRAGMENT_CONFIDENCE,
    NEGATED,
    RuleClaim,
    TurnContext,
    add_article,
    build_sentence,
    find_time,
    format_interval,
    match_day,
    to_third_person,
)
from told.extraction.rules.grammar import (
    DEFAULT_SPEAKER,
    PAST,
    VALUE_CHECKS,
    Clause,
    ParsedVerb,
    Referent,
    ValueSpan,
    VerbFeatures,
    capitalise_name,
    find_value_end,
    is_name,
    is_thing,
    parse_subject,
    parse_verb,
    split_items,
    trim_value,
)
from told.extraction.rules.lexicon import expand_macros, get_pattern, load_sections, load_words
from told.extraction.rules.people import parse_household
from told.extraction.rules.verb_rules import parse_notes, parse_verb_clause

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
    """Parse an attribute named in a clause, e.g. "my name is Bob"."""
    text, start, end = ctx.text, clause.start, clause.end
    if match := get_pattern("attributes.frame").match(text, start, end):
        owner = _find_owner(ctx, match)
        if owner is not None:
            yield from _parse_attribute_values(ctx, clause, match, owner)
    elif match := get_pattern("attributes.listed").match(text, start, end):
        if get_pattern("note.not_mine").search(text) is None:
            yield from _parse_attribute_values(ctx, clause, match, ctx.speaker)
    elif match := get_pattern("attributes.bare").match(text, start, end):
        yield from _parse_attribute_values(ctx, clause, match, ctx.speaker)
    elif match := get_pattern("attributes.inverted").match(text, start, end):
        value = trim_value(text, *match.span("value"))
        if is_thing(value.text) and match["topic"].lower().split()[0] not in _VAGUE_TOPICS:
            yield build_favourite(ctx.speaker, match["topic"].lower(), value, start, match.end())


def _find_owner(ctx: TurnContext, match: re.Match[str]) -> str | None:
    """Return the owner of an attribute, or None if unknown."""
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
    """Build a favourite claim; a plural topic gets the singular predicate."""
    singular = topic.removesuffix("s") if not topic.endswith("ss") else topic
    slug = re.sub(r"[^a-z0-9]+", "_", singular)
    verb = "is" if singular == topic else "are"
    text = f"{owner}'s favourite {topic} {verb} {to_third_person(value.text)}"
    return RuleClaim(owner, f"favourite_{slug}", value.text, text, start, end)


def _parse_attribute_values(
    ctx: TurnContext, clause: Clause, match: re.Match[str], owner: str
) -> Iterator[RuleClaim]:
    """Parse the values that follow an attribute."""
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
    """Replace a relative deadline by its date."""
    if claim.predicate != "deadline":
        return claim
    time = find_time(claim.object, 0, len(claim.object), ctx.speech_time, is_future=True)
    return (
        replace(claim, text=f"{claim.subject}'s deadline is {time.interval}", valid=time.interval)
        if time
        else claim
    )


# Values


def parse_values(text: str, start: int, end: int) -> list[ValueSpan]:
    """Return the items of a list."""
    return [
        item
        for item in split_items(text, start, find_value_end(text, start, end))
        if is_thing(item.text)
    ]


def parse_value(text: str, start: int, end: int, value_type: str) -> ValueSpan | None:
    """Return the single value at a position if it has the right type."""
    if value_type in ("number", "email", "phone", "pronouns"):
        match = get_pattern(f"value.{value_type}").match(text, start, end)
        return ValueSpan(match["value"], *match.span("value")) if match else None
    if value_type == "date":
        return match_day(text, start, end)
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
    """Cut off words that are no part of a name."""
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


# Appointments


def parse_appointment(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse an appointment with its date, e.g. "my flight is on 3 March"."""
    match = get_pattern("attributes.appointment").match(ctx.text, clause.start, clause.end)
    if match is None or not _has_date_at(ctx, match.end(), clause.end):
        return
    time = find_time(
        ctx.text,
        max(clause.start, match.end() - len(" on ")),
        clause.end,
        ctx.speech_time,
        is_future=True,
    )
    if time is not None:
        noun = match["noun"].strip()
        appointment = add_article(to_third_person(noun))
        text = f"{ctx.speaker} has {appointment}{format_interval(time.interval)}"
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
    """Return True if a date begins at this position."""
    day = match_day(ctx.text, start, end)
    return (
        day is not None
        or find_time(ctx.text, start, min(end, start + 12), ctx.speech_time) is not None
    )


_MAX_WORDS = 12
_TAIL_LENGTH = 400
"""Number of final characters of a turn searched for its question."""


@cache
def _load_questions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (head, re.compile(rf"\b(?:{expand_macros('|'.join(forms))})\b[^?]*\?\s*$", re.IGNORECASE))
        for head, forms in load_sections("answers.txt").items()
    )


def parse_answer(ctx: TurnContext, question: str) -> Iterator[RuleClaim]:
    """Parse the beginning of a turn as the answer to the previous question."""
    yield from _parse_own_favourite(ctx, question)
    if "?" not in question or get_pattern("answers.no_answer").match(ctx.text):
        return
    tail = question[-_TAIL_LENGTH:].replace("\u2019", "'")
    for head, question_pattern in _load_questions():
        if match := question_pattern.search(tail):
            yield from _parse_answer_values(ctx, head, match.groupdict().get("topic") or "")
            return


def _parse_own_favourite(ctx: TurnContext, question: str) -> Iterator[RuleClaim]:
    """Parse "mine is Kotlin" as an answer to a favourite named in the previous turn."""
    own_match = get_pattern("answers.own_favourite").match(ctx.text)
    their_match = (
        get_pattern("answers.their_favourite").search(question[-_TAIL_LENGTH:])
        if own_match
        else None
    )
    if own_match and their_match:
        value = parse_value(ctx.text, own_match.start("value"), own_match.end("value"), "thing")
        if value is not None:
            yield build_favourite(
                ctx.speaker,
                their_match["topic"].lower(),
                value,
                own_match.start("value"),
                value.end,
            )


def _parse_answer_values(ctx: TurnContext, head: str, topic: str) -> Iterator[RuleClaim]:
    """Parse a short answer to a question; full sentences are left to other rules."""
    predicate, value_type, phrase = head.split(" | ")
    filler = get_pattern("answers.filler").match(ctx.text)
    start = filler.end() if filler else 0
    end_match = get_pattern("answers.sentence_end").search(ctx.text, start)
    end = end_match.start() if end_match else len(ctx.text)
    if (
        (end_match and end_match[0] == "?")
        or len(ctx.text[start:end].split()) > _MAX_WORDS
        or _is_sentence(ctx, start, end)
    ):
        return
    if value_type == "people":
        yield from parse_household(
            ctx, Clause(start, end, lead=start), Referent(ctx.speaker, is_speaker=True), start
        )
        return
    for value in (
        parse_values(ctx.text, start, end)
        if value_type == "things"
        else [parse_value(ctx.text, start, end, value_type)]
    ):
        if value is None:
            continue
        if topic:
            yield build_favourite(ctx.speaker, topic.lower(), value, value.start, value.end)
            continue
        shown = capitalise_name(value.text) if value_type == "name" else value.text
        text = build_sentence(
            ctx.speaker, phrase.replace("{a}", add_article(shown)).replace("{}", shown)
        )
        yield RuleClaim(
            ctx.speaker,
            predicate,
            shown,
            text,
            value.start,
            value.end,
            confidence=FRAGMENT_CONFIDENCE,
        )


def _is_sentence(ctx: TurnContext, start: int, end: int) -> bool:
    """Return True if the answer is a full sentence with a subject and a verb."""
    subject = parse_subject(ctx.text, start, end, ctx.speaker, None)
    return subject is not None and parse_verb(ctx.text, subject.verb_start, end) is not None


_NOTE_COUNT_RANGE: Final = (2, 8)


def parse_bare_clause(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse a clause about the speaker that has no subject."""
    referent = Referent(ctx.speaker, is_speaker=True)
    name_match = get_pattern("bare.name").match(ctx.text, clause.start, clause.end)
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
    """Parse a dated event, e.g. "Dentist on Thursday at 3pm" or "Flight to Oslo 3 March"."""
    match = get_pattern("bare.booking").match(ctx.text, clause.start, clause.end)
    time = (
        find_time(ctx.text, match.end("what"), clause.end, ctx.speech_time, is_future=True)
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
    """Return True if the first word is a known given name."""
    return name.partition(" ")[0].lower() in load_words("FIRST_NAMES")


def _find_bare_verb(ctx: TurnContext, clause: Clause) -> ParsedVerb | None:
    """Return the verb of a clause without "I", or an omitted "am"."""
    match = get_pattern("bare.verb").match(ctx.text, clause.start, clause.end)
    verb = parse_verb(ctx.text, match.start("verb") if match else clause.start, clause.end)
    if match is None:
        is_standalone = (
            verb is not None
            and verb.lemma in load_words("SUBJECTLESS_VERBS")
            and verb.features.tense == PAST
        )
        return verb if verb and is_standalone and not verb.features.negated else None
    if match["state"] is not None:
        complement_start = match.end("state")
        return ParsedVerb(
            "be", VerbFeatures(negated=bool(match["no"])), complement_start, complement_start
        )
    return verb


def _parse_fragments(ctx: TurnContext, clause: Clause, referent: Referent) -> Iterator[RuleClaim]:
    """Parse comma-separated notes; a single one is ambiguous and skipped."""
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


_MAX_DUE_WORDS: Final = 10


def parse_due(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse something that ends or is due at a time."""
    match = get_pattern("due.frame").match(ctx.text, clause.start, clause.end)
    time = (
        find_time(ctx.text, match.end(), clause.end, ctx.speech_time, is_future=True)
        if match
        else None
    )
    if match is None or not (time or match["feast"]):
        return
    group = next(name for name in ("thing", "todo", "asked") if match[name])
    task = trim_value(ctx.text, *match.span(group), strip_article=group != "todo")
    end = time.end if time else match.end("feast")
    if not 0 < len(task.text.split()) <= _MAX_DUE_WORDS or get_pattern("due.deictic").search(
        task.text
    ):
        return
    date_phrase = format_interval(time.interval) if time else f" {match['feast']}"
    verb_phrase = (match["ends"] or "is due").replace("'s ", "is ")
    text = f"{ctx.speaker}'s {to_third_person(task.text)} {verb_phrase}{date_phrase}"
    if group == "todo":
        text = f"{ctx.speaker} has to {to_third_person(task.text)}{date_phrase}"
    valid = time.interval if time else ctx.default_interval
    value = ctx.text[task.start : end]
    yield RuleClaim(
        ctx.speaker, "plans", value, text, clause.start, end, modality="planned", valid=valid
    )


_MAX_REQUEST_WORDS = 14


def parse_nickname(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse a nickname, e.g. "call me Sam"."""
    start, end = clause.start, clause.end
    call_match = get_pattern("requests.call").match(ctx.text, start, end)
    match = call_match or get_pattern("requests.called").match(ctx.text, start, end)
    if (
        match
        and match["name"].lower() not in load_words("NOT_NICKNAMES")
        and is_name(match["name"])
    ):
        name = capitalise_name(match["name"])
        yield RuleClaim(
            ctx.speaker, "nickname", name, f"{ctx.speaker} goes by {name}", start, match.end("name")
        )


def parse_reply_style(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse a lasting instruction on how the assistant should reply."""
    if style_match := get_pattern("requests.wanted").match(ctx.text, clause.start, clause.end):
        style = style_match["style"]
        text = f"{ctx.speaker} wants {style}"
        yield RuleClaim(
            ctx.speaker, "reply_style", style, text, clause.start, style_match.end("style")
        )
        return
    for start in dict.fromkeys((clause.start, clause.lead)):
        order_match = get_pattern("requests.order").match(ctx.text, start, clause.end)
        if order_match and get_pattern("requests.styled").match(
            ctx.text, order_match.start("verb"), clause.end
        ):
            yield from _parse_order(ctx, order_match.start("verb"), clause.end)
            return


def parse_style_question(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse a lasting reply style asked as a question: "Can you always answer in German?"."""
    if get_pattern("requests.lasting").search(ctx.text, clause.lead, clause.end):
        yield from parse_reply_style(ctx, clause)


def parse_contact(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse contact details, e.g. "you can reach me at …"."""
    match = get_pattern("requests.contact").match(ctx.text, clause.start, clause.end)
    for channel in ("email", "phone") if match else ():
        if match and match[channel]:
            text = f"{ctx.speaker}'s {channel} is {match[channel]}"
            yield RuleClaim(
                ctx.speaker, channel, match[channel], text, clause.start, match.end(channel)
            )


def _parse_order(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    stop = get_pattern("requests.stop").search(ctx.text, start, end)
    value = trim_value(ctx.text, start, stop.start() if stop else end, strip_article=False)
    if (
        value.text
        and len(value.text.split()) <= _MAX_REQUEST_WORDS
        and not get_pattern("requests.this").search(value.text)
    ):
        text = f"{ctx.speaker} asks the assistant to {_reword_order(value.text)}"
        yield RuleClaim(ctx.speaker, "reply_style", value.text, text, value.start, value.end)


def _reword_order(value: str) -> str:
    """Rewrite an order as reported speech: "don't use emojis" becomes "not use emojis"."""
    lowered = re.sub(r"^(?:don't|do not|never)\s+", "not ", value[0].lower() + value[1:])
    lowered = re.sub(r"^(?:no|skip|omit)\s+", "avoid ", lowered)
    return re.sub(r"\bme\b", "them", re.sub(r"\byour\b", "its", lowered))
