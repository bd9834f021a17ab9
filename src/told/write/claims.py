"""From what an extractor found to the entries of a plan: curated, carried out, and woven into the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.echo import Own
from told.core.entry import Claim
from told.core.fact import QUARANTINE
from told.core.hearsay import quoted, unquoted
from told.core.query import Receipt
from told.core.trust import STAMP, Trust, channel
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ports import Guard, Intact, Step, Usage
from told.write import chunk
from told.write.curate.graph import plan_graph
from told.write.curate.plan import Place, Written, bounded, plan_claims
from told.write.curate.slots import tells
from told.write.desk import FACT, Desk, Plan, settle
from told.write.extract.ground import Ground
from told.write.extract.parse import DUPLICATE
from told.write.extract.verbatim import KindExtractor
from told.write.hearing import Piece
from told.write.shape import Decision, Extracted, Extractor, Found, Heard
from told.write.understand import Case, Overtaken, Understand, Understood, intact, taken_back

TAKEN_BACK = "it was given up before a model was asked"


def curated(
    desk: Desk, plan: Plan, heard: Heard, found: Extracted, extractor: Extractor, parts: Sequence[Piece],
    expires: int | None, seen: int,
) -> Flow[Usage]:  # fmt: skip
    """Add to a plan what becomes of the claims; `parts` says what of which turn of the plan each heard turn is."""
    aside = [Found(one.claim, one.turn or 0) for one in found.dropped if one.claim is not None]
    given = isinstance(extractor, KindExtractor)
    weighed = found.claims if given else [replace(one, claim=_weighed(heard, one)) for one in found.claims]
    claims = [_rooted(heard, one, parts[one.turn].own, expires) for one in (*weighed, *aside)]
    done = yield from desk.mind.curator(extractor, desk.store, desk.embedder).decide(heard, claims)
    evidence = [plan.evidence[part.place] for part in parts]
    fresh = [plan.fresh[part.place] for part in parts]
    place = Place(heard.scope, extractor.name, seen, heard.now, desk.mint, bounded(heard.ontology))
    written = plan_claims(place, done.decisions, evidence, fresh)
    plan.drafts += written.drafts
    plan.guards += written.guards
    if found.entities or found.relations:
        told = list(_told(done.decisions, written))
        said = [turn.evidence.content for turn in heard.turns]
        drawn = yield from plan_graph(
            desk.store, place, found.entities, found.relations, told, evidence, _role(heard), said
        )
        plan.drafts += drawn.drafts
        plan.guards += drawn.guards
    _tell(plan, done.decisions, written)
    threads = zip(done.decisions, written.threads, strict=True)
    plan.spoken_for |= {parts[decision.turn].place for decision, thread in threads if thread is not None}
    dropped = (one for one in found.dropped if one.claim is None and one.reason != DUPLICATE)
    plan.skipped += [_row(one.reason, one.what) for one in dropped]
    plan.warnings.update(dict.fromkeys(done.warnings))
    plan.garbled += done.faults
    return done.usage


def _tell(plan: Plan, decisions: Sequence[Decision], written: Written) -> None:
    """Tell what became of each claim: what is held now, and what waits for somebody to look at it."""
    for decision, event in zip(decisions, written.events, strict=True):
        claim, fact = decision.claim, decision.fact
        if claim is not None and QUARANTINE in (claim.kind, fact.kind if fact else None):
            why = str(claim.meta.get("why") or decision.why)
            plan.skipped.append({**_row(why, event.text or ""), "id": event.id, "role": event.role})
        elif event.id:
            plan.events.append(event)
        else:
            plan.skipped.append({**_row(decision.why, event.text or ""), "role": event.role})


def _row(reason: str, what: str) -> dict[str, Any]:
    return {"reason": reason, FACT: what}


def _told(decisions: Sequence[Decision], written: Written) -> Iterator[tuple[str, str]]:
    """The threads that claims were put on, and what they say now; no name leads to what is in doubt."""
    for decision, thread, event in zip(decisions, written.threads, written.events, strict=True):
        doubted = decision.claim is not None and decision.claim.kind == QUARANTINE
        if thread is not None and event.text is not None and event.event in ("ADD", "UPDATE") and not doubted:
            yield thread, event.text


def _role(heard: Heard) -> str:
    """Who speaks for what was heard: the least trusted of those who do."""
    return min((turn.evidence.role for turn in heard.turns), key=channel, default="user")


def _weighed(heard: Heard, found: Found) -> Claim:
    """A claim with the stamp of a document, where it stands in what the speaker quotes and nowhere else in the turn."""
    claim, said = found.claim, heard.turns[found.turn].evidence
    blocks = quoted(said.content)
    if not any(claim.span is None or (claim.span[0] < end and start < claim.span[1]) for start, end in blocks):
        return claim
    ground = Ground([replace(heard.turns[found.turn], evidence=replace(said, content=unquoted(said.content)))])
    if ground.said(claim) is not None:
        return claim
    return replace(claim, meta={**claim.meta, STAMP: Trust.DOCUMENT.label})


def _rooted(heard: Heard, found: Found, own: Own, expires: int | None) -> Found:
    """A claim with what the caller attached to the turn it was found in, and its span in the evidence itself."""
    claim, turn = found.claim, heard.turns[found.turn]
    meta = {**turn.meta, **claim.meta} if turn.meta else claim.meta
    span = None if claim.span is None else own.back(*claim.span)
    until = claim.expires if expires is None else expires
    return replace(found, claim=replace(claim, meta=meta, span=span, expires=until))


def understanding(desk: Desk) -> Understand:
    """What asks an extractor about a case and commits what comes of it, together with the step."""

    def understand(case: Case, step: Step | None) -> Flow[Understood]:
        extractor = desk.extractor(str(case.ask["by"]))
        heard = _heard(desk, case)
        found = yield from chunk.extract(extractor, replace(heard, ontology=desk.mind.catalogue), desk.settings)
        usage = found.usage

        def decide() -> Flow[tuple[Receipt, Plan]]:
            nonlocal usage
            account = case.scope.account
            if step is not None and (yield from call(desk.store.cursor, account, step.consumer)) != step.before:
                raise Overtaken
            seen = (yield from call(desk.store.head, account)).seq
            if not (yield from intact(desk.store, account, case)):
                raise Overtaken
            guards: list[Guard] = [Intact(seq) for seq in case.seqs]
            first = step is not None  # whoever is asked once more has been counted as a witness
            plan = Plan([], guards, [], evidence=list(case.evidence), fresh=[first] * len(case.evidence))
            expires = case.ask.get("expires")
            gone = yield from taken_back(desk.store, account, case)
            again = [one for one in found.claims if any(tells(one.claim, each) for each in gone[one.turn])]
            plan.skipped += [{**_row(TAKEN_BACK, one.claim.text), "role": one.claim.role} for one in again]
            kept = replace(found, claims=tuple(one for one in found.claims if one not in again))
            asked = yield from curated(desk, plan, heard, kept, extractor, case.parts, expires, seen)
            usage = usage + asked
            receipt = yield from settle(desk, case.scope, plan, seen, step=step)
            return receipt, plan

        receipt, plan = yield from decided(desk.settings.conflict_retries, decide)
        warnings = (*found.warnings, *receipt.warnings)
        return Understood(receipt.events, warnings, (*found.faults, *plan.garbled), usage, receipt.skipped)

    return understand


def _heard(desk: Desk, case: Case) -> Heard:
    ask: Mapping[str, Any] = case.ask
    turns, facts = tuple(part.turn for part in case.parts), tuple(ask.get("facts", ()))
    return Heard(turns, case.at, case.scope, desk.mind.ontology, (), ask.get("prompt"), desk.settings.zone, facts)
