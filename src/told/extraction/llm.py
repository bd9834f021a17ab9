"""Extract facts as sentences with a single model call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from told.extraction.grounding import GroundingIndex
from told.extraction.prompting import ask_llm, is_fact_source, load_prompt, render_conversation
from told.extraction.replies import (
    ITEM_KEYS,
    LIST_KEYS,
    MAX_ITEMS,
    GroundingOptions,
    SentenceReader,
    build_result,
    convert_items,
    extract_given_facts,
    get_speaker_name,
    parse_items,
    parse_proposal,
    read_nothing,
    validate_proposals,
)
from told.flow import Flow
from told.ingest.types import ExtractionInput, ExtractionResult
from told.ports import LLM

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["facts"],
    "additionalProperties": False,
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
}
REPLY_FORMAT: Final = (
    'Reply with JSON only: {"facts": ["one sentence", "another sentence"]}; '
    '{"facts": []} if there is none.'
)


@dataclass(frozen=True, slots=True)
class FactsExtractor:
    """An extractor that asks a model for facts as sentences in the third person."""

    llm: LLM
    reader: SentenceReader = read_nothing
    options: GroundingOptions = field(default_factory=GroundingOptions)
    max_items: int = MAX_ITEMS

    @property
    def name(self) -> str:
        """Return `facts:` and the model name."""
        return f"facts:{self.llm.model}"

    @property
    def local(self) -> bool:
        """Return False: this extractor calls a model."""
        return False

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the facts found by the model.

        `inputs.prompt` replaces the built-in prompt; `inputs.facts` are used without calling the
        model.
        """
        if inputs.facts:
            return extract_given_facts(inputs, self.reader)
        if not any(map(is_fact_source, inputs.turns)):
            return ExtractionResult()
        user = f"{render_conversation(inputs)}\n\n{REPLY_FORMAT}"
        raw, usage = yield from ask_llm(
            self.llm, inputs.prompt or load_prompt("facts"), user, SCHEMA
        )
        parsed = parse_items(
            raw, LIST_KEYS, item_keys=ITEM_KEYS, max_items=self.max_items, label=self.name
        )
        speaker = get_speaker_name(inputs)
        proposals, parsed = convert_items(
            parsed, raw, lambda item: parse_proposal(item, speaker, self.reader)
        )
        return build_result(
            validate_proposals(inputs, GroundingIndex(inputs.turns), proposals, self.options),
            parsed,
            usage,
        )
