"""What is believed: facts, links and evidence as the views hold them.

A fact is one version of a thread. It is the latest from its own entry until the entry that closed it, and it is gone
once the thread was retracted; both are positions in the ledger, so any past belief is a comparison of integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from told.model.entry import NO_META
from told.model.scope import Scope
from told.runtime import fast_frozen_init
from told.text.dates import Interval

NEVER = 2**62


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Fact:
    """One version of what a thread says."""

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
        """When the fact holds in the world."""
        start = None if self.valid_from == -NEVER else self.valid_from
        return Interval(start, None if self.valid_to == NEVER else self.valid_to, self.precision)


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Link:
    """One thing bearing on another, from one ledger position until another."""

    seq: int
    src: str
    rel: str
    dst: str
    scope: Scope
    weight: float = 1.0
    until: int = NEVER
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """Where a piece of evidence stands in the ledger."""

    id: str
    seq: int
    scope: Scope
    digest: bytes
    source: str | None = None
    blobs: tuple[str, ...] = ()


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Tick:
    """A turn of a conversation, for the clocks by which memories fade: where it stands, when it was, how long."""

    seq: int
    scope: Scope
    at: int
    turns: int = 1
    tokens: int = 0


TURN, NODE, QUARANTINE, TOPIC = "turn", "node", "quarantine", "topic"
UNLISTED_KINDS = frozenset({TURN, NODE, QUARANTINE, TOPIC})
"""Kinds that listings leave out unless asked for: what claims were taken from, what they speak of, what is in doubt,
and what they are about."""

UNINDEXED_KINDS = frozenset({QUARANTINE, TOPIC})
"""Kinds that no index holds, so that no search finds them."""

PASSAGE_CHARS = 600
"""About how many characters of a long text one passage holds."""

OVERVIEW_SLOT, ABSTRACT_SLOT = 1 << 20, (1 << 20) + 1
LEVEL_SLOTS: Mapping[int, str] = {OVERVIEW_SLOT: "overview", ABSTRACT_SLOT: "abstract"}
"""The slots of passages that are not pieces of the content, and the metadata they are taken from."""


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Passage:
    """What is indexed of a fact: a piece of its content, or the overview or abstract of it, as its slot says.

    `thread` names it where another turn can be said `after` it, and `after` names the turn it was itself said after.
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
    """What is embedded of a passage: its text after that of the turn before it, if it was said after one."""
    return text if previous is None else f"{previous}\n{text}"
