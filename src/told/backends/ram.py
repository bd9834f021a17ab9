"""The ram store: every storage port in plain Python, the executable specification and the oracle of the other stores.

One lock stands around every method. A write changes a copy of its account and puts it in place at the end, so nothing
is seen of a write that failed. Whatever is handed out is the caller's own: changing it changes nothing here. Nothing
outlives the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from told.backends.ram_account import Account
from told.backends.ram_index import filtered, search, visible
from told.backends.ram_overlay import RamOverlay
from told.backends.ram_rows import expected, fits, owned, quantised, storable, texts_of
from told.backends.ram_shelf import locked
from told.backends.ram_turns import RamTurns
from told.core.blob import Blob
from told.core.entry import Draft, Entry
from told.core.errors import ConfigError, Conflict, ModelMismatch, Unsupported
from told.core.fact import NEVER, Fact, Link, Witness
from told.core.ids import Mint, text_hash
from told.core.query import AsOf, Find, Probe, Ranked, Touch, counting
from told.core.scope import Scope
from told.ports import Batch, Fault, Fold, Head, Index, Known, Row, View


def open_store(url: str, *, mint: Mint | None = None, **_: Any) -> RamStore:
    """A new empty store in memory; options for stores on disk mean nothing here."""
    if url not in ("ram:", "ram://"):
        raise ConfigError(f"A ram store has no place of its own, unlike {url!r}.", hint="Write ram://.")
    return RamStore(mint)


class RamStore(RamOverlay, RamTurns):
    """The ledger, its views and its index, for as long as the process lives."""

    def __init__(self, mint: Mint | None = None) -> None:
        super().__init__()
        self.mint = mint or Mint()
        self.index: Index = self
        self._model: tuple[str, int] | None = None
        self._vectors: dict[str, dict[bytes, bytes]] = {}
        self._faults = 0

    def _buried(self) -> set[bytes]:
        return {digest for account in self._accounts.values() for digest in account.tombstones}

    # Write

    @locked
    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal the drafts, fold them and remember the ticket and the vectors, or raise and do nothing."""
        storable(batch.account)
        account = self._account(batch.account).copy()
        if batch.ticket is not None:
            storable(batch.ticket.key, batch.ticket.outcome)
        storable(*batch.notes)
        expected(account, batch)
        ours = bool(batch.vectors) and batch.model in (None, self._bound()[0])
        vectors = quantised(batch.vectors, self._bound()) if ours else {}
        entries = account.append(batch.drafts, self.mint)
        account.grow(entries, fold)
        if batch.step is not None:
            account.cursors[batch.step.consumer] = batch.step.after
            account.beside.note(batch.step.consumer, batch.notes)
        if batch.ticket is not None:
            ticket = replace(batch.ticket, seq=account.head.seq if entries else 0)
            account.tickets[ticket.key] = ticket
        account.blobs = {**{blob.hash: blob for blob in batch.blobs}, **account.blobs}
        self._accounts[batch.account] = account
        self._current().update(vectors)
        return account.told(entries)

    @locked
    def adopt(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere; a tombstone among them erases here too."""
        storable(account)
        changed = self._account(account).copy()
        before = changed.head.seq
        changed.adopt(entries, self._buried())
        new = changed.entries[before:]
        changed.grow(new, fold)
        texts = texts_of(changed)
        changed.obey(new)
        self._accounts[account] = changed
        self._forget(texts)
        return len(new)

    @locked
    def erase(self, account: str, seqs: Sequence[int], draft: Draft) -> tuple[Entry, Mapping[str, int]]:
        """Destroy the content of entries with all that was derived from it, and append the tombstone."""
        changed = self._account(account).copy()
        texts = texts_of(changed)
        counts = changed.destroy(seqs)
        [tombstone] = changed.told(changed.append([draft], self.mint))
        self._accounts[account] = changed
        return tombstone, {**counts, "vectors": self._forget(texts)}

    def scrub(self) -> Sequence[str]:
        """Nothing to do: what is destroyed in memory leaves no trace."""
        return ()

    @locked
    def reset(self, account: str, draft: Draft) -> Entry:
        """Begin the account's ledger anew; what was erased stays erased, and so does all that is destroyed now."""
        storable(account)
        before = self._account(account)
        texts = texts_of(before)
        changed = Account(account, tombstones=before.tombstones | {entry.digest for entry in before.entries})
        [entry] = changed.told(changed.append([draft], self.mint))
        self._accounts[account] = changed
        self._forget(texts)
        return entry

    @locked
    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Fold views again from the ledger."""
        changed = self._account(account).copy()
        changed.clear(views)
        changed.grow(changed.entries, fold, views)
        changed.mend()
        self._accounts[account] = changed
        return {view: len(changed.rows(view)) for view in views}

    @locked
    def behind(self, account: str) -> Sequence[View]:  # noqa: ARG002
        """None: nothing here is older than the views."""
        return ()

    # Read the ledger

    @locked
    def accounts(self) -> Sequence[str]:
        """Every account that has a ledger, by name."""
        return sorted(name for name, account in self._accounts.items() if account.entries)

    @locked
    def head(self, account: str) -> Head:
        """The end of the account's ledger."""
        return self._account(account).head

    @locked
    def position(self, account: str, at: int) -> int:
        """The last position written at or before an instant."""
        return max((entry.seq for entry in self._account(account).entries if entry.at <= at), default=0)

    @locked
    def scan(self, account: str, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Entries in order."""
        found = self._account(account)
        return found.told(islice((entry for entry in found.entries if entry.seq > after), limit))

    @locked
    def thread(self, account: str, thread: str) -> Sequence[Entry]:
        """The entries of one thread."""
        found = self._account(account)
        return found.told(entry for entry in found.entries if entry.thread == thread)

    @locked
    def tombstoned(self, account: str, digests: Sequence[bytes]) -> frozenset[bytes]:  # noqa: ARG002
        """Which digests belong to erased content; a digest is salted, so it names one entry in whatever account."""
        return frozenset(self._buried().intersection(digests))

    # Read the views

    @locked
    def known(
        self, scope: Scope, md5s: Sequence[str], digests: Sequence[bytes], key: str | None,
        hashes: Sequence[bytes] = (), *, last: bool = False,
    ) -> Known:  # fmt: skip
        """What exactly this scope already holds, a ticket, which hashes have a vector, the last turn, the model."""
        account = self._account(scope.account)
        facts = {md5: account.held(scope, md5) for md5 in md5s}
        evidence = {digest: account.witness(scope, digest) for digest in digests}
        ticket = None if key is None else account.tickets.get(key)
        return Known(
            account.head.seq,
            {md5: owned(fact) for md5, fact in facts.items() if fact is not None},
            {digest: witness.id for digest, witness in evidence.items() if witness is not None},
            ticket,
            account.newest(scope) if last else None,
            self.cached(hashes),
            self.model(),
        )

    @locked
    def held(
        self, scope: Scope, now: int, *, about: Sequence[tuple[str, str]] = (), kinds: Sequence[str] = ()
    ) -> Sequence[Fact]:
        """What exactly this scope holds of some subjects or kinds."""
        found = self._account(scope.account).about(scope, set(about), set(kinds) - {"memory"})
        return [owned(fact) for fact in found if fact.expires > now]

    @locked
    def texts(self, account: str, seqs: Sequence[int]) -> Mapping[bytes, str]:
        """What is embedded of the passages of entries, by hash."""
        known, asked = self._account(account), set(seqs)
        texts = [known.embedded(passage) for passage in known.passages.values() if passage.seq in asked]
        return {text_hash(text): text for text in texts}

    @locked
    def facts(self, find: Find) -> Sequence[Fact]:
        """The facts a scope held at a point in time, oldest first."""
        seen = visible(self._account(find.scope.account), find)
        found = filtered([fact for fact in seen if fact.seq > find.after], find)
        return list(map(owned, found[find.offset :][: find.limit]))

    @locked
    def fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """The version that counts at a point on both axes, expired or not."""
        known = self._account(account)
        found = known.latest(thread) if as_of is None else counting(known.versions(thread), as_of)
        return None if found is None else owned(found)

    @locked
    def versions(self, account: str, seqs: Sequence[int]) -> Mapping[int, Fact]:
        """The versions asserted by entries."""
        facts = self._account(account).facts
        return {seq: owned(facts[seq]) for seq in seqs if seq in facts}

    @locked
    def lives(self, scope: Scope) -> Sequence[Fact]:
        """Every version the scope covers, closed and retracted ones too."""
        return [owned(fact) for fact in self._account(scope.account).facts.values() if scope.covers(fact.scope)]

    @locked
    def tellings(self, account: str, threads: Sequence[str]) -> Sequence[Fact]:
        """Every version of some threads, in ledger order."""
        found = [fact for fact in self._account(account).facts.values() if fact.id in frozenset(threads)]
        return [owned(fact) for fact in sorted(found, key=lambda fact: fact.seq)]

    @locked
    def links(self, account: str, nodes: Sequence[str], seq: int | None = None) -> Sequence[Link]:
        """The links that touch any of the nodes at a position."""
        at, asked = NEVER - 1 if seq is None else seq, set(nodes)
        return [owned(x) for x in self._account(account).links if asked & {x.src, x.dst} and x.seq <= at < x.until]

    @locked
    def derived(self, account: str, evidence: Sequence[str]) -> Sequence[str]:
        """The threads that have a version taken from any of this evidence, in ledger order."""
        wanted = set(evidence)
        facts = sorted(self._account(account).facts.values(), key=lambda fact: fact.seq)
        return list(dict.fromkeys(fact.id for fact in facts if fact.evidence in wanted))

    @locked
    def taken(self, account: str, evidence: Sequence[str]) -> Sequence[Fact]:
        """Every version of the threads taken from this evidence, in ledger order."""
        threads, facts = set(self.derived(account, evidence)), self._account(account).facts.values()
        return [owned(fact) for fact in sorted(facts, key=lambda fact: fact.seq) if fact.id in threads]

    @locked
    def witnesses(
        self, account: str, *, scope: Scope | None = None, source: str | None = None, ids: Sequence[str] = ()
    ) -> Sequence[Witness]:
        """The evidence that meets every condition given; with none there is nothing to find."""
        if scope is None and source is None and not ids:
            return []
        return [
            witness
            for witness in self._account(account).evidence.values()
            if (scope is None or scope.covers(witness.scope))
            and (source is None or witness.source == source)
            and (not ids or witness.id in ids)
        ]

    @locked
    def rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Every row of a view in ledger order, each the plain values of its fields."""
        return iter(self._account(account).rows(view))

    @locked
    def folded(self, account: str, after: int, upto: int) -> Sequence[Row]:
        """The rows the views have of some entries."""
        return self._account(account).folded(after, upto)

    @locked
    def search(self, probe: Probe) -> Ranked:
        """The best of each retriever."""
        if probe.vector is not None and self._model is not None:
            fits(probe.vector, *self._model)
            if probe.model not in (None, self._model[0]):
                raise ModelMismatch(f"The store is indexed with {self._model[0]}, not with {probe.model}.")
        return search(self._account(probe.find.scope.account), self._current(), probe)

    # Vectors

    def _bound(self) -> tuple[str, int]:
        if self._model is None:
            raise ModelMismatch("The store is bound to no embedder yet.", hint="Call use_model() first.")
        return self._model

    def _current(self) -> dict[bytes, bytes]:
        return {} if self._model is None else self._vectors.setdefault(self._model[0], {})

    def _forget(self, texts: Iterable[bytes]) -> int:
        """Drop the vectors of those texts that no passage has any more, under every model."""
        strays = set(texts).difference(*map(texts_of, self._accounts.values()))
        gone = [(known, key) for known in self._vectors.values() for key in strays & known.keys()]
        for known, key in gone:
            del known[key]
        return len(gone)

    @locked
    def model(self) -> tuple[str, int] | None:
        """The embedder the store is bound to."""
        return self._model

    @locked
    def use_model(self, name: str, dim: int) -> None:
        """Bind the store to its first embedder, or insist on it."""
        storable(name)
        if self._model not in (None, (name, dim)):
            raise ModelMismatch(
                f"The store was indexed with {self._model[0]} ({self._model[1]} dimensions), not {name} ({dim}).",
                indexed_with=self._model[0],
            )
        self._model = (name, dim)

    @locked
    def cached(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Which texts have a vector under the current model."""
        return frozenset(self._current().keys() & set(hashes))

    @locked
    def pending(self, limit: int = 1000, model: str | None = None) -> Mapping[bytes, str]:
        """Texts without a vector, account by account in ledger order."""
        known = self._current() if model is None else self._vectors.get(model, {})
        texts = {
            text_hash(text): text
            for _, account in sorted(self._accounts.items())
            for text in map(account.embedded, account.passages.values())
        }
        return dict(islice(((key, text) for key, text in texts.items() if key not in known), limit))

    @locked
    def put_vectors(self, vectors: Mapping[bytes, Sequence[float]], model: str | None = None) -> None:
        """Remember vectors under the current model or another one; another one's dimension is checked by the switch."""
        storable(model or "")
        current = model is None or (self._model is not None and model == self._model[0])
        found = quantised(vectors, self._bound() if current else None)
        known = set[bytes]().union(*map(texts_of, self._accounts.values()))
        kept = {key: code for key, code in found.items() if key in known}
        self._vectors.setdefault(model or self._bound()[0], {}).update(kept)

    @locked
    def switch_model(self, name: str, dim: int) -> None:
        """Search with another model from now on and forget the vectors of all others."""
        storable(name)
        vectors = self._vectors.get(name, {})
        if missing := len(self.pending(NEVER, name)):
            raise Conflict(f"{missing} texts have no vector under {name} yet.", hint="Embed what is pending first.")
        for vector in vectors.values():
            fits(vector, name, dim)
        self._model = (name, dim)
        self._vectors = {name: vectors}

    # Consumers

    @locked
    def cursor(self, account: str, consumer: str) -> int:
        """How far a consumer has come."""
        return self._account(account).cursors.get(consumer, 0)

    @locked
    def advance(self, account: str, consumer: str, seq: int) -> None:
        """Move a consumer's cursor."""
        storable(account, consumer)
        self._own(account).cursors[consumer] = seq

    @locked
    def fault(self, account: str, consumer: str, seq: int, error: str, raw: str = "") -> None:
        """Keep what a consumer could not do; the same again is one more attempt."""
        storable(account, consumer, error, raw)
        faults = self._own(account).faults
        self._faults += 1
        known = faults.get((consumer, seq)) or Fault(self._faults, account, consumer, seq, error, 0, 0)
        faults[consumer, seq] = replace(known, error=error, raw=raw, at=self.mint.now(), attempts=known.attempts + 1)

    @locked
    def settle(self, account: str, faults: Sequence[int]) -> int:
        """Forget faults that were mended or given up; how many there were."""
        held = self._account(account).faults
        done = [key for key, fault in held.items() if fault.id in faults]
        for key in done:
            del held[key]
        return len(done)

    @locked
    def faults(self, account: str) -> Sequence[Fault]:
        """What consumers could not do, in the order it first happened."""
        return list(self._account(account).faults.values())

    # Blobs

    @locked
    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Keep bytes under their hash, once."""
        storable(account, media_type)
        blob = Blob.of(data, media_type)
        self._own(account).blobs.setdefault(blob.hash, blob)
        return blob.hash

    @locked
    def blob(self, account: str, hash: str) -> Blob | None:
        """A blob with its bytes."""
        return self._account(account).blobs.get(hash)

    @locked
    def blobs(self, account: str) -> Sequence[Blob]:
        """Every blob without its bytes."""
        return [replace(blob, data=b"") for _, blob in sorted(self._account(account).blobs.items())]

    @locked
    def drop_blob(self, account: str, hash: str) -> bool:
        """Destroy a blob."""
        return self._account(account).blobs.pop(hash, None) is not None

    # Recalls

    @locked
    def touched(self, account: str, threads: Sequence[str]) -> Mapping[str, Touch]:
        """How often threads were recalled."""
        known = self._account(account).recalls
        return {thread: known[thread] for thread in threads if thread in known}

    # Care

    @locked
    def check(self) -> Sequence[str]:
        """What does not fit together, account by account."""
        return [problem for _, account in sorted(self._accounts.items()) for problem in account.problems()]

    @locked
    def mistyped(self) -> Sequence[str]:
        """Nothing: rows are values of the right types."""
        return ()

    @locked
    def stats(self, account: str) -> Mapping[str, Any]:
        """Counts and sizes of one account."""
        model = None if self._model is None else {"name": self._model[0], "dim": self._model[1]}
        pending = len(self.pending(NEVER)) if model else 0
        return {**self._account(account).stats(), "model": model, "pending_vectors": pending}

    @locked
    def backup(self, target: Path) -> NoReturn:
        """A store in memory has no file to copy."""
        raise Unsupported(f"A ram store has no file to copy to {target.parent}.", hint="Export its ledger instead.")

    def close(self) -> None:
        """Refuse every further call; what was stored is gone."""
        with self._lock:
            self._closed = True
            self._accounts, self._vectors = {}, {}
