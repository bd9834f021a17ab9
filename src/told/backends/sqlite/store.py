"""The embedded store: ledger, views, full text and vectors in one SQLite file that many processes may share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from told.backends.sqlite import blobs, care, health, ledger, strays, turns, vectors
from told.backends.sqlite.connect import Database, path_of, run, run_named
from told.backends.sqlite.folded import folded
from told.backends.sqlite.index import Cache, SqliteIndex, visible
from told.backends.sqlite.overlay import SqliteOverlay
from told.backends.sqlite.rows import (
    SEQ_MASK,
    Scopes,
    base,
    entry_of,
    hex_list,
    json_list,
    link_of,
    position,
    spaces_of,
    span,
)
from told.backends.sqlite.writer import Writer
from told.core.blob import Blob
from told.core.entry import GENESIS, Draft, Entry
from told.core.errors import ModelMismatch
from told.core.fact import NEVER, Fact, Link, Witness, together
from told.core.fork import at_fork
from told.core.ids import Mint
from told.core.query import LATEST, AsOf, Find, Touch
from told.core.scope import Scope
from told.ports import Batch, Fault, Fold, Head, Known, Row, Tally, Turn, View

NOW = AsOf(LATEST, 0)
EMPTY = Head(0, 0, GENESIS)


class SqliteStore(SqliteOverlay):
    """A store in one file."""

    def __init__(self, path: Path, mint: Mint, options: Mapping[str, Any]) -> None:
        self.mint = mint
        self.path = path
        self._vacuum = bool(options.get("erase_vacuum", True))
        self._database = Database(
            path, durability=options.get("durability", "full"), busy_timeout=options.get("busy_timeout", 60.0)
        )
        self._write = Writer(self._database, options.get("group_limit", 256))
        cache = Cache(options.get("cache_bytes", 256 * 2**20), options.get("exact_rows", 4096))
        self.index = SqliteIndex(self._write, cache)
        self._leaver: int | None = None
        at_fork(self, before="leave", in_parent="rejoin", in_child="renew")
        self.scrub()

    def leave(self) -> None:
        """Before a fork: once nobody writes or reads, no connection is open that a child could inherit."""
        if not self._database.closed and self._write.pause():
            self._leaver = threading.get_ident()
            self._database.leave()

    def rejoin(self) -> None:
        """After a fork, in the parent: go on."""
        if self._leaver == threading.get_ident():
            self._leaver = None
            self._database.rejoin()
            self._write.resume()

    def renew(self) -> None:
        """After a fork, in the child: begin anew."""
        self._database.renew(left=self._leaver == threading.get_ident())
        self._leaver = None
        self._write = Writer(self._database, self._write.limit)
        self.index = SqliteIndex(self._write, Cache(self.index.cache.budget, self.index.cache.exact_rows))

    def watch(self, step: Callable[[str], object]) -> None:
        """Be told of each named step of a commit, as crash tests are."""
        self._write.watch = step

    # Writing ----------------------------------------------------------------------------------------------------------

    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal, fold and make durable, together with whoever else is waiting."""
        write = self._write
        return write(
            lambda db: ledger.commit(db, write.memo, write.growth, self.mint, batch, fold), keeps=True, gathers=True
        )

    def adopt(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere."""
        new, shredded = self._write(lambda db: ledger.adopt(db, account, entries, fold))
        if shredded:
            self.index.cache.clear()
        return new

    def erase(self, account: str, seqs: Sequence[int], draft: Draft) -> tuple[Entry, Mapping[str, int]]:
        """Destroy content and leave a tombstone; the file owes a scrub from then on."""
        done = self._write(lambda db: ledger.erase(db, self.mint, account, seqs, draft))
        self.index.cache.clear()
        return done

    def reset(self, account: str, draft: Draft) -> Entry:
        """Destroy an account and begin a new chain."""
        entry = self._write(lambda db: ledger.reset(db, self.mint, account, draft))
        self.index.cache.clear()
        return entry

    def scrub(self) -> Sequence[str]:
        """Leave no trace of destroyed content anywhere in the store's files, if any is owed."""
        if not self._write.glance(lambda db: run(db, "scrub_owed").get):
            return ()
        return self._write.alone(lambda db: care.scrub(db, vacuum=self._vacuum))

    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Fold views again from the ledger, in one transaction."""
        done = self._write(lambda db: ledger.rebuild(db, account, views, fold))
        self.index.cache.clear()
        return done

    def behind(self, account: str) -> Sequence[View]:
        """The views that an account of an older file was never folded into."""
        return tuple(view for (view,) in self._write.glance(lambda db: run(db, "behind", account).fetchall()))

    # The ledger -------------------------------------------------------------------------------------------------------

    def accounts(self) -> Sequence[str]:
        """Every account that has a ledger."""
        return [name for (name,) in self._write.glance(lambda db: run(db, "accounts").fetchall())]

    def head(self, account: str) -> Head:
        """The end of the account's ledger."""
        with self._database.reading() as db:
            row = run(db, "account", account).fetchone()
        return EMPTY if row is None else Head(*row[1:])

    def position(self, account: str, at: int) -> int:
        """The last position at or before an instant; instants only grow along the ledger, so halving finds it."""
        with self._in(account) as (db, number):
            row = run(db, "account", account).fetchone()
            low, high = 0, 0 if row is None else row[1]
            while low < high:
                middle = (low + high + 1) // 2
                if run(db, "entry_at", position(number, middle)).get <= at:
                    low = middle
                else:
                    high = middle - 1
            return low

    def scan(self, account: str, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Entries in order."""
        with self._in(account) as (db, number):
            rows = run(db, "scan", position(number, after), span(number)[1], limit).fetchall()
        return [entry_of(row, account) for row in rows]

    def thread(self, account: str, thread: str) -> Sequence[Entry]:
        """The entries of one thread."""
        with self._in(account) as (db, number):
            rows = run(db, "thread", thread, *span(number)).fetchall()
        return [entry_of(row, account) for row in rows]

    def tombstoned(self, account: str, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Which digests belong to erased content."""
        with self._in(account) as (db, _):
            return frozenset(digest for (digest,) in run(db, "tombstoned", hex_list(digests)))

    # The views --------------------------------------------------------------------------------------------------------

    def known(
        self, scope: Scope, md5s: Sequence[str], digests: Sequence[bytes], key: str | None,
        hashes: Sequence[bytes] = (), *, last: bool = False,
    ) -> Known:  # fmt: skip
        """What exactly this scope already holds."""
        return self._write.glance(lambda db: ledger.known(db, scope, md5s, digests, key, hashes, last=last))

    def held(
        self, scope: Scope, now: int, *, about: Sequence[tuple[str, str]] = (), kinds: Sequence[str] = ()
    ) -> Sequence[Fact]:
        """What exactly this scope holds of some subjects or kinds."""
        return self._write.glance(lambda db: ledger.held(db, scope, now, about, kinds))

    def texts(self, account: str, seqs: Sequence[int]) -> Mapping[bytes, str]:
        """What is embedded of the passages of these entries."""
        with self._in(account) as (db, number):
            rows = run(db, "texts", json_list([position(number, seq) for seq in seqs])).fetchall()
        return {digest: together(earlier, text) for digest, earlier, text in rows}

    def facts(self, find: Find) -> Sequence[Fact]:
        """The facts a scope held at a point in time, oldest first."""
        with self._in(find.scope.account) as (db, number):
            return visible(db, number, find, list(spaces_of(db, number, find.scope)))

    def fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """A thread's version at a point on both axes."""
        at = as_of or NOW
        bounds: dict[str, Any] = {"thread": thread, "seq": at.seq}
        with self._in(account) as (db, number):
            bounds |= {"base": base(number), "pos": position(number, at.seq), "valid": at.valid_at}
            name = "fact_latest" if at.valid_at is None else "fact_valid"
            rows = run_named(db, name, bounds).fetchall()
            found = Scopes(db, account).facts(rows)
        return found[0] if found else None

    def versions(self, account: str, seqs: Sequence[int]) -> Mapping[int, Fact]:
        """The fact versions asserted by these entries, oldest first."""
        asked = sorted({seq for seq in seqs if 0 < seq <= SEQ_MASK})
        return self._write.glance(lambda db: ledger.versions(db, self._write.noted(db), account, asked))

    def lives(self, scope: Scope) -> Sequence[Fact]:
        """Every version of every fact the scope covers."""
        with self._in(scope.account) as (db, number):
            rows = run(db, "lives", json_list(list(spaces_of(db, number, scope)))).fetchall()
            return Scopes(db, scope.account).facts(rows)

    def tellings(self, account: str, threads: Sequence[str]) -> Sequence[Fact]:
        """Every version of some threads."""
        with self._in(account) as (db, number):
            rows = run(db, "tellings", *span(number), json_list(threads)).fetchall()
            return Scopes(db, account).facts(rows)

    def links(self, account: str, nodes: Sequence[str], seq: int | None = None) -> Sequence[Link]:
        """The links that touch any of these nodes."""
        at = LATEST if seq is None else seq
        with self._in(account) as (db, number):
            bounds = {"nodes": json_list(nodes), "base": base(number), "pos": position(number, at), "seq": at}
            scopes = Scopes(db, account)
            return [link_of(row, scopes[row[4]]) for row in run_named(db, "links", bounds).fetchall()]

    def derived(self, account: str, evidence: Sequence[str]) -> Sequence[str]:
        """The threads taken from this evidence."""
        with self._in(account) as (db, number):
            return [thread for (thread,) in run(db, "derived", *span(number), json_list(evidence))]

    def taken(self, account: str, evidence: Sequence[str]) -> Sequence[Fact]:
        """Every version of the threads taken from this evidence."""
        with self._in(account) as (db, number):
            rows = run(db, "taken", *span(number), json_list(evidence)).fetchall()
            return Scopes(db, account).facts(rows)

    def scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something is left of."""
        with self._in(account) as (db, number):
            return turns.scopes(db, number, account)

    def tallies(self, account: str) -> Sequence[Tally]:
        """How much is in every exact scope."""
        with self._in(account) as (db, number):
            return turns.tallies(db, number, account)

    def turns(
        self, scope: Scope, after: int = 0, before: int = NEVER, limit: int = 1000, *, newest: bool = False
    ) -> Sequence[Turn]:
        """What exactly this scope holds of what was said, between two positions."""
        with self._in(scope.account) as (db, number):
            return turns.turns(db, number, scope, after, before, limit, newest=newest)

    def witnesses(self, account: str, *, scope: Scope | None = None, source: str | None = None,
                  ids: Sequence[str] = ()) -> Sequence[Witness]:  # fmt: skip
        """Evidence by scope, by source or by id."""
        with self._in(account) as (db, number):
            if scope is not None:
                rows = run(db, "evidence_by_space", json_list(list(spaces_of(db, number, scope))))
            elif source is not None:
                rows = run(db, "evidence_by_source", source, *span(number))
            else:
                rows = run(db, "evidence_named", *span(number), json_list(ids))
            scopes, wanted, asked = Scopes(db, account), set(ids), scope is not None or source is not None
            return [
                Witness(name, id_ - base(number), scopes[space], digest, said_by, tuple(json.loads(held)))
                for id_, name, space, digest, said_by, held in rows.fetchall()
                if source in (None, said_by) and (name in wanted or (not wanted and asked))
            ]

    def rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Every row of a view, for comparison."""
        with self._in(account) as (db, number):
            found = run(db, f"rows_{view}", *span(number)).fetchall()
            if view == "passages":
                found += run(db, "rows_postings", number).fetchall()
        return iter(found)

    def folded(self, account: str, after: int, upto: int) -> Sequence[Row]:
        """The rows the views have of some entries."""
        with self._in(account) as (db, number):
            return folded(db, number, account, after, upto)

    # Vectors ----------------------------------------------------------------------------------------------------------

    def model(self) -> tuple[str, int] | None:
        """The embedder this store is indexed with."""
        found = self._write.glance(lambda db: ledger.current(db, self._write.noted(db)))
        return None if found is None else (found.name, found.dim)

    def use_model(self, name: str, dim: int) -> None:
        """Bind the store to an embedder."""
        bound = self.model()
        if bound is None:
            self._write(lambda db: ledger.first_model(db, name, dim))
            bound = self.model()
        if bound != (name, dim) and bound is not None:
            raise ModelMismatch(
                f"The store was indexed with {bound[0]} ({bound[1]} dimensions), not {name} ({dim}).",
                hint=f"Open it with embedder={bound[0]!r}, or run `told reindex --embedder {name}` to embed it anew.",
            )

    def cached(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Which texts have a vector under the current model."""
        return self._write.glance(lambda db: vectors.cached(db, hashes))

    def pending(self, limit: int = 1000, model: str | None = None) -> Mapping[bytes, str]:
        """Texts without a vector under a model."""
        with self._database.reading() as db:
            chosen = vectors.current(db) if model is None else vectors.named(db, model)
            rows = run(db, "pending", 0 if chosen is None else chosen.id, limit).fetchall()
        return {digest: together(earlier, text) for digest, earlier, text in rows}

    def put_vectors(self, vectors_: Mapping[bytes, Sequence[float]], model: str | None = None) -> None:
        """Remember vectors by text hash."""
        self._write(lambda db: ledger.put_vectors(db, vectors_, model))

    def switch_model(self, name: str, dim: int) -> None:
        """Search with another model from now on."""
        self._write(lambda db: ledger.switch_model(db, name, dim))
        self.index.cache.clear()

    # Consumers --------------------------------------------------------------------------------------------------------

    def cursor(self, account: str, consumer: str) -> int:
        """How far a consumer has come."""
        with self._in(account) as (db, number):
            return run(db, "cursor", number, consumer).get or 0

    def advance(self, account: str, consumer: str, seq: int) -> None:
        """Move a consumer's cursor."""
        self._write(lambda db: ledger.advance(db, account, consumer, seq))

    def fault(self, account: str, consumer: str, seq: int, error: str, raw: str = "") -> None:
        """Keep what a consumer could not do."""
        at = self.mint.now()
        self._write(lambda db: ledger.fault(db, account, consumer, seq, error, raw, at))

    def settle(self, account: str, faults: Sequence[int]) -> int:
        """Forget faults that were mended or given up; how many there were."""
        return self._write(lambda db: ledger.settle(db, account, faults))

    def faults(self, account: str) -> Sequence[Fault]:
        """What consumers could not do."""
        with self._in(account) as (db, number):
            return [Fault(row[0], account, *row[1:]) for row in run(db, "faults", number)]

    # Blobs ------------------------------------------------------------------------------------------------------------

    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Keep bytes under their hash, once."""
        blob = Blob.of(data, media_type)
        self._write(lambda db: blobs.put(db, ledger.account_of(db, account).id, [blob]))
        return blob.hash

    def blob(self, account: str, hash: str) -> Blob | None:
        """A blob with its bytes."""
        with self._in(account) as (db, number):
            return blobs.get(db, number, hash)

    def blobs(self, account: str) -> Sequence[Blob]:
        """Every blob without its bytes."""
        with self._in(account) as (db, number):
            return blobs.listed(db, number)

    def drop_blob(self, account: str, hash: str) -> bool:
        """Destroy a blob."""
        return self._write(lambda db: blobs.drop(db, account, hash))

    # Recalls ----------------------------------------------------------------------------------------------------------

    def touched(self, account: str, threads: Sequence[str]) -> Mapping[str, Touch]:
        """How often threads were recalled."""
        with self._in(account) as (db, number):
            rows = run(db, "touched", number, json_list(threads)).fetchall()
        return {thread: Touch(count, last) for thread, count, last in rows}

    # Care -------------------------------------------------------------------------------------------------------------

    def check(self) -> Sequence[str]:
        """Problems of the file and of the index."""
        with self._database.reading() as db:
            return health.check(db)

    def mistyped(self) -> Sequence[str]:
        """The tables with values in them that no row of theirs can have."""
        with self._database.reading() as db:
            return list(strays.mistyped(db))

    def repair(self) -> int:
        """Make damaged parts of the index anew; return how many there were."""
        dropped = self._write(health.repair)
        self.index.cache.clear()
        return dropped

    def stats(self, account: str) -> Mapping[str, Any]:
        """Counts and sizes."""
        with self._in(account) as (db, number):
            return care.stats(db, number or None, self.path)

    def backup(self, target: Path) -> None:
        """Write a consistent copy while others go on."""
        with self._database.lent() as db:
            care.backup(db, target)

    def close(self) -> None:
        """Close every connection, once the write that is going on is done; closing twice is fine."""
        self._write.close()


def open_store(url: str, *, mint: Mint | None = None, settings: Mapping[str, Any] | None = None) -> SqliteStore:
    """Open the store a `sqlite:///` URL names, making it if it is not there."""
    return SqliteStore(path_of(url), mint or Mint(), settings or {})
