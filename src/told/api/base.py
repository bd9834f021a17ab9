"""Open and close a memory and run its verbs; the base of both clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeAlias

from told.api import config, kinds, serialize
from told.api.spec import VERBS
from told.api.verb import SCOPE_NAMES, UNSET, Verb
from told.api.worker import BackgroundWorker
from told.engine import Engine
from told.errors import ConfigError, InvalidInput, StoreClosed, StoreCorrupt
from told.extraction.registry import EXTRACTOR_NAMES
from told.flow import Flow, arun, call, run
from told.ids import IdGenerator
from told.ingest.context import CURATE, ExtractionConfig
from told.ingest.pipeline import PENDING
from told.ledger.consumer import Failure, catch_failure
from told.model.fact import Fact
from told.model.scope import ID_LIMIT, Caller, validate_identifier
from told.plugins import (
    load_plugin,
    open_embedder,
    open_llm,
    open_readers,
    open_reranker,
    open_store,
)
from told.plugins.adapters import UsageMeter, wrap_with_meter
from told.ports import LLM, Embedder, Store
from told.retrieval.access_log import AccessBuffer, HotBuffers
from told.retrieval.candidates import Guard
from told.settings import Settings, load_settings
from told.text.echo import EchoFilter
from told.text.tokens import format_value, validate_label

VAULT_GROUP = "told.vaults"
GUARD_HINT = "A guard takes a memory and returns True to show it, or False or a reason to hide it."

ScopeTuple: TypeAlias = tuple[()] | tuple[str | None, str | None, str | None]
TYPE_ERRORS: Final = (TypeError, AttributeError)
"""The errors of a verb that reads a value of the wrong type, which may be a damaged row."""


class BaseMemory:
    """The parts that the synchronous and the asynchronous client share."""

    def __init__(
        self,
        store: str | None = None,
        *,
        embedder: Any = None,
        llm: Any = None,
        index: Any = None,
        graph: Any = None,
        ontology: Any = None,
        prompts: Mapping[str, str] | None = None,
        reranker: Any = None,
        reader: Any = None,
        guard: Callable[[dict[str, Any]], bool | str] | None = None,
        subscribes: Sequence[str] = (),
        settings: Settings | None = None,
        account: str | None = None,
        mint: IdGenerator | None = None,
        **knobs: Any,
    ) -> None:
        """Open a memory; by default the user's durable store with the best installed embedder.

        `llm` extracts and curates facts, `ontology` adds kinds, and `prompts` replaces told's
        prompts by the name of the extractor, or `curate`. `reranker` scores the best hits of
        `search(rerank=True)`, and `reader` reads images. `guard` gets every memory before it is
        shown and returns True to show it, False or a reason to hide it. `subscribes` names the
        kinds that are shown, all by default.
        """
        _reject_unsupported(index=index, graph=graph)
        if not isinstance(settings, Settings | None):
            raise ConfigError(f"settings must be a told.Settings, not {format_value(settings)}.")
        resolved = (
            load_settings(store=store, account=account, **knobs).settings
            if settings is None
            else settings.replace(store=store, account=account, **knobs)
        )
        caller = Caller(
            account=validate_identifier(resolved.account, "account"),
            subscribes=_parse_subscriptions(subscribes),
        )
        opened_reranker = open_reranker(reranker)
        guards = () if guard is None else (_wrap_guard(guard),)
        meter, model = UsageMeter(), open_llm(resolved.llm if llm is None else llm, resolved)
        extraction = _build_extraction(
            model, meter, ontology, {} if prompts is None else prompts, resolved
        )
        readers = open_readers(
            resolved.reader if reader is None else reader, model, timeout=resolved.read_timeout
        )
        opened_store, opened_embedder = _open_store_and_embedder(
            resolved, resolved.embedder if embedder is None else embedder, mint
        )
        self._engine: Engine | None = Engine(
            opened_store,
            resolved,
            opened_embedder,
            caller,
            _build_hot_buffers(resolved),
            opened_reranker,
            guards,
            extraction,
            meter,
            readers,
        )
        self._worker = BackgroundWorker(self._catch_up)
        self._sweeper = BackgroundWorker(self._sweep, resolved.maintenance.sweep_seconds)
        self._judges_importance = resolved.judge and extraction.llm is not None
        if extraction.is_remote or self._judges_importance:
            self._worker.wake()
        if resolved.sweep:
            self._sweeper.wake()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open a memory from a nested configuration such as `{"vector_store": {...}}`."""
        return cls(**config.parse_config(config_dict))

    @property
    def engine(self) -> Engine:
        """Return the engine of the memory."""
        if self._engine is None:
            raise StoreClosed()
        return self._engine

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder in use."""
        return self.engine.embedder

    def _call(self, verb: str, scope: ScopeTuple = (), **arguments: Any) -> Any:
        """Run a verb and block until it is done."""
        try:
            return run(self._perform(verb, scope, arguments))
        except TYPE_ERRORS as error:
            run(_raise_if_corrupt(self.engine.store, error))
            raise

    async def _acall(self, verb: str, scope: ScopeTuple = (), **arguments: Any) -> Any:
        """Run a verb without blocking the event loop."""
        try:
            return await arun(self._perform(verb, scope, arguments))
        except TYPE_ERRORS as error:
            await arun(_raise_if_corrupt(self.engine.store, error))
            raise

    def _perform(self, verb: str, scope: ScopeTuple, arguments: dict[str, Any]) -> Flow[Any]:
        """Run a verb's flow; `add` wakes the worker and `reindex` changes the embedder."""
        if verb == "reindex" and arguments["embedder"] is not None:
            return (yield from self._reindex(arguments["embedder"]))
        ids = dict(zip(SCOPE_NAMES, scope, strict=False))
        result = yield from call_verb(self.engine, VERBS[verb], {**arguments, **ids})
        if verb == "add" and self._has_deferred_work(result):
            self._worker.wake()
        return result

    def _reindex(self, embedder: Any) -> Flow[Any]:
        """Reindex with another embedder and use it from then on."""
        engine = replace(self.engine, embedder=open_embedder(embedder, self.engine.store))
        result = yield from call_verb(engine, VERBS["reindex"], {"embedder": None})
        self._engine = engine
        return result

    def _has_deferred_work(self, receipt: Mapping[str, Any]) -> bool:
        is_pending = receipt.get("extraction") == PENDING and self.engine.extraction.is_remote
        return is_pending or self._judges_importance

    def close(self) -> None:
        """Flush the access log and close the store; closing twice is allowed."""
        if self._engine is not None:
            self._worker.stop(self._engine.settings.close_wait)
            self._sweeper.stop(self._engine.settings.close_wait)
            run(self._engine.flush_accesses())
            self._engine.store.close()
            self._engine = None

    def _catch_up(self) -> bool:
        """Run deferred jobs; return whether none is left."""
        try:
            return self._engine is None or not run(self._run_due_jobs(self._engine))
        except StoreClosed:
            return True

    def _run_due_jobs(self, engine: Engine) -> Flow[bool]:
        """Extract if enough evidence is pending, judge importance; return whether either failed."""
        failed = False
        if (yield from engine.is_extraction_due()):
            failed = (yield from engine.extract_pending()).failure is not None
        judgement = yield from engine.judge_importance(full=True)
        return failed or judgement.failure is not None

    def _sweep(self) -> bool:
        """Consolidate the account; return whether it succeeded."""
        return self._engine is None or not isinstance(
            run(catch_failure(self._engine.consolidate({}))), Failure
        )


def call_verb(engine: Engine, verb: Verb, arguments: Mapping[str, Any]) -> Flow[Any]:
    """Run a verb on an engine with its arguments by name, and serialise the result."""
    options = {name: value for name, value in arguments.items() if value is not UNSET}
    if verb.is_scoped:
        options["ids"] = {name: options.pop(name, None) for name in SCOPE_NAMES}
    return verb.serialize((yield from getattr(engine, verb.name)(**options)))


def _open_store_and_embedder(
    settings: Settings, embedder: Any, mint: IdGenerator | None
) -> tuple[Store, Embedder | None]:
    """Open the store and bind it to an embedder; close it again if that fails."""
    store = open_store(settings, mint)
    try:
        opened = open_embedder(embedder, store)
        if opened is not None:
            store.bind_model(opened.model, opened.dim)
    except BaseException:
        store.close()
        raise
    return store, opened


def _raise_if_corrupt(store: Store, error: Exception) -> Flow[None]:
    """Raise `StoreCorrupt` if a row holds a value of the wrong type."""
    type_errors = yield from call(store.check_integrity, types_only=True)
    if type_errors:
        raise StoreCorrupt(
            f"The store's file is damaged: {type_errors[0]}.", hint="Run `told verify` for details."
        ) from error


def _build_hot_buffers(settings: Settings) -> HotBuffers:
    """Return the hot buffers with the access log that they flush to."""
    access_log = AccessBuffer(
        settings.maintenance.recalls_kept,
        settings.maintenance.reconsolidate_window,
        enqueue=settings.reconsolidate,
    )
    return HotBuffers(settings.ranking.hot_size, settings.maintenance.access_flush, access_log)


def _build_extraction(
    llm: LLM | None,
    meter: UsageMeter,
    ontology: Any,
    prompts: Mapping[str, str],
    settings: Settings,
) -> ExtractionConfig:
    """Build the extraction config with metered models."""
    all_kinds, usable_kinds = kinds.resolve_ontology(ontology, settings)
    echoes = EchoFilter(settings.ingestion.echo_lines)
    _check_prompts(prompts)
    vault = load_plugin(VAULT_GROUP, "keyed")() if settings.secrets == "encrypt" else None
    metered_llms = [
        None if llm is None else wrap_with_meter(llm, meter, name)
        for name in ("extract", "curate", "tend")
    ]
    extraction = ExtractionConfig(
        settings, metered_llms[0], metered_llms[1], prompts, all_kinds, usable_kinds, echoes, vault
    )
    return replace(extraction, maintenance_llm=metered_llms[2])


def _check_prompts(prompts: Any) -> None:
    if not isinstance(prompts, Mapping):
        raise ConfigError(
            f"prompts must be a mapping, not {format_value(prompts)}.",
            hint='Such as {"facts": "Note …"}.',
        )
    for name, text in prompts.items():
        if name not in (*EXTRACTOR_NAMES, CURATE):
            raise ConfigError(
                f"There is no prompt {format_value(name)}.",
                hint=f"There are: {', '.join((*EXTRACTOR_NAMES, CURATE))}.",
            )
        if not isinstance(text, str):
            raise ConfigError(f"The prompt {name} must be text, not {format_value(text)}.")


def _parse_subscriptions(subscribes: Any) -> tuple[str, ...]:
    """Return the checked names of the kinds subscribed to; a single name is allowed."""
    given = [subscribes] if isinstance(subscribes, str) else subscribes
    if not isinstance(given, list | tuple):
        hint = 'Such as ["profile", "event"]; leave it out for all.'
        raise ConfigError(
            f"subscribes must be a list of kinds, not {format_value(subscribes)}.", hint=hint
        )
    return tuple(validate_label(kind, "A kind subscribed to", limit=ID_LIMIT) for kind in given)


def _wrap_guard(guard: Callable[[dict[str, Any]], bool | str]) -> Guard:
    """Wrap a guard so that it gets memories as dictionaries."""
    if not callable(guard):
        raise ConfigError(f"guard must be a function, not {format_value(guard)}.", hint=GUARD_HINT)

    def deny(fact: Fact) -> str | None:
        decision = guard(serialize.fact_to_dict(fact))
        if decision is True:
            return None
        if decision is False or (isinstance(decision, str) and decision):
            return decision or "denied"
        raise InvalidInput(f"The guard returned {format_value(decision)}.", hint=GUARD_HINT)

    return deny


def _reject_unsupported(**parts: Any) -> None:
    """Raise if a part is given that this version does not support."""
    given = [name for name, value in parts.items() if value not in (None, "auto", "none")]
    if given:
        raise ConfigError(
            f"This version of told has no {given[0]} yet.", hint=f"Leave {given[0]} out."
        )
