"""Embedder output is accepted only as vectors of finite numbers, in any container type."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tables import each_row
from told.errors import EmbeddingError
from told.ports import validate_vectors

LARGEST = 3.4028234663852886e38
"""The largest number that a float of four bytes can be."""

FORMS: dict[str, Callable[[Sequence[float]], Any]] = {
    "list": list,
    "tuple": tuple,
    "floats": lambda row: array("f", row),
    "doubles": lambda row: array("d", row),
    "numpy": lambda row: np.asarray(row, dtype=np.float32),
}
EMBEDDER: Any = SimpleNamespace(model="a model", dim=4)


@each_row("form", FORMS)
@each_row("place", range(4))
@each_row("odd", [nan, -nan, inf, -inf])
def test_a_non_finite_number_is_rejected_at_any_position(form: str, place: int, odd: float) -> None:
    row = [0.5, -0.5, 0.5, -0.5]
    row[place] = odd
    with pytest.raises(EmbeddingError, match="4 finite numbers"):
        validate_vectors(EMBEDDER, [FORMS[form](row)], 1)


@each_row("form", FORMS)
@each_row("number", [0.0, -0.0, 1e-45, 1.0, -2.0, 1e38, LARGEST, -LARGEST])
def test_every_finite_number_is_accepted(form: str, number: float) -> None:
    vectors = [FORMS[form]([number, 0.5, 0.0, -0.5])] * 2
    assert validate_vectors(EMBEDDER, vectors, 2) is vectors
