"""From a clause to what it says: what is asked of the assistant, what is named, what its verb says of its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from told.write.local import attributes, people, projects, requests
from told.write.local.bare import parse_bare_clause, parse_booking
from told.write.local.doings import parse_livelihood
from told.write.local.due import parse_due
from told.write.local.said import ASSERTED, HEDGED_CONFIDENCE, NEGATED, RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.speaker import (
    ClauseSubject,
    Referent,
    capitalise_name,
    parse_relative,
    parse_subject,
)
from told.write.local.tables import get_pattern, load_words
from told.write.local.verb import ING, ParsedVerb, VerbFeatures, parse_verb
from told.write.local.verbal import parse_verb_clause

_CLAUSE_PARSERS = (
    requests.parse_nickname, requests.parse_contact, requests.parse_reply_style, attributes.parse_appointment, projects.parse_project,
    attributes.parse_attribute, parse_due, parse_livelihood, parse_booking,
)  # fmt: skip


def parse_clause(ctx: TurnContext, clause: Clause) -> list[RuleClaim]:
    """Everything a clause says, surer or less sure as its opening words leave it."""
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
    """What the verb of a clause says of its subject."""
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
    """The verb of a clause; one that goes on with what somebody is has left out its own."""
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
    """Whom a clause is about; one that goes on speaks of the one before."""
    subject = parse_subject(ctx.text, clause.start, clause.end, ctx.speaker, ctx.last_referent)
    if subject and (introduced := ctx.people.get(subject.referent.name)):
        subject = replace(subject, referent=introduced)
    if subject and not (
        subject.referent.is_speaker
        or subject.referent.relation
        or parse_verb(ctx.text, subject.verb_start, clause.end)
    ):
        subject = None  # a capital alone makes no person: Allergic to nuts
    if subject is None and clause.is_continuation and ctx.subject is not None:
        return ClauseSubject(ctx.subject, clause.start)
    return subject


def parse_relative_clauses(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """What is said beside somebody of the speaker's, even in a question: "a gift for my dad, who loves fishing"."""
    for match in get_pattern("people.who").finditer(ctx.text, start, end):
        referent = parse_relative(match, ctx.speaker).referent
        if verb := parse_verb(ctx.text, match.end(), end):
            yield from parse_verb_clause(
                ctx, Clause(match.start(), end, lead=match.start()), referent, verb
            )
