"""Which turns are passed over in silence: those of which everything that was taken from their words was given up.

A search does not show them either; they are in no tier, and no model is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable

from told.core.fact import TURN, Fact
from told.core.query import LATEST, AsOf
from told.flow import Flow, call
from told.ports import Store
from told.read.fold import kindred

NOW = AsOf(LATEST, 0)


def given_up(store: Store, account: str, turns: Iterable[Fact]) -> Flow[frozenset[str]]:
    """The threads of those turns of which nothing is held any more that was taken from them."""
    evidence = {turn.evidence for turn in turns if turn.kind == TURN and turn.evidence is not None}
    return silent((yield from call(store.taken, account, sorted(evidence)))) if evidence else frozenset()


def silent(lives: Iterable[Fact]) -> frozenset[str]:
    """The threads of such turns among all versions of all that was taken from some evidence."""
    kins = kindred(lives, NOW, {}).values()
    return frozenset(kin.turn.id for kin in kins if kin.turn is not None and kin.emptied)
