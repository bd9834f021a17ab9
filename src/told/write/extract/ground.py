"""Grounded or quarantined: where in the turns a claim was said, if it was.

Numbers must be there exactly, names but for a letter or two, and at least half of all words in any form. A date may be
one that the speaker named by other words ("last Friday"). What an assistant said counts only where somebody said yes to
it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from told.core import almanac
from told.core.text import normalise, sentences
from told.write.extract.brief import spoken
from told.write.extract.words import Needle, Sort, Word, alike, initials, needles, words
from told.write.messages import Turn

HALF: Final = 0.5
WIDEST: Final = 3
"""How many sentences in a row one claim may be put together from."""
QUOTED: Final = 0.8
"""How much of a quotation must be there word for word."""

UNSPACED: Final = "\u0e00"
"""From here on most scripts are written without spaces, or with particles that cling to a word."""

_YES: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|yea|right|correct|exactly|indeed|sure|absolutely|definitely|true|of course|that'?s right"
    r"|i do|i am|i did|ja|genau|stimmt|oui|si|s[ií]|claro|sim|da|да|はい|是)(?!\w)",
    re.IGNORECASE,
)
_GAP: Final = re.compile(r"\s*(?:\.\.\.|\u2026|\[\.\.\.\])\s*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was said: the turn, the part of its content, and whether only an assistant said so."""

    turn: int
    span: tuple[int, int]
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class _Sentence:
    turn: int
    start: int
    end: int
    plain: str
    words: tuple[Word, ...]


class Ground:
    """What was said, ready to be looked up."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self._sentences = [one for number, turn in enumerate(turns) for one in _cut(number, turn.evidence.content)]
        self._timed = [almanac.time_words(turn.evidence.content, 1) > 0 for turn in turns]
        self._forms: dict[str, set[int]] = {}
        self._numbers: dict[str, set[int]] = {}
        self._letters: dict[str, dict[str, Word]] = {}
        self._spelt: dict[tuple[str, Sort], set[int]] = {}
        for number, sentence in enumerate(self._sentences):
            for word in sentence.words:
                self._forms.setdefault(word.form, set()).add(number)
                self._letters.setdefault(word.form[0], {}).setdefault(word.form, word)
                if word.value is not None:
                    self._numbers.setdefault(word.value, set()).add(number)

    def find(self, value: str, *, but: Collection[str] = (), sentence: bool = False) -> Place | None:
        """Where a value stands, what people said before what an assistant said; None if it is nowhere."""
        if not value.strip():
            return None
        sought = needles(value, but=but, sentence=sentence)
        for people in (True, False):
            place = self._verbatim(value, people) or self._window(sought, people)
            if place is not None:
                return place if people else self._confirmed(place)
        return None

    def quote(self, text: str) -> Place | None:
        """Where a quotation stands, as good as word for word; parts may be left out where it has an ellipsis."""
        parts = [part for part in _GAP.split(text) if words(part)]
        for people in (True, False):
            for number, turn in enumerate(self.turns):
                if spoken(turn) is people and (span := _quoted(parts, turn.evidence.content)):
                    place = Place(number, span)
                    return place if people else self._confirmed(place)
        return None

    def consents(self, place: Place) -> Place | None:
        """The assistant's turn that a turn says yes to, if it does."""
        before = place.turn - 1
        content = self.turns[place.turn].evidence.content
        if before < 0 or spoken(self.turns[before]) or not _YES.match(content):
            return None
        return Place(before, (0, len(self.turns[before].evidence.content)))

    def holds(self, value: str, place: Place, *, but: Collection[str] = (), sentence: bool = False) -> bool:
        """Whether the sentences at a place hold a value, whoever said it."""
        sought = needles(value, but=but, sentence=sentence)
        there = {number for number, one in enumerate(self._sentences) if _overlap(one, place)}
        return bool(sought) and self._fits(sought, self._holding(sought), there, place.turn)

    def last(self) -> int:
        """The last turn that somebody said who is no assistant; the last one if nobody did."""
        people = [number for number, turn in enumerate(self.turns) if spoken(turn)]
        return people[-1] if people else max(len(self.turns) - 1, 0)

    def _confirmed(self, place: Place) -> Place:
        """An assistant's words become those of whoever says yes right after them."""
        after = place.turn + 1
        if after < len(self.turns) and spoken(self.turns[after]) and _YES.match(self.turns[after].evidence.content):
            return Place(after, (0, len(self.turns[after].evidence.content)))
        return Place(place.turn, place.span, unconfirmed=True)

    def _verbatim(self, value: str, people: bool) -> Place | None:
        """The sentence that has the value letter for letter, which also finds it in scripts without spaces."""
        plain = normalise(value)
        if len(plain) < 2 and plain < UNSPACED:
            return None
        edges = (r"(?<!\w)" if plain[0].isascii() else "", r"(?!\w)" if plain[-1].isascii() else "")
        pattern = re.compile(f"{edges[0]}{re.escape(plain)}{edges[1]}")
        for one in self._sentences:
            if spoken(self.turns[one.turn]) is people and pattern.search(one.plain):
                return Place(one.turn, (one.start, one.end))
        return None

    def _window(self, sought: list[Needle], people: bool) -> Place | None:
        """The fewest sentences in a row that hold it; failing that, the best one if the turns hold it together."""
        held = self._holding(sought)
        best: tuple[float, int, Place] | None = None
        for begin in sorted(set().union(*held)):
            turn = self._sentences[begin].turn
            if spoken(self.turns[turn]) is not people:
                continue
            for end in range(begin + 1, min(begin + WIDEST, len(self._sentences)) + 1):
                if self._sentences[end - 1].turn != turn:
                    break
                window = set(range(begin, end))
                score = sum(not window.isdisjoint(places) for places in held)
                if self._fits(sought, held, window, turn) and (best is None or (score, begin - end) > best[:2]):
                    place = Place(turn, (self._sentences[begin].start, self._sentences[end - 1].end))
                    best = (score, begin - end, place)
        return best[2] if best else self._scattered(sought, held) if people else None

    def _scattered(self, sought: list[Needle], held: list[set[int]]) -> Place | None:
        """The sentence with most of it, where people said it all, but not in one place."""
        numbers = [number for number, turn in enumerate(self.turns) if spoken(turn)]
        everything = self._of(numbers)
        if not numbers or not self._fits(sought, held, everything, *numbers):
            return None
        number = max(everything, key=lambda one: (sum(one in places for places in held), one))
        one = self._sentences[number]
        return Place(one.turn, (one.start, one.end))

    def _of(self, turns: Collection[int]) -> set[int]:
        return {number for number, one in enumerate(self._sentences) if one.turn in turns}

    def _fits(self, sought: list[Needle], held: list[set[int]], window: set[int], *turns: int) -> bool:
        """Whether sentences hold all numbers, dates and names, and at least half of what is no number."""
        timed = any(self._timed[turn] for turn in turns)
        there = [
            not window.isdisjoint(places) or (needle.sort is Sort.DATE and timed)
            for needle, places in zip(sought, held, strict=True)
        ]
        if not all(found or needle.sort is Sort.WORD for needle, found in zip(sought, there, strict=True)):
            return False
        telling = [found for needle, found in zip(sought, there, strict=True) if needle.sort in (Sort.WORD, Sort.NAME)]
        return any(telling or there) and sum(telling) >= HALF * len(telling)

    def _holding(self, sought: list[Needle]) -> list[set[int]]:
        """For every needle the sentences that hold it; other spellings count where the word itself is nowhere."""
        short = initials(sought)
        return [
            self._forms.get(one.word.form) or self._alike(one) or self._forms.get(brief, set())
            for one, brief in zip(sought, short, strict=True)
        ]

    def _alike(self, needle: Needle) -> set[int]:
        """The sentences that hold the same number, or a word like it; the first two letters may be swapped at most."""
        if needle.word.value is not None:
            return self._numbers.get(needle.word.value, set())
        form = needle.word.form
        key = (form, needle.sort)
        if key not in self._spelt:
            near = (self._letters.get(letter, {}) for letter in dict.fromkeys(form[:2]))
            forms = (other for words in near for other, word in words.items() if alike(needle, word))
            self._spelt[key] = self._inside(form).union(*(self._forms[other] for other in forms))
        return self._spelt[key]


    def _inside(self, form: str) -> set[int]:
        """The sentences that have a word of a script without spaces somewhere in a longer run."""
        if form < UNSPACED:
            return set()
        return {number for number, one in enumerate(self._sentences) if form in almanac.plain(one.plain)}


def _overlap(one: _Sentence, place: Place) -> bool:
    return one.turn == place.turn and one.start < place.span[1] and place.span[0] < one.end


def _cut(turn: int, content: str) -> list[_Sentence]:
    """The sentences of a turn with their places and words."""
    found: list[_Sentence] = []
    position = 0
    for sentence in sentences(content):
        start = content.index(sentence, position)
        position = start + len(sentence)
        found.append(_Sentence(turn, start, position, normalise(sentence), tuple(words(sentence))))
    return found


def _quoted(parts: Sequence[str], content: str) -> tuple[int, int] | None:
    """From where to where a text holds all parts of a quotation, in order."""
    said = words(content)
    spans: list[tuple[int, int]] = []
    for part in parts:
        span = _aligned([Needle(word, Sort.NAME) for word in words(part)], said)
        if span is None:
            return None
        spans.append(span)
    if not spans or any(later[0] < earlier[0] for earlier, later in pairwise(spans)):
        return None
    return spans[0][0], spans[-1][1]


def _aligned(sought: list[Needle], said: list[Word]) -> tuple[int, int] | None:
    """Where words follow each other as sought, with at most one in five another one."""
    best, place = 0, None
    for begin in range(max(len(said) - len(sought), 0) + 1):
        run = said[begin : begin + len(sought)]
        same = sum(alike(needle, word) for needle, word in zip(sought, run, strict=False))
        if same > best and same >= QUOTED * len(sought):
            best, place = same, (run[0].start, run[-1].end)
    return place
