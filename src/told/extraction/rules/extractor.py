"""Extract claims, entities and relations from user turns by rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final

from told.extraction.rules import attributes, foreign, people
from told.extraction.rules.attributes import (
    parse_answer,
    parse_bare_clause,
    parse_booking,
    parse_due,
    parse_style_question,
)
from told.extraction.rules.claim import (
    ASSERTED,
    HEDGED_CONFIDENCE,
    NEGATED,
    RuleClaim,
    SpeechTime,
    TurnContext,
)
from told.extraction.rules.grammar import (
    DEFAULT_SPEAKER,
    ING,
    Clause,
    ClauseSubject,
    ParsedVerb,
    Referent,
    SentenceSpan,
    VerbFeatures,
    capitalise_name,
    find_mentioned_relative,
    find_reported_start,
    is_hypothetical,
    is_name,
    is_sarcastic,
    parse_relative,
    parse_subject,
    parse_verb,
    split_clauses,
    split_sentences,
)
from told.extraction.rules.lexicon import get_pattern, load_words
from told.extraction.rules.mentions import MENTION_CONFIDENCE, parse_mentions
from told.extraction.rules.normalise import (
    RewrittenText,
    correct_spelling,
    mask_foreign_text,
    rewrite_idioms,
    strip_colons,
)
from told.extraction.rules.notes import parse_bullet_points, parse_labelled_notes, parse_pair_list
from told.extraction.rules.verb_rules import parse_livelihood, parse_verb_clause
from told.flow import Flow
from told.ingest.messages import InputTurn
from told.ingest.types import Entity, ExtractedClaim, ExtractionInput, ExtractionResult, Relation
from told.model.entry import Claim
from told.model.kind import lookup_predicate
from told.text.dates import ALWAYS, to_zone

_PREDICATES_BY_TYPE: Final = {
    "place": "lives_in comes_from born_in visited",
    "organization": "works_at studies_at graduated_from member_of",
    "person": """has_partner has_child has_sibling has_parent has_relative has_friend has_colleague
        married_to manager""",
    "product": "uses project_uses owns drives bought",
    "event": "attended plans",
    "thing": "has_pet",
    "concept": """likes dislikes prefers interested_in skilled_in learning speaks plays allergic_to
        has_condition diet works_in studies""",
}
TYPE_BY_PREDICATE: Final[Mapping[str, str]] = {
    predicate: sort for sort, names in _PREDICATES_BY_TYPE.items() for predicate in names.split()
}
_NAMED_TYPES: Final = frozenset(("person", "event", "thing"))
"""Types that are entities only if they have a name."""
_MAX_WORDS: Final = 4
_COLLEAGUE_CONFIDENCE: Final = 0.6
"""Confidence that somebody named with an organisation works there."""


def build_graph(
    claims: Iterable[tuple[int, RuleClaim]], names: Mapping[str, str]
) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """Build entities and relations from the claims; named speakers are used by name."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    for turn, claim in claims:
        source = names.get(claim.subject, claim.subject)
        if claim.predicate == "name":
            entities.append(Entity(claim.object, "person"))
        object_type = _get_object_type(claim)
        if object_type is not None and claim.polarity == ASSERTED:
            entities += [
                Entity(source, "person"),
                Entity(claim.object, object_type, claim.meta.get("relation", "")),
            ]
            relations.append(
                Relation(source, claim.predicate, claim.object, claim.confidence, turn)
            )
    return dedupe_entities(entities), _dedupe_relations(relations)


def dedupe_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Keep the first entity of each name."""
    unique: dict[str, Entity] = {}
    for entity in entities:
        unique.setdefault(entity.name.lower(), entity)
    return tuple(unique.values())


def _dedupe_relations(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    unique: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        unique.setdefault((relation.src.lower(), relation.rel, relation.dst.lower()), relation)
    return tuple(unique.values())


def _get_object_type(claim: RuleClaim) -> str | None:
    object_type = TYPE_BY_PREDICATE.get(claim.predicate)
    if len(claim.object.split()) > _MAX_WORDS or (
        object_type in _NAMED_TYPES and not claim.object[:1].isupper()
    ):
        return None
    return object_type


def find_colleagues(text: str, turn: int) -> tuple[tuple[Entity, ...], tuple[Relation, ...]]:
    """Find people named with their employer, e.g. "Alice at Google"."""
    entities: list[Entity] = []
    relations: list[Relation] = []
    first_names = load_words("FIRST_NAMES")
    for match in get_pattern("graph.colleague").finditer(text):
        person, employer = match["who"], match["where"].rstrip(".")
        if (
            is_name(person, require_known=True)
            and person.split()[0].lower() in first_names
            and employer.lower() not in first_names
        ):
            entities += [Entity(person, "person"), Entity(employer, "organization")]
            relations.append(Relation(person, "works_at", employer, _COLLEAGUE_CONFIDENCE, turn))
    return tuple(entities), tuple(relations)


_CLAUSE_PARSERS = (
    attributes.parse_nickname,
    attributes.parse_contact,
    attributes.parse_reply_style,
    attributes.parse_appointment,
    people.parse_project,
    attributes.parse_attribute,
    parse_due,
    parse_livelihood,
    parse_booking,
)


def parse_clause(ctx: TurnContext, clause: Clause) -> list[RuleClaim]:
    """Parse a clause, hedging its claims if its opening words express doubt."""
    claims: list[RuleClaim] = []
    for parser in _CLAUSE_PARSERS:
        claims = list(parser(ctx, clause))
        if claims:
            break
    claims = claims or list(_parse_statement(ctx, clause))
    return [_hedge(claim) for claim in claims] if clause.confidence < 1 else claims


def _hedge(claim: RuleClaim) -> RuleClaim:
    return replace(claim, modality="hedged", confidence=min(claim.confidence, HEDGED_CONFIDENCE))


def _parse_statement(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse the subject and verb of a clause."""
    subject = _find_subject(ctx, clause)
    ctx.subject = subject.referent if subject else None
    if subject is None:
        claims = list(parse_bare_clause(ctx, clause))
        ctx.subject = Referent(ctx.speaker, is_speaker=True) if claims else None
        yield from claims
        return
    if not subject.referent.is_speaker:
        ctx.last_referent = subject.referent
    if subject.name:
        is_gone = people.is_deceased(ctx.text, subject.verb_start, clause.end)
        end = subject.name_start + len(subject.name)
        name, polarity = capitalise_name(subject.name), NEGATED if is_gone else ASSERTED
        yield people.build_relation_claim(
            ctx.speaker, subject.referent.relation, name, clause.start, end, polarity
        )
        if is_gone:
            return
    elif (pet_noun := subject.referent.relation) in load_words("PETS") and people.is_deceased(
        ctx.text, subject.verb_start, clause.end
    ):
        yield people.build_pet_loss(ctx.speaker, pet_noun, clause.start, subject.verb_start)
        return
    if verb := _find_verb(ctx, clause, subject):
        yield from parse_verb_clause(ctx, clause, subject.referent, verb)


def _find_verb(ctx: TurnContext, clause: Clause, subject: ClauseSubject) -> ParsedVerb | None:
    """Return the verb of a clause, or an implied "be" if it continues with a state."""
    verb = parse_verb(ctx.text, subject.verb_start, clause.end)
    is_finite = verb is None or verb.features.tense != ING
    if (
        clause.is_continuation
        and is_finite
        and get_pattern("sentence.states").match(ctx.text, subject.verb_start, clause.end)
    ):
        adverb_match = get_pattern("sentence.meanwhiles").match(
            ctx.text, subject.verb_start, clause.end
        )
        complement_start = adverb_match.end() if adverb_match else subject.verb_start
        return ParsedVerb("be", VerbFeatures(), complement_start, complement_start)
    return verb


def _find_subject(ctx: TurnContext, clause: Clause) -> ClauseSubject | None:
    """Return the subject of a clause; a continuation keeps the previous one."""
    subject = parse_subject(ctx.text, clause.start, clause.end, ctx.speaker, ctx.last_referent)
    if subject and (introduced := ctx.people.get(subject.referent.name)):
        subject = replace(subject, referent=introduced)
    if subject and not (
        subject.referent.is_speaker
        or subject.referent.relation
        or parse_verb(ctx.text, subject.verb_start, clause.end)
    ):
        subject = None  # a capital letter alone makes no person: "Allergic to nuts"
    if subject is None and clause.is_continuation and ctx.subject is not None:
        return ClauseSubject(ctx.subject, clause.start)
    return subject


def parse_relative_clauses(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse clauses such as "a gift for my dad, who loves fishing", even in questions."""
    for match in get_pattern("people.relative_clause").finditer(ctx.text, start, end):
        referent = parse_relative(match, ctx.speaker).referent
        if verb := parse_verb(ctx.text, match.end(), end):
            yield from parse_verb_clause(
                ctx, Clause(match.start(), end, lead=match.start()), referent, verb
            )


_IMPLIED_PREDICATES: Final = {"drives": "owns", "bought": "owns", "married_to": "has_partner"}
"""Predicates that make a mention of another predicate redundant."""
MAX_CLAIMS: Final = 12
"""Maximum number of claims per turn; longer lists are documents."""


@dataclass(frozen=True, slots=True)
class LocalExtractor:
    """An extractor that works by rules, without a model, and prefers silence to guessing."""

    name: str = "local"
    local: bool = True

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        """Return the claims, entities and relations of the turns."""
        yield from ()
        return extract_claims(inputs)


def extract_claims(inputs: ExtractionInput) -> ExtractionResult:
    """Extract everything the rules find in user turns."""
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
                    f"One message makes {len(all_claims)} claims; "
                    f"the first {MAX_CLAIMS} were taken."
                )
            names.update(
                (speaker, item.object)
                for item in kept
                if (item.subject, item.predicate) == (speaker, "name")
            )
            numbered_claims += [(number, item) for item in kept]
            colleagues = find_colleagues(turn.evidence.content, number)
            entities, relations = [*entities, *colleagues[0]], [*relations, *colleagues[1]]
        question = (
            turn.evidence.content if turn.evidence.role == "assistant" or turn.evidence.name else ""
        )
    entity_graph = build_graph(numbered_claims, names)
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
        dedupe_entities((*entity_graph[0], *entities)),
        (*entity_graph[1], *others),
        warnings=tuple(warnings),
    )


def parse_turn(
    inputs: ExtractionInput, turn: InputTurn, speaker: str, question: str
) -> list[RuleClaim]:
    """Return the distinct claims of one turn in text order."""
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
    """Return the predicates and subjects stated explicitly, which make mentions redundant."""
    stated_claims = [claim for claim in claims if claim.confidence != MENTION_CONFIDENCE]
    predicates = {
        _IMPLIED_PREDICATES.get(claim.predicate, claim.predicate) for claim in stated_claims
    }
    return predicates | {claim.subject.lower() for claim in stated_claims}


def _normalise_text(text: str) -> tuple[RewrittenText, ...]:
    """Return the rewriting steps of a text; words of foreign texts are not corrected."""
    if foreign.is_foreign(text):
        return (correct_spelling(text, fix_words=False),)
    corrected = correct_spelling(text)
    return corrected, rewrite_idioms(corrected.text)


def _restore_source(readings: tuple[RewrittenText, ...], claim: RuleClaim) -> RuleClaim:
    """Map a claim back to its span and wording in the original text."""
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
    """Parse all sentences; claims without a time get the turn's validity."""
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
        for claim in foreign.parse_foreign(ctx, sentence) or _parse_english(ctx, sentence):
            yield replace(claim, valid=ctx.default_interval) if claim.valid == ALWAYS else claim


def _parse_complaint(ctx: TurnContext, sentence: SentenceSpan) -> Iterator[RuleClaim]:
    """Parse the fact in a sarcastic complaint: "I just love it when my neighbour drums"."""
    if match := get_pattern("sentence.complaint").search(ctx.text, sentence.start, sentence.end):
        clause = Clause(match.end(), sentence.end, lead=match.end())
        yield from (claim for claim in parse_clause(ctx, clause) if claim.subject != ctx.speaker)


def _parse_english(ctx: TurnContext, sentence: SentenceSpan) -> Iterator[RuleClaim]:
    """Parse the clauses of a sentence up to reported speech."""
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
        yield from people.parse_project_name(ctx, sentence.start, end)
        yield from people.parse_project_parts(ctx, sentence.start, end)
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
