"""Laws of blobs: bytes are kept once under their content, come back unchanged, and go with their last evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from told.core.blob import Blob
from told.core.entry import Draft, Evidence, Observed
from told.core.errors import Conflict
from told.core.ids import tagged
from told.core.scope import Scope
from told.ports import VIEWS, Batch, NoEvidence
from told.testing.contract.erasing import erase
from told.testing.contract.moving import BEGINNING, adopt
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe

PIXELS = bytes(range(256)) * 40
PNG = Blob.of(PIXELS, "image/png")
NOTE = Blob.of(b"a note", "text/plain")


def shown(content: str, id: str, *blobs: Blob, scope: Scope = ALICE) -> Draft:
    """Evidence that names blobs."""
    return Draft(Observed(id, Evidence(content, meta={"blobs": [blob.hash for blob in blobs]})), scope)


def write(book: Scribe, drafts: Sequence[Draft], *blobs: Blob) -> int:
    """Commit drafts with blobs; the position of the last of them."""
    return book.store.commit(Batch(book.account, drafts, blobs=blobs), book.folding(VIEWS))[-1].seq


class BlobLaws(Laws):
    """A blob is its content."""

    def test_bytes_come_back_as_they_were_under_their_hash(self, book: Scribe) -> None:
        name = book.store.put_blob(ACCOUNT, PIXELS, "image/png")
        assert name == tagged(PIXELS)
        assert book.store.blob(ACCOUNT, name) == Blob(name, "image/png", len(PIXELS), PIXELS)
        assert book.store.blob(ACCOUNT, tagged(b"never seen")) is None

    def test_the_same_bytes_are_kept_once(self, book: Scribe) -> None:
        names = {book.store.put_blob(ACCOUNT, PIXELS, kind) for kind in ("image/png", "application/octet-stream")}
        assert [blob.hash for blob in book.store.blobs(ACCOUNT)] == list(names)
        assert [blob.media_type for blob in book.store.blobs(ACCOUNT)] == ["image/png"]

    def test_a_listing_names_each_without_its_bytes(self, book: Scribe) -> None:
        for data, kind in ((b"b", "text/plain"), (PIXELS, "image/png"), (b"", "text/plain")):
            book.store.put_blob(ACCOUNT, data, kind)
        listed = list(book.store.blobs(ACCOUNT))
        assert [(blob.hash, blob.size, blob.data) for blob in listed] == sorted(
            (tagged(data), len(data), b"") for data in (b"b", PIXELS, b"")
        )

    def test_an_account_sees_only_its_own(self, book: Scribe) -> None:
        name = book.store.put_blob(ACCOUNT, b"ours", "text/plain")
        assert book.store.blob("umbrella", name) is None
        assert list(book.store.blobs("umbrella")) == []
        assert book.store.drop_blob("umbrella", name) is False
        assert book.store.blob(ACCOUNT, name) is not None

    def test_a_dropped_blob_is_gone(self, book: Scribe) -> None:
        name = book.store.put_blob(ACCOUNT, b"gone", "text/plain")
        assert book.store.drop_blob(ACCOUNT, name) is True
        assert book.store.drop_blob(ACCOUNT, name) is False
        assert book.store.blob(ACCOUNT, name) is None
        assert not book.store.scrub()

    def test_keeping_a_blob_makes_no_ledger(self, book: Scribe) -> None:
        book.store.put_blob(ACCOUNT, b"x", "text/plain")
        assert list(book.store.accounts()) == []

    def test_blobs_commit_with_their_evidence_or_not_at_all(self, book: Scribe) -> None:
        seen = shown("look", "e1", PNG)
        write(book, [seen], PNG)
        assert book.store.blob(ACCOUNT, PNG.hash) == PNG
        guard = NoEvidence(ALICE, (seen.verb.evidence.digest(),))  # type: ignore[union-attr]
        again = Batch(ACCOUNT, [shown("again", "e2", NOTE)], [guard], blobs=[NOTE])
        with pytest.raises(Conflict):
            book.store.commit(again, book.folding(VIEWS))
        assert book.store.blob(ACCOUNT, NOTE.hash) is None

    def test_evidence_says_which_blobs_it_names(self, book: Scribe) -> None:
        write(book, [shown("both", "e1", PNG, NOTE), shown("none", "e2")], PNG, NOTE)
        named = {witness.id: witness.blobs for witness in book.store.witnesses(ACCOUNT, scope=ALICE)}
        assert named == {"e1": tuple(sorted((PNG.hash, NOTE.hash))), "e2": ()}

    def test_a_blob_goes_with_the_last_evidence_that_names_it(self, book: Scribe) -> None:
        first = write(book, [shown("mine", "e1", PNG, NOTE)], PNG, NOTE)
        second = write(book, [shown("his", "e2", PNG, scope=BOB)], PNG)
        erase(book, [first])
        assert [blob.hash for blob in book.store.blobs(ACCOUNT)] == [PNG.hash]
        erase(book, [second])
        assert list(book.store.blobs(ACCOUNT)) == []

    def test_an_erasure_counts_the_blobs_it_destroyed(self, book: Scribe) -> None:
        seq = write(book, [shown("both", "e1", PNG, NOTE)], PNG, NOTE)
        _, counts = book.store.erase(ACCOUNT, [seq], BEGINNING)
        assert counts["blobs"] == 2
        assert not book.store.scrub()

    def test_evidence_of_another_account_keeps_only_its_own_copy(self, book: Scribe) -> None:
        seq = write(book, [shown("ours", "e1", PNG)], PNG)
        theirs = self.elsewhere(book, "umbrella")
        write(theirs, [shown("theirs", "e1", PNG, scope=Scope("umbrella", user_id="bob"))], PNG)
        erase(book, [seq])
        assert book.store.blob(ACCOUNT, PNG.hash) is None
        assert book.store.blob("umbrella", PNG.hash) == PNG

    def test_beginning_anew_destroys_them(self, book: Scribe) -> None:
        write(book, [shown("look", "e1", PNG)], PNG)
        book.store.put_blob(ACCOUNT, b"loose", "text/plain")
        book.store.reset(ACCOUNT, BEGINNING)
        assert list(book.store.blobs(ACCOUNT)) == []

    def test_a_rebuilt_view_still_knows_who_names_what(self, book: Scribe) -> None:
        seq = write(book, [shown("look", "e1", PNG)], PNG)
        before = book.rows()
        book.store.rebuild(ACCOUNT, ("evidence",), book.folding(("evidence",)))
        assert book.rows() == before
        assert book.store.blob(ACCOUNT, PNG.hash) == PNG
        erase(book, [seq])
        assert list(book.store.blobs(ACCOUNT)) == []

    def test_an_adopted_tombstone_destroys_them_here_too(
        self, book: Scribe, open_book: Callable[[], Scribe]
    ) -> None:
        seq = write(book, [shown("look", "e1", PNG)], PNG)
        copy = open_book()
        adopt(copy, book.entries())
        copy.store.put_blob(ACCOUNT, PIXELS, "image/png")
        erase(book, [seq])
        adopt(copy, book.entries())
        assert list(copy.store.blobs(ACCOUNT)) == []

    def test_sound_blobs_are_no_problem_and_are_counted(self, book: Scribe) -> None:
        write(book, [shown("look", "e1", PNG, NOTE)], PNG, NOTE)
        assert list(book.store.check()) == []
        assert book.store.stats(ACCOUNT)["blobs"] == 2
