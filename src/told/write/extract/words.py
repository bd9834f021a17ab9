"""Words as they are compared when a claim is held against what was said: numbers exactly, the others by likeness."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final

from told.core import almanac
from told.core.lazy import lazy_regex
from told.core.predicates import PREDICATES
from told.core.stem import stem_word
from told.core.text import STOP_WORDS

_TOKEN: Final = lazy_regex(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[^\W_]+")
_POSSESSIVE: Final = lazy_regex("['\u2019]s?$")
_DIGITS: Final = lazy_regex(r"\d+(?:[.,]\d+)*")
_YEAR: Final = lazy_regex(r"(?:1[89]|20)\d\d")
_MIN_SHARED_PREFIX: Final = 5
_MAX_ENDING: Final = 4
_ROOT_SYNONYMS: Final = {
    "kid": "child",
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "hubby": "husband",
}
_AGE_WORDS: Final = frozenset(("year", "yr", "old", "age"))
_COMMON_VERBS: Final = "loves enjoys hates moved called named said feels thinks".split()
_UNINFORMATIVE_ROOTS: Final = frozenset(
    stem_word(word) for name in (*PREDICATES, *_COMMON_VERBS) for word in name.split("_")
)


class MatchMode(Enum):
    """How a word is compared."""

    WORD = "word"
    NAME = "name"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class TextToken:
    """A word, where it stands, and the forms it is compared in: itself, its root, and the number it says, if any."""

    start: int
    end: int
    form: str
    root: str
    value: str | None = None
    is_capitalised: bool = False


@dataclass(frozen=True, slots=True)
class SearchToken:
    """A word to look for, and how."""

    token: TextToken
    mode: MatchMode


def tokenize(text: str) -> list[TextToken]:
    """The words of a text in order."""
    return [_build_token(text, match.start(), match.end()) for match in _TOKEN.finditer(text)]


def _build_token(text: str, start: int, end: int) -> TextToken:
    raw = text[start:end]
    plain = almanac.fold_text(raw) or raw
    form = _POSSESSIVE.sub("", plain) or plain
    root = stem_word(form)
    return TextToken(
        start, end, form, _ROOT_SYNONYMS.get(root, root), parse_number(form), raw[0].isupper()
    )


@lru_cache(maxsize=1 << 12)
def parse_number(form: str) -> str | None:
    """The number a word says, in digits: "1,200", "1200" and "three" alike; articles are no numbers."""
    if _DIGITS.fullmatch(form):
        plain = re.sub(r",(?=\d{3}\b)", "", form).replace(",", ".")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"
    if form in STOP_WORDS or len(form) < 3:
        return None
    value = almanac.NUMBER_WORDS.get(form)
    return None if value is None else str(value)


def extract_search_tokens(
    text: str, *, exclude: Collection[str] = (), is_sentence: bool = False
) -> list[SearchToken]:
    """The words of a text that tell something, without those that are left out and the stop-words.

    In a `sentence` the first word is no name only because it begins with a capital letter, and the verbs that most
    sentences have tell nothing: whoever likes trains did not say so of aeroplanes.
    """
    tokens = tokenize(text)
    has_date = any(_is_date(token) for token in tokens)
    content_tokens = [
        token for token in tokens if token.form not in exclude and token.form not in STOP_WORDS
    ]
    uninformative = (_UNINFORMATIVE_ROOTS | _AGE_WORDS) if is_sentence else _AGE_WORDS
    informative = (
        [token for token in content_tokens if token.root not in uninformative]
        or content_tokens
        or tokens
    )
    return [
        SearchToken(token, _get_match_mode(token, is_sentence and token.start == 0, has_date))
        for token in informative
    ]


def _get_match_mode(token: TextToken, is_leading: bool, has_date: bool) -> MatchMode:
    value = token.value
    if has_date and (
        _is_date(token) or (value is not None and value.isdecimal() and int(value) <= 31)
    ):
        return MatchMode.DATE
    if value is not None:
        return MatchMode.NUMBER
    return MatchMode.NAME if token.is_capitalised and not is_leading else MatchMode.WORD


def _is_date(token: TextToken) -> bool:
    return _YEAR.fullmatch(token.form) is not None or (
        token.is_capitalised and token.form in almanac.CALENDAR_NAMES
    )


def is_token_match(search_token: SearchToken, token: TextToken) -> bool:
    """Whether a word is what was looked for."""
    wanted = search_token.token
    if wanted.form == token.form:
        return True
    if search_token.mode in (MatchMode.NUMBER, MatchMode.DATE):
        return wanted.value is not None and wanted.value == token.value
    if token.value is not None or wanted.value is not None:
        return False
    if wanted.root == token.root or is_within_edits(
        wanted.form, token.form, get_max_typos(wanted.form)
    ):
        return True
    return search_token.mode is MatchMode.WORD and _has_same_root(wanted.root, token.root)


def get_max_typos(form: str) -> int:
    """How many letters of a word may be wrong: none of a short one, two of a long one."""
    return 0 if len(form) < 5 else 1 if len(form) < 9 else 2


def _has_same_root(left: str, right: str) -> bool:
    """Whether two words begin alike and only their endings differ: "allergic" and "allergy"."""
    shared = next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    return shared >= _MIN_SHARED_PREFIX and max(len(left), len(right)) - shared <= _MAX_ENDING


@lru_cache(maxsize=1 << 14)
def is_within_edits(left: str, right: str, max_edits: int) -> bool:
    """Whether one word becomes the other by at most so many letters added, left out, changed or swapped."""
    if abs(len(left) - len(right)) > max_edits:
        return False
    if not max_edits:
        return left == right
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, 1):
            best = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        if min(row) > max_edits:
            return False
    return row[-1] <= max_edits


def build_initials(search_tokens: list[SearchToken]) -> list[str]:
    """For every needle how the names in a row it belongs to are written in short: "sf" for both of San Francisco."""
    short_forms: list[str] = []
    for is_name, run in groupby(
        search_tokens, key=lambda search_token: search_token.mode is MatchMode.NAME
    ):
        letters = [search_token.token.form[0] for search_token in run]
        short_forms += ["".join(letters) if is_name and len(letters) > 1 else ""] * len(letters)
    return short_forms
