"""Facts, links, evidence, ticks and passages: the rows of the views.

A fact is one version of a thread. It is current from its own entry until the entry that closed it,
and gone once the thread was retracted; both are ledger positions, so reading a past state compares
integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from told.model.entry import NO_META
from told.model.scope import Scope
from told.text.dates import Interval

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a thread's content."""

    id: str
    seq: int
    tx: int
    scope: Scope
    text: str
    md5: str
    kind: str = "memory"
    until: int = NEVER
    gone: int = NEVER
    created_at: int = 0
    updated_at: int = 0
    valid_from: int = -NEVER
    valid_to: int = NEVER
    precision: str = "open"
    expires: int = NEVER
    said_at: int | None = None
    role: str | None = None
    actor: str | None = None
    author: str = "user"
    evidence: str | None = None
    source: str | None = None
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    polarity: str = "asserted"
    modality: str = "stated"
    confidence: float = 1.0
    after: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)

    def valid_interval(self) -> Interval:
        """Return the interval in which the fact holds."""
        start = None if self.valid_from == -NEVER else self.valid_from
        return Interval(start, None if self.valid_to == NEVER else self.valid_to, self.precision)


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two references, current between two ledger positions."""

    seq: int
    src: str
    rel: str
    dst: str
    scope: Scope
    weight: float = 1.0
    until: int = NEVER
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """The ledger position and identity of a piece of evidence."""

    id: str
    seq: int
    scope: Scope
    digest: bytes
    source: str | None = None
    blobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tick:
    """A turn counted by the decay clocks: its position, time and size."""

    seq: int
    scope: Scope
    at: int
    turns: int = 1
    tokens: int = 0


TURN, NODE, QUARANTINE, TOPIC = "turn", "node", "quarantine", "topic"
UNLISTED_KINDS = frozenset({TURN, NODE, QUARANTINE, TOPIC})
"""Kinds that listings omit by default: turns, graph nodes, quarantine and topics."""

UNINDEXED_KINDS = frozenset({QUARANTINE, TOPIC})
"""Kinds that are not indexed, so no search returns them."""

PASSAGE_CHARS = 600
"""The approximate length of a passage in characters."""

OVERVIEW_SLOT, ABSTRACT_SLOT = 1 << 20, (1 << 20) + 1
LEVEL_SLOTS: Mapping[int, str] = {OVERVIEW_SLOT: "overview", ABSTRACT_SLOT: "abstract"}
"""Slots of passages taken from metadata rather than from the content."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The indexed text of a fact: a piece of its content, its overview or its abstract, by slot.

    `thread` identifies it to turns said `after` it; `after` names the turn it follows.
    """

    seq: int
    scope: Scope
    text: str
    slot: int = 0
    thread: str | None = None
    after: str | None = None
    until: int = NEVER
    expires: int = NEVER


def join_with_previous(previous: str | None, text: str) -> str:
    """Return the text to embed: a passage preceded by the turn it follows."""
    return text if previous is None else f"{previous}\n{text}"
