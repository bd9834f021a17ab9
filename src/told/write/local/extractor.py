"""The local extractor: what people say of themselves and theirs, found by rules, offline and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final

from told.core.entry import Claim
from told.core.predicates import lookup_predicate
from told.core.when import ALWAYS, to_zone
from told.flow import Flow
from told.write.local import graph, people, projects, tongues
from told.write.local.answers import parse_answer
from told.write.local.clean import mask_foreign_text, strip_colons
from told.write.local.dates import SpeechTime
from told.write.local.idioms import rewrite_idioms
from told.write.local.interpret import parse_clause, parse_relative_clauses
from told.write.local.lists import parse_pair_list
from told.write.local.noted import parse_bullet_points, parse_labelled_notes
from told.write.local.passing import MENTION_CONFIDENCE, parse_mentions
from told.write.local.requests import parse_style_question
from told.write.local.said import RuleClaim, TurnContext
from told.write.local.sentence import (
    Clause,
    SentenceSpan,
    find_reported_start,
    is_hypothetical,
    is_sarcastic,
    split_clauses,
    split_sentences,
)
from told.write.local.speaker import DEFAULT_SPEAKER, find_mentioned_relative
from told.write.local.spelling import RewrittenText, correct_spelling
from told.write.local.tables import get_pattern
from told.write.messages import InputTurn
from told.write.shape import Entity, ExtractedClaim, ExtractionInput, ExtractionResult, Relation

_IMPLIED_PREDICATES: Final = {"drives": "owns", "bought": "owns", "married_to": "has_partner"}
"""What need not be said in passing once this is said."""
MAX_CLAIMS: Final = 12
"""How many claims one turn may make; a longer list of them is a document, not a conversation."""


@dataclass(frozen=True, slots=True)
class LocalExtractor:
    """Finds claims by rules, without a model: it says less rather than invent."""

    name: str = "local"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """The claims, entities and relations of these turns; a flow that needs nothing of the outside world."""
        yield from ()
        return extract_claims(inputs)


def extract_claims(inputs: ExtractionInput) -> ExtractionResult:
    """Everything the rules find in the turns of users."""
    numbered_claims: list[tuple[int, RuleClaim]] = []
    names: dict[str, str] = {}
    entities: list[Entity] = []
    relations: list[Relation] = []
    warnings: list[str] = []
    question = ""
    for number, turn in enumerate(inputs.turns):
        if turn.evidence.role == "user":
            speaker = turn.evidence.name or DEFAULT_SPEAKER
            all_claims = parse_turn(inputs, turn, speaker, question)
            kept = all_claims[:MAX_CLAIMS]
            if len(all_claims) > MAX_CLAIMS:
                warnings.append(
                    f"One message makes {len(all_claims)} claims; the first {MAX_CLAIMS} were taken."
                )
            names.update(
                (speaker, item.object)
                for item in kept
                if (item.subject, item.predicate) == (speaker, "name")
            )
            numbered_claims += [(number, item) for item in kept]
            colleagues = graph.find_colleagues(turn.evidence.content, number)
            entities, relations = [*entities, *colleagues[0]], [*relations, *colleagues[1]]
        question = (
            turn.evidence.content if turn.evidence.role == "assistant" or turn.evidence.name else ""
        )
    entity_graph = graph.build_graph(numbered_claims, names)
    claims = tuple(
        ExtractedClaim(_to_claim(inputs.turns[number], kept), number)
        for number, kept in numbered_claims
    )
    known_pairs = {(item.src.lower(), item.dst.lower()) for item in entity_graph[1]}
    others = tuple(
        item for item in relations if (item.src.lower(), item.dst.lower()) not in known_pairs
    )
    return ExtractionResult(
        claims,
        graph.dedupe_entities((*entity_graph[0], *entities)),
        (*entity_graph[1], *others),
        warnings=tuple(warnings),
    )


def parse_turn(
    inputs: ExtractionInput, turn: InputTurn, speaker: str, question: str
) -> list[RuleClaim]:
    """What one turn says, each thing once, in the order it is said."""
    said_at = turn.evidence.said_at
    speech_time = SpeechTime(
        to_zone(inputs.now if said_at is None else said_at, inputs.zone or UTC), inputs.zone
    )
    readings = _normalise_text(mask_foreign_text(turn.evidence.content))
    ctx = TurnContext(readings[-1].text, speaker, speech_time, turn.valid)
    claims = [*parse_answer(ctx, question), *_parse_sentences(ctx)]
    stated = _collect_stated(claims)
    kept: dict[tuple[str, str, str], RuleClaim] = {}
    for claim in (_restore_source(readings, claim) for claim in claims):
        if claim.confidence == MENTION_CONFIDENCE and not stated.isdisjoint(
            (claim.predicate, f"{speaker}'s {claim.object}".lower())
        ):
            continue
        if claim.predicate != "name" or claim.object.lower() != speaker.lower():
            kept.setdefault((claim.subject.lower(), claim.predicate, claim.object.lower()), claim)
    return sorted(kept.values(), key=lambda claim: claim.start)


def _collect_stated(claims: list[RuleClaim]) -> set[str]:
    """What need not be said in passing any more: what is claimed outright, and whom something else is said of."""
    stated_claims = [claim for claim in claims if claim.confidence != MENTION_CONFIDENCE]
    predicates = {
        _IMPLIED_PREDICATES.get(claim.predicate, claim.predicate) for claim in stated_claims
    }
    return predicates | {claim.subject.lower() for claim in stated_claims}


def _normalise_text(text: str) -> tuple[RewrittenText, ...]:
    """The text as it is read, step by step; in another language a hasty word may be one of its own."""
    if tongues.is_foreign(text):
        return (correct_spelling(text, fix_words=False),)
    corrected = correct_spelling(text)
    return corrected, rewrite_idioms(corrected.text)


def _restore_source(readings: tuple[RewrittenText, ...], claim: RuleClaim) -> RuleClaim:
    """What was understood with the place and the words it was written in."""
    for reading in reversed(readings):
        if reading.starts:
            start, end = reading.to_source_start(claim.start), reading.to_source_end(claim.end)
            claim = replace(
                claim,
                start=start,
                end=end,
                object=reading.restore_wording(claim.object, start, end),
            )
    return claim


def _parse_sentences(ctx: TurnContext) -> Iterator[RuleClaim]:
    """What the sentences say; what holds from when the turn was said, unless it says otherwise."""
    if ctx.text.rstrip().lower().endswith("/s"):
        return
    yield from parse_pair_list(ctx)
    yield from parse_labelled_notes(ctx)
    ctx.text = strip_colons(ctx.text)
    ctx.people = people.find_introduced(ctx.text)
    yield from parse_bullet_points(ctx)
    for sentence in split_sentences(ctx.text):
        if is_sarcastic(ctx.text, sentence):
            yield from people.parse_named_relatives(ctx, sentence.start, sentence.end)
            yield from _parse_complaint(ctx, sentence)
            continue
        for claim in tongues.parse_foreign(ctx, sentence) or _parse_english(ctx, sentence):
            yield replace(claim, valid=ctx.default_interval) if claim.valid == ALWAYS else claim


def _parse_complaint(ctx: TurnContext, sentence: SentenceSpan) -> Iterator[RuleClaim]:
    """What somebody of the speaker's really does: "I just love it when my neighbour practises the drums"."""
    if match := get_pattern("sentence.complained_of").search(
        ctx.text, sentence.start, sentence.end
    ):
        clause = Clause(match.end(), sentence.end, lead=match.end())
        yield from (claim for claim in parse_clause(ctx, clause) if claim.subject != ctx.speaker)


def _parse_english(ctx: TurnContext, sentence: SentenceSpan) -> Iterator[RuleClaim]:
    """What the clauses state, up to where somebody else's words begin."""
    text = ctx.text
    end = find_reported_start(text, sentence.start, sentence.end)
    hypothetical, ctx.subject = False, None
    for clause in split_clauses(text, replace(sentence, end=end)) if end > sentence.start else ():
        if is_hypothetical(text, clause.start, clause.end):
            hypothetical = True
        elif clause.is_question:
            yield from parse_style_question(ctx, clause)
        elif not (hypothetical and clause.is_continuation):
            yield from parse_clause(ctx, clause)
        ctx.last_referent = (
            find_mentioned_relative(text, clause.start, clause.end, ctx.speaker)
            or ctx.last_referent
        )
    ctx.last_referent = (
        find_mentioned_relative(text, sentence.start, end, ctx.speaker) or ctx.last_referent
    )
    if not hypothetical:
        yield from parse_relative_clauses(ctx, sentence.start, end)
        yield from people.parse_named_relatives(ctx, sentence.start, end)
        yield from people.parse_name_lists(ctx, sentence.start, end)
        yield from people.parse_separation(ctx, sentence.start, end)
        yield from people.parse_pet_name(ctx, sentence.start, end)
        yield from people.parse_relatives_of_others(ctx, sentence.start, end)
        yield from projects.parse_project_name(ctx, sentence.start, end)
        yield from projects.parse_project_parts(ctx, sentence.start, end)
        yield from parse_mentions(ctx, sentence.start, end)


def _to_claim(turn: InputTurn, claim: RuleClaim) -> Claim:
    evidence = turn.evidence
    return Claim(
        claim.text,
        lookup_predicate(claim.predicate).kind,
        claim.subject,
        claim.predicate,
        claim.object,
        claim.polarity,
        claim.modality,
        claim.confidence,
        claim.valid,
        span=(claim.start, claim.end),
        role=evidence.role,
        actor=evidence.name,
        said_at=evidence.said_at,
        source=evidence.source,
        meta=dict(claim.meta),
    )
