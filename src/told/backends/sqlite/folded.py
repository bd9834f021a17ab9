"""The rows of every view as values, by the entries they are of, for whoever compares them with the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import apsw

from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import SEQ_MASK, fact_of, link_of, position
from told.core.fact import Passage, Tick, Witness
from told.core.scope import Scope
from told.ports import Row

Cells = tuple[Any, ...]


def folded(db: apsw.Connection, account: int, name: str, after: int, upto: int) -> list[Row]:
    """The rows the views have of the entries from just after a position up to another."""
    between = position(account, after), position(account, upto)
    scopes: dict[Cells, Scope] = {}
    found: list[Row] = []
    for query, read in READERS.items():
        for row in run(db, query, *between):
            ids = row[:3]
            scope = scopes.get(ids) or scopes.setdefault(ids, Scope(name, *ids))
            found.append(read(row[3:], scope))
    return found


def _witness(row: Cells, scope: Scope) -> Witness:
    id_, name, digest, source, held = row
    return Witness(name, id_ & SEQ_MASK, scope, digest, source, tuple(json.loads(held)))


def _passage(row: Cells, scope: Scope) -> Passage:
    fact, text, slot, after, until, expires = row
    return Passage(fact & SEQ_MASK, scope, text, slot, None, after, until, expires)


def _tick(row: Cells, scope: Scope) -> Tick:
    id_, at, turns, tokens = row
    return Tick(id_ & SEQ_MASK, scope, at, turns, tokens)


READERS: Final[dict[str, Callable[[Cells, Scope], Row]]] = {
    "folded_facts": fact_of, "folded_links": link_of, "folded_evidence": _witness, "folded_passages": _passage,
    "folded_ticks": _tick,
}  # fmt: skip
