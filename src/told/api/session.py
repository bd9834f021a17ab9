"""An opened memory: the store, the models beside it and the engine over them, whichever colour calls it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from told.api import config, kinds, serialize
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
from told.runtime import at_fork
from told.settings import Settings, load_settings
from told.text.echo import EchoFilter
from told.text.tokens import format_value, validate_label

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class BackgroundWorker:
    """Does a piece of work whenever it is woken, and again after a growing pause for as long as it fails."""

    def __init__(self, work: Callable[[], bool], interval_seconds: float | None = None) -> None:
        """`work` does all there is to do and says whether nothing is left; it is done `every` so many seconds too."""
        self._work = work
        self._interval_seconds = interval_seconds
        self._closed = False
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing to do and no thread, as a child process does: its parent keeps its own."""
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._has_work = False

    def wake(self) -> None:
        """Say that there is something to do; the first time starts the thread."""
        with self._condition:
            if self._closed:
                return
            self._has_work = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="told-worker", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def stop(self, seconds: float) -> bool:
        """Finish what there is to do, for at most this long; whether it was finished. Nothing new is begun."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while self._wait_for_work():
            if self._work():
                pause = FIRST_PAUSE
                continue
            with self._condition:
                if self._closed:
                    return
                self._condition.wait(pause)
                self._has_work, pause = True, min(pause * 2, LONGEST_PAUSE)

    def _wait_for_work(self) -> bool:
        """Wait until there is something to do; False when there never will be."""
        with self._condition:
            while not self._has_work and not self._closed:
                notified = self._condition.wait(self._interval_seconds)
                self._has_work = self._has_work or not notified
            has_work, self._has_work = self._has_work, False
            return has_work


T = TypeVar("T")
VAULT_GROUP = "told.vaults"
GUARD_HINT = "A guard takes a memory and answers True to show it, False or a reason not to."

TYPE_ERRORS: Final = (TypeError, AttributeError)
"""What becomes of a verb that meets a value where none of its type can be."""


class Opened:
    """What both colours share: opening, closing and the engine in between."""

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
        """Open a memory; with no argument, the user's own durable store and the best embedder that is installed.

        `llm` extracts facts and decides what becomes of them, `ontology` holds kinds of your own, `prompts` takes the
        place of told's prompts by the name of the extractor, or `curate`.
        `reranker` judges the best hits of `search(rerank=True)`. `guard` is asked about every memory before it is
        shown: True shows it, False or a reason does not. `subscribes` names the kinds that are shown, all by default.
        `reader` reads images: a name, an object with `read(image, media_type)` or a function of the two.
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
        opened_reranker, guards = (
            open_reranker(reranker),
            () if guard is None else (_wrap_guard(guard),),
        )
        meter, model = UsageMeter(), open_llm(resolved.llm if llm is None else llm, resolved)
        extraction = _build_extraction(
            model, meter, ontology, {} if prompts is None else prompts, resolved
        )
        readers = open_readers(
            resolved.reader if reader is None else reader, model, timeout=resolved.read_timeout
        )
        opened_store = open_store(resolved, mint)
        try:
            opened_embedder = open_embedder(
                resolved.embedder if embedder is None else embedder, opened_store
            )
            if opened_embedder is not None:
                opened_store.bind_model(opened_embedder.model, opened_embedder.dim)
        except BaseException:
            opened_store.close()
            raise
        access_log = AccessBuffer(
            resolved.recalls_kept, resolved.reconsolidate_window, enqueue=resolved.reconsolidate
        )
        hot_buffers = HotBuffers(resolved.hot_size, resolved.access_flush, access_log)
        self._engine: Engine | None = Engine(
            opened_store,
            resolved,
            opened_embedder,
            caller,
            hot_buffers,
            opened_reranker,
            guards,
            extraction,
            meter,
            readers,
        )
        self._worker = BackgroundWorker(self._catch_up)
        self._sweeper = BackgroundWorker(self._sweep, resolved.sweep_seconds)
        self._judges_importance = resolved.judge and extraction.llm is not None
        if extraction.is_remote or self._judges_importance:
            self._worker.wake()
        if resolved.sweep:
            self._sweeper.wake()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open a memory from a nested configuration such as `{"vector_store": {...}, "embedder": {...}}`."""
        return cls(**config.parse_config(config_dict))

    @property
    def engine(self) -> Engine:
        """The engine underneath."""
        if self._engine is None:
            raise StoreClosed()
        return self._engine

    @property
    def embedder(self) -> Embedder | None:
        """The embedder in use."""
        return self.engine.embedder

    def _engine_with_embedder(self, embedder: Any) -> Engine:
        """The engine, ready to be bound to another embedder."""
        engine = self.engine
        return (
            engine
            if embedder is None
            else replace(engine, embedder=open_embedder(embedder, engine.store))
        )

    def _run(self, flow: Flow[T]) -> T:
        """Do what a verb says, and block until it is done."""
        try:
            return run(flow)
        except TYPE_ERRORS as error:
            run(_raise_if_corrupt(self.engine.store, error))
            raise

    async def _arun(self, flow: Flow[T]) -> T:
        """Do what a verb says without blocking the event loop."""
        try:
            return await arun(flow)
        except TYPE_ERRORS as error:
            await arun(_raise_if_corrupt(self.engine.store, error))
            raise

    def close(self) -> None:
        """Write down what was recalled and release the store; closing twice is fine."""
        if self._engine is not None:
            self._worker.stop(self._engine.settings.close_wait)
            self._sweeper.stop(self._engine.settings.close_wait)
            run(self._engine.flush_accesses())
            self._engine.store.close()
            self._engine = None

    def _catch_up(self) -> bool:
        """Do what was put off; whether nothing is left to do."""
        try:
            return self._engine is None or not run(self._run_due_jobs(self._engine))
        except StoreClosed:
            return True

    def _run_due_jobs(self, engine: Engine) -> Flow[bool]:
        """Do what was put off, once it is enough to be worth a question; whether some of it failed."""
        failed = (yield from engine.enough()) and (yield from engine.catch_up()).failure is not None
        judgement = yield from engine.judge(full=True)
        return failed or judgement.failure is not None

    def _sweep(self) -> bool:
        """Consolidate everything; whether that went well. What one conversation suffers is a fault of its own."""
        return self._engine is None or not isinstance(
            run(catch_failure(self._engine.consolidate({}))), Failure
        )

    def _wake_worker_if_pending(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """A receipt; where a model far away is still to be asked, somebody begins to."""
        if (
            receipt.get("extraction") == PENDING and self.engine.extraction.is_remote
        ) or self._judges_importance:
            self._worker.wake()
        return receipt


def _raise_if_corrupt(store: Store, error: Exception) -> Flow[None]:
    """Raise that the store is damaged, if a verb failed because a row holds what cannot be there."""
    type_errors = yield from call(store.check_integrity, types_only=True)
    if type_errors:
        raise StoreCorrupt(
            f"The store's file is damaged: {type_errors[0]}.", hint="`told verify` says more."
        ) from error


def _build_extraction(
    llm: LLM | None,
    meter: UsageMeter,
    ontology: Any,
    prompts: Mapping[str, str],
    settings: Settings,
) -> ExtractionConfig:
    """What understands what is said, with each question to a model counted."""
    all_kinds, usable_kinds = kinds.resolve_ontology(ontology, settings)
    echoes = EchoFilter(settings.echo_lines)
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
    """The kinds subscribed to; one may stand alone."""
    given = [subscribes] if isinstance(subscribes, str) else subscribes
    if not isinstance(given, list | tuple):
        hint = 'Such as ["profile", "event"]; leave it out for all.'
        raise ConfigError(
            f"subscribes must be a list of kinds, not {format_value(subscribes)}.", hint=hint
        )
    return tuple(validate_label(kind, "A kind subscribed to", limit=ID_LIMIT) for kind in given)


def _wrap_guard(guard: Callable[[dict[str, Any]], bool | str]) -> Guard:
    """A guard of the caller's own, asked about a memory as every face shows it."""
    if not callable(guard):
        raise ConfigError(f"guard must be a function, not {format_value(guard)}.", hint=GUARD_HINT)

    def deny(fact: Fact) -> str | None:
        decision = guard(serialize.fact_to_dict(fact))
        if decision is True:
            return None
        if decision is False or (isinstance(decision, str) and decision):
            return decision or "denied"
        raise InvalidInput(f"The guard answered {format_value(decision)}.", hint=GUARD_HINT)

    return deny


def _reject_unsupported(**parts: Any) -> None:
    """Say plainly which parts this version cannot use yet, rather than ignore them."""
    given = [name for name, value in parts.items() if value not in (None, "auto", "none")]
    if given:
        raise ConfigError(
            f"This version of told has no {given[0]} yet.", hint=f"Leave {given[0]} out."
        )
