"""How two wordings bear on each other: the same, one saying more than the other, or something else.

Nothing here guesses at meaning: it looks at words, in order, without case, articles and endings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from told.core.lazy import lazy_regex
from told.core.stem import stem_word

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
