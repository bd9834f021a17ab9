"""The store of an ontology's facts, for agents that run their own loop: extract, upsert, tick, inject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from told.core.concepts import ASSERTED, NEGATED, ConceptRules, set_default_clock
from told.core.errors import ConfigError, InvalidInput
from told.core.ids import IdGenerator, wall_clock_us
from told.core.kind import Ontology, load_ontology
from told.core.salience import DecayClock, Tier
from told.core.text import format_value
from told.faces.ontology import fact as tuning
from told.faces.ontology import recalling, render
from told.faces.ontology.durable import LedgerFacts
from told.faces.ontology.fact import DECAY, Fact, FactDict
from told.faces.ontology.inside import ConversationClock, InProcessFacts
from told.faces.ontology.keeping import FactBackend, RemainingLife
from told.faces.ontology.likeness import TextVectors, build_matcher, open_vectors
from told.faces.sdk import Memory
from told.settings import load_settings


class MemoryStore:
    """What is known of a user within an ontology: facts that fade, turn by turn, each as its concept says.

    In this process unless a `memory` is given. With one the facts live in its ledger, for a `user_id`: any number of
    threads and processes may share them. Facts that are permanent or long_term belong to the user (and the agent, if
    one is named); those of a session belong to its `run_id`, so a store opened without one begins a new session, which
    neither shows them nor lets them come back.
    """

    def __init__(
        self,
        ontology: Ontology | Mapping[str, Any] | str | PathLike[str],
        similarity_threshold: float = 1.0,
        similarity_fn: Any = None,
        *,
        memory: Memory | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        clock: str = "turns",
        prune_threshold: float | None = None,
        now: Callable[[], int] | None = None,
    ) -> None:
        """Open a store over an ontology: its kinds, its JSON, or the path of that.

        Below a threshold of 1 values that are alike are one: by their wording, by a function (a, b) -> float, or by
        the vectors of an embedder such as "local". `clock` is what makes facts fade: turns, tokens or time; `now`
        gives microseconds since 1970 to it.
        """
        kinds = ontology if isinstance(ontology, Ontology) else load_ontology(ontology)
        vectors = open_vectors(similarity_fn)
        matcher = build_matcher(similarity_threshold, similarity_fn, vectors)
        rules = ConceptRules(
            set_default_clock(kinds, _parse_clock(clock)),
            matcher,
            DECAY,
            _threshold_getter(prune_threshold),
        )
        self.ontology = rules.ontology
        self._backend = _open_backend(
            rules, memory, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, now
        )
        embedder = None if memory is None else memory.embedder
        self._vectors = (
            vectors if embedder is None or vectors is not None else TextVectors(embedder)
        )

    # The loop ---------------------------------------------------------------------------------------------------------

    def upsert(
        self, concept: str, value: str, polarity: str = ASSERTED, evidence: str = ""
    ) -> Fact | None:
        """Hold a value of a concept, hold it more firmly if it is held, or give it up if it is negated.

        Gives the fact that now holds the value; None if it was negated, or is weaker than all there is room for.
        """
        kind = self.ontology.get_kind(_require_text(concept, "concept"))
        if polarity not in (ASSERTED, NEGATED):
            raise InvalidInput(
                f"A polarity is {ASSERTED} or {NEGATED}, not {format_value(polarity)}."
            )
        sentence = "" if evidence is None else evidence
        if not isinstance(sentence, str):
            raise InvalidInput(
                f"The evidence is the sentence it was said in, not {format_value(evidence)}."
            )
        return self._backend.upsert(kind, _require_text(value, "value").strip(), polarity, sentence)

    def tick(self, turns: int = 1, *, tokens: int | None = None) -> None:
        """Let a turn pass, or several; `tokens` says how long they were, where facts fade by tokens."""
        for name, count in (("turns", turns), ("tokens", tokens)):
            if count is not None and (type(count) is not int or count < 0):
                raise InvalidInput(f"{name} must be a whole number, not {format_value(count)}.")
        self._backend.tick(turns, tokens)

    def context_block(self) -> str:
        """Everything that has not faded, for a prompt; the strongest first."""
        return render.format_block(self.facts.values())

    def dump(self) -> str:
        """Everything that has not faded, for a person, with what it weighs and where it comes from."""
        return render.format_dump(list(self.facts.values()), self.turn)

    @property
    def facts(self) -> FactDict:
        """The facts that have not faded, by id: a dict."""
        return self._backend.facts

    @property
    def turn(self) -> int:
        """How many turns have passed."""
        return self._backend.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        if type(turn) is not int or turn < 0:
            raise InvalidInput(f"A turn is a whole number, not {format_value(turn)}.")
        self._backend.turn = turn

    # Looking back -----------------------------------------------------------------------------------------------------

    def recall(self, query: str, limit: int = 5) -> list[Fact]:
        """The facts that bear on a query, the best first; those that have faded are found too, with what they weigh."""
        if type(limit) is not int or limit < 1:
            raise InvalidInput(f"limit must be a whole number from 1, not {format_value(limit)}.")
        facts = [*self.facts.values(), *self._backend.list_faded()]
        return recalling.rank_facts(_require_text(query, "query"), facts, self._vectors)[:limit]

    def forget(
        self, concept: str | None = None, value: str | None = None, *, erase: bool = False
    ) -> list[Fact]:
        """Give up what is known, held or faded: all of it, that of a concept or prefix, or a value; what it was.

        In a ledger the past keeps it, unless it is to be erased.
        """
        facts = [*self.facts.values(), *self._backend.list_faded()]
        forgotten = [fact for fact in facts if self._matches(fact, concept, value)]
        self._backend.forget([fact.id for fact in forgotten], erase=erase)
        return forgotten

    def about(self) -> list[dict[str, Any]]:
        """What is remembered: each fact with when and in which sentence it was said, how strong it is, how long yet."""
        rules = self._backend.rules
        rows = []
        for fact in render.sort_by_salience(self.facts.values()):
            curve = rules.build_curve(fact.concept, Tier(fact.persistence_class))
            rows.append(
                recalling.fact_to_row(
                    fact,
                    RemainingLife.from_curve(curve, fact.salience, rules.decay_clock(fact.concept)),
                )
            )
        return rows

    def _matches(self, fact: Fact, concept: str | None, value: str | None) -> bool:
        if concept is not None and fact.concept != concept:
            prefix = concept.rstrip("*")
            if not prefix.endswith(".") or not fact.concept.startswith(prefix):
                return False
        return value is None or self._backend.rules.matcher.is_same(value, fact.value)


def _open_backend(
    rules: ConceptRules, memory: Any, ids: Mapping[str, Any], now: Callable[[], int] | None
) -> FactBackend:
    """What keeps the facts: this process, or the ledger of a memory."""
    if memory is None:
        if given_ids := [name for name, value in ids.items() if value is not None]:
            raise ConfigError(
                f"{given_ids[0]} needs a memory.",
                hint="Such as MemoryStore(ontology, memory=Memory(), …).",
            )
        instant = now or wall_clock_us
        settings = load_settings().settings
        return InProcessFacts(
            rules,
            IdGenerator(instant),
            ConversationClock(instant, settings.turn_events, settings.turn_tokens),
        )
    if now is not None:
        raise ConfigError(
            "A memory has a clock of its own.", hint="Open it with Memory(mint=Mint(clock))."
        )
    if not isinstance(memory, Memory):
        raise ConfigError(f"memory must be a told.Memory, not {format_value(memory)}.")
    return LedgerFacts(rules, memory, **ids)


def _parse_clock(clock: Any) -> DecayClock:
    if clock not in tuple(DecayClock):
        raise InvalidInput(
            f"There is no clock {format_value(clock)}.", hint=f"There are: {', '.join(DecayClock)}."
        )
    return DecayClock(clock)


def _threshold_getter(value: Any) -> Callable[[], float]:
    """The salience below which a fact has faded: the store's own, else `PRUNE_THRESHOLD`, whatever that is by now."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ):
        raise InvalidInput(
            f"prune_threshold must be a number from 0 to 1, not {format_value(value)}."
        )
    return (lambda: tuning.PRUNE_THRESHOLD) if value is None else (lambda: float(value))


def _require_text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"A {name} is a text, not {format_value(value)}.")
    return value
