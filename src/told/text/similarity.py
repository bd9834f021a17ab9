"""Whether two texts say the same thing in almost the same words.

Vectors cannot tell: a small model finds "I like cats" and "I like dogs" nearly alike. So two texts are the same only if
the same words stand in the same order once case, articles and filler are gone; a part may move from the front
to the end ("In 2020 I moved" and "I moved in 2020"), and the members of a list at either edge may change places. A
number, a name, a "not", a tense or a question mark more or less makes another text. When in doubt they are two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Final

from told.runtime import lazy_regex
from told.text.tokens import STOP_WORDS, detect_language, stem_word

_TOKEN: Final = lazy_regex(r"[^\W_]+(?:[-'.@&][^\W_]+)*(?:\+\+|#)?|[,;:(]")
_WORD: Final = lazy_regex(r"[^\W_]+(?:['.-][^\W_]+)*")
_DIGIT: Final = lazy_regex(r"\d")
_DIGIT_RUN: Final = lazy_regex(r"\d+")
_ARTICLES: Final = frozenset("a an the my his her their our your its".split())
_BREAK: Final = ","
_BREAKS: Final = frozenset(",;:(")
_CONTINUATIONS: Final = frozenset(
    (
        _BREAK,
        *"named called with who that which in at from for of as on and since because when near by".split(),
    )
)
"""Words after which somebody says more about what they have just said."""
_OTHER_ITEM_WORDS: Final = frozenset(
    "another second third other new next more also too two three four".split()
)
"""Words that speak of something beside what was spoken of before."""
SLUG_EDIT_LIMIT: Final = 2
SLUG_SIMILARITY: Final = 0.9


class WordingRelation(Enum):
    """What a new wording is to an old one."""

    SAME = "same"
    MORE = "more"
    LESS = "less"
    OTHER = "other"


@lru_cache(maxsize=1 << 13)
def _comparison_tokens(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    tokens = [_BREAK if token in _BREAKS else token for token in _TOKEN.findall(folded)]
    content_tokens = [token.removesuffix("'s") for token in tokens if token not in _ARTICLES]
    while content_tokens and content_tokens[-1] == _BREAK:
        content_tokens.pop()
    return tuple(content_tokens or tokens)


@lru_cache(maxsize=1 << 13)
def stem_words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: folded, stemmed, without articles."""
    return tuple(stem_word(token) for token in _comparison_tokens(text) if token != _BREAK)


def is_same_text(left: str, right: str) -> bool:
    """Whether two texts differ in nothing but case, articles, endings and punctuation."""
    return stem_words(left) == stem_words(right)


def compare_wordings(new: str, old: str, *, loose: bool = False) -> WordingRelation:
    """What a new value is to an old one.

    It says more if it goes on where the old one ends: "a dog" and "a dog named Rex", but not "coffee" and "coffee ice
    cream". Loosely, it is enough that it has all the words of the old one, unless it speaks of another.
    """
    if is_same_text(new, old):
        return WordingRelation.SAME
    if is_elaboration(old, new) or (loose and _is_word_subset(old, new)):
        return WordingRelation.MORE
    if is_elaboration(new, old) or (loose and _is_word_subset(new, old)):
        return WordingRelation.LESS
    return WordingRelation.OTHER


def is_elaboration(short: str, long: str) -> bool:
    """Whether a longer wording begins with a shorter one and says more about it."""
    short_words = stem_words(short)
    if not short_words or stem_words(long)[: len(short_words)] != short_words:
        return False
    short_tokens, long_tokens = _comparison_tokens(short), _comparison_tokens(long)
    return (
        len(long_tokens) > len(short_tokens)
        and long_tokens[len(short_tokens)] in _CONTINUATIONS
        and not _OTHER_ITEM_WORDS & set(long_tokens[len(short_tokens) :])
    )


def _is_word_subset(short: str, long: str) -> bool:
    short_words, long_words = set(stem_words(short)), set(stem_words(long))
    return (
        bool(short_words)
        and short_words < long_words
        and not _OTHER_ITEM_WORDS & (set(_comparison_tokens(long)) - set(_comparison_tokens(short)))
    )


def has_extra_words(new: str, old: str) -> bool:
    """Whether a text has all the words of another and some of its own."""
    return set(stem_words(old)) < set(stem_words(new))


def extract_names(text: str) -> frozenset[str]:
    """The names and figures of a text: its words with a capital letter, but for the first, and those with a digit."""
    tokens = _WORD.findall(text)
    significant = [word for word in tokens[1:] if word[0].isupper()] + [
        word for word in tokens if _DIGIT.search(word)
    ]
    return frozenset(stem_word(word.casefold().removesuffix("'s")) for word in significant)


# Names --------------------------------------------------------------------------------------------------------------


def edit_distance(left: Sequence[str], right: Sequence[str], limit: int = 1 << 30) -> int:
    """How many characters have to be added, left out or changed to make one of the other; no count beyond `most`."""
    if abs(len(left) - len(right)) >= limit:
        return limit
    row = list(range(len(right) + 1))
    for row_number, left_char in enumerate(left, 1):
        diagonal, row[0] = row[0], row_number
        for column, right_char in enumerate(right, 1):
            diagonal, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, diagonal + (left_char != right_char)),
            )
    return min(row[-1], limit)


def similarity_ratio(left: str, right: str) -> float:
    """How alike two names are, from 0 to 1, by the stretches of characters they share."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio() if left and right else 0.0


def are_similar_slugs(left: str, right: str) -> bool:
    """Whether two slugs are one topic: an edit apart at most, or more than nine tenths alike; figures must agree."""
    if left == right:
        return True
    if min(len(left), len(right)) < 4 or re.findall(r"\d+", left) != re.findall(r"\d+", right):
        return False
    return (
        edit_distance(left, right, SLUG_EDIT_LIMIT) < SLUG_EDIT_LIMIT
        or similarity_ratio(left, right) > SLUG_SIMILARITY
    )


# Values ---------------------------------------------------------------------------------------------------------------

_SPELLING_WEIGHT: Final = 0.95
"""What a likeness of letters counts, beside the same words, which count in full."""
_PARTIAL_WEIGHT: Final = 0.9
"""What a part counts, where one value says less than the other."""
_FIRST_LETTER_PENALTY: Final = 0.9
"""What a likeness counts where the first letters differ: impressionism is not expressionism."""
_MIN_PREFIX_LENGTH: Final = 5
"""How many letters the beginning of a word must have to stand for it."""
_MIN_LENGTH_RATIO: Final = 1.5
_NEGATIONS: Final = frozenset("not no non never without nor neither".split())


def value_similarity(left: str, right: str) -> float:
    """How much two values look like names of the same thing, from 0 to 1; from 0.8 on they probably are.

    Letters count (a slip, an ending), words in any order, and a part that stands for the whole: a surname, the word
    that another begins with. Values with other figures, or of which one denies, are never the same.
    """
    short, long = sorted(
        (_normalise_value(left), _normalise_value(right)), key=lambda value: (len(value), value)
    )
    if short == long or (short and is_same_text(left, right)):
        return 1.0 if short or left == right else 0.0
    if (
        not short
        or _DIGIT_RUN.findall(short) != _DIGIT_RUN.findall(long)
        or _is_negated(short) != _is_negated(long)
    ):
        return 0.0
    return max(_spelling_score(short, long), _word_score(short, long), _prefix_score(short, long))


def _normalise_value(text: str) -> str:
    return " ".join(token for token in _comparison_tokens(text) if token != _BREAK)


def _is_negated(value: str) -> bool:
    return not _NEGATIONS.isdisjoint(value.replace("-", " ").split())


def _spelling_score(short: str, long: str) -> float:
    """By the letters both have in the same order."""
    return (
        _SPELLING_WEIGHT
        * _lcs_ratio(short, long)
        * (1.0 if short[0] == long[0] else _FIRST_LETTER_PENALTY)
    )


def _word_score(short: str, long: str) -> float:
    """By their words: the same in another order, or all of one among those of the other."""
    short_words, long_words = set(stem_words(short)), set(stem_words(long))
    if short_words == long_words:
        return _SPELLING_WEIGHT
    return (
        _PARTIAL_WEIGHT
        if short_words
        and (short_words < long_words or long_words < short_words)
        and not _OTHER_ITEM_WORDS & {*short.split(), *long.split()}
        else 0.0
    )


def _prefix_score(short: str, long: str) -> float:
    """By the beginning that a single word shares with one of a much longer value."""
    if " " in short or len(long) < _MIN_LENGTH_RATIO * len(short):
        return 0.0
    shared = max(_common_prefix_length(short, word) for word in long.split())
    return (
        _PARTIAL_WEIGHT * 2 * shared / (len(short) + shared)
        if shared >= _MIN_PREFIX_LENGTH
        else 0.0
    )


def _common_prefix_length(left: str, right: str) -> int:
    """How many characters two words have in common from the first on."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )


def _lcs_ratio(left: str, right: str) -> float:
    """The share of both texts that is their longest common subsequence, a column of the table in each integer."""
    char_masks: dict[str, int] = {}
    for index, char in enumerate(left):
        char_masks[char] = char_masks.get(char, 0) | 1 << index
    unmatched = full = (1 << len(left)) - 1
    for char in right:
        matched = unmatched & char_masks.get(char, 0)
        unmatched = (unmatched + matched | unmatched - matched) & full
    return 2 * (len(left) - unmatched.bit_count()) / (len(left) + len(right))


_FILLER_WORDS: Final = {
    "en": """a an the really very quite just actually basically simply honestly definitely certainly oh please also
        indeed truly absolutely literally totally btw that anyway yes yeah hey hi hello""",
    "de": """der die das den dem des ein eine einen einem einer eines wirklich sehr eigentlich halt ja doch mal auch
        also ach bitte übrigens nämlich natürlich dass""",
    "es": "el la los las un una unos unas realmente muy simplemente pues también ya que verdaderamente oye",
    "fr": "le la les un une des vraiment très assez simplement alors aussi voilà donc franchement que",
}
"""Words that change nothing of what is said, by language."""

_NUMBER_WORDS: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
}
_MIN_ROTATED_WORDS, _MAX_ROTATED_WORDS = 4, 64
"""Who turns fewer words round ("Ben calls", "calls Ben") says something else; who turns more, probably too."""

_CAPITAL_ARTICLES: Final = frozenset("A")
"""An article that names something where it is written as a capital inside a sentence."""

_CONJUNCTIONS: Final = frozenset("and und y e et or oder o u ou".split())
_CONTRACTIONS: Final = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
_IS_CONTRACTION_HEADS: Final = frozenset(
    "he she it that there what who where here how this everything everyone".split()
)
_NEGATIVE_CONTRACTIONS: Final = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "shan't": "shall not",
    "ain't": "is not",
}

# Everything but signs that mean something beside a word or a number: currencies, %, +, #, &, @, a minus.
_PUNCTUATION: Final = lazy_regex(
    r"[\s!\"()*,./:;<=>?\[\\\]^_`{|}~\u00a1\u00ab\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e\u3000-\u3004\u3008-\u3020"
    r"\u30fb\uff01-\uff0f\uff1a-\uff20\uff5e\ufe0f]+"
)
_DECIMAL: Final = lazy_regex(r"(?<=\d)[.,:/](?=\d)")
_THOUSANDS: Final = lazy_regex(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN: Final = lazy_regex(r"(?<=\w)-(?=\w)|(?<!\S)-+(?!\d)|-(?!\w)")
_QUOTES: Final = str.maketrans("\u2018\u2019\u02bc\u201c\u201d", "'''\"\"")
_QUESTION_MARK: Final = lazy_regex("[?\uff1f\u061f]")
_DECIMAL_PLACEHOLDER: Final = "\ue000"
"""Stands for a point inside a number, so that 3.5 does not fall apart."""


@dataclass(frozen=True, slots=True)
class TextContent:
    """The words of a text that matter, in their plainest form and in order; which are one, which many; if it asks."""

    words: tuple[str, ...]
    singular: frozenset[str]
    plural: frozenset[str]
    is_question: bool


def has_same_content(a: str, b: str) -> bool:
    """Whether two texts say the same, up to filler words and the order of their parts."""
    first, second = extract_content(a), extract_content(b)
    if (
        not first.words
        or first.is_question != second.is_question
        or first.singular & second.plural
        or first.plural & second.singular
    ):
        return False
    return first.words == second.words or _is_rotation(first.words, second.words)


def _is_rotation(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one begins in the middle of the other, goes round, and ends where it began."""
    if (
        len(a) != len(b)
        or not _MIN_ROTATED_WORDS <= len(a) <= _MAX_ROTATED_WORDS
        or sorted(a) != sorted(b)
    ):
        return False
    return any(a[start:] + a[:start] == b for start in range(1, len(a)))


@lru_cache(maxsize=1 << 12)
def extract_content(text: str) -> TextContent:
    """What of a text matters when it is compared with another."""
    lang = detect_language(text)
    filler, numbers = _load_filler_words(lang), _load_number_words(lang)
    is_english, is_upper = lang == "en" or (not lang and text.isascii()), text.isupper()
    tokens = _tokenize_content(text)
    names = _CAPITAL_ARTICLES.intersection(tokens[1:]) | {
        token for token in tokens if _is_initials(token)
    }
    expanded = (
        [token]
        if token in names and not is_upper
        else _expand_content_token(token, english=is_english)
        for token in tokens
    )
    words = [word for token_words in expanded for word in token_words]
    kept = [numbers.get(word, word) for word in words if word not in filler]
    pairs = (
        [(token, _normalise_word(token.casefold(), english=True)) for token in tokens]
        if is_english
        else []
    )
    with_article = {
        word
        for (before, _), (_, word) in pairwise(pairs)
        if before.casefold() in ("a", "an", "one")
    }
    capitalised = {word for token, word in pairs[1:] if token[:1].isupper() and not is_upper}
    plural = {
        word for token, word in pairs if token.casefold().endswith("s") and not word.endswith("s")
    }
    return TextContent(
        tuple(_sort_edge_lists(kept)),
        frozenset(with_article | capitalised) - plural,
        frozenset(plural),
        _QUESTION_MARK.search(text) is not None,
    )


def _tokenize_content(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    joined = _DECIMAL.sub(_DECIMAL_PLACEHOLDER, _THOUSANDS.sub("", plain))
    return [
        token
        for token in _PUNCTUATION.sub(" ", _HYPHEN.sub(" ", joined)).split()
        if token.strip("'")
    ]


def _is_initials(token: str) -> bool:
    """Whether a stop-word in capitals names something, as in "the US"."""
    return len(token) > 1 and token.isupper() and token.lower() in STOP_WORDS


def _expand_content_token(token: str, *, english: bool) -> list[str]:
    """The words of one token: contractions are taken apart, and of English words accents and plurals taken off."""
    lowered = token.casefold().strip("'")
    if lowered in _NEGATIVE_CONTRACTIONS:
        return _NEGATIVE_CONTRACTIONS[lowered].split()
    if lowered.endswith("n't"):
        return [_normalise_word(lowered[:-3], english=english), "not"]
    head, mark, tail = lowered.rpartition("'")
    if mark and f"'{tail}" in _CONTRACTIONS:
        return [head, _CONTRACTIONS[f"'{tail}"]]
    if mark and tail == "s":
        return (
            [head, "is"]
            if head in _IS_CONTRACTION_HEADS
            else [_normalise_word(head, english=english), "'s"]
        )
    return [_normalise_word(lowered, english=english)]


def _normalise_word(word: str, *, english: bool) -> str:
    """An English word without accents and plural and in one spelling; elsewhere an accent makes another word."""
    if not english:
        return word
    if not word.isascii():
        decomposed = unicodedata.normalize("NFD", word)
        word = "".join(char for char in decomposed if not unicodedata.combining(char))
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    return _BRITISH_SPELLING.sub("or", word)


_BRITISH_SPELLING: Final = lazy_regex(r"(?<=[a-z]{3})our(?=$|ite|able|ed|ful)")


def _sort_edge_lists(words: list[str]) -> list[str]:
    """The words with the members of a list at either edge in alphabetical order, single words only."""
    end = _measure_list_prefix(words)
    words = _sort_list_members(words[:end]) + words[end:]
    start = len(words) - _measure_list_prefix(words[::-1])
    return words[:start] + _sort_list_members(words[start:])


def _measure_list_prefix(words: list[str]) -> int:
    """How far a list reaches from the beginning: word, "and", word, "and", word, and so on."""
    end = 1
    while (
        end + 1 < len(words) and words[end] in _CONJUNCTIONS and words[end + 1] not in _CONJUNCTIONS
    ):
        end += 2
    return end if end > 1 else 0


def _sort_list_members(run: list[str]) -> list[str]:
    run[::2] = sorted(run[::2])
    return run


@lru_cache(maxsize=32)
def _load_filler_words(lang: str) -> frozenset[str]:
    return frozenset(_FILLER_WORDS.get(lang, "").split())


@lru_cache(maxsize=32)
def _load_number_words(lang: str) -> dict[str, str]:
    words = _NUMBER_WORDS.get(lang, "").split()
    return {word: str(number) for number, word in enumerate(words) if word != "_"}


# ---------------------------------------------------------------------------------------------- words that need a day

_DEICTIC: Final = lazy_regex(
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
