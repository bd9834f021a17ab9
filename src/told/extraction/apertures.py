"""Extract typed triples in one pass, in five parallel apertures, or in repeated passes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from told.extraction.graph import normalise_entity_type
from told.extraction.grounding import GroundingIndex
from told.extraction.prompting import (
    ask_llm,
    fence_as_data,
    is_fact_source,
    load_prompt,
    render_conversation,
)
from told.extraction.replies import (
    DUPLICATE,
    HYPOTHESIS,
    INFERRED,
    ITEM_KEYS,
    LIST_KEYS,
    MAX_ITEMS,
    STATED,
    ClaimProposal,
    GroundingOptions,
    ParsedReply,
    SentenceReader,
    build_result,
    convert_items,
    extract_given_facts,
    get_first,
    get_speaker_name,
    parse_items,
    parse_proposal,
    read_nothing,
    split_duplicates,
    to_line,
    validate_proposals,
)
from told.flow import Flow, gather_flows
from told.ingest.types import (
    Entity,
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    RejectedClaim,
    Relation,
)
from told.ledger.consumer import Failure, catch_failure
from told.model.entry import Claim
from told.model.fact import QUARANTINE
from told.ports import LLM, Usage
from told.text.tokens import normalise_text

SINGLE, EXHAUSTIVE, DEEP = "single", "exhaustive", "deep"
DEFAULT_PRIOR: Final = 300
DEFAULT_PASSES: Final = 3
TYPE_PREDICATES: Final = frozenset(("type", "is_a", "instance_of", "a"))
STRING_SCHEMA: Final = {"type": "string"}
LITERAL_SCHEMA: Final = {"type": "object", "properties": {"v": STRING_SCHEMA, "dt": STRING_SCHEMA}}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["facts"],
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["subject", "predicate"],
                "properties": {
                    "subject": STRING_SCHEMA,
                    "predicate": STRING_SCHEMA,
                    "object_iri": STRING_SCHEMA,
                    "object_lit": LITERAL_SCHEMA,
                    "modality": STRING_SCHEMA,
                    "evidence": STRING_SCHEMA,
                    "notes": STRING_SCHEMA,
                    "confidence": {"type": "number"},
                    "hypothesis_only": {"type": "boolean"},
                },
            },
        }
    },
}


@dataclass(frozen=True, slots=True)
class Aperture:
    """A reading mode with its confidence band and modality.

    An empty modality keeps the modality given by the model.
    """

    name: str
    min_confidence: float = 0.0
    max_confidence: float = 1.0
    modality: str = ""

    def apply_to(self, claim: Claim) -> Claim:
        """Return the claim with its confidence clamped to the band and the aperture's modality."""
        confidence = min(max(claim.confidence, self.min_confidence), self.max_confidence)
        return replace(claim, confidence=confidence, modality=self.modality or claim.modality)


APERTURES: Final = (
    Aperture("surface", 0.95, 1.0, STATED),
    Aperture("linguistic", 0.85, 1.0, STATED),
    Aperture("presupposition", 0.7, 0.95, HYPOTHESIS),
    Aperture("inferential", 0.4, 0.7, INFERRED),
    Aperture("conceivable", 0.8, 0.9, HYPOTHESIS),
)


@dataclass(frozen=True, slots=True)
class _PassResult:
    """The proposals, parse report and usage of one model call."""

    proposals: tuple[ClaimProposal, ...] = ()
    parsed: ParsedReply = field(default_factory=ParsedReply)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ApertureExtractor:
    """An extractor that asks a model for typed triples, in one of three modes."""

    llm: LLM
    mode: str = SINGLE
    passes: int = DEFAULT_PASSES
    max_prior: int = DEFAULT_PRIOR
    reader: SentenceReader = read_nothing
    options: GroundingOptions = field(default_factory=GroundingOptions)
    max_items: int = MAX_ITEMS

    @property
    def name(self) -> str:
        """Return `apertures:`, `exhaustive:` or `deep:` and the model name."""
        return f"{'apertures' if self.mode == SINGLE else self.mode}:{self.llm.model}"

    @property
    def local(self) -> bool:
        """Return False: this extractor calls a model."""
        return False

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return claims, entities and relations built from triples.

        Facts given by the caller are used instead of calling the model.
        """
        if inputs.facts:
            return extract_given_facts(inputs, self.reader)
        if not any(map(is_fact_source, inputs.turns)):
            return ExtractionResult()
        if self.mode == EXHAUSTIVE:
            results, warnings = yield from self._run_all_apertures(inputs)
        elif self.mode == DEEP:
            results, warnings = yield from self._run_passes(inputs)
        else:
            results, warnings = [(yield from self._run_aperture(inputs, Aperture(SINGLE)))], []
        return _merge_results(inputs, results, warnings, self.options)

    def _run_all_apertures(
        self, inputs: ExtractionInput
    ) -> Flow[tuple[list[_PassResult], list[str]]]:
        """Run the five apertures concurrently; a failed one becomes a warning.

        Raises the first error if all of them fail.
        """
        outcomes = yield from gather_flows(
            [catch_failure(self._run_aperture(inputs, aperture)) for aperture in APERTURES]
        )
        results = [result for result in outcomes if isinstance(result, _PassResult)]
        failed = [
            (result, aperture)
            for result, aperture in zip(outcomes, APERTURES, strict=True)
            if isinstance(result, Failure)
        ]
        if not results:
            raise failed[0][0].error
        return results, [
            f"The aperture {aperture.name} of {self.name} failed: {failure}"
            for failure, aperture in failed
        ]

    def _run_passes(self, inputs: ExtractionInput) -> Flow[tuple[list[_PassResult], list[str]]]:
        """Run passes that see earlier results, until one finds nothing new."""
        results: list[_PassResult] = []
        known_texts: dict[str, str] = {}
        for number in range(1, min(max(self.passes, 1), 10) + 1):
            aperture = Aperture(f"pass_{number}")
            prior = [*(fact.text for fact in inputs.nearby_facts), *known_texts.values()][
                -self.max_prior :
            ]
            outcome = yield from catch_failure(self._run_aperture(inputs, aperture, "deep", prior))
            if isinstance(outcome, Failure):
                if not results:
                    raise outcome.error
                return results, [f"Pass {number} of {self.name} failed: {outcome}"]
            results.append(outcome)
            new_texts = {
                claim_key(proposal.claim): proposal.claim.text for proposal in outcome.proposals
            }
            if new_texts.keys() <= known_texts.keys():
                break
            known_texts |= new_texts
        return results, []

    def _run_aperture(
        self,
        inputs: ExtractionInput,
        aperture: Aperture,
        prompt_name: str = "",
        prior: Sequence[str] = (),
    ) -> Flow[_PassResult]:
        """Ask the model for triples through one aperture."""
        aperture_prompt = load_prompt(f"aperture-{prompt_name or aperture.name}")
        system = f"{inputs.prompt or load_prompt('triples')}\n\n{aperture_prompt}"
        prior_block = (
            f"\n\n{fence_as_data('found', (f'- {text}' for text in prior))}" if prior else ""
        )
        raw, usage = yield from ask_llm(
            self.llm, system, render_conversation(inputs) + prior_block, SCHEMA
        )
        parsed = parse_items(
            raw,
            LIST_KEYS,
            item_keys=ITEM_KEYS,
            max_items=self.max_items,
            label=f"{self.name} ({aperture.name})",
        )
        speaker = get_speaker_name(inputs)

        def parse_item(item: Any) -> Any:
            parsed_item = parse_proposal(item, speaker, self.reader)
            return (
                _tag_proposal(parsed_item, item, aperture)
                if isinstance(parsed_item, ClaimProposal)
                else parsed_item
            )

        proposals, parsed = convert_items(parsed, raw, parse_item)
        return _PassResult(tuple(proposals), parsed, usage)


def claim_key(claim: Claim) -> str:
    """Return a content hash of a claim that ignores confidence and modality."""
    parts = (
        (claim.subject, claim.predicate, claim.object)
        if claim.object is not None
        else (claim.text,)
    )
    joined = "\x1f".join(normalise_text(part or "") for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def _tag_proposal(proposal: ClaimProposal, item: Any, aperture: Aperture) -> ClaimProposal:
    """Return the proposal with its aperture, content key, notes and datatype in the metadata."""
    literal = get_first(item, "object_lit") if isinstance(item, Mapping) else None
    extras = {
        "aperture": aperture.name,
        "key": claim_key(proposal.claim),
        "notes": to_line(get_first(item, "notes")) if isinstance(item, Mapping) else None,
        "dt": to_line(get_first(literal, "dt")) if isinstance(literal, Mapping) else None,
    }
    meta = {
        **proposal.claim.meta,
        **{name: value for name, value in extras.items() if value is not None},
    }
    return replace(proposal, claim=replace(aperture.apply_to(proposal.claim), meta=meta))


# Merging


def _merge_results(
    inputs: ExtractionInput,
    results: Sequence[_PassResult],
    warnings: Iterable[str],
    options: GroundingOptions,
) -> ExtractionResult:
    """Merge all passes: drop duplicates, build entities from type triples, add relations."""
    unique, duplicates = split_duplicates(
        (proposal for result in results for proposal in result.proposals),
        lambda proposal: claim_key(proposal.claim),
    )
    grounding = GroundingIndex(inputs.turns)
    type_proposals = [
        proposal for proposal in unique if proposal.claim.predicate in TYPE_PREDICATES
    ]
    validated = validate_proposals(
        inputs,
        grounding,
        [proposal for proposal in unique if proposal.claim.predicate not in TYPE_PREDICATES],
        options,
    )
    entities, ungrounded = _build_entities(type_proposals, grounding)
    rejected = (RejectedClaim(DUPLICATE, proposal.claim.text) for proposal in duplicates)
    report = sum(
        (result.parsed for result in results),
        ParsedReply(rejected=(*ungrounded, *rejected), warnings=tuple(warnings)),
    )
    merged = build_result(validated, report, sum((result.usage for result in results), Usage()))
    return replace(merged, entities=entities, relations=_build_relations(unique, validated.claims))


def _build_entities(
    proposals: Iterable[ClaimProposal], grounding: GroundingIndex
) -> tuple[tuple[Entity, ...], list[RejectedClaim]]:
    """Build entities from type triples and reject those whose name was never mentioned."""
    entities: dict[str, Entity] = {}
    rejected: list[RejectedClaim] = []
    for proposal in proposals:
        name = str(proposal.claim.subject)
        if grounding.find_value(name) is None:
            rejected.append(RejectedClaim("its name is not in what was said", proposal.claim.text))
        else:
            entities.setdefault(
                normalise_text(name), Entity(name, normalise_entity_type(proposal.claim.object))
            )
    return tuple(entities.values()), rejected


def _build_relations(
    proposals: Iterable[ClaimProposal], claims: Sequence[ExtractedClaim]
) -> tuple[Relation, ...]:
    """Build relations from the accepted claims whose object is an entity."""
    entity_keys = {claim_key(item.claim) for item in proposals if item.is_entity}
    kept = [
        item
        for item in claims
        if item.claim.kind != QUARANTINE and claim_key(item.claim) in entity_keys
    ]
    return tuple(_to_relation(item.claim, item.turn) for item in kept)


def _to_relation(claim: Claim, turn: int) -> Relation:
    return Relation(
        str(claim.subject), str(claim.predicate), str(claim.object), claim.confidence, turn
    )
