"""The dependencies and plan of a write, and the configuration of extraction.

Extractors and curators are imported when first used: verbatim writes need none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.errors import InvalidInput
from told.flow import Flow, run
from told.ids import IdGenerator
from told.ingest import embedding
from told.ingest.embedding import EMPTY_LOOKUP, VectorLookup
from told.ingest.messages import InputTurn
from told.ingest.types import Curator, ExtractionInput, Extractor
from told.ledger.commit import commit_batch
from told.ledger.consumer import Mutex
from told.model.entry import Blob, Claim, Draft, Evidence
from told.model.kind import Ontology, load_builtin_ontology
from told.model.query import Event, Receipt
from told.model.scope import Scope
from told.ports import (
    LLM,
    Batch,
    CursorStep,
    Embedder,
    Guard,
    IdempotencyRecord,
    Store,
    Vault,
    Vector,
)
from told.settings import Settings
from told.text.echo import EchoFilter
from told.text.tokens import format_value

VERBATIM, LOCAL, FACTS, CLOSED, CURATE = "verbatim", "local", "facts", "closed", "curate"


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """Extraction options of a write: extractor, prompt, given facts, and whether it is deferred."""

    extractor: str = VERBATIM
    prompt: str | None = None
    facts: tuple[Any, ...] = ()
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ExtractionConfig:
    """The models and kinds used for extraction.

    `curation_llm` decides on claims and defaults to `llm`; `prompts` override the built-in ones by
    extractor name, or `curate`; `ontology` has all kinds, `catalogue` those extraction may use.
    """

    settings: Settings
    llm: LLM | None = None
    curation_llm: LLM | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    ontology: Ontology = field(default_factory=load_builtin_ontology)
    catalogue: Ontology = field(default_factory=load_builtin_ontology)
    echoes: EchoFilter = field(default_factory=EchoFilter)
    vault: Vault | None = None
    mutex: Mutex = field(default_factory=Mutex)
    maintenance_llm: LLM | None = None

    @property
    def background_llm(self) -> LLM | None:
        """Return the model for maintenance such as scoring importance and summarising."""
        return self.maintenance_llm or self.llm

    @property
    def default_extractor(self) -> str:
        """Return the extractor used unless a call names another."""
        chosen = self.settings.extract
        return (FACTS if self.llm is not None else LOCAL) if chosen == "auto" else chosen

    @property
    def is_remote(self) -> bool:
        """Return True if the model is remote, so that extraction is deferred by default."""
        return self.llm is not None and not getattr(self.llm, "local", True)

    def build_options(
        self, extractor: Any = None, *, prompt: Any = None, facts: Any = None, deferred: Any = None
    ) -> ExtractionOptions:
        """Validate extraction arguments and fill in the defaults."""
        extractor_name = self.default_extractor if extractor is None else extractor
        if not isinstance(extractor_name, str) or extractor_name not in (VERBATIM, LOCAL):
            from told.extraction.registry import EXTRACTOR_NAMES, build_unknown_error

            if not isinstance(extractor_name, str) or extractor_name not in EXTRACTOR_NAMES:
                raise build_unknown_error(extractor_name)
        if prompt is not None and (not isinstance(prompt, str) or not prompt.strip()):
            raise InvalidInput(
                f"prompt must be a string, not {format_value(prompt)}.",
                hint="Leave it out to use the default prompt.",
            )
        given_facts = () if facts is None else facts
        if not isinstance(given_facts, list | tuple):
            raise InvalidInput(
                f"facts must be a list, not {format_value(facts)}.",
                hint='Such as ["User likes tea"].',
            )
        is_deferred = (
            extractor_name not in (VERBATIM, LOCAL) and self.is_remote
            if deferred is None
            else deferred
        )
        return ExtractionOptions(
            extractor_name,
            prompt or self.prompts.get(extractor_name),
            tuple(given_facts),
            bool(is_deferred),
        )

    def create_extractor(self, name: str, store: Store, now: Callable[[], int]) -> Extractor:
        """Create the extractor with this name."""
        from told.extraction.react import StoreMemoryReader
        from told.extraction.registry import build_extractor
        from told.extraction.rules import LocalExtractor

        def make_memory_reader(scope: Scope) -> StoreMemoryReader:
            return StoreMemoryReader(store, scope, now())

        rules = LocalExtractor()
        return build_extractor(
            name,
            self.llm,
            self.settings,
            self.catalogue,
            rules,
            reader=parse_sentence,
            memory_reader=make_memory_reader,
        )

    def create_curator(
        self, extractor: Extractor, store: Store, embedder: Embedder | None
    ) -> Curator:
        """Create the curator for an extractor: rules for rule-based claims, else the model.

        Closed-world and react claims have kinds with their own write rules, so no second model call
        is made for them.
        """
        from told.curation.llm import ModelCurator
        from told.curation.rules import RuleCurator
        from told.extraction.closed_world import ClosedExtractor
        from told.extraction.react import ReactExtractor

        uses_rules = extractor.local or isinstance(extractor, ClosedExtractor | ReactExtractor)
        uses_llm = self.settings.curate == "model" or (
            self.settings.curate == "auto" and not uses_rules
        )
        llm = self.curation_llm or self.llm
        if not uses_llm or llm is None:
            return RuleCurator(store, self.settings)
        return ModelCurator(llm, store, self.settings, embedder, self.prompts.get(CURATE))


_PARSING_SCOPE = Scope("reading", user_id="reading")


def parse_sentence(sentence: str) -> Claim | None:
    """Parse a third-person sentence with the rules, if it makes exactly one claim."""
    from told.extraction.rules import LocalExtractor

    inputs = ExtractionInput((InputTurn(Evidence(sentence), {}),), 0, _PARSING_SCOPE)
    claims = run(LocalExtractor().extract(inputs)).claims
    return claims[0].claim if len(claims) == 1 else None


FACT_KEY = "fact"
"""Key of a skipped row for the text that was not stored."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The dependencies of a write."""

    store: Store
    id_generator: IdGenerator
    settings: Settings
    extraction: ExtractionConfig
    embedder: Embedder | None = None
    author: str = "user"

    def create_extractor(self, name: str) -> Extractor:
        """Create the extractor with this name."""
        return self.extraction.create_extractor(name, self.store, self.id_generator.now)


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key and the digest of its request."""

    name: str
    digest: bytes


@dataclass(slots=True)
class WritePlan:
    """The entries a write will commit and the events it will report."""

    drafts: list[Draft]
    guards: list[Guard]
    events: list[Event]
    preceding_texts: dict[str, str] = field(default_factory=dict)
    """Indexed text of preceding turns, by thread."""
    evidence_ids: list[str] = field(default_factory=list)
    """Evidence id of each turn, in order."""
    is_new: list[bool] = field(default_factory=list)
    """True for each turn whose evidence is new."""
    covered_turns: set[int] = field(default_factory=set)
    """Turns with at least one claim that has a thread."""
    unreadable_replies: list[str] = field(default_factory=list)
    """Raw model replies that failed to parse."""
    blobs: Sequence[Blob] = ()
    vectors: Mapping[bytes, Vector] = field(default_factory=dict)
    """Vectors already computed, by text hash."""
    warnings: dict[str, None] = field(default_factory=dict)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    """Claims that were not stored, with the reason."""
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
    """Commit a plan and return its receipt; write nothing if there is nothing to record."""
    tx: int | None = None
    warnings: tuple[str, ...] = ()
    skipped = (*skipped, *plan.skipped)
    if plan.drafts or key or step:
        vectors, warnings = yield from embedding.embed_before_commit(
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
    """Return the stored outcome of a key: events and ids, never the content."""
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
