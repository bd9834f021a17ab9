"""What turns are worth: what their metadata says, else what a model judged last, else what their words tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.core.fact import Fact
from told.core.importance import TELLING, importance, stated
from told.flow import Flow, call
from told.ports import Store

IMPORTANCE = "importance"
"""The relation from evidence to the thread of its turn whose weight is what a model judged it to be worth."""


def worths(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, float]]:
    """How important each of these turns is, by thread; one that a claim was taken from tells something."""
    judged = yield from judgements(store, account, [turn.id for turn in turns])
    open_ = [turn for turn in turns if stated(turn.meta) is None and turn.id not in judged]
    evidence = [turn.evidence for turn in open_ if turn.evidence is not None]
    taken = yield from call(store.taken, account, evidence)
    telling = {fact.evidence for fact in taken if fact.predicate is not None}
    return {turn.id: worth(turn, judged.get(turn.id), telling=turn.evidence in telling) for turn in turns}


def judgements(store: Store, account: str, threads: Sequence[str]) -> Flow[Mapping[str, float]]:
    """What a model last said these threads are worth, as far as it was asked."""
    wanted = set(threads)
    links = yield from call(store.links, account, list(threads))
    said = sorted((link for link in links if link.rel == IMPORTANCE and link.dst in wanted), key=lambda link: link.seq)
    return {link.dst: link.weight for link in said}


def worth(turn: Fact, judged: float | None, *, telling: bool = False) -> float:
    """How important one turn is, given what a model judged and whether a claim was taken from it."""
    given = stated(turn.meta)
    if given is not None or judged is not None:
        return given if given is not None else judged or 0.0
    by_words = importance(turn.text, turn.role or "user")
    return max(by_words, TELLING) if telling else by_words
