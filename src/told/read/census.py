"""Whose memories there are: every user, agent and run, with how much is theirs and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.errors import InvalidInput
from told.core.reading import suggest_option
from told.core.text import format_value
from told.ports import ScopeTally

OWNER_TYPES = ("user", "agent", "run")


@dataclass(frozen=True, slots=True)
class OwnerStatistics:
    """A user, an agent or a run: how many memories are theirs, and when something was first and last written."""

    owner_type: str
    name: str
    memory_count: int
    first_at: int
    last_at: int


def parse_owner_types(value: Any) -> tuple[str, ...]:
    """Which of them are asked for: all, unless one sort is named."""
    if value is None:
        return OWNER_TYPES
    if not isinstance(value, str) or value not in OWNER_TYPES:
        hint = (
            isinstance(value, str) and suggest_option(value, OWNER_TYPES)
        ) or f"Use one of {', '.join(OWNER_TYPES)}."
        raise InvalidInput(f"There is no type {format_value(value)}.", hint=hint)
    return (value,)


def summarise_owners(
    tallies: Iterable[ScopeTally], owner_types: Sequence[str] = OWNER_TYPES
) -> list[OwnerStatistics]:
    """Users, then agents, then runs, each by name; what belongs to several counts for each of them."""
    tallies_by_owner: dict[tuple[str, str], list[ScopeTally]] = defaultdict(list)
    for tally in tallies:
        for field, name in tally.scope.ids().items():
            tallies_by_owner[field.removesuffix("_id"), name].append(tally)
    return [
        _sum_tallies(owner_type, name, tallies_by_owner[owner_type, name])
        for owner_type in owner_types
        for name in _list_names(tallies_by_owner, owner_type)
    ]


def _list_names(tallies_by_owner: Iterable[tuple[str, str]], owner_type: str) -> list[str]:
    return sorted(name for key_type, name in tallies_by_owner if key_type == owner_type)


def _sum_tallies(owner_type: str, name: str, tallies: Sequence[ScopeTally]) -> OwnerStatistics:
    first, last = min(tally.first for tally in tallies), max(tally.last for tally in tallies)
    return OwnerStatistics(owner_type, name, sum(tally.memories for tally in tallies), first, last)
