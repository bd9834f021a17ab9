"""The evidence view: where each verbatim input stands, so that the same input is kept once."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Entry
from told.core.fact import witness
from told.ports import PutWitness, RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """An observation becomes a witness."""
    seen = witness(entry)
    return () if seen is None else (PutWitness(seen),)
