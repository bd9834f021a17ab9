"""Laws of moving: adopting a ledger from elsewhere, beginning anew, and building views again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from told.errors import Conflict, Diverged, StoreCorrupt
from told.ids import hash_content, hash_text, sha256
from told.model.entry import (
    GENESIS,
    Blob,
    Draft,
    Entry,
    Evidence,
    Observed,
    Ruled,
    compute_chain_hash,
    seal_entry,
)
from told.model.scope import Scope
from told.ports import VIEWS, Batch, NoEvidence, View
from told.testing.contract.erasure import erase_entries
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    assert_chained,
    make_idempotency_record,
)
from told.testing.fakes import ManualClock

RESET_DRAFT = Draft(Ruled("ledger", "reset", {}), None, author="told")


def import_entries(harness: AccountHarness, entries: Sequence[Entry]) -> int:
    """Adopt entries into the scribe's account."""
    return harness.store.import_entries(harness.account, entries, harness.folding(VIEWS))


def write_random_history(harness: AccountHarness, seed: int, steps: int = 40) -> None:
    """A random but replayable life: claims, updates, retractions, evidence, links and a few erasures."""
    random = Random(seed)
    for step in range(steps):
        thread, scope = f"t{random.randrange(6)}", random.choice([ALICE, BOB])
        match random.randrange(8):
            case 0:
                harness.add_evidence(f"said {step}", f"e{step}", scope)
            case 1:
                harness.retract_thread(thread)
            case 2:
                harness.add_link(f"e{random.randrange(steps)}", "supports", thread)
            case 3 if harness.head_seq:
                erase_entries(
                    harness, sorted({random.randint(1, harness.head_seq) for _ in range(2)})
                )
            case _:
                harness.assert_claim(
                    f"claim {step}",
                    thread,
                    scope,
                    evidence=random.choice([None, f"e{random.randrange(steps)}"]),
                )


class ImportRebuildContract(ContractBase):
    """A ledger is the same ledger wherever it stands, and a view is nothing but its fold."""

    # Adopting

    def test_an_imported_ledger_equals_its_source(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.add_evidence("said", "e1")
        source.assert_claim("claimed", "t1", evidence="e1", meta={"n": 1})
        source.assert_claim("claimed anew", "t1")
        assert import_entries(target, source.list_entries()) == 3
        assert list(target.list_entries()) == list(source.list_entries())
        assert target.store.get_head(ACCOUNT) == source.store.get_head(ACCOUNT)
        assert target.dump_views() == source.dump_views()
        assert target.search_texts("claimed") == source.search_texts("claimed")

    def test_importing_skips_existing_entries(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one")
        import_entries(target, source.list_entries())
        source.assert_claim("two")
        assert import_entries(target, source.list_entries()) == 1
        assert import_entries(target, source.list_entries()) == 0
        assert target.list_texts() == ["one", "two"]

    def test_an_imported_ledger_can_be_extended(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one", "t1")
        import_entries(target, source.list_entries())
        target.assert_claim("two", "t1")
        assert_chained(target.list_entries())
        assert import_entries(source, target.list_entries()) == 1
        assert source.list_texts() == ["two"]

    def test_a_ledger_can_be_imported_under_another_account_name(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source = open_harness()
        source.assert_claim("ours")
        target = self.use_account(open_harness(), "umbrella")
        import_entries(target, source.list_entries())
        assert target.list_texts(Scope("umbrella", user_id="alice")) == ["ours"]
        assert list(target.store.list_accounts()) == ["umbrella"]
        assert target.list_texts(ALICE) == []

    def test_importing_a_diverged_ledger_is_refused(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one")
        source.assert_claim("two")
        target.assert_claim("another one")
        before = target.dump_views(), list(target.list_entries())
        with pytest.raises(Diverged):
            import_entries(target, source.list_entries())
        assert (target.dump_views(), list(target.list_entries())) == before

    @pytest.mark.parametrize(
        "damage",
        [
            lambda entries: [
                entries[0],
                replace(entries[1], envelope=entries[0].envelope),
                entries[2],
            ],
            lambda entries: [entries[0], replace(entries[1], salt=bytes(16)), entries[2]],
            lambda entries: [entries[0], replace(entries[1], digest=sha256(b"x")), entries[2]],
            lambda entries: [entries[0], replace(entries[1], at=entries[1].at + 1), entries[2]],
            lambda entries: [entries[0], replace(entries[1], sort="retracted"), entries[2]],
            lambda entries: [entries[0], replace(entries[2], seq=2)],
        ],
        ids=["envelope", "salt", "digest", "instant", "sort", "missing"],
    )
    def test_importing_a_damaged_entry_is_refused(
        self,
        open_harness: Callable[[], AccountHarness],
        damage: Callable[[Sequence[Entry]], Sequence[Entry]],
    ) -> None:
        source, target = open_harness(), open_harness()
        for number in range(3):
            source.assert_claim(f"fact {number}")
        with pytest.raises(StoreCorrupt, match=r"\b2\b"):
            import_entries(target, damage(source.list_entries()))
        assert target.head_seq == 0
        assert target.list_texts() == []

    def test_importing_a_gap_is_refused(self, open_harness: Callable[[], AccountHarness]) -> None:
        source, target = open_harness(), open_harness()
        for number in range(3):
            source.assert_claim(f"fact {number}")
        import_entries(target, source.list_entries()[:1])
        with pytest.raises(StoreCorrupt, match=r"\b3\b"):
            import_entries(target, source.list_entries()[2:])
        head = target.store.get_head(ACCOUNT)
        forged = seal_entry(
            RESET_DRAFT, prev=head.hash, seq=5, tx=5, at=head.at + 1, salt=bytes(16)
        )
        with pytest.raises(StoreCorrupt, match=r"\b5\b"):
            import_entries(target, [forged])
        assert target.head_seq == 1

    def test_importing_an_old_copy_restores_nothing_erased(self, harness: AccountHarness) -> None:
        harness.assert_claim("kept", "t1")
        harness.assert_claim("secret", "t2")
        copy = list(harness.list_entries())
        erase_entries(harness, [2])
        assert import_entries(harness, copy) == 0
        assert harness.list_texts() == ["kept"]
        assert harness.list_entries()[1].envelope is None

    def test_importing_into_another_account_restores_nothing_erased(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("kept", "t1")
        harness.assert_claim("secret", "t2")
        copy = list(harness.list_entries())
        erase_entries(harness, [2])
        other = self.use_account(harness, "umbrella")
        assert import_entries(other, copy) == 2
        other_scope = Scope("umbrella", user_id="alice")
        assert other.list_texts(other_scope) == ["kept"]
        assert other.search_texts("secret", other_scope) == {}
        assert other.list_entries()[1].envelope is None
        assert_chained(other.list_entries())

    def test_an_erased_entry_is_imported_without_content(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        erased = source.list_entries()[1]
        erase_entries(source, [2])
        assert import_entries(target, source.list_entries()) == 3
        assert list(target.list_entries()) == list(source.list_entries())
        assert target.dump_views() == source.dump_views()
        assert target.store.tombstoned_digests([erased.digest]) == {erased.digest}

    def test_an_imported_tombstone_erases_content(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        copy = list(source.list_entries())
        import_entries(target, copy)
        target.store.bind_model("m", 2)
        target.store.put_vectors({hash_text("secret"): [1.0, 0.0]})
        erase_entries(source, [2])
        assert import_entries(target, [*copy, *source.list_entries()[2:]]) == 1
        assert not target.embedded_hashes([hash_text("secret")])
        assert target.list_texts() == ["kept"]
        assert target.search_texts("secret") == {}
        assert list(target.list_entries()) == list(source.list_entries())

    def test_missing_content_without_a_tombstone_is_not_erased(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        entries = source.list_entries()
        cut = replace(entries[1], salt=None, envelope=None, draft=None)
        assert import_entries(target, [entries[0], cut]) == 2
        assert not target.store.tombstoned_digests([cut.digest])

    def test_a_later_tombstone_explains_an_empty_entry(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        erase_entries(source, [2])
        pages = source.list_entries()
        import_entries(target, pages[:2])
        assert not target.store.tombstoned_digests([pages[1].digest])
        import_entries(target, pages[2:])
        assert target.store.tombstoned_digests([pages[1].digest]) == {pages[1].digest}
        assert target.dump_views() == source.dump_views()

    def test_an_entry_with_a_mismatched_thread_is_refused(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("claimed", "t1")
        entry = source.list_entries()[0]
        forged_hash = compute_chain_hash(
            GENESIS,
            seq=entry.seq,
            tx=entry.tx,
            at=entry.at,
            sort=entry.sort,
            thread="t2",
            digest=entry.digest,
        )
        with pytest.raises(StoreCorrupt, match=r"\b1\b"):
            import_entries(target, [replace(entry, thread="t2", hash=forged_hash)])
        assert target.head_seq == 0

    # Beginning anew

    def test_a_reset_account_starts_a_new_chain(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.commit(idempotency=make_idempotency_record("key"))
        harness.add_evidence("said", "e1")
        harness.assert_claim("forgotten", "t1", evidence="e1")
        harness.store.put_vectors({hash_text("forgotten"): [1.0, 0.0]})
        harness.store.update_consumer(ACCOUNT, "graph", cursor=2)
        harness.store.record_fault(ACCOUNT, "graph", 2, "lost")
        entry = harness.store.reset(ACCOUNT, RESET_DRAFT)
        assert list(harness.list_entries()) == [entry]
        assert (entry.seq, entry.tx, entry.draft) == (1, 1, RESET_DRAFT)
        assert_chained(harness.list_entries())
        assert not any(harness.dump_views().values())
        assert harness.search_texts("forgotten") == {}
        assert harness.store.lookup_existing(ALICE, [], [], "key").idempotency is None
        assert not harness.embedded_hashes([hash_text("forgotten")])
        assert harness.store.get_cursor(ACCOUNT, "graph") == 0
        assert list(harness.store.list_faults(ACCOUNT)) == []
        harness.assert_claim("new")
        assert harness.list_texts() == ["new"]

    def test_a_reset_account_uses_the_clock_again(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        now = clock.now
        clock.tick(10**12)
        harness.assert_claim("by a clock that was ahead", "t1")
        clock.now = now
        assert harness.store.reset(ACCOUNT, RESET_DRAFT).at == now

    def test_a_reset_affects_no_other_account(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        other_scope = Scope("umbrella", user_id="alice")
        other = self.use_account(harness, "umbrella")
        other.assert_claim("tea", "t1", other_scope)
        harness.assert_claim("tea", "t1")
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0]})
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        assert other.list_texts(other_scope) == ["tea"]
        assert other.search_texts(scope=other_scope, vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_importing_an_old_copy_after_a_reset_restores_nothing(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("secret", "t1")
        copy = list(harness.list_entries())
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        with pytest.raises(Diverged):
            import_entries(harness, copy)
        other = self.use_account(harness, "umbrella")
        import_entries(other, copy)
        other_scope = Scope("umbrella", user_id="alice")
        assert other.list_texts(other_scope) == []
        assert other.search_texts("secret", other_scope) == {}
        assert other.list_entries()[0].envelope is None
        assert_chained(other.list_entries())

    # Building views again

    @pytest.mark.parametrize("seed", range(4))
    def test_a_rebuild_changes_no_view(self, harness: AccountHarness, seed: int) -> None:
        write_random_history(harness, seed)
        rows_before, hits_before = harness.dump_views(), harness.search_texts("claim")
        counts = harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.dump_views() == rows_before
        assert harness.search_texts("claim") == hits_before
        stats = harness.store.get_stats(ACCOUNT)
        kept = {name: counts[name] for name in ("evidence", "links")}
        assert kept == {name: stats[name] for name in kept}
        assert counts["facts"] == counts["passages"] == stats["versions"] > 0

    @pytest.mark.parametrize("view", VIEWS)
    def test_each_view_can_be_rebuilt_alone(self, harness: AccountHarness, view: View) -> None:
        write_random_history(harness, 7)
        rows_before = harness.dump_views()
        assert list(harness.store.rebuild(ACCOUNT, [view], harness.folding([view]))) == [view]
        assert harness.dump_views() == rows_before

    @pytest.mark.parametrize("seed", range(2))
    def test_imported_views_equal_their_source(
        self, open_harness: Callable[[], AccountHarness], seed: int
    ) -> None:
        source, target = open_harness(), open_harness()
        for step in range(12):
            source.assert_claim(f"claim {step}", f"t{(step + seed) % 4}", [ALICE, BOB][step % 2])
        source.retract_thread("t1")
        import_entries(target, source.list_entries())
        assert target.dump_views() == source.dump_views()

    def test_metadata_rows_ignore_key_order(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("tea", "t1", meta={"z": 1, "a": {"y": "\u00fc", "b": [1.0, None]}})
        import_entries(target, source.list_entries())
        rows_before = source.dump_views()
        assert target.dump_views() == rows_before
        source.store.rebuild(ACCOUNT, VIEWS, source.folding(VIEWS))
        assert source.dump_views() == rows_before

    def test_a_rebuild_keeps_vectors(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.assert_claim("tea")
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0]})
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == 1.0
        assert dict(harness.store.pending_texts()) == {}


PIXELS = bytes(range(256)) * 40
PNG_BLOB = Blob.from_bytes(PIXELS, "image/png")
NOTE_BLOB = Blob.from_bytes(b"a note", "text/plain")


def draft_evidence(content: str, id: str, *blobs: Blob, scope: Scope = ALICE) -> Draft:
    """Evidence that names blobs."""
    return Draft(
        Observed(id, Evidence(content, meta={"blobs": [blob.hash for blob in blobs]})), scope
    )


def commit_with_blobs(harness: AccountHarness, drafts: Sequence[Draft], *blobs: Blob) -> int:
    """Commit drafts with blobs; the position of the last of them."""
    return harness.store.commit(
        Batch(harness.account, drafts, blobs=blobs), harness.folding(VIEWS)
    )[-1].seq


class BlobContract(ContractBase):
    """A blob is its content."""

    def test_blob_round_trips_under_its_hash(self, harness: AccountHarness) -> None:
        name = harness.put_blob(ACCOUNT, PIXELS, "image/png")
        assert name == hash_content(PIXELS)
        assert harness.store.get_blobs(ACCOUNT, [name]).get(name) == Blob(
            name, "image/png", len(PIXELS), PIXELS
        )
        assert (
            harness.store.get_blobs(ACCOUNT, [hash_content(b"never seen")]).get(
                hash_content(b"never seen")
            )
            is None
        )

    def test_identical_bytes_are_stored_once(self, harness: AccountHarness) -> None:
        names = {
            harness.put_blob(ACCOUNT, PIXELS, kind)
            for kind in ("image/png", "application/octet-stream")
        }
        assert [blob.hash for blob in harness.store.get_blobs(ACCOUNT).values()] == list(names)
        assert [blob.media_type for blob in harness.store.get_blobs(ACCOUNT).values()] == [
            "image/png"
        ]

    def test_listing_blobs_omits_their_bytes(self, harness: AccountHarness) -> None:
        for data, kind in ((b"b", "text/plain"), (PIXELS, "image/png"), (b"", "text/plain")):
            harness.put_blob(ACCOUNT, data, kind)
        listed = list(harness.store.get_blobs(ACCOUNT).values())
        assert [(blob.hash, blob.size, blob.data) for blob in listed] == sorted(
            (hash_content(data), len(data), b"") for data in (b"b", PIXELS, b"")
        )

    def test_an_account_sees_only_its_own_blobs(self, harness: AccountHarness) -> None:
        name = harness.put_blob(ACCOUNT, b"ours", "text/plain")
        assert harness.store.get_blobs("umbrella", [name]).get(name) is None
        assert list(harness.store.get_blobs("umbrella").values()) == []
        assert harness.store.get_blobs(ACCOUNT, [name]).get(name) is not None

    def test_storing_a_blob_creates_no_ledger(self, harness: AccountHarness) -> None:
        harness.put_blob(ACCOUNT, b"x", "text/plain")
        assert list(harness.store.list_accounts()) == []

    def test_blobs_commit_with_their_evidence_or_not_at_all(self, harness: AccountHarness) -> None:
        draft = draft_evidence("look", "e1", PNG_BLOB)
        commit_with_blobs(harness, [draft], PNG_BLOB)
        assert harness.store.get_blobs(ACCOUNT, [PNG_BLOB.hash]).get(PNG_BLOB.hash) == PNG_BLOB
        guard = NoEvidence(ALICE, (draft.verb.evidence.digest(),))  # type: ignore[union-attr]
        again = Batch(
            ACCOUNT, [draft_evidence("again", "e2", NOTE_BLOB)], [guard], blobs=[NOTE_BLOB]
        )
        with pytest.raises(Conflict):
            harness.store.commit(again, harness.folding(VIEWS))
        assert harness.store.get_blobs(ACCOUNT, [NOTE_BLOB.hash]).get(NOTE_BLOB.hash) is None

    def test_evidence_lists_its_blobs(self, harness: AccountHarness) -> None:
        commit_with_blobs(
            harness,
            [draft_evidence("both", "e1", PNG_BLOB, NOTE_BLOB), draft_evidence("none", "e2")],
            PNG_BLOB,
            NOTE_BLOB,
        )
        blobs_by_id = {
            witness.id: witness.blobs
            for witness in harness.store.evidence_rows(ACCOUNT, scope=ALICE)
        }
        assert blobs_by_id == {"e1": tuple(sorted((PNG_BLOB.hash, NOTE_BLOB.hash))), "e2": ()}

    def test_a_blob_is_deleted_with_its_last_evidence(self, harness: AccountHarness) -> None:
        first = commit_with_blobs(
            harness, [draft_evidence("mine", "e1", PNG_BLOB, NOTE_BLOB)], PNG_BLOB, NOTE_BLOB
        )
        second = commit_with_blobs(
            harness, [draft_evidence("his", "e2", PNG_BLOB, scope=BOB)], PNG_BLOB
        )
        erase_entries(harness, [first])
        assert [blob.hash for blob in harness.store.get_blobs(ACCOUNT).values()] == [PNG_BLOB.hash]
        erase_entries(harness, [second])
        assert list(harness.store.get_blobs(ACCOUNT).values()) == []

    def test_an_erasure_counts_the_blobs_it_destroyed(self, harness: AccountHarness) -> None:
        seq = commit_with_blobs(
            harness, [draft_evidence("both", "e1", PNG_BLOB, NOTE_BLOB)], PNG_BLOB, NOTE_BLOB
        )
        _, counts = harness.store.erase(ACCOUNT, [seq], RESET_DRAFT)
        assert counts["blobs"] == 2
        assert not harness.store.scrub()

    def test_each_account_keeps_its_own_copy_of_a_blob(self, harness: AccountHarness) -> None:
        seq = commit_with_blobs(harness, [draft_evidence("ours", "e1", PNG_BLOB)], PNG_BLOB)
        other = self.use_account(harness, "umbrella")
        commit_with_blobs(
            other,
            [draft_evidence("theirs", "e1", PNG_BLOB, scope=Scope("umbrella", user_id="bob"))],
            PNG_BLOB,
        )
        erase_entries(harness, [seq])
        assert harness.store.get_blobs(ACCOUNT, [PNG_BLOB.hash]).get(PNG_BLOB.hash) is None
        assert harness.store.get_blobs("umbrella", [PNG_BLOB.hash]).get(PNG_BLOB.hash) == PNG_BLOB

    def test_a_reset_deletes_all_blobs(self, harness: AccountHarness) -> None:
        commit_with_blobs(harness, [draft_evidence("look", "e1", PNG_BLOB)], PNG_BLOB)
        harness.put_blob(ACCOUNT, b"loose", "text/plain")
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        assert list(harness.store.get_blobs(ACCOUNT).values()) == []

    def test_a_rebuild_keeps_blob_references(self, harness: AccountHarness) -> None:
        seq = commit_with_blobs(harness, [draft_evidence("look", "e1", PNG_BLOB)], PNG_BLOB)
        before = harness.dump_views()
        harness.store.rebuild(ACCOUNT, ("evidence",), harness.folding(("evidence",)))
        assert harness.dump_views() == before
        assert harness.store.get_blobs(ACCOUNT, [PNG_BLOB.hash]).get(PNG_BLOB.hash) == PNG_BLOB
        erase_entries(harness, [seq])
        assert list(harness.store.get_blobs(ACCOUNT).values()) == []

    def test_an_imported_tombstone_deletes_blobs(
        self, harness: AccountHarness, open_harness: Callable[[], AccountHarness]
    ) -> None:
        seq = commit_with_blobs(harness, [draft_evidence("look", "e1", PNG_BLOB)], PNG_BLOB)
        copy = open_harness()
        import_entries(copy, harness.list_entries())
        copy.put_blob(ACCOUNT, PIXELS, "image/png")
        erase_entries(harness, [seq])
        import_entries(copy, harness.list_entries())
        assert list(copy.store.get_blobs(ACCOUNT).values()) == []

    def test_intact_blobs_pass_the_check_and_are_counted(self, harness: AccountHarness) -> None:
        commit_with_blobs(
            harness, [draft_evidence("look", "e1", PNG_BLOB, NOTE_BLOB)], PNG_BLOB, NOTE_BLOB
        )
        assert list(harness.store.check_integrity()) == []
        assert harness.store.get_stats(ACCOUNT)["blobs"] == 2
