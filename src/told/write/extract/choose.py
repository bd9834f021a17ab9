"""Extractors by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from told.core.errors import ConfigError
from told.core.kind import Ontology
from told.core.scope import Scope
from told.ports import LLM, ToolLLM
from told.settings import Settings
from told.write.extract.apertures import DEEP, EXHAUSTIVE, SINGLE, ApertureExtractor
from told.write.extract.closed import ClosedExtractor, list_extractable_kinds
from told.write.extract.facts import FactsExtractor
from told.write.extract.graph import GraphExtractor, LocalGraphExtractor
from told.write.extract.items import SentenceReader, read_nothing
from told.write.extract.names import build_unknown_error
from told.write.extract.react import ReactExtractor
from told.write.extract.settle import GroundingOptions
from told.write.extract.shelf import MemoryReader
from told.write.extract.verbatim import VerbatimExtractor
from told.write.shape import Extractor

APERTURE_MODES: Final = {"apertures": SINGLE, "exhaustive": EXHAUSTIVE, "deep": DEEP}


def build_extractor(
    name: str,
    llm: LLM | None,
    settings: Settings,
    ontology: Ontology,
    local: Extractor,
    *,
    reader: SentenceReader = read_nothing,
    memory_reader: Callable[[Scope], MemoryReader] | None = None,
) -> Extractor:
    """The extractor of this name; `closed` and `graph` make do without a model, the others of a model's do not."""
    options = GroundingOptions(strict=settings.grounding == "strict")
    if name in ("closed", "react") and not list_extractable_kinds(ontology):
        hint = "Give one with kinds that are enabled and not system kinds."
        raise ConfigError(
            f"The extractor {name!r} needs an ontology with something to extract.", hint=hint
        )
    match name:
        case "verbatim":
            return VerbatimExtractor()
        case "local":
            return local
        case "closed":
            return ClosedExtractor(
                llm, local, reader, options, settings.extract_replies, settings.extract_items
            )
        case "graph":
            return (
                LocalGraphExtractor(local)
                if llm is None
                else GraphExtractor(llm, settings.extract_items)
            )
        case "facts":
            return FactsExtractor(_require_llm(llm, name), reader, options, settings.extract_items)
        case "apertures" | "exhaustive" | "deep":
            return ApertureExtractor(
                _require_llm(llm, name),
                APERTURE_MODES[name],
                settings.extract_passes,
                settings.extract_prior,
                reader,
                options,
                settings.extract_items,
            )
        case "react":
            return ReactExtractor(
                _require_tools(_require_llm(llm, name)),
                memory_reader,
                settings.extract_rounds,
                reader,
                options,
            )
    raise build_unknown_error(name)


def _require_llm(llm: LLM | None, name: str) -> LLM:
    if llm is None:
        hint = (
            'Give one with Memory(llm=...), or use "local", "closed" or "graph", which need none.'
        )
        raise ConfigError(f"The extractor {name!r} needs a language model.", hint=hint)
    return llm


def _require_tools(llm: LLM) -> ToolLLM:
    if not isinstance(llm, ToolLLM):
        hint = 'Use a model with a tools() method, or the extractor "facts".'
        raise ConfigError(
            f"The extractor 'react' needs a model that can use tools; {llm.model} cannot.",
            hint=hint,
        )
    return llm
