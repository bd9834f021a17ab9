"""What a query asks for, as far as its words tell: rules only, no model, well under a millisecond."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Final, TypeVar

from told.core import almanac, beside, cues
from told.core.lazy import regex
from told.core.tongue import language
from told.core.value import quick
from told.core.when import Interval
from told.read.sentence import Time
from told.read.timing import times

_T = TypeVar("_T")

# Of a longer text only the two ends are looked at: that is where people ask.
_EACH_END: Final = 1_000


class Sort(StrEnum):
    """Where the answer is kept."""

    MEMORY = "memory"
    SKILL = "skill"
    RESOURCE = "resource"


class Intent(StrEnum):
    """What the answer is for; the first that fits wins, the last is meant when none does."""

    HISTORICAL_DECISIONS = "historical_decisions"
    OPEN_ITEMS = "open_items"
    REUSABLE_SKILLS = "reusable_skills"
    ENTITY_RELATIONS = "entity_relations"
    BACKGROUND_SUPPLEMENT = "background_supplement"


@quick
@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks for, as far as its words tell; what only explains an answer is found when somebody wants it.

    A span that begins or ends with "since", "before", "after" or "until" is open on the other side.
    """

    text: str
    sort: Sort = Sort.MEMORY
    spans: tuple[Interval, ...] = ()
    asks_when: bool = False
    asks_reply: bool = False
    asks_past: bool = False
    said: tuple[Time, ...] = ()

    @property
    def intent(self) -> Intent:
        """What the answer is for."""
        return _intent(_composed(self.text).strip().lower())

    @property
    def language(self) -> str:
        """The code of its language, if it tells."""
        return language(_composed(self.text))

    @property
    def names(self) -> tuple[str, ...]:
        """Whom or what it names."""
        return _distinct(_names(_composed(self.text), self.language, self.said))


def asked(text: str, *, now: datetime, zone: str | tzinfo | None = None) -> Asked:
    """What the text asks for at a time; `now` decides what "last summer" is."""
    seen = _composed(text)
    said = times(seen, now=now, zone=zone)
    low = seen.strip().lower()
    spans = _distinct(time.span for time in said)
    past = _asks_past(seen, said)
    return Asked(text, _sort(low), spans, cues.WHEN.is_in(low), cues.REPLY.is_in(low), past, said)


def _composed(text: str) -> str:
    """As much of a text as is looked at, in composed letters (NFC)."""
    return unicodedata.normalize("NFC", _ends(text))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _EACH_END else f"{text[:_EACH_END]}\n{text[-_EACH_END:]}"


def _distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


_SORTS: Final = ((cues.SKILL, Sort.SKILL), (cues.RESOURCE, Sort.RESOURCE))
_INTENTS: Final = (
    (cues.DECISIONS, Intent.HISTORICAL_DECISIONS),
    (cues.OPEN_ITEMS, Intent.OPEN_ITEMS),
    (cues.SKILLS, Intent.REUSABLE_SKILLS),
    (cues.RELATIONS, Intent.ENTITY_RELATIONS),
)


def _sort(low: str) -> Sort:
    return next((sort for cue, sort in _SORTS if cue.is_in(low)), Sort.MEMORY)


def _intent(low: str) -> Intent:
    return next((intent for cue, intent in _INTENTS if cue.is_in(low)), Intent.BACKGROUND_SUPPLEMENT)


def _asks_past(text: str, said: tuple[Time, ...]) -> bool:
    """Whether it asks how things were; the "before" of "the week before 9 June" does not count."""
    for time in said:
        text = text[: time.start] + "~" * (time.end - time.start) + text[time.end :]
    low = text.strip().lower()
    return cues.PAST.is_in(low) and not cues.EVER.search(low)


# ---------------------------------------------------------------------------------------------------------------- names

_QUOTED: Final = regex(
    '"([^"\n]{1,120})"|“([^”\n]{1,120})”|„([^“”\n]{1,120})[“”]|«([^»\n]{1,120})»|「([^」\n]{1,120})」|『([^』\n]{1,120})』|'
    r"《([^》\n]{1,120})》|(?<![\w’])['‘]([^'’\n]{2,80})['’](?!\w)"
)
_WORD: Final = regex(r"[^\W\d_](?:\w|[-.&'’](?=\w)){0,63}\+{0,2}")
_LINK: Final = regex(" (?:(?:of|the|de|la|van|von|der|den|del|di|da|du|&|[0-9]{1,4}) ){0,2}")
_SENTENCE_END: Final = regex(r"(?:^|[.!?:;。！？¿¡\n])[\s\"'“‘(]*$")
_POSSESSIVE: Final = regex("['’]s?$")
_DERIVED: Final = regex("(?:ing|ed|ly|tion|ment|ness|able|ful)$")
_CALENDAR: Final = frozenset(almanac.NAMES) - beside.GIVEN_NAMES


def _names(text: str, tongue: str, said: tuple[Time, ...]) -> Iterator[str]:
    """Names in the order of the text: what is quoted, and runs of words that are written as names are."""
    quoted = [(m.start(), m.end(), next(filter(None, m.groups())).strip()) for m in _QUOTED.finditer(text)]
    taken = [(start, end) for start, end, _ in quoted] + [(time.start, time.end) for time in said]
    found = [(start, name) for start, _, name in quoted if name]
    if not _shouts(text):
        found += ((start, text[start:end]) for start, end in _runs(text, tongue, taken))
    return (name for _, name in sorted(found))


def _shouts(text: str) -> bool:
    """Whether it is all in capitals, which tell nothing then."""
    return text.isupper() and " " in text.strip()


def _runs(text: str, tongue: str, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where words that may be names stand; neighbours are one name, and so are those that an "of the" links."""
    runs: list[tuple[int, int]] = []
    before = ""
    for word in _WORD.finditer(text):
        if _may_name(word, before, tongue) and not any(start <= word.start() < end for start, end in taken):
            start, end = word.start(), word.start() + len(_POSSESSIVE.sub("", word[0]))
            if runs and _LINK.fullmatch(text, runs[-1][1], start):
                start = runs.pop()[0]
            runs.append((start, end))
        before = word[0]
    return runs


def _may_name(word: re.Match[str], before: str, tongue: str) -> bool:
    """Whether a word is written as a name is and, where any word may have a capital, is no common one."""
    if word[0].islower():
        return False
    name = _POSSESSIVE.sub("", word[0])
    if not any(map(str.isupper, name)):
        return False
    low = name.lower().replace("’", "'")
    opens = _SENTENCE_END.search(word.string[max(0, word.start() - 8) : word.start()])
    is_acronym = len(name) > 1 and name.isupper()
    is_common = low in cues.COMMON and (opens or low not in cues.NAMED) and not (is_acronym and low in cues.ACRONYMS)
    if is_common or almanac.plain(low) in _CALENDAR or (opens and _DERIVED.search(name)):
        return False
    return not (tongue == "de" and name[1:].islower() and before.lower() in cues.ARTICLES)
