"""An opened memory: the store, the models beside it and the engine over them, whichever colour calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from told.core.echo import Echoes
from told.core.errors import ConfigError, InvalidInput, StoreClosed, StoreCorrupt
from told.core.fact import Fact
from told.core.ids import Mint
from told.core.scope import ID_LIMIT, Caller, identifier
from told.core.text import label, shown
from told.engine import Engine
from told.faces import config, kinds, shapes
from told.faces.worker import Worker
from told.flow import Flow, arun, call, run
from told.ledger.consume import Failure, attempt
from told.open import open_embedder, open_readers, open_reranker, open_store, plugin
from told.open.around import Meter, metered
from told.open.llm import open_llm
from told.ports import LLM, Embedder, Store
from told.read.cache import Overlay
from told.read.guard import Guard
from told.read.recalling import Recalls
from told.settings import Settings, load
from told.write.extract.names import NAMES
from told.write.mind import CURATE, Mind
from told.write.path import PENDING

T = TypeVar("T")
VAULTS = "told.vaults"
ASKED = "A guard takes a memory and answers True to show it, False or a reason not to."

STUMBLED: Final = (TypeError, AttributeError)
"""What becomes of a verb that meets a value where none of its type can be."""


class Opened:
    """What both colours share: opening, closing and the engine in between."""

    def __init__(
        self, store: str | None = None, *, embedder: Any = None, llm: Any = None, index: Any = None, graph: Any = None,
        ontology: Any = None, prompts: Mapping[str, str] | None = None, reranker: Any = None, reader: Any = None,
        guard: Callable[[dict[str, Any]], bool | str] | None = None, subscribes: Sequence[str] = (),
        settings: Settings | None = None, account: str | None = None, mint: Mint | None = None, **knobs: Any,
    ) -> None:  # fmt: skip
        """Open a memory; with no argument, the user's own durable store and the best embedder that is installed.

        `llm` extracts facts and decides what becomes of them, `ontology` holds kinds of your own, `prompts` takes the
        place of told's prompts by the name of the extractor, or `curate`.
        `reranker` judges the best hits of `search(rerank=True)`. `guard` is asked about every memory before it is
        shown: True shows it, False or a reason does not. `subscribes` names the kinds that are shown, all by default.
        `reader` reads images: a name, an object with `read(image, media_type)` or a function of the two.
        """
        _refuse(index=index, graph=graph)
        if not isinstance(settings, Settings | None):
            raise ConfigError(f"settings must be a told.Settings, not {shown(settings)}.")
        chosen = load(store=store, account=account, **knobs).settings if settings is None else settings.replace(
            store=store, account=account, **knobs
        )  # fmt: skip
        caller = Caller(account=identifier(chosen.account, "account"), subscribes=_kinds(subscribes))
        judge, guards = open_reranker(reranker), () if guard is None else (_asking(guard),)
        meter, model = Meter(), open_llm(chosen.llm if llm is None else llm, chosen)
        mind = _mind(model, meter, ontology, {} if prompts is None else prompts, chosen)
        readers = open_readers(chosen.reader if reader is None else reader, model, timeout=chosen.read_timeout)
        opened = open_store(chosen, mint)
        try:
            found = open_embedder(chosen.embedder if embedder is None else embedder, opened)
            if found is not None:
                opened.use_model(found.model, found.dim)
        except BaseException:
            opened.close()
            raise
        recalls = Recalls(chosen.recalls_kept, chosen.reconsolidate_window, queued=chosen.reconsolidate)
        overlay = Overlay(chosen.hot_size, chosen.access_flush, recalls)
        self._engine: Engine | None = Engine(
            opened, chosen, found, caller, overlay, judge, guards, mind, meter, readers
        )
        self._worker = Worker(self._catch_up)
        self._sweeper = Worker(self._sweep, chosen.sweep_seconds)
        self._judging = chosen.judge and mind.llm is not None
        if mind.remote or self._judging:
            self._worker.wake()
        if chosen.sweep:
            self._sweeper.wake()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open a memory from a nested configuration such as `{"vector_store": {...}, "embedder": {...}}`."""
        return cls(**config.arguments(config_dict))

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

    def _adopt(self, embedder: Any) -> Engine:
        """The engine, ready to be bound to another embedder."""
        engine = self.engine
        return engine if embedder is None else replace(engine, embedder=open_embedder(embedder, engine.store))

    def _run(self, flow: Flow[T]) -> T:
        """Do what a verb says, and block until it is done."""
        try:
            return run(flow)
        except STUMBLED as error:
            run(_blame_the_file(self.engine.store, error))
            raise

    async def _arun(self, flow: Flow[T]) -> T:
        """Do what a verb says without blocking the event loop."""
        try:
            return await arun(flow)
        except STUMBLED as error:
            await arun(_blame_the_file(self.engine.store, error))
            raise

    def close(self) -> None:
        """Write down what was recalled and release the store; closing twice is fine."""
        if self._engine is not None:
            self._worker.rest(self._engine.settings.close_wait)
            self._sweeper.rest(self._engine.settings.close_wait)
            run(self._engine.flush())
            self._engine.store.close()
            self._engine = None

    def _catch_up(self) -> bool:
        """Do what was put off; whether nothing is left to do."""
        try:
            return self._engine is None or not run(self._due(self._engine))
        except StoreClosed:
            return True

    def _due(self, engine: Engine) -> Flow[bool]:
        """Do what was put off, once it is enough to be worth a question; whether some of it failed."""
        failed = (yield from engine.enough()) and (yield from engine.catch_up()).failure is not None
        judged = yield from engine.judge(full=True)
        return failed or judged.failure is not None

    def _sweep(self) -> bool:
        """Consolidate everything; whether that went well. What one conversation suffers is a fault of its own."""
        return self._engine is None or not isinstance(run(attempt(self._engine.consolidate({}))), Failure)

    def _put_off(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """A receipt; where a model far away is still to be asked, somebody begins to."""
        if (receipt.get("extraction") == PENDING and self.engine.mind.remote) or self._judging:
            self._worker.wake()
        return receipt


def _blame_the_file(store: Store, error: Exception) -> Flow[None]:
    """Raise that the store is damaged, if a verb failed because a row holds what cannot be there."""
    found = yield from call(store.mistyped)
    if found:
        raise StoreCorrupt(f"The store's file is damaged: {found[0]}.", hint="`told verify` says more.") from error


def _mind(
    llm: LLM | None, meter: Meter, ontology: Any, prompts: Mapping[str, str], settings: Settings
) -> Mind:
    """What understands what is said, with each question to a model counted."""
    everything, catalogue = kinds.ontology(ontology, settings)
    echoes = Echoes(settings.echo_lines)
    _check_prompts(prompts)
    vault = plugin(VAULTS, "keyed")() if settings.secrets == "encrypt" else None
    parts = [None if llm is None else metered(llm, meter, name) for name in ("extract", "curate", "tend")]
    mind = Mind(settings, parts[0], parts[1], prompts, everything, catalogue, echoes, vault)
    return replace(mind, tending=parts[2])


def _check_prompts(prompts: Any) -> None:
    if not isinstance(prompts, Mapping):
        raise ConfigError(f"prompts must be a mapping, not {shown(prompts)}.", hint='Such as {"facts": "Note …"}.')
    for name, text in prompts.items():
        if name not in (*NAMES, CURATE):
            raise ConfigError(f"There is no prompt {shown(name)}.", hint=f"There are: {', '.join((*NAMES, CURATE))}.")
        if not isinstance(text, str):
            raise ConfigError(f"The prompt {name} must be text, not {shown(text)}.")


def _kinds(subscribes: Any) -> tuple[str, ...]:
    """The kinds subscribed to; one may stand alone."""
    given = [subscribes] if isinstance(subscribes, str) else subscribes
    if not isinstance(given, list | tuple):
        hint = 'Such as ["profile", "event"]; leave it out for all.'
        raise ConfigError(f"subscribes must be a list of kinds, not {shown(subscribes)}.", hint=hint)
    return tuple(label(kind, "A kind subscribed to", limit=ID_LIMIT) for kind in given)


def _asking(guard: Callable[[dict[str, Any]], bool | str]) -> Guard:
    """A guard of the caller's own, asked about a memory as every face shows it."""
    if not callable(guard):
        raise ConfigError(f"guard must be a function, not {shown(guard)}.", hint=ASKED)

    def deny(fact: Fact) -> str | None:
        verdict = guard(shapes.item(fact))
        if verdict is True:
            return None
        if verdict is False or (isinstance(verdict, str) and verdict):
            return verdict or "denied"
        raise InvalidInput(f"The guard answered {shown(verdict)}.", hint=ASKED)

    return deny


def _refuse(**parts: Any) -> None:
    """Say plainly which parts this version cannot use yet, rather than ignore them."""
    given = [name for name, value in parts.items() if value not in (None, "auto", "none")]
    if given:
        raise ConfigError(f"This version of told has no {given[0]} yet.", hint=f"Leave {given[0]} out.")
