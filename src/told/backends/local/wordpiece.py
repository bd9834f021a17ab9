"""Uncased BERT word pieces: text to the token ids that the local models were trained on."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

VOCABULARY_PATH = Path(__file__).with_name("bert-uncased.txt")
"""The vocabulary of BERT uncased (Google, Apache-2.0): one piece a line, its id is its line."""

MAX_WORD_CHARS = 100
"""A word with more characters is unknown, as it was in training."""

CONTINUATION_PREFIX = "##"
"""Marks a piece that does not start a word."""

IDEOGRAPH_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""The blocks whose characters are words of their own."""

ASCII_SYMBOLS = frozenset("$+<=>^`|~")
"""Punctuation to BERT though symbols to Unicode; their like beyond ASCII are parts of words."""

DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Mn"})
"""Categories that leave no trace: controls, formats, private use, lone surrogates, accents split from their letters."""


def normalise_char(char: str) -> str:
    """What one character of decomposed text becomes: nothing, a space, itself as a word, or a letter in lower case."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category.startswith("Z"):
        return " "
    if category in DROPPED_CATEGORIES or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    if category.startswith("P") or char in ASCII_SYMBOLS or is_ideograph(ord(char)):
        return f" {char} "
    return char.lower()


def is_ideograph(code: int) -> bool:
    """Whether a code point is a Chinese character; kana and hangul are not."""
    return any(first <= code <= last for first, last in IDEOGRAPH_RANGES)


class _CharTable(dict[int, str]):
    """`rendered` as a table for `str.translate`, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = normalise_char(chr(code))
        return text


_CHAR_TABLE = _CharTable()


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, in lower case and without accents."""
    return unicodedata.normalize("NFD", text).translate(_CHAR_TABLE).split()


class WordPiece:
    """A tokenizer over one vocabulary; it holds no other state and may be shared between threads."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: index for index, piece in enumerate(vocabulary)}
        self._start, self._end, self._unknown = (
            self._ids[token] for token in ("[CLS]", "[SEP]", "[UNK]")
        )

    def encode(self, text: str, limit: int) -> list[int]:
        """The ids of a text between its start and end marks, at most `limit` with both marks."""
        ids = (piece for word in split_words(text) for piece in self._encode_word(word))
        return [self._start, *islice(ids, limit - 2), self._end]

    def _encode_word(self, word: str) -> list[int]:
        """The longest known piece, then the longest of what remains, and so on; unknown as a whole if a part is."""
        if len(word) > MAX_WORD_CHARS:
            return [self._unknown]
        ids: list[int] = []
        remaining, prefix = word, ""
        while remaining:
            sizes = range(len(remaining), 0, -1)
            size = next((size for size in sizes if prefix + remaining[:size] in self._ids), 0)
            if not size:
                return [self._unknown]
            ids.append(self._ids[prefix + remaining[:size]])
            remaining, prefix = remaining[size:], CONTINUATION_PREFIX
        return ids


@cache
def get_bundled_tokenizer() -> WordPiece:
    """The tokenizer over the vocabulary that comes with told, read once."""
    return WordPiece(VOCABULARY_PATH.read_text(encoding="utf-8").rstrip("\n").split("\n"))
