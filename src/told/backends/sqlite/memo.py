"""What this process wrote to the file or read of it last, so that it need not be looked up again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from told.backends.sqlite.vectors import Model
from told.core.entry import Draft
from told.core.fact import Fact
from told.core.scope import Scope
from told.ports import Guard, NoEvidence, NoFact

UNKNOWN: Final = -1
MANY: Final = 4096
LONG: Final = 2048
"""A fact of more characters is not kept: many of them would take more room than it takes time to read them."""


@dataclass(slots=True)
class Account:
    """An account inside a transaction; its head moves with every entry, and all that came since a position is known."""

    id: int
    name: str
    seq: int
    at: int
    hash: bytes
    since: int


@dataclass(slots=True)
class Memo:
    """Heads, spaces, sizes and clocks of partitions, the model and facts, good for one version of the file.

    The version is unknown while a transaction runs. Only a commit makes it known again, so whatever was noted by one
    that failed, or before somebody else wrote, is never looked at.
    """

    version: int = UNKNOWN
    accounts: dict[str, Account] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    clocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    model: tuple[Model | None] | None = None
    facts: dict[tuple[str, int], Fact] = field(default_factory=dict)
    moved: dict[Scope | None, int] = field(default_factory=dict)

    def at(self, version: int) -> Memo:
        """The memo to use for a transaction on this version of the file."""
        memo = self if self.version == version and len(self.spaces) < MANY else Memo()
        memo.version = UNKNOWN
        return memo

    def note(self, account: Account, drafts: Iterable[Draft]) -> None:
        """Note that something was written to the scopes of some drafts."""
        last: object = self
        for draft in drafts:
            if draft.scope is not last:
                last = draft.scope
                self.moved[draft.scope] = account.seq

    def vouches(self, account: Account, guard: Guard, seen: int) -> bool:
        """Whether a guard is known to hold: nothing was written since, or nothing to the scope that it watches."""
        if seen == account.seq:
            return True
        return (
            isinstance(guard, NoFact | NoEvidence) and seen >= account.since and self.moved.get(guard.scope, 0) <= seen
        )

    def keep(self, account: str, facts: Iterable[Fact], rows: Iterable[tuple[Any, ...]]) -> None:
        """Note facts that were just read, given their rows; those noted before make room once there are many."""
        if len(self.facts) >= MANY:
            self.facts.clear()
        for fact, row in zip(facts, rows, strict=True):
            if sum([len(value) for value in row if isinstance(value, str)]) <= LONG:
                self.facts[account, fact.seq] = fact
