"""Facts that somebody else extracted: they are read as they are, and nothing is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from told.flow import Flow
from told.ports import Usage
from told.write.extract.closed import build_proposals, list_concepts, parse_form_item
from told.write.extract.facts import extract_given_facts
from told.write.extract.ground import GroundingIndex
from told.write.extract.items import SentenceReader, read_nothing
from told.write.extract.parse import ParsedReply, convert_items
from told.write.extract.settle import GroundingOptions, build_result, validate_proposals
from told.write.shape import CONCEPT, ExtractionInput, ExtractionResult

TRUSTED_OPTIONS = GroundingOptions(strict=False, replies=True)
"""Whoever gives facts answers for them: none is quarantined for its words."""


@dataclass(frozen=True, slots=True)
class GivenExtractor:
    """Reads facts that came with what was heard: sentences, triples, and lines of an ontology's form."""

    reader: SentenceReader = read_nothing
    name: str = "given"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """The facts; a line of the form has to hold as if a model had filled it in."""
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
        yield  # a flow, though it asks for nothing


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
