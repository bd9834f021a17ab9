"""Which turns are passed over in silence: those of which everything that was taken from their words was given up.

A search does not show them either; they are in no tier, and no model is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable

from told.core.fact import TURN, Fact
from told.core.query import LATEST, AsOf
from told.flow import Flow, call
from told.ports import Store
from told.read.fold import group_by_evidence

AS_OF_LATEST = AsOf(LATEST, 0)


def find_retracted_turns(store: Store, account: str, turns: Iterable[Fact]) -> Flow[frozenset[str]]:
    """The threads of those turns of which nothing is held any more that was taken from them."""
    evidence = {turn.evidence for turn in turns if turn.kind == TURN and turn.evidence is not None}
    return (
        select_retracted_threads(
            (yield from call(store.facts_from_evidence, account, sorted(evidence)))
        )
        if evidence
        else frozenset()
    )


def select_retracted_threads(versions: Iterable[Fact]) -> frozenset[str]:
    """The threads of such turns among all versions of all that was taken from some evidence."""
    groups = group_by_evidence(versions, AS_OF_LATEST, {}).values()
    return frozenset(
        group.turn.id for group in groups if group.turn is not None and group.is_fully_retracted
    )
