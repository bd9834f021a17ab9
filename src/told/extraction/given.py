"""Read facts given by the caller instead of extracting them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from told.extraction.closed_world import build_proposals, list_concepts, parse_form_item
from told.extraction.grounding import GroundingIndex
from told.extraction.replies import (
    GroundingOptions,
    ParsedReply,
    SentenceReader,
    build_result,
    convert_items,
    extract_given_facts,
    read_nothing,
    validate_proposals,
)
from told.flow import Flow
from told.ingest.types import CONCEPT, ExtractionInput, ExtractionResult
from told.ports import Usage


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
    concepts = {concept.name: concept for concept in list_concepts(inputs.ontology)}
    concept_values, parsed = convert_items(
        ParsedReply(form_items),
        form_items,
        lambda form_item: parse_form_item(form_item, concepts, grounding, replies=True),
    )
    validated = validate_proposals(
        inputs,
        grounding,
        build_proposals(inputs, concept_values, reader),
        GroundingOptions(strict=False, replies=True),
    )
    return build_result(validated, parsed, Usage())
