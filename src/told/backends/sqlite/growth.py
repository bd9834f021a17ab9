"""What the commits of one transaction add to their accounts, gathered so that it is written together.

Sixty-four callers who share a sync share their statements too: rows of the same table go in by the handful, and each
head moves once. Whoever must see in the file what was gathered settles it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import apsw

from told.backends.sqlite.apply import ViewWriter
from told.backends.sqlite.connect import run_query
from told.backends.sqlite.memo import AccountHead
from told.ports import Guard, KindNotGrown, NoEvidence, NoFact, UnchangedSlot


@dataclass(slots=True)
class WriteBuffer:
    """Everything gathered in a transaction, and how much of it was written."""

    watch: Callable[[str], object] = len
    buffered_count: int = 0
    written_count: int = 0
    flush_failed: bool = False
    _view_writers: dict[str, tuple[AccountHead, ViewWriter]] = field(default_factory=dict)

    def get_view_writer(
        self, account: AccountHead, factory: Callable[[], ViewWriter]
    ) -> ViewWriter:
        """What grows an account to which something is about to be added: from here on there are traces of it."""
        self.buffered_count += 1
        entry = self._view_writers.get(account.name)
        if entry is None:
            entry = self._view_writers[account.name] = (account, factory())
        return entry[1]

    def has_relevant_writes(self, guards: Iterable[Guard]) -> bool:
        """Whether something gathered may be what a guard looks out for."""
        return any(
            _has_relevant_writes(view_writer, guard)
            for _, view_writer in self._view_writers.values()
            for guard in guards
        )

    def flush(self, db: apsw.Connection) -> None:
        """Write what was gathered; if that fails, nobody can say whose it was."""
        if not self._view_writers:
            return
        changes_before, self.flush_failed = db.total_changes(), True
        for account, view_writer in self._view_writers.values():
            view_writer.flush_entries()
            self.watch("appended")
            view_writer.flush()
            self.watch("folded")
            run_query(db, "move_head", account.seq, account.at, account.hash, account.id)
            self.watch("headed")
        self._view_writers.clear()
        self.flush_failed = False
        self.written_count += db.total_changes() - changes_before


def _has_relevant_writes(view_writer: ViewWriter, guard: Guard) -> bool:
    match guard:
        case NoFact(md5s=digests) | NoEvidence(digests=digests):
            return not view_writer.written_digests.isdisjoint(digests)
        case UnchangedSlot(scope=scope) | KindNotGrown(scope=scope):
            return scope in view_writer.written_scopes
        case _:
            return True
