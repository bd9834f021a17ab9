"""The clocks by which memories fade: the turns counted where a scope is at home, as far back as it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from told.core.fact import Fact, Tick
from told.core.fading import Clocks
from told.core.kind import Ontology
from told.core.query import LATEST, AsOf
from told.core.salience import Clock
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store
from told.settings import Settings

AT_ONCE: Final = 4096
"""How many turns are looked at first; hardly any memory asks for more."""
ENOUGH: Final = 1000.0
"""After so many turns nothing is left of what fades, however it was said."""


def clocks(
    store: Store, scope: Scope, as_of: AsOf, settings: Settings, *, by: Iterable[Clock], since: int
) -> Flow[Clocks]:
    """The clocks of a scope at a point in time, good for everything that was written since a position.

    `by` are the clocks that will be read.
    """
    counted = [_size(clock, settings) for clock in by if clock is not Clock.TIME]
    if not counted:
        return Clocks(as_of.at)
    upto, limit = None if as_of.seq >= LATEST else as_of.seq, AT_ONCE
    while True:
        ticks = yield from call(store.ticks, scope, upto, limit)
        whole = len(ticks) < limit
        if whole or ticks[0].seq <= since or all(sum(map(size, ticks)) >= ENOUGH for size in counted):
            return Clocks.of(
                ticks, as_of.at, whole=whole, turn_events=settings.turn_events, turn_tokens=settings.turn_tokens
            )
        limit *= 4


def clocks_of(
    store: Store, facts: Sequence[Fact], kinds: Ontology, as_of: AsOf, settings: Settings
) -> Flow[Mapping[str, Clocks]]:
    """The clocks of some facts, by where they are at home."""
    homes: dict[str, list[Fact]] = {}
    for fact in facts:
        homes.setdefault(fact.scope.home(), []).append(fact)
    found: dict[str, Clocks] = {}
    for home, theirs in homes.items():
        paces = [(kind.pace, fact.seq) for fact in theirs if (kind := kinds.get(fact.kind)) is not None]
        by = {pace for pace, _ in paces}
        since = min((seq for pace, seq in paces if pace is not Clock.TIME), default=0)
        found[home] = yield from clocks(store, theirs[0].scope, as_of, settings, by=by, since=since)
    return found


def _size(clock: Clock, settings: Settings) -> Callable[[Tick], float]:
    """How much of a turn each tick is by a clock."""
    if clock is Clock.TURNS:
        return lambda tick: tick.turns / settings.turn_events
    return lambda tick: tick.tokens / settings.turn_tokens
