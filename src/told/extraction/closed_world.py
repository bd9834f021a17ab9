"""Extract only values of the concepts declared in the ontology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from told.errors import ConfigError
from told.extraction.example_matching import (
    PLACEHOLDER,
    PRONOUN_FORMS,
    ExampleMatch,
    match_confirmed,
    match_examples,
)
from told.extraction.grounding import (
    GroundingIndex,
    MatchMode,
    SearchToken,
    TextLocation,
    extract_search_tokens,
    is_token_match,
    tokenize,
)
from told.extraction.prompting import (
    ASSISTANT,
    ask_llm,
    is_fact_source,
    load_prompt,
    render_conversation,
)
from told.extraction.replies import (
    ASSERTED,
    ASSISTANT_ONLY,
    MAX_ITEMS,
    NEGATED,
    USER_ROLE,
    ClaimProposal,
    GroundingOptions,
    ParsedReply,
    RejectedItem,
    SentenceReader,
    attach_source,
    build_result,
    claim_from_sentence,
    convert_items,
    get_first,
    get_speaker_name,
    parse_items,
    quarantine_claim,
    read_nothing,
    to_line,
    validate_proposals,
)
from told.extraction.rules import LocalExtractor
from told.flow import Flow, run
from told.ingest.messages import InputTurn
from told.ingest.types import (
    CONCEPT,
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    Extractor,
    RejectedClaim,
)
from told.model.entry import Claim, Evidence
from told.model.kind import Kind, Ontology
from told.model.scope import Scope
from told.ports import LLM
from told.text.tokens import STOP_WORDS

PLAIN_KIND: Final = "memory"
"""The generic kind, which the catalogue does not offer."""

OUTSIDE_ONTOLOGY: Final = "outside the ontology"
NO_VALUE: Final = "no value"
NO_EVIDENCE: Final = "no evidence"
NOT_QUOTED: Final = "its evidence is not in what was said"
NO_POLARITY: Final = "neither asserted nor negated"
VALUE: Final = "value"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["facts"],
    "additionalProperties": False,
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [CONCEPT, "value", "polarity", "evidence"],
                "additionalProperties": False,
                "properties": {
                    CONCEPT: {"type": "string"},
                    "value": {"type": "string"},
                    "evidence": {"type": "string"},
                    "polarity": {"type": "string", "enum": [ASSERTED, NEGATED]},
                },
            },
        }
    },
}

UNINFORMATIVE_WORDS: Final = STOP_WORDS | PRONOUN_FORMS.keys()
_SAMPLE_VALUE: Final = "jazz"
_SAMPLE_SCOPE: Final = Scope("reading", user_id="reading")


# Catalogue


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept of the ontology with its label and example sentences."""

    name: str
    label: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConceptValue:
    """A validated item of the form: a concept, a value, a polarity and a quote."""

    concept: str
    value: str
    polarity: str
    evidence: str


def list_extractable_kinds(ontology: Ontology) -> list[Kind]:
    """Return the enabled kinds that are neither system kinds nor the generic kind."""
    return [
        kind
        for kind in ontology.kinds
        if kind.enabled and not kind.system and kind.name != PLAIN_KIND
    ]


def list_concepts(ontology: Ontology) -> list[Concept]:
    """Return the extractable kinds of an ontology as concepts."""
    return [
        Concept(kind.name, kind.label or kind.name, kind.examples)
        for kind in list_extractable_kinds(ontology)
    ]


def render_catalogue(concepts: Iterable[Concept]) -> str:
    """Render the concepts for the prompt, one per line."""
    return "\n".join(_render_concept(concept) for concept in concepts)


def _render_concept(concept: Concept) -> str:
    examples = "; ".join(f'"{" ".join(example.split())}"' for example in concept.examples)
    return f"- {concept.name}: {concept.label or concept.name}" + (
        f" ({examples})" if examples else ""
    )


def build_prompt_template() -> str:
    """Return the system prompt with a `{catalog}` placeholder for `str.format`."""
    text = load_prompt("closed").replace("{", "{{").replace("}", "}}")
    return text.replace("{{catalog}}", "{catalog}")


def parse_form_item(
    item: Any, names: Mapping[str, Concept], grounding: GroundingIndex, *, replies: bool = False
) -> ConceptValue | RejectedItem:
    """Validate a form item: known concept, value, polarity, and evidence found in the turns."""
    if not isinstance(item, Mapping):
        return RejectedItem()
    concept, value, evidence = (
        to_line(get_first(item, name)) for name in (CONCEPT, VALUE, "evidence")
    )
    if concept is None and value is None:
        return RejectedItem()
    location = None if evidence is None else grounding.locate_quote(evidence)
    if concept not in names:
        return RejectedItem(
            OUTSIDE_ONTOLOGY,
            _reject_unknown_concept(concept, value, grounding, location)
            if concept and value and location
            else None,
        )
    polarity = str(get_first(item, "polarity")).strip().casefold()
    if polarity not in (ASSERTED, NEGATED):
        return RejectedItem(NO_POLARITY)
    if value is None or evidence is None:
        return RejectedItem(NO_VALUE if value is None else NO_EVIDENCE)
    if location is None:
        return RejectedItem(NOT_QUOTED)
    if location.unconfirmed and not replies:
        return RejectedItem(ASSISTANT_ONLY)
    return ConceptValue(str(concept), value, polarity, evidence)


def _reject_unknown_concept(
    concept: str, value: str, grounding: GroundingIndex, location: TextLocation
) -> RejectedClaim:
    """Build a quarantined claim for an unknown concept, so that a kind can be added later."""
    text = f"{concept}: {value}"
    claim = attach_source(
        Claim(text, object=value, meta={CONCEPT: concept}),
        grounding.turns[location.turn],
        location.span,
    )
    return RejectedClaim(
        OUTSIDE_ONTOLOGY, text, location.turn, quarantine_claim(claim, OUTSIDE_ONTOLOGY)
    )


def parse_form(
    raw: object,
    concepts: Sequence[Concept],
    grounding: GroundingIndex,
    label: str,
    max_items: int = MAX_ITEMS,
    *,
    replies: bool = False,
) -> tuple[list[ConceptValue], ParsedReply]:
    """Parse a model reply into valid form items and a report of the rejected ones."""
    names = {concept.name: concept for concept in concepts}
    parsed = parse_items(raw, ("facts",), item_keys=(CONCEPT,), max_items=max_items, label=label)
    return convert_items(
        parsed, raw, lambda item: parse_form_item(item, names, grounding, replies=replies)
    )


# Extractor


@dataclass(frozen=True, slots=True)
class ClosedExtractor:
    """An extractor that fills in the ontology with a model or from another extractor's claims.

    With `replies`, assistant turns are read too, in a separate model call.
    """

    llm: LLM | None = None
    fallback: Extractor | None = None
    reader: SentenceReader = read_nothing
    options: GroundingOptions = field(default_factory=GroundingOptions)
    replies: bool = False
    max_items: int = MAX_ITEMS

    def __post_init__(self) -> None:
        if self.llm is None and self.fallback is None:
            raise ConfigError(
                "The closed-world extractor needs a language model or another extractor."
            )

    @property
    def name(self) -> str:
        """Return `closed:` and the name of the model or of the fallback extractor."""
        if self.llm is not None:
            return f"closed:{self.llm.model}"
        return f"closed:{self.fallback and self.fallback.name}"

    @property
    def local(self) -> bool:
        """Return True if no model is called."""
        return self.llm is None and self.fallback is not None and self.fallback.local

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the claims that fit a concept of the ontology."""
        if self.llm is None:
            assert self.fallback is not None
            return extract_without_model(
                inputs, (yield from self.fallback.extract(inputs)), replies=self.replies
            )
        grounding = GroundingIndex(inputs.turns)
        result = yield from self._run_pass(self.llm, inputs, grounding, replies=False)
        if not self.replies:
            return result
        reply_result = yield from self._run_pass(self.llm, inputs, grounding, replies=True)
        return _merge_results(result, reply_result)

    def _run_pass(
        self, llm: LLM, inputs: ExtractionInput, grounding: GroundingIndex, *, replies: bool
    ) -> Flow[ExtractionResult]:
        """Ask the model to fill in the form once, for user turns or for replies."""
        concepts = list_concepts(inputs.ontology)
        if not concepts or not any(is_fact_source(turn) is not replies for turn in inputs.turns):
            return ExtractionResult()
        system = inputs.prompt or build_prompt_template().format(catalog=render_catalogue(concepts))
        system += f"\n\n{load_prompt('replies')}" if replies else ""
        raw, usage = yield from ask_llm(
            llm, system, render_conversation(inputs, replies=replies), SCHEMA
        )
        concept_values, parsed = parse_form(
            raw, concepts, grounding, self.name, self.max_items, replies=replies
        )
        proposals = build_proposals(inputs, concept_values, self.reader)
        return build_result(
            validate_proposals(
                inputs, grounding, proposals, replace(self.options, replies=replies)
            ),
            parsed,
            usage,
        )


def build_proposals(
    inputs: ExtractionInput, concept_values: Iterable[ConceptValue], reader: SentenceReader
) -> list[ClaimProposal]:
    """Convert form items to claim proposals with their quotes."""
    speaker = get_speaker_name(inputs)
    return [
        ClaimProposal(
            build_claim(concept_value, inputs.ontology[concept_value.concept], speaker, reader),
            concept_value.evidence,
        )
        for concept_value in concept_values
    ]


def build_claim(
    concept_value: ConceptValue, kind: Kind, speaker: str, reader: SentenceReader
) -> Claim:
    """Convert a form item to a claim.

    A concept keyed by value becomes its own predicate; for other kinds the value is parsed as a
    sentence.
    """
    is_negated = concept_value.polarity == NEGATED
    parsed_claim = claim_from_sentence(concept_value.value, reader)
    if kind.key != VALUE and parsed_claim.predicate is not None:
        return replace(parsed_claim, kind=kind.name, polarity=concept_value.polarity)
    text = f"{kind.label or kind.name}: {'not ' if is_negated else ''}{concept_value.value}"
    predicate = kind.name if kind.key == VALUE else None
    meta = {VALUE: concept_value.value} if kind.key == VALUE else {}
    return Claim(
        text,
        kind.name,
        speaker,
        predicate,
        concept_value.value,
        polarity=concept_value.polarity,
        meta=meta,
    )


def _merge_results(left: ExtractionResult, right: ExtractionResult) -> ExtractionResult:
    """Merge two results, skipping claims whose text is already in the first."""
    texts = {item.claim.text for item in left.claims}
    more = tuple(item for item in right.claims if item.claim.text not in texts)
    return ExtractionResult(
        claims=(*left.claims, *more),
        rejected=(*left.rejected, *right.rejected),
        warnings=(*left.warnings, *right.warnings),
        unreadable_replies=(*left.unreadable_replies, *right.unreadable_replies),
        usage=left.usage + right.usage,
    )


# Without a model


def extract_without_model(
    inputs: ExtractionInput, fallback: ExtractionResult, *, replies: bool = False
) -> ExtractionResult:
    """Match the ontology's examples and assign the fallback claims to kinds.

    Fallback claims that fit no kind are rejected.
    """
    kinds = list_extractable_kinds(inputs.ontology)
    matched = list(extract_by_examples(inputs, kinds, replies=replies))
    spans = [(item.turn, *(item.claim.span or (0, 0))) for item in matched]
    claims = [
        _prefer_fallback_claim(item, span, fallback.claims, inputs.ontology)
        for item, span in zip(matched, spans, strict=True)
    ]
    rejected: list[RejectedClaim] = []
    for item in fallback.claims:
        if any(_has_overlap(item, span) for span in spans):
            continue
        kind = _find_kind(kinds, item.claim, _get_source_text(inputs, item))
        if kind is None:
            rejected.append(
                RejectedClaim(
                    OUTSIDE_ONTOLOGY, item.claim.text, item.turn, _quarantine_outside(item.claim)
                )
            )
        else:
            claims.append(ExtractedClaim(_assign_kind(kind, item.claim), item.turn))
    claims.sort(key=lambda item: (item.turn, item.claim.span or (0, 0)))
    return replace(
        fallback,
        claims=tuple(claims),
        rejected=(*fallback.rejected, *rejected),
        entities=(),
        relations=(),
    )


def extract_by_examples(
    inputs: ExtractionInput, kinds: Sequence[Kind], *, replies: bool
) -> Iterator[ExtractedClaim]:
    """Yield values that match a concept's examples, preferring the most specific example.

    Assistant turns count if the user confirms them, or always with `replies`.
    """
    concepts = [kind for kind in kinds if kind.key == VALUE and kind.examples]
    for number, turn in enumerate(inputs.turns):
        matches = [
            (match, kind)
            for kind in concepts
            for match in _match_turn(inputs, number, kind.examples, replies=replies)
        ]
        matches.sort(key=lambda pair: -pair[0].specificity)
        accepted: list[ExampleMatch] = []
        for match, kind in matches:
            if not any(
                match.value_start < other.end and other.value_start < match.end
                for other in accepted
            ):
                accepted.append(match)
                concept_value = ConceptValue(
                    kind.name, match.value, NEGATED if match.is_negated else ASSERTED, ""
                )
                claim = build_claim(concept_value, kind, get_speaker_name(inputs), read_nothing)
                yield ExtractedClaim(attach_source(claim, turn, (match.start, match.end)), number)


def _match_turn(
    inputs: ExtractionInput, number: int, examples: Sequence[str], *, replies: bool
) -> list[ExampleMatch]:
    evidence = inputs.turns[number].evidence
    if evidence.role == USER_ROLE:
        return match_examples(examples, evidence.content)
    if evidence.role != ASSISTANT:
        return []
    answer = next(
        (
            next_turn.evidence.content
            for next_turn in inputs.turns[number + 1 :]
            if next_turn.evidence.role == USER_ROLE
        ),
        "",
    )
    return [
        *match_confirmed(examples, evidence.content, answer),
        *(match_examples(examples, evidence.content, second_person=True) if replies else ()),
    ]


def _prefer_fallback_claim(
    matched: ExtractedClaim,
    span: tuple[int, int, int],
    fallback: Sequence[ExtractedClaim],
    ontology: Ontology,
) -> ExtractedClaim:
    """Return the fallback claim for the same value if there is one, else the matched claim."""
    value = str(matched.claim.object).casefold()
    same_value = (
        item
        for item in fallback
        if _has_overlap(item, span) and str(item.claim.object).casefold() == value
    )
    other = next(
        (item for item in same_value if item.claim.polarity == matched.claim.polarity), None
    )
    return (
        matched
        if other is None
        else ExtractedClaim(_assign_kind(ontology[matched.claim.kind], other.claim), matched.turn)
    )


def _has_overlap(item: ExtractedClaim, span: tuple[int, int, int]) -> bool:
    turn, start, end = span
    return (
        item.turn == turn
        and item.claim.span is not None
        and item.claim.span[0] < end
        and start < item.claim.span[1]
    )


def _quarantine_outside(claim: Claim) -> Claim:
    return quarantine_claim(
        replace(claim, meta={**claim.meta, CONCEPT: claim.predicate or claim.kind}),
        OUTSIDE_ONTOLOGY,
    )


def _get_source_text(inputs: ExtractionInput, item: ExtractedClaim) -> str:
    content = inputs.turns[item.turn].evidence.content
    return content if item.claim.span is None else content[slice(*item.claim.span)]


def _assign_kind(kind: Kind, claim: Claim) -> Claim:
    if kind.key != VALUE:
        return replace(claim, kind=kind.name)
    value = claim.object if claim.object is not None else claim.text
    return replace(claim, kind=kind.name, predicate=kind.name, meta={**claim.meta, VALUE: value})


def _find_kind(kinds: Sequence[Kind], claim: Claim, source_text: str) -> Kind | None:
    """Return the kind of a claim by name, else the best-scoring kind, else None."""
    by_name = next((kind for kind in kinds if kind.name in (claim.kind, claim.predicate)), None)
    if by_name is not None:
        return by_name
    closest = max(kinds, key=lambda kind: _score_kind(kind, claim, source_text), default=None)
    return closest if closest is not None and _score_kind(closest, claim, source_text) else None


def _score_kind(kind: Kind, claim: Claim, source_text: str) -> int:
    """Score how well a kind fits a claim.

    An example with the same words counts most, then one with the same predicate, then words of the
    label.
    """
    shared = max(
        (_count_shared_words(example, source_text) for example in kind.examples), default=0
    )
    if shared or claim.predicate in _read_example_predicates(kind.examples):
        return 10 + shared
    predicate_text = (claim.predicate or "").replace("_", " ")
    search_tokens = [
        SearchToken(token, MatchMode.WORD)
        for token in tokenize(predicate_text)
        if len(token.form) > 3
    ]
    label_tokens = [
        search_token.token
        for search_token in extract_search_tokens(f"{kind.label} {kind.name.replace('.', ' ')}")
    ]
    return sum(
        any(is_token_match(search_token, token) for token in label_tokens)
        for search_token in search_tokens
    )


def _count_shared_words(example: str, source_text: str) -> int:
    """Count the content words of an example if the sentence contains all of them, else return 0."""
    text = PLACEHOLDER.sub(" ", example)
    search_tokens = (
        [
            search_token
            for search_token in extract_search_tokens(text)
            if search_token.token.form not in UNINFORMATIVE_WORDS
        ]
        if tokenize(text)
        else []
    )
    source_tokens = tokenize(source_text)
    return (
        len(search_tokens)
        if search_tokens
        and all(
            any(is_token_match(search_token, token) for token in source_tokens)
            for search_token in search_tokens
        )
        else 0
    )


@lru_cache(maxsize=1 << 10)
def _read_example_predicates(examples: tuple[str, ...]) -> frozenset[str]:
    """Return the predicates that the rules extract from the examples with a placeholder.

    This lets "I adore X" match the example "I love X".
    """
    turns = [
        InputTurn(Evidence(PLACEHOLDER.sub(_SAMPLE_VALUE, example)), {})
        for example in examples
        if PLACEHOLDER.search(example)
    ]
    result = (
        run(LocalExtractor().extract(ExtractionInput(tuple(turns), 0, _SAMPLE_SCOPE)))
        if turns
        else ExtractionResult()
    )
    return frozenset(
        item.claim.predicate for item in result.claims if item.claim.predicate is not None
    )
