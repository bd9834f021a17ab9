"""Whose memories there are: every user, agent and run, with how much is theirs and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.errors import InvalidInput
from told.core.reading import meant
from told.core.text import shown
from told.ports import Tally

SORTS = ("user", "agent", "run")


@dataclass(frozen=True, slots=True)
class Someone:
    """A user, an agent or a run: how many memories are theirs, and when something was first and last written."""

    sort: str
    name: str
    memories: int
    first: int
    last: int


def sorts(wanted: Any) -> tuple[str, ...]:
    """Which of them are asked for: all, unless one sort is named."""
    if wanted is None:
        return SORTS
    if not isinstance(wanted, str) or wanted not in SORTS:
        hint = (isinstance(wanted, str) and meant(wanted, SORTS)) or f"Use one of {', '.join(SORTS)}."
        raise InvalidInput(f"There is no type {shown(wanted)}.", hint=hint)
    return (wanted,)


def census(tallies: Iterable[Tally], wanted: Sequence[str] = SORTS) -> list[Someone]:
    """Users, then agents, then runs, each by name; what belongs to several counts for each of them."""
    theirs: dict[tuple[str, str], list[Tally]] = defaultdict(list)
    for tally in tallies:
        for field, name in tally.scope.ids().items():
            theirs[field.removesuffix("_id"), name].append(tally)
    return [_summed(sort, name, theirs[sort, name]) for sort in wanted for name in _names(theirs, sort)]


def _names(theirs: Iterable[tuple[str, str]], sort: str) -> list[str]:
    return sorted(name for each, name in theirs if each == sort)


def _summed(sort: str, name: str, tallies: Sequence[Tally]) -> Someone:
    first, last = min(tally.first for tally in tallies), max(tally.last for tally in tallies)
    return Someone(sort, name, sum(tally.memories for tally in tallies), first, last)
