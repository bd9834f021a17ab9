"""Parse notes such as "- Name: Bob" and "Likes: tea, jazz. Kids: 2"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

from told.extraction.rules.attributes import build_favourite
from told.extraction.rules.claim import (
    FRAGMENT_CONFIDENCE,
    RuleClaim,
    TimeMention,
    TurnContext,
    add_article,
    build_sentence,
    find_time,
    format_interval,
    match_day,
    to_third_person,
)
from told.extraction.rules.grammar import (
    Clause,
    ParsedVerb,
    Referent,
    ValueSpan,
    VerbFeatures,
    capitalise_name,
    is_job,
    is_name,
    is_place,
    parse_subject,
    parse_verb,
    trim_value,
)
from told.extraction.rules.lexicon import expand_macros, get_pattern, load_sections, load_words
from told.extraction.rules.people import build_relation_claim, get_relation_predicate
from told.extraction.rules.verb_rules import apply_verb_rules, parse_notes
from told.text.dates import to_us

_MIN_PAIRS: Final = 2
_MAX_PAIR_WORDS: Final = 10

Pairs = list[re.Match[str]]


def parse_pair_list(ctx: TurnContext) -> Iterator[RuleClaim]:
    """Parse a list of "key: value" pairs and blank it out in the text."""
    if "\n" not in ctx.text or get_pattern("note.not_mine").search(ctx.text):
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
    """Choose a parser from the line above the list and its keys."""
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
) -> TimeMention | None:
    return find_time(pair["key"], 0, len(pair["key"]), ctx.speech_time, is_future=is_future)


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
    verb, event = "had" if is_past else "has", add_article(to_third_person(value.text))
    text = f"{ctx.speaker} {verb} {event}{format_interval(time.interval)}"
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


_MAX_ITEM_WORDS: Final = 8
_MAX_ITEMS: Final = 12
_MAX_LINE_WORDS: Final = 16
_PATTERN_TYPES: Final = frozenset(("number", "email", "phone", "pronouns"))


@dataclass(frozen=True, slots=True)
class _Heading:
    """The heading of a note with the predicate, value type and phrase of its values."""

    noun: str
    predicate: str
    value_type: str
    phrase: str
    is_weak: bool = False


@cache
def _load_headings() -> dict[str, _Heading]:
    return {
        noun: _parse_heading(noun, row)
        for file in ("attributes.txt", "notes.txt")
        for nouns, (row, *_) in load_sections(file).items()
        if not nouns.startswith("~")
        for noun in nouns.split("|")
    }


def _parse_heading(noun: str, row: str) -> _Heading:
    predicate, value_type, phrase, weak = (part.strip() for part in (*row.split(" | "), "", "")[:4])
    return _Heading(noun, predicate, value_type, phrase, bool(weak))


@cache
def _load_pattern_headings() -> tuple[tuple[re.Pattern[str], _Heading], ...]:
    """Return the headings that are patterns."""
    headings = (
        (section, row)
        for section, (row, *_) in load_sections("notes.txt").items()
        if section.startswith("~")
    )
    return tuple(
        (re.compile(expand_macros(section[1:]), re.IGNORECASE), _parse_heading("", row))
        for section, row in headings
    )


def _find_heading(heading_text: str) -> _Heading:
    """Return the heading for a text."""
    plain = re.sub(r"\s+", " ", heading_text.lower())
    exact = _load_headings().get(plain)
    return exact or next(
        heading
        for heading_pattern, heading in _load_pattern_headings()
        if heading_pattern.fullmatch(plain)
    )


@cache
def _build_heading_pattern() -> re.Pattern[str]:
    """Build the pattern of a heading at the start of a line or after another note."""
    plain = (
        re.escape(noun).replace(r"\ ", r"\s+")
        for noun in sorted(_load_headings(), key=len, reverse=True)
    )
    nouns = "|".join(
        [*(heading_pattern.pattern for heading_pattern, _ in _load_pattern_headings()), *plain]
    )
    before, after = (get_pattern(f"note.{side}").pattern for side in ("before", "after"))
    topic = get_pattern("attributes.favourite").pattern
    return re.compile(
        rf"(?:{before})(?:(?P<key>{nouns})|{topic})(?:{after})", re.IGNORECASE | re.MULTILINE
    )


def parse_labelled_notes(ctx: TurnContext) -> Iterator[RuleClaim]:
    """Parse labelled notes and blank them out in the text."""
    if get_pattern("note.likely").search(ctx.text) is None or get_pattern("note.not_mine").search(
        ctx.text
    ):
        return
    text = ctx.text
    matches = list(_build_heading_pattern().finditer(text))
    is_weak = (
        len(matches) == 1 and bool(matches[0]["key"]) and _find_heading(matches[0]["key"]).is_weak
    )
    for match, next_match in zip(matches, [*matches[1:], None], strict=bool(matches)):
        limit = len(text) if next_match is None else next_match.start()
        claims = (
            []
            if is_weak
            else list(_parse_labelled_note(ctx, match, _find_note_end(text, match.end(), limit)))
        )
        if claims:
            start, end = match.start(), max(claim.end for claim in claims)
            ctx.text = ctx.text[:start] + re.sub(r"\S", " ", text[start:end]) + ctx.text[end:]
            yield from claims


def parse_bullet_points(ctx: TurnContext) -> Iterator[RuleClaim]:
    """Parse bullet points about the speaker: "- vegan", "- two kids", "- live in Oslo"."""
    match = get_pattern("note.list").search(ctx.text) if "\n" in ctx.text else None
    if match is None:
        return
    referent = Referent(ctx.speaker, is_speaker=True)
    claims: list[RuleClaim] = []
    for point in get_pattern("note.point").finditer(ctx.text, *match.span("points")):
        start, end = point.span("point")
        if parse_subject(ctx.text, start, end, ctx.speaker, None) is None:
            claims += parse_notes(ctx, Clause(start, end, lead=start), referent, start)
    if match["head"] and get_pattern("note.trip").search(match["head"]):
        yield from _parse_trip_points(ctx, match)
    is_about_speaker = match["head"] and get_pattern("note.about_me").search(match["head"])
    if is_about_speaker or (not match["head"] and len({claim.predicate for claim in claims}) > 1):
        yield from (replace(claim, confidence=FRAGMENT_CONFIDENCE) for claim in claims)


def _parse_trip_points(ctx: TurnContext, match: re.Match[str]) -> Iterator[RuleClaim]:
    """Parse the bullet points of a trip as plans; dated ones are left to other rules."""
    for point in get_pattern("note.point").finditer(ctx.text, *match.span("points")):
        start, end = point.span("point")
        if get_pattern("note.going").fullmatch(point["point"]) and not find_time(
            ctx.text, start, end, ctx.speech_time
        ):
            value = trim_value(ctx.text, start, end, strip_article=False)
            text = f"{ctx.speaker} plans {to_third_person(value.text)}"
            yield RuleClaim(
                ctx.speaker,
                "plans",
                value.text,
                text,
                start,
                value.end,
                modality="planned",
                confidence=FRAGMENT_CONFIDENCE,
            )


def _find_note_end(text: str, start: int, limit: int) -> int:
    """Return the end of a note: of its line, or of the bullet points below it."""
    points_match = get_pattern("note.points").match(text, start, limit)
    if points_match is not None:
        return points_match.end()
    stop_match = get_pattern("note.stop").search(text, start, limit)
    if stop_match:
        return stop_match.start()
    rest = text[start:limit].rstrip(" \t|,/;-")
    return start + len(rest if "(" in rest else rest.rstrip(" )"))


def _parse_labelled_note(ctx: TurnContext, match: re.Match[str], end: int) -> Iterator[RuleClaim]:
    value_start = match.end()
    note_start = match.start() + len(match[0]) - len(match[0].lstrip(" \t\n.;|,\u2022-*"))
    if match["topic"]:
        values = list(_split_note_items(ctx.text, value_start, end))
        yield from (
            build_favourite(ctx.speaker, match["topic"].lower(), value, note_start, value.end)
            for value in values[:1]
        )
        return
    heading = _find_heading(match["key"])
    if match["said"] and heading.noun and heading.noun not in load_words("SPOKEN_HEADINGS"):
        return
    for claim in _parse_note_values(ctx, heading, value_start, end):
        yield replace(claim, start=note_start, confidence=FRAGMENT_CONFIDENCE)


def _parse_note_values(
    ctx: TurnContext, heading: _Heading, start: int, end: int
) -> Iterator[RuleClaim]:
    """Parse the values of a note by the type that its heading expects."""
    if get_pattern("note.none").match(ctx.text, start, end):
        return
    match heading.value_type:
        case "people":
            yield from _parse_people(ctx, heading, start, end)
        case "line":
            value = trim_value(ctx.text, start, end, strip_article=False)
            if 0 < len(value.text.split()) <= _MAX_LINE_WORDS:
                yield _build_note_claim(ctx, heading, value)
        case "things":
            for item in _split_note_items(ctx.text, start, end):
                yield (
                    _build_denial(ctx, item)
                    if _is_denied_item(heading, item)
                    else _build_note_claim(ctx, heading, item)
                )
        case "job":
            yield from _parse_job(ctx, heading, start, end)
        case _:
            single = _parse_single_value(ctx.text, heading.value_type, start, end)
            if single is not None and single.text:
                yield _build_note_claim(ctx, heading, single)


def _build_note_claim(ctx: TurnContext, heading: _Heading, value: ValueSpan) -> RuleClaim:
    shown = capitalise_name(value.text) if heading.value_type == "name" else value.text
    phrase = heading.phrase.replace("{a}", add_article(shown)).replace("{}", to_third_person(shown))
    text = (
        build_sentence(ctx.speaker, phrase)
        if phrase
        else f"{ctx.speaker}'s {heading.noun} is {to_third_person(shown)}"
    )
    return RuleClaim(ctx.speaker, heading.predicate, shown, text, value.start, value.end)


def _is_denied_item(heading: _Heading, item: ValueSpan) -> bool:
    return (
        heading.predicate in ("diet", "likes", "avoids")
        and get_pattern("note.no").match(item.text) is not None
    )


def _build_denial(ctx: TurnContext, item: ValueSpan) -> RuleClaim:
    """Build the claim for avoided food."""
    match = get_pattern("note.no").match(item.text)
    start = item.start + (match.end() if match else 0)
    value = ValueSpan(ctx.text[start : item.end], start, item.end)
    return RuleClaim(
        ctx.speaker,
        "avoids",
        value.text,
        f"{ctx.speaker} avoids {to_third_person(value.text)}",
        start,
        item.end,
    )


def _parse_job(ctx: TurnContext, heading: _Heading, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse a job with its employer, or take its first item as the job."""
    value = trim_value(ctx.text, start, end)
    verb = ParsedVerb("be", VerbFeatures(), value.start, value.start)
    clause = Clause(value.start, value.end, lead=value.start)
    rule_claims = [
        claim
        for claim in apply_verb_rules(ctx, clause, Referent(ctx.speaker, is_speaker=True), verb)
        if claim.predicate != "name"
    ]
    if rule_claims:
        yield from rule_claims
    elif item := next(_split_note_items(ctx.text, start, end), None):
        yield _build_note_claim(ctx, heading, item)


# People


def _parse_people(ctx: TurnContext, heading: _Heading, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse people in a note; a bare name has the previous relation: "sons Bram and Teun"."""
    last_relation = _singularise(heading.noun) or heading.predicate.removeprefix("has_")
    for item in _split_note_items(ctx.text, start, end, keep_brackets=True):
        if match := get_pattern("note.person").fullmatch(item.text):
            noun = (match["noun"] or match["sort"] or "").lower()
            last_relation = (
                _singularise(noun) if noun and heading.predicate == "any" else last_relation
            )
            yield from _parse_person(ctx, heading, item, match, noun or last_relation)


def _parse_person(
    ctx: TurnContext, heading: _Heading, item: ValueSpan, match: re.Match[str], relation: str
) -> Iterator[RuleClaim]:
    """Parse a named person or a count: "Tom (5)", "a cat named Luna", "two brothers"."""
    name = match["named"] or match["name"] or ""
    noun = (match["noun"] or match["sort"] or "").lower()
    if heading.predicate == "any":
        heading = replace(heading, predicate=get_relation_predicate(relation))
        relation = _singularise(relation)
    if name and is_name(name, require_known=not match["named"]):
        end = item.start + max(match.end("named"), match.end("name"))
        predicate = (
            heading.predicate if get_relation_predicate(relation) != heading.predicate else ""
        )
        claim = build_relation_claim(ctx.speaker, relation, capitalise_name(name), item.start, end)
        yield replace(claim, predicate=predicate) if predicate else claim
        yield from _parse_bracket(ctx, item, Referent(capitalise_name(name), relation=relation))
    elif noun or match["count"]:
        end = item.start + max(match.end("count"), match.end("noun"))
        value = item.text[: end - item.start]
        shown = (
            value
            if noun
            else f"{value} {heading.noun if heading.noun.endswith(('s', 'children')) else relation}"
        )
        text = f"{ctx.speaker} has {add_article(shown)}"
        yield RuleClaim(
            ctx.speaker,
            heading.predicate,
            value,
            text,
            item.start,
            end,
            meta={"relation": relation},
        )


def _parse_bracket(ctx: TurnContext, item: ValueSpan, referent: Referent) -> Iterator[RuleClaim]:
    """Parse the bracket after a name: "Lorna (lives in Oban)", "Struan (joiner)"."""
    match = get_pattern("note.bracket").search(ctx.text, item.start, item.end)
    if match is None:
        return
    start, end = match.span("note")
    verb = parse_verb(ctx.text, start, end) or ParsedVerb("be", VerbFeatures(), start, start)
    clause = Clause(start, end, lead=start)
    yield from (
        claim
        for claim in apply_verb_rules(ctx, clause, referent, verb)
        if claim.predicate != "name"
    )


def _singularise(noun: str) -> str:
    return {"children": "child", "kids": "child", "siblings": "sibling"}.get(
        noun, noun.removesuffix("s")
    )


# Values


def _split_note_items(
    text: str, position: int, end: int, *, keep_brackets: bool = False
) -> Iterator[ValueSpan]:
    """Split a note into items, dropping brackets unless `keep_brackets` is set."""
    count = 0
    cuts = [*get_pattern("note.comma").finditer(text, position, end), None]
    for cut in cuts:
        stop = end if cut is None else cut.start()
        if cut is not None and text.count("(", position, stop) > text.count(")", position, stop):
            continue
        bracket = text.find("(", position, stop)
        lead = get_pattern("note.lead").match(text, position, stop)
        start = lead.end() if lead and not keep_brackets else position
        item = trim_value(
            text,
            start,
            stop if keep_brackets or bracket <= position else bracket,
            strip_article=not keep_brackets,
        )
        if cut is not None:
            position = cut.end()
        if (
            item.text.lower() in load_words("EMPTY_VALUES")
            or not item.text
            or get_pattern("note.times").fullmatch(item.text)
        ):
            continue
        if (
            len(item.text.split()) > _MAX_ITEM_WORDS
            or count >= _MAX_ITEMS
            or get_pattern("note.own_sentence").match(item.text)
        ):
            return
        count += 1
        yield item


def _parse_single_value(text: str, value_type: str, start: int, end: int) -> ValueSpan | None:
    if value_type in _PATTERN_TYPES:
        match = get_pattern(f"value.{value_type}").match(text, start, end)
        return ValueSpan(match["value"], *match.span("value")) if match else None
    if value_type == "date":
        return match_day(text, start, end)
    bracket = text.find("(", start, end)
    value = trim_value(text, start, bracket if bracket > start else end)
    comma = value.text.find(",")
    if comma > 0 and value_type != "place":
        value = ValueSpan(value.text[:comma], value.start, value.start + comma)
    return (
        value
        if len(value.text.split()) <= _MAX_ITEM_WORDS and _is_note_value(value_type, value.text)
        else None
    )


def _is_note_value(value_type: str, value: str) -> bool:
    match value_type:
        case "name":
            return is_name(value)
        case "place":
            return is_place(value) or (value[:1].isupper() and len(value) < 40)
        case "love":
            return value.lower() in load_words("RELATIONSHIP_STATUSES")
        case "vp" | "long" | "whole" | "one" | "org" | "model" | "proper" | "thing":
            return bool(value) and not get_pattern("note.own_sentence").match(value)
    return bool(value)
