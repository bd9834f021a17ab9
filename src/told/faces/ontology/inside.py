"""Facts kept in this process: plain objects, one counter for the clock, and nothing that ticks.

A turn moves the counter. What a fact weighs follows from when it was last said, so it is worked out when somebody
looks, and what has faded by then goes to the archive, which keeps the newest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from told.core.concepts import NEGATED, Rules, Weighed, folded, leaving
from told.core.errors import InvalidInput
from told.core.fork import awaited
from told.core.ids import Mint
from told.core.kind import Kind
from told.core.salience import Clock, Curve, Tier, said_anew, salience
from told.core.text import shown
from told.core.when import iso
from told.faces.ontology.fact import Fact, Facts

DAY: Final = 86_400_000_000
SECOND: Final = 1_000_000
ARCHIVED: Final = 1_000
"""How many facts that have faded are kept for `recall`; those that faded first go first."""


@dataclass(slots=True)
class Mark:
    """Since when a fact weighs what: its weight at a reading of its clock, and its place among all that was said."""

    weight: float
    reading: float
    place: int
    shown: float
    name: tuple[str, str]


@dataclass(slots=True)
class Pulse:
    """The clocks of a conversation: its turns, its tokens counted as turns of usual size, and days."""

    instant: Callable[[], int]
    turn_events: float
    turn_tokens: int
    turns: float = 0.0
    tokens: float = 0.0

    def read(self, clock: Clock) -> float:
        """What a clock reads now."""
        if clock is Clock.TIME:
            return self.instant() / DAY
        return self.turns if clock is Clock.TURNS else self.tokens

    def beat(self, turns: int, tokens: int | None) -> None:
        """Let turns pass, of so many tokens together; of the usual size if nobody says."""
        self.turns += turns / self.turn_events
        self.tokens += turns if tokens is None else tokens / self.turn_tokens


@dataclass(slots=True)
class Inside:
    """Keeps facts in this process; threads may share it."""

    rules: Rules
    mint: Mint
    pulse: Pulse
    turn: int = 0
    facts: Facts = field(init=False)
    _marks: dict[str, Mark] = field(default_factory=dict)
    _concepts: dict[str, dict[str, None]] = field(default_factory=dict)
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _archive: dict[str, tuple[Fact, Mark]] = field(default_factory=dict)
    _curves: dict[tuple[str, str], Curve] = field(default_factory=dict)
    _tuned: tuple[float, ...] = ()
    _places: int = 0
    _seen: object = None
    _lock: threading.RLock = field(default_factory=lambda: awaited(threading.RLock()))

    def __post_init__(self) -> None:
        self.facts = Facts(self._look, self._put, self._drop)

    # Saying -----------------------------------------------------------------------------------------------------------

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Hold a value, hold it more firmly, or give it up; the fact that now holds it."""
        with self._lock:
            here = self._rivals(kind, value)
            meant = self.rules.matcher.meant(value, here)
            if polarity == NEGATED:
                if meant is not None:
                    self._drop(meant.id)
                return None
            if meant is not None:
                return self._again(meant.id, evidence)
            fact = self._new(kind, value, evidence)
            for one in leaving(kind, [*here, self._weight(fact)]):
                self._drop(one.id)
            return fact if fact.id in self._marks else None

    def _new(self, kind: Kind, value: str, evidence: str) -> Fact:
        now, tier = iso(self.mint.now()), kind.tier.value
        weight = said_anew(self._curve(kind.name, tier), 0.0)
        fact = Fact(self.mint.id(), kind.name, value, evidence, tier, weight, kind.label or kind.name,
                    self.turn, self.turn, 0, now, now)  # fmt: skip
        self._put(fact)
        return fact

    def _again(self, id: str, evidence: str) -> Fact:
        fact = self.facts.known(id)
        fact.evidence, fact.last_turn, fact.last_at = evidence, self.turn, iso(self.mint.now())
        fact.reinforcements += 1
        fact.salience = said_anew(self._curve(fact.concept, fact.persistence_class), fact.salience)
        self._anchor(fact)
        return fact

    def tick(self, turns: int, tokens: int | None) -> None:
        """Let some turns pass."""
        with self._lock:
            self.turn += turns
            self.pulse.beat(turns, tokens)

    # Holding ----------------------------------------------------------------------------------------------------------

    def _put(self, fact: Fact) -> None:
        with self._lock:
            self._curve(fact.concept, fact.persistence_class)
            self._archive.pop(fact.id, None)
            self._drop(fact.id)
            self._concepts.setdefault(fact.concept, {})[fact.id] = None
            self.facts.hold(fact)
            self._anchor(fact)

    def _anchor(self, fact: Fact) -> None:
        """From now on a fact weighs what it says, and nothing was said later."""
        self._places += 1
        reading = self.pulse.read(self.rules.pace(fact.concept))
        name = fact.concept, folded(fact.value)
        self._names[name] = fact.id
        self._marks[fact.id] = Mark(fact.salience, reading, self._places, fact.salience, name)

    def _drop(self, id: str) -> Fact | None:
        with self._lock:
            fact = self.facts.let_go(id)
            if fact is not None:
                mark = self._marks.pop(id)
                del self._concepts[mark.name[0]][id]
                if self._names.get(mark.name) == id:
                    del self._names[mark.name]
            return fact

    def forget(self, ids: Collection[str], *, erase: bool) -> None:  # noqa: ARG002 - here what is gone is gone
        """Give up facts, held or faded, so that nothing recalls them."""
        with self._lock:
            for each in ids:
                self._drop(each)
                self._archive.pop(each, None)

    # Looking ----------------------------------------------------------------------------------------------------------

    def faded(self) -> Sequence[Fact]:
        """What was held once and has faded."""
        with self._lock:
            self._look()
            for fact, mark in self._archive.values():
                self._weigh(fact, mark)
            return [fact for fact, _ in self._archive.values()]

    def _look(self) -> None:
        """Work out what every fact weighs by now; what has faded goes to the archive."""
        with self._lock:
            reading = (self.pulse.turns, self.pulse.tokens, self.mint.now() // SECOND if self._timed() else 0)
            seen = (reading, self.rules.least(), tuple(self.rules.decay.values()))
            if seen != self._seen:
                self._seen = seen
                for fact in self.facts.now():
                    self._settle(fact)

    def _timed(self) -> bool:
        return any(self.rules.pace(name) is Clock.TIME for name in self.rules.ontology)

    def _rivals(self, kind: Kind, value: str) -> list[Weighed]:
        """What a value meets under its concept and what that weighs, oldest first, once what has faded is gone.

        Where there is room for all and nothing is alike but the same, that is the same value alone.
        """
        same = self._names.get((kind.name, folded(value)))
        alone = kind.cardinality is None and self.rules.matcher.threshold >= 1.0
        ids = ([] if same is None else [same]) if alone else self._concepts.get(kind.name, ())
        held = [self.facts.known(each) for each in ids]
        return [self._weight(fact) for fact in held if self._settle(fact)]

    def _weight(self, fact: Fact) -> Weighed:
        return Weighed(fact.id, fact.value, fact.salience, self._marks[fact.id].place)

    def _settle(self, fact: Fact) -> bool:
        """Work out what a fact weighs by now; whether it is still held.

        What somebody wrote into its salience since it was last looked at counts.
        """
        mark = self._marks[fact.id]
        if fact.salience != mark.shown:
            mark.weight, mark.reading = fact.salience, self.pulse.read(self.rules.pace(fact.concept))
        if not self._weigh(fact, mark).faded(fact.salience):
            return True
        self._drop(fact.id)
        self._archive[fact.id] = fact, mark
        while len(self._archive) > ARCHIVED:
            del self._archive[next(iter(self._archive))]
        return False

    def _weigh(self, fact: Fact, mark: Mark) -> Curve:
        """Work out what a fact weighs by now, along its curve."""
        curve, now = self._curve(fact.concept, fact.persistence_class), self.pulse.read(self.rules.pace(fact.concept))
        start = Curve(mark.weight, curve.decay, curve.lasting, curve.floor)
        fact.salience = mark.shown = salience(start, (mark.reading,), max(now, mark.reading))
        return curve

    def _curve(self, concept: str, tier: str) -> Curve:
        """The curve of a concept, which is the same as long as nobody tunes it."""
        tuned = (self.rules.least(), *self.rules.decay.values())
        if tuned != self._tuned:
            self._tuned, self._curves = tuned, {}
        if (concept, tier) not in self._curves:
            if tier not in tuple(Tier):
                hint = f"There are: {', '.join(Tier)}."
                raise InvalidInput(f"There is no persistence class {shown(tier)}.", hint=hint)
            self._curves[concept, tier] = self.rules.curve(concept, Tier(tier))
        return self._curves[concept, tier]
