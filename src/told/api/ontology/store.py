"""The MemoryStore: facts of an ontology for agents that run their own loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Protocol

from told.api.ontology import fact as tuning
from told.api.ontology.fact import DECAY, Fact, FactDict, TextVectors, build_matcher, open_vectors
from told.api.ontology.storage import ConversationClock, InProcessFacts, LedgerFacts
from told.errors import ConfigError, InvalidInput
from told.ids import IdGenerator, wall_clock_us
from told.model.concepts import ASSERTED, NEGATED, ConceptRules, set_default_clock
from told.model.kind import Kind, Ontology, load_ontology
from told.model.salience import DecayClock, DecayCurve, Tier, find_fade_time
from told.retrieval.render import flatten_text
from told.runtime import lazy_regex
from told.settings import load_settings
from told.text.similarity import value_similarity
from told.text.tokens import extract_query_terms, extract_terms, format_value

if TYPE_CHECKING:
    from told.api.memory import Memory


@dataclass(frozen=True, slots=True)
class RemainingLife:
    """The time until a fact fades by its clock, in turns or days; None if it never does."""

    duration: float | None
    clock: DecayClock

    @classmethod
    def from_curve(cls, curve: DecayCurve, weight: float, clock: DecayClock) -> RemainingLife:
        """Compute the remaining life of a fact of a weight."""
        start = DecayCurve(weight, curve.decay, curve.is_permanent, curve.floor)
        return cls(find_fade_time(start, (0.0,), 0.0), clock)


class FactBackend(Protocol):
    """A backend that stores facts and counts turns."""

    facts: FactDict
    rules: ConceptRules

    @property
    def turn(self) -> int:
        """Return the number of turns that have passed."""

    @turn.setter
    def turn(self, turn: int) -> None:
        """Set the turn counter."""

    def upsert(self, kind: Kind, value: str, polarity: str, evidence: str) -> Fact | None:
        """Store, reinforce or retract a value; return its fact, if any."""

    def tick(self, turns: int, tokens: int | None) -> None:
        """Advance the turn clock."""

    def list_faded(self) -> Sequence[Fact]:
        """Return the faded facts."""

    def forget(self, ids: Collection[str], *, erase: bool) -> None:
        """Forget facts, faded or not."""


_PRONOUNS: Final = lazy_regex(
    r"\b(?:one|ones|it|its|that|this|those|these|them|there)\b", re.IGNORECASE
)
"""Pronouns that refer to the last topic."""
MIN_WORD_SIMILARITY: Final = 0.8
"""The similarity from which on two words differ only by an ending or a typo."""


def rank_facts(query: str, facts: Sequence[Fact], vectors: TextVectors | None) -> list[Fact]:
    """Return the facts that match a query, best first.

    Facts match by the words of value, label and quote, and by vectors if there are any. A
    question that matches nothing but refers back ("where can I get one?") gets the latest facts.
    """
    scores = _score_facts(query, facts, vectors)
    scored = [(score, fact) for score, fact in zip(scores, facts, strict=True) if score > 0.0]
    if scored:
        scored.sort(key=lambda pair: (pair[0], pair[1].salience, pair[1].last_turn), reverse=True)
        return [fact for _, fact in scored]
    return (
        sorted(facts, key=lambda fact: fact.last_turn, reverse=True)
        if _PRONOUNS.search(query)
        else []
    )


def _score_facts(query: str, facts: Sequence[Fact], vectors: TextVectors | None) -> list[float]:
    query_words = set(extract_query_terms(query))
    word_scores = [_score_words(query_words, fact) for fact in facts]
    if vectors is None or not facts:
        return word_scores
    vector_scores = vectors.score_answers(query, [f"{fact.label}: {fact.value}" for fact in facts])
    return [
        word_score + vector_score
        for word_score, vector_score in zip(word_scores, vector_scores, strict=True)
    ]


def _score_words(query_words: set[str], fact: Fact) -> float:
    """Return the share of query words in a fact; words of its label and quote count half."""
    value_words = set(extract_terms(fact.value))
    context_words = set(extract_terms(f"{fact.label} {fact.evidence}"))
    shares = (
        1.0
        if term in value_words
        else max(_best_word_similarity(term, value_words), 0.5 * (term in context_words))
        for term in query_words
    )
    return sum(shares) / (len(query_words) or 1)


def _best_word_similarity(term: str, words: Iterable[str]) -> float:
    """Return the similarity of the most similar word, or 0 if none is similar enough."""
    best_score = max((value_similarity(term, word) for word in words), default=0.0)
    return best_score if best_score >= MIN_WORD_SIMILARITY else 0.0


def fact_to_row(fact: Fact, remaining: RemainingLife) -> dict[str, Any]:
    """Serialise a fact with its quote, salience and remaining life."""
    unit = "days" if remaining.clock is DecayClock.TIME else "turns"
    return {
        "id": fact.id,
        "concept": fact.concept,
        "label": fact.label,
        "value": fact.value,
        "evidence": fact.evidence,
        "first_turn": fact.first_turn,
        "first_at": fact.first_at,
        "last_turn": fact.last_turn,
        "last_at": fact.last_at,
        "said": fact.reinforcements + 1,
        "salience": round(fact.salience, 4),
        "persistence_class": fact.persistence_class,
        f"fades_in_{unit}": remaining.duration,
    }


class HasFacts(Protocol):
    """An object that has facts."""

    @property
    def facts(self) -> FactDict:
        """Return the facts by id."""


def sort_by_salience(facts: Iterable[Fact]) -> list[Fact]:
    """Sort facts by salience, then by last turn, highest first."""
    return sorted(facts, key=lambda fact: (fact.salience, fact.last_turn), reverse=True)


def format_block(facts: Iterable[Fact]) -> str:
    """Format facts for a prompt, one per line with the concept's label."""
    return "\n".join(
        f"- {flatten_text(fact.label or fact.concept)}: {flatten_text(fact.value)}"
        for fact in sort_by_salience(facts)
    )


def format_dump(facts: Sequence[Fact], turn: int) -> str:
    """Format facts for people, with salience and quotes."""
    return "\n".join(
        (f"(turn {turn}) {len(facts)} fact(s):", *map(_format_line, sort_by_salience(facts)))
    )


def _format_line(fact: Fact) -> str:
    weight = f"(sal={fact.salience:.2f}, {fact.persistence_class})"
    quote = flatten_text(fact.evidence)
    return f'• [{fact.concept}] {flatten_text(fact.value)} {weight} [from: "{quote}"]'


def filtered_block(
    memory: HasFacts,
    concept_prefixes: Iterable[str] | str | None = None,
    classes: Iterable[str] | str | None = None,
) -> str:
    """Format the facts whose concept has one of the prefixes and whose class is listed.

    An argument that is left out does not filter. `SpecialNeed.` and `SpecialNeed.*` are equal.
    """
    prefixes = (
        None
        if concept_prefixes is None
        else tuple(prefix.rstrip("*") for prefix in _to_names(concept_prefixes))
    )
    wanted_classes = None if classes is None else frozenset(_to_names(classes))
    if unknown := sorted((wanted_classes or frozenset()) - set(Tier)):
        raise InvalidInput(
            f"There is no persistence class {format_value(unknown[0])}.",
            hint=f"There are: {', '.join(Tier)}.",
        )
    return format_block(
        fact
        for fact in list(memory.facts.values())
        if (prefixes is None or fact.concept.startswith(prefixes))
        and (wanted_classes is None or fact.persistence_class in wanted_classes)
    )


def _to_names(value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"Concepts and classes are names, not {format_value(names)}.")
    return names


class MemoryStore:
    """The facts about a user within an ontology; each fades by the rules of its concept.

    Facts are kept in this process unless a `memory` is given. Then they live in its ledger for
    a `user_id`, and threads and processes may share them. Permanent and long_term facts belong
    to the user (and the agent, if one is named), those of a session to its `run_id`; a store
    opened without a `run_id` starts a new session and never returns facts of earlier sessions.
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
        """Open a store for an ontology: its kinds, its JSON, or the path of that.

        With a threshold below 1, similar values are the same: by their text, by a function
        (a, b) -> float, or by the vectors of an embedder such as "local". `clock` makes facts
        fade: turns, tokens or time. `now` returns microseconds since 1970.
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

    def upsert(
        self, concept: str, value: str, polarity: str = ASSERTED, evidence: str = ""
    ) -> Fact | None:
        """Store a value of a concept, reinforce it if it is known, or retract it if negated.

        Return its fact, or None if it was negated or evicted by stronger facts.
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
        """Advance the clock by turns; `tokens` is their length, for facts that fade by tokens."""
        for name, count in (("turns", turns), ("tokens", tokens)):
            if count is not None and (type(count) is not int or count < 0):
                raise InvalidInput(f"{name} must be a whole number, not {format_value(count)}.")
        self._backend.tick(turns, tokens)

    def context_block(self) -> str:
        """Format the current facts for a prompt, strongest first."""
        return format_block(self.facts.values())

    def dump(self) -> str:
        """Format the current facts for people, with salience and quotes."""
        return format_dump(list(self.facts.values()), self.turn)

    @property
    def facts(self) -> FactDict:
        """Return the current facts by id."""
        return self._backend.facts

    @property
    def turn(self) -> int:
        """Return the number of turns that have passed."""
        return self._backend.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        if type(turn) is not int or turn < 0:
            raise InvalidInput(f"A turn is a whole number, not {format_value(turn)}.")
        self._backend.turn = turn

    def recall(self, query: str, limit: int = 5) -> list[Fact]:
        """Return the facts that match a query, best first, faded ones included."""
        if type(limit) is not int or limit < 1:
            raise InvalidInput(f"limit must be a whole number from 1, not {format_value(limit)}.")
        facts = [*self.facts.values(), *self._backend.list_faded()]
        return rank_facts(_require_text(query, "query"), facts, self._vectors)[:limit]

    def forget(
        self, concept: str | None = None, value: str | None = None, *, erase: bool = False
    ) -> list[Fact]:
        """Forget facts, faded or not, by concept or prefix and by value; return them.

        Without arguments, forget all. A ledger keeps their history unless `erase` is set.
        """
        facts = [*self.facts.values(), *self._backend.list_faded()]
        forgotten = [fact for fact in facts if self._matches(fact, concept, value)]
        self._backend.forget([fact.id for fact in forgotten], erase=erase)
        return forgotten

    def about(self) -> list[dict[str, Any]]:
        """Return the current facts with their quotes, times, salience and remaining life."""
        rules = self._backend.rules
        rows = []
        for fact in sort_by_salience(self.facts.values()):
            curve = rules.build_curve(fact.concept, Tier(fact.persistence_class))
            rows.append(
                fact_to_row(
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
    """Open a backend in this process or in the ledger of a memory."""
    if memory is None:
        if given_ids := [name for name, value in ids.items() if value is not None]:
            raise ConfigError(
                f"{given_ids[0]} can only be set with a memory.",
                hint="Such as MemoryStore(ontology, memory=Memory(), …).",
            )
        instant = now or wall_clock_us
        settings = load_settings().settings
        return InProcessFacts(
            rules,
            IdGenerator(instant),
            ConversationClock(
                instant, settings.maintenance.turn_events, settings.maintenance.turn_tokens
            ),
        )
    if now is not None:
        raise ConfigError(
            "now cannot be set with a memory, which has its own clock.",
            hint="Open it with Memory(mint=told.ids.IdGenerator(clock)).",
        )
    from told.api.memory import Memory

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
    """Return a getter of the store's threshold, or of `PRUNE_THRESHOLD`, which may change."""
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
