"""Laws of blobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from told.errors import Conflict
from told.ids import hash_content
from told.model.entry import (
    Blob,
    Draft,
    Entry,
    Evidence,
    Observed,
    Ruled,
)
from told.model.scope import Scope
from told.ports import VIEWS, Batch, NoEvidence
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    erase_entries,
)

RESET_DRAFT = Draft(Ruled("ledger", "reset", {}), None, author="told")

PIXELS = bytes(range(256)) * 40

PNG_BLOB = Blob.from_bytes(PIXELS, "image/png")

NOTE_BLOB = Blob.from_bytes(b"a note", "text/plain")


def draft_evidence(content: str, id: str, *blobs: Blob, scope: Scope = ALICE) -> Draft:
    """Draft evidence that names blobs."""
    return Draft(
        Observed(id, Evidence(content, meta={"blobs": [blob.hash for blob in blobs]})), scope
    )


def commit_with_blobs(harness: AccountHarness, drafts: Sequence[Draft], *blobs: Blob) -> int:
    """Commit drafts with blobs; return the last position."""
    return harness.store.commit(
        Batch(harness.account, drafts, blobs=blobs), harness.folding(VIEWS)
    )[-1].seq


def import_entries(harness: AccountHarness, entries: Sequence[Entry]) -> int:
    """Import entries into the harness's account."""
    return harness.store.import_entries(harness.account, entries, harness.folding(VIEWS))


class BlobsContract(ContractBase):
    """A blob is stored under its hash and deleted with its last evidence."""

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
