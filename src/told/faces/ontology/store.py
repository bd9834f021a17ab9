"""The store of an ontology's facts, for agents that run their own loop: extract, upsert, tick, inject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from told.core.concepts import ASSERTED, NEGATED, Rules, paced
from told.core.errors import ConfigError, InvalidInput
from told.core.ids import Mint, wall_clock
from told.core.kind import Ontology, load_ontology
from told.core.salience import Clock, Tier
from told.core.text import shown
from told.faces.ontology import fact as tuning
from told.faces.ontology import recalling, render
from told.faces.ontology.durable import Durable
from told.faces.ontology.fact import DECAY, Fact, Facts
from told.faces.ontology.inside import Inside, Pulse
from told.faces.ontology.keeping import Keeper, Remaining
from told.faces.ontology.likeness import Vectors, matcher_of, vectors_of
from told.faces.sdk import Memory
from told.settings import load


class MemoryStore:
    """What is known of a user within an ontology: facts that fade, turn by turn, each as its concept says.

    In this process unless a `memory` is given. With one the facts live in its ledger, for a `user_id`: any number of
    threads and processes may share them. Facts that are permanent or long_term belong to the user (and the agent, if
    one is named); those of a session belong to its `run_id`, so a store opened without one begins a new session, which
    neither shows them nor lets them come back.
    """

    def __init__(
        self, ontology: Ontology | Mapping[str, Any] | str | PathLike[str], similarity_threshold: float = 1.0,
        similarity_fn: Any = None, *, memory: Memory | None = None, user_id: str | None = None,
        agent_id: str | None = None, run_id: str | None = None, clock: str = "turns",
        prune_threshold: float | None = None, now: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        """Open a store over an ontology: its kinds, its JSON, or the path of that.

        Below a threshold of 1 values that are alike are one: by their wording, by a function (a, b) -> float, or by
        the vectors of an embedder such as "local". `clock` is what makes facts fade: turns, tokens or time; `now`
        gives microseconds since 1970 to it.
        """
        kinds = ontology if isinstance(ontology, Ontology) else load_ontology(ontology)
        vectors = vectors_of(similarity_fn)
        matcher = matcher_of(similarity_threshold, similarity_fn, vectors)
        rules = Rules(paced(kinds, _clock(clock)), matcher, DECAY, _least(prune_threshold))
        self.ontology = rules.ontology
        self._keeper = _keeper(rules, memory, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, now)
        embedder = None if memory is None else memory.embedder
        self._vectors = vectors if embedder is None or vectors is not None else Vectors(embedder)

    # The loop ---------------------------------------------------------------------------------------------------------

    def upsert(self, concept: str, value: str, polarity: str = ASSERTED, evidence: str = "") -> Fact | None:
        """Hold a value of a concept, hold it more firmly if it is held, or give it up if it is negated.

        Gives the fact that now holds the value; None if it was negated, or is weaker than all there is room for.
        """
        kind = self.ontology.named(_text(concept, "concept"))
        if polarity not in (ASSERTED, NEGATED):
            raise InvalidInput(f"A polarity is {ASSERTED} or {NEGATED}, not {shown(polarity)}.")
        said = "" if evidence is None else evidence
        if not isinstance(said, str):
            raise InvalidInput(f"The evidence is the sentence it was said in, not {shown(evidence)}.")
        return self._keeper.upsert(kind, _text(value, "value").strip(), polarity, said)

    def tick(self, turns: int = 1, *, tokens: int | None = None) -> None:
        """Let a turn pass, or several; `tokens` says how long they were, where facts fade by tokens."""
        for name, count in (("turns", turns), ("tokens", tokens)):
            if count is not None and (type(count) is not int or count < 0):
                raise InvalidInput(f"{name} must be a whole number, not {shown(count)}.")
        self._keeper.tick(turns, tokens)

    def context_block(self) -> str:
        """Everything that has not faded, for a prompt; the strongest first."""
        return render.block(self.facts.values())

    def dump(self) -> str:
        """Everything that has not faded, for a person, with what it weighs and where it comes from."""
        return render.dump(list(self.facts.values()), self.turn)

    @property
    def facts(self) -> Facts:
        """The facts that have not faded, by id: a dict."""
        return self._keeper.facts

    @property
    def turn(self) -> int:
        """How many turns have passed."""
        return self._keeper.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        if type(turn) is not int or turn < 0:
            raise InvalidInput(f"A turn is a whole number, not {shown(turn)}.")
        self._keeper.turn = turn

    # Looking back -----------------------------------------------------------------------------------------------------

    def recall(self, query: str, limit: int = 5) -> list[Fact]:
        """The facts that bear on a query, the best first; those that have faded are found too, with what they weigh."""
        if type(limit) is not int or limit < 1:
            raise InvalidInput(f"limit must be a whole number from 1, not {shown(limit)}.")
        known = [*self.facts.values(), *self._keeper.faded()]
        return recalling.best(_text(query, "query"), known, self._vectors)[:limit]

    def forget(self, concept: str | None = None, value: str | None = None, *, erase: bool = False) -> list[Fact]:
        """Give up what is known, held or faded: all of it, that of a concept or prefix, or a value; what it was.

        In a ledger the past keeps it, unless it is to be erased.
        """
        known = [*self.facts.values(), *self._keeper.faded()]
        gone = [fact for fact in known if self._is(fact, concept, value)]
        self._keeper.forget([fact.id for fact in gone], erase=erase)
        return gone

    def about(self) -> list[dict[str, Any]]:
        """What is remembered: each fact with when and in which sentence it was said, how strong it is, how long yet."""
        rules = self._keeper.rules
        rows = []
        for fact in render.strongest(self.facts.values()):
            curve = rules.curve(fact.concept, Tier(fact.persistence_class))
            rows.append(recalling.row(fact, Remaining.of(curve, fact.salience, rules.pace(fact.concept))))
        return rows

    def _is(self, fact: Fact, concept: str | None, value: str | None) -> bool:
        if concept is not None and fact.concept != concept:
            prefix = concept.rstrip("*")
            if not prefix.endswith(".") or not fact.concept.startswith(prefix):
                return False
        return value is None or self._keeper.rules.matcher.same(value, fact.value)


def _keeper(rules: Rules, memory: Any, ids: Mapping[str, Any], now: Callable[[], int] | None) -> Keeper:
    """What keeps the facts: this process, or the ledger of a memory."""
    if memory is None:
        if given := [name for name, value in ids.items() if value is not None]:
            raise ConfigError(f"{given[0]} needs a memory.", hint="Such as MemoryStore(ontology, memory=Memory(), …).")
        instant = now or wall_clock
        settings = load().settings
        return Inside(rules, Mint(instant), Pulse(instant, settings.turn_events, settings.turn_tokens))
    if now is not None:
        raise ConfigError("A memory has a clock of its own.", hint="Open it with Memory(mint=Mint(clock)).")
    if not isinstance(memory, Memory):
        raise ConfigError(f"memory must be a told.Memory, not {shown(memory)}.")
    return Durable(rules, memory, **ids)


def _clock(clock: Any) -> Clock:
    if clock not in tuple(Clock):
        raise InvalidInput(f"There is no clock {shown(clock)}.", hint=f"There are: {', '.join(Clock)}.")
    return Clock(clock)


def _least(value: Any) -> Callable[[], float]:
    """The salience below which a fact has faded: the store's own, else `PRUNE_THRESHOLD`, whatever that is by now."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1):
        raise InvalidInput(f"prune_threshold must be a number from 0 to 1, not {shown(value)}.")
    return (lambda: tuning.PRUNE_THRESHOLD) if value is None else (lambda: float(value))


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"A {name} is a text, not {shown(value)}.")
    return value
