"""Convert file rows to values and back, compute row ids, and look up scopes and view rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import apsw

from told.backends.sqlite.connection import add_condition, run_query
from told.errors import StoreCorrupt, ToldError
from told.ids import canonical_json
from told.model.entry import Entry, decode_envelope
from told.model.fact import EvidenceRow, Fact, Link, Passage, Tick
from told.model.scope import Scope
from told.ports import ScopeTally, StoredTurn, ViewRow

SEQ_BITS: Final = 40
SEQ_MASK: Final = (1 << SEQ_BITS) - 1
PART_BITS: Final = 32
PART_MASK: Final = (1 << PART_BITS) - 1
FACT_COLUMNS: Final = (
    "kind",
    "created_at",
    "updated_at",
    "valid_from",
    "valid_to",
    "precision",
    "expires",
    "said_at",
    "role",
    "actor",
    "author",
    "evidence",
    "source",
    "subject",
    "predicate",
    "object",
    "polarity",
    "modality",
    "confidence",
    "after",
)
_get_fact_columns = attrgetter(*FACT_COLUMNS)


def get_id_base(account: int) -> int:
    """Return the id just before an account's first."""
    return account << SEQ_BITS


def get_id_range(account: int) -> tuple[int, int]:
    """Return the open id range of an account."""
    return account << SEQ_BITS, (account + 1) << SEQ_BITS


def make_entry_id(account: int, seq: int) -> int:
    """Return the row id of a ledger position, clamped to the account's range."""
    return account << SEQ_BITS | (seq if 0 <= seq <= SEQ_MASK else min(max(seq, 0), SEQ_MASK))


def get_passage_id_range(part: int, first: int = 0) -> tuple[int, int]:
    """Return the half-open id range of a partition's passages from an ordinal on."""
    return (part << PART_BITS) + first, (part + 1) << PART_BITS


def to_json_list(values: Sequence[Any]) -> str:
    """Encode values for `json_each`."""
    return json.dumps(list(values))


def to_int_list(values: list[int]) -> str:
    """Encode integers for `json_each`."""
    return str(values)


def to_hex_list(values: Sequence[bytes]) -> str:
    """Encode blobs for `unhex(json_each)`."""
    return json.dumps([value.hex() for value in values])


def format_meta(meta: Mapping[str, Any]) -> str:
    """Serialise metadata canonically, so that grown, rebuilt and imported rows are equal."""
    return canonical_json(meta).decode() if meta else "{}"


def to_fact_row(fact: Fact, id_: int, space: int) -> list[Any]:
    """Build a fact row without its passage range."""
    return [
        id_,
        fact.id,
        fact.tx,
        space,
        fact.until,
        fact.gone,
        fact.text,
        fact.md5,
        *_get_fact_columns(fact),
        format_meta(fact.meta),
        None,
        None,
    ]


def format_spoken_text(fact: Fact) -> str:
    """Return the text of a fact's only passage, with its speaker, as the view `spoken` does."""
    speaker = fact.actor or fact.role
    return f"{speaker}: {fact.text}" if speaker else fact.text


def parse_fact(row: tuple[Any, ...], scope: Scope) -> Fact:
    """Build a fact from its row."""
    id_, thread, tx, _, until, gone, text, md5, kind, *rest, meta, _first, _last = row
    rest.append(_parse_meta(meta))
    return Fact(thread, id_ & SEQ_MASK, tx, scope, text, md5, kind, until, gone, *rest)


def parse_link(row: tuple[Any, ...], scope: Scope) -> Link:
    """Build a link from its row."""
    id_, src, rel, dst, _, weight, until, meta = row
    return Link(id_ & SEQ_MASK, src, rel, dst, scope, weight, until, _parse_meta(meta))


def _parse_meta(text: str) -> dict[str, Any]:
    """Parse stored metadata."""
    if text == "{}":
        return {}
    try:
        meta = json.loads(text)
    except (ValueError, TypeError):
        meta = None
    if not isinstance(meta, dict):
        raise StoreCorrupt("The metadata of a row is damaged.", hint="Run `told rebuild`.")
    return meta


def parse_entry(row: tuple[Any, ...], account: str) -> Entry:
    """Build an entry from its row; unreadable content is left for `verify` to report."""
    id_, tx, at, sort, thread, digest, hash_, salt, envelope = row
    try:
        draft = None if envelope is None else decode_envelope(sort, account, envelope)
    except ToldError:
        draft = None
    return Entry(id_ & SEQ_MASK, tx, at, sort, thread, digest, hash_, salt, envelope, draft)


class ScopeLookup:
    """A cache of space-to-scope lookups for one read."""

    def __init__(self, db: apsw.Connection, account: str) -> None:
        self._db = db
        self._account = account
        self._scopes: dict[int, Scope] = {}

    def __getitem__(self, space: int) -> Scope:
        scope = self._scopes.get(space)
        if scope is None:
            ids = run_query(self._db, "space_ids", space).fetchone()
            if ids is None:
                raise StoreCorrupt(
                    "A row names a scope that does not exist.", hint="Run `told rebuild`."
                )
            scope = self._scopes[space] = Scope(self._account, *ids)
        return scope

    def parse_facts(self, rows: Sequence[tuple[Any, ...]]) -> list[Fact]:
        """Build facts from rows."""
        return [parse_fact(row, self[row[3]]) for row in rows]


def find_visible_spaces(db: apsw.Connection, account: int, scope: Scope) -> dict[int, int]:
    """Return the spaces that a scope can read, with their partitions."""
    if scope.user_id is not None:
        name = "spaces_by_user"
    else:
        name = "spaces_by_run" if scope.agent_id is None else "spaces_by_agent"
    rows = run_query(db, name, account, scope.user_id, scope.agent_id, scope.run_id)
    return dict(rows.fetchall())


def find_space(db: apsw.Connection, account: int, scope: Scope) -> tuple[int, int] | None:
    """Return the space and partition of exactly this scope, if it exists."""
    row = run_query(db, "space", account, scope.user_id, scope.agent_id, scope.run_id).fetchone()
    return None if row is None else (row[0], row[1])


RowTuple = tuple[Any, ...]


def load_view_rows(
    db: apsw.Connection, account: int, name: str, after: int, upto: int
) -> list[ViewRow]:
    """Load the view rows of a range of entries."""
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
    "folded_facts": parse_fact,
    "folded_links": parse_link,
    "folded_evidence": _parse_evidence,
    "folded_passages": _parse_passage,
    "folded_ticks": _parse_tick,
}


def list_scopes(db: apsw.Connection, account_id: int, account: str) -> Sequence[Scope]:
    """List every exact scope that still has rows."""
    scopes_found = [Scope(account, *ids) for ids in run_query(db, "scopes", account_id)]
    return sorted(scopes_found, key=lambda scope: sorted(scope.ids().items()))


def count_by_scope(db: apsw.Connection, account_id: int, account: str) -> Sequence[ScopeTally]:
    """Count the memories of every exact scope, in the same order."""
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
    """List the turns of exactly this scope between two positions."""
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
