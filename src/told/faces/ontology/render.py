"""What facts look like: to a person who looks into a store, and to a model that is told about its user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from told.core.errors import InvalidInput
from told.core.salience import Tier
from told.core.text import shown
from told.faces.ontology.fact import Fact, Facts
from told.read.render import flat


class Holding(Protocol):
    """Whatever holds facts."""

    @property
    def facts(self) -> Facts:
        """The facts by id."""


def strongest(facts: Iterable[Fact]) -> list[Fact]:
    """Facts in the order they are shown: the strongest first, of equals what was said last."""
    return sorted(facts, key=lambda fact: (fact.salience, fact.last_turn), reverse=True)


def block(facts: Iterable[Fact]) -> str:
    """Facts for a prompt, each on a line of its own with the label of its concept."""
    return "\n".join(f"- {flat(fact.label or fact.concept)}: {flat(fact.value)}" for fact in strongest(facts))


def dump(facts: Sequence[Fact], turn: int) -> str:
    """Facts for a person, with what they weigh and where they come from."""
    return "\n".join((f"(turn {turn}) {len(facts)} fact(s):", *map(_line, strongest(facts))))


def _line(fact: Fact) -> str:
    weight = f"(sal={fact.salience:.2f}, {fact.persistence_class})"
    return f'• [{fact.concept}] {flat(fact.value)} {weight} [from: "{flat(fact.evidence)}"]'


def filtered_block(
    memory: Holding, concept_prefixes: Iterable[str] | str | None = None, classes: Iterable[str] | str | None = None
) -> str:
    """What one agent is told: the facts whose concept begins with one of the prefixes and whose class is listed.

    What is left out does not filter. `SpecialNeed.` and `SpecialNeed.*` are one prefix.
    """
    prefixes = None if concept_prefixes is None else tuple(each.rstrip("*") for each in _listed(concept_prefixes))
    wanted = None if classes is None else frozenset(_listed(classes))
    if unknown := sorted((wanted or frozenset()) - set(Tier)):
        raise InvalidInput(f"There is no persistence class {shown(unknown[0])}.", hint=f"There are: {', '.join(Tier)}.")
    return block(
        fact
        for fact in list(memory.facts.values())
        if (prefixes is None or fact.concept.startswith(prefixes))
        and (wanted is None or fact.persistence_class in wanted)
    )


def _listed(given: Any) -> list[str]:
    found = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(each, str) for each in found):
        raise InvalidInput(f"Concepts and classes are names, not {shown(found)}.")
    return found
