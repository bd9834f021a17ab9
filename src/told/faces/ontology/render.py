"""What facts look like: to a person who looks into a store, and to a model that is told about its user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from told.core.errors import InvalidInput
from told.core.salience import Tier
from told.core.text import format_value
from told.faces.ontology.fact import Fact, FactDict
from told.read.render import flatten_text


class HasFacts(Protocol):
    """Whatever holds facts."""

    @property
    def facts(self) -> FactDict:
        """The facts by id."""


def sort_by_salience(facts: Iterable[Fact]) -> list[Fact]:
    """Facts in the order they are shown: the strongest first, of equals what was said last."""
    return sorted(facts, key=lambda fact: (fact.salience, fact.last_turn), reverse=True)


def format_block(facts: Iterable[Fact]) -> str:
    """Facts for a prompt, each on a line of its own with the label of its concept."""
    return "\n".join(
        f"- {flatten_text(fact.label or fact.concept)}: {flatten_text(fact.value)}"
        for fact in sort_by_salience(facts)
    )


def format_dump(facts: Sequence[Fact], turn: int) -> str:
    """Facts for a person, with what they weigh and where they come from."""
    return "\n".join(
        (f"(turn {turn}) {len(facts)} fact(s):", *map(_format_line, sort_by_salience(facts)))
    )


def _format_line(fact: Fact) -> str:
    weight = f"(sal={fact.salience:.2f}, {fact.persistence_class})"
    return f'• [{fact.concept}] {flatten_text(fact.value)} {weight} [from: "{flatten_text(fact.evidence)}"]'


def filtered_block(
    memory: HasFacts,
    concept_prefixes: Iterable[str] | str | None = None,
    classes: Iterable[str] | str | None = None,
) -> str:
    """What one agent is told: the facts whose concept begins with one of the prefixes and whose class is listed.

    What is left out does not filter. `SpecialNeed.` and `SpecialNeed.*` are one prefix.
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
