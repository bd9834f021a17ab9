"""What this process wrote to the file or read of it last, so that it need not be looked up again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from told.backends.sqlite.vectors import StoredModel
from told.core.entry import Draft
from told.core.fact import Fact
from told.core.scope import Scope
from told.ports import Guard, NoEvidence, NoFact

UNKNOWN_VERSION: Final = -1
MAX_CACHED: Final = 4096
MAX_CACHED_CHARS: Final = 2048
"""A fact of more characters is not kept: many of them would take more room than it takes time to read them."""


@dataclass(slots=True)
class AccountHead:
    """An account inside a transaction; its head moves with every entry, and all that came since a position is known."""

    id: int
    name: str
    seq: int
    at: int
    hash: bytes
    cached_since: int


@dataclass(slots=True)
class ReadCache:
    """Heads, spaces, sizes and clocks of partitions, the model and facts, good for one version of the file.

    The version is unknown while a transaction runs. Only a commit makes it known again, so whatever was noted by one
    that failed, or before somebody else wrote, is never looked at.
    """

    version: int = UNKNOWN_VERSION
    accounts: dict[str, AccountHead] = field(default_factory=dict)
    spaces: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    partition_sizes: dict[int, int] = field(default_factory=dict)
    tick_totals: dict[int, tuple[int, int]] = field(default_factory=dict)
    model: tuple[StoredModel | None] | None = None
    facts: dict[tuple[str, int], Fact] = field(default_factory=dict)
    last_writes: dict[Scope | None, int] = field(default_factory=dict)

    def reuse_for(self, version: int) -> ReadCache:
        """The memo to use for a transaction on this version of the file."""
        read_cache = (
            self if self.version == version and len(self.spaces) < MAX_CACHED else ReadCache()
        )
        read_cache.version = UNKNOWN_VERSION
        return read_cache

    def record_writes(self, account: AccountHead, drafts: Iterable[Draft]) -> None:
        """Note that something was written to the scopes of some drafts."""
        last: object = self
        for draft in drafts:
            if draft.scope is not last:
                last = draft.scope
                self.last_writes[draft.scope] = account.seq

    def is_guard_satisfied(self, account: AccountHead, guard: Guard, read_seq: int) -> bool:
        """Whether a guard is known to hold: nothing was written since, or nothing to the scope that it watches."""
        if read_seq == account.seq:
            return True
        return (
            isinstance(guard, NoFact | NoEvidence)
            and read_seq >= account.cached_since
            and self.last_writes.get(guard.scope, 0) <= read_seq
        )

    def cache_facts(
        self, account: str, facts: Iterable[Fact], rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Note facts that were just read, given their rows; those noted before make room once there are many."""
        if len(self.facts) >= MAX_CACHED:
            self.facts.clear()
        for fact, row in zip(facts, rows, strict=True):
            if sum([len(value) for value in row if isinstance(value, str)]) <= MAX_CACHED_CHARS:
                self.facts[account, fact.seq] = fact
