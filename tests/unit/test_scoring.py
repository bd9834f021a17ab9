"""Dot products of quantised codes are exact integers in every implementation."""

from __future__ import annotations

from array import array
from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from told.backends.sqlite.vectors import pack_query
from told.model.scoring import (
    BYTE_BIAS,
    QUERY_CODE_LENGTH,
    cosine,
    encode_query,
    norm,
    quantise,
    query_cosine,
)

vectors = st.lists(st.floats(-1.0, 1.0, width=32), min_size=1, max_size=800).filter(
    lambda v: max(map(abs, v)) > 1e-30
)
codes = st.lists(st.integers(-128, 127), min_size=1, max_size=800).map(
    lambda values: array("b", values).tobytes()
)


def product(a: bytes, b: bytes) -> int:
    return sum(x * y for x, y in zip(array("b", a), array("b", b), strict=False))


@given(codes, codes)
def test_a_cosine_is_exactly_the_product_over_the_norms(a: bytes, b: bytes) -> None:
    lengths = sqrt(product(a, a)) * sqrt(product(b, b))
    assert cosine(a, b) == (product(a, b) / lengths if lengths else 0.0)
    assert norm(a) == sqrt(product(a, a))


def test_the_longest_and_most_distant_codes_are_exact() -> None:
    low, high = bytes([128]) * 4096, bytes([127]) * 4096
    assert norm(low) == sqrt(4096 * 128 * 128)
    assert cosine(low, high) == -4096 * 128 * 127 / (norm(low) * norm(high))


@given(vectors)
def test_a_query_has_the_same_code_with_and_without_numpy(vector: list[float]) -> None:
    assert pack_query(vector) == encode_query(vector)
    assert pack_query([0.0, 0.0]) == encode_query([0.0, 0.0]) == b""


@given(vectors, vectors)
def test_query_similarity_is_computed_from_integers_alone(
    vector: list[float], other: list[float]
) -> None:
    count = min(len(vector), len(other))
    asked, code = encode_query(vector[:count]), quantise(other[:count])
    values = [value - BYTE_BIAS for value in array("h", asked)]
    product, square = (
        sum(x * y for x, y in zip(values, array("b", code), strict=False)),
        sum(x * x for x in values),
    )
    lengths = sqrt(square) * norm(code)
    assert (query_cosine(asked, code) if asked else 0.0) == (product / lengths if lengths else 0.0)


@pytest.mark.parametrize("power", [0, 1, 3, 41])
def test_every_query_product_fits_single_precision(power: int) -> None:
    chance = Random(power)
    values = array("h", encode_query([chance.gauss() ** power for _ in range(1024)]))
    length = sqrt(sum((value - BYTE_BIAS) ** 2 for value in values))
    assert length == pytest.approx(QUERY_CODE_LENGTH, abs=sqrt(1024) / 2)
    assert length * norm(bytes([127]) * 1024) < 2**24
