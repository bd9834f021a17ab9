"""What understands what is said: the extractors and curators there are, and the kinds they know.

They are a third of told and are loaded when one of them is asked: who keeps words as they are needs none.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from told.errors import InvalidInput
from told.extraction.registry import EXTRACTOR_NAMES, build_unknown_error
from told.flow import Flow, run
from told.ids import IdGenerator
from told.ingest import embedding
from told.ingest.embedding import EMPTY_LOOKUP, VectorLookup
from told.ingest.messages import InputTurn
from told.ingest.types import Curator, ExtractionInput, Extractor
from told.ledger.commit import commit_batch
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
from told.runtime import at_fork
from told.settings import Settings
from told.text.echo import EchoFilter
from told.text.tokens import format_value


class Mutex:
    """Lets one in; whoever finds it taken may wait a while and try again.

    Nobody owns it while waiting, so a task that is cancelled there leaves nothing locked; nor does a fork, for whoever
    was inside has stayed with the parent.
    """

    def __init__(self) -> None:
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nobody inside, as a child process does."""
        self._condition = threading.Condition()
        self._locked = False

    def try_acquire(self) -> bool:
        """Go in, if nobody is inside."""
        with self._condition:
            acquired, self._locked = not self._locked, True
            return acquired

    def release(self) -> None:
        """Let the next one in."""
        with self._condition:
            self._locked = False
            self._condition.notify_all()

    def wait_released(self, seconds: float) -> None:
        """Wait until nobody is inside, but no longer than this."""
        with self._condition:
            if self._locked:
                self._condition.wait(seconds)


VERBATIM, LOCAL, FACTS, CLOSED, CURATE = "verbatim", "local", "facts", "closed", "curate"


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How a write wants to be understood: by which extractor, with which prompt, from which facts, now or later."""

    extractor: str = VERBATIM
    prompt: str | None = None
    facts: tuple[Any, ...] = ()
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ExtractionConfig:
    """A language model, if there is one, and the kinds: all there are, and those extraction may use.

    `curating` is the model that decides what becomes of facts, the same unless said; `prompts` take the place of told's
    own, by the name of the extractor, or `curate`.
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
        """The model that is asked about what was said long after it was: to judge it, and to shorten it."""
        return self.maintenance_llm or self.llm

    @property
    def default_extractor(self) -> str:
        """The extractor used unless a call names another."""
        chosen = self.settings.extract
        return (FACTS if self.llm is not None else LOCAL) if chosen == "auto" else chosen

    @property
    def is_remote(self) -> bool:
        """Whether the model works over a network, so that it is asked after the write has returned."""
        return self.llm is not None and not getattr(self.llm, "local", True)

    def build_options(
        self, extractor: Any = None, *, prompt: Any = None, facts: Any = None, deferred: Any = None
    ) -> ExtractionOptions:
        """How a write is to be understood, checked; with nothing said, by the usual extractor."""
        extractor_name = self.default_extractor if extractor is None else extractor
        if not isinstance(extractor_name, str) or extractor_name not in EXTRACTOR_NAMES:
            raise build_unknown_error(extractor_name)
        if prompt is not None and (not isinstance(prompt, str) or not prompt.strip()):
            raise InvalidInput(
                f"prompt must be a text, not {format_value(prompt)}.",
                hint="Leave it out for told's own.",
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
        """The extractor of a name."""
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
        """Who decides about what an extractor found: rules about what rules and kinds say, the model about the rest.

        The claims of some extractors are of kinds that say themselves how they are written: no model is asked twice.
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
    """A sentence in the third person as a claim, if it says one thing that rules can read."""
    from told.extraction.rules import LocalExtractor

    inputs = ExtractionInput((InputTurn(Evidence(sentence), {}),), 0, _PARSING_SCOPE)
    claims = run(LocalExtractor().extract(inputs)).claims
    return claims[0].claim if len(claims) == 1 else None


FACT_KEY = "fact"
"""What a row of the skipped says that was found; the rest of the row says why it is not held."""


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
