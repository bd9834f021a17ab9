"""A conversation as the file tells it: whose there are, and their turns a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from told.backends.sqlite.connect import run_query
from told.backends.sqlite.rows import SEQ_MASK, ScopeLookup, find_space, get_id_range, make_entry_id
from told.backends.sqlite.sql import add_condition
from told.core.scope import Scope
from told.ports import ScopeTally, StoredTurn


def list_scopes(db: apsw.Connection, account_id: int, account: str) -> Sequence[Scope]:
    """Every exact scope that something is left of."""
    scopes_found = [Scope(account, *ids) for ids in run_query(db, "scopes", account_id)]
    return sorted(scopes_found, key=lambda scope: sorted(scope.ids().items()))


def count_by_scope(db: apsw.Connection, account_id: int, account: str) -> Sequence[ScopeTally]:
    """How much is in every exact scope, in the same order."""
    rows = run_query(db, "tallies", account_id, *get_id_range(account_id)).fetchall()
    counts = [ScopeTally(Scope(account, *row[:3]), *row[3:]) for row in rows]
    return sorted(counts, key=lambda tally: sorted(tally.scope.ids().items()))


def list_turns(
    db: apsw.Connection,
    account_id: int,
    scope: Scope,
    after: int,
    before: int,
    limit: int,
    *,
    newest: bool,
) -> Sequence[StoredTurn]:
    """The turns of exactly this scope between two positions."""
    space = find_space(db, account_id, scope)
    if space is None:
        return []
    query = add_condition("turns", "", f"ORDER BY o.id {'DESC' if newest else 'ASC'} LIMIT ?6")
    params = (
        space[0],
        make_entry_id(account_id, after),
        make_entry_id(account_id, before),
        *get_id_range(account_id),
        limit,
    )
    rows: list[Any] = db.execute(query, params).fetchall()
    positions = [position & SEQ_MASK for position, *_ in rows]
    stored_turns = map(
        StoredTurn,
        positions,
        ScopeLookup(db, scope.account).parse_facts([tuple(row) for _, *row in rows]),
    )
    return list(stored_turns)[:: -1 if newest else 1]
