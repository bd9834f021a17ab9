"""What understands what is said: the extractors and curators there are, and the kinds they know.

They are a third of told and are loaded when one of them is asked: who keeps words as they are needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from told.core.echo import Echoes
from told.core.entry import Claim, Evidence
from told.core.errors import InvalidInput
from told.core.kind import Ontology, builtin
from told.core.scope import Scope
from told.core.text import shown
from told.core.value import quick
from told.flow import run
from told.ports import LLM, Embedder, Store, Vault
from told.settings import Settings
from told.write.alone import Turnstile
from told.write.extract.names import NAMES, unknown
from told.write.messages import Turn
from told.write.shape import Curator, Extractor, Heard

VERBATIM, LOCAL, FACTS, CLOSED, CURATE = "verbatim", "local", "facts", "closed", "curate"

@quick
@dataclass(frozen=True, slots=True)
class Ask:
    """How a write wants to be understood: by which extractor, with which prompt, from which facts, now or later."""

    by: str = VERBATIM
    prompt: str | None = None
    facts: tuple[Any, ...] = ()
    later: bool = False


@dataclass(frozen=True, slots=True)
class Mind:
    """A language model, if there is one, and the kinds: all there are, and those extraction may use.

    `curating` is the model that decides what becomes of facts, the same unless said; `prompts` take the place of told's
    own, by the name of the extractor, or `curate`.
    """

    settings: Settings
    llm: LLM | None = None
    curating: LLM | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    ontology: Ontology = field(default_factory=builtin)
    catalogue: Ontology = field(default_factory=builtin)
    echoes: Echoes = field(default_factory=Echoes)
    vault: Vault | None = None
    alone: Turnstile = field(default_factory=Turnstile)
    tending: LLM | None = None

    @property
    def thinking(self) -> LLM | None:
        """The model that is asked about what was said long after it was: to judge it, and to shorten it."""
        return self.tending or self.llm

    @property
    def usual(self) -> str:
        """The extractor used unless a call names another."""
        chosen = self.settings.extract
        return (FACTS if self.llm is not None else LOCAL) if chosen == "auto" else chosen

    @property
    def remote(self) -> bool:
        """Whether the model works over a network, so that it is asked after the write has returned."""
        return self.llm is not None and not getattr(self.llm, "local", True)

    def ask(self, by: Any = None, *, prompt: Any = None, facts: Any = None, later: Any = None) -> Ask:
        """How a write is to be understood, checked; with nothing said, by the usual extractor."""
        chosen = self.usual if by is None else by
        if not isinstance(chosen, str) or chosen not in NAMES:
            raise unknown(chosen)
        if prompt is not None and (not isinstance(prompt, str) or not prompt.strip()):
            raise InvalidInput(f"prompt must be a text, not {shown(prompt)}.", hint="Leave it out for told's own.")
        given = () if facts is None else facts
        if not isinstance(given, list | tuple):
            raise InvalidInput(f"facts must be a list, not {shown(facts)}.", hint='Such as ["User likes tea"].')
        put_off = chosen not in (VERBATIM, LOCAL) and self.remote if later is None else later
        return Ask(chosen, prompt or self.prompts.get(chosen), tuple(given), bool(put_off))

    def extractor(self, name: str, store: Store, now: Callable[[], int]) -> Extractor:
        """The extractor of a name."""
        from told.write.extract.choose import extractor_of
        from told.write.extract.shelf import StoreShelf
        from told.write.local import LocalExtractor

        def shelf(scope: Scope) -> StoreShelf:
            return StoreShelf(store, scope, now())

        rules = LocalExtractor()
        return extractor_of(name, self.llm, self.settings, self.catalogue, rules, reader=read, shelf=shelf)

    def curator(self, extractor: Extractor, store: Store, embedder: Embedder | None) -> Curator:
        """Who decides about what an extractor found: rules about what rules and kinds say, the model about the rest.

        The claims of some extractors are of kinds that say themselves how they are written: no model is asked twice.
        """
        from told.write.curate.model import ModelCurator
        from told.write.curate.rules import RuleCurator
        from told.write.extract.closed import ClosedExtractor
        from told.write.extract.react import ReactExtractor

        ruled = extractor.local or isinstance(extractor, ClosedExtractor | ReactExtractor)
        by_model = self.settings.curate == "model" or (self.settings.curate == "auto" and not ruled)
        llm = self.curating or self.llm
        if not by_model or llm is None:
            return RuleCurator(store, self.settings)
        return ModelCurator(llm, store, self.settings, embedder, self.prompts.get(CURATE))


_NOWHERE = Scope("reading", user_id="reading")


def read(sentence: str) -> Claim | None:
    """A sentence in the third person as a claim, if it says one thing that rules can read."""
    from told.write.local import LocalExtractor

    heard = Heard((Turn(Evidence(sentence), {}),), 0, _NOWHERE)
    found = run(LocalExtractor().extract(heard)).claims
    return found[0].claim if len(found) == 1 else None
