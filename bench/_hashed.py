"""Cheap vectors: words hashed to directions, so that texts with common words are near."""

from __future__ import annotations

import re
from functools import cache
from zlib import crc32

import numpy as np

from bench._corpus import DIM, Floats

_WORD = re.compile(r"\w+")


@cache
def vector(text: str) -> Floats:
    """Return the unit vector of a text."""
    total = sum((_direction(word) for word in _WORD.findall(text.casefold())), np.full(DIM, 1e-3))
    unit: Floats = (total / np.linalg.norm(total)).astype(np.float32)
    return unit


@cache
def _direction(word: str) -> Floats:
    return np.random.default_rng(crc32(word.encode())).standard_normal(DIM).astype(np.float32)
