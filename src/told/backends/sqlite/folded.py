"""The rows of every view as values, by the entries they are of, for whoever compares them with the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import apsw

from told.backends.sqlite.connect import run_query
from told.backends.sqlite.rows import SEQ_MASK, make_entry_id, parse_fact, parse_link
from told.core.fact import EvidenceRow, Passage, Tick
from told.core.scope import Scope
from told.ports import ViewRow

RowTuple = tuple[Any, ...]


def load_view_rows(
    db: apsw.Connection, account: int, name: str, after: int, upto: int
) -> list[ViewRow]:
    """The rows the views have of the entries from just after a position up to another."""
    id_bounds = make_entry_id(account, after), make_entry_id(account, upto)
    scopes: dict[RowTuple, Scope] = {}
    parsed: list[ViewRow] = []
    for query, parse in ROW_PARSERS.items():
        for row in run_query(db, query, *id_bounds):
            ids = row[:3]
            scope = scopes.get(ids) or scopes.setdefault(ids, Scope(name, *ids))
            parsed.append(parse(row[3:], scope))
    return parsed


def _parse_evidence(row: RowTuple, scope: Scope) -> EvidenceRow:
    id_, name, digest, source, blob_hashes = row
    return EvidenceRow(name, id_ & SEQ_MASK, scope, digest, source, tuple(json.loads(blob_hashes)))


def _parse_passage(row: RowTuple, scope: Scope) -> Passage:
    fact, text, slot, after, until, expires = row
    return Passage(fact & SEQ_MASK, scope, text, slot, None, after, until, expires)


def _parse_tick(row: RowTuple, scope: Scope) -> Tick:
    id_, at, turns, tokens = row
    return Tick(id_ & SEQ_MASK, scope, at, turns, tokens)


ROW_PARSERS: Final[dict[str, Callable[[RowTuple, Scope], ViewRow]]] = {
    "folded_facts": parse_fact, "folded_links": parse_link, "folded_evidence": _parse_evidence, "folded_passages": _parse_passage,
    "folded_ticks": _parse_tick,
}  # fmt: skip
