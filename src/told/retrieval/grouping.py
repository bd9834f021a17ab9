"""Merge a turn and the claims extracted from it into one answer.

A search shows the claim and names its turn; a context shows the turn, which has the exact words and
the date. A turn is stale if a claim of it was replaced and the replacement answers the query about
as well as the turn and better than any claim of it that still holds; the replacement then ranks
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from told.model.fact import PASSAGE_CHARS, TURN, UNLISTED_KINDS, Fact
from told.model.query import AsOf, select_version
from told.retrieval.ranking import (
    SCORE_EPSILON,
    ScoredCandidate,
    build_unscored,
    keep_best_per_fact,
    sort_by_score,
)
from told.retrieval.render import HUMAN_AUTHORS
from told.text.tokens import extract_terms

REPLACEMENT_SLACK: Final = 2.0
"""Maximum score deficit at which a replacement still supersedes its turn."""

CLAIM_LABEL: Final = "key"


def is_extracted(fact: Fact) -> bool:
    """Return True if a fact may be a claim, or a turn claims were extracted from."""
    is_plain = fact.kind == "memory" and fact.predicate is None and fact.author in HUMAN_AUTHORS
    return fact.evidence is not None and not is_plain


def is_verbatim(fact: Fact) -> bool:
    """Return True if a fact holds the exact words of a turn."""
    return fact.kind == TURN or not is_extracted(fact)


@dataclass(frozen=True, slots=True)
class EvidenceGroup:
    """A turn with its current claims, and its ended claims with the replacement of each."""

    utterance: Fact | None = None
    current_claims: tuple[Fact, ...] = ()
    ended_claims: tuple[tuple[Fact, Fact | None], ...] = ()

    @property
    def turn(self) -> Fact | None:
        """Return the utterance if it is a turn rather than a memory."""
        return (
            self.utterance if self.utterance is not None and self.utterance.kind == TURN else None
        )

    @property
    def is_fully_retracted(self) -> bool:
        """Return True if all claims were retracted and none replaced."""
        return (
            bool(self.ended_claims)
            and not self.current_claims
            and all(replacement is None for _, replacement in self.ended_claims)
        )


def group_by_evidence(
    all_versions: Iterable[Fact], as_of: AsOf, winner_by_thread: Mapping[str, Fact]
) -> dict[str, EvidenceGroup]:
    """Group facts by evidence as of a point in time, given all versions of their threads.

    `winner_by_thread` maps threads that lost a contradiction to the fact believed instead.
    """
    threads: dict[str, list[Fact]] = {}
    for fact in all_versions:
        if fact.seq <= as_of.seq:
            threads.setdefault(fact.id, []).append(fact)
    builders: dict[str, _GroupBuilder] = {}
    for thread, versions in threads.items():
        current = select_version(versions, as_of)
        for evidence, last in {entry.evidence: entry for entry in versions}.items():
            if evidence is not None:
                _add_thread(
                    builders.setdefault(evidence, _GroupBuilder()),
                    last,
                    current,
                    winner_by_thread.get(thread),
                )
    return {
        evidence: EvidenceGroup(
            entry.utterance, tuple(entry.current_claims), tuple(entry.ended_claims)
        )
        for evidence, entry in builders.items()
    }


@dataclass(slots=True)
class _GroupBuilder:
    utterance: Fact | None = None
    current_claims: list[Fact] = field(default_factory=list)
    ended_claims: list[tuple[Fact, Fact | None]] = field(default_factory=list)


def _add_thread(
    builder: _GroupBuilder, last: Fact, current: Fact | None, winner: Fact | None
) -> None:
    """Add a thread: `last` is its last version on this evidence, `current` the one that holds."""
    is_current = current is not None and current.evidence == last.evidence
    if is_verbatim(last):
        builder.utterance = current if is_current else builder.utterance
    elif last.kind in UNLISTED_KINDS:
        return
    elif is_current and current is not None and winner is None:
        builder.current_claims.append(current)
    else:
        builder.ended_claims.append((last, winner or (None if is_current else current)))


# Stale turns

RelevanceLookup: TypeAlias = Callable[[int], float | None]
"""A function that returns the relevance of the fact at a seq, or None if it is no candidate."""

RETRACTED_REASON: Final = "what was taken from it was given up"


@dataclass(frozen=True, slots=True)
class StaleTurn:
    """A turn that no longer holds, with its replacement; None if it was retracted."""

    replacement: Fact | None = None

    @property
    def reason(self) -> str:
        """Return the drop reason."""
        return (
            RETRACTED_REASON if self.replacement is None else f"superseded by {self.replacement.id}"
        )


def detect_stale_turn(
    group: EvidenceGroup, relevance: RelevanceLookup, query_terms: frozenset[str]
) -> StaleTurn | None:
    """Return a StaleTurn if the part of a turn that the query asks about no longer holds."""
    if group.turn is None or not group.ended_claims:
        return None
    replacements = [
        (score, replacement)
        for _, replacement in group.ended_claims
        if replacement and (score := relevance(replacement.seq)) is not None
    ]
    if replacements:
        best_score, replacement = max(replacements, key=lambda pair: (pair[0], pair[1].seq))
        current_scores = [
            score for fact in group.current_claims if (score := relevance(fact.seq)) is not None
        ]
        own_score = relevance(group.turn.seq)
        is_close = (
            own_score is None
            or best_score >= own_score - REPLACEMENT_SLACK
            or _has_shared_terms(query_terms, group.turn, replacement)
        )
        return (
            StaleTurn(replacement)
            if best_score >= max(current_scores, default=best_score) and is_close
            else None
        )
    retracted = [claim for claim, replacement in group.ended_claims if replacement is None]
    return (
        StaleTurn()
        if retracted
        and _is_only_about_retracted(query_terms, group.turn, retracted, group.current_claims)
        else None
    )


def _has_shared_terms(query_terms: frozenset[str], turn: Fact, replacement: Fact) -> bool:
    """Return True if the replacement has every term shared by the query and the turn."""
    shared = query_terms.intersection(extract_terms(turn.text))
    return bool(shared) and shared <= set(extract_terms(replacement.text))


def _is_only_about_retracted(
    query_terms: frozenset[str],
    turn: Fact,
    retracted: Sequence[Fact],
    current_claims: Sequence[Fact],
) -> bool:
    """Return True if the terms shared by query and turn come from retracted claims only."""
    shared = query_terms.intersection(extract_terms(turn.text))
    if not shared:
        return not current_claims
    current_terms = {term for fact in current_claims for term in extract_terms(fact.text)}
    return (
        shared <= {term for fact in retracted for term in extract_terms(fact.text)}
        and not shared <= current_terms
    )


# Merging


@dataclass(slots=True)
class GroupingResult:
    """The remaining items, the merges by seq, and utterances reached only through a claim."""

    scored: list[ScoredCandidate]
    merged_into: dict[int, int] = field(default_factory=dict)
    added_utterances: list[ScoredCandidate] = field(default_factory=list)


def group_turns_and_claims(
    scored: Sequence[ScoredCandidate],
    groups: Iterable[EvidenceGroup],
    stale_turns: Mapping[int, StaleTurn],
    *,
    verbatim: bool,
    asks_past: bool = False,
    share: float = 0.5,
) -> GroupingResult:
    """Merge each turn with its claims: into the best claim or, if verbatim, into the turn.

    A claim takes the better of both scores; a turn is raised part of the way to a better claim. A
    stale turn stays separate, below its replacement unless the query asks about the past.
    """
    best = {item.candidate.seq: item for item in keep_best_per_fact(scored)}
    result = GroupingResult([])
    raised: dict[int, tuple[str, float]] = {}
    for group in groups:
        if group.utterance is None or group.utterance.seq in stale_turns:
            continue
        claims = [best[fact.seq] for fact in group.current_claims if fact.seq in best]
        if claims:
            _group_turn(
                result,
                raised,
                group.utterance,
                best.get(group.utterance.seq),
                sort_by_score(claims),
                share,
                verbatim=verbatim,
            )
    lowered = {} if asks_past else _lower_stale_turns(stale_turns, best, result.merged_into, raised)
    remaining = (
        item
        for item in (*scored, *result.added_utterances)
        if item.candidate.seq not in result.merged_into
    )
    result.scored = sort_by_score(_apply_move(item, best, raised, lowered) for item in remaining)
    return result


def _group_turn(
    result: GroupingResult,
    raised: dict[int, tuple[str, float]],
    utterance: Fact,
    own_item: ScoredCandidate | None,
    claims: Sequence[ScoredCandidate],
    share: float,
    *,
    verbatim: bool,
) -> None:
    """Merge one turn with its claims, best claim first."""
    top = claims[0]
    if utterance.kind == TURN and not verbatim:
        if own_item is not None:
            result.merged_into[utterance.seq] = top.candidate.seq
            _raise_score(raised, top, "turn", own_item.score)
    elif own_item is None and len(utterance.text) > PASSAGE_CHARS:
        return
    else:
        if own_item is None:
            own_item = score_utterance(utterance, top, 1.0 if verbatim else share)
            result.added_utterances.append(own_item)
        if verbatim:
            result.merged_into.update({claim.candidate.seq: utterance.seq for claim in claims})
            _raise_score(
                raised, own_item, "claim", own_item.score + (top.score - own_item.score) * share
            )


def score_utterance(utterance: Fact, claim: ScoredCandidate, share: float) -> ScoredCandidate:
    """Return an utterance scored as a share of the claim that leads to it."""
    return ScoredCandidate(
        build_unscored(utterance, claim.candidate),
        share * claim.score,
        {"parent": share * claim.score},
    )


def _raise_score(
    raised: dict[int, tuple[str, float]], item: ScoredCandidate, part: str, score: float
) -> None:
    if score > max(item.score, raised.get(item.candidate.seq, ("", item.score))[1]):
        raised[item.candidate.seq] = part, score


def _lower_stale_turns(
    stale_turns: Mapping[int, StaleTurn],
    best: Mapping[int, ScoredCandidate],
    merged_into: Mapping[int, int],
    raised: dict[int, tuple[str, float]],
) -> dict[int, float]:
    """Return new scores of stale turns: just below their replacement, which takes their place."""
    lowered: dict[int, float] = {}
    for seq, stale_turn in stale_turns.items():
        own_item = best.get(seq)
        if own_item is None or stale_turn.replacement is None:
            continue
        target_seq = merged_into.get(stale_turn.replacement.seq, stale_turn.replacement.seq)
        replacement = best.get(target_seq) or best[stale_turn.replacement.seq]
        _raise_score(
            raised,
            replacement._replace(candidate=replacement.candidate._replace(seq=target_seq)),
            "heir",
            own_item.score,
        )
        lowered[seq] = (
            max(raised.get(target_seq, ("", replacement.score))[1], replacement.score)
            - SCORE_EPSILON
        )
    return lowered


def _apply_move(
    item: ScoredCandidate,
    best: Mapping[int, ScoredCandidate],
    raised: Mapping[int, tuple[str, float]],
    lowered: Mapping[int, float],
) -> ScoredCandidate:
    """Apply a raised or lowered score; only the best passage of a fact is raised."""
    seq = item.candidate.seq
    if seq in lowered:
        return item.add_parts(heir=min(lowered[seq] - item.score, 0.0))
    best_item = best.get(seq)
    if seq in raised and (best_item is None or best_item.candidate.slot == item.candidate.slot):
        part, score = raised[seq]
        return item.add_parts(**{part: score - item.score})
    return item
