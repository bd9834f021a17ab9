"""Text utilities: tokens, index terms, sentences, validation, lenient JSON and language."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, pairwise
from math import ceil
from operator import add
from typing import Any, Final

from told.errors import InvalidInput, TooLarge
from told.runtime import lazy_regex


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: 1/4 per character, 2/3 for Chinese and Japanese."""
    return -(-len(text) // 4) if text.isascii() else ceil(estimate_fractional_tokens(text))


def estimate_fractional_tokens(text: str) -> float:
    """Estimate the tokens without rounding, so that parts add up."""
    wide = 0 if text.isascii() else sum(char > "\u2e7f" for char in text)
    return wide / 1.5 + (len(text) - wide) / 4


_IRREGULAR_FORMS: Final = """agree agreed; become became; begin began begun; bite bitten; break
    broke broken; bring brought; build built; bus buses; buy bought; catch caught; child children;
    choose chose chosen; come came; draw drew drawn; drink drank drunk; drive drove driven; eat ate
    eaten; fall fell fallen; feel felt; fight fought; find found; fly flew flown; foot feet; forget
    forgot forgotten; get got gotten; give gave given; go goes went gone; grow grew grown; hear
    heard; hide hid hidden; hold held; keep kept; knife knives; know knew known; learn learnt; leave
    left; lend lent; lose lost; make made; man men; meet met; mouse mice; pay paid; person people;
    ride rode ridden; ring rang rung; run ran; sell sold; send sent; sing sang sung; sit sat; ski
    skis skied; sleep slept; speak spoke spoken; spend spent; steal stole stolen; swim swam swum;
    take took taken; teach taught; tell told; think thought; throw threw thrown; tooth teeth; wake
    woke woken; wear wore worn; wife wives; win won; woman women; write wrote written"""
IRREGULAR_STEMS: Final = {
    form: base for base, *forms in map(str.split, _IRREGULAR_FORMS.split(";")) for form in forms
}

_INFLECTED_ENDINGS: Final = frozenset("sdgyel")
"""The last letters of words that may be shortened."""

_VOWEL: Final = re.compile("[aeiouy]")
_SYLLABLE: Final = re.compile("[aeiouy]+[^aeiouy]+")
_SHORT_SYLLABLE: Final = re.compile("[^aeiou][aeiouy][^aeiouwxy]")


@lru_cache(maxsize=1 << 14)
def stem_word(word: str) -> str:
    """Return the stem of a lower-case ASCII word; anything else is unchanged."""
    word = IRREGULAR_STEMS.get(word, word)
    if (
        len(word) < 4
        or word[-1] not in _INFLECTED_ENDINGS
        or not (word.isascii() and word.isalpha())
    ):
        return word
    return _normalise_ending(_strip_adverb(_strip_participle(_strip_plural(word))))


def _strip_plural(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is", "news")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith("sses") else word[:-1]


def _strip_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith("ing"):
        root = word[:-3]
    elif word.endswith("ed") and not word.endswith("eed"):
        root = word[:-2]
    else:
        return word
    return _restore_verb(root) if len(root) > 1 and _VOWEL.search(root) else word


def _restore_verb(root: str) -> str:
    """Restore the verb of "hopp(ing)", "hop(ing)", "us(ing)" or "creat(ed)"."""
    if root[-1] == root[-2] and root[-1] not in "aeiouylsz" and len(root) > 3:
        return root[:-1]
    lost_e = root.endswith(("at", "bl", "iz")) if len(root) > 2 else root[0] in "aeiou"
    return (
        root + "e" if lost_e or (_is_short_syllable(root) and _count_syllables(root) == 1) else root
    )


def _strip_adverb(word: str) -> str:
    return word[:-2] if word.endswith("ly") and len(word) > 5 else word


def _normalise_ending(word: str) -> str:
    """Normalise spelling variants of an ending: -y, silent -e, and -l or -ll."""
    if len(word) < 4:
        return word
    root, last = word[:-1], word[-1]
    if last == "y" and root[-1] not in "aeiou":
        return root + "i"
    syllables = _count_syllables(root)
    if last == "e" and (syllables > 1 or (syllables == 1 and not _is_short_syllable(root))):
        return root
    return root if word.endswith("ll") and syllables > 1 else word


def _count_syllables(root: str) -> int:
    return len(_SYLLABLE.findall(root))


def _is_short_syllable(root: str) -> bool:
    """Return True for an ending like "hop": consonant, vowel, consonant."""
    return _SHORT_SYLLABLE.fullmatch(root[-3:]) is not None


# Index terms

WORD_CACHE_SIZE: Final = 1 << 15
MAX_CACHED_WORD_LENGTH: Final = 64
"""The maximum length of words in the term cache."""

STOP_WORDS: Final = frozenset(
    """a about after all also am an and any are as at be because been before being both but by can
        could did do does doing during each even for from had has have having he her here hers
        herself him himself his how i if in into is it its itself just me more most my myself no nor
        not of off on once only or other our ours ourselves out over own per shall she should so
        some such than that the their theirs them themselves then there these they this those
        through to too under until up upon us very was we were what when where which while who whom
        whose why will with would you your yours yourself yourselves""".split()
)

# Ordered to test the following character first and to avoid backtracking.
_JOINT: Final = r"(?:[-.@&']|,(?<=\d,)(?=\d{3}(?!\d)))"
_SHARP_SUFFIX: Final = r"(?:(?:#(?<=\b\w#)|\+\+(?<=\b\w\+\+))(?!\w))?"
_ASCII_TOKEN: Final = re.compile(
    rf"\w{{1,64}}+(?:{_JOINT}\w{{1,64}}+){{0,7}}{_SHARP_SUFFIX}", re.ASCII
)

# `\w` excludes combining marks, which would split Indic, Arabic and Hebrew words.
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4-\u05c7\u0610-\u061a\u064b-"
    r"\u065f\u0670"
    r"\u06d6-\u06ed\u0711-\u074a\u07a6-\u07f3\u0816-\u0963\u0966-\u0df3\u0f18-\u0f39\u0f71-\u0fbc"
    r"\u1712-\u1734"
    r"\u18a9\u1920-\u193b\u1a17-\u1a7f\u1ab0-\u1bf3\u1c24-\u1c37\u1cd0-\u1cf9\u1dc0-\u1dff\u20d0-"
    r"\u20f0\ua66f"
    r"\ua802-\ua827\ua880-\ua8c5\ua8e0-\ua953\ua980-\ua9c0\uaa29-\uaa4d\uabe3-\uabed\ufe20-\ufe2f"
    r"\U00011000-\U00011fff"
)
_WORD: Final = rf"\w[\w{_MARKS}]{{0,63}}+"
_TOKEN: Final = lazy_regex(rf"{_WORD}(?:{_JOINT}{_WORD}){{0,7}}{_SHARP_SUFFIX}")

# Scripts without spaces (Han, kana, Thai, Lao, Burmese, Khmer), and Hangul with its particles.
_UNSPACED: Final = (
    r"\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    r"\u3400-\u4dbf"
    r"\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\u1100-\u11ff\uf900-\ufaff\U0001b000-\U0001b16f"
    r"\U00020000-\U000323af"
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSPACED_RUN: Final = lazy_regex(f"([{_UNSPACED}]+)")

_INVISIBLE: Final = lazy_regex("[\u00ad\u200b-\u200f\u2060\ufeff]")
_APOSTROPHE: Final = lazy_regex("[\u2018\u2019\u02bc]")
_CONTRACTION: Final = re.compile("'(?:s|re|ve|ll|d|m)$")
_SEPARATOR: Final = re.compile(r"[-_.@&',]+")
_CAMEL_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_DECIMAL: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)*", re.ASCII)
_PLAIN_LATIN: Final = str.maketrans(
    {
        "\u0111": "d",
        "\u00f0": "d",
        "\u00f8": "o",
        "\u0142": "l",
        "\u0131": "i",
        "\u00e6": "ae",
        "\u0153": "oe",
    }
)
_FIRST_INDIC: Final = "\u0900"


def extract_terms(text: str) -> list[str]:
    """Return the index terms of a text, in order and with repetitions."""
    return _extract_terms(text, _unigrams_and_bigrams)


def extract_query_terms(text: str) -> list[str]:
    """Return the terms of a query: as `extract_terms`, but only bigrams of unspaced scripts."""
    return _extract_terms(text, _bigrams)


def _extract_terms(text: str, grams: Callable[[str], Iterable[str]]) -> list[str]:
    if text.isascii():
        return list(_terms_of_words(text)) or _verbatim_terms(text)
    text = _APOSTROPHE.sub("'", _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))
    collected: list[str] = []
    for position, piece in enumerate(_UNSPACED_RUN.split(text)):
        collected.extend(grams(piece) if position % 2 else _terms_of_words(piece))
    return collected or _verbatim_terms(text)


def _terms_of_words(text: str) -> Iterable[str]:
    """Yield the terms of each space-separated word."""
    return chain.from_iterable(map(_TERM_CACHE.__getitem__, text.split()))


def _verbatim_terms(text: str) -> list[str]:
    """Return the words of a text of stop words only, so that "The Who" is found."""
    return [word for word in (_fold_word(token).strip("_") for token in _tokenize(text)) if word]


def _tokenize(text: str) -> list[str]:
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)


def _bigrams(run: str) -> Iterable[str]:
    return map(add, run, run[1:]) if len(run) > 1 else (run,)


def _unigrams_and_bigrams(run: str) -> Iterable[str]:
    return chain(run, map(add, run, run[1:]))


class _TermCache(dict[str, tuple[str, ...]]):
    """Terms of known words, without numbers and overlong words."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        is_short = len(word) <= MAX_CACHED_WORD_LENGTH
        if is_short and word.isascii() and word.isalnum():
            word_terms = _expand_token(word)
        else:
            word_terms = tuple(chain.from_iterable(map(_expand_token, _tokenize(word))))
        if is_short and not word.isdigit():
            if len(self) >= WORD_CACHE_SIZE:
                self.clear()
            self[word] = word_terms
        return word_terms


_TERM_CACHE: Final = _TermCache()


def _expand_token(token: str) -> tuple[str, ...]:
    """Return the terms of a token: its stem, or a compound such as `fooBar` and its parts."""
    if token.isalpha() and (token[1:].islower() or len(token) == 1):
        word = _fold_word(token)
        return () if word in STOP_WORDS else (stem_word(word),)
    if token.isascii() and token.isdigit():
        return (token,)
    if token.endswith(("n't", "N'T")):
        return ()
    bare = _CONTRACTION.sub("", token.strip("_").casefold() if "'" in token else token.strip("_"))
    if _DECIMAL.fullmatch(bare):
        return (bare.replace(",", ""),)
    parts = [hump for part in _SEPARATOR.split(bare) for hump in _CAMEL_HUMP.split(part) if hump]
    if len(parts) < 2:
        return _stem_content_words(parts)
    whole = (
        _fold_word(bare)
        if any(mark in bare for mark in ".@&")
        else stem_word(_fold_word("".join(parts)))
    )
    return whole, *_stem_content_words(part for part in parts if len(part) > 1 or part.isdigit())


def _stem_content_words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(stem_word(word) for word in map(_fold_word, words) if word not in STOP_WORDS)


def _fold_word(word: str) -> str:
    """Lower-case a word and remove accents; Indic marks are vowels and stay."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFD", word.casefold())
    if max(decomposed, default="") < _FIRST_INDIC:
        return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(
            _PLAIN_LATIN
        )
    return unicodedata.normalize("NFKC", decomposed)


# Normal forms


def md5_hex(text: str) -> str:
    """Return the MD5 of a text in hexadecimal, the `hash` field of a memory."""
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


_ASCII_WHITESPACE: Final = b"\t\n\v\f\r\x1c\x1d\x1e\x1f"
"""ASCII white space other than the space."""


def normalise_text(text: str) -> str:
    """Normalise composition, spaces and case, for finding near-exact duplicates."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
        return " ".join(text.split())
    if "  " not in text and len(text.encode().translate(None, _ASCII_WHITESPACE)) == len(
        text
    ):  # single spaces only
        return text.lower().strip()
    return " ".join(text.lower().split())


# Sentences and snippets

_ABBREVIATION: Final = lazy_regex(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|cf|vol|fig|approx|dept|inc|ltd|co|bzw|"
    r"ca|usw|z\.b|sra"
    r"|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)|\b[a-z]|\b(?:[a-z]\.)+[a-z])\.$",
    re.IGNORECASE,
)
_BOUNDARY: Final = lazy_regex(
    # A full stop and a space
    r"(?<![.!?\u2026\u061f\u0964])[.!?\u2026\u061f\u0964]++[\"')\]\u201d\u2019\u00bb]*(?=\s)"
    # Full-width stops need no space
    r"|[\u3002\uff01\uff1f\uff0e]+[\"')\]\u201d\u2019\u300d\u300f\uff09]*"
    # A line break before a list item, heading or capital
    r"|\n(?=[^\S\n]*(?:\n|(?:[-*#>\u2022]|\d{1,3}[.)])\s|[^\sa-z]))"
)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, each a trimmed slice of it."""
    return [
        sentence for start, end in _sentence_spans(text) if (sentence := text[start:end].strip())
    ]


def split_pieces(text: str, size: int) -> list[str]:
    """Split a text into slices of whole sentences of at most `size` characters.

    Longer sentences are cut at spaces. A text that fits is returned unchanged.
    """
    return [text] if len(text) <= size else list(_iter_pieces(text, size)) or [text[:size]]


def get_piece(text: str, size: int, number: int) -> str:
    """Return one piece of a text without splitting the rest."""
    return (
        text
        if len(text) <= size
        else next(islice(_iter_pieces(text, size), number, None), text[:size])
    )


def _iter_pieces(text: str, size: int) -> Iterator[str]:
    for start, end in _pack_spans(text, size):
        if stripped := text[start:end].strip():
            yield stripped


def _pack_spans(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of pieces, including surrounding white space."""
    start = end = 0
    for first, last in _sentence_spans(text):
        if last - start > size and end > start:
            yield start, end
            start = first
        while last - start > size * 3 // 2:
            space = text.rfind(" ", start + max(size // 2, 1), start + size)
            stop = space if space > 0 else start + size
            yield start, stop
            start = stop
        end = last
    yield start, end


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        end = boundary.end()
        if boundary[0] == "." and _is_abbreviation(text, start, end):
            continue
        yield start, end
        start = end
    yield start, len(text)


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    """Return True if a full stop belongs to "Dr." or "e.g."."""
    return _ABBREVIATION.search(text[max(start, end - 12) : end]) is not None


def make_snippet(text: str, width: int) -> str:
    """Return the beginning of a text on one line, cut between words with an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    if width < 1:
        return ""
    end = width - 1
    if (space := line.rfind(" ", width // 2, width)) > 0:
        end = space
    while end > 0 and _is_mid_character(line, end):
        end -= 1
    return line[:end].rstrip(" ,;:-") + "\u2026"


def _is_mid_character(line: str, index: int) -> bool:
    """Return True if cutting here would split a visible character."""
    return line[index - 1] == "\u200d" or _COMBINING.match(line, index) is not None


_COMBINING: Final = lazy_regex(
    "[\u0300-\u036f\u200d\u20d0-\u20f0\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
)


# Validation


def validate_text(text: str, *, limit: int) -> str:
    """Return a text that every store can keep, or raise an error that says what to change."""
    if not isinstance(text, str):
        raise InvalidInput(
            f"The text must be a str, not {type(text).__name__}.", hint="Pass a str."
        )
    if len(text) > limit:
        raise TooLarge(
            f"The text has {len(text):,} characters; at most {limit:,} are accepted.",
            hint="Split it into several memories, or raise the limit in the settings.",
            length=len(text),
            limit=limit,
        )
    if (offset := text.find("\0")) >= 0:
        raise InvalidInput(
            f"The text has a NUL character at offset {offset}.",
            hint='Remove it, for example with text.replace("\\0", "").',
            offset=offset,
        )
    if not text.isascii():
        _refuse_surrogates(text)
    return text if type(text) is str else to_plain_str(text)


def to_plain_str(text: str) -> str:
    """Return a plain str; a StrEnum member, for example, may format differently."""
    return str.__str__(text)


def format_value(value: Any) -> str:
    """Format a value for an error message, always short."""
    try:
        return reprlib.repr(value)
    except ValueError:  # too many digits for Python to print
        return f"that {type(value).__name__}"


def validate_label(value: Any, name: str, *, limit: int) -> str:
    """Return a trimmed, non-empty label that is safe to store."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}.", hint="Pass a str.")
    text = value.strip()
    if not text:
        raise InvalidInput(f"{name} is empty.", hint="Leave it out, or give a real one.")
    if len(text) > limit:
        raise TooLarge(
            f"{name} has {len(text):,} characters; at most {limit:,} are accepted.",
            hint="Shorten it.",
        )
    return validate_text(text, limit=limit)


_UNSTORABLE: Final = lazy_regex("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def strip_unstorable(text: str) -> str:
    """Remove characters that no store keeps, for text read by a machine."""
    return _UNSTORABLE.sub("", text)


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InvalidInput(
            f"The text has a lone surrogate (U+{ord(text[problem.start]):04X}) at offset "
            f"{problem.start}.",
            hint='Decode the original bytes as UTF-8, or repair it with text.encode("utf-16", '
            '"surrogatepass")'
            '.decode("utf-16", "replace").',
            offset=problem.start,
        ) from None


# JSON in model replies

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*"?'
_STRUCTURE: Final = lazy_regex(rf"{_STRING}|[\[\]{{}},]", re.DOTALL)
_TRAILING_COMMA: Final = lazy_regex(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_THINKING: Final = lazy_regex(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE
)
_FENCED: Final = lazy_regex(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_OPENING: Final = lazy_regex(r"[\[{]")
_CLOSING: Final = {"[": "]", "{": "}"}
_MAX_ATTEMPTS: Final = 32
_MAX_DEPTH: Final = 100
_NO_VALUE: Final = object()


@dataclass(frozen=True, slots=True)
class JsonReply:
    """The JSON in a model's reply, and whether the reply was cut off."""

    value: object
    truncated: bool = False


def parse_lenient_json(text: str) -> object:
    """Return the JSON value in a model's reply."""
    return parse_reply(text).value


def parse_reply(text: str) -> JsonReply:
    """Parse a model's reply, tolerating thoughts, prose, fences, commas and truncation."""
    if (value := _parse_json_or_literal(text)) is not _NO_VALUE:
        return JsonReply(value)
    answer = _THINKING.sub("", text)
    for part in (*_FENCED.findall(answer), answer):
        if (value := _parse_json_or_literal(part)) is not _NO_VALUE:
            return JsonReply(value)
        if spans := list(_find_json_spans(part)):
            return _choose_reply(spans, part)
    raise InvalidInput(
        "The reply contains no JSON.",
        hint="Ask the model again for JSON only.",
        reply=make_snippet(text, 200),
    )


def _parse_json_or_literal(text: str) -> object:
    """Parse JSON or a Python literal, or return `_NO_VALUE`."""
    text = text.strip()
    for attempt in (text, _TRAILING_COMMA.sub(lambda match: match[1] or "", text)):
        try:
            return json.loads(attempt, strict=False, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            continue
    if not text.startswith(("{", "[")):
        return _NO_VALUE
    try:
        return json.loads(json.dumps(ast.literal_eval(text), allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NO_VALUE


@dataclass(frozen=True, slots=True)
class _JsonSpan:
    """A JSON text inside a reply, closed if it was truncated."""

    start: int
    end: int
    text: str
    truncated: bool
    value: object = _NO_VALUE


def _find_json_spans(text: str) -> Iterator[_JsonSpan]:
    """Yield every outermost object or array."""
    position, attempts, may_be_torn = 0, 0, True
    while attempts < _MAX_ATTEMPTS and (opening := _OPENING.search(text, position)):
        span = _scan_json_span(text, opening.start())
        value = (
            _parse_json_or_literal(span.text) if may_be_torn or not span.truncated else _NO_VALUE
        )
        if value is not _NO_VALUE:
            yield replace(span, value=value)
            position = span.end
        else:
            # A value inside a truncated one may be truncated too: accept only
            # complete ones now.
            may_be_torn = may_be_torn and not span.truncated
            position, attempts = span.start + 1, attempts + 1


def _scan_json_span(text: str, start: int) -> _JsonSpan:
    """Return the value that opens here; if it never closes, its complete part, closed.

    Only finished elements of an array are kept: half an object would look complete.
    """
    brackets, cut, closing = "", start, ""
    for token in _STRUCTURE.finditer(text, start):
        mark = token[0]
        if mark in _CLOSING:
            brackets += mark
        elif mark in "]}":
            if _CLOSING[brackets[-1]] != mark:
                break
            brackets = brackets[:-1]
            if not brackets:
                return _JsonSpan(start, token.end(), text[start : token.end()], truncated=False)
            if brackets[-1] == "[":
                cut, closing = token.end(), brackets
        elif mark == "," and (brackets[-1] == "[" or "[" not in brackets):
            cut, closing = token.start(), brackets
        if len(brackets) > _MAX_DEPTH:
            return _JsonSpan(start, len(text), "", truncated=True)
    return _JsonSpan(start, len(text), text[start:cut] + _close_brackets(closing), truncated=True)


def _close_brackets(brackets: str) -> str:
    return "".join(_CLOSING[bracket] for bracket in reversed(brackets))


def _choose_reply(spans: list[_JsonSpan], text: str) -> JsonReply:
    """Return consecutive objects as a list (JSON lines), else the longest value."""
    between = "".join(text[span.end : following.start] for span, following in pairwise(spans))
    if (
        len(spans) > 1
        and not between.strip(" ,;\r\n\t")
        and all(isinstance(span.value, dict) for span in spans)
    ):
        return JsonReply([span.value for span in spans], any(span.truncated for span in spans))
    best = max(spans, key=lambda span: span.end - span.start)
    return JsonReply(best.value, best.truncated)


# Letters unique to one language precede the script itself; the first match wins.
_SCRIPTS: Final = {
    "ja": "\u3041-\u3096 \u30a1-\u30fa",
    "ko": "\uac00-\ud7a3 \u1100-\u11ff",
    "zh": "\u3400-\u4dbf \u4e00-\u9fff \U00020000-\U000323af",
    "uk": "і ї є ґ",
    "ru": "\u0400-\u04ff",
    "ur": "ٹ ڈ ڑ ے",
    "fa": "پ چ ژ گ",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "bn": "\u0980-\u09ff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "th": "\u0e00-\u0e7f",
    "el": "\u0370-\u03ff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
}
_COMMON_WORDS: Final = {
    "en": """a about after am an and any are as at be been before but by can could did do does for
        from had has have he her him his how i i'm i've in is it its just last me my of on or our
        she should so than that the their them then there they this to us was we were what what's
        when where which who whose why will with would you your""",
    "es": """a al algo antes cómo como con cuál cuales cuándo cuando cuánto de del desde dijo dije
        donde dónde el ella en es esta está este fue hace hasta hay la las le lo los me mi mis para
        pero por porque que qué quién se ser si sobre son su sus también tengo tiene tu un una y ya
        yo hizo""",
    "de": """aber als am an auf aus bei bin bis das dass dem den der des die du ein eine einem einen
        einer er es für gab gibt habe haben hast hat hatte ich im in ist kann mein meine mich mir
        mit nach nicht oder sein sich sie sind um und uns vom von vor wann war waren warum was
        welche wem wer wie wir wo wurde zu zum zur letzten gemacht gestern heute geschah passiert
        ende anfang""",
    "fr": """a ai as au aux avec avez avons c'est ce cette comment d'un d'une dans de depuis des du
        elle en est et été était il ils j'ai je la le les leur lui ma mais me mes moi mon ne nous on
        ont ou où par pas pour pourquoi quand que quel quelle qu'est qui quoi sa se ses son sont sur
        ta ton tu un une votre vous y qu'ai""",
    "it": """a al alla anche che chi ci come con cosa da dal de del della di dopo dove e è era gli
        ha hai hanno ho i il in io la le lo ma mi mia mio nel nella non o per perché più quale
        quando quanto questo sono su sua suo ti tu un una fatto""",
    "pt": """a ao aos as com como da das de do dos e é ela ele em era está eu fez foi isso lhe mais
        mas me meu minha na não nas no nos o onde os ou para pela pelo por porque qual quando quanto
        que quem se sem ser seu sua tem um uma você fiz""",
    "nl": """aan als bij dan dat de deze die dit door een en er had heb hebben heeft het hij hoe ik
        in is je kan maar met mij mijn naar niet nog of om ons op over te tot uit van voor waar
        waarom was wat we wel welke werd wie wij ze zich zijn gedaan""",
}
_ACCENTS: Final = {"es": "ñ¿¡", "de": "ßäöü", "fr": "êèœàù", "pt": "ãõ"}
# Looked up, not compiled: a pattern of all Chinese letters takes milliseconds to compile.
_SCRIPT_RANGES: Final = tuple(
    (name, (first, last or first))
    for name, letters in _SCRIPTS.items()
    for first, _, last in (letter.partition("-") for letter in letters.split())
)
_LATIN_WORD: Final = re.compile("[a-zß-ɏ]+(?:'[a-zß-ɏ]+)?")
_WORD_SETS: Final = {name: frozenset(words.split()) for name, words in _COMMON_WORDS.items()}
_LANGUAGES_BY_WORD: Final = {
    word: tuple(name for name, words in _WORD_SETS.items() if word in words)
    for word in frozenset().union(*_WORD_SETS.values())
}


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of a text's language, "" if unknown."""
    lowered = text.lower().replace("\u2019", "'")
    words = _LATIN_WORD.findall(lowered)
    if (
        not lowered.isascii()
        and (foreign := _detect_by_script(lowered))
        and len(foreign[1]) >= sum(map(len, words)) / 4
    ):
        return foreign[0]
    return _detect_by_words(lowered, words)


def _detect_by_script(text: str) -> tuple[str, list[str]] | None:
    """Return the first script used and all non-Latin letters."""
    foreign = [c for c in text if c > "\u036f"]
    distinct = set(foreign)
    script = next(
        (
            name
            for name, (first, last) in _SCRIPT_RANGES
            if any(first <= c <= last for c in distinct)
        ),
        None,
    )
    return (script, [*filter(str.isalpha, foreign)]) if script else None


def _detect_by_words(text: str, words: list[str]) -> str:
    """Return the language of most words; ties go to accents, then to table order."""
    votes = dict.fromkeys(_COMMON_WORDS, 0)
    for word in words:
        for name in _LANGUAGES_BY_WORD.get(word, ()):
            votes[name] += 1
    if not text.isascii():
        for name, letters in _ACCENTS.items():
            votes[name] += any(c in text for c in letters)
    winner = max(votes, key=votes.__getitem__)
    return winner if votes[winner] else ""
