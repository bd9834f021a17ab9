"""Analyse a query with rules only: no model, well under a millisecond."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Final, TypeVar

from told.retrieval.date_disambiguation import QueryTime
from told.retrieval.query_time import find_times
from told.runtime import lazy_regex
from told.text import date_lexicon, lexicon
from told.text.dates import Interval
from told.text.tokens import detect_language

_T = TypeVar("_T")

# People ask at the ends of a long text, so only the two ends are analysed.
_END_CHARS: Final = 1_000


class AnswerSource(StrEnum):
    """The type of memory that holds the answer."""

    MEMORY = "memory"
    SKILL = "skill"
    RESOURCE = "resource"


class AnswerPurpose(StrEnum):
    """The purpose of the answer, in order of precedence; the last member is the default."""

    HISTORICAL_DECISIONS = "historical_decisions"
    OPEN_ITEMS = "open_items"
    REUSABLE_SKILLS = "reusable_skills"
    ENTITY_RELATIONS = "entity_relations"
    BACKGROUND_SUPPLEMENT = "background_supplement"


@dataclass(frozen=True, slots=True)
class QueryIntent:
    """The analysed query; properties used only by explanations are computed lazily.

    A span from "since", "before", "after" or "until" is open at its other end.
    """

    text: str
    answer_source: AnswerSource = AnswerSource.MEMORY
    spans: tuple[Interval, ...] = ()
    asks_when: bool = False
    asks_reply: bool = False
    asks_past: bool = False
    time_mentions: tuple[QueryTime, ...] = ()

    @property
    def purpose(self) -> AnswerPurpose:
        """Return the purpose of the answer."""
        return _detect_purpose(_normalise(self.text).strip().lower())

    @property
    def language(self) -> str:
        """Return the language code of the query, if detected."""
        return detect_language(_normalise(self.text))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names mentioned in the query."""
        return _dedupe(_iter_names(_normalise(self.text), self.language, self.time_mentions))


def analyse_query(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> QueryIntent:
    """Analyse a query; `now` resolves relative dates such as "last summer"."""
    normalised = _normalise(text)
    mentions = find_times(normalised, now=now, zone=zone)
    low = normalised.strip().lower()
    spans = _dedupe(mention.span for mention in mentions)
    asks_past = _is_about_past(normalised, mentions)
    return QueryIntent(
        text,
        _detect_source(low),
        spans,
        lexicon.WHEN_CUE.matches(low),
        lexicon.REPLY_CUE.matches(low),
        asks_past,
        mentions,
    )


def _normalise(text: str) -> str:
    """Return the analysed part of a text in NFC."""
    return unicodedata.normalize("NFC", _truncate_middle(text))


def _truncate_middle(text: str) -> str:
    return text if len(text) <= 2 * _END_CHARS else f"{text[:_END_CHARS]}\n{text[-_END_CHARS:]}"


def _dedupe(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


_SOURCE_CUES: Final = (
    (lexicon.SKILL_CUE, AnswerSource.SKILL),
    (lexicon.RESOURCE_CUE, AnswerSource.RESOURCE),
)
_PURPOSE_CUES: Final = (
    (lexicon.DECISION_CUE, AnswerPurpose.HISTORICAL_DECISIONS),
    (lexicon.OPEN_ITEM_CUE, AnswerPurpose.OPEN_ITEMS),
    (lexicon.PROCEDURE_CUE, AnswerPurpose.REUSABLE_SKILLS),
    (lexicon.RELATION_CUE, AnswerPurpose.ENTITY_RELATIONS),
)


def _detect_source(low: str) -> AnswerSource:
    return next((source for cue, source in _SOURCE_CUES if cue.matches(low)), AnswerSource.MEMORY)


def _detect_purpose(low: str) -> AnswerPurpose:
    return next(
        (purpose for cue, purpose in _PURPOSE_CUES if cue.matches(low)),
        AnswerPurpose.BACKGROUND_SUPPLEMENT,
    )


def _is_about_past(text: str, mentions: tuple[QueryTime, ...]) -> bool:
    """Return True if the query asks about a past state.

    Date expressions are masked: the "before" of "the week before 9 June" does not count.
    """
    for mention in mentions:
        text = text[: mention.start] + "~" * (mention.end - mention.start) + text[mention.end :]
    low = text.strip().lower()
    return lexicon.PAST_CUE.matches(low) and not lexicon.EVER_BEFORE_PATTERN.search(low)


# Names

_QUOTED_NAME: Final = lazy_regex(
    '"([^"\n]{1,120})"|“([^”\n]{1,120})”|„([^“”\n]{1,120})[“”]|«([^»\n]{1,120})»|「([^」\n]{1,120})」|『([^』\n]{1,120})』|'
    r"《([^》\n]{1,120})》|(?<![\w’])['‘]([^'’\n]{2,80})['’](?!\w)"
)
_WORD: Final = lazy_regex(r"[^\W\d_](?:\w|[-.&'’](?=\w)){0,63}\+{0,2}")
_NAME_LINK: Final = lazy_regex(
    " (?:(?:of|the|de|la|van|von|der|den|del|di|da|du|&|[0-9]{1,4}) ){0,2}"
)
_SENTENCE_END: Final = lazy_regex(r"(?:^|[.!?:;。！？¿¡\n])[\s\"'“‘(]*$")
_POSSESSIVE: Final = lazy_regex("['’]s?$")
_DERIVED: Final = lazy_regex("(?:ing|ed|ly|tion|ment|ness|able|ful)$")
_CALENDAR_WORDS: Final = frozenset(date_lexicon.CALENDAR_NAMES) - lexicon.GIVEN_NAMES


def _iter_names(text: str, lang: str, mentions: tuple[QueryTime, ...]) -> Iterator[str]:
    """Iterate over names in text order: quoted strings and runs of capitalised words."""
    quoted = [
        (m.start(), m.end(), next(filter(None, m.groups())).strip())
        for m in _QUOTED_NAME.finditer(text)
    ]
    excluded = [(start, end) for start, end, _ in quoted] + [
        (mention.start, mention.end) for mention in mentions
    ]
    names = [(start, name) for start, _, name in quoted if name]
    if not _is_all_caps(text):
        names += ((start, text[start:end]) for start, end in _find_name_runs(text, lang, excluded))
    return (name for _, name in sorted(names))


def _is_all_caps(text: str) -> bool:
    """Return True if the text is all capitals, which say nothing about names."""
    return text.isupper() and " " in text.strip()


def _find_name_runs(text: str, lang: str, excluded: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of probable names, joining neighbours and words linked by "of the"."""
    runs: list[tuple[int, int]] = []
    previous = ""
    for word in _WORD.finditer(text):
        if _looks_like_name(word, previous, lang) and not any(
            start <= word.start() < end for start, end in excluded
        ):
            start, end = word.start(), word.start() + len(_POSSESSIVE.sub("", word[0]))
            if runs and _NAME_LINK.fullmatch(text, runs[-1][1], start):
                start = runs.pop()[0]
            runs.append((start, end))
        previous = word[0]
    return runs


def _looks_like_name(word: re.Match[str], previous: str, lang: str) -> bool:
    """Return True if a word is capitalised and, where any word may be, not a common word."""
    if word[0].islower():
        return False
    name = _POSSESSIVE.sub("", word[0])
    if not any(map(str.isupper, name)):
        return False
    low = name.lower().replace("’", "'")
    opens_sentence = _SENTENCE_END.search(word.string[max(0, word.start() - 8) : word.start()])
    is_acronym = len(name) > 1 and name.isupper()
    is_common = (
        low in lexicon.COMMON_WORDS
        and (opens_sentence or low not in lexicon.NAME_PART_WORDS)
        and not (is_acronym and low in lexicon.ACRONYMS)
    )
    if (
        is_common
        or date_lexicon.fold_text(low) in _CALENDAR_WORDS
        or (opens_sentence and _DERIVED.search(name))
    ):
        return False
    return not (lang == "de" and name[1:].islower() and previous.lower() in lexicon.GERMAN_ARTICLES)
