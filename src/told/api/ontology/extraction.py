"""The closed-world extractor as a function, with its concept catalogue and prompt."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from told.errors import ConfigError, InvalidInput
from told.extraction import closed_world
from told.extraction.closed_world import (
    SCHEMA,
    VALUE,
    ClosedExtractor,
    Concept,
    ConceptValue,
    list_concepts,
    parse_form,
    render_catalogue,
)
from told.extraction.grounding import GroundingIndex
from told.extraction.prompting import ASSISTANT, ask_llm, fence_as_data, load_prompt
from told.extraction.replies import MALFORMED, USER_ROLE
from told.extraction.rules import LocalExtractor
from told.flow import run
from told.ids import wall_clock_us
from told.ingest.messages import InputTurn
from told.ingest.types import ExtractedClaim, ExtractionInput
from told.model.entry import Evidence
from told.model.kind import Field, Kind, Ontology, WriteMode
from told.model.scope import Scope
from told.plugins import LLM_HINT, open_llm
from told.ports import LLM
from told.settings import load_settings
from told.text.tokens import format_value, split_sentences

LOCAL_MODEL: Final = "local"
NO_MODEL_WARNING: Final = (
    'No language model is configured, so rules are used. Pass model="local" to silence this.'
)
OntologyInput: TypeAlias = "Ontology | Mapping[str, Any]"

EXTRACTOR_SYSTEM: str = closed_world.build_prompt_template()
"""The system prompt; fill it with `.format(catalog=build_concept_catalog(ontology))`."""


def build_concept_catalog(ontology: OntologyInput) -> str:
    """Return the concepts of an ontology, one per line with label and examples."""
    return render_catalogue(_parse_concepts(ontology))


def extract_facts(
    user_msg: str,
    bot_msg: str | None = None,
    ontology: OntologyInput | None = None,
    model: Any = None,
    *,
    replies: bool = False,
    dropped: list[dict[str, str]] | None = None,
) -> list[dict[str, str]]:
    """Extract the values of concepts: `[{"concept", "value", "polarity", "evidence"}]`.

    `bot_msg` is the assistant's previous message, so that a "yes" can be resolved; with
    `replies`, a second pass also extracts what the assistant itself confirms about the user.
    `model` is anything `Memory(llm=…)` takes; a name such as `openai/gpt-4o-mini` is a model of
    OpenRouter. `local` uses rules and the examples of the ontology instead of a model, which is
    also the fallback, with a warning, if no model is configured. Values without a concept, a
    polarity or evidence in the messages, and unreadable answers, are left out; a list passed as
    `dropped` gets them with the reasons.
    """
    if ontology is None:
        raise InvalidInput(
            "extract_facts needs an ontology.", hint='Such as {"concepts": {"Person.Home": {…}}}.'
        )
    if not isinstance(user_msg, str) or not isinstance(bot_msg, str | None):
        raise InvalidInput(
            "A message is a text, not "
            f"{format_value(bot_msg if isinstance(user_msg, str) else user_msg)}."
        )
    llm = _open_model(model)
    concepts = _parse_concepts(ontology)
    turns = [
        *([_build_turn(bot_msg, ASSISTANT)] if bot_msg else ()),
        *([_build_turn(user_msg, USER_ROLE)] if user_msg.strip() else ()),
    ]
    rejected: list[dict[str, str]] = []
    if not concepts or not (user_msg.strip() or (replies and bot_msg)):
        filled = []
    elif llm is None:
        filled = _extract_with_rules(turns, concepts, rejected, replies=replies)
    else:
        passes = [False] * bool(user_msg.strip()) + [True] * bool(replies and bot_msg)
        filled = [
            slot
            for of_replies in passes
            for slot in _extract_with_model(llm, turns, concepts, rejected, replies=of_replies)
        ]
    if dropped is not None:
        dropped += rejected
    rows = [
        {"concept": f.concept, "value": f.value, "polarity": f.polarity, "evidence": f.evidence}
        for f in filled
    ]
    return [row for index, row in enumerate(rows) if row not in rows[:index]]


def _extract_with_model(
    llm: LLM,
    turns: Sequence[InputTurn],
    concepts: Sequence[Concept],
    rejected: list[dict[str, str]],
    *,
    replies: bool,
) -> list[ConceptValue]:
    """Extract with a model, from the user's message or from the assistant's."""
    lines = [f"{turn.evidence.role.upper()}: {turn.evidence.content}" for turn in turns]
    system = EXTRACTOR_SYSTEM.format(catalog=render_catalogue(concepts)) + (
        f"\n\n{load_prompt('replies')}" if replies else ""
    )
    raw, _ = run(ask_llm(llm, system, fence_as_data("conversation", lines), SCHEMA))
    filled, answer = parse_form(raw, concepts, GroundingIndex(turns), llm.model, replies=replies)
    rejected += [{"reason": claim.reason, "fact": claim.text} for claim in answer.rejected]
    rejected += [{"reason": MALFORMED, "fact": fault} for fault in answer.unreadable_replies]
    return filled


def _extract_with_rules(
    turns: Sequence[InputTurn],
    concepts: Sequence[Concept],
    rejected: list[dict[str, str]],
    *,
    replies: bool,
) -> list[ConceptValue]:
    """Extract with rules; the evidence is the sentence of a value."""
    kinds = Ontology(tuple(_concept_to_kind(item) for item in concepts))
    extraction_input = ExtractionInput(
        tuple(turns), wall_clock_us(), Scope("reading", user_id="reading"), kinds
    )
    result = run(
        ClosedExtractor(fallback=LocalExtractor(), replies=replies).extract(extraction_input)
    )
    rejected += [{"reason": item.reason, "fact": item.text} for item in result.rejected]
    return [_claim_to_filled(item, turns[item.turn].evidence.content) for item in result.claims]


def _concept_to_kind(concept: Concept) -> Kind:
    routed, fields = WriteMode.AGGREGATE, (Field(VALUE, required=True),)
    return Kind(
        concept.name,
        concept.label,
        write=routed,
        key=VALUE,
        fields=fields,
        examples=concept.examples,
    )


def _claim_to_filled(extracted: ExtractedClaim, content: str) -> ConceptValue:
    claim, (start, end) = extracted.claim, extracted.claim.span or (0, len(extracted.claim.text))
    quote = content[start:end]
    evidence = next(
        (sentence for sentence in split_sentences(content) if quote in sentence), quote or content
    )
    return ConceptValue(
        claim.kind, str(claim.meta.get(VALUE, claim.object)), claim.polarity, evidence.strip()
    )


def _open_model(model: Any) -> LLM | None:
    """Open a model, or return None to use rules."""
    if model == LOCAL_MODEL:
        return None
    settings = load_settings().settings
    chosen = settings.llm if model is None else model
    is_openrouter = isinstance(chosen, str) and "/" in chosen.partition(":")[0]
    llm = open_llm(f"openrouter:{chosen}" if is_openrouter else chosen, settings)
    if llm is None and model is not None:
        raise ConfigError(
            "extract_facts needs a language model.",
            hint=f'{LLM_HINT} Or "local", to use rules.',
        )
    if llm is None:
        warnings.warn(NO_MODEL_WARNING, UserWarning, stacklevel=3)
    return llm


def _build_turn(text: str, role: str) -> InputTurn:
    return InputTurn(Evidence(text, role), {})


def _parse_concepts(ontology: OntologyInput) -> Sequence[Concept]:
    if isinstance(ontology, Ontology):
        return list_concepts(ontology)
    concepts = ontology.get("concepts") if isinstance(ontology, Mapping) else None
    if not isinstance(concepts, Mapping):
        raise InvalidInput(
            'An ontology is {"concepts": {name: rules}}.', hint="Load it with json.load()."
        )
    return [_parse_concept(str(name), rules) for name, rules in concepts.items()]


def _parse_concept(name: str, rules: Any) -> Concept:
    if not isinstance(rules, Mapping):
        raise InvalidInput(f"The rules of {name} must be an object, not {format_value(rules)}.")
    examples = rules.get("examples") or ()
    listed = [examples] if isinstance(examples, str) else examples
    return Concept(name, str(rules.get("label") or name), tuple(map(str, listed)))
