"""The almanac's forms fitted to a text: words are looked up in their tables, and only what stands between is compiled.

A slot is tried with its longest word first. What stands between two slots is taken as far as it goes and never given
back, so no word of a table begins with what a template may leave out before it. In a template, words that may stand for
one another are in a group, and a slot that words may fill is in none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias

from told.core.almanac import DATE_FORMS, SLOT_DIGITS, SLOT_WORDS
from told.core.lazy import lazy_regex

_SlotSpan: TypeAlias = tuple[str, int, int]
_TemplateStep: TypeAlias = str | re.Pattern[str]


class DateMatch(NamedTuple):
    """Where a shape fits a text, what is said in each of its slots, "" where nothing is, and where that begins."""

    start: int
    end: int
    text: str
    slots: Mapping[str, str]
    slot_starts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DateTemplate:
    """A template as slots and the patterns between them, and the words and figures without which it fits no text."""

    steps: tuple[_TemplateStep, ...]
    required_words: tuple[str, ...]
    needs_digits: bool

    @classmethod
    def from_template(cls, template: str) -> DateTemplate:
        """A template over the slots, for plain texts."""
        expanded = _SLOT_PATTERN.sub(_expand_digit_slot, template)
        steps = [
            part if index % 2 else _compile_pattern(part)
            for index, part in enumerate(_SLOT_PATTERN.split(expanded))
            if part
        ]
        required_words = _REQUIRED_WORD.findall(_VARIABLE_PART.sub(" ", template))
        return cls(tuple(steps), tuple(required_words), r"\d" in _OPTIONAL_GROUP.sub("", expanded))

    def match(self, text: str, start: int = 0, *, full: bool = False) -> DateMatch | None:
        """Where it fits a text from a place on; as a whole, all that the text has from there."""
        if not self.can_match(text) or not (
            matched := _match_steps(self.steps, text, start, full, ())
        ):
            return None
        end, spans = matched
        slots = {slot.partition("_")[0]: text[first:last] for slot, first, last in spans}
        return DateMatch(
            start, end, text[start:end], slots, {slot: first for slot, first, _ in spans}
        )

    def can_match(self, text: str) -> bool:
        """Whether a text has what the template cannot do without."""
        has_words = not self.required_words or all(map(text.__contains__, self.required_words))
        return has_words and (not self.needs_digits or _has_digits(text))

    def can_start_with(self, letter: str) -> bool:
        """Whether what it fits may begin with a letter, as far as its first slot tells."""
        first = self.steps[0]
        return (
            first not in SLOT_WORDS
            or letter in _slot_words_by_letter(str(first))
            or (letter in _DIGIT_CHARS and first in SLOT_DIGITS)
        )


def _match_steps(
    steps: tuple[_TemplateStep, ...],
    text: str,
    position: int,
    full: bool,
    spans: tuple[_SlotSpan, ...],
) -> tuple[int, tuple[_SlotSpan, ...]] | None:
    """Where the last of the steps ends if they fit from here on, and where the slots are filled."""
    if not steps:
        return None if full and position < len(text) else (position, spans)
    step, remaining_steps = steps[0], steps[1:]
    if isinstance(step, str):
        for end in _slot_ends(step, text, position):
            if matched := _match_steps(
                remaining_steps, text, end, full, (*spans, (step, position, end))
            ):
                return matched
        return None
    match = (
        step.match(text, position)
        if remaining_steps or not full
        else step.fullmatch(text, position)
    )
    if match is None:
        return None
    groups = ((name, *match.span(name)) for name in step.groupindex) if step.groups else ()
    return _match_steps(remaining_steps, text, match.end(), full, (*spans, *groups))


# ---------------------------------------------------------------------------------------------------------------- slots


@lru_cache(maxsize=256)
def _slot_ends(slot: str, text: str, position: int) -> Sequence[int]:
    """Where what fills a slot from here on may end, the longest word first; the rest is as short as it can be."""
    if slot == "rest":
        return range(position + 1, len(text) + 1)
    first = text[position : position + 1]
    figures = (
        _compile_pattern(figures).match(text, position)
        for figures in SLOT_DIGITS.get(slot, ())
        if first in _DIGIT_CHARS
    )
    words = (
        position + len(word)
        for word in _slot_words_by_letter(slot).get(first, ())
        if text.startswith(word, position)
    )
    return *(match.end() for match in figures if match), *words


@cache
def _slot_words_by_letter(slot: str) -> Mapping[str, Sequence[str]]:
    """The words of a slot by their first letter, the longest first."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(SLOT_WORDS[slot], key=len, reverse=True):
        by_letter.setdefault(word[0], []).append(word)
    return by_letter


def _expand_digit_slot(slot: re.Match[str]) -> str:
    """What a slot that only figures fill is in a pattern."""
    return (
        slot[0]
        if slot[1] in SLOT_WORDS or slot[1] == "rest"
        else f"(?P<{slot[1]}>{'|'.join(SLOT_DIGITS[slot[1]])})"
    )


@lru_cache(maxsize=64)
def _has_digits(text: str) -> bool:
    return not _DIGIT_CHARS.isdisjoint(text)


@cache
def _compile_pattern(source: str) -> re.Pattern[str]:
    return lazy_regex(source, re.ASCII)


_DIGIT_CHARS: Final = frozenset("0123456789")
_SLOT_PATTERN: Final = re.compile(r"\{([a-z_]+)\}")
_GROUP_PATTERN: Final = r"\((?:[^()]|\([^()]*\))*\)"
_OPTIONAL_GROUP: Final = re.compile(rf"{_GROUP_PATTERN}\?")
# What of a template may be left out or stands for several words: groups, classes, slots, and a character with a "?".
_VARIABLE_PART: Final = re.compile(rf"{_GROUP_PATTERN}|\[[^]]*\]|\{{[^}}]*\}}|.\?")
_REQUIRED_WORD: Final = re.compile(r"[a-z]{2,}|[^\x00-\x7f]")


# ---------------------------------------------------------------------------------------------------------------- forms


class DateRule(NamedTuple):
    """A form and one of the shapes it is said in."""

    form: str
    template: DateTemplate


@cache
def list_date_rules() -> tuple[DateRule, ...]:
    """The forms as rules, in the order in which they are tried."""
    return tuple(
        DateRule(form, DateTemplate.from_template(template))
        for form, templates in DATE_FORMS.items()
        for template in templates
    )


@lru_cache(maxsize=256)
def date_rules_for(letter: str) -> tuple[DateRule, ...]:
    """The rules of which something may begin with a letter."""
    return tuple(rule for rule in list_date_rules() if rule.template.can_start_with(letter))


def match_date_forms(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Every form that fits a plain text entirely, with what was said in its slots."""
    for form, template in date_rules_for(text[:1]):
        if date_match := template.match(text, full=True):
            yield form, date_match.slots
