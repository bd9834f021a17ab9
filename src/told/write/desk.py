"""What a write works with and what it is about to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.core.blob import Blob
from told.core.entry import Draft
from told.core.ids import IdGenerator
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.value import fast_frozen_init
from told.flow import Flow
from told.ledger.commit import commit_batch
from told.ports import Batch, CursorStep, Embedder, Guard, IdempotencyRecord, Store, Vector
from told.settings import Settings
from told.write import embed
from told.write.embed import EMPTY_LOOKUP, VectorLookup
from told.write.mind import ExtractionConfig
from told.write.shape import Extractor

FACT_KEY = "fact"
"""What a row of the skipped says that was found; the rest of the row says why it is not held."""


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class WriteContext:
    """What a write works with."""

    store: Store
    id_generator: IdGenerator
    settings: Settings
    extraction: ExtractionConfig
    embedder: Embedder | None = None
    author: str = "user"

    def create_extractor(self, name: str) -> Extractor:
        """The extractor of a name."""
        return self.extraction.create_extractor(name, self.store, self.id_generator.now)


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key and the digest of the request it stands for."""

    name: str
    digest: bytes


@dataclass(slots=True)
class WritePlan:
    """What a write will commit, and what it will say it did."""

    drafts: list[Draft]
    guards: list[Guard]
    events: list[Event]
    preceding_texts: dict[str, str] = field(default_factory=dict)
    """The wording of the turns that others were said after, by thread."""
    evidence_ids: list[str] = field(default_factory=list)
    """The id of each turn's evidence, in order."""
    is_new: list[bool] = field(default_factory=list)
    """Whether each turn's evidence is new."""
    covered_turns: set[int] = field(default_factory=set)
    """The turns that something was found in which is held, was held, or was given up."""
    unreadable_replies: list[str] = field(default_factory=list)
    """Answers of a model that could not be read, whole."""
    blobs: Sequence[Blob] = ()
    vectors: Mapping[bytes, Vector] = field(default_factory=dict)
    """Vectors that were asked for already, by the hash of their text."""
    warnings: dict[str, None] = field(default_factory=dict)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    """What was found and is not held, with the reason."""
    vector_lookup: VectorLookup = EMPTY_LOOKUP


def commit_plan(
    ctx: WriteContext,
    scope: Scope,
    plan: WritePlan,
    head_seq: int = -1,
    key: IdempotencyKey | None = None,
    skipped: Sequence[Mapping[str, Any]] = (),
    step: CursorStep | None = None,
) -> Flow[Receipt]:
    """Commit a plan and write its receipt; with nothing to say, no key to keep and no step to take, nothing."""
    tx: int | None = None
    warnings: tuple[str, ...] = ()
    skipped = (*skipped, *plan.skipped)
    if plan.drafts or key or step:
        vectors, warnings = yield from embed.embed_before_commit(
            ctx.store,
            ctx.embedder,
            plan.drafts,
            plan.preceding_texts,
            plan.vector_lookup,
            plan.vectors,
        )
        record = (
            IdempotencyRecord(key.name, key.digest, _outcome_to_json(plan, skipped))
            if key
            else None
        )
        model = ctx.embedder.model if ctx.embedder else None
        batch = Batch(
            scope.account,
            plan.drafts,
            plan.guards,
            head_seq,
            record,
            vectors,
            model,
            step,
            plan.blobs,
        )
        entries = yield from commit_batch(ctx.store, batch)
        tx = entries[0].tx if entries else None
    return Receipt(tuple(plan.events), skipped, (*plan.warnings, *warnings), tx)


def _outcome_to_json(plan: WritePlan, skipped: Sequence[Mapping[str, Any]]) -> str:
    """What a key remembers of its receipt: events, ids and who spoke, never what was said."""
    event_rows = [[event.event, event.id, event.role, event.actor] for event in plan.events]
    skipped_rows = [
        {name: value for name, value in row.items() if name != FACT_KEY} for row in skipped
    ]
    return json.dumps(
        {
            "events": event_rows,
            "skipped": skipped_rows,
            "warnings": list(plan.warnings),
            "entries": len(plan.drafts),
        }
    )
