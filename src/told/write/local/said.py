"""What one clause was understood to say, before it becomes a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from told.core.when import ALWAYS, Interval


@dataclass(frozen=True, slots=True)
class Said:
    """A subject, a predicate and an object, the sentence that says so, and the stretch of the turn it stands in."""

    subject: str
    predicate: str
    object: str
    text: str
    start: int
    end: int
    polarity: str = "asserted"
    modality: str = "stated"
    confidence: float = 0.9
    valid: Interval = ALWAYS
    meta: Mapping[str, str] = field(default_factory=dict)
