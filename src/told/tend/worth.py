"""What turns are worth: what their metadata says, else what a model judged last, else what their words tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.core.fact import Fact
from told.core.importance import INFORMATIVE_SCORE, score_importance, stated_importance
from told.flow import Flow, call
from told.ports import Store

IMPORTANCE = "importance"
"""The relation from evidence to the thread of its turn whose weight is what a model judged it to be worth."""


def load_importance(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, float]]:
    """How important each of these turns is, by thread; one that a claim was taken from tells something."""
    judgements = yield from load_judgements(store, account, [turn.id for turn in turns])
    unjudged = [
        turn for turn in turns if stated_importance(turn.meta) is None and turn.id not in judgements
    ]
    evidence = [turn.evidence for turn in unjudged if turn.evidence is not None]
    facts = yield from call(store.facts_from_evidence, account, evidence)
    evidence_with_claims = {fact.evidence for fact in facts if fact.predicate is not None}
    return {
        turn.id: resolve_importance(
            turn, judgements.get(turn.id), has_claim=turn.evidence in evidence_with_claims
        )
        for turn in turns
    }


def load_judgements(
    store: Store, account: str, threads: Sequence[str]
) -> Flow[Mapping[str, float]]:
    """What a model last said these threads are worth, as far as it was asked."""
    thread_ids = set(threads)
    links = yield from call(store.find_links, account, list(threads))
    ordered_links = sorted(
        (link for link in links if link.rel == IMPORTANCE and link.dst in thread_ids),
        key=lambda link: link.seq,
    )
    return {link.dst: link.weight for link in ordered_links}


def resolve_importance(turn: Fact, judgement: float | None, *, has_claim: bool = False) -> float:
    """How important one turn is, given what a model judged and whether a claim was taken from it."""
    stated_value = stated_importance(turn.meta)
    if stated_value is not None or judgement is not None:
        return stated_value if stated_value is not None else judgement or 0.0
    text_importance = score_importance(turn.text, turn.role or "user")
    return max(text_importance, INFORMATIVE_SCORE) if has_claim else text_importance
