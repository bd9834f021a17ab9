"""Parse the slot values of a rule and render its phrase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from told.extraction.rules.claim import add_article, match_day, to_third_person
from told.extraction.rules.grammar import (
    VALUE_CHECKS,
    ParsedVerb,
    ValueSpan,
    capitalise_name,
    find_value_end,
    is_trade,
    split_items,
    trim_value,
)
from told.extraction.rules.lexicon import VerbRule, get_pattern, load_words

_LIST_SLOTS: Final = {"things": "thing", "places": "place", "jobs": "job"}
_SLOT_TYPES: Final = {"other": "thing", "old": "thing"}
_CUT_PATTERNS: Final = {
    "place": "place",
    "org": "org",
    "job": "job",
    "name": "name",
    "known": "name",
}
_MAX_WORDS: Final = 12


def parse_slot_values(
    text: str, slot: str, match: re.Match[str], verb: ParsedVerb, rule: VerbRule
) -> list[ValueSpan]:
    """Return the values of a slot, or [] if they have the wrong type."""
    start, end = match.span(slot)
    if slot == "verb":
        return _parse_verb_phrase(
            text,
            verb,
            match.end(),
            keep_whole=rule.predicate == "habit" and not rule.pattern.endswith(".*"),
        )
    if slot == "date":
        day = match_day(text, start, end)
        return [day] if day else []
    stop = find_value_end(text, start, end)
    if rule.predicate in ("uses", "project_uses"):
        used_spans = _find_used_spans(text, start, stop)
        if slot == "things":
            return [
                value
                for span in used_spans
                for value in _parse_list_items(text, *span, end, "thing")
            ]
        stop = used_spans[0][1]
    if slot in _LIST_SLOTS:
        return _parse_list_items(text, start, stop, end, _LIST_SLOTS[slot])
    is_literal = rule.has_literal_slot(slot)
    stop = stop if is_literal and slot == "known" else _find_cut(text, start, stop, slot)
    value = trim_value(text, start, stop, strip_article=not is_literal)
    is_valid = (is_literal and slot == "thing") or VALUE_CHECKS[_SLOT_TYPES.get(slot, slot)](
        value.text
    )
    return (
        [value] if value.text and (is_valid or (slot == "job" and _is_trade(text, value))) else []
    )


def _find_used_spans(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the spans of the things used, each cut off before its purpose."""
    joints = [*get_pattern("slots.used_with").finditer(text, start, stop)]
    starts = [start, *(joint.end() for joint in joints if not _is_first_name(text, joint.end()))]
    cuts = (get_pattern("slots.purpose").search(text, position, stop) for position in starts)
    return [
        (position, cut.start() if cut else stop) for position, cut in zip(starts, cuts, strict=True)
    ]


def _is_first_name(text: str, position: int) -> bool:
    return re.split(r"\W", text[position:], maxsplit=1)[0].lower() in load_words("FIRST_NAMES")


def _parse_verb_phrase(
    text: str, verb: ParsedVerb, end: int, *, keep_whole: bool = False
) -> list[ValueSpan]:
    """Return the verb with its complement as a value."""
    stop = (
        end
        if keep_whole
        else max(find_value_end(text, verb.complement_start, end), verb.complement_start)
    )
    if not text[verb.complement_start : stop].strip():
        stop = end
    value = trim_value(text, verb.word_start, stop, strip_article=False)
    return [value] if len(value.text.split()) <= _MAX_WORDS else []


def _parse_list_items(
    text: str, start: int, stop: int, end: int, value_type: str
) -> list[ValueSpan]:
    """Return the list items up to the first invalid one.

    "sharing what I know" does not yield "sharing".
    """
    list_items = list(split_items(text, start, stop))
    if value_type in _CUT_PATTERNS:
        list_items = [
            trim_value(text, item.start, _find_cut(text, item.start, item.end, value_type))
            for item in list_items
        ]
    if (
        list_items
        and stop < end
        and re.fullmatch(r"\w+ing", list_items[-1].text)
        and get_pattern("slots.that").match(text, stop)
    ):
        list_items.pop()
    if list_items and stop < end and get_pattern("slots.not_at_all").match(text, stop):
        list_items.pop()
    validity = (
        VALUE_CHECKS[value_type](item.text) or (value_type == "job" and _is_trade(text, item))
        for item in list_items
    )
    first_invalid = next(
        (number for number, is_valid in enumerate(validity) if not is_valid), len(list_items)
    )
    return list_items[:first_invalid]


def _is_trade(text: str, value: ValueSpan) -> bool:
    """Return True if a value ends like an occupation and follows an article: "an upholsterer"."""
    return (
        is_trade(value.text)
        and get_pattern("slots.as_a").search(text, max(0, value.start - 12), value.start)
        is not None
    )


def _find_cut(text: str, start: int, end: int, slot: str) -> int:
    """Return where a value of this type ends."""
    if slot == "whole":
        return end
    match = get_pattern(f"slots.cut_{_CUT_PATTERNS.get(slot, 'thing')}").search(text, start, end)
    return match.start() if match and match.start() > start else end


def parse_place(text: str, start: int, end: int) -> ValueSpan:
    """Return the place at a position."""
    return trim_value(
        text, start, _find_cut(text, start, find_value_end(text, start, end), "place")
    )


def fill_phrase(phrase: str, values: Mapping[str, ValueSpan], verb: ParsedVerb) -> str:
    """Fill the values into a phrase.

    {a_thing} adds an article and {the_thing} a possessive.
    """
    if "vp" in values and re.match(r"\w+ing\b", values["vp"].text):
        phrase = phrase.replace("plan to {vp}", "plan on {vp}")

    def render_slot(slot: re.Match[str]) -> str:
        name = slot[1]
        if name in values:
            return _render_value(name, values[name].text, verb, phrase)
        kind, _, base = name.partition("_")
        value = to_third_person(values[base].text)
        return add_article(value) if kind == "a" else f"their {value}"

    return re.sub(r"\{(\w+)\}", render_slot, phrase)


def _render_value(slot: str, value: str, verb: ParsedVerb, phrase: str) -> str:
    if slot in ("name", "known"):
        return capitalise_name(value)
    if slot in ("job", "jobs"):
        return add_article(value)
    if slot == "verb" and not phrase.startswith("=") and not phrase.startswith("be "):
        return to_third_person(f"{verb.lemma} {value.partition(' ')[2]}".strip())
    return to_third_person(value)
