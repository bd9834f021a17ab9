"""The model curator: a language model proposes, and what it proposes is checked before anything is touched.

One question decides many facts of one source. Memories are shown by short numbers, and only a number that was shown
counts; what one source says is not shown beside what a source trusted less has said. A model cannot touch what the
source of a claim may not, cannot retire what a claim does not speak of, cannot write words that neither the memory nor
the claim holds, and cannot end a memory without leaving what contradicts it. Whatever it leaves undecided or garbles,
the rules decide.
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
"""How many times more candidates are asked for than wanted: some belong to narrower scopes or are no memories."""


@dataclass(frozen=True, slots=True)
class NearestMemories:
    """Where to look and how many to bring."""

    store: Store
    embedder: Embedder | None
    limit: int

    def find_nearest(self, inputs: ExtractionInput, texts: Sequence[str]) -> Flow[list[list[Fact]]]:
        """For each text the nearest memories of exactly this scope, best first."""
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
        """The vectors to look with; words alone will do where the embedder fails or is not the store's."""
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
    """The positions both lists offer, best first by the sum of their reciprocal ranks."""
    scores: dict[int, float] = {}
    for ranking in (index_result.by_vector, index_result.by_terms):
        for rank, (seq, _) in enumerate(ranking):
            scores[seq] = scores.get(seq, 0.0) + 1.0 / (RRF_K + rank + 1)
    return sorted(scores, key=lambda seq: (-scores[seq], -seq))


EVENTS: Final = ("ADD", "UPDATE", "DELETE", "NONE")
LIST_KEYS: Final = ("decisions", "operations", "events", "memory", "results")
TEXT_KEYS: Final = ("text", "data", "new_memory")
MAX_NEW_WORD_SHARE: Final = 0.2
"""The largest share of words in a merged text that stand in neither of the two it is made of."""
SCHEMA: Final = {
    "type": "object", "required": ["decisions"],
    "properties": {"decisions": {"type": "array", "items": {
        "type": "object", "required": ["fact", "event"],
        "properties": {"fact": {"type": "integer"}, "event": {"type": "string", "enum": list(EVENTS)},
                       "id": {"type": "integer"}, "text": {"type": "string"}},
    }}},
}  # fmt: skip


ClaimRow: TypeAlias = tuple[int, Claim, list[Fact]]
"""A claim by its number, and the memories it is held against."""


@dataclass(frozen=True, slots=True)
class CurationProposal:
    """One decision a model proposes, about the memory it named, if it named one."""

    event: str
    fact: Fact | None = None
    text: str = ""


@dataclass(slots=True)
class CurationReply:
    """What a model made of one batch of claims: proposals by the number of the claim, and what went wrong."""

    proposals: dict[int, list[CurationProposal]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unreadable_replies: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ModelCurator:
    """Asks a language model what becomes of claims, and lets the rules have the last word."""

    llm: LLM
    store: Store
    settings: Settings
    embedder: Embedder | None = None
    prompt: str | None = None

    def decide(
        self, inputs: ExtractionInput, claims: Sequence[ExtractedClaim]
    ) -> Flow[CurationResult]:
        """One or more decisions for every claim, in order of the claims."""
        state = yield from load_state(self.store, inputs, claims, self.settings)
        asked_numbers = [
            number
            for number, extracted in enumerate(claims)
            if _should_ask_model(state, extracted.claim)
        ]
        nearest = NearestMemories(self.store, self.embedder, self.settings.curate_near)
        nearest_facts = yield from nearest.find_nearest(
            inputs, [claims[number].claim.text for number in asked_numbers]
        )
        curation_reply = CurationReply()
        numbered_facts = zip(asked_numbers, nearest_facts, strict=True)
        for rows in _group_by_source(
            _build_row(inputs, number, claims[number], facts) for number, facts in numbered_facts
        ):
            for start in range(0, len(rows), self.settings.curate_batch):
                yield from self._ask_model(
                    curation_reply, rows[start : start + self.settings.curate_batch]
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
        """Ask about some claims at once; a model that fails leaves them to the rules."""
        memories = list({fact.id: fact for _, _, facts in rows for fact in facts}.values())
        system = self.prompt or load_prompt("curate")
        reply = yield from catch_failure(
            call(self.llm.ask, system, build_question(rows, memories), schema=SCHEMA)
        )
        if isinstance(reply, Failure):
            curation_reply.warnings.append(
                f"{self.llm.model} could not be asked, so rules decided: {reply}"
            )
            return
        curation_reply.usage += get_usage(reply)
        try:
            payload = parse_lenient_json(reply)
        except InvalidInput:
            curation_reply.warnings.append(
                f"{self.llm.model} gave no decision that can be read, so rules decided."
            )
            curation_reply.unreadable_replies.append(str(reply))
            return
        _parse_decisions(curation_reply, payload, rows, memories)


def _should_ask_model(state: CurationState, claim: Claim) -> bool:
    """Whether a model has anything to say: not of what is held word for word, in doubt, immutable, or a document."""
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
    """A claim and the memories it is shown with: none of a source that is trusted less, whose words could mislead."""
    claim = apply_source_trust(inputs, extracted)
    return (
        number,
        claim,
        [fact for fact in facts if trust_of_source(fact) >= trust_of_source(claim)],
    )


def _group_by_source(rows: Iterable[ClaimRow]) -> list[list[ClaimRow]]:
    """The claims that have memories to be held against, those of each source by themselves."""
    sources: dict[Trust, list[ClaimRow]] = {}
    for row in rows:
        if row[2]:
            sources.setdefault(trust_of_source(row[1]), []).append(row)
    return list(sources.values())


def build_question(rows: Sequence[ClaimRow], memories: Sequence[Fact]) -> str:
    """What a model is asked: the memories and the facts, each on a line with its number."""
    numbers = {fact.id: number for number, fact in enumerate(memories, 1)}
    memory_lines = (
        f"{number}. [{format_iso(fact.updated_at)[:10]}] {_collapse_spaces(fact.text)}"
        for number, fact in enumerate(memories, 1)
    )
    fact_lines = (
        f"{number}. {_collapse_spaces(claim.text)} (nearest memories: {', '.join(str(numbers[fact.id]) for fact in facts)})"
        for number, (_, claim, facts) in enumerate(rows, 1)
    )
    return "Memories:\n{}\n\nNew facts:\n{}".format("\n".join(memory_lines), "\n".join(fact_lines))


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


# Reading what a model said --------------------------------------------------------------------------------------------


def _parse_decisions(
    curation_reply: CurationReply,
    payload: object,
    rows: Sequence[ClaimRow],
    memories: Sequence[Fact],
) -> None:
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
            f"{ignored} decisions of the model name what it was not shown, and are ignored."
        )
    undecided = sum(number not in curation_reply.proposals for number, _, _ in rows)
    if undecided:
        curation_reply.warnings.append(
            f"The model left {undecided} facts undecided, so rules decided."
        )
    if undecided == len(rows) and payload:
        curation_reply.unreadable_replies.append(str(payload))


def _iter_items(payload: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an answer, whichever of the usual shapes it has."""
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
    """A number as models write it: 3, "3", "F3", "#3"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    digits = str(value).strip().lstrip("Ff#")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else None


# Checking what it proposes --------------------------------------------------------------------------------------------


def _apply_proposals(
    state: CurationState,
    inputs: ExtractionInput,
    extracted: ExtractedClaim,
    proposals: Sequence[CurationProposal],
    touched: set[str],
    warnings: list[str],
) -> bool:
    """Carry out what a model proposes for a claim as far as it stands up; whether anything did."""
    claim = apply_source_trust(inputs, extracted)
    decisions: list[Decision] = []
    for proposal in proposals:
        reason = _find_objection(state, claim, proposal, touched)
        if reason:
            warnings.append(f"The model proposed {proposal.event} of an unfit memory: {reason}.")
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
    """Why a proposal cannot be carried out, or nothing."""
    fact = proposal.fact
    if fact is None or proposal.event in ("ADD", "NONE"):
        return (
            ""
            if fact is not None or proposal.event == "ADD"
            else "it names no memory that says so already"
        )
    kind = state.get_kind(fact.kind)
    if fact.id in touched:
        return "another fact has changed it already"
    if is_late(claim, fact, state.now):
        return "it was said after the fact"
    if (
        proposal.event == "UPDATE"
        and kind is not None
        and kind.write is WriteMode.APPEND
        and fact.predicate is not None
    ):
        return f"a {kind.name} is never overwritten"
    return "" if is_related(claim, fact) else "it speaks of something else"


def is_related(claim: Claim, fact: Fact) -> bool:
    """Whether a claim can bear on a memory: of what is said in so many words of two things, no model makes one."""
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
    """What a sound proposal comes to; what a model takes for new, the rules look at once more."""
    fact = proposal.fact
    if fact is None or proposal.event == "ADD":
        return rules.decide_claim(state, claim) if is_first else []
    if proposal.event == "NONE":
        return (
            [decide_none(claim, fact, "the model says that it is held already")] if is_first else []
        )
    if not is_trusted_over(claim, fact):
        return [decide_quarantine(claim, fact)] if is_first else []
    if proposal.event == "DELETE" and (claim.polarity == NEGATED or not is_first):
        return [decide_delete(claim, fact, NEGATED)]
    merged = proposal.text if is_grounded(proposal.text, claim.text, fact.text) else claim.text
    why = "the model says that it changes this memory"
    return [decide_update(replace(claim, text=merged, meta=merge_meta(fact, claim)), fact, why)]


def is_grounded(text: str, *sources: str) -> bool:
    """Whether a text is made of the words of its sources, but for a few small ones."""
    known = {word for source in sources for word in stem_words(source)}
    content_words = [word for word in stem_words(text) if word not in STOP_WORDS]
    return bool(content_words) and sum(
        word not in known for word in content_words
    ) <= MAX_NEW_WORD_SHARE * len(content_words)
