"""Products of codes, faster where NumPy is installed and the same where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from told.core.topics import DotProducts
from told.core.topics import dot_products as plain

MIN_NUMPY_ROWS = 4
"""Fewer codes than this are not worth an array."""

FLOAT32_EXACT_LIMIT = 1 << 24
MAX_CODE_PRODUCT = 127 * 127


def numpy_dot_products(code: bytes, others: Sequence[bytes]) -> Sequence[int]:
    """The products of a code with others; sums of whole numbers that a float holds exactly are exact."""
    if len(others) < MIN_NUMPY_ROWS:
        return plain(code, others)
    import numpy as np

    dtype = np.float32 if len(code) * MAX_CODE_PRODUCT < FLOAT32_EXACT_LIMIT else np.float64
    rows = (
        np.frombuffer(b"".join(others), dtype=np.int8).reshape(len(others), len(code)).astype(dtype)
    )
    return [int(product) for product in rows @ np.frombuffer(code, dtype=np.int8).astype(dtype)]


def choose_dot_products() -> DotProducts:
    """The faster of the two that can be used here."""
    return numpy_dot_products if find_spec("numpy") else plain
