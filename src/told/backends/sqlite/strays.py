"""What a file holds that nothing in its ledgers speaks for: how it is found, and how a rebuild clears it away.

A vector that was lost or changed comes back from the block it was copied to, where there is one, without a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import MAX_INT64
from told.backends.sqlite.connect import run_query
from told.backends.sqlite.rows import (
    SEQ_MASK,
    get_id_base,
    get_id_range,
    get_passage_id_range,
    make_entry_id,
    to_json_list,
)
from told.backends.sqlite.sql import list_own_tables
from told.core.entry import Entry, Erased
from told.core.errors import StoreCorrupt, format_rebuild_command
from told.core.fact import join_with_previous
from told.core.ids import hash_text
from told.ports import VIEWS, IdempotencyRecord, View

REBUILD_HINT: Final = "run {}"
REINDEX_HINT: Final = "run {}, then `told reindex`"
RESTORE_HINT: Final = "restore the last backup"
IRREPLACEABLE_TABLES: Final = frozenset({"account", "entry", "blob"})
"""The tables whose rows nothing else can stand in for."""

CountsByAccount: TypeAlias = dict[int | None, int]
"""How many there are, by account; None for those that are of none."""

ORPHAN_CHECKS: Final = {
    "homeless_entries": ("ledger: {} entries are of no account", RESTORE_HINT),
    "homeless_blobs": ("blobs: {} are of no account", RESTORE_HINT),
    "misplaced_spaces": ("spaces: {} are not in the partition of their name", REBUILD_HINT),
    "empty_spaces": ("spaces: {} hold nothing", REBUILD_HINT),
    "empty_parts": ("partitions: {} are of no space", REBUILD_HINT),
    "stray_facts": ("facts: {} are of no entry that says so", REBUILD_HINT),
    "stray_links": ("links: {} are of no entry that says so", REBUILD_HINT),
    "stray_evidence": ("evidence: {} rows are of no entry that says so", REBUILD_HINT),
    "stray_holdings": ("evidence: {} blobs are held by none", REBUILD_HINT),
    "stray_ticks": ("ticks: {} are not where their evidence is", REBUILD_HINT),
    "stray_passages": ("passages: {} are of no partition", REBUILD_HINT),
    "facts_without_passage": ("passages: {} facts lack theirs", REBUILD_HINT),
    "cursors_astray": ("cursors: {} are not within their ledger", REBUILD_HINT),
    "models_too_many": ("models: {} more than one are searched", REBUILD_HINT),
    "misfit_vectors": ("vectors: {} are not of their model's size", REINDEX_HINT),
    "stray_vectors": ("vectors: {} are of no text that is here", REBUILD_HINT),
    "lost_vectors": ("vectors: {} are no longer there", REINDEX_HINT),
}
"""What must not be there and the way out, by the query that counts it, account by account."""

ORPHAN_SORTS: Final = (
    "facts",
    "links",
    "evidence",
    "holdings",
    "passages",
    "postings",
    "blocks",
    "cursors",
    "tickets",
)
"""What is cleared away wherever it is of no account, entry or partition."""


def find_type_errors(db: apsw.Connection) -> Iterator[str]:
    """The tables with values in them that no row of theirs can have: whoever reads on would stumble over them."""
    for table, counts, _ in _count_type_errors(db):
        hint = (
            RESTORE_HINT
            if table in IRREPLACEABLE_TABLES
            else REINDEX_HINT
            if table in ("embedding", "model")
            else REBUILD_HINT
        )
        yield f"{table}: {sum(counts.values())} rows hold what cannot be there; {format_advice(db, hint, counts)}"


def _count_type_errors(db: apsw.Connection) -> list[tuple[str, CountsByAccount, str]]:
    """The tables with rows of other types than they were declared with, how many, and what drops an account's."""
    own_tables = to_json_list(sorted(list_own_tables()))
    counts = [
        (table, dict(db.execute(count)), drop)
        for table, count, drop in run_query(db, "shapes", own_tables).fetchall()
    ]
    return [table_counts for table_counts in counts if table_counts[1]]


def format_advice(db: apsw.Connection, hint: str, accounts: Iterable[int | None]) -> str:
    """A way out as it is typed, which names the accounts that must go it."""
    numbers = to_json_list([account for account in accounts if isinstance(account, int)])
    return hint.format(
        format_rebuild_command([name for (name,) in run_query(db, "account_names", numbers)])
    )


def find_orphans(db: apsw.Connection) -> Iterator[str]:
    """What is there and should not be, or the other way round."""
    for query, (problem, hint) in ORPHAN_CHECKS.items():
        if counts := dict(run_query(db, query)):
            yield f"{problem.format(sum(counts.values()))}; {format_advice(db, hint, counts)}"
    if (part := _find_tick_mismatch(db)) is not None:
        yield f"ticks: those of partition {part} do not add up; {format_advice(db, REBUILD_HINT, [get_partition_account(db, part)])}"
    if tickets := list(_find_invalid_tickets(db)):
        accounts = dict.fromkeys(account for account, _ in tickets)
        yield f"tickets: {len(tickets)} tell of what is not in the ledger; {format_advice(db, REBUILD_HINT, accounts)}"


def get_partition_account(db: apsw.Connection, part: int) -> int | None:
    """The account that a partition is of."""
    account: int | None = run_query(db, "part_account", part).get
    return account


def _find_tick_mismatch(db: apsw.Connection) -> int | None:
    """The first partition whose clock does not say what its ticks come to."""
    totals_by_part: dict[int, tuple[int, int]] = {}
    for part, more_turns, more_tokens, *stored_totals in run_query(db, "tick_sums"):
        turns, tokens = totals_by_part.get(part, (0, 0))
        totals_by_part[part] = totals = (
            min(turns + more_turns, MAX_INT64),
            min(tokens + more_tokens, MAX_INT64),
        )
        if totals != tuple(stored_totals):
            return int(part)
    return None


def _find_invalid_tickets(
    db: apsw.Connection, only_account: int | None = None
) -> Iterator[tuple[int, str]]:
    """The tickets, by account and key, that cannot be read or that tell of something their ledger does not have."""
    rows = run_query(db, "all_tickets").fetchall()
    for account, is_complete, *row in (
        rows if only_account is None else [row for row in rows if row[0] == only_account]
    ):
        ticket = IdempotencyRecord(*row)
        threads = ticket.thread_ids()
        last_id = make_entry_id(account, ticket.seq or SEQ_MASK)
        threads_json = to_json_list(sorted(threads or ()))
        if (
            threads is None
            or not is_complete
            or run_query(db, "lacking_threads", threads_json, get_id_base(account), last_id).get
        ):
            yield account, ticket.key


# Clearing away --------------------------------------------------------------------------------------------------------


def drop_orphans(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Drop what nothing speaks for before views of an account are folded again.

    Rows that cannot be read and spaces that are not where they belong go only if every view is folded again.
    """
    if has_all_views(views):
        _drop_type_errors(db, account)
        run_query(db, "drop_misplaced_spaces", account)
        run_query(db, "drop_empty_parts")
    elif "passages" in views and run_query(db, "misplaced_spaces").get:
        raise StoreCorrupt(
            "A space is not in the partition of its name.",
            hint="Rebuild every view: `told rebuild`.",
        )
    if "passages" in views:
        restore_vectors(db)
    if "ticks" in views:
        run_query(db, "drop_homeless_ticks", *get_id_range(account))
    for name in ORPHAN_SORTS:
        run_query(db, f"drop_homeless_{name}")


def has_all_views(views: Sequence[View]) -> bool:
    """Whether all views are among these."""
    return set(views) >= set(VIEWS)


def _drop_type_errors(db: apsw.Connection, account: int) -> None:
    for table, _, drop in _count_type_errors(db):
        if table in IRREPLACEABLE_TABLES:
            raise StoreCorrupt(
                f"The table {table} holds what cannot be there.", hint="Restore the last backup."
            )
        db.execute(drop, (account,))


def drop_leftovers(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Once views of an account are folded again, drop what is no longer of anything."""
    if has_all_views(views):
        for query in ("drop_empty_spaces", "draw_in_cursors"):
            run_query(db, query, account)
        for query in ("drop_empty_parts", "search_one_model"):
            run_query(db, query)
        for _, key in list(_find_invalid_tickets(db, account)):
            run_query(db, "drop_ticket", account, key)
    if (
        "passages" in views and not run_query(db, "facts_without_passage").get
    ):  # another account may want its vectors back
        run_query(db, "orphan_embeddings")


def bury_erased(db: apsw.Connection, account: int, entries: Sequence[Entry]) -> None:
    """See to it that no older copy brings back what these entries say was erased."""
    for entry in entries:
        for seq in entry.verb.seqs if isinstance(entry.verb, Erased) else ():
            run_query(db, "bury_empty", make_entry_id(account, seq))


# Vectors and the blocks they were copied to ---------------------------------------------------------------------------


ChangedVector = tuple[int, int, bytes]
"""A model, a passage, and the code that its block has for it."""


def find_changed_vectors(db: apsw.Connection) -> Iterator[ChangedVector]:
    """The vectors that are not, or no longer, what a sound block was made from."""
    models = {row[0]: vectors.StoredModel(*row[:3]) for row in run_query(db, "models")}
    for id_, part, number, made_in, builder, digest, codes, epoch in run_query(db, "all_blocks"):
        model = models.get(id_)
        if model is None or not vectors.is_valid_block(
            model, part, epoch, (number, made_in, builder, digest, codes)
        ):
            continue
        lo, _ = get_passage_id_range(part, number * vectors.BLOCK_SIZE)
        cached = dict(run_query(db, "part_codes", id_, lo, lo + vectors.BLOCK_SIZE).fetchall())
        for offset in range(vectors.BLOCK_SIZE):
            code = codes[offset * model.dim : (offset + 1) * model.dim]
            if cached.get(number * vectors.BLOCK_SIZE + offset) != code:
                yield id_, lo + offset, code


def restore_vectors(db: apsw.Connection) -> int:
    """Put vectors back as their blocks have them, unless the passage is not what it was either; return how many."""
    restored = 0
    for model, passage, code in list(find_changed_vectors(db)):
        digest, previous_text, text = run_query(db, "said_at", passage).fetchone() or (
            None,
            None,
            "",
        )
        if isinstance(text, str) and digest == hash_text(join_with_previous(previous_text, text)):
            run_query(db, "mend_vector", model, digest, code)
            restored += 1
    return restored
