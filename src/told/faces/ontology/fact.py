"""What an ontology's memory holds: a fact, the dict of facts, and the two numbers by which they fade."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from told.core.errors import ConfigError, InvalidInput
from told.core.salience import DEFAULT_PRUNE_THRESHOLD, Tier
from told.core.text import format_value

THRESHOLD_VARIABLE: Final = "PRUNE_THRESHOLD"
DECAY: dict[str, float] = {tier.value: tier.decay for tier in Tier}
"""What is left of a fact's salience after one turn, by its persistence class; change it and every store follows."""


def _read_threshold(environment: Mapping[str, str]) -> float:
    raw = environment.get(THRESHOLD_VARIABLE, "").strip()
    try:
        value = float(raw) if raw else DEFAULT_PRUNE_THRESHOLD
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ConfigError(
            f"{THRESHOLD_VARIABLE} must be a number from 0 to 1, not {format_value(raw)}.",
            hint=f"It is {DEFAULT_PRUNE_THRESHOLD} unset.",
        )
    return value


PRUNE_THRESHOLD: float = _read_threshold(os.environ)
"""The salience below which a fact that is not permanent is dropped; the variable of this name sets it."""


@dataclass
class Fact:
    """One remembered value of a concept, with the sentence it was last said in and what it weighs now.

    Turns are those of the store's clock; instants are ISO 8601 in UTC.
    """

    id: str
    concept: str
    value: str
    evidence: str
    persistence_class: str
    salience: float
    label: str = ""
    first_turn: int = 0
    last_turn: int = 0
    reinforcements: int = 0
    first_at: str = ""
    last_at: str = ""


def _refreshing(name: str) -> Any:
    """A dict's way of looking, after the facts were brought up to date."""
    method = getattr(dict, name)

    def wrapper(self: FactDict, *args: Any) -> Any:
        self.refresh()
        return method(self, *args)

    return wrapper


class FactDict(dict[str, Fact]):
    """The facts of a store by id: a dict that is brought up to date whenever it is looked at.

    What somebody puts in is held from then on with the salience it has; what is taken out is held no more. The store
    itself uses `hold` and `let_go`.
    """

    def __init__(
        self,
        refresh: Callable[[], object],
        on_set: Callable[[Fact], object],
        on_delete: Callable[[str], object],
    ) -> None:
        super().__init__()
        self.refresh, self._on_set, self._on_delete = refresh, on_set, on_delete

    def __setitem__(self, id: str, fact: Fact) -> None:
        if not isinstance(fact, Fact):
            raise InvalidInput(
                f"A store holds facts, not {format_value(fact)}.", hint="Such as Fact(**saved)."
            )
        if fact.id != id:
            raise InvalidInput(
                f"The fact {fact.id!r} is not {format_value(id)}.",
                hint="Use facts[fact.id] = fact.",
            )
        self._on_set(fact)

    def __delitem__(self, id: str) -> None:
        if id not in self:
            raise KeyError(id)
        self._on_delete(id)

    __getitem__, __contains__, __iter__, __len__ = map(
        _refreshing, ("__getitem__", "__contains__", "__iter__", "__len__")
    )
    __eq__, __repr__ = _refreshing("__eq__"), _refreshing("__repr__")
    get, keys, values, items, copy = map(_refreshing, ("get", "keys", "values", "items", "copy"))
    popitem: Any = MutableMapping.popitem
    clear: Any = MutableMapping.clear
    update: Any = MutableMapping.update
    setdefault: Any = MutableMapping.setdefault

    def pop(self, id: str, *default: Any) -> Any:
        """Take a fact out, or give the default if it is not there."""
        fact = self.get(id)
        if fact is None and default:
            return default[0]
        del self[id]
        return fact

    def set_fact(self, fact: Fact) -> None:
        """Hold a fact."""
        super().__setitem__(fact.id, fact)

    def remove_fact(self, id: str) -> Fact | None:
        """Hold a fact no more; the fact, if it was held."""
        return super().pop(id, None)

    def replace_all(self, facts: Iterable[Fact]) -> None:
        """Hold these facts and no others; who is just going through them goes on with those that stay."""
        new_facts = {fact.id: fact for fact in facts}
        for removed_id in super().keys() - new_facts.keys():
            super().pop(removed_id, None)
        super().update(new_facts)

    def peek(self, id: str) -> Fact:
        """A fact as it was last looked at."""
        return super().__getitem__(id)

    def peek_all(self) -> list[Fact]:
        """What is held as it was last looked at."""
        return list(super().values())
