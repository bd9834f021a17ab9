"""Curate with a model: it proposes decisions, and checks may veto them.

One call decides many facts of one source. Memories are shown with short numbers, and only those
numbers are accepted in the reply. Memories of a less trusted source are not shown. A model cannot
change memories that the claim's source may not, retire unrelated memories, write words found
neither in the memory nor in the claim, or delete a memory without a contradicting claim. The rules
decide whatever it leaves undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from told.curation import rules, write_policies
from told.curation.decisions import (
    NEGATED,
    decide_delete,
    decide_none,
    decide_quarantine,
    decide_update,
    is_late,
    is_trusted_over,
    merge_meta,
)
from told.curation.lookup import CurationState, apply_source_trust, load_state
from told.curation.predicates import OPPOSITES, get_sibling_predicates, is_loose
from told.errors import InvalidInput
from told.extraction.prompting import load_prompt
from told.flow import Flow, call
from told.ingest.types import QUARANTINED, CurationResult, Decision, ExtractedClaim, ExtractionInput
from told.ledger.consumer import Failure, catch_failure
from told.model.beliefs import Trust, trust_of_source
from told.model.entry import Claim
from told.model.fact import QUARANTINE, UNLISTED_KINDS, Fact
from told.model.kind import Semantics, WriteMode, lookup_predicate
from told.model.query import LATEST, AsOf, FactQuery, IndexQuery, IndexResult
from told.ports import LLM, Embedder, Store, Usage, Vector, get_usage, validate_vectors
from told.settings import Settings
from told.text.dates import format_iso
from told.text.similarity import WordingRelation, compare_wordings, stem_words
from told.text.tokens import STOP_WORDS, extract_query_terms, parse_lenient_json

RRF_K: Final = 60
OVERFETCH: Final = 4
"""Over-fetch factor, since some candidates belong to narrower scopes or unlisted kinds."""


@dataclass(frozen=True, slots=True)
class NearestMemories:
    """A search for the memories most similar to a text."""

    store: Store
    embedder: Embedder | None
    limit: int

    def find_nearest(self, inputs: ExtractionInput, texts: Sequence[str]) -> Flow[list[list[Fact]]]:
        """Return the nearest memories of exactly this scope for each text, best first."""
        vectors = yield from self._embed_or_skip(texts)
        query = FactQuery(inputs.scope, AsOf(LATEST, inputs.now))
        depth = self.limit * OVERFETCH
        nearest: list[list[Fact]] = []
        for text, vector in zip(texts, vectors, strict=True):
            model = self.embedder.model if self.embedder and vector is not None else None
            index_query = IndexQuery(
                query, tuple(dict.fromkeys(extract_query_terms(text))), vector, depth, model
            )
            seqs = _fuse_ranks((yield from call(self.store.index.search, index_query)))
            versions = yield from call(self.store.find_versions, inputs.scope.account, seqs=seqs)
            facts = {fact.seq: fact for fact in versions}
            scope_facts = (
                facts[seq] for seq in seqs if seq in facts and facts[seq].scope == inputs.scope
            )
            nearest.append(
                [fact for fact in scope_facts if fact.kind not in UNLISTED_KINDS][: self.limit]
            )
        return nearest

    def _embed_or_skip(self, texts: Sequence[str]) -> Flow[Sequence[Vector | None]]:
        """Embed the texts; return None for each if the embedder fails or is not the store's."""
        store_model = yield from call(self.store.current_model)
        if (
            self.embedder is None
            or store_model is None
            or store_model[0] != self.embedder.model
            or not texts
        ):
            return [None] * len(texts)
        outcome = yield from catch_failure(_embed_texts(self.embedder, texts))
        return [None] * len(texts) if isinstance(outcome, Failure) else outcome


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> Flow[Sequence[Vector]]:
    vectors = yield from call(embedder.embed, list(texts), "query")
    return validate_vectors(embedder, vectors, len(texts))


def _fuse_ranks(index_result: IndexResult) -> list[int]:
    """Fuse the vector and term rankings by reciprocal rank."""
    scores: dict[int, float] = {}
    for ranking in (index_result.by_vector, index_result.by_terms):
        for rank, (seq, _) in enumerate(ranking):
            scores[seq] = scores.get(seq, 0.0) + 1.0 / (RRF_K + rank + 1)
    return sorted(scores, key=lambda seq: (-scores[seq], -seq))


EVENTS: Final = ("ADD", "UPDATE", "DELETE", "NONE")
LIST_KEYS: Final = ("decisions", "operations", "events", "memory", "results")
TEXT_KEYS: Final = ("text", "data", "new_memory")
MAX_NEW_WORD_SHARE: Final = 0.2
"""Maximum share of words in a merged text that occur in neither of its sources."""
SCHEMA: Final = {
    "type": "object",
    "required": ["decisions"],
    "properties": {
        "decisions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["fact", "event"],
                "properties": {
                    "fact": {"type": "integer"},
                    "event": {"type": "string", "enum": list(EVENTS)},
                    "id": {"type": "integer"},
                    "text": {"type": "string"},
                },
            },
        }
    },
}


ClaimRow: TypeAlias = tuple[int, Claim, list[Fact]]
"""The number of a claim, the claim, and the memories to compare it with."""


@dataclass(frozen=True, slots=True)
class CurationProposal:
    """A decision proposed by the model and the memory it refers to, if any."""

    event: str
    fact: Fact | None = None
    text: str = ""


@dataclass(slots=True)
class CurationReply:
    """Proposals by claim number, with the warnings and unreadable replies."""

    proposals: dict[int, list[CurationProposal]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unreadable_replies: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ModelCurator:
    """A curator that asks a model for decisions and checks them against the rules."""

    llm: LLM
    store: Store
    settings: Settings
    embedder: Embedder | None = None
    prompt: str | None = None

    def decide(
        self, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
    ) -> Flow[CurationResult]:
        """Return one or more decisions for every claim, in the order of the claims."""
        state = yield from load_state(self.store, inputs, claims, self.settings)
        asked_numbers = [
            number
            for number, extracted in enumerate(claims)
            if _should_ask_model(state, extracted.claim)
        ]
        nearest = NearestMemories(self.store, self.embedder, self.settings.ingestion.curate_near)
        nearest_facts = yield from nearest.find_nearest(
            inputs, [claims[number].claim.text for number in asked_numbers]
        )
        curation_reply = CurationReply()
        numbered_facts = zip(asked_numbers, nearest_facts, strict=True)
        for rows in _group_by_source(
            _build_row(inputs, number, claims[number], facts) for number, facts in numbered_facts
        ):
            for start in range(0, len(rows), self.settings.ingestion.curate_batch):
                yield from self._ask_model(
                    curation_reply, rows[start : start + self.settings.ingestion.curate_batch]
                )
        touched: set[str] = set()
        for number, extracted in enumerate(claims):
            proposals = curation_reply.proposals.get(number, [])
            if not _apply_proposals(
                state, inputs, extracted, proposals, touched, curation_reply.warnings
            ):
                rules.apply_claim(state, inputs, extracted)
        return CurationResult(
            tuple(state.decisions),
            tuple(curation_reply.warnings),
            tuple(curation_reply.unreadable_replies),
            curation_reply.usage,
        )

    def _ask_model(self, curation_reply: CurationReply, rows: Sequence[ClaimRow]) -> Flow[None]:
        """Ask about a batch of claims; if the model fails, the rules decide."""
        memories = list({fact.id: fact for _, _, facts in rows for fact in facts}.values())
        system = self.prompt or load_prompt("curate")
        reply = yield from catch_failure(
            call(self.llm.ask, system, build_question(rows, memories), schema=SCHEMA)
        )
        if isinstance(reply, Failure):
            curation_reply.warnings.append(
                f"{self.llm.model} failed, so the rules decided: {reply}"
            )
            return
        curation_reply.usage += get_usage(reply)
        try:
            payload = parse_lenient_json(reply)
        except InvalidInput:
            curation_reply.warnings.append(
                f"The reply of {self.llm.model} is unreadable, so the rules decided."
            )
            curation_reply.unreadable_replies.append(str(reply))
            return
        _parse_decisions(curation_reply, payload, rows, memories)


def _should_ask_model(state: CurationState, claim: Claim) -> bool:
    """Return False for exact repeats and quarantined, immutable or document claims."""
    exact = state.find_same_text(claim)
    is_known = exact is not None and exact.expires > state.now
    is_quarantined = claim.kind == QUARANTINE or claim.modality == QUARANTINED
    is_immutable = (
        claim.predicate is not None
        and lookup_predicate(claim.predicate).semantics is Semantics.IMMUTABLE
    )
    kind = state.get_kind(claim.kind)
    is_document = (
        claim.predicate is None
        and kind is not None
        and write_policies.get_routing_key(kind, claim) is not None
    )
    return not (is_known or is_quarantined or is_immutable or is_document)


def _build_row(
    inputs: ExtractionInput, number: int, extracted: ExtractedClaim, facts: Sequence[Fact]
) -> ClaimRow:
    """Pair a claim with its nearest memories, leaving out those of less trusted sources."""
    claim = apply_source_trust(inputs, extracted)
    return (
        number,
        claim,
        [fact for fact in facts if trust_of_source(fact) >= trust_of_source(claim)],
    )


def _group_by_source(rows: Iterable[ClaimRow]) -> list[list[ClaimRow]]:
    """Group the claims that have memories to compare with by the trust of their source."""
    sources: dict[Trust, list[ClaimRow]] = {}
    for row in rows:
        if row[2]:
            sources.setdefault(trust_of_source(row[1]), []).append(row)
    return list(sources.values())


def build_question(rows: Sequence[ClaimRow], memories: Sequence[Fact]) -> str:
    """Build the question: numbered memories and numbered facts."""
    numbers = {fact.id: number for number, fact in enumerate(memories, 1)}
    memory_lines = (
        f"{number}. [{format_iso(fact.updated_at)[:10]}] {_collapse_spaces(fact.text)}"
        for number, fact in enumerate(memories, 1)
    )
    nearest = [", ".join(str(numbers[fact.id]) for fact in facts) for _, _, facts in rows]
    fact_lines = (
        f"{number}. {_collapse_spaces(claim.text)} (nearest memories: {nearest[number - 1]})"
        for number, (_, claim, _) in enumerate(rows, 1)
    )
    return "Memories:\n{}\n\nNew facts:\n{}".format("\n".join(memory_lines), "\n".join(fact_lines))


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


# Parsing


def _parse_decisions(
    curation_reply: CurationReply,
    payload: object,
    rows: Sequence[ClaimRow],
    memories: Sequence[Fact],
) -> None:
    """Add the decisions of a reply, with warnings for unknown numbers and undecided facts."""
    ignored = 0
    for item in _iter_items(payload):
        number = _parse_number(item.get("fact", 1 if len(rows) == 1 else None))
        proposal = _parse_proposal(item, memories)
        if number is None or not 0 < number <= len(rows) or proposal is None:
            ignored += 1
            continue
        curation_reply.proposals.setdefault(rows[number - 1][0], []).append(proposal)
    if ignored:
        curation_reply.warnings.append(
            f"Ignored {ignored} decisions of the model that refer to unknown numbers."
        )
    undecided = sum(number not in curation_reply.proposals for number, _, _ in rows)
    if undecided:
        curation_reply.warnings.append(
            f"The model left {undecided} facts undecided, so the rules decided."
        )
    if undecided == len(rows) and payload:
        curation_reply.unreadable_replies.append(str(payload))


def _iter_items(payload: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a reply in any of the usual shapes."""
    if isinstance(payload, Mapping):
        items = next(
            (payload[name] for name in LIST_KEYS if isinstance(payload.get(name), list)), [payload]
        )
    else:
        items = payload if isinstance(payload, list) else []
    return (item for item in items if isinstance(item, Mapping))


def _parse_proposal(item: Mapping[str, Any], memories: Sequence[Fact]) -> CurationProposal | None:
    event = str(item.get("event", "")).upper()
    number = _parse_number(item.get("id"))
    fact = memories[number - 1] if number is not None and 0 < number <= len(memories) else None
    if event not in EVENTS or (
        fact is None and (event in ("UPDATE", "DELETE") or item.get("id") is not None)
    ):
        return None
    text = next((item[name] for name in TEXT_KEYS if isinstance(item.get(name), str)), "")
    return CurationProposal(event, fact, _collapse_spaces(text))


def _parse_number(value: object) -> int | None:
    """Parse a number as models write it: 3, "3", "F3" or "#3"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    digits = str(value).strip().lstrip("Ff#")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else None


# Checks


def _apply_proposals(
    state: CurationState,
    inputs: ExtractionInput,
    extracted: ExtractedClaim,
    proposals: Sequence[CurationProposal],
    touched: set[str],
    warnings: list[str],
) -> bool:
    """Apply the acceptable proposals for a claim; return True if there were any."""
    claim = apply_source_trust(inputs, extracted)
    decisions: list[Decision] = []
    for proposal in proposals:
        reason = _find_objection(state, claim, proposal, touched)
        if reason:
            warnings.append(f"Rejected {proposal.event} proposed by the model: {reason}.")
            continue
        decisions += _decide_proposal(state, claim, proposal, is_first=not decisions)
        touched.update(
            decision.fact.id for decision in decisions if decision.fact and decision.event != "NONE"
        )
    for decision in decisions:
        state.apply_decision(replace(decision, turn=extracted.turn))
        for eviction in write_policies.evict_overflow(state, decision):
            state.apply_decision(replace(eviction, turn=extracted.turn))
    return bool(decisions)


def _find_objection(
    state: CurationState, claim: Claim, proposal: CurationProposal, touched: set[str]
) -> str:
    """Return why a proposal cannot be applied, or ""."""
    fact = proposal.fact
    if fact is None or proposal.event in ("ADD", "NONE"):
        return "" if fact is not None or proposal.event == "ADD" else "it names no memory"
    kind = state.get_kind(fact.kind)
    if fact.id in touched:
        return "another fact has already changed the memory"
    if is_late(claim, fact, state.now):
        return "the memory is newer than the fact"
    if (
        proposal.event == "UPDATE"
        and kind is not None
        and kind.write is WriteMode.APPEND
        and fact.predicate is not None
    ):
        return f"a {kind.name} is never overwritten"
    return "" if is_related(claim, fact) else "the memory is about something else"


def is_related(claim: Claim, fact: Fact) -> bool:
    """Return True if a claim may change a memory: same subject, slot and comparable value.

    A claim or memory without a predicate is always accepted.
    """
    if claim.predicate is None or fact.predicate is None:
        return True
    if claim.subject != fact.subject:
        return False
    likeness = compare_wordings(
        claim.object or "", fact.object or "", loose=is_loose(claim.predicate)
    )
    if fact.predicate in OPPOSITES.get(claim.predicate, ()):
        return likeness is WordingRelation.SAME
    is_multiple = lookup_predicate(claim.predicate).semantics is Semantics.MULTI
    return fact.predicate in get_sibling_predicates(claim.predicate) and not (
        is_multiple and likeness is WordingRelation.OTHER
    )


def _decide_proposal(
    state: CurationState, claim: Claim, proposal: CurationProposal, *, is_first: bool
) -> list[Decision]:
    """Convert an accepted proposal to decisions; the rules check what the model calls new."""
    fact = proposal.fact
    if fact is None or proposal.event == "ADD":
        return rules.decide_claim(state, claim) if is_first else []
    if proposal.event == "NONE":
        return [decide_none(claim, fact, "the model says it is already known")] if is_first else []
    if not is_trusted_over(claim, fact):
        return [decide_quarantine(claim, fact)] if is_first else []
    if proposal.event == "DELETE" and (claim.polarity == NEGATED or not is_first):
        return [decide_delete(claim, fact, NEGATED)]
    merged = proposal.text if is_grounded(proposal.text, claim.text, fact.text) else claim.text
    why = "the model says it changes this memory"
    return [decide_update(replace(claim, text=merged, meta=merge_meta(fact, claim)), fact, why)]


def is_grounded(text: str, *sources: str) -> bool:
    """Return True if a text consists almost only of words from its sources."""
    known = {word for source in sources for word in stem_words(source)}
    content_words = [word for word in stem_words(text) if word not in STOP_WORDS]
    return bool(content_words) and sum(
        word not in known for word in content_words
    ) <= MAX_NEW_WORD_SHARE * len(content_words)
