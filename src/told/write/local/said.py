"""A turn as it is read, and what its clauses are understood to say before that becomes claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from told.core.when import ALWAYS, Interval
from told.write.local.dates import SpeechTime
from told.write.local.speaker import Referent

STATED_CONFIDENCE, FRAGMENT_CONFIDENCE, INFERRED_CONFIDENCE, HEDGED_CONFIDENCE = 0.9, 0.8, 0.7, 0.5
"""How sure a claim is: said in so many words, said in a fragment, implied, and doubted by the speaker."""

ASSERTED, NEGATED = "asserted", "negated"


@dataclass(frozen=True, slots=True)
class RuleClaim:
    """A subject, a predicate and an object, the sentence that says so, and the stretch of the turn it stands in."""

    subject: str
    predicate: str
    object: str
    text: str
    start: int
    end: int
    polarity: str = ASSERTED
    modality: str = "stated"
    confidence: float = STATED_CONFIDENCE
    valid: Interval = ALWAYS
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TurnContext:
    """A turn: its words, who speaks and when.

    `last` is whom "she" can mean, `subject` whom a bare verb is about, `people` who was introduced by name.
    """

    text: str
    speaker: str
    speech_time: SpeechTime
    default_interval: Interval = ALWAYS
    last_referent: Referent | None = None
    subject: Referent | None = None
    people: Mapping[str, Referent] = field(default_factory=dict)
