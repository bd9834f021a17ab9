"""Resolve candidates into answers: settle contradictions and merge turns with their claims.

This needs at most two lookups: the links of the facts, if the account has any, and the threads
extracted from the same evidence, if a fact was extracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from told.flow import Flow, call
from told.model.beliefs import CONTRADICTS, SUPERSEDES, find_belief_conflicts
from told.model.fact import NODE, PASSAGE_CHARS, Fact
from told.model.filter import has_field, matches_filter, to_record
from told.model.query import FactQuery
from told.retrieval.candidates import ReadContext, find_denials, load_facts_by_id, load_links
from told.retrieval.grouping import (
    EvidenceGroup,
    detect_stale_turn,
    group_by_evidence,
    group_turns_and_claims,
    is_extracted,
)
from told.retrieval.ranking import (
    ScoredCandidate,
    filter_by_seq,
    keep_best_per_fact,
    list_seqs,
    sort_by_score,
)
from told.retrieval.state import SearchState, take_first_seqs
from told.settings import Settings
from told.text.tokens import normalise_text

EMPTY_GROUP: Final = EvidenceGroup()
NODE_REASON: Final = "it leads to memories and is none"


# Related facts


def load_related(ctx: ReadContext, state: SearchState, reach: int) -> Flow[None]:
    """Load contradictions of the first facts, and other facts from the same evidence."""
    state.visible_seqs |= state.facts.keys() & take_first_seqs(state.scored, reach)
    if state.index_result.has_links:
        yield from _load_conflicts(ctx, state)
    while missing := _list_missing_evidence(state):
        versions = yield from call(
            ctx.store.find_versions, state.request.fact_query.scope.account, evidence=missing
        )
        _add_evidence_groups(ctx, state, missing, versions)


def _list_missing_evidence(state: SearchState) -> list[str]:
    """Return the evidence of visible facts that was not looked up yet."""
    facts = [state.facts[seq] for seq in state.visible_seqs]
    return sorted(
        {fact.evidence for fact in facts if is_extracted(fact) and fact.evidence}
        - state.evidence_groups.keys()
    )


def _load_conflicts(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Load the contradictions of the visible facts, with the other side of each."""
    fact_query = state.request.fact_query
    known = {fact.id: fact for fact in (state.facts[seq] for seq in state.visible_seqs)}
    links = yield from load_links(ctx, fact_query, list(known), state.link_cache)
    disputes = [link for link in links if link.rel in (CONTRADICTS, SUPERSEDES)]
    unseen = {end for link in disputes for end in (link.src, link.dst)} - known.keys()
    loaded = (yield from load_facts_by_id(ctx, fact_query, unseen)) if unseen else ()
    denied = find_denials(loaded, ctx.guards)
    others = [fact for fact in loaded if fact.seq not in denied]
    state.add_visible(others)
    state.conflicts = find_belief_conflicts([*known.values(), *others], links, state.request.belief)


def _add_evidence_groups(
    ctx: ReadContext, state: SearchState, evidence_ids: Sequence[str], versions: Sequence[Fact]
) -> None:
    """Group all versions of some evidence into a turn and its claims, as far as visible."""
    fact_query = state.request.fact_query
    denied = find_denials(versions, ctx.guards)
    visible = [
        fact for fact in versions if fact.seq not in denied and fact_query.scope.covers(fact.scope)
    ]
    known = {fact.id: fact for fact in state.facts.values()}
    winner_by_thread = {
        loser: known[winner] for loser, winner in state.conflicts.replaced_by.items()
    }
    candidates = set(list_seqs(state.scored))
    groups = group_by_evidence(visible, fact_query.as_of, winner_by_thread)
    for evidence_id in evidence_ids:
        group = groups.get(evidence_id, EMPTY_GROUP)
        utterance = (
            group.utterance
            if group.utterance is not None and _is_visible(group.utterance, fact_query)
            else None
        )
        state.evidence_groups[evidence_id] = replace(group, utterance=utterance)
        replacements = [
            replacement for _, replacement in group.ended_claims if replacement is not None
        ]
        matching = [
            fact for fact in (*group.current_claims, *replacements) if fact.seq in candidates
        ]
        state.add_visible(matching if utterance is None else [*matching, utterance])


def _is_visible(fact: Fact, fact_query: FactQuery) -> bool:
    is_fresh = fact_query.show_expired or fact.expires > fact_query.as_of.at
    return is_fresh and matches_filter(fact_query.filter, to_record(fact))


# Resolution


def resolve_candidates(state: SearchState, settings: Settings) -> None:
    """Remove duplicates, drop facts that lost a contradiction, and merge turns with claims."""
    visible_seqs = state.visible_seqs & state.facts.keys()
    state.keep_only(filter_by_seq(state.scored, visible_seqs), "select", "after the limit")
    if not has_field(state.request.fact_query.filter, "kind"):
        state.drop_facts(
            {seq: NODE_REASON for seq, fact in state.facts.items() if fact.kind == NODE}, "expand"
        )
    state.keep_only(_dedupe_texts(state), "fuse", "says the same as one before it")
    if state.conflicts.replaced_by:
        _resolve_conflicts(state)
    if state.evidence_groups:
        _merge_turns_and_claims(state, 1.0 - settings.ranking.expand_own)


def _dedupe_texts(state: SearchState) -> list[ScoredCandidate]:
    """Keep one of several equal texts by a speaker and record the others as merged."""
    seq_by_text: dict[tuple[str | None, str], int] = {}
    kept: list[ScoredCandidate] = []
    for item in state.scored:
        fact = state.facts[item.candidate.seq]
        text_key = normalise_text(fact.text) if len(fact.text) < PASSAGE_CHARS else fact.md5
        seq = seq_by_text.setdefault((fact.actor, text_key), fact.seq)
        if seq == fact.seq:
            kept.append(item)
        else:
            state.add_merged_thread(seq, fact.id)
    return kept


def _resolve_conflicts(state: SearchState) -> None:
    """Replace losers of contradictions by their winners; mark those whose winner was not found."""
    threads = {fact.id: fact for fact in state.facts.values()}
    best = {item.candidate.seq: item for item in keep_best_per_fact(state.scored)}
    reasons: dict[int, str] = {}
    raised_scores: dict[tuple[int, int], float] = {}
    for loser, winner in state.conflicts.replaced_by.items():
        loser_item, winner_item = best.get(threads[loser].seq), best.get(threads[winner].seq)
        state.superseded_by[threads[loser].seq] = winner
        if loser_item is not None and winner_item is not None:
            reasons[loser_item.candidate.seq] = f"contradicted by {winner}"
            key = (winner_item.candidate.seq, winner_item.candidate.slot)
            raised_scores[key] = max(loser_item.score, raised_scores.get(key, winner_item.score))
    state.drop_facts(reasons, "believe")
    moved = (
        item.add_parts(
            newer=raised_scores.get((item.candidate.seq, item.candidate.slot), item.score)
            - item.score
        )
        for item in state.scored
    )
    state.scored = sort_by_score(moved)


def _merge_turns_and_claims(state: SearchState, share: float) -> None:
    """Merge each turn with its claims; a stale turn yields to its replacement."""
    relevance = {
        item.candidate.seq: _get_relevance(item) for item in keep_best_per_fact(state.scored)
    }
    terms = frozenset(state.index_query.terms)
    stale_turns = {
        group.turn.seq: stale_turn
        for group in state.evidence_groups.values()
        if group.turn is not None
        and (stale_turn := detect_stale_turn(group, relevance.get, terms)) is not None
    }
    state.superseded_by |= {
        seq: item.replacement.id
        for seq, item in stale_turns.items()
        if item.replacement is not None
    }
    asks_past = state.intent.asks_past or state.request.belief == "all"
    grouping = group_turns_and_claims(
        state.scored,
        state.evidence_groups.values(),
        stale_turns,
        verbatim=state.request.verbatim,
        asks_past=asks_past,
        share=share,
    )
    for seq, target_seq in grouping.merged_into.items():
        state.add_merged_thread(target_seq, state.facts[seq].id)
    state.drop_facts(
        {
            seq: f"folded into {state.facts[target_seq].id}"
            for seq, target_seq in grouping.merged_into.items()
        },
        "fold",
    )
    state.scored, state.added_utterances = grouping.scored, grouping.added_utterances
    if not asks_past:
        dropped = (
            stale_turn
            for stale_turn in stale_turns.items()
            if stale_turn[1].replacement is None or not state.request.verbatim
        )
        state.drop_facts({seq: stale_turn.reason for seq, stale_turn in dropped}, "fold")


def _get_relevance(item: ScoredCandidate) -> float:
    """Return the relevance of a passage without speaker and time bonuses."""
    return item.parts.get("dense", 0.0) + item.parts.get("cover", 0.0)
