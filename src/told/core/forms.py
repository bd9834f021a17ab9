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

from told.core.almanac import FIGURES, FORMS, SLOTS
from told.core.lazy import regex

_Place: TypeAlias = tuple[str, int, int]
_Step: TypeAlias = str | re.Pattern[str]


class Fit(NamedTuple):
    """Where a shape fits a text, what is said in each of its slots, "" where nothing is, and where that begins."""

    start: int
    end: int
    words: str
    said: Mapping[str, str]
    starts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Shape:
    """A template as slots and the patterns between them, and the words and figures without which it fits no text."""

    steps: tuple[_Step, ...]
    needs: tuple[str, ...]
    is_counted: bool

    @classmethod
    def of(cls, template: str) -> Shape:
        """A template over the slots, for plain texts."""
        filled = _SLOT.sub(_figures, template)
        steps = [part if number % 2 else _pattern(part) for number, part in enumerate(_SLOT.split(filled)) if part]
        needs = _NEEDED.findall(_OPEN.sub(" ", template))
        return cls(tuple(steps), tuple(needs), r"\d" in _OPTION.sub("", filled))

    def fit(self, text: str, start: int = 0, *, whole: bool = False) -> Fit | None:
        """Where it fits a text from a place on; as a whole, all that the text has from there."""
        if not self.can_fit(text) or not (found := _walk(self.steps, text, start, whole, ())):
            return None
        end, places = found
        said = {slot.partition("_")[0]: text[first:last] for slot, first, last in places}
        return Fit(start, end, text[start:end], said, {slot: first for slot, first, _ in places})

    def can_fit(self, text: str) -> bool:
        """Whether a text has what the template cannot do without."""
        has_words = not self.needs or all(map(text.__contains__, self.needs))
        return has_words and (not self.is_counted or _has_figures(text))

    def can_begin(self, letter: str) -> bool:
        """Whether what it fits may begin with a letter, as far as its first slot tells."""
        first = self.steps[0]
        return first not in SLOTS or letter in _words(str(first)) or (letter in _DIGITS and first in FIGURES)


def _walk(
    steps: tuple[_Step, ...], text: str, at: int, whole: bool, places: tuple[_Place, ...]
) -> tuple[int, tuple[_Place, ...]] | None:
    """Where the last of the steps ends if they fit from here on, and where the slots are filled."""
    if not steps:
        return None if whole and at < len(text) else (at, places)
    step, later = steps[0], steps[1:]
    if isinstance(step, str):
        for end in _ends(step, text, at):
            if found := _walk(later, text, end, whole, (*places, (step, at, end))):
                return found
        return None
    match = step.match(text, at) if later or not whole else step.fullmatch(text, at)
    if match is None:
        return None
    groups = ((name, *match.span(name)) for name in step.groupindex) if step.groups else ()
    return _walk(later, text, match.end(), whole, (*places, *groups))


# ---------------------------------------------------------------------------------------------------------------- slots


@lru_cache(maxsize=256)
def _ends(slot: str, text: str, at: int) -> Sequence[int]:
    """Where what fills a slot from here on may end, the longest word first; the rest is as short as it can be."""
    if slot == "rest":
        return range(at + 1, len(text) + 1)
    first = text[at : at + 1]
    figures = (_pattern(figures).match(text, at) for figures in FIGURES.get(slot, ()) if first in _DIGITS)
    words = (at + len(word) for word in _words(slot).get(first, ()) if text.startswith(word, at))
    return *(match.end() for match in figures if match), *words


@cache
def _words(slot: str) -> Mapping[str, Sequence[str]]:
    """The words of a slot by their first letter, the longest first."""
    found: dict[str, list[str]] = {}
    for word in sorted(SLOTS[slot], key=len, reverse=True):
        found.setdefault(word[0], []).append(word)
    return found


def _figures(slot: re.Match[str]) -> str:
    """What a slot that only figures fill is in a pattern."""
    return slot[0] if slot[1] in SLOTS or slot[1] == "rest" else f"(?P<{slot[1]}>{'|'.join(FIGURES[slot[1]])})"


@lru_cache(maxsize=64)
def _has_figures(text: str) -> bool:
    return not _DIGITS.isdisjoint(text)


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return regex(source, re.ASCII)


_DIGITS: Final = frozenset("0123456789")
_SLOT: Final = re.compile(r"\{([a-z_]+)\}")
_GROUP: Final = r"\((?:[^()]|\([^()]*\))*\)"
_OPTION: Final = re.compile(rf"{_GROUP}\?")
# What of a template may be left out or stands for several words: groups, classes, slots, and a character with a "?".
_OPEN: Final = re.compile(rf"{_GROUP}|\[[^]]*\]|\{{[^}}]*\}}|.\?")
_NEEDED: Final = re.compile(r"[a-z]{2,}|[^\x00-\x7f]")


# ---------------------------------------------------------------------------------------------------------------- forms


class Rule(NamedTuple):
    """A form and one of the shapes it is said in."""

    form: str
    shape: Shape


@cache
def rules() -> tuple[Rule, ...]:
    """The forms as rules, in the order in which they are tried."""
    return tuple(Rule(form, Shape.of(template)) for form, templates in FORMS.items() for template in templates)


@lru_cache(maxsize=256)
def rules_for(letter: str) -> tuple[Rule, ...]:
    """The rules of which something may begin with a letter."""
    return tuple(rule for rule in rules() if rule.shape.can_begin(letter))


def fits(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Every form that fits a plain text entirely, with what was said in its slots."""
    for form, shape in rules_for(text[:1]):
        if fit := shape.fit(text, whole=True):
            yield form, fit.said
