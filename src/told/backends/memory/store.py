"""The in-memory store: the executable specification of the storage ports.

One lock guards every method. A write changes a copy of its account and stores it at the end, so a
failed write leaves nothing behind. Returned values belong to the caller. Nothing outlives the
process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, replace
from functools import wraps
from itertools import count, islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from told.backends.memory.account import VIEW_NAMES, InMemoryAccount
from told.backends.memory.search import apply_filter, search_account, select_visible
from told.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    ModelMismatch,
    StoreClosed,
    Unsupported,
)
from told.ids import IdGenerator, canonical_json
from told.model.entry import Blob, Draft, Entry
from told.model.fact import NEVER, EvidenceRow, Fact, Link
from told.model.query import (
    AccessBatch,
    AccessCount,
    AsOf,
    FactQuery,
    IndexQuery,
    IndexResult,
    ReviewTask,
    select_version,
    urgency_key,
)
from told.model.scope import Scope
from told.model.scoring import quantise
from told.ports import (
    AccessHistory,
    Batch,
    ExistingState,
    Fault,
    Fold,
    Head,
    Index,
    ScopeTally,
    StoredTurn,
    TickTotals,
    View,
    ViewRow,
)
from told.runtime import acquire_on_fork

C = TypeVar("C", bound=type)
Row = TypeVar("Row", Fact, Link)


def with_lock(cls: C) -> C:
    """Let one caller at a time into the public methods of a store, and none once it is closed."""

    def lock(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def locked(self: InMemoryStore, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self._closed:
                    raise StoreClosed()
                return method(self, *args, **kwargs)

        return locked

    for name, method in list(vars(cls).items()):
        if callable(method) and not name.startswith("_") and name != "close":
            setattr(cls, name, lock(method))
    return cls


def open_store(url: str, *, mint: IdGenerator | None = None, **_: Any) -> InMemoryStore:
    """Open a new empty store; options of other stores are ignored."""
    if url not in ("ram:", "ram://"):
        raise ConfigError(f"ram:// takes no path, unlike {url!r}.", hint="Write ram://.")
    return InMemoryStore(mint)


@with_lock
class InMemoryStore:
    """A ledger, its views and its index in memory."""

    def __init__(self, mint: IdGenerator | None = None) -> None:
        self.mint = mint or IdGenerator()
        self.index: Index = self
        self._lock = acquire_on_fork(threading.RLock())
        self._closed = False
        self._accounts: dict[str, InMemoryAccount] = {}
        self._model: tuple[str, int] | None = None
        self._vectors: dict[str, dict[bytes, bytes]] = {}
        self._fault_ids, self._task_ids = count(1), count(1)

    def _read(self, account: str) -> InMemoryAccount:
        """Return an account; one that was never written to is empty."""
        return self._accounts.get(account) or InMemoryAccount(account)

    @contextmanager
    def _change(self, account: str, *texts: str) -> Iterator[InMemoryAccount]:
        """Change a copy of an account and store it unless the change fails."""
        _require_encodable(account, *texts)
        state = self._read(account).copy()
        yield state
        self._accounts[account] = state

    def _collect_tombstones(self) -> set[bytes]:
        return {digest for state in self._accounts.values() for digest in state.tombstones}

    # Ledger

    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal the drafts, fold them and write everything else in the batch."""
        ticket = batch.idempotency
        texts = () if ticket is None else (ticket.key, ticket.outcome)
        with self._change(batch.account, *texts, *batch.notes) as state:
            state.check_batch(batch)
            is_current = bool(batch.vectors) and batch.model in (None, self._require_model()[0])
            codes = self._quantise(batch.vectors) if is_current else {}
            entries = state.append_drafts(batch.drafts, self.mint)
            state.fold_entries(entries, fold)
            if batch.step is not None:
                state.cursors[batch.step.consumer] = batch.step.after
                state.write_notes(batch.step.consumer, batch.notes)
            if ticket is not None:
                seq = state.head.seq if entries else 0
                state.tickets[ticket.key] = replace(ticket, seq=seq)
            state.blobs = {**{blob.hash: blob for blob in batch.blobs}, **state.blobs}
            self._current_vectors().update(codes)
            return [state.decode_entry(entry) for entry in entries]

    def import_entries(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere; tombstones among them erase here too."""
        with self._change(account) as state:
            known = len(state.entries)
            state.import_entries(entries, self._collect_tombstones())
            new_entries = state.entries[known:]
            state.fold_entries(new_entries, fold)
            hashes = state.embedded_texts()
            state.apply_tombstones(new_entries)
        self._drop_unused_vectors(hashes)
        return len(new_entries)

    def erase(
        self, account: str, seqs: Sequence[int], draft: Draft
    ) -> tuple[Entry, Mapping[str, int]]:
        """Destroy the content of entries with all that was derived from it."""
        with self._change(account) as state:
            hashes = state.embedded_texts()
            counts = state.erase_entries(seqs)
            [tombstone] = state.append_drafts([draft], self.mint)
        dropped = self._drop_unused_vectors(hashes)
        return state.decode_entry(tombstone), {**counts, "vectors": dropped}

    def reset(self, account: str, draft: Draft) -> Entry:
        """Begin a new ledger; the old one's digests become tombstones."""
        with self._change(account) as old:
            pass
        digests = old.tombstones | {entry.digest for entry in old.entries}
        state = self._accounts[account] = InMemoryAccount(account, tombstones=digests)
        [entry] = state.append_drafts([draft], self.mint)
        self._drop_unused_vectors(old.embedded_texts())
        return state.decode_entry(entry)

    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Fold views again from the ledger."""
        with self._change(account) as state:
            for view in views:
                getattr(state, view).clear()
            state.fold_entries(state.entries, fold, views)
            state.repair()
        return {view: len(getattr(state, view)) for view in views}

    def list_accounts(self) -> Mapping[str, Sequence[View]]:
        """Return every account that has a ledger; no view is ever stale."""
        return {name: () for name, state in sorted(self._accounts.items()) if state.entries}

    def get_head(self, account: str, at: int | None = None) -> Head:
        """Return the last entry, or the last one at or before an instant."""
        return self._read(account).head_at(NEVER if at is None else at)

    def scan_entries(
        self, account: str, after: int = 0, limit: int | None = None, *, thread: str | None = None
    ) -> Sequence[Entry]:
        """Return entries in order."""
        state = self._read(account)
        entries = [
            entry for entry in state.entries if entry.seq > after and thread in (None, entry.thread)
        ]
        return [state.decode_entry(entry) for entry in entries[:limit]]

    def tombstoned_digests(self, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return the digests of erased content; salts make them unique across accounts."""
        return frozenset(self._collect_tombstones().intersection(digests))

    def rows_between(self, account: str, after: int, upto: int) -> Sequence[ViewRow]:
        """Return the view rows of some entries."""
        return [row for row in self._read(account).list_rows() if after < row.seq <= upto]

    def view_rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a view as plain tuples, for tests."""
        rows = [
            row for row in self.rows_between(account, 0, NEVER) if VIEW_NAMES[type(row)] == view
        ]
        return iter([tuple(_to_plain(getattr(r, f.name)) for f in fields(r)) for r in rows])

    # Facts

    def lookup_existing(
        self,
        scope: Scope,
        md5s: Sequence[str],
        digests: Sequence[bytes],
        key: str | None,
        text_hashes: Sequence[bytes] = (),
        *,
        include_last_turn: bool = False,
    ) -> ExistingState:
        """Return what exactly this scope already has."""
        state = self._read(scope.account)
        evidence = [row for row in state.evidence.values() if row.scope == scope]
        return ExistingState(
            state.head.seq,
            {f.md5: _copy(f) for f in state.list_current(scope) if f.md5 in md5s},
            {row.digest: row.id for row in evidence if row.digest in digests},
            None if key is None else state.tickets.get(key),
            state.find_last_turn(scope) if include_last_turn else None,
            frozenset(self._current_vectors().keys() & set(text_hashes)),
            self._model,
        )

    def find_facts(self, query: FactQuery) -> Sequence[Fact]:
        """Return the facts visible to a scope at a point in time, oldest first."""
        visible = select_visible(self._read(query.scope.account), query)
        matching = apply_filter([fact for fact in visible if fact.seq > query.after], query)
        return [_copy(fact) for fact in matching[query.offset :][: query.limit]]

    def get_fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """Return the version of a thread at a point in time."""
        state = self._read(account)
        if as_of is None:
            fact = state.find_latest(thread)
        else:
            fact = select_version(state.list_versions(thread), as_of)
        return None if fact is None else _copy(fact)

    def find_versions(
        self,
        account: str,
        *,
        seqs: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        evidence: Sequence[str] | None = None,
        scope: Scope | None = None,
    ) -> Sequence[Fact]:
        """Return fact versions by position, thread, evidence or scope, in ledger order."""
        facts = self._read(account).facts.values()
        if evidence is not None:
            threads = [fact.id for fact in facts if fact.evidence in evidence]
        return [
            _copy(fact)
            for fact in facts
            if (seqs is None or fact.seq in seqs)
            and (threads is None or fact.id in threads)
            and (scope is None or scope.covers(fact.scope))
        ]

    def current_facts(
        self,
        scope: Scope,
        now: int,
        *,
        slots: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] = (),
    ) -> Sequence[Fact]:
        """Return the current facts of exactly this scope in some slots or of some kinds."""
        return [
            _copy(fact)
            for fact in self._read(scope.account).list_current(scope)
            if fact.expires > now
            and ((fact.subject, fact.predicate) in slots or fact.kind in {*kinds} - {"memory"})
        ]

    def find_links(
        self, account: str, nodes: Sequence[str], seq: int | None = None
    ) -> Sequence[Link]:
        """Return the links that touch any of these nodes."""
        position = NEVER - 1 if seq is None else seq
        return [
            _copy(link)
            for link in self._read(account).links.values()
            if (link.src in nodes or link.dst in nodes) and link.seq <= position < link.until
        ]

    def evidence_rows(
        self,
        account: str,
        *,
        scope: Scope | None = None,
        source: str | None = None,
        ids: Sequence[str] = (),
    ) -> Sequence[EvidenceRow]:
        """Return the evidence that meets all given conditions."""
        if scope is None and source is None and not ids:
            return []
        return [
            row
            for row in self._read(account).evidence.values()
            if (scope is None or scope.covers(row.scope))
            and source in (None, row.source)
            and (not ids or row.id in ids)
        ]

    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """Return the turns of exactly this scope between two positions."""
        turns = self._read(scope.account).list_turns(scope)
        between = [turn for turn in turns if after < turn.said_seq < before]
        chosen = between[max(len(between) - limit, 0) :] if newest else between[:limit]
        return [StoredTurn(turn.said_seq, _copy(turn.fact)) for turn in chosen]

    def tick_totals(self, scope: Scope, seqs: Sequence[int], recent: int = 0) -> TickTotals:
        """Return the turns and tokens up to each position, and the last ticks."""
        ticks = [
            tick
            for tick in self._read(scope.account).ticks.values()
            if tick.scope.partition_key() == scope.partition_key()
        ]
        upto = {seq: [tick for tick in ticks if tick.seq <= seq] for seq in seqs}
        last = upto[max(seqs)] if seqs else []
        return TickTotals(
            {s: (sum(t.turns for t in ts), sum(t.tokens for t in ts)) for s, ts in upto.items()},
            last[max(len(last) - recent, 0) :],
        )

    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Return every exact scope that has rows."""
        return self._read(account).collect_scopes()

    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """Return the memories and the first and last write of each exact scope."""
        state = self._read(account)
        rows, memories = state.list_scoped_rows(), state.count_memories()
        times = {
            scope: [state.entries[row.seq - 1].at for row in rows if row.scope == scope]
            for scope in state.collect_scopes()
        }
        return [ScopeTally(s, memories[s], min(at), max(at)) for s, at in times.items()]

    # Index and vectors

    def search(self, index_query: IndexQuery) -> IndexResult:
        """Return the best candidates of each retriever."""
        if index_query.vector is not None and self._model is not None:
            _require_dimension(index_query.vector, *self._model)
            if index_query.model not in (None, self._model[0]):
                raise ModelMismatch(
                    f"The store is indexed with {self._model[0]}, not with {index_query.model}."
                )
        account = self._read(index_query.query.scope.account)
        return search_account(account, self._current_vectors(), index_query)

    def _require_model(self) -> tuple[str, int]:
        if self._model is None:
            raise ModelMismatch("The store has no embedder yet.", hint="Call bind_model() first.")
        return self._model

    def _quantise(self, vectors: Mapping[bytes, Sequence[float]]) -> dict[bytes, bytes]:
        for vector in vectors.values():
            _require_dimension(vector, *self._require_model())
        return {key: quantise(vector) for key, vector in vectors.items()}

    def _current_vectors(self) -> dict[bytes, bytes]:
        return {} if self._model is None else self._vectors.setdefault(self._model[0], {})

    def _embedded_texts(self) -> dict[bytes, str]:
        texts: dict[bytes, str] = {}
        for _, state in sorted(self._accounts.items()):
            texts |= state.embedded_texts()
        return texts

    def _drop_unused_vectors(self, hashes: Iterable[bytes]) -> int:
        """Drop the vectors of those hashes that no passage has any more, under every model."""
        unused = set(hashes) - self._embedded_texts().keys()
        dropped = sum(len(unused & vectors.keys()) for vectors in self._vectors.values())
        for model, vectors in self._vectors.items():
            self._vectors[model] = {k: code for k, code in vectors.items() if k not in unused}
        return dropped

    def current_model(self) -> tuple[str, int] | None:
        """Return the model the store is bound to."""
        return self._model

    def bind_model(self, name: str, dim: int, *, switch: bool = False) -> None:
        """Bind the store to its first model, or switch to another one that has all vectors."""
        _require_encodable(name)
        vectors = self._vectors.get(name, {})
        if not switch and self._model not in (None, (name, dim)):
            raise ModelMismatch(
                f"The store was indexed with {self._model[0]} ({self._model[1]} dimensions), "
                f"not {name} ({dim}).",
                indexed_with=self._model[0],
            )
        if switch:
            if missing := len(self.pending_texts(None, name)):
                raise Conflict(
                    f"{missing} texts have no vector under {name} yet.",
                    hint="Embed what is pending first.",
                )
            for vector in vectors.values():
                _require_dimension(vector, name, dim)
            self._vectors = {name: vectors}
        self._model = (name, dim)

    def pending_texts(
        self,
        limit: int | None = 1000,
        model: str | None = None,
        *,
        account: str | None = None,
        seqs: Sequence[int] | None = None,
    ) -> Mapping[bytes, str]:
        """Return texts without a vector, by account and in ledger order."""
        vectors = self._current_vectors() if model is None else self._vectors.get(model, {})
        texts = (
            self._embedded_texts() if account is None else self._read(account).embedded_texts(seqs)
        )
        return dict(islice(((k, text) for k, text in texts.items() if k not in vectors), limit))

    def put_vectors(
        self, vectors: Mapping[bytes, Sequence[float]], model: str | None = None
    ) -> None:
        """Store vectors of known texts; dimensions of another model are checked by the switch."""
        _require_encodable(model or "")
        name = model or self._require_model()[0]
        if self._model is not None and name == self._model[0]:
            codes = self._quantise(vectors)
        else:
            codes = {key: quantise(vector) for key, vector in vectors.items()}
        used = self._embedded_texts()
        self._vectors.setdefault(name, {}).update({k: v for k, v in codes.items() if k in used})

    # Access log

    def record_accesses(self, account: str, batch: AccessBatch) -> int:
        """Apply a batch of accesses; return how many tasks are new."""
        records = batch.records if batch.keep_per_thread else ()
        with self._change(account, *(record.query for record in records)) as state:
            known, open_tasks = state.list_threads(), len(state.tasks)
            for thread in known & batch.counts.keys():
                previous, added = state.access_counts.get(thread), batch.counts[thread]
                state.access_counts[thread] = added if previous is None else previous + added
            state.record_cooccurrences(batch.cooccurrences)
            for task in batch.tasks:
                if task.thread in known:
                    state.enqueue_task(task, batch.window, self._task_ids)
            known_records = [record for record in records if record.thread in known]
            state.record_accesses(known_records, batch.keep_per_thread)
        return len(state.tasks) - open_tasks

    def access_counts(self, account: str, threads: Sequence[str]) -> Mapping[str, AccessCount]:
        """Return how often threads were recalled."""
        counts = self._read(account).access_counts
        return {thread: counts[thread] for thread in threads if thread in counts}

    def access_history(self, account: str, thread: str) -> AccessHistory:
        """Return the logged accesses and the access states of a thread."""
        state = self._read(account)
        return AccessHistory(state.accesses.get(thread, ()), state.states.get(thread, ()))

    def cooccurrence(
        self, account: str, topics: Sequence[str]
    ) -> Mapping[tuple[str, str], AccessCount]:
        """Return the counts of pairs with any of these topics."""
        counts = sorted(self._read(account).cooccurrences.items())
        return {pair: number for pair, number in counts if set(topics) & set(pair)}

    # Queue

    def get_cursor(self, account: str, consumer: str) -> int:
        """Return the position a consumer has reached."""
        return self._read(account).cursors.get(consumer, 0)

    def read_notes(
        self, account: str, consumer: str, keys: Sequence[str] | None = None
    ) -> Mapping[str, bytes]:
        """Return a consumer's notes."""
        return {
            key: note
            for (owner, key), note in sorted(self._read(account).notes.items())
            if owner == consumer and (keys is None or key in keys)
        }

    def update_consumer(
        self,
        account: str,
        consumer: str,
        *,
        cursor: int | None = None,
        notes: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Set a consumer's cursor and write its notes."""
        with self._change(account, consumer, *(notes or {})) as state:
            if cursor is not None:
                state.cursors[consumer] = cursor
            state.write_notes(consumer, notes or {})

    def record_fault(
        self, account: str, consumer: str, seq: int, error: str, raw: str = ""
    ) -> None:
        """Record a failure; a repeated one counts another attempt."""
        with self._change(account, consumer, error, raw) as state:
            new = Fault(next(self._fault_ids), account, consumer, seq, error, 0, 0)
            fault = state.faults.get((consumer, seq), new)
            state.faults[consumer, seq] = replace(
                fault, error=error, raw=raw, at=self.mint.now(), attempts=fault.attempts + 1
            )

    def clear_faults(self, account: str, fault_ids: Sequence[int]) -> int:
        """Delete faults and return how many there were."""
        with self._change(account) as state:
            total = len(state.faults)
            state.faults = {k: f for k, f in state.faults.items() if f.id not in fault_ids}
        return total - len(state.faults)

    def list_faults(self, account: str) -> Sequence[Fault]:
        """Return all faults in the order they first occurred."""
        return list(self._read(account).faults.values())

    def list_tasks(self, account: str, limit: int = 100) -> Sequence[ReviewTask]:
        """Return open tasks, the most urgent first."""
        return sorted(self._read(account).tasks.values(), key=urgency_key)[: max(limit, 0)]

    def claim_tasks(self, account: str, now: int, limit: int, lease: int) -> Sequence[ReviewTask]:
        """Claim due tasks whose lease is free."""
        with self._change(account) as state:
            free = [
                task
                for task in sorted(state.tasks.values(), key=urgency_key)
                if task.due <= now and (task.claimed == 0 or task.claimed < now - lease)
            ]
            claimed = [
                replace(task, claimed=now, attempts=task.attempts + 1)
                for task in free[: max(limit, 0)]
            ]
            state.tasks |= {task.id: task for task in claimed}
        return claimed

    def complete_tasks(self, account: str, task_ids: Sequence[int]) -> int:
        """Delete tasks and return how many there were."""
        with self._change(account) as state:
            total = len(state.tasks)
            state.tasks = {id_: t for id_, t in state.tasks.items() if id_ not in task_ids}
        return total - len(state.tasks)

    # Blobs

    def get_blobs(self, account: str, hashes: Sequence[str] | None = None) -> Mapping[str, Blob]:
        """Return some blobs, or all of them without their bytes."""
        blobs = sorted(self._read(account).blobs.items())
        if hashes is None:
            return {name: replace(blob, data=b"") for name, blob in blobs}
        return {name: blob for name, blob in blobs if name in hashes}

    # Maintenance

    def scrub(self) -> Sequence[str]:
        """Do nothing: destroyed content leaves no trace in memory."""
        return ()

    def check_integrity(self, *, types_only: bool = False) -> Sequence[str]:
        """Return the inconsistencies of every account."""
        accounts = () if types_only else sorted(self._accounts.items())
        return [
            f"{name}: {problem}" for name, state in accounts for problem in state.find_problems()
        ]

    def get_stats(self, account: str) -> Mapping[str, Any]:
        """Return counts and sizes of one account."""
        return {
            **self._read(account).compute_stats(),
            "model": self._model and {"name": self._model[0], "dim": self._model[1]},
            "pending_vectors": len(self.pending_texts(None)) if self._model else 0,
        }

    def backup(self, target: Path) -> NoReturn:
        """Refuse: a store in memory has no file to copy."""
        raise Unsupported(
            f"A ram store has no file to copy to {target.parent}.",
            hint="Export its ledger instead.",
        )

    def close(self) -> None:
        """Refuse every further call and drop all data."""
        with self._lock:
            self._closed = True
            self._accounts, self._vectors = {}, {}


def _copy(row: Row) -> Row:
    """Return a row with a copy of its metadata."""
    return replace(row, meta=deepcopy(row.meta))


def _to_plain(value: Any) -> Any:
    """Return a scope as its ids, and an object or a list as canonical JSON."""
    if isinstance(value, Scope):
        return (value.user_id, value.agent_id, value.run_id)
    return canonical_json(value).decode() if isinstance(value, dict | tuple) else value


def _require_encodable(*texts: str) -> None:
    """Raise `InvalidInput` for texts that cannot be encoded."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("A value holds half of a surrogate pair, which is not text.") from error


def _require_dimension(vector: Collection[float] | bytes, name: str, dim: int) -> None:
    """Raise `ModelMismatch` unless a vector has the model's dimension."""
    if len(vector) != dim:
        raise ModelMismatch(f"The vector has {len(vector)} dimensions; {name} has {dim}.")
