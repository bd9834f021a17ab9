"""Operations inside a write transaction: commit, import, erase, reset, rebuild, switch models.

Also the lookups that a writer makes before it decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final, assert_never

import apsw

from told.backends.sqlite import access, erase, integrity, vectors
from told.backends.sqlite.apply import ViewWriter
from told.backends.sqlite.connection import run_batched, run_query
from told.backends.sqlite.group_commit import AccountHead, ReadCache, WriteBuffer
from told.backends.sqlite.rows import (
    ScopeLookup,
    find_space,
    get_id_range,
    get_passage_id_range,
    make_entry_id,
    parse_entry,
    parse_fact,
    to_hex_list,
    to_int_list,
    to_json_list,
)
from told.errors import Conflict, Diverged, StoreCorrupt
from told.ids import IdGenerator, sha256
from told.model.entry import (
    GENESIS,
    Draft,
    Entry,
    Erased,
    decode_envelope,
    is_next_in_chain,
    seal_entry,
    verb_thread,
)
from told.model.fact import NEVER, Fact
from told.model.scope import Scope
from told.ports import (
    Batch,
    CursorStep,
    EntryIntact,
    ExistingState,
    Fold,
    Guard,
    IdempotencyRecord,
    KindNotGrown,
    NoEvidence,
    NoFact,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
    View,
)

PAGE_SIZE = 1000
NO_KEYS: Final = ((None, None, None),)
VIEW_CLEAR_QUERIES: Final[Mapping[View, Sequence[str]]] = {
    "evidence": ("range_evidence", "range_holding"),
    "facts": ("range_fact",),
    "links": ("range_link",),
}
"""The queries that empty each view except passages and ticks."""


def get_or_create_account(db: apsw.Connection, name: str) -> AccountHead:
    """Return an account by name, creating it on first use."""
    row = run_query(db, "account", name).fetchone()
    if row is None:
        run_query(db, "add_account", name, GENESIS)
        row = run_query(db, "account", name).fetchone()
    id_, seq, at, hash_ = row
    return AccountHead(id_, name, seq, at, hash_, cached_since=seq)


def lookup_existing(
    db: apsw.Connection,
    scope: Scope,
    md5s: Sequence[str],
    digests: Sequence[bytes],
    key: str | None,
    text_hashes: Sequence[bytes],
    *,
    include_last_turn: bool,
) -> ExistingState:
    """Look up existing texts, evidence, idempotency record, vectors, last turn and model.

    The head is read first, so a later change is either part of it or caught by a guard.
    """
    head_seq, ticket, home_part, model = None, None, None, None
    evidence: dict[bytes, str] = {}
    vectors: set[bytes] = set()
    fact_ids: list[int] = []
    scope_params = (key, scope.user_id, scope.agent_id, scope.run_id, scope.account)
    count, matches = max(map(len, (md5s, digests, text_hashes))), list[Any]()
    with suppress(UnicodeEncodeError):  # unencodable text cannot be stored
        keys = zip_longest(md5s, digests, text_hashes) if count else NO_KEYS
        matches = run_batched(db, "known", keys, count or 1, *scope_params)
    for seq, part, *record, model_name, dim, digest, evidence_id, vector_hash, fact_id in matches:
        if head_seq is None:
            head_seq, home_part = seq, part
            ticket = None if record[0] is None else IdempotencyRecord(*record)
            model = None if model_name is None else (model_name, dim)
        if digest is not None:
            evidence[digest] = evidence_id
        if vector_hash is not None:
            vectors.add(vector_hash)
        if fact_id is not None:
            fact_ids.append(fact_id)
    rows = sorted(run_query(db, "versions", to_json_list(fact_ids))) if fact_ids else ()
    facts = {fact.md5: fact for fact in (parse_fact(row, scope) for row in rows)}
    last_turn = (
        _load_last_turn(db, scope, home_part)
        if include_last_turn and home_part is not None
        else None
    )
    return ExistingState(
        head_seq or 0, facts, evidence, ticket, last_turn, frozenset(vectors), model
    )


def load_current_facts(
    db: apsw.Connection,
    scope: Scope,
    now: int,
    slots: Sequence[tuple[str, str]],
    kinds: Sequence[str],
) -> list[Fact]:
    """Load exactly this scope's current facts by slot or kind, in ledger order."""
    account = run_query(db, "account", scope.account).fetchone()
    space = None if account is None else find_space(db, account[0], scope)
    if space is None:
        return []
    lookups = (("held_about", slots), ("held_kinds", kinds))
    rows = [
        row
        for name, values in lookups
        if values
        for row in run_query(db, name, space[0], to_json_list(values), now)
    ]
    return [parse_fact(row, scope) for row in sorted({row[0]: row for row in rows}.values())]


def _load_last_turn(db: apsw.Connection, scope: Scope, part: int) -> Fact | None:
    """Return a partition's last turn if it is of this scope, current and unchanged."""
    id_ = run_query(db, "last_of_part", *get_passage_id_range(part)).get
    rows = () if id_ is None else run_query(db, "versions", to_json_list([id_])).fetchall()
    for fact in ScopeLookup(db, scope.account).parse_facts(rows):
        if fact.scope == scope and fact.until == NEVER and fact.created_at == fact.updated_at:
            return fact
    return None


def load_versions(
    db: apsw.Connection, read_cache: ReadCache, account: str, seqs: Sequence[int]
) -> Mapping[int, Fact]:
    """Load the fact versions asserted by these entries, oldest first, using the cache."""
    cached = {
        seq: fact for seq in seqs if (fact := read_cache.facts.get((account, seq))) is not None
    }
    if len(cached) == len(seqs):
        return cached
    rows = run_query(
        db, "versions_of", account, to_int_list([seq for seq in seqs if seq not in cached])
    ).fetchall()
    scopes = {ids: Scope(account, *ids) for ids in {row[:3] for row in rows}}
    loaded = [parse_fact(row[3:], scopes[row[:3]]) for row in rows]
    read_cache.cache_facts(account, loaded, rows)
    return dict(sorted({**cached, **{fact.seq: fact for fact in loaded}}.items()))


def get_current_model(db: apsw.Connection, read_cache: ReadCache) -> vectors.StoredModel | None:
    """Return the model that searches use."""
    (model,) = read_cache.model = read_cache.model or (vectors.load_current_model(db),)
    return model


def commit_batch(
    db: apsw.Connection,
    read_cache: ReadCache,
    write_buffer: WriteBuffer,
    id_generator: IdGenerator,
    batch: Batch,
    fold: Fold,
) -> list[Entry]:
    """Seal a batch at the end of its account's chain and buffer its view rows."""
    account = read_cache.accounts.get(batch.account) or get_or_create_account(db, batch.account)
    if (
        batch.idempotency is not None
        and run_query(db, "ticket", account.id, batch.idempotency.key).fetchone()
    ):
        raise Conflict()
    guards = [
        guard
        for guard in batch.guards
        if not read_cache.is_guard_satisfied(account, guard, batch.read_seq)
    ]
    if write_buffer.has_relevant_writes(guards) or _is_any_guard_broken(
        db, read_cache, account.id, guards
    ):
        write_buffer.flush(db)
        if _is_any_guard_broken(db, read_cache, account.id, guards):
            raise Conflict()
    model = get_current_model(db, read_cache)
    new_vectors = batch.vectors if model is not None and batch.model in (None, model.name) else {}
    if model is not None:
        model.require_dimensions(new_vectors)
    if batch.step is not None:
        write_buffer.flush(db)
        _advance_cursor(db, account.id, batch.step)
        access.write_notes(db, account.id, batch.step.consumer, batch.notes)
    caches = read_cache.spaces, read_cache.partition_sizes, read_cache.tick_totals, read_cache.facts
    view_writer = write_buffer.get_view_writer(
        account, lambda: ViewWriter(db, account.id, account.name, model, {}, *caches)
    )
    view_writer.new_vectors = new_vectors
    entries = _seal_drafts(id_generator, account, batch.drafts)
    read_cache.record_writes(account, batch.drafts)
    view_writer.entry_rows += [_to_entry_row(account.id, entry) for entry in entries]
    view_writer.buffer_ops(fold(entries))
    if batch.blobs:
        erase.insert_blobs(db, account.id, batch.blobs)
    if batch.idempotency is not None:
        ticket = batch.idempotency
        run_query(
            db,
            "add_ticket",
            account.id,
            ticket.key,
            ticket.digest,
            ticket.outcome,
            account.seq if entries else 0,
        )
    read_cache.accounts[batch.account] = account
    return entries


def _advance_cursor(db: apsw.Connection, account: int, step: CursorStep) -> None:
    """Advance a consumer's cursor, or raise `Conflict` if another worker moved it."""
    if (run_query(db, "cursor", account, step.consumer).get or 0) != step.before:
        raise Conflict()
    run_query(db, "advance", account, step.consumer, step.after)


def _seal_drafts(
    id_generator: IdGenerator, account: AccountHead, drafts: Sequence[Draft]
) -> list[Entry]:
    """Number and seal drafts with one transaction number and a strictly later instant."""
    if not drafts:
        return []
    at, last, entries = max(id_generator.now(), account.at + 1), account.hash, list[Entry]()
    for seq, draft in enumerate(drafts, account.seq + 1):
        entry = seal_entry(
            draft, prev=last, seq=seq, tx=account.seq + 1, at=at, salt=id_generator.new_salt()
        )
        last = entry.hash
        entries.append(entry)
    account.seq, account.at, account.hash = account.seq + len(entries), at, last
    return entries


def _append_entry(
    db: apsw.Connection, id_generator: IdGenerator, account: AccountHead, draft: Draft
) -> Entry:
    """Seal a draft at the end of the chain and advance the head."""
    (entry,) = _seal_drafts(id_generator, account, [draft])
    run_query(db, "add_entry", *_to_entry_row(account.id, entry))
    run_query(db, "move_head", account.seq, account.at, account.hash, account.id)
    return entry


def _to_entry_row(account: int, entry: Entry) -> tuple[Any, ...]:
    return (
        make_entry_id(account, entry.seq),
        entry.tx,
        entry.at,
        entry.sort,
        entry.thread,
        entry.digest,
        entry.hash,
        entry.salt,
        entry.envelope,
    )


def _is_any_guard_broken(
    db: apsw.Connection, read_cache: ReadCache, account: int, guards: Sequence[Guard]
) -> bool:
    """Return whether any guard no longer holds."""
    return any(_is_guard_broken(db, read_cache, account, guard) for guard in guards)


def _is_guard_broken(
    db: apsw.Connection, read_cache: ReadCache, account: int, guard: Guard
) -> bool:
    """Return whether a guard no longer holds, by one indexed lookup or a few."""
    match guard:
        case ThreadAt(thread=thread, seq=seq):
            lo, hi = get_id_range(account)
            latest = run_query(db, "held", thread, hi, lo).fetchone()
            return bool(latest != (None if seq is None else (make_entry_id(account, seq), thread)))
        case NoFact(scope=scope, md5s=md5s):
            space = read_cache.spaces.get(scope) or find_space(db, account, scope)
            return space is not None and any(
                run_query(db, "text_held", space[0], md5).get for md5 in md5s
            )
        case NoEvidence(scope=scope, digests=digests):
            space = read_cache.spaces.get(scope) or find_space(db, account, scope)
            return space is not None and any(
                run_query(db, "evidence_held", space[0], digest).get for digest in digests
            )
        case UnchangedSlot(scope=scope, subject=subject, predicates=predicates, seq=seq):
            space = read_cache.spaces.get(scope) or find_space(db, account, scope)
            slot_params = subject, to_json_list(predicates), make_entry_id(account, seq)
            return (
                space is not None and run_query(db, "news", space[0], *slot_params).get is not None
            )
        case KindNotGrown(scope=scope, kind=kind, seq=seq):
            space = read_cache.spaces.get(scope) or find_space(db, account, scope)
            return (
                space is not None
                and run_query(db, "more", space[0], kind, make_entry_id(account, seq)).get
                is not None
            )
        case ThreadUntouched(thread=thread, seq=seq):
            _, end = get_id_range(account)
            return (
                run_query(db, "stirred", thread, make_entry_id(account, seq), end).get is not None
            )
        case EntryIntact(seq=seq):
            return run_query(db, "intact", make_entry_id(account, seq)).get is None
        case _:
            assert_never(guard)


def import_entries(
    db: apsw.Connection, name: str, entries: Sequence[Entry], fold: Fold
) -> tuple[int, int]:
    """Append entries that continue the chain, honouring erasures on both sides.

    An entry without content is a hole until a tombstone, on this page or a later one, declares
    it erased. Only the tombstone buries its digest, so content cut out of an export is reported
    by `verify`. Return the number of new and of erased entries.
    """
    account = get_or_create_account(db, name)
    erased_digests = frozenset(
        digest
        for (digest,) in run_query(db, "tombstoned", to_hex_list([e.digest for e in entries]))
    )
    new_entries: list[Entry] = []
    for entry in entries:
        if entry.seq <= account.seq:
            if run_query(db, "entry_hash", make_entry_id(account.id, entry.seq)).get != entry.hash:
                raise Diverged(f"Entry {entry.seq} of the import differs from that of this ledger.")
            continue
        _advance_head(account, entry)
        stored = (
            _decode_entry(entry, name)
            if entry.digest not in erased_digests
            else _strip_content(entry)
        )
        run_query(db, "add_entry", *_to_entry_row(account.id, stored))
        new_entries.append(stored)
    ViewWriter(db, account.id, account.name, vectors.load_current_model(db)).apply_ops(
        fold(new_entries)
    )
    run_query(db, "move_head", account.seq, account.at, account.hash, account.id)
    erased_seqs = sorted(
        {
            seq
            for entry in new_entries
            if isinstance(entry.verb, Erased)
            for seq in entry.verb.seqs
            if 0 < seq < entry.seq
        }
    )
    if erased_seqs:
        erase.shred_entries(db, account.id, erased_seqs)
        run_query(db, "owe_scrub")
    return len(new_entries), len(erased_seqs)


def _advance_head(account: AccountHead, entry: Entry) -> None:
    """Advance an account's head over an entry, or raise if it does not fit."""
    if entry.seq != account.seq + 1 or not is_next_in_chain(account.hash, entry):
        raise StoreCorrupt(
            f"Entry {entry.seq} does not follow from the entry before it.", hint="Export it again."
        )
    if entry.envelope is not None and sha256(entry.salt or b"", entry.envelope) != entry.digest:
        raise StoreCorrupt(
            f"The content of entry {entry.seq} does not match its hash.", hint="Export it again."
        )
    account.seq, account.at, account.hash = entry.seq, entry.at, entry.hash


def _decode_entry(entry: Entry, account: str) -> Entry:
    """Decode an imported entry for this account."""
    if entry.envelope is None:
        return _strip_content(entry)
    draft = decode_envelope(entry.sort, account, entry.envelope)
    if verb_thread(draft.verb) != entry.thread:
        raise StoreCorrupt(
            f"Entry {entry.seq} does not belong to the thread it names.", hint="Export it again."
        )
    return replace(entry, draft=draft)


def _strip_content(entry: Entry) -> Entry:
    return replace(entry, salt=None, envelope=None, draft=None)


def erase_entries(
    db: apsw.Connection, id_generator: IdGenerator, name: str, seqs: Sequence[int], draft: Draft
) -> tuple[Entry, Mapping[str, int]]:
    """Destroy the content of entries and append their tombstone."""
    account = get_or_create_account(db, name)
    counts = erase.shred_entries(db, account.id, seqs)
    run_query(db, "owe_scrub")
    return _append_entry(db, id_generator, account, draft), counts


def reset_account(db: apsw.Connection, id_generator: IdGenerator, name: str, draft: Draft) -> Entry:
    """Destroy an account's ledger and start a new chain."""
    account = get_or_create_account(db, name)
    erase.wipe_account(db, account.id)
    run_query(db, "owe_scrub")
    account.seq, account.at, account.hash = 0, 0, GENESIS
    return _append_entry(db, id_generator, account, draft)


def rebuild_views(
    db: apsw.Connection, name: str, views: Sequence[View], fold: Fold
) -> dict[str, int]:
    """Drop views and fold them again page by page; also delete orphaned rows."""
    account = get_or_create_account(db, name)
    lo, hi = get_id_range(account.id)
    integrity.drop_orphans(db, account.id, views)
    for view, queries in VIEW_CLEAR_QUERIES.items():
        for query in queries if view in views else ():
            run_query(db, query, lo - 1, hi)
    if "passages" in views:
        for (part,) in run_query(db, "parts_of_account", account.id).fetchall():
            erase.clear_partition(db, part)
        vectors.drop_invalid_vectors(db)
    view_writer = ViewWriter(db, account.id, account.name, vectors.load_current_model(db))
    after = lo
    while rows := run_query(db, "scan", after, hi, PAGE_SIZE).fetchall():
        entries = [parse_entry(row, name) for row in rows]
        view_writer.apply_ops(fold(entries))
        integrity.bury_erased(db, account.id, entries)
        after = rows[-1][0]
    if "facts" in views and "passages" not in views:
        run_query(db, "place_facts", lo, hi)
    integrity.drop_leftovers(db, account.id, views)
    run_query(db, "caught_up", account.id, to_json_list(views))
    return {view: sum(1 for _ in run_query(db, f"rows_{view}", lo, hi)) for view in views}


def move_cursor(db: apsw.Connection, name: str, consumer: str, seq: int) -> None:
    """Set a consumer's cursor."""
    run_query(db, "advance", get_or_create_account(db, name).id, consumer, seq)


def record_fault(
    db: apsw.Connection, name: str, consumer: str, seq: int, error: str, raw: str, at: int
) -> None:
    """Record a consumer's failure."""
    run_query(db, "add_fault", get_or_create_account(db, name).id, consumer, seq, error, raw, at)


def delete_faults(db: apsw.Connection, name: str, fault_ids: Sequence[int]) -> int:
    """Delete faults and return how many there were."""
    run_query(db, "settle_faults", get_or_create_account(db, name).id, to_json_list(fault_ids))
    return db.changes()


# Models


def bind_first_model(db: apsw.Connection, name: str, dim: int) -> None:
    """Bind the store to its first model, unless another process just did."""
    if vectors.load_current_model(db) is None:
        run_query(db, "add_model", name, dim, 1)


def put_vectors(
    db: apsw.Connection, new_vectors: Mapping[bytes, Sequence[float]], name: str | None
) -> None:
    """Store vectors for the current model or for one that is being prepared."""
    model = vectors.load_current_model(db) if name is None else vectors.load_model(db, name)
    if model is None and new_vectors:
        dim = len(next(iter(new_vectors.values())))
        id_ = run_query(db, "add_model", name or "unnamed", dim, int(name is None)).get
        model = vectors.StoredModel(id_, name or "unnamed", dim)
    if model is not None:
        vectors.store_late_vectors(
            db, model, new_vectors, is_searched=model == vectors.load_current_model(db)
        )


def switch_model(db: apsw.Connection, name: str, dim: int) -> None:
    """Make a model current, drop the others and build its blocks."""
    model = vectors.load_model(db, name)
    if model is None:
        model = vectors.StoredModel(run_query(db, "add_model", name, dim, 0).get, name, dim)
    if run_query(db, "pending_count", model.id).get:
        raise Conflict(f"Some passages have no vector under {name} yet.", hint="Embed them first.")
    run_query(db, "use_model", model.id)
    run_query(db, "ready_passages")
    for other, *_ in run_query(db, "models").fetchall():
        if other != model.id:
            for query in ("drop_embeddings", "drop_blocks_of_model", "drop_model"):
                run_query(db, query, other)
    run_query(db, "bump_all_parts")
    for part, rows in run_query(db, "all_parts").fetchall():
        vectors.build_blocks(db, model, part, 0, rows)
