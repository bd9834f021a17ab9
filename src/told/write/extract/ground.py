"""Grounded or quarantined: where in the turns a claim was said, if it was.

Numbers must be there exactly, names but for a letter or two, and at least half of all words in any form. A date may be
one that the speaker named by other words ("last Friday"). What an assistant said counts only where a user said yes to
it. What a tool or a document says is never put together with what a user said, nor taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from told.core import almanac
from told.core.entry import Claim
from told.core.lazy import regex
from told.core.text import normalise, sentences
from told.core.trust import Trust, channel
from told.write.extract.brief import spoken
from told.write.extract.words import Needle, Sort, Word, alike, initials, needles, words
from told.write.messages import Turn

HALF: Final = 0.5
WIDEST: Final = 3
"""How many sentences in a row one claim may be put together from."""
QUOTED: Final = 0.8
"""How much of a quotation must be there word for word."""

SPEAKER: Final = "User"
"""Whom claims are about where nothing gives a name."""

UNSPACED: Final = "\u0e00"
"""From here on most scripts are written without spaces, or with particles that cling to a word."""

_YES: Final = regex(
    r"\W*(?:yes|yeah|yep|yup|yea|right|correct|exactly|indeed|sure|absolutely|definitely|true|of course|that'?s right"
    r"|i do|i am|i did|ja|genau|stimmt|oui|si|s[ií]|claro|sim|da|да|はい|是)(?!\w)",
    re.IGNORECASE,
)
_GAP: Final = regex(r"\s*(?:\.\.\.|\u2026|\[\.\.\.\])\s*")


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
        self._tiers = _tiers(turns)
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
        """Where a value stands, first in what users said and last in what an assistant said; None if it is nowhere."""
        places = self._places(value, but=but, sentence=sentence)
        return next(places, None)

    def said(self, claim: Claim) -> Place | None:
        """Where the value of a claim stands: where the most of the claim does, of equals in what users said."""
        sought = _sought(claim)
        places = list(self._places(sought.value, but=sought.but, sentence=sought.whole))
        people = [place for place in places if spoken(self.turns[place.turn]) and not place.unconfirmed]
        if len(people) < 2:
            return next(iter(places), None)
        told = {needle.word.root for needle in needles(claim.text, but=_whom(claim))}
        return max(people, key=lambda place: len(told & self._roots(place)))

    def holds(self, claim: Claim, place: Place) -> bool:
        """Whether the sentences at a place hold the value of a claim, whoever said it."""
        value = _sought(claim)
        sought = needles(value.value, but=value.but, sentence=value.whole)
        return bool(sought) and self._fits(sought, self._holding(sought), self._at(place), place.turn)

    def quote(self, text: str) -> Place | None:
        """Where a quotation stands, as good as word for word; parts may be left out where it has an ellipsis."""
        parts = [part for part in _GAP.split(text) if words(part)]
        for number in (number for tier in self._tiers for number in tier):
            if span := _quoted(parts, self.turns[number].evidence.content):
                return self._confirmed(Place(number, span))
        return None

    def consents(self, place: Place) -> Place | None:
        """The assistant's turn that a turn says yes to, if it does."""
        before = place.turn - 1
        if before < 0 or spoken(self.turns[before]) or not self._agrees(place.turn):
            return None
        return Place(before, (0, len(self.turns[before].evidence.content)))

    def last(self) -> int:
        """The last turn of the least trusted, for it may be theirs; an assistant's only if nobody else spoke."""
        people = [tier for tier in self._tiers if spoken(self.turns[tier[-1]])]
        return people[-1][-1] if people else max(len(self.turns) - 1, 0)

    def _places(self, value: str, *, but: Collection[str], sentence: bool) -> Iterator[Place]:
        """Where a value stands, in the words of each that there is to trust in turn."""
        if not value.strip():
            return
        sought = needles(value, but=but, sentence=sentence)
        for tier in self._tiers:
            place = self._verbatim(value, tier) or self._window(sought, tier)
            if place is not None:
                yield self._confirmed(place)

    def _at(self, place: Place) -> set[int]:
        return {number for number, one in enumerate(self._sentences) if _overlap(one, place)}

    def _roots(self, place: Place) -> set[str]:
        return {word.root for number in self._at(place) for word in self._sentences[number].words}

    def _agrees(self, turn: int) -> bool:
        """Whether a turn is one in which a user says yes."""
        said = self.turns[turn].evidence
        return channel(said.role, said.sort) is Trust.USER and _YES.match(said.content) is not None

    def _confirmed(self, place: Place) -> Place:
        """An assistant's words become those of a user who says yes right after them; other words are what they are."""
        after = place.turn + 1
        if spoken(self.turns[place.turn]):
            return place
        if after < len(self.turns) and self._agrees(after):
            return Place(after, (0, len(self.turns[after].evidence.content)))
        return Place(place.turn, place.span, unconfirmed=True)

    def _verbatim(self, value: str, tier: Sequence[int]) -> Place | None:
        """The sentence that has the value letter for letter, which also finds it in scripts without spaces."""
        plain = normalise(value)
        if len(plain) < 2 and plain < UNSPACED:
            return None
        edges = (r"(?<!\w)" if plain[0].isascii() else "", r"(?!\w)" if plain[-1].isascii() else "")
        pattern = re.compile(f"{edges[0]}{re.escape(plain)}{edges[1]}")
        among = frozenset(tier)
        for one in self._sentences:
            if one.turn in among and pattern.search(one.plain):
                return Place(one.turn, (one.start, one.end))
        return None

    def _window(self, sought: list[Needle], tier: Sequence[int]) -> Place | None:
        """The fewest sentences in a row that hold it; failing that, the best one if the turns hold it together."""
        held, among = self._holding(sought), frozenset(tier)
        best: tuple[float, int, Place] | None = None
        for begin in sorted(set().union(*held)):
            turn = self._sentences[begin].turn
            if turn not in among:
                continue
            for end in range(begin + 1, min(begin + WIDEST, len(self._sentences)) + 1):
                if self._sentences[end - 1].turn != turn:
                    break
                window = set(range(begin, end))
                score = sum(not window.isdisjoint(places) for places in held)
                if self._fits(sought, held, window, turn) and (best is None or (score, begin - end) > best[:2]):
                    place = Place(turn, (self._sentences[begin].start, self._sentences[end - 1].end))
                    best = (score, begin - end, place)
        return best[2] if best else self._scattered(sought, held, tier) if spoken(self.turns[tier[0]]) else None

    def _scattered(self, sought: list[Needle], held: list[set[int]], tier: Sequence[int]) -> Place | None:
        """The sentence with most of it, where all of it was said, but not in one place."""
        among = frozenset(tier)
        everything = {number for number, one in enumerate(self._sentences) if one.turn in among}
        if not self._fits(sought, held, everything, *tier):
            return None
        number = max(everything, key=lambda one: (sum(one in places for places in held), one))
        one = self._sentences[number]
        return Place(one.turn, (one.start, one.end))

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


@dataclass(frozen=True, slots=True)
class _Sought:
    """What is looked for of a claim: its object, or all it says but whom it is about."""

    value: str
    but: frozenset[str]
    whole: bool


def _sought(claim: Claim) -> _Sought:
    if claim.object is not None:
        return _Sought(claim.object, frozenset(), whole=False)
    return _Sought(claim.text, _whom(claim), whole=True)


def _whom(claim: Claim) -> frozenset[str]:
    """The words for whom a claim is about."""
    return frozenset(word.form for word in words(f"{SPEAKER} {claim.subject or ''}"))


def _tiers(turns: Sequence[Turn]) -> list[Sequence[int]]:
    """The turns by how far their sources are trusted, the farthest first; assistants, who only give context, last."""
    tiers: dict[tuple[bool, Trust], list[int]] = {}
    for number, turn in enumerate(turns):
        key = spoken(turn), channel(turn.evidence.role, turn.evidence.sort)
        tiers.setdefault(key, []).append(number)
    return [tiers[key] for key in sorted(tiers, reverse=True)]


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
