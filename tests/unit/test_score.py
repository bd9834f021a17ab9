"""Products of codes are whole numbers, however they are computed."""

from __future__ import annotations

from array import array
from math import sqrt

from hypothesis import given
from hypothesis import strategies as st

from told.core.score import cosine, norm

codes = st.lists(st.integers(-128, 127), min_size=1, max_size=800).map(lambda values: array("b", values).tobytes())


def product(a: bytes, b: bytes) -> int:
    return sum(x * y for x, y in zip(array("b", a), array("b", b), strict=False))


@given(codes, codes)
def test_a_cosine_is_the_product_over_the_lengths_to_the_last_bit(a: bytes, b: bytes) -> None:
    lengths = sqrt(product(a, a)) * sqrt(product(b, b))
    assert cosine(a, b) == (product(a, b) / lengths if lengths else 0.0)
    assert norm(a) == sqrt(product(a, a))


def test_the_longest_codes_and_the_farthest_apart_are_still_exact() -> None:
    low, high = bytes([128]) * 4096, bytes([127]) * 4096
    assert norm(low) == sqrt(4096 * 128 * 128)
    assert cosine(low, high) == -4096 * 128 * 127 / (norm(low) * norm(high))
