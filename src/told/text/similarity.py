"""Similarity and near-duplicate detection of short texts.

Vectors cannot decide this: a small model rates "I like cats" and "I like dogs" as nearly equal. Two
texts are the same only if they have the same words in the same order, ignoring case, articles and
filler; a part may move from the front to the end ("In 2020 I moved" and "I moved in 2020"), and
list items at either edge may be reordered. Any difference in a number, a name, a negation, a tense
or a question mark makes them different.
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
        *(
            "named called with who that which in at from for of as on and since because when "
            "near by"
        ).split(),
    )
)
"""Words that introduce more detail about the same thing."""
_OTHER_ITEM_WORDS: Final = frozenset(
    "another second third other new next more also too two three four".split()
)
"""Words that introduce a different thing."""
SLUG_EDIT_LIMIT: Final = 2
SLUG_SIMILARITY: Final = 0.9


class WordingRelation(Enum):
    """The relation of a new wording to an old one."""

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
    """Return the words of a text for comparison: folded, stemmed, without articles."""
    return tuple(stem_word(token) for token in _comparison_tokens(text) if token != _BREAK)


def is_same_text(left: str, right: str) -> bool:
    """Return True if two texts differ only in case, articles, endings and punctuation."""
    return stem_words(left) == stem_words(right)


def compare_wordings(new: str, old: str, *, loose: bool = False) -> WordingRelation:
    """Compare a new value with an old one.

    It is MORE if it continues the old one: "a dog" and "a dog named Rex", but not "coffee" and
    "coffee ice cream". With `loose`, containing all words of the old one is enough, unless it
    introduces a different thing.
    """
    if is_same_text(new, old):
        return WordingRelation.SAME
    if is_elaboration(old, new) or (loose and _is_word_subset(old, new)):
        return WordingRelation.MORE
    if is_elaboration(new, old) or (loose and _is_word_subset(new, old)):
        return WordingRelation.LESS
    return WordingRelation.OTHER


def is_elaboration(short: str, long: str) -> bool:
    """Return True if a longer wording starts with a shorter one and adds detail."""
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
    """Return True if a text has all words of another and more."""
    return set(stem_words(old)) < set(stem_words(new))


def extract_names(text: str) -> frozenset[str]:
    """Return the capitalised words of a text, except the first, and those with digits."""
    tokens = _WORD.findall(text)
    significant = [word for word in tokens[1:] if word[0].isupper()] + [
        word for word in tokens if _DIGIT.search(word)
    ]
    return frozenset(stem_word(word.casefold().removesuffix("'s")) for word in significant)


# Names


def edit_distance(left: Sequence[str], right: Sequence[str], limit: int = 1 << 30) -> int:
    """Return the Levenshtein distance, at most `limit`."""
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
    """Return the similarity of two names from 0 to 1, by common blocks."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio() if left and right else 0.0


def are_similar_slugs(left: str, right: str) -> bool:
    """Return True if two slugs are the same topic: one edit or 90 % alike, same digits."""
    if left == right:
        return True
    if min(len(left), len(right)) < 4 or re.findall(r"\d+", left) != re.findall(r"\d+", right):
        return False
    return (
        edit_distance(left, right, SLUG_EDIT_LIMIT) < SLUG_EDIT_LIMIT
        or similarity_ratio(left, right) > SLUG_SIMILARITY
    )


# Values

_SPELLING_WEIGHT: Final = 0.95
"""The weight of spelling similarity."""
_PARTIAL_WEIGHT: Final = 0.9
"""The weight of a partial match."""
_FIRST_LETTER_PENALTY: Final = 0.9
"""The factor for different first letters: impressionism is not expressionism."""
_MIN_PREFIX_LENGTH: Final = 5
"""The minimum length of a prefix that may abbreviate a word."""
_MIN_LENGTH_RATIO: Final = 1.5
_NEGATIONS: Final = frozenset("not no non never without nor neither".split())


def value_similarity(left: str, right: str) -> float:
    """Return how likely two values name the same thing, from 0 to 1; 0.8 is a probable match.

    Spelling counts, words in any order, and a part for the whole: a surname or a prefix. Values
    with different digits, or of which one is negated, never match.
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
    """Score by the longest common subsequence of letters."""
    return (
        _SPELLING_WEIGHT
        * _lcs_ratio(short, long)
        * (1.0 if short[0] == long[0] else _FIRST_LETTER_PENALTY)
    )


def _word_score(short: str, long: str) -> float:
    """Score by words: the same set, or one a subset of the other."""
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
    """Score a single word by its common prefix with a word of a longer value."""
    if " " in short or len(long) < _MIN_LENGTH_RATIO * len(short):
        return 0.0
    shared = max(_common_prefix_length(short, word) for word in long.split())
    return (
        _PARTIAL_WEIGHT * 2 * shared / (len(short) + shared)
        if shared >= _MIN_PREFIX_LENGTH
        else 0.0
    )


def _common_prefix_length(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )


def _lcs_ratio(left: str, right: str) -> float:
    """Return the LCS similarity ratio, computed bit-parallel."""
    char_masks: dict[str, int] = {}
    for index, char in enumerate(left):
        char_masks[char] = char_masks.get(char, 0) | 1 << index
    unmatched = full = (1 << len(left)) - 1
    for char in right:
        matched = unmatched & char_masks.get(char, 0)
        unmatched = (unmatched + matched | unmatched - matched) & full
    return 2 * (len(left) - unmatched.bit_count()) / (len(left) + len(right))


_FILLER_WORDS: Final = {
    "en": """a an the really very quite just actually basically simply honestly definitely certainly
        oh please also indeed truly absolutely literally totally btw that anyway yes yeah hey hi
        hello""",
    "de": """der die das den dem des ein eine einen einem einer eines wirklich sehr eigentlich halt
        ja doch mal auch also ach bitte übrigens nämlich natürlich dass""",
    "es": "el la los las un una unos unas realmente muy simplemente pues también ya que "
    "verdaderamente oye",
    "fr": "le la les un une des vraiment très assez simplement alors aussi voilà donc "
    "franchement que",
}
"""Words without effect on the meaning, by language."""

_NUMBER_WORDS: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
}
_MIN_ROTATED_WORDS, _MAX_ROTATED_WORDS = 4, 64
"""Limits for rotated texts: rotating fewer or more words changes the meaning."""

_CAPITAL_ARTICLES: Final = frozenset("A")
"""Articles that are names if capitalised inside a sentence."""

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

# Punctuation, except symbols with a meaning beside a word or number: currencies, %, +, #, &, @,
# minus.
_PUNCTUATION: Final = lazy_regex(
    r"[\s!\"()*,./:;<=>?\[\\\]^_`{|}~\u00a1\u00ab\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e"
    r"\u3000-\u3004\u3008-\u3020"
    r"\u30fb\uff01-\uff0f\uff1a-\uff20\uff5e\ufe0f]+"
)
_DECIMAL: Final = lazy_regex(r"(?<=\d)[.,:/](?=\d)")
_THOUSANDS: Final = lazy_regex(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN: Final = lazy_regex(r"(?<=\w)-(?=\w)|(?<!\S)-+(?!\d)|-(?!\w)")
_QUOTES: Final = str.maketrans("\u2018\u2019\u02bc\u201c\u201d", "'''\"\"")
_QUESTION_MARK: Final = lazy_regex("[?\uff1f\u061f]")
_DECIMAL_PLACEHOLDER: Final = "\ue000"
"""A placeholder for the point in a number, so that 3.5 stays one token."""


@dataclass(frozen=True, slots=True)
class TextContent:
    """The normalised content words of a text, their number, and whether it is a question."""

    words: tuple[str, ...]
    singular: frozenset[str]
    plural: frozenset[str]
    is_question: bool


def has_same_content(a: str, b: str) -> bool:
    """Return True if two texts are the same up to filler words and the order of parts."""
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
    """Return True if one word sequence is a rotation of the other."""
    if (
        len(a) != len(b)
        or not _MIN_ROTATED_WORDS <= len(a) <= _MAX_ROTATED_WORDS
        or sorted(a) != sorted(b)
    ):
        return False
    return any(a[start:] + a[:start] == b for start in range(1, len(a)))


@lru_cache(maxsize=1 << 12)
def extract_content(text: str) -> TextContent:
    """Return the content of a text for comparison."""
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
    """Return True if a stop word in capitals is a name, as in "the US"."""
    return len(token) > 1 and token.isupper() and token.lower() in STOP_WORDS


def _expand_content_token(token: str, *, english: bool) -> list[str]:
    """Return the words of a token: contractions expanded, English words normalised."""
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
    """Normalise accents, plural and spelling of an English word; leave others unchanged."""
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
    """Sort the items of a list at either edge, single words only."""
    end = _measure_list_prefix(words)
    words = _sort_list_members(words[:end]) + words[end:]
    start = len(words) - _measure_list_prefix(words[::-1])
    return words[:start] + _sort_list_members(words[start:])


def _measure_list_prefix(words: list[str]) -> int:
    """Return the length of a leading list: word, "and", word, and so on."""
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


# Words that depend on the date

_DEICTIC: Final = lazy_regex(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|now|currently|ago|recently|lately|just|right now|"
    r"at the moment"
    r"|(?:this|last|next) (?:morning|afternoon|evening|night|week|weekend|month|year|summer|"
    r"winter|spring|autumn|fall"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|heute|gestern|morgen|jetzt|gerade|neulich|vorhin|(?:letzte|n\u00e4chste|diese)[nrsm]? \w+"
    r"|hoy|ayer|ma\u00f1ana|ahora|anoche|hace|pasad[oa]|pr\u00f3xim[oa]"
    r"|aujourd'hui|hier|demain|maintenant|derni[e\u00e8]re?|prochaine?)\b"
    r"|\u4eca\u5929|\u6628\u5929|\u660e\u5929|\u73b0\u5728|\u4eca\u65e5|\u6628\u65e5|"
    r"\u660e\u65e5|\u4eca|\u5148\u9031|\u6765\u9031"
)


def is_deictic(text: str) -> bool:
    """Return True if a text says "today" or the like, so its meaning depends on the date."""
    return _DEICTIC.search(text) is not None
