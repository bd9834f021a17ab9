"""What an ontology's memory holds: a fact, the dict of facts, and the two numbers by which they fade."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from told.core.errors import ConfigError, InvalidInput
from told.core.salience import PRUNE, Tier
from told.core.text import shown

VARIABLE: Final = "PRUNE_THRESHOLD"
DECAY: dict[str, float] = {tier.value: tier.decay for tier in Tier}
"""What is left of a fact's salience after one turn, by its persistence class; change it and every store follows."""


def _threshold(environment: Mapping[str, str]) -> float:
    given = environment.get(VARIABLE, "").strip()
    try:
        value = float(given) if given else PRUNE
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{VARIABLE} must be a number from 0 to 1, not {shown(given)}.", hint=f"It is {PRUNE} unset.")
    return value


PRUNE_THRESHOLD: float = _threshold(os.environ)
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


def _looked(name: str) -> Any:
    """A dict's way of looking, after the facts were brought up to date."""
    look = getattr(dict, name)

    def looked(self: Facts, *args: Any) -> Any:
        self.refresh()
        return look(self, *args)

    return looked


class Facts(dict[str, Fact]):
    """The facts of a store by id: a dict that is brought up to date whenever it is looked at.

    What somebody puts in is held from then on with the salience it has; what is taken out is held no more. The store
    itself uses `hold` and `let_go`.
    """

    def __init__(
        self, refresh: Callable[[], object], put: Callable[[Fact], object], drop: Callable[[str], object]
    ) -> None:
        super().__init__()
        self.refresh, self._put, self._drop = refresh, put, drop

    def __setitem__(self, id: str, fact: Fact) -> None:
        if not isinstance(fact, Fact):
            raise InvalidInput(f"A store holds facts, not {shown(fact)}.", hint="Such as Fact(**saved).")
        if fact.id != id:
            raise InvalidInput(f"The fact {fact.id!r} is not {shown(id)}.", hint="Use facts[fact.id] = fact.")
        self._put(fact)

    def __delitem__(self, id: str) -> None:
        if id not in self:
            raise KeyError(id)
        self._drop(id)

    __getitem__, __contains__, __iter__, __len__ = map(_looked, ("__getitem__", "__contains__", "__iter__", "__len__"))
    __eq__, __repr__ = _looked("__eq__"), _looked("__repr__")
    get, keys, values, items, copy = map(_looked, ("get", "keys", "values", "items", "copy"))
    popitem: Any = MutableMapping.popitem
    clear: Any = MutableMapping.clear
    update: Any = MutableMapping.update
    setdefault: Any = MutableMapping.setdefault

    def pop(self, id: str, *default: Any) -> Any:
        """Take a fact out, or give the default if it is not there."""
        found = self.get(id)
        if found is None and default:
            return default[0]
        del self[id]
        return found

    def hold(self, fact: Fact) -> None:
        """Hold a fact."""
        super().__setitem__(fact.id, fact)

    def let_go(self, id: str) -> Fact | None:
        """Hold a fact no more; the fact, if it was held."""
        return super().pop(id, None)

    def replace(self, facts: Iterable[Fact]) -> None:
        """Hold these facts and no others; who is just going through them goes on with those that stay."""
        anew = {fact.id: fact for fact in facts}
        for gone in super().keys() - anew.keys():
            super().pop(gone, None)
        super().update(anew)

    def known(self, id: str) -> Fact:
        """A fact as it was last looked at."""
        return super().__getitem__(id)

    def now(self) -> list[Fact]:
        """What is held as it was last looked at."""
        return list(super().values())
