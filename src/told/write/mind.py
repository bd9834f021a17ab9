"""What understands what is said: the extractors and curators there are, and the kinds they know.

They are a third of told and are loaded when one of them is asked: who keeps words as they are needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from told.core.echo import EchoFilter
from told.core.entry import Claim, Evidence
from told.core.errors import InvalidInput
from told.core.kind import Ontology, load_builtin_ontology
from told.core.scope import Scope
from told.core.text import format_value
from told.core.value import fast_frozen_init
from told.flow import run
from told.ports import LLM, Embedder, Store, Vault
from told.settings import Settings
from told.write.alone import Mutex
from told.write.extract.names import EXTRACTOR_NAMES, build_unknown_error
from told.write.messages import InputTurn
from told.write.shape import Curator, ExtractionInput, Extractor

VERBATIM, LOCAL, FACTS, CLOSED, CURATE = "verbatim", "local", "facts", "closed", "curate"


@fast_frozen_init
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
        from told.write.extract.choose import build_extractor
        from told.write.extract.shelf import StoreMemoryReader
        from told.write.local import LocalExtractor

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
        from told.write.curate.model import ModelCurator
        from told.write.curate.rules import RuleCurator
        from told.write.extract.closed import ClosedExtractor
        from told.write.extract.react import ReactExtractor

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
    from told.write.local import LocalExtractor

    inputs = ExtractionInput((InputTurn(Evidence(sentence), {}),), 0, _PARSING_SCOPE)
    claims = run(LocalExtractor().extract(inputs)).claims
    return claims[0].claim if len(claims) == 1 else None
