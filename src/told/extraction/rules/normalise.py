"""Correct spelling and idioms before parsing, keeping a mapping to the original text.

Claims are parsed from the corrected text; their spans and objects refer to the original.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from told.extraction.rules.lexicon import (
    expand_macros,
    get_pattern,
    load_relatives,
    load_sections,
    load_words,
)
from told.runtime import cached_property, lazy_regex

_PUNCTUATION_TABLE: Final = str.maketrans("\u2018\u2019\u02bc`\u00a0\u2009\t", "''''   ")
_MASKED_PATTERNS: Final = (
    "fenced",
    "inline",
    "quoted_line",
    "address",
    "task",
    "role_play",
    "fiction",
)
MAX_TURN_CHARS: Final = 6000
"""Maximum number of characters of a turn that are read."""


def mask_foreign_text(text: str) -> str:
    """Blank out quotes, code and other text that is not the speaker's, keeping the length."""
    text = text[:MAX_TURN_CHARS]
    for name in _MASKED_PATTERNS:
        text = get_pattern(f"clean.{name}").sub(_blank_match, text)
    text = get_pattern("clean.quotation").sub(_blank_quoted_speech, text)
    if "\n" in text:
        text = get_pattern("clean.code_line").sub(_blank_match, text)
    text = text.translate(_PUNCTUATION_TABLE)
    return get_pattern("clean.to_typo").sub("to ", text)


def strip_colons(text: str) -> str:
    """Remove colons that only lead on: "I like: tea" becomes "I like tea"."""
    return get_pattern("clean.colon").sub(" ", text) if ":" in text else text


def _blank_match(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def _blank_quoted_speech(match: re.Match[str]) -> str:
    """Blank out quoted speech; a quoted name only loses its quotes."""
    inner = match[0][1:-1]
    if len(inner.split()) > 4 or get_pattern("clean.first_person").search(inner):
        return _blank_match(match)
    return f" {inner} "


_MIN_LENGTH: Final = 5
"""Minimum length of a word for typo correction; the shortest only allow transpositions."""
_MIN_VERB_LENGTH: Final = 8
_WORD_LISTS: Final = ("DIETS", "LANGUAGES", "OCCUPATIONS", "CONDITIONS", "STATES")


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """A rewritten text and the spans of its changes, in itself and in the original."""

    text: str
    original: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    source_spans: tuple[tuple[int, int], ...] = ()

    def to_source_start(self, position: int) -> int:
        """Map a start position to the original text."""
        return self._to_source(position, 0)

    def to_source_end(self, position: int) -> int:
        """Map an end position to the original text."""
        return self._to_source(position - 1, 1) if position else 0

    def _to_source(self, position: int, side: int) -> int:
        number = bisect_right(self.starts, position) - 1
        if number < 0:
            return position + side
        if position < self.ends[number]:
            return self.source_spans[number][side]
        return position - self.ends[number] + self.source_spans[number][1] + side

    def restore_wording(self, value: str, start: int, end: int) -> str:
        """Restore the original wording of a value."""
        if not self.starts or value.lower() in self.original[start:end].lower():
            return value
        for first, last, source in zip(self.starts, self.ends, self.source_spans, strict=True):
            if start <= source[0] < end and not self.text[first].isspace():
                value = re.sub(
                    rf"\b{re.escape(self.text[first:last])}\b",
                    self.original[slice(*source)],
                    value,
                    count=1,
                )
        return value


def correct_spelling(text: str, *, fix_words: bool = True) -> RewrittenText:
    """Collapse gaps and correct misspelled words; `fix_words` is off for foreign texts."""
    matches = get_pattern("spelling.word" if fix_words else "spelling.gap").finditer(text)
    pairs = (
        (match, match[0][0] if match[0].isspace() else _correct_word(match[0])) for match in matches
    )
    return apply_changes(
        text, [(*match.span(), replacement) for match, replacement in pairs if replacement]
    )


def apply_changes(text: str, changes: Sequence[tuple[int, int, str]]) -> RewrittenText:
    """Apply (start, end, replacement) changes to a text."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = length = 0
    for start, end, replacement in changes:
        parts += [text[position:start], replacement]
        starts.append(length + start - position)
        ends.append(starts[-1] + len(replacement))
        position, length = end, ends[-1]
    sources = tuple((start, end) for start, end, _ in changes)
    return RewrittenText(
        "".join([*parts, text[position:]]), text, tuple(starts), tuple(ends), sources
    )


@lru_cache(maxsize=8192)
def _correct_word(word: str) -> str:
    """Return the corrected word, or "" if it needs no correction."""
    lowered = word.lower()
    corrected = _load_short_forms().get(lowered) or (
        _find_intended_word(lowered) if len(lowered) >= _MIN_LENGTH else ""
    )
    if not corrected and (possessive := get_pattern("spelling.possessive").fullmatch(lowered)):
        corrected = f"{possessive['owner']}'s {possessive['noun']}"
    elif not corrected and (owner_match := get_pattern("spelling.whose").fullmatch(lowered)):
        corrected = f"{owner_match['owner']}'s"
    return (
        f"{corrected[0].upper()}{corrected[1:]}" if corrected and word[0].isupper() else corrected
    )


@cache
def _load_short_forms() -> Mapping[str, str]:
    rows = (row.split() for row in load_sections("spelling.txt")["short"])
    return {word: expansion.replace("_", " ") for word, expansion in rows}


@cache
def _load_known_words() -> tuple[frozenset[str], Mapping[str, tuple[str, ...]]]:
    """Return the correct words and the correction targets by first letter and length."""
    table = load_sections("spelling.txt")
    targets = {word for row in table["known"] for word in row.split()}
    verbs = {
        form
        for row in load_sections("verbs.txt")["verbs"]
        for form in row.split()
        if len(form) >= _MIN_VERB_LENGTH
    }
    nouns = {word for name in _WORD_LISTS for word in load_words(name)} | set(load_relatives())
    targets |= verbs | {word for word in nouns if len(word) > _MIN_LENGTH + 1 and word.isalpha()}
    by_letter: dict[str, list[str]] = defaultdict(list)
    for word in sorted(targets):
        if len(word) >= _MIN_LENGTH:
            by_letter[f"{word[0]}{len(word)}"].append(word)
    correct_words = targets.union(*(row.split() for row in table["real"]))
    return frozenset(correct_words), {
        key: tuple(candidates) for key, candidates in by_letter.items()
    }


def _find_intended_word(word: str) -> str:
    correct_words, targets = _load_known_words()
    if word in correct_words or not word.isalpha():
        return ""
    keys = (f"{word[0]}{len(word) + offset}" for offset in (0, 1, -1))
    return next(
        (target for key in keys for target in targets.get(key, ()) if _is_typo(word, target)), ""
    )


def _is_typo(word: str, target: str) -> bool:
    """Return True if two words differ by one inner edit or transposition."""
    if word[-1] != target[-1]:
        return False
    shorter_length = min(len(word), len(target))
    prefix = next((i for i in range(shorter_length) if word[i] != target[i]), shorter_length)
    suffix = next(
        (i for i in range(shorter_length - prefix) if word[-1 - i] != target[-1 - i]),
        shorter_length - prefix,
    )
    if not suffix:
        return False
    if prefix + suffix >= max(len(word), len(target)) - 1 and len(target) > _MIN_LENGTH:
        return True
    is_swapped = word[prefix : prefix + 2] == target[prefix : prefix + 2][::-1]
    return is_swapped and len(word) == len(target) == prefix + suffix + 2


_SLOT: Final = lazy_regex(r"\{([xyn])\}")
_SLOT_PATTERNS: Final = {"x": "idioms.thing", "y": "idioms.thing", "n": "idioms.name"}


@dataclass(frozen=True)
class _Idiom:
    """An idiom and its replacement in plain words."""

    template: str
    replacement: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the compiled pattern."""
        slots = _SLOT.sub(lambda slot: f"(?P<{slot[1]}><{_SLOT_PATTERNS[slot[1]]}>)", self.template)
        return re.compile(expand_macros(rf"(?<!\w){slots}(?!\w)"), re.IGNORECASE)

    def find_changes(self, text: str) -> list[tuple[int, int, str]]:
        """Return the changes for all occurrences in a text."""
        return [(*match.span(), self._render(match)) for match in self.pattern.finditer(text)]

    def _render(self, match: re.Match[str]) -> str:
        return _SLOT.sub(lambda slot: match[slot[1]], self.replacement)


@cache
def _load_idioms() -> Mapping[str, tuple[_Idiom, ...]]:
    """Index the idioms by their trigger words."""
    table: dict[str, list[_Idiom]] = defaultdict(list)
    for section, lead in (("before", ""), ("behind", "(?:<idioms.lead>)")):
        for row in load_sections("idioms.txt")[section]:
            keys, _, rest = row.partition(" | ")
            template, _, replacement = rest.partition(" => ")
            for key in keys.split() if rest else ():
                table[key].append(_Idiom(f"{lead}{template}", replacement))
    return {key: tuple(idioms) for key, idioms in table.items()}


def rewrite_idioms(text: str) -> RewrittenText:
    """Replace idioms by plain words."""
    table = _load_idioms()
    text_words = set(get_pattern("idioms.word").findall(text.lower()))
    candidates = dict.fromkeys(idiom for key in text_words & table.keys() for idiom in table[key])
    changes: list[tuple[int, int, str]] = []
    for change in sorted(
        candidate_change for idiom in candidates for candidate_change in idiom.find_changes(text)
    ):
        if not changes or change[0] >= changes[-1][1]:
            changes.append(change)
    return apply_changes(text, changes) if changes else RewrittenText(text, text)
