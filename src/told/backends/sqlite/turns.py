"""A conversation as the file tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import Scopes, base, position, space_of
from told.core.fact import Fact
from told.core.scope import Scope


def scopes(db: apsw.Connection, number: int, account: str) -> Sequence[Scope]:
    """Every exact scope that something is left of."""
    found = [Scope(account, *ids) for ids in run(db, "scopes", number)]
    return sorted(found, key=lambda scope: sorted(scope.ids().items()))


def turns(
    db: apsw.Connection, number: int, scope: Scope, after: int, before: int, limit: int, *, newest: bool
) -> Sequence[Fact]:
    """The turns of exactly this scope between two positions."""
    space = space_of(db, number, scope)
    if space is None:
        return []
    name = "newest_turns" if newest else "turns"
    bounds = (position(number, after), position(number, before), base(number))
    rows = run(db, name, space[0], *bounds, limit).fetchall()
    return Scopes(db, scope.account).facts(rows[::-1] if newest else rows)


def gathered(db: apsw.Connection, number: int, scope: Scope, rel: str) -> int:
    """How many things a relation of exactly this scope leads to."""
    space = space_of(db, number, scope)
    return 0 if space is None else int(run(db, "gathered", space[0], rel).get)
