"""What happens inside a write transaction: sealing, adopting, erasing, rebuilding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final, assert_never

import apsw

from told.backends.sqlite import beside, blobs, shred, strays, vectors
from told.backends.sqlite.apply import Grower
from told.backends.sqlite.connect import run, run_rows
from told.backends.sqlite.growth import Growth
from told.backends.sqlite.memo import Account, Memo
from told.backends.sqlite.rows import (
    Scopes,
    entry_of,
    fact_of,
    hex_list,
    int_list,
    json_list,
    part_span,
    position,
    space_of,
    span,
)
from told.core.entry import GENESIS, Draft, Entry, Erased, decode, follows, seal, thread_of
from told.core.errors import Conflict, Diverged, StoreCorrupt
from told.core.fact import NEVER, Fact
from told.core.ids import Mint, sha256
from told.core.scope import Scope
from told.ports import (
    Batch,
    Fold,
    Guard,
    Intact,
    Known,
    NoEvidence,
    NoFact,
    NoMore,
    NoNews,
    Step,
    Still,
    ThreadAt,
    Ticket,
    View,
)

PAGE = 1000
NOTHING: Final = ((None, None, None),)
RANGES: Final[Mapping[View, Sequence[str]]] = {
    "evidence": ("range_evidence", "range_holding"), "facts": ("range_fact",), "links": ("range_link",),
}  # fmt: skip
"""What empties each view but the passages and the ticks."""


def account_of(db: apsw.Connection, name: str) -> Account:
    """The account of a name, made at its first use."""
    row = run(db, "account", name).fetchone()
    if row is None:
        run(db, "add_account", name, GENESIS)
        row = run(db, "account", name).fetchone()
    id_, seq, at, hash_ = row
    return Account(id_, name, seq, at, hash_, since=seq)


def known(
    db: apsw.Connection, scope: Scope, md5s: Sequence[str], digests: Sequence[bytes], key: str | None,
    hashes: Sequence[bytes], *, last: bool,
) -> Known:  # fmt: skip
    """What exactly this scope already holds of texts and evidence, a key's ticket, vectors, the last turn, the model.

    The head is that of the first look, so whatever a later look finds is either of that head or caught by a guard.
    """
    seen, ticket, home, model = None, None, None, None
    evidence: dict[bytes, str] = {}
    vectors: set[bytes] = set()
    held: list[int] = []
    whose = (key, scope.user_id, scope.agent_id, scope.run_id, scope.account)
    count, found = max(map(len, (md5s, digests, hashes))), list[Any]()
    with suppress(UnicodeEncodeError):  # what is not even text is not known
        marks = zip_longest(md5s, digests, hashes) if count else NOTHING
        found = run_rows(db, "known", marks, count or 1, *whose)
    for row in found:
        if seen is None:
            seen, home, ticket = row[0], row[1], None if row[2] is None else Ticket(*row[2:6])
            model = None if row[6] is None else (row[6], row[7])
        if row[8] is not None:
            evidence[row[8]] = row[9]
        if row[10] is not None:
            vectors.add(row[10])
        if row[11] is not None:
            held.append(row[11])
    rows = sorted(run(db, "versions", json_list(held))) if held else ()
    facts = {fact.md5: fact for fact in (fact_of(row, scope) for row in rows)}
    turn = _last(db, scope, home) if last and home is not None else None
    return Known(seen or 0, facts, evidence, ticket, turn, frozenset(vectors), model)


def held(
    db: apsw.Connection, scope: Scope, now: int, about: Sequence[tuple[str, str]], kinds: Sequence[str]
) -> list[Fact]:
    """What exactly this scope holds of some subjects or kinds, in ledger order."""
    account = run(db, "account", scope.account).fetchone()
    space = None if account is None else space_of(db, account[0], scope)
    if space is None:
        return []
    asked = (("held_about", about), ("held_kinds", kinds))
    rows = [row for name, wanted in asked if wanted for row in run(db, name, space[0], json_list(wanted), now)]
    return [fact_of(row, scope) for row in sorted({row[0]: row for row in rows}.values())]


def _last(db: apsw.Connection, scope: Scope, part: int) -> Fact | None:
    """The turn last written to a partition, if it is of this scope, held and unchanged."""
    id_ = run(db, "last_of_part", *part_span(part)).get
    rows = () if id_ is None else run(db, "versions", json_list([id_])).fetchall()
    for fact in Scopes(db, scope.account).facts(rows):
        if fact.scope == scope and fact.until == NEVER and fact.created_at == fact.updated_at:
            return fact
    return None


def versions(db: apsw.Connection, memo: Memo, account: str, seqs: Sequence[int]) -> Mapping[int, Fact]:
    """The fact versions asserted by these entries, oldest first; what was noted of them is not read again."""
    found = {seq: fact for seq in seqs if (fact := memo.facts.get((account, seq))) is not None}
    if len(found) == len(seqs):
        return found
    rows = run(db, "versions_of", account, int_list([seq for seq in seqs if seq not in found])).fetchall()
    scopes = {ids: Scope(account, *ids) for ids in {row[:3] for row in rows}}
    read = [fact_of(row[3:], scopes[row[:3]]) for row in rows]
    memo.keep(account, read, rows)
    return dict(sorted({**found, **{fact.seq: fact for fact in read}}.items()))


def current(db: apsw.Connection, memo: Memo) -> vectors.Model | None:
    """The model searches use."""
    (model,) = memo.model = memo.model or (vectors.current(db),)
    return model


def commit(db: apsw.Connection, memo: Memo, growth: Growth, mint: Mint, batch: Batch, fold: Fold) -> list[Entry]:
    """Seal a batch at the end of its account's chain; it grows into the views with those it is committed with."""
    account = memo.accounts.get(batch.account) or account_of(db, batch.account)
    if batch.ticket is not None and run(db, "ticket", account.id, batch.ticket.key).fetchone():
        raise Conflict()
    guards = [guard for guard in batch.guards if not memo.vouches(account, guard, batch.seen)]
    if growth.bears_on(guards) or _broken(db, memo, account.id, guards):
        growth.settle(db)
        if _broken(db, memo, account.id, guards):
            raise Conflict()
    model = current(db, memo)
    fresh = batch.vectors if model is not None and batch.model in (None, model.name) else {}
    if model is not None:
        model.check_all(fresh)
    if batch.step is not None:
        growth.settle(db)
        _take(db, account.id, batch.step)
        beside.note(db, account.id, batch.step.consumer, batch.notes)
    known = memo.spaces, memo.rows, memo.clocks, memo.facts
    grower = growth.of(account, lambda: Grower(db, account.id, account.name, model, {}, *known))
    grower.fresh = fresh
    entries = _sealed(mint, account, batch.drafts)
    memo.note(account, batch.drafts)
    grower.entries += [_row(account.id, entry) for entry in entries]
    grower.gather(fold(entries))
    if batch.blobs:
        blobs.put(db, account.id, batch.blobs)
    if batch.ticket is not None:
        ticket = batch.ticket
        run(db, "add_ticket", account.id, ticket.key, ticket.digest, ticket.outcome, account.seq if entries else 0)
    memo.accounts[batch.account] = account
    return entries


def _take(db: apsw.Connection, account: int, step: Step) -> None:
    """Move a consumer's cursor, or raise `Conflict` if somebody else has moved it."""
    if (run(db, "cursor", account, step.consumer).get or 0) != step.before:
        raise Conflict()
    run(db, "advance", account, step.consumer, step.after)


def _sealed(mint: Mint, account: Account, drafts: Sequence[Draft]) -> list[Entry]:
    """Number and seal drafts; they share one transaction number and one instant later than any before."""
    if not drafts:
        return []
    at, last, entries = max(mint.now(), account.at + 1), account.hash, list[Entry]()
    for seq, draft in enumerate(drafts, account.seq + 1):
        entry = seal(draft, prev=last, seq=seq, tx=account.seq + 1, at=at, salt=mint.salt())
        last = entry.hash
        entries.append(entry)
    account.seq, account.at, account.hash = account.seq + len(entries), at, last
    return entries


def _appended(db: apsw.Connection, mint: Mint, account: Account, draft: Draft) -> Entry:
    """Seal a draft at the end of the chain and move the head over it."""
    (entry,) = _sealed(mint, account, [draft])
    run(db, "add_entry", *_row(account.id, entry))
    run(db, "move_head", account.seq, account.at, account.hash, account.id)
    return entry


def _row(account: int, entry: Entry) -> tuple[Any, ...]:
    return (
        position(account, entry.seq), entry.tx, entry.at, entry.sort, entry.thread, entry.digest, entry.hash,
        entry.salt, entry.envelope,
    )  # fmt: skip


def _broken(db: apsw.Connection, memo: Memo, account: int, guards: Sequence[Guard]) -> bool:
    """Whether something the writer saw holds no more."""
    return any(_breaks(db, memo, account, guard) for guard in guards)


def _breaks(db: apsw.Connection, memo: Memo, account: int, guard: Guard) -> bool:
    match guard:
        case ThreadAt(thread=thread, seq=seq):
            lo, hi = span(account)
            latest = run(db, "held", thread, hi, lo).fetchone()
            return bool(latest != (None if seq is None else (position(account, seq), thread)))
        case NoFact(scope=scope, md5s=md5s):
            space = memo.spaces.get(scope) or space_of(db, account, scope)
            return space is not None and any(run(db, "text_held", space[0], md5).get for md5 in md5s)
        case NoEvidence(scope=scope, digests=digests):
            space = memo.spaces.get(scope) or space_of(db, account, scope)
            return space is not None and any(run(db, "evidence_held", space[0], each).get for each in digests)
        case NoNews(scope=scope, subject=subject, predicates=predicates, seq=seq):
            space = memo.spaces.get(scope) or space_of(db, account, scope)
            since = subject, json_list(predicates), position(account, seq)
            return space is not None and run(db, "news", space[0], *since).get is not None
        case NoMore(scope=scope, kind=kind, seq=seq):
            space = memo.spaces.get(scope) or space_of(db, account, scope)
            return space is not None and run(db, "more", space[0], kind, position(account, seq)).get is not None
        case Still(thread=thread, seq=seq):
            _, end = span(account)
            return run(db, "stirred", thread, position(account, seq), end).get is not None
        case Intact(seq=seq):
            return run(db, "intact", position(account, seq)).get is None
        case _:
            assert_never(guard)


def adopt(db: apsw.Connection, name: str, entries: Sequence[Entry], fold: Fold) -> tuple[int, int]:
    """Append entries that continue the chain; what was erased here stays erased, and what was erased there goes.

    An entry without content is a hole until a tombstone of the chain, on this page or a later one, says that it was
    erased: only the tombstone buries its digest, so whoever cuts content out of an export is found by `verify`.
    Returns how many entries were new, and how many were shredded.
    """
    account = account_of(db, name)
    gone = frozenset(digest for (digest,) in run(db, "tombstoned", hex_list([e.digest for e in entries])))
    fresh: list[Entry] = []
    for entry in entries:
        if entry.seq <= account.seq:
            if run(db, "entry_hash", position(account.id, entry.seq)).get != entry.hash:
                raise Diverged(f"Entry {entry.seq} of the import is not the entry {entry.seq} of this account.")
            continue
        _continue(account, entry)
        kept = _read(entry, name) if entry.digest not in gone else _emptied(entry)
        run(db, "add_entry", *_row(account.id, kept))
        fresh.append(kept)
    Grower(db, account.id, account.name, vectors.current(db)).grow(fold(fresh))
    run(db, "move_head", account.seq, account.at, account.hash, account.id)
    erased = sorted(
        {seq for entry in fresh if isinstance(entry.verb, Erased) for seq in entry.verb.seqs if 0 < seq < entry.seq}
    )
    if erased:
        shred.shred(db, account.id, erased)
        run(db, "owe_scrub")
    return len(fresh), len(erased)


def _continue(account: Account, entry: Entry) -> None:
    """Move an account's head over an entry, or say why it does not fit."""
    if entry.seq != account.seq + 1 or not follows(account.hash, entry):
        raise StoreCorrupt(f"Entry {entry.seq} does not follow from the entry before it.", hint="Export it again.")
    if entry.envelope is not None and sha256(entry.salt or b"", entry.envelope) != entry.digest:
        raise StoreCorrupt(f"The content of entry {entry.seq} is not what was written.", hint="Export it again.")
    account.seq, account.at, account.hash = entry.seq, entry.at, entry.hash


def _read(entry: Entry, account: str) -> Entry:
    """The entry as this account reads it: its envelope says what it says, and the account is the one it comes to."""
    if entry.envelope is None:
        return _emptied(entry)
    draft = decode(entry.sort, account, entry.envelope)
    if thread_of(draft.verb) != entry.thread:
        raise StoreCorrupt(f"Entry {entry.seq} is not of the thread it names.", hint="Export it again.")
    return replace(entry, draft=draft)


def _emptied(entry: Entry) -> Entry:
    return replace(entry, salt=None, envelope=None, draft=None)


def erase(
    db: apsw.Connection, mint: Mint, name: str, seqs: Sequence[int], draft: Draft
) -> tuple[Entry, Mapping[str, int]]:
    """Destroy the content of entries and append the tombstone that says so."""
    account = account_of(db, name)
    counts = shred.shred(db, account.id, seqs)
    run(db, "owe_scrub")
    return _appended(db, mint, account, draft), counts


def reset(db: apsw.Connection, mint: Mint, name: str, draft: Draft) -> Entry:
    """Begin an account's chain anew."""
    account = account_of(db, name)
    shred.wipe(db, account.id)
    run(db, "owe_scrub")
    account.seq, account.at, account.hash = 0, 0, GENESIS
    return _appended(db, mint, account, draft)


def rebuild(db: apsw.Connection, name: str, views: Sequence[View], fold: Fold) -> dict[str, int]:
    """Drop views and fold them again, page by page of the ledger; with the passages goes what is damaged near them."""
    account = account_of(db, name)
    lo, hi = span(account.id)
    strays.clear(db, account.id, views)
    for view, queries in RANGES.items():
        for query in queries if view in views else ():
            run(db, query, lo - 1, hi)
    if "passages" in views:
        for (part,) in run(db, "parts_of_account", account.id).fetchall():
            shred.empty_part(db, part)
        vectors.drop_misfits(db)
    grower = Grower(db, account.id, account.name, vectors.current(db))
    after = lo
    while rows := run(db, "scan", after, hi, PAGE).fetchall():
        entries = [entry_of(row, name) for row in rows]
        grower.grow(fold(entries))
        strays.bury(db, account.id, entries)
        after = rows[-1][0]
    if "facts" in views and "passages" not in views:
        run(db, "place_facts", lo, hi)
    strays.settle(db, account.id, views)
    run(db, "caught_up", account.id, json_list(views))
    return {view: sum(1 for _ in run(db, f"rows_{view}", lo, hi)) for view in views}


def advance(db: apsw.Connection, name: str, consumer: str, seq: int) -> None:
    """Move a consumer's cursor."""
    run(db, "advance", account_of(db, name).id, consumer, seq)


def fault(db: apsw.Connection, name: str, consumer: str, seq: int, error: str, raw: str, at: int) -> None:
    """Keep what a consumer could not do."""
    run(db, "add_fault", account_of(db, name).id, consumer, seq, error, raw, at)


def settle(db: apsw.Connection, name: str, faults: Sequence[int]) -> int:
    """Forget faults that were mended or given up; how many there were."""
    run(db, "settle_faults", account_of(db, name).id, json_list(faults))
    return db.changes()


# Models ---------------------------------------------------------------------------------------------------------------


def first_model(db: apsw.Connection, name: str, dim: int) -> None:
    """Bind the store to its first model, unless somebody else just did."""
    if vectors.current(db) is None:
        run(db, "add_model", name, dim, 1)


def put_vectors(db: apsw.Connection, fresh: Mapping[bytes, Sequence[float]], name: str | None) -> None:
    """Remember vectors for the current model, or for one that is being prepared."""
    model = vectors.current(db) if name is None else vectors.named(db, name)
    if model is None and fresh:
        dim = len(next(iter(fresh.values())))
        id_ = run(db, "add_model", name or "unnamed", dim, int(name is None)).get
        model = vectors.Model(id_, name or "unnamed", dim)
    if model is not None:
        vectors.put(db, model, fresh, live=model == vectors.current(db))


def switch_model(db: apsw.Connection, name: str, dim: int) -> None:
    """Make a model the one that is searched and forget the others; blocks are folded for it right away."""
    model = vectors.named(db, name)
    if model is None:
        model = vectors.Model(run(db, "add_model", name, dim, 0).get, name, dim)
    if run(db, "pending_count", model.id).get:
        raise Conflict(f"Some passages have no vector under {name} yet.", hint="Embed them first.")
    run(db, "use_model", model.id)
    run(db, "ready_passages")
    for other, *_ in run(db, "models").fetchall():
        if other != model.id:
            for query in ("drop_embeddings", "drop_blocks_of_model", "drop_model"):
                run(db, query, other)
    run(db, "bump_all_parts")
    for part, rows in run(db, "all_parts").fetchall():
        vectors.fold_blocks(db, model, part, 0, rows)
