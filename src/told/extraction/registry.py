"""Build extractors by name.

Extractor modules are imported when first built, so that importing this module stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from told.errors import ConfigError
from told.flow import Flow
from told.ingest.messages import InputTurn
from told.ingest.types import ExtractedClaim, ExtractionInput, ExtractionResult, Extractor
from told.model.entry import Claim
from told.model.kind import Ontology
from told.model.scope import Scope
from told.ports import LLM, ToolLLM
from told.settings import Settings
from told.text.tokens import format_value

if TYPE_CHECKING:
    from told.extraction.react import MemoryReader
    from told.extraction.replies import SentenceReader

EXTRACTOR_NAMES: Final = (
    "verbatim",
    "local",
    "facts",
    "closed",
    "apertures",
    "exhaustive",
    "deep",
    "react",
    "graph",
)


def build_unknown_error(name: object) -> ConfigError:
    """Build the error for an unknown extractor name."""
    close_matches = get_close_matches(name, EXTRACTOR_NAMES, 1) if isinstance(name, str) else []
    hint = (
        f"Did you mean {close_matches[0]!r}?"
        if close_matches
        else f"Available: {', '.join(EXTRACTOR_NAMES)}."
    )
    return ConfigError(f"Unknown extractor {format_value(name)}.", hint=hint)


@dataclass(frozen=True, slots=True)
class VerbatimExtractor:
    """An extractor that makes no claims, so turns are kept verbatim."""

    name: str = "verbatim"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:  # noqa: ARG002
        """Return no claims."""
        return ExtractionResult()
        yield  # makes this a generator


@dataclass(frozen=True, slots=True)
class KindExtractor:
    """An extractor that makes every turn one memory of a kind."""

    kind: str
    name: str = "user"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return one claim per turn with content."""
        numbered_turns = (
            (number, turn) for number, turn in enumerate(inputs.turns) if turn.evidence.content
        )
        return ExtractionResult(
            tuple(
                ExtractedClaim(_turn_to_claim(turn, self.kind), number)
                for number, turn in numbered_turns
            )
        )
        yield  # makes this a generator


def _turn_to_claim(turn: InputTurn, kind: str) -> Claim:
    evidence = turn.evidence
    return Claim(
        evidence.content,
        kind,
        valid=turn.valid,
        span=(0, len(evidence.content)),
        role=evidence.role,
        actor=evidence.name,
        said_at=evidence.said_at,
        source=evidence.source,
    )


def build_extractor(
    name: str,
    llm: LLM | None,
    settings: Settings,
    ontology: Ontology,
    local: Extractor,
    *,
    reader: SentenceReader | None = None,
    memory_reader: Callable[[Scope], MemoryReader] | None = None,
) -> Extractor:
    """Build the extractor with this name.

    `closed` and `graph` work without a model; the other model extractors raise `ConfigError`.
    """
    match name:
        case "verbatim":
            return VerbatimExtractor()
        case "local":
            return local
        case "closed":
            return _build_closed(llm, settings, ontology, local, reader)
        case "react":
            return _build_react(llm, settings, ontology, reader, memory_reader)
        case "graph":
            return _build_graph(llm, settings, local)
        case "facts":
            return _build_facts(llm, settings, reader)
        case "apertures" | "exhaustive" | "deep":
            return _build_apertures(name, llm, settings, reader)
    raise build_unknown_error(name)


def _build_closed(
    llm: LLM | None,
    settings: Settings,
    ontology: Ontology,
    local: Extractor,
    reader: SentenceReader | None,
) -> Extractor:
    from told.extraction.closed_world import ClosedExtractor
    from told.extraction.replies import GroundingOptions, read_nothing

    _require_kinds(ontology, "closed")
    return ClosedExtractor(
        llm,
        local,
        reader or read_nothing,
        GroundingOptions(strict=settings.grounding == "strict"),
        settings.ingestion.extract_replies,
        settings.ingestion.extract_items,
    )


def _build_react(
    llm: LLM | None,
    settings: Settings,
    ontology: Ontology,
    reader: SentenceReader | None,
    memory_reader: Callable[[Scope], MemoryReader] | None,
) -> Extractor:
    from told.extraction.react import ReactExtractor
    from told.extraction.replies import GroundingOptions, read_nothing

    _require_kinds(ontology, "react")
    return ReactExtractor(
        _require_tools(_require_llm(llm, "react")),
        memory_reader,
        settings.ingestion.extract_rounds,
        reader or read_nothing,
        GroundingOptions(strict=settings.grounding == "strict"),
    )


def _build_graph(llm: LLM | None, settings: Settings, local: Extractor) -> Extractor:
    from told.extraction.graph import GraphExtractor, LocalGraphExtractor

    if llm is None:
        return LocalGraphExtractor(local)
    return GraphExtractor(llm, settings.ingestion.extract_items)


def _build_facts(llm: LLM | None, settings: Settings, reader: SentenceReader | None) -> Extractor:
    from told.extraction.llm import FactsExtractor
    from told.extraction.replies import GroundingOptions, read_nothing

    return FactsExtractor(
        _require_llm(llm, "facts"),
        reader or read_nothing,
        GroundingOptions(strict=settings.grounding == "strict"),
        settings.ingestion.extract_items,
    )


def _build_apertures(
    name: str, llm: LLM | None, settings: Settings, reader: SentenceReader | None
) -> Extractor:
    from told.extraction.apertures import SINGLE, ApertureExtractor
    from told.extraction.replies import GroundingOptions, read_nothing

    return ApertureExtractor(
        _require_llm(llm, name),
        SINGLE if name == "apertures" else name,
        settings.ingestion.extract_passes,
        settings.ingestion.extract_prior,
        reader or read_nothing,
        GroundingOptions(strict=settings.grounding == "strict"),
        settings.ingestion.extract_items,
    )


def _require_kinds(ontology: Ontology, name: str) -> None:
    from told.extraction.closed_world import list_extractable_kinds

    if not list_extractable_kinds(ontology):
        hint = "Define at least one enabled kind that is not a system kind."
        raise ConfigError(
            f"The extractor {name!r} needs an ontology with extractable kinds.", hint=hint
        )


def _require_llm(llm: LLM | None, name: str) -> LLM:
    if llm is None:
        hint = 'Pass Memory(llm=...), or use "local", "closed" or "graph", which need no model.'
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
