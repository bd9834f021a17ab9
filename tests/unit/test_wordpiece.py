"""WordPiece tokenisation; the expected ids come from the reference BERT tokenizer."""

import hashlib

import pytest

from told.providers.local.onnx import (
    MAX_WORD_CHARS,
    VOCABULARY_PATH,
    WordPiece,
    get_bundled_tokenizer,
    split_words,
)

START, END, UNKNOWN = 101, 102, 100


def ids(text: str, limit: int = 512) -> list[int]:
    return get_bundled_tokenizer().encode(text, limit)[1:-1]


def test_the_vocabulary_is_the_published_one():
    text = VOCABULARY_PATH.read_text(encoding="utf-8").encode()
    assert (
        hashlib.sha256(text).hexdigest()
        == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    )


def test_plain_words_are_single_tokens_between_the_special_tokens():
    assert get_bundled_tokenizer().encode("Hello, world!", 512) == [
        START,
        7592,
        1010,
        2088,
        999,
        END,
    ]


def test_a_rare_word_is_split_into_its_longest_pieces():
    assert ids("embeddings") == [7861, 8270, 4667, 2015]


@pytest.mark.parametrize("text", ["", "   ", "\t\n", "\u200b", "\x00\ufffd"])
def test_empty_text_has_only_the_special_tokens(text: str):
    assert get_bundled_tokenizer().encode(text, 512) == [START, END]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café naïve RÉSUMÉ", ["cafe", "naive", "resume"]),
        ("e\u0301cole école", ["ecole", "ecole"]),
        ("İstanbul Ångström", ["istanbul", "angstrom"]),
        ("ΣΊΣΥΦΟΣ", ["σισυφοσ"]),
        ("Łódź straße", ["łodz", "straße"]),
    ],
)
def test_case_and_accents_are_ignored(text: str, expected: list[str]):
    assert split_words(text) == expected


def test_chinese_characters_are_words_and_kana_are_not():
    assert split_words("我爱 Tokyo東京です") == ["我", "爱", "tokyo", "東", "京", "てす"]


def test_hangul_is_decomposed_and_stays_one_word():
    assert len(split_words("안녕 세계")) == 2


def test_punctuation_is_split_off():
    assert split_words("don't (stop)… a_b $5.00!?") == [
        *"don ' t ( stop ) … a _ b $ 5 . 00 ! ?".split()
    ]


def test_symbols_beyond_ascii_are_parts_of_words():
    assert split_words("5€ 20°C") == ["5€", "20°c"]


def test_control_characters_are_dropped_and_all_white_space_separates():
    assert split_words("a\x07b\u200dc\ufeff d\u00a0e\u2003f\u2028g\th\x0bi") == [
        "abc",
        "d",
        "e",
        "f",
        "g",
        "hi",
    ]


def test_an_emoji_is_unknown_and_does_not_affect_its_neighbours():
    assert ids("fine 👍🏽 fine") == [2986, UNKNOWN, 2986]


def test_a_lone_surrogate_is_dropped():
    assert split_words("a\ud800b") == ["ab"]


def test_an_overlong_word_is_unknown():
    assert UNKNOWN not in ids("a" * MAX_WORD_CHARS)
    assert ids("a" * (MAX_WORD_CHARS + 1)) == [UNKNOWN]


def test_a_word_with_one_foreign_letter_is_unknown_as_a_whole():
    assert ids("hello\u2603world") == [UNKNOWN]


def test_special_tokens_in_a_text_are_ordinary_text():
    assert START not in ids("[CLS] [SEP]")
    assert END not in ids("[CLS] [SEP]")


def test_a_long_text_is_truncated_and_keeps_both_special_tokens():
    cut = get_bundled_tokenizer().encode("hello " * 1000, 16)
    assert cut == [START, *[7592] * 14, END]


def test_another_vocabulary_gives_other_ids():
    tokenizer = WordPiece(["[UNK]", "[CLS]", "[SEP]", "un", "##told", "told"])
    assert tokenizer.encode("Untold told tale", 9) == [1, 3, 4, 5, 0, 2]
