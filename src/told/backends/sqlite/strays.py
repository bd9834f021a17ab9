"""What a file holds that nothing in its ledgers speaks for: how it is found, and how a rebuild clears it away.

A vector that was lost or changed comes back from the block it was copied to, where there is one, without a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import apsw

from told.backends.sqlite import vectors
from told.backends.sqlite.apply import MOST
from told.backends.sqlite.connect import run
from told.backends.sqlite.rows import SEQ_MASK, base, json_list, part_span, position, span
from told.backends.sqlite.sql import tables
from told.core.entry import Entry, Erased
from told.core.errors import StoreCorrupt, rebuild_of
from told.core.fact import together
from told.core.ids import text_hash
from told.ports import VIEWS, Ticket, View

REBUILD: Final = "run {}"
REINDEX: Final = "run {}, then `told reindex`"
RESTORE: Final = "restore the last backup"
IRREPLACEABLE: Final = frozenset({"account", "entry", "blob"})
"""The tables whose rows nothing else can stand in for."""

Counts: TypeAlias = dict[int | None, int]
"""How many there are, by account; None for those that are of none."""

COUNTS: Final = {
    "homeless_entries": ("ledger: {} entries are of no account", RESTORE),
    "homeless_blobs": ("blobs: {} are of no account", RESTORE),
    "misplaced_spaces": ("spaces: {} are not in the partition of their name", REBUILD),
    "empty_spaces": ("spaces: {} hold nothing", REBUILD),
    "empty_parts": ("partitions: {} are of no space", REBUILD),
    "stray_facts": ("facts: {} are of no entry that says so", REBUILD),
    "stray_links": ("links: {} are of no entry that says so", REBUILD),
    "stray_evidence": ("evidence: {} rows are of no entry that says so", REBUILD),
    "stray_holdings": ("evidence: {} blobs are held by none", REBUILD),
    "stray_ticks": ("ticks: {} are not where their evidence is", REBUILD),
    "stray_passages": ("passages: {} are of no partition", REBUILD),
    "facts_without_passage": ("passages: {} facts lack theirs", REBUILD),
    "cursors_astray": ("cursors: {} are not within their ledger", REBUILD),
    "models_too_many": ("models: {} more than one are searched", REBUILD),
    "misfit_vectors": ("vectors: {} are not of their model's size", REINDEX),
    "stray_vectors": ("vectors: {} are of no text that is here", REBUILD),
    "lost_vectors": ("vectors: {} are no longer there", REINDEX),
}
"""What must not be there and the way out, by the query that counts it, account by account."""

HOMELESS: Final = ("facts", "links", "evidence", "holdings", "passages", "postings", "blocks", "cursors", "tickets")
"""What is cleared away wherever it is of no account, entry or partition."""


def mistyped(db: apsw.Connection) -> Iterator[str]:
    """The tables with values in them that no row of theirs can have: whoever reads on would stumble over them."""
    for table, counts, _ in _mistyped(db):
        way = RESTORE if table in IRREPLACEABLE else REINDEX if table in ("embedding", "model") else REBUILD
        yield f"{table}: {sum(counts.values())} rows hold what cannot be there; {advice(db, way, counts)}"


def _mistyped(db: apsw.Connection) -> list[tuple[str, Counts, str]]:
    """The tables with rows of other types than they were declared with, how many, and what drops an account's."""
    own = json_list(sorted(tables()))
    counts = [(table, dict(db.execute(count)), drop) for table, count, drop in run(db, "shapes", own).fetchall()]
    return [each for each in counts if each[1]]


def advice(db: apsw.Connection, way: str, accounts: Iterable[int | None]) -> str:
    """A way out as it is typed, which names the accounts that must go it."""
    numbers = json_list([account for account in accounts if isinstance(account, int)])
    return way.format(rebuild_of([name for (name,) in run(db, "account_names", numbers)]))


def strays(db: apsw.Connection) -> Iterator[str]:
    """What is there and should not be, or the other way round."""
    for query, (problem, way) in COUNTS.items():
        if counts := dict(run(db, query)):
            yield f"{problem.format(sum(counts.values()))}; {advice(db, way, counts)}"
    if (part := _miscounted(db)) is not None:
        yield f"ticks: those of partition {part} do not add up; {advice(db, REBUILD, [owner(db, part)])}"
    if tickets := list(_void(db)):
        accounts = dict.fromkeys(account for account, _ in tickets)
        yield f"tickets: {len(tickets)} tell of what is not in the ledger; {advice(db, REBUILD, accounts)}"


def owner(db: apsw.Connection, part: int) -> int | None:
    """The account that a partition is of."""
    found: int | None = run(db, "part_account", part).get
    return found


def _miscounted(db: apsw.Connection) -> int | None:
    """The first partition whose clock does not say what its ticks come to."""
    clocks: dict[int, tuple[int, int]] = {}
    for part, more_turns, more_tokens, *so_far in run(db, "tick_sums"):
        turns, tokens = clocks.get(part, (0, 0))
        clocks[part] = clock = (min(turns + more_turns, MOST), min(tokens + more_tokens, MOST))
        if clock != tuple(so_far):
            return int(part)
    return None


def _void(db: apsw.Connection, only: int | None = None) -> Iterator[tuple[int, str]]:
    """The tickets, by account and key, that cannot be read or that tell of something their ledger does not have."""
    rows = run(db, "all_tickets").fetchall()
    for account, whole, *row in rows if only is None else [row for row in rows if row[0] == only]:
        ticket = Ticket(*row)
        threads = ticket.threads()
        upto = position(account, ticket.seq or SEQ_MASK)
        named = json_list(sorted(threads or ()))
        if threads is None or not whole or run(db, "lacking_threads", named, base(account), upto).get:
            yield account, ticket.key


# Clearing away --------------------------------------------------------------------------------------------------------


def clear(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Drop what nothing speaks for before views of an account are folded again.

    Rows that cannot be read and spaces that are not where they belong go only if every view is folded again.
    """
    if every(views):
        _clear_mistyped(db, account)
        run(db, "drop_misplaced_spaces", account)
        run(db, "drop_empty_parts")
    elif "passages" in views and run(db, "misplaced_spaces").get:
        raise StoreCorrupt("A space is not in the partition of its name.", hint="Rebuild every view: `told rebuild`.")
    if "passages" in views:
        restore(db)
    if "ticks" in views:
        run(db, "drop_homeless_ticks", *span(account))
    for name in HOMELESS:
        run(db, f"drop_homeless_{name}")


def every(views: Sequence[View]) -> bool:
    """Whether all views are among these."""
    return set(views) >= set(VIEWS)


def _clear_mistyped(db: apsw.Connection, account: int) -> None:
    for table, _, drop in _mistyped(db):
        if table in IRREPLACEABLE:
            raise StoreCorrupt(f"The table {table} holds what cannot be there.", hint="Restore the last backup.")
        db.execute(drop, (account,))


def settle(db: apsw.Connection, account: int, views: Sequence[View]) -> None:
    """Once views of an account are folded again, drop what is no longer of anything."""
    if every(views):
        for query in ("drop_empty_spaces", "draw_in_cursors"):
            run(db, query, account)
        for query in ("drop_empty_parts", "search_one_model"):
            run(db, query)
        for _, key in list(_void(db, account)):
            run(db, "drop_ticket", account, key)
    if "passages" in views and not run(db, "facts_without_passage").get:  # another account may want its vectors back
        run(db, "orphan_embeddings")


def bury(db: apsw.Connection, account: int, entries: Sequence[Entry]) -> None:
    """See to it that no older copy brings back what these entries say was erased."""
    for entry in entries:
        for seq in entry.verb.seqs if isinstance(entry.verb, Erased) else ():
            run(db, "bury_empty", position(account, seq))


# Vectors and the blocks they were copied to ---------------------------------------------------------------------------


Changed = tuple[int, int, bytes]
"""A model, a passage, and the code that its block has for it."""


def changed(db: apsw.Connection) -> Iterator[Changed]:
    """The vectors that are not, or no longer, what a sound block was made from."""
    models = {row[0]: vectors.Model(*row[:3]) for row in run(db, "models")}
    for id_, part, number, made_in, builder, digest, codes, epoch in run(db, "all_blocks"):
        model = models.get(id_)
        if model is None or not vectors.sound(model, part, epoch, (number, made_in, builder, digest, codes)):
            continue
        lo, _ = part_span(part, number * vectors.BLOCK)
        cached = dict(run(db, "part_codes", id_, lo, lo + vectors.BLOCK).fetchall())
        for place in range(vectors.BLOCK):
            code = codes[place * model.dim : (place + 1) * model.dim]
            if cached.get(number * vectors.BLOCK + place) != code:
                yield id_, lo + place, code


def restore(db: apsw.Connection) -> int:
    """Put vectors back as their blocks have them, unless the passage is not what it was either; return how many."""
    mended = 0
    for model, passage, code in list(changed(db)):
        digest, earlier, text = run(db, "said_at", passage).fetchone() or (None, None, "")
        if isinstance(text, str) and digest == text_hash(together(earlier, text)):
            run(db, "mend_vector", model, digest, code)
            mended += 1
    return mended
