"""A conversation as the file tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import SEQ_MASK, Scopes, position, space_of, span
from told.backends.sqlite.sql import narrowed
from told.core.scope import Scope
from told.ports import Tally, Turn


def scopes(db: apsw.Connection, number: int, account: str) -> Sequence[Scope]:
    """Every exact scope that something is left of."""
    found = [Scope(account, *ids) for ids in run(db, "scopes", number)]
    return sorted(found, key=lambda scope: sorted(scope.ids().items()))


def tallies(db: apsw.Connection, number: int, account: str) -> Sequence[Tally]:
    """How much is in every exact scope, in the same order."""
    rows = run(db, "tallies", number, *span(number)).fetchall()
    found = [Tally(Scope(account, *row[:3]), *row[3:]) for row in rows]
    return sorted(found, key=lambda tally: sorted(tally.scope.ids().items()))


def turns(
    db: apsw.Connection, number: int, scope: Scope, after: int, before: int, limit: int, *, newest: bool
) -> Sequence[Turn]:
    """The turns of exactly this scope between two positions."""
    space = space_of(db, number, scope)
    if space is None:
        return []
    query = narrowed("turns", "", f"ORDER BY o.id {'DESC' if newest else 'ASC'} LIMIT ?6")
    within = (space[0], position(number, after), position(number, before), *span(number), limit)
    rows: list[Any] = db.execute(query, within).fetchall()
    places = [place & SEQ_MASK for place, *_ in rows]
    found = map(Turn, places, Scopes(db, scope.account).facts([tuple(row) for _, *row in rows]))
    return list(found)[:: -1 if newest else 1]
