"""What the commits of one transaction add to their accounts, gathered so that it is written together.

Sixty-four callers who share a sync share their statements too: rows of the same table go in by the handful, and each
head moves once. Whoever must see in the file what was gathered settles it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import apsw

from told.backends.sqlite.apply import Grower
from told.backends.sqlite.connect import run
from told.backends.sqlite.memo import Account
from told.ports import Guard, NoEvidence, NoFact, NoMore, NoNews


@dataclass(slots=True)
class Growth:
    """Everything gathered in a transaction, and how much of it was written."""

    watch: Callable[[str], object] = len
    gathered: int = 0
    written: int = 0
    broken: bool = False
    _growing: dict[str, tuple[Account, Grower]] = field(default_factory=dict)

    def of(self, account: Account, grower: Callable[[], Grower]) -> Grower:
        """What grows an account to which something is about to be added: from here on there are traces of it."""
        self.gathered += 1
        found = self._growing.get(account.name)
        if found is None:
            found = self._growing[account.name] = (account, grower())
        return found[1]

    def bears_on(self, guards: Iterable[Guard]) -> bool:
        """Whether something gathered may be what a guard looks out for."""
        return any(_bears_on(grower, guard) for _, grower in self._growing.values() for guard in guards)

    def settle(self, db: apsw.Connection) -> None:
        """Write what was gathered; if that fails, nobody can say whose it was."""
        if not self._growing:
            return
        before, self.broken = db.total_changes(), True
        for account, grower in self._growing.values():
            grower.append()
            self.watch("appended")
            grower.settle()
            self.watch("folded")
            run(db, "move_head", account.seq, account.at, account.hash, account.id)
            self.watch("headed")
        self._growing.clear()
        self.broken = False
        self.written += db.total_changes() - before


def _bears_on(grower: Grower, guard: Guard) -> bool:
    match guard:
        case NoFact(md5s=marks) | NoEvidence(digests=marks):
            return not grower.marks.isdisjoint(marks)
        case NoNews(scope=scope) | NoMore(scope=scope):
            return scope in grower.met
        case _:
            return True
