"""Whether two texts say the same thing in almost the same words.

Vectors cannot tell: a small model finds "I like cats" and "I like dogs" nearly alike. So two texts are the same only if
the same words stand in the same order once case, articles and filler are gone; a part may move from the front
to the end ("In 2020 I moved" and "I moved in 2020"), and the members of a list at either edge may change places. A
number, a name, a "not", a tense or a question mark more or less makes another text. When in doubt they are two.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from told.core.lazy import regex
from told.core.text import STOP_WORDS
from told.core.tongue import language

_EMPTY: Final = {
    "en": """a an the really very quite just actually basically simply honestly definitely certainly oh please also
        indeed truly absolutely literally totally btw that anyway yes yeah hey hi hello""",
    "de": """der die das den dem des ein eine einen einem einer eines wirklich sehr eigentlich halt ja doch mal auch
        also ach bitte übrigens nämlich natürlich dass""",
    "es": "el la los las un una unos unas realmente muy simplemente pues también ya que verdaderamente oye",
    "fr": "le la les un une des vraiment très assez simplement alors aussi voilà donc franchement que",
}
"""Words that change nothing of what is said, by language."""

_NUMBERS: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
}
_LEAST_TURNED, _MOST_TURNED = 4, 64
"""Who turns fewer words round ("Ben calls", "calls Ben") says something else; who turns more, probably too."""

_VITAMINS: Final = frozenset("A")
"""An article that names something where it is written as a capital inside a sentence."""

_LISTED: Final = frozenset("and und y e et or oder o u ou".split())
_SHORT: Final = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
_IS: Final = frozenset("he she it that there what who where here how this everything everyone".split())
_CANNOT: Final = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "shan't": "shall not",
    "ain't": "is not",
}

# Everything but signs that mean something beside a word or a number: currencies, %, +, #, &, @, a minus.
_GAP: Final = regex(
    r"[\s!\"()*,./:;<=>?\[\\\]^_`{|}~\u00a1\u00ab\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3000-\u3004\u3008-\u3020"
    r"\u30fb\uff01-\uff0f\uff1a-\uff20\uff5e\ufe0f]+"
)
_DECIMAL: Final = regex(r"(?<=\d)[.,:/](?=\d)")
_THOUSANDS: Final = regex(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN: Final = regex(r"(?<=\w)-(?=\w)|(?<!\S)-+(?!\d)|-(?!\w)")
_QUOTES: Final = str.maketrans("\u2018\u2019\u02bc\u201c\u201d", "'''\"\"")
_ASKS: Final = regex("[?\uff1f\u061f]")
_POINT: Final = "\ue000"
"""Stands for a point inside a number, so that 3.5 does not fall apart."""


@dataclass(frozen=True, slots=True)
class Content:
    """The words of a text that matter, in their plainest form and in order; which are one, which many; if it asks."""

    words: tuple[str, ...]
    one: frozenset[str]
    many: frozenset[str]
    asks: bool


def same_content(a: str, b: str) -> bool:
    """Whether two texts say the same, up to filler words and the order of their parts."""
    first, second = content(a), content(b)
    if not first.words or first.asks != second.asks or first.one & second.many or first.many & second.one:
        return False
    return first.words == second.words or _rotated(first.words, second.words)


def _rotated(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one begins in the middle of the other, goes round, and ends where it began."""
    if len(a) != len(b) or not _LEAST_TURNED <= len(a) <= _MOST_TURNED or sorted(a) != sorted(b):
        return False
    return any(a[start:] + a[:start] == b for start in range(1, len(a)))


@lru_cache(maxsize=1 << 12)
def content(text: str) -> Content:
    """What of a text matters when it is compared with another."""
    tongue = language(text)
    empty, numbers = _empty(tongue), _numbers(tongue)
    english, shouted = tongue == "en" or (not tongue and text.isascii()), text.isupper()
    tokens = _tokens(text)
    names = _VITAMINS.intersection(tokens[1:]) | {token for token in tokens if _is_initials(token)}
    spelt = ([token] if token in names and not shouted else _words(token, english=english) for token in tokens)
    words = [word for found in spelt for word in found]
    kept = [numbers.get(word, word) for word in words if word not in empty]
    pairs = [(token, _bare(token.casefold(), english=True)) for token in tokens] if english else []
    articled = {word for (before, _), (_, word) in pairwise(pairs) if before.casefold() in ("a", "an", "one")}
    named = {word for token, word in pairs[1:] if token[:1].isupper() and not shouted}
    many = {word for token, word in pairs if token.casefold().endswith("s") and not word.endswith("s")}
    return Content(
        tuple(_listed(kept)), frozenset(articled | named) - many, frozenset(many), _ASKS.search(text) is not None
    )


def _tokens(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    whole = _DECIMAL.sub(_POINT, _THOUSANDS.sub("", plain))
    return [token for token in _GAP.sub(" ", _HYPHEN.sub(" ", whole)).split() if token.strip("'")]


def _is_initials(token: str) -> bool:
    """Whether a stop-word in capitals names something, as in "the US"."""
    return len(token) > 1 and token.isupper() and token.lower() in STOP_WORDS


def _words(token: str, *, english: bool) -> list[str]:
    """The words of one token: contractions are taken apart, and of English words accents and plurals taken off."""
    low = token.casefold().strip("'")
    if low in _CANNOT:
        return _CANNOT[low].split()
    if low.endswith("n't"):
        return [_bare(low[:-3], english=english), "not"]
    head, mark, tail = low.rpartition("'")
    if mark and f"'{tail}" in _SHORT:
        return [head, _SHORT[f"'{tail}"]]
    if mark and tail == "s":
        return [head, "is"] if head in _IS else [_bare(head, english=english), "'s"]
    return [_bare(low, english=english)]


def _bare(word: str, *, english: bool) -> str:
    """An English word without accents and plural and in one spelling; elsewhere an accent makes another word."""
    if not english:
        return word
    if not word.isascii():
        apart = unicodedata.normalize("NFD", word)
        word = "".join(char for char in apart if not unicodedata.combining(char))
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return _SPELLING.sub("or", word)


_SPELLING: Final = regex(r"(?<=[a-z]{3})our(?=$|ite|able|ed|ful)")


def _listed(words: list[str]) -> list[str]:
    """The words with the members of a list at either edge in alphabetical order, single words only."""
    end = _run(words)
    words = _sorted(words[:end]) + words[end:]
    start = len(words) - _run(words[::-1])
    return words[:start] + _sorted(words[start:])


def _run(words: list[str]) -> int:
    """How far a list reaches from the beginning: word, "and", word, "and", word, and so on."""
    end = 1
    while end + 1 < len(words) and words[end] in _LISTED and words[end + 1] not in _LISTED:
        end += 2
    return end if end > 1 else 0


def _sorted(run: list[str]) -> list[str]:
    run[::2] = sorted(run[::2])
    return run


@lru_cache(maxsize=32)
def _empty(tongue: str) -> frozenset[str]:
    return frozenset(_EMPTY.get(tongue, "").split())


@lru_cache(maxsize=32)
def _numbers(tongue: str) -> dict[str, str]:
    words = _NUMBERS.get(tongue, "").split()
    return {word: str(number) for number, word in enumerate(words) if word != "_"}


# ---------------------------------------------------------------------------------------------- words that need a day

_DEICTIC: Final = regex(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|now|currently|ago|recently|lately|just|right now|at the moment"
    r"|(?:this|last|next) (?:morning|afternoon|evening|night|week|weekend|month|year|summer|winter|spring|autumn|fall"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|heute|gestern|morgen|jetzt|gerade|neulich|vorhin|(?:letzte|n\u00e4chste|diese)[nrsm]? \w+"
    r"|hoy|ayer|ma\u00f1ana|ahora|anoche|hace|pasad[oa]|pr\u00f3xim[oa]"
    r"|aujourd'hui|hier|demain|maintenant|derni[e\u00e8]re?|prochaine?)\b"
    r"|\u4eca\u5929|\u6628\u5929|\u660e\u5929|\u73b0\u5728|\u4eca\u65e5|\u6628\u65e5|\u660e\u65e5|\u4eca|\u5148\u9031|\u6765\u9031"
)


def is_deictic(text: str) -> bool:
    """Whether a text says "today" or the like, so that what it means depends on the day it was said."""
    return _DEICTIC.search(text) is not None
