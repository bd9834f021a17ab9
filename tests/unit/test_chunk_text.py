"""Splitting text into chunks: ordered slices separated only by white space, with bounded size."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from told.model.fact import PASSAGE_CHARS
from told.text.tokens import split_pieces

# Sentences, words, every kind of white space, and long runs without any.
bits = st.sampled_from(
    (
        "tea",
        "Berlin",
        "Dr.",
        "e.g.",
        ". ",
        "! ",
        "? ",
        "。",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\u3000",
        "\u00a0",
        "x" * 17,
        "東京に住んでいます",
        "1.5",
        "...",
        "a",
        "👩‍👩‍👧",
        ";",
        "\u2028",
    )
)
texts = st.lists(bits, max_size=40).map("".join) | st.text(max_size=120)
sizes = st.integers(1, 40)


def gaps(text: str, cut: list[str]) -> list[str]:
    """Return the text before, between and after the chunks, searching for them in order."""
    found, at = [], 0
    for piece in cut:
        start = text.index(piece, at)
        found.append(text[at:start])
        at = start + len(piece)
    return [*found, text[at:]]


@given(texts, sizes)
def test_chunks_are_ordered_slices_separated_only_by_white_space(text: str, size: int) -> None:
    assert all(not gap.strip() for gap in gaps(text, split_pieces(text, size))), "nothing is lost"


@given(texts, sizes)
def test_no_chunk_is_longer_than_one_and_a_half_times_the_size(text: str, size: int) -> None:
    assert all(len(piece) <= max(size * 3 // 2, 1) for piece in split_pieces(text, size))


@given(texts, sizes)
def test_there_is_at_least_one_chunk_and_none_is_empty_unless_the_text_is(
    text: str, size: int
) -> None:
    cut = split_pieces(text, size)
    assert cut
    assert all(piece.strip() for piece in cut) or not text.strip()


@given(texts, sizes)
def test_a_text_within_the_size_is_one_unchanged_chunk(text: str, size: int) -> None:
    if len(text) <= size:
        assert split_pieces(text, size) == [text]


@given(
    st.lists(
        st.sampled_from(("One two.", "Three!", "Is it four?", "Five six seven eight.")), min_size=1
    )
)
def test_sentences_stay_whole_where_they_fit(sentences: list[str]) -> None:
    for piece in split_pieces(" ".join(sentences), 40):
        assert re.fullmatch(
            r"(?:(?:One two\.|Three!|Is it four\?|Five six seven eight\.) ?)+", piece
        )


@given(
    st.lists(st.sampled_from(("ab", "cde", "fghi")), min_size=1, max_size=60), st.integers(12, 30)
)
def test_an_oversized_sentence_is_split_between_words(words: list[str], size: int) -> None:
    assert " ".join(split_pieces(" ".join(words), size)) == " ".join(words)


@given(
    st.lists(st.sampled_from(("One two three.", "Four!", "five")), min_size=1, max_size=40),
    st.integers(20, 60),
)
def test_no_two_adjacent_chunks_would_fit_into_one(sentences: list[str], size: int) -> None:
    """Chunks are packed tightly: the space left in one is shorter than the next sentence."""
    text = " ".join(sentences)
    cut = split_pieces(text, size)
    assert len(cut) <= 1 + 2 * len(text) // size


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "字" * 10_000, "word " * 2_000, "Short. " * 1_500, "a\n" * 5_000]
)
def test_the_number_of_chunks_is_proportional_to_the_text_length(text: str) -> None:
    cut = split_pieces(text, PASSAGE_CHARS)
    assert len(text) / (1.5 * PASSAGE_CHARS) <= len(cut) <= 2 * len(text) / PASSAGE_CHARS + 1
    assert all(len(piece) <= PASSAGE_CHARS * 3 // 2 for piece in cut)


def test_white_space_alone_is_one_chunk() -> None:
    assert len(split_pieces(" " * 1000, 600)) == 1
