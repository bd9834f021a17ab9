"""What a write works with and what it is about to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.core.blob import Blob
from told.core.entry import Draft
from told.core.ids import Mint
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.value import quick
from told.flow import Flow
from told.ledger.commit import commit
from told.ports import Batch, Embedder, Guard, Step, Store, Ticket, Vector
from told.settings import Settings
from told.write import embed
from told.write.embed import UNSEEN, Looked
from told.write.mind import Mind
from told.write.shape import Extractor

FACT = "fact"
"""What a row of the skipped says that was found; the rest of the row says why it is not held."""


@quick
@dataclass(frozen=True, slots=True)
class Desk:
    """What a write works with."""

    store: Store
    mint: Mint
    settings: Settings
    mind: Mind
    embedder: Embedder | None = None
    author: str = "user"

    def extractor(self, name: str) -> Extractor:
        """The extractor of a name."""
        return self.mind.extractor(name, self.store, self.mint.now)


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key and the digest of the request it stands for."""

    name: str
    digest: bytes


@dataclass(slots=True)
class Plan:
    """What a write will commit, and what it will say it did."""

    drafts: list[Draft]
    guards: list[Guard]
    events: list[Event]
    turns: dict[str, str] = field(default_factory=dict)
    """The wording of the turns that others were said after, by thread."""
    evidence: list[str] = field(default_factory=list)
    """The id of each turn's evidence, in order."""
    fresh: list[bool] = field(default_factory=list)
    """Whether each turn's evidence is new."""
    spoken_for: set[int] = field(default_factory=set)
    """The turns that something was found in which is held, was held, or was given up."""
    garbled: list[str] = field(default_factory=list)
    """Answers of a model that could not be read, whole."""
    blobs: Sequence[Blob] = ()
    vectors: Mapping[bytes, Vector] = field(default_factory=dict)
    """Vectors that were asked for already, by the hash of their text."""
    warnings: dict[str, None] = field(default_factory=dict)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    """What was found and is not held, with the reason."""
    looked: Looked = UNSEEN


def settle(
    desk: Desk, scope: Scope, plan: Plan, seen: int = -1, key: Key | None = None,
    skipped: Sequence[Mapping[str, Any]] = (), step: Step | None = None,
) -> Flow[Receipt]:  # fmt: skip
    """Commit a plan and write its receipt; with nothing to say, no key to keep and no step to take, nothing."""
    tx: int | None = None
    warnings: tuple[str, ...] = ()
    skipped = (*skipped, *plan.skipped)
    if plan.drafts or key or step:
        vectors, warnings = yield from embed.before_commit(
            desk.store, desk.embedder, plan.drafts, plan.turns, plan.looked, plan.vectors
        )
        ticket = Ticket(key.name, key.digest, _outcome(plan, skipped)) if key else None
        model = desk.embedder.model if desk.embedder else None
        batch = Batch(scope.account, plan.drafts, plan.guards, seen, ticket, vectors, model, step, plan.blobs)
        entries = yield from commit(desk.store, batch)
        tx = entries[0].tx if entries else None
    return Receipt(tuple(plan.events), skipped, (*plan.warnings, *warnings), tx)


def _outcome(plan: Plan, skipped: Sequence[Mapping[str, Any]]) -> str:
    """What a key remembers of its receipt: events, ids and who spoke, never what was said."""
    rows = [[event.event, event.id, event.role, event.actor] for event in plan.events]
    passed = [{name: value for name, value in row.items() if name != FACT} for row in skipped]
    return json.dumps({"events": rows, "skipped": passed, "warnings": list(plan.warnings), "entries": len(plan.drafts)})


