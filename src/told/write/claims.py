"""From what an extractor found to the entries of a plan: curated, carried out, and woven into the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.core.echo import Own
from told.core.entry import Claim
from told.core.hearsay import quoted, unquoted
from told.core.query import Receipt
from told.core.trust import STAMP, Trust, channel
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ports import Step, Usage
from told.write import chunk
from told.write.curate.graph import plan_graph
from told.write.curate.plan import Place, Written, plan_claims
from told.write.desk import Desk, Plan, settle
from told.write.extract.ground import Ground
from told.write.extract.verbatim import KindExtractor
from told.write.shape import Extracted, Extractor, Found, Heard
from told.write.understand import Case, Overtaken, Understand, Understood


def curated(
    desk: Desk, plan: Plan, heard: Heard, found: Extracted, extractor: Extractor, places: Sequence[int],
    own: Sequence[Own], expires: int | None, seen: int,
) -> Flow[Usage]:  # fmt: skip
    """Add to a plan what becomes of the claims.

    `places` says which turn of the plan each heard turn is, and `own` which of that turn's words were heard.
    """
    given = isinstance(extractor, KindExtractor)
    weighed = found.claims if given else [replace(one, claim=_weighed(heard, one)) for one in found.claims]
    claims = [_rooted(heard, one, own[one.turn], expires) for one in weighed]
    done = yield from desk.mind.curator(extractor, desk.store, desk.embedder).decide(heard, claims)
    evidence = [plan.evidence[place] for place in places]
    fresh = [plan.fresh[place] for place in places]
    place = Place(heard.scope, extractor.name, seen, heard.now, desk.mint)
    written = plan_claims(place, done.decisions, evidence, fresh)
    plan.drafts += written.drafts
    plan.guards += written.guards
    if found.entities or found.relations:
        told = list(_told(written))
        drawn = yield from plan_graph(desk.store, place, found.entities, found.relations, told, evidence, _role(heard))
        plan.drafts += drawn.drafts
        plan.guards += drawn.guards
    plan.events += [event for event in written.events if event.id]
    plan.warnings.update(dict.fromkeys(done.warnings))
    plan.garbled += done.faults
    return done.usage


def _told(written: Written) -> Iterator[tuple[str, str]]:
    """The threads that claims were put on, and what they say now."""
    for thread, event in zip(written.threads, written.events, strict=True):
        if thread is not None and event.text is not None and event.event in ("ADD", "UPDATE"):
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
        found = yield from chunk.extract(extractor, heard, desk.settings)
        usage = found.usage

        def decide() -> Flow[tuple[Receipt, Plan]]:
            nonlocal usage
            account = case.scope.account
            if step is not None and (yield from call(desk.store.cursor, account, step.consumer)) != step.before:
                raise Overtaken
            seen = (yield from call(desk.store.head, account)).seq
            plan = Plan([], [], [], evidence=list(case.evidence), fresh=[False] * len(case.evidence))
            everything = range(len(case.turns))
            asked = yield from curated(
                desk, plan, heard, found, extractor, everything, case.own, case.ask.get("expires"), seen
            )
            usage = usage + asked
            receipt = yield from settle(desk, case.scope, plan, seen, step=step)
            return receipt, plan

        receipt, plan = yield from decided(desk.settings.conflict_retries, decide)
        warnings = (*found.warnings, *receipt.warnings)
        return Understood(receipt.events, warnings, (*found.faults, *plan.garbled), usage)

    return understand


def _heard(desk: Desk, case: Case) -> Heard:
    ask: Mapping[str, Any] = case.ask
    facts = tuple(ask.get("facts", ()))
    return Heard(
        case.turns, case.at, case.scope, desk.mind.ontology, (), ask.get("prompt"), desk.settings.zone, facts
    )
