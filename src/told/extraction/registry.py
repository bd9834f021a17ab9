"""Build extractors by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from told.errors import ConfigError
from told.extraction.apertures import DEEP, EXHAUSTIVE, SINGLE, ApertureExtractor
from told.extraction.closed_world import (
    ClosedExtractor,
    build_proposals,
    list_concepts,
    list_extractable_kinds,
    parse_form_item,
)
from told.extraction.graph import GraphExtractor, LocalGraphExtractor
from told.extraction.grounding import GroundingIndex
from told.extraction.llm import FactsExtractor, extract_given_facts
from told.extraction.react import MemoryReader, ReactExtractor
from told.extraction.replies import (
    GroundingOptions,
    ParsedReply,
    SentenceReader,
    build_result,
    convert_items,
    read_nothing,
    validate_proposals,
)
from told.flow import Flow
from told.ingest.messages import InputTurn
from told.ingest.types import CONCEPT, ExtractedClaim, ExtractionInput, ExtractionResult, Extractor
from told.model.entry import Claim
from told.model.kind import Ontology
from told.model.scope import Scope
from told.ports import LLM, ToolLLM, Usage
from told.settings import Settings
from told.text.tokens import format_value

TRUSTED_OPTIONS = GroundingOptions(strict=False, replies=True)
"""Facts given by the caller are trusted, so none is quarantined as ungrounded."""


@dataclass(frozen=True, slots=True)
class GivenExtractor:
    """An extractor for facts given by the caller: sentences, triples and form items."""

    reader: SentenceReader = read_nothing
    name: str = "given"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the facts as claims; form items are validated like a model's."""
        form_items = tuple(
            fact for fact in inputs.facts if isinstance(fact, Mapping) and CONCEPT in fact
        )
        rest = tuple(
            fact for fact in inputs.facts if not any(fact is form_item for form_item in form_items)
        )
        result = extract_given_facts(replace(inputs, facts=rest), self.reader)
        form_result = _extract_form_items(inputs, form_items, self.reader)
        return replace(
            result,
            claims=(*result.claims, *form_result.claims),
            rejected=(*result.rejected, *form_result.rejected),
            unreadable_replies=(*result.unreadable_replies, *form_result.unreadable_replies),
        )
        yield  # makes this a generator


def _extract_form_items(
    inputs: ExtractionInput, form_items: tuple[Mapping[str, object], ...], reader: SentenceReader
) -> ExtractionResult:
    grounding = GroundingIndex(inputs.turns)
    names = {concept.name: concept for concept in list_concepts(inputs.ontology)}
    concept_values, parsed = convert_items(
        ParsedReply(form_items),
        form_items,
        lambda form_item: parse_form_item(form_item, names, grounding, replies=True),
    )
    return build_result(
        validate_proposals(
            inputs, grounding, build_proposals(inputs, concept_values, reader), TRUSTED_OPTIONS
        ),
        parsed,
        Usage(),
    )


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

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
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
    """Build the extractor with this name.

    `closed` and `graph` work without a model; the other model extractors raise `ConfigError`.
    """
    options = GroundingOptions(strict=settings.grounding == "strict")
    if name in ("closed", "react") and not list_extractable_kinds(ontology):
        hint = "Define at least one enabled kind that is not a system kind."
        raise ConfigError(
            f"The extractor {name!r} needs an ontology with extractable kinds.", hint=hint
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
