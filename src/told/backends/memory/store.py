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

from told.backends.memory.account import (
    InMemoryAccount,
    check_guards,
    copy_row,
    hash_embedded_texts,
    quantise_vectors,
    require_dimension,
    require_encodable,
)
from told.backends.memory.overlay import InMemoryOverlay, InMemoryTurns, with_lock
from told.errors import ConfigError, Conflict, ModelMismatch, Unsupported
from told.ids import IdGenerator, hash_text
from told.model.entry import Blob, Draft, Entry
from told.model.fact import NEVER, UNLISTED_KINDS, EvidenceRow, Fact, Link, Passage
from told.model.filter import matches_filter, to_record
from told.model.query import (
    AccessCount,
    AsOf,
    FactQuery,
    IndexQuery,
    IndexResult,
    RankedList,
    select_version,
)
from told.model.scope import Scope
from told.model.scoring import (
    CorpusStatistics,
    PassageOrigin,
    PassageScorer,
    TurnOrder,
    best_ranks,
    build_query_statistics,
    compute_centroid,
    count_term_frequencies,
    encode_query,
    sum_codes,
)
from told.ports import Batch, ExistingState, Fault, Fold, Head, Index, View, ViewRow
from told.text.tokens import extract_terms


def select_visible(account: InMemoryAccount, query: FactQuery) -> Sequence[Fact]:
    """The facts a scope can see at a point in time, oldest first, before any filter on what they say."""
    threads: dict[str, list[Fact]] = {}
    for fact in account.facts.values():
        if query.scope.covers(fact.scope):
            threads.setdefault(fact.id, []).append(fact)
    current = [
        current
        for versions in threads.values()
        if (current := select_version(versions, query.as_of)) is not None
    ]
    unexpired = [fact for fact in current if query.show_expired or fact.expires > query.as_of.at]
    return sorted(unexpired, key=lambda fact: fact.seq)


def apply_filter(facts: Sequence[Fact], query: FactQuery) -> Sequence[Fact]:
    """Those of the facts that the find's filter lets through."""
    return [fact for fact in facts if matches_filter(query.filter, to_record(fact))]


def search_account(
    account: InMemoryAccount, vectors: Mapping[bytes, bytes], index_query: IndexQuery
) -> IndexResult:
    """The best `depth` of each retriever among what the find lets through; its limit plays no part.

    The statistics are those of every memory the find sees before its filter, so that a filter moves no score.
    """
    current = {fact.seq: fact for fact in select_visible(account, index_query.query)}
    passages = {
        key: passage for key, passage in sorted(account.passages.items()) if key[0] in current
    }
    matching = {fact.seq for fact in apply_filter(list(current.values()), index_query.query)}
    tokens = {key: extract_terms(passage.text) for key, passage in passages.items()}
    counts = {key: count_term_frequencies(words) for key, words in tokens.items()}
    all_codes = {
        key: vectors.get(hash_text(account.build_embedded_text(passage)), b"")
        for key, passage in passages.items()
    }
    codes = {key: code for key, code in all_codes.items() if any(code)}
    previous = {
        key: (other.seq, other.slot)
        for key, passage in passages.items()
        if (other := account.find_previous_passage(passage)) is not None
    }
    listed = [key for key in passages if current[key[0]].kind not in UNLISTED_KINDS]
    needs_centre = index_query.centre and index_query.vector is not None
    vector_sum = (
        sum_codes(codes[key] for key in listed if key in codes) if needs_centre else ((), 0)
    )
    statistics = build_query_statistics(
        index_query,
        b"" if index_query.vector is None else encode_query(index_query.vector),
        CorpusStatistics(len(listed), sum(len(tokens[key]) for key in listed)),
        [sum(term in counts[key] for key in listed) for term in dict.fromkeys(index_query.terms)],
        [fact.actor for fact in current.values() if fact.actor],
        compute_centroid(*vector_sum),
        vector_sum[1],
    )
    turns = TurnOrder.from_previous(
        {key: other_key for key, other_key in previous.items() if other_key in passages}
    )
    scorer = PassageScorer(
        statistics, {key: len(words) for key, words in tokens.items()}, counts, codes, turns
    )
    voices = {
        key: _build_voice(current[key[0]], passage, account)
        for key, passage in passages.items()
        if key[0] in matching
    }
    return replace(_rank_matches(scorer, voices), has_links=bool(account.links))


def _build_voice(fact: Fact, passage: Passage, account: InMemoryAccount) -> PassageOrigin:
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    first = passage
    while (previous := account.find_previous_passage(first)) is not None:
        first = previous
    return PassageOrigin(fact.seq, passage.slot, said_at, first.seq, fact.role, fact.actor)


def _rank_matches(
    scorer: PassageScorer[tuple[int, int]], voices: Mapping[tuple[int, int], PassageOrigin]
) -> IndexResult:
    vector_hits = scorer.rank_best(scorer.centred_cosines, voices)
    word_hits = scorer.rank_best(
        {key: score for key, score in scorer.bm25_scores.items() if score > 0.0}, voices
    )
    vector_ranks, word_ranks = (
        {key: rank for rank, (_, key) in enumerate(hits, 1)} for hits in (vector_hits, word_hits)
    )
    keys = scorer.select_candidates(best_ranks(vector_ranks, word_ranks), voices)
    candidates = [
        scorer.build_candidate(key, voices[key], vector_ranks.get(key), word_ranks.get(key))
        for key in keys
    ]
    statistics = scorer.stats
    return IndexResult(
        RankedList(
            bool(vector_hits), lambda: ((key[0], scorer.cosines[key]) for _, key in vector_hits)
        ),
        RankedList(bool(word_hits), lambda: ((key[0], score) for score, key in word_hits)),
        candidates,
        statistics.named_speakers,
        statistics.total_weight,
        statistics.centroid.length,
        statistics.passage_count,
    )


def open_store(url: str, *, mint: IdGenerator | None = None, **_: Any) -> InMemoryStore:
    """A new empty store in memory; options for stores on disk mean nothing here."""
    if url not in ("ram:", "ram://"):
        raise ConfigError(
            f"A ram store has no place of its own, unlike {url!r}.", hint="Write ram://."
        )
    return InMemoryStore(mint)


class InMemoryStore(InMemoryOverlay, InMemoryTurns):
    """The ledger, its views and its index, for as long as the process lives."""

    def __init__(self, mint: IdGenerator | None = None) -> None:
        super().__init__()
        self.mint = mint or IdGenerator()
        self.index: Index = self
        self._model: tuple[str, int] | None = None
        self._vectors: dict[str, dict[bytes, bytes]] = {}
        self._fault_count = 0

    def _collect_erased_digests(self) -> set[bytes]:
        return {digest for state in self._accounts.values() for digest in state.tombstones}

    # Write

    @with_lock
    def commit(self, batch: Batch, fold: Fold) -> Sequence[Entry]:
        """Seal the drafts, fold them and remember the ticket and the vectors, or raise and do nothing."""
        require_encodable(batch.account)
        state = self._get_account(batch.account).copy()
        if batch.idempotency is not None:
            require_encodable(batch.idempotency.key, batch.idempotency.outcome)
        require_encodable(*batch.notes)
        check_guards(state, batch)
        is_current_model = bool(batch.vectors) and batch.model in (None, self._require_model()[0])
        vectors = quantise_vectors(batch.vectors, self._require_model()) if is_current_model else {}
        entries = state.append_drafts(batch.drafts, self.mint)
        state.fold_entries(entries, fold)
        if batch.step is not None:
            state.cursors[batch.step.consumer] = batch.step.after
            state.overlay.write_notes(batch.step.consumer, batch.notes)
        if batch.idempotency is not None:
            ticket = replace(batch.idempotency, seq=state.head.seq if entries else 0)
            state.tickets[ticket.key] = ticket
        state.blobs = {**{blob.hash: blob for blob in batch.blobs}, **state.blobs}
        self._accounts[batch.account] = state
        self._current_vectors().update(vectors)
        return state.decode_entries(entries)

    @with_lock
    def import_entries(self, account: str, entries: Sequence[Entry], fold: Fold) -> int:
        """Append entries sealed elsewhere; a tombstone among them erases here too."""
        require_encodable(account)
        state = self._get_account(account).copy()
        head_before = state.head.seq
        state.import_entries(entries, self._collect_erased_digests())
        new_entries = state.entries[head_before:]
        state.fold_entries(new_entries, fold)
        hashes_before = hash_embedded_texts(state)
        state.apply_tombstones(new_entries)
        self._accounts[account] = state
        self._drop_unused_vectors(hashes_before)
        return len(new_entries)

    @with_lock
    def erase(
        self, account: str, seqs: Sequence[int], draft: Draft
    ) -> tuple[Entry, Mapping[str, int]]:
        """Destroy the content of entries with all that was derived from it, and append the tombstone."""
        state = self._get_account(account).copy()
        hashes_before = hash_embedded_texts(state)
        counts = state.erase_entries(seqs)
        [tombstone] = state.decode_entries(state.append_drafts([draft], self.mint))
        self._accounts[account] = state
        return tombstone, {**counts, "vectors": self._drop_unused_vectors(hashes_before)}

    def scrub(self) -> Sequence[str]:
        """Nothing to do: what is destroyed in memory leaves no trace."""
        return ()

    @with_lock
    def reset(self, account: str, draft: Draft) -> Entry:
        """Begin the account's ledger anew; what was erased stays erased, and so does all that is destroyed now."""
        require_encodable(account)
        old_state = self._get_account(account)
        hashes_before = hash_embedded_texts(old_state)
        state = InMemoryAccount(
            account, tombstones=old_state.tombstones | {entry.digest for entry in old_state.entries}
        )
        [entry] = state.decode_entries(state.append_drafts([draft], self.mint))
        self._accounts[account] = state
        self._drop_unused_vectors(hashes_before)
        return entry

    @with_lock
    def rebuild(self, account: str, views: Sequence[View], fold: Fold) -> Mapping[str, int]:
        """Fold views again from the ledger."""
        state = self._get_account(account).copy()
        state.clear_views(views)
        state.fold_entries(state.entries, fold, views)
        state.repair()
        self._accounts[account] = state
        return {view: len(state.dump_view(view)) for view in views}

    @with_lock
    def stale_views(self, account: str) -> Sequence[View]:
        """None: nothing here is older than the views."""
        return ()

    # Read the ledger

    @with_lock
    def list_accounts(self) -> Sequence[str]:
        """Every account that has a ledger, by name."""
        return sorted(name for name, state in self._accounts.items() if state.entries)

    @with_lock
    def get_head(self, account: str) -> Head:
        """The end of the account's ledger."""
        return self._get_account(account).head

    @with_lock
    def position_at(self, account: str, at: int) -> int:
        """The last position written at or before an instant."""
        return max(
            (entry.seq for entry in self._get_account(account).entries if entry.at <= at), default=0
        )

    @with_lock
    def scan_entries(self, account: str, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Entries in order."""
        state = self._get_account(account)
        return state.decode_entries(
            islice((entry for entry in state.entries if entry.seq > after), limit)
        )

    @with_lock
    def thread_entries(self, account: str, thread: str) -> Sequence[Entry]:
        """The entries of one thread."""
        state = self._get_account(account)
        return state.decode_entries(entry for entry in state.entries if entry.thread == thread)

    @with_lock
    def tombstoned_digests(self, account: str, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Which digests belong to erased content; a digest is salted, so it names one entry in whatever account."""
        return frozenset(self._collect_erased_digests().intersection(digests))

    # Read the views

    @with_lock
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
        """What exactly this scope already holds, a ticket, which hashes have a vector, the last turn, the model."""
        state = self._get_account(scope.account)
        facts = {md5: state.find_current_by_md5(scope, md5) for md5 in md5s}
        evidence = {digest: state.find_evidence(scope, digest) for digest in digests}
        ticket = None if key is None else state.tickets.get(key)
        return ExistingState(
            state.head.seq,
            {md5: copy_row(fact) for md5, fact in facts.items() if fact is not None},
            {digest: witness.id for digest, witness in evidence.items() if witness is not None},
            ticket,
            state.find_last_turn(scope) if include_last_turn else None,
            self.embedded_hashes(text_hashes),
            self.current_model(),
        )

    @with_lock
    def current_facts(
        self,
        scope: Scope,
        now: int,
        *,
        slots: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] = (),
    ) -> Sequence[Fact]:
        """What exactly this scope holds of some subjects or kinds."""
        current = self._get_account(scope.account).find_current_facts(
            scope, set(slots), set(kinds) - {"memory"}
        )
        return [copy_row(fact) for fact in current if fact.expires > now]

    @with_lock
    def passage_texts(self, account: str, seqs: Sequence[int]) -> Mapping[bytes, str]:
        """What is embedded of the passages of entries, by hash."""
        state, wanted = self._get_account(account), set(seqs)
        texts = [
            state.build_embedded_text(passage)
            for passage in state.passages.values()
            if passage.seq in wanted
        ]
        return {hash_text(text): text for text in texts}

    @with_lock
    def find_facts(self, query: FactQuery) -> Sequence[Fact]:
        """The facts a scope held at a point in time, oldest first."""
        visible_facts = select_visible(self._get_account(query.scope.account), query)
        matching = apply_filter([fact for fact in visible_facts if fact.seq > query.after], query)
        return list(map(copy_row, matching[query.offset :][: query.limit]))

    @with_lock
    def get_fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """The version that counts at a point on both axes, expired or not."""
        state = self._get_account(account)
        version = (
            state.find_latest(thread)
            if as_of is None
            else select_version(state.list_versions(thread), as_of)
        )
        return None if version is None else copy_row(version)

    @with_lock
    def facts_by_seq(self, account: str, seqs: Sequence[int]) -> Mapping[int, Fact]:
        """The versions asserted by entries."""
        facts = self._get_account(account).facts
        return {seq: copy_row(facts[seq]) for seq in seqs if seq in facts}

    @with_lock
    def all_versions(self, scope: Scope) -> Sequence[Fact]:
        """Every version the scope covers, closed and retracted ones too."""
        return [
            copy_row(fact)
            for fact in self._get_account(scope.account).facts.values()
            if scope.covers(fact.scope)
        ]

    @with_lock
    def thread_versions(self, account: str, threads: Sequence[str]) -> Sequence[Fact]:
        """Every version of some threads, in ledger order."""
        versions = [
            fact
            for fact in self._get_account(account).facts.values()
            if fact.id in frozenset(threads)
        ]
        return [copy_row(fact) for fact in sorted(versions, key=lambda fact: fact.seq)]

    @with_lock
    def find_links(
        self, account: str, nodes: Sequence[str], seq: int | None = None
    ) -> Sequence[Link]:
        """The links that touch any of the nodes at a position."""
        position, wanted = NEVER - 1 if seq is None else seq, set(nodes)
        return [
            copy_row(link)
            for link in self._get_account(account).links
            if wanted & {link.src, link.dst} and link.seq <= position < link.until
        ]

    @with_lock
    def threads_from_evidence(self, account: str, evidence: Sequence[str]) -> Sequence[str]:
        """The threads that have a version taken from any of this evidence, in ledger order."""
        wanted = set(evidence)
        facts = sorted(self._get_account(account).facts.values(), key=lambda fact: fact.seq)
        return list(dict.fromkeys(fact.id for fact in facts if fact.evidence in wanted))

    @with_lock
    def facts_from_evidence(self, account: str, evidence: Sequence[str]) -> Sequence[Fact]:
        """Every version of the threads taken from this evidence, in ledger order."""
        threads, facts = (
            set(self.threads_from_evidence(account, evidence)),
            self._get_account(account).facts.values(),
        )
        return [
            copy_row(fact)
            for fact in sorted(facts, key=lambda fact: fact.seq)
            if fact.id in threads
        ]

    @with_lock
    def evidence_rows(
        self,
        account: str,
        *,
        scope: Scope | None = None,
        source: str | None = None,
        ids: Sequence[str] = (),
    ) -> Sequence[EvidenceRow]:
        """The evidence that meets every condition given; with none there is nothing to find."""
        if scope is None and source is None and not ids:
            return []
        return [
            witness
            for witness in self._get_account(account).evidence.values()
            if (scope is None or scope.covers(witness.scope))
            and (source is None or witness.source == source)
            and (not ids or witness.id in ids)
        ]

    @with_lock
    def view_rows(self, account: str, view: View) -> Iterator[tuple[Any, ...]]:
        """Every row of a view in ledger order, each the plain values of its fields."""
        return iter(self._get_account(account).dump_view(view))

    @with_lock
    def rows_between(self, account: str, after: int, upto: int) -> Sequence[ViewRow]:
        """The rows the views have of some entries."""
        return self._get_account(account).list_rows_between(after, upto)

    @with_lock
    def search(self, index_query: IndexQuery) -> IndexResult:
        """The best of each retriever."""
        if index_query.vector is not None and self._model is not None:
            require_dimension(index_query.vector, *self._model)
            if index_query.model not in (None, self._model[0]):
                raise ModelMismatch(
                    f"The store is indexed with {self._model[0]}, not with {index_query.model}."
                )
        return search_account(
            self._get_account(index_query.query.scope.account), self._current_vectors(), index_query
        )

    # Vectors

    def _require_model(self) -> tuple[str, int]:
        if self._model is None:
            raise ModelMismatch(
                "The store is bound to no embedder yet.", hint="Call use_model() first."
            )
        return self._model

    def _current_vectors(self) -> dict[bytes, bytes]:
        return {} if self._model is None else self._vectors.setdefault(self._model[0], {})

    def _drop_unused_vectors(self, hashes: Iterable[bytes]) -> int:
        """Drop the vectors of those texts that no passage has any more, under every model."""
        unused = set(hashes).difference(*map(hash_embedded_texts, self._accounts.values()))
        dropped = [
            (vectors, key) for vectors in self._vectors.values() for key in unused & vectors.keys()
        ]
        for vectors, key in dropped:
            del vectors[key]
        return len(dropped)

    @with_lock
    def current_model(self) -> tuple[str, int] | None:
        """The embedder the store is bound to."""
        return self._model

    @with_lock
    def bind_model(self, name: str, dim: int) -> None:
        """Bind the store to its first embedder, or insist on it."""
        require_encodable(name)
        if self._model not in (None, (name, dim)):
            raise ModelMismatch(
                f"The store was indexed with {self._model[0]} ({self._model[1]} dimensions), not {name} ({dim}).",
                indexed_with=self._model[0],
            )
        self._model = (name, dim)

    @with_lock
    def embedded_hashes(self, hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Which texts have a vector under the current model."""
        return frozenset(self._current_vectors().keys() & set(hashes))

    @with_lock
    def pending_texts(self, limit: int = 1000, model: str | None = None) -> Mapping[bytes, str]:
        """Texts without a vector, account by account in ledger order."""
        embedded = self._current_vectors() if model is None else self._vectors.get(model, {})
        texts = {
            hash_text(text): text
            for _, state in sorted(self._accounts.items())
            for text in map(state.build_embedded_text, state.passages.values())
        }
        return dict(
            islice(((key, text) for key, text in texts.items() if key not in embedded), limit)
        )

    @with_lock
    def put_vectors(
        self, vectors: Mapping[bytes, Sequence[float]], model: str | None = None
    ) -> None:
        """Remember vectors under the current model or another one; another one's dimension is checked by the switch."""
        require_encodable(model or "")
        is_current = model is None or (self._model is not None and model == self._model[0])
        codes = quantise_vectors(vectors, self._require_model() if is_current else None)
        hashes = set[bytes]().union(*map(hash_embedded_texts, self._accounts.values()))
        used = {key: code for key, code in codes.items() if key in hashes}
        self._vectors.setdefault(model or self._require_model()[0], {}).update(used)

    @with_lock
    def switch_model(self, name: str, dim: int) -> None:
        """Search with another model from now on and forget the vectors of all others."""
        require_encodable(name)
        vectors = self._vectors.get(name, {})
        if missing := len(self.pending_texts(NEVER, name)):
            raise Conflict(
                f"{missing} texts have no vector under {name} yet.",
                hint="Embed what is pending first.",
            )
        for vector in vectors.values():
            require_dimension(vector, name, dim)
        self._model = (name, dim)
        self._vectors = {name: vectors}

    # Consumers

    @with_lock
    def get_cursor(self, account: str, consumer: str) -> int:
        """How far a consumer has come."""
        return self._get_account(account).cursors.get(consumer, 0)

    @with_lock
    def advance_cursor(self, account: str, consumer: str, seq: int) -> None:
        """Move a consumer's cursor."""
        require_encodable(account, consumer)
        self._get_or_create_account(account).cursors[consumer] = seq

    @with_lock
    def record_fault(
        self, account: str, consumer: str, seq: int, error: str, raw: str = ""
    ) -> None:
        """Keep what a consumer could not do; the same again is one more attempt."""
        require_encodable(account, consumer, error, raw)
        faults = self._get_or_create_account(account).faults
        self._fault_count += 1
        previous = faults.get((consumer, seq)) or Fault(
            self._fault_count, account, consumer, seq, error, 0, 0
        )
        faults[consumer, seq] = replace(
            previous, error=error, raw=raw, at=self.mint.now(), attempts=previous.attempts + 1
        )

    @with_lock
    def clear_faults(self, account: str, fault_ids: Sequence[int]) -> int:
        """Forget faults that were mended or given up; how many there were."""
        stored = self._get_account(account).faults
        matching = [key for key, fault in stored.items() if fault.id in fault_ids]
        for key in matching:
            del stored[key]
        return len(matching)

    @with_lock
    def list_faults(self, account: str) -> Sequence[Fault]:
        """What consumers could not do, in the order it first happened."""
        return list(self._get_account(account).faults.values())

    # Blobs

    @with_lock
    def put_blob(self, account: str, data: bytes, media_type: str) -> str:
        """Keep bytes under their hash, once."""
        require_encodable(account, media_type)
        blob = Blob.from_bytes(data, media_type)
        self._get_or_create_account(account).blobs.setdefault(blob.hash, blob)
        return blob.hash

    @with_lock
    def get_blob(self, account: str, hash: str) -> Blob | None:
        """A blob with its bytes."""
        return self._get_account(account).blobs.get(hash)

    @with_lock
    def list_blobs(self, account: str) -> Sequence[Blob]:
        """Every blob without its bytes."""
        return [
            replace(blob, data=b"") for _, blob in sorted(self._get_account(account).blobs.items())
        ]

    @with_lock
    def drop_blob(self, account: str, hash: str) -> bool:
        """Destroy a blob."""
        return self._get_account(account).blobs.pop(hash, None) is not None

    # Recalls

    @with_lock
    def access_counts(self, account: str, threads: Sequence[str]) -> Mapping[str, AccessCount]:
        """How often threads were recalled."""
        counts = self._get_account(account).access_counts
        return {thread: counts[thread] for thread in threads if thread in counts}

    # Care

    @with_lock
    def check_integrity(self) -> Sequence[str]:
        """What does not fit together, account by account."""
        return [
            problem
            for _, state in sorted(self._accounts.items())
            for problem in state.find_problems()
        ]

    @with_lock
    def find_type_errors(self) -> Sequence[str]:
        """Nothing: rows are values of the right types."""
        return ()

    @with_lock
    def get_stats(self, account: str) -> Mapping[str, Any]:
        """Counts and sizes of one account."""
        model = None if self._model is None else {"name": self._model[0], "dim": self._model[1]}
        pending = len(self.pending_texts(NEVER)) if model else 0
        return {
            **self._get_account(account).compute_stats(),
            "model": model,
            "pending_vectors": pending,
        }

    @with_lock
    def backup(self, target: Path) -> NoReturn:
        """A store in memory has no file to copy."""
        raise Unsupported(
            f"A ram store has no file to copy to {target.parent}.",
            hint="Export its ledger instead.",
        )

    def close(self) -> None:
        """Refuse every further call; what was stored is gone."""
        with self._lock:
            self._closed = True
            self._accounts, self._vectors = {}, {}
