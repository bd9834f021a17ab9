"""Plan the entries of new turns: the evidence, and a thread for each turn kept as a memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from told.ingest import messages
from told.ingest.context import ExtractionOptions, WriteContext, WritePlan
from told.ingest.gate import GateDecision
from told.ingest.messages import InputTurn, PrecedingTurn, build_span_meta
from told.ingest.queue import META_KEY, OPTIONS_KEY
from told.ledger.erase import SUPPORTS
from told.model.beliefs import TRUST_KEY, Trust, trust_of_channel
from told.model.entry import Asserted, Claim, Draft, Evidence, Linked, Observed
from told.model.fact import UNLISTED_KINDS, Fact
from told.model.kind import Semantics, WriteMode
from told.model.query import Event
from told.model.scope import Scope
from told.ports import ExistingState, Guard, NoEvidence, NoFact, ThreadAt
from told.text.echo import OwnText, has_image_text

REPEAT_META = {"said": "again"}
KEPT_METADATA_WARNING = (
    "The text is already stored; its metadata and expiration were not changed. "
    "Use update() to change them."
)


@dataclass(slots=True)
class EvidencePlanner:
    """Plans the entries of turns one by one, given the stored state and earlier turns."""

    ctx: WriteContext
    scope: Scope
    expires: int | None
    extraction_meta: Mapping[str, Any] | None
    plan: WritePlan
    current_facts: Mapping[str, Fact]
    evidence_by_digest: dict[bytes, str]
    preceding: PrecedingTurn | None
    listed_threads: dict[str, str] = field(default_factory=dict)
    """Threads planned so far, by text MD5."""
    unlisted_threads: dict[str, str] = field(default_factory=dict)
    """The same for kinds that listings leave out, such as turns."""

    def plan_turn(self, decision: GateDecision, kind: str | None, md5: str) -> None:
        """Plan the evidence of a turn, and a thread unless `kind` is None."""
        preceding, self.preceding = self.preceding, None
        evidence, is_new = self._plan_evidence(decision, kind)
        self.plan.evidence_ids.append(evidence)
        self.plan.is_new.append(is_new)
        if kind is None:
            return
        turn, current = decision.turn, self.current_facts.get(md5)
        if current is not None and is_new and self._is_new_occurrence(turn, kind, current):
            current = None
        thread = self._find_planned_thread(kind, md5) or (
            None if current is None else self._find_current_thread(kind, current)
        )
        if thread is None:
            self._plan_assertion(turn, kind, md5, evidence, preceding, current)
            return
        if is_new:
            self._add_draft(Linked(evidence, SUPPORTS, thread, meta=REPEAT_META))
        if (turn.meta or self.expires is not None) and kind not in UNLISTED_KINDS:
            self.plan.warnings[KEPT_METADATA_WARNING] = None
        self._add_event(turn, kind, "NONE", thread)

    def _plan_evidence(self, decision: GateDecision, kind: str | None) -> tuple[str, bool]:
        """Return the evidence id of a turn, and whether it is new."""
        turn_evidence = decision.turn.evidence
        digest = turn_evidence.digest()
        known_id = self.evidence_by_digest.get(digest)
        if known_id is not None:
            return known_id, False
        evidence = self.evidence_by_digest[digest] = self.ctx.id_generator.new_id()
        if self.extraction_meta is not None and kind is not None:
            turn_evidence = attach_extraction_meta(
                turn_evidence, self.extraction_meta, decision.turn.meta, decision.own_text
            )
        self._add_draft(Observed(evidence, turn_evidence))
        return evidence, True

    def _find_planned_thread(self, kind: str, md5: str) -> str | None:
        """Return a thread already planned for the same text.

        An unlisted thread only serves another unlisted turn.
        """
        thread = self.listed_threads.get(md5)
        return (
            self.unlisted_threads.get(md5) if thread is None and kind in UNLISTED_KINDS else thread
        )

    def _is_new_occurrence(self, turn: InputTurn, kind: str, fact: Fact) -> bool:
        """Return True if an append-only kind repeats the same text for another day."""
        said_at = turn.evidence.said_at
        if said_at in (None, fact.said_at) or fact.said_at is None:
            return False
        rules = self.ctx.extraction.ontology.get(kind)
        return (
            rules is not None
            and rules.write is WriteMode.APPEND
            and rules.semantics is Semantics.IMMUTABLE
        )

    def _find_current_thread(self, kind: str, fact: Fact) -> str | None:
        """Return the stored thread with this text, if it can take this one.

        It cannot if it expired, or if it is unlisted and this turn would be listed.
        """
        is_hidden = fact.kind in UNLISTED_KINDS and kind not in UNLISTED_KINDS
        return None if is_hidden or fact.expires <= self.ctx.id_generator.now() else fact.id

    def _plan_assertion(
        self,
        turn: InputTurn,
        kind: str,
        md5: str,
        evidence: str,
        preceding: PrecedingTurn | None,
        current: Fact | None,
    ) -> None:
        """Plan a thread for a turn, or a new version of one that expired."""
        after = None
        if preceding is not None and messages.is_reply(
            turn.evidence, preceding, self.ctx.settings.ingestion.pause_minutes
        ):
            after = preceding.thread
            self.plan.preceding_texts[after] = preceding.passage
        thread = self.ctx.id_generator.new_id() if current is None else current.id
        claim = build_verbatim_claim(turn, evidence, self.expires, kind, after)
        self._add_draft(Asserted(thread, claim, None if current is None else current.created_at))
        if current is not None:
            self.plan.guards.append(ThreadAt(thread, current.seq))
        (self.unlisted_threads if kind in UNLISTED_KINDS else self.listed_threads)[md5] = thread
        self.preceding = (
            messages.evidence_to_preceding(thread, turn.evidence) if current is None else None
        )
        self._add_event(
            turn,
            kind,
            "ADD" if current is None or current.kind in UNLISTED_KINDS else "UPDATE",
            thread,
        )

    def _add_event(self, turn: InputTurn, kind: str, event: str, thread: str) -> None:
        if kind in UNLISTED_KINDS:
            return
        turn_evidence = turn.evidence
        previous = turn_evidence.content if event == "UPDATE" else None
        self.plan.events.append(
            Event(
                event,
                thread,
                turn_evidence.content,
                previous,
                turn_evidence.role,
                turn_evidence.name,
            )
        )

    def _add_draft(self, verb: Observed | Asserted | Linked) -> None:
        self.plan.drafts.append(Draft(verb, self.scope, self.ctx.author))

    def build_guards(self, existing: ExistingState) -> tuple[Guard, ...]:
        """Return guards against concurrent writes of the same evidence or texts."""
        new_digests = self.evidence_by_digest.keys() - existing.evidence
        new_texts = (self.listed_threads.keys() | self.unlisted_threads) - existing.facts.keys()
        return NoEvidence(self.scope, tuple(new_digests)), NoFact(self.scope, tuple(new_texts))


def plan_evidence(
    ctx: WriteContext,
    scope: Scope,
    turns: Iterable[tuple[GateDecision, str | None, str]],
    existing: ExistingState,
    *,
    expires: int | None,
    options: ExtractionOptions | None,
    requeued_ids: Collection[str] = (),
) -> WritePlan:
    """Plan the entries of turns, given as (decision, kind or None for evidence only, text MD5).

    With `options`, new evidence is queued for extraction; `requeued_ids` are queued again.
    """
    plan = WritePlan([], [], [])
    extraction_meta = None if options is None else options_to_meta(options, expires)
    preceding = (
        None if existing.last_turn is None else messages.fact_to_preceding(existing.last_turn)
    )
    evidence_by_digest = {
        digest: evidence
        for digest, evidence in existing.evidence.items()
        if evidence not in requeued_ids
    }
    planner = EvidencePlanner(
        ctx, scope, expires, extraction_meta, plan, existing.facts, evidence_by_digest, preceding
    )
    for decision, kind, md5 in turns:
        planner.plan_turn(decision, kind, md5)
    plan.guards += planner.build_guards(existing)
    return plan


def options_to_meta(options: ExtractionOptions, expires: int | None) -> dict[str, Any]:
    """Return extraction options as stored in evidence metadata."""
    stored = {
        "by": options.extractor,
        "prompt": options.prompt,
        "facts": list(options.facts),
        "expires": expires,
    }
    return {name: value for name, value in stored.items() if value not in (None, [])}


def attach_extraction_meta(
    turn_evidence: Evidence,
    extraction_meta: Mapping[str, Any],
    meta: Mapping[str, Any],
    own_text: OwnText,
) -> Evidence:
    """Return evidence with its extraction options, own-text spans and caller metadata."""
    added_meta = {
        OPTIONS_KEY: extraction_meta,
        **({META_KEY: meta} if meta else {}),
        **build_span_meta(own_text, turn_evidence.content),
    }
    return replace(turn_evidence, meta={**turn_evidence.meta, **added_meta})


def build_verbatim_claim(
    turn: InputTurn, evidence: str, expires: int | None, kind: str, after: str | None
) -> Claim:
    """Return a turn as a verbatim claim, with a trust label if below its role's trust."""
    turn_evidence, meta = turn.evidence, turn.meta
    if (trust := get_turn_trust(turn)) < trust_of_channel(turn_evidence.role):
        meta = {**meta, TRUST_KEY: trust.label}
    return Claim(
        turn_evidence.content,
        kind,
        valid=turn.valid,
        expires=expires,
        evidence=evidence,
        span=(0, len(turn_evidence.content)),
        role=turn_evidence.role,
        actor=turn_evidence.name,
        said_at=turn_evidence.said_at,
        source=turn_evidence.source,
        after=after,
        meta=meta,
    )


def get_turn_trust(turn: InputTurn) -> Trust:
    """Return the trust of a turn; image text lowers it to that of a document."""
    turn_evidence = turn.evidence
    return (
        Trust.DOCUMENT
        if has_image_text(turn_evidence.content)
        else trust_of_channel(turn_evidence.role, turn_evidence.sort)
    )
