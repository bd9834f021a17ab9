"""`verify` detects every change made to a ledger from outside, and names the first bad entry."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import lived, tried
from told import Memory
from told.testing import HashingEmbedder, ManualClock, seeded_mint

COLUMNS = ("id", "tx", "at", "sort", "thread", "digest", "hash", "salt", "envelope")
SEQ = (1 << 40) - 1
ENTRIES = 12


@dataclass
class Book:
    """A small closed ledger with every sort of entry, and its raw file."""

    path: Path

    @contextmanager
    def raw(self) -> Iterator[apsw.Connection]:
        db = apsw.Connection(str(self.path))
        try:
            db.execute(
                "DROP TRIGGER IF EXISTS entry_append_only; DROP TRIGGER IF EXISTS entry_no_delete"
            )
            yield db
        finally:
            db.close()

    def verdict(self):
        with Memory(f"sqlite:///{self.path}", embedder=HashingEmbedder()) as memory:
            return memory.verify()

    def rows(self):
        with self.raw() as db:
            return db.execute(f"SELECT {', '.join(COLUMNS)} FROM entry ORDER BY id").fetchall()


class Sealed(bytes):
    """The bytes of a ledger file, with a short repr."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


def write(path: Path) -> None:
    mint = seeded_mint("tamper", ManualClock())
    with Memory(
        f"sqlite:///{path}", embedder=HashingEmbedder(), mint=mint, durability="normal"
    ) as memory:
        lived(memory)
        memory.add("and on it goes", agent_id="a")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    path = tmp_path_factory.mktemp("sealed") / "book.db"
    write(path)
    return Sealed(path.read_bytes())


@pytest.fixture
def book(sealed, tmp_path):
    return write_book(sealed, tmp_path)


def write_book(sealed, folder):
    path = Path(folder) / "book.db"
    path.write_bytes(sealed)
    return Book(path)


def test_untouched_ledger_verifies(book):
    verdict = book.verdict()
    assert verdict["ok"]
    assert verdict["entries"] == len(book.rows()) == ENTRIES
    assert verdict["erased"] == 2
    assert verdict["head"].startswith("sha256:")


def flip_bit(value, byte, bit):
    """Return the value with one bit flipped."""
    if isinstance(value, int):
        return value ^ (1 << (byte * 8 + bit) % 48)
    raw = bytearray(value if isinstance(value, bytes) else value.encode())
    raw[byte % len(raw)] ^= 1 << bit
    return bytes(raw) if isinstance(value, bytes) else raw.decode("latin-1")


@given(
    row=st.integers(0, ENTRIES - 1),
    column=st.sampled_from(COLUMNS),
    byte=st.integers(0, 10_000),
    bit=st.integers(0, 7),
)
@tried(150)
def test_one_flipped_bit_of_an_entry_is_detected(sealed, row, column, byte, bit):
    with tempfile.TemporaryDirectory() as folder:
        book = write_book(sealed, folder)
        entry = book.rows()[row]
        value = entry[COLUMNS.index(column)]
        if value is None:
            return
        changed = flip_bit(value, byte, bit)
        with book.raw() as db:
            if column == "id" and any(changed == other[0] for other in book.rows()):
                return
            db.execute(f"UPDATE entry SET {column} = ? WHERE id = ?", (changed, entry[0]))
        verdict = book.verdict()
        assert not verdict["ok"], f"{column} of entry {row + 1}"
        assert verdict["first_bad_seq"] <= row + 1
        assert verdict["problem"]


@pytest.mark.parametrize("row", range(ENTRIES))
def test_missing_entry_is_detected(book, row):
    with book.raw() as db:
        db.execute("DELETE FROM entry WHERE id & ? = ?", (SEQ, row + 1))
    verdict = book.verdict()
    assert (verdict["ok"], verdict["first_bad_seq"]) == (False, row + 1)


@pytest.mark.parametrize("left", range(ENTRIES))
def test_truncated_ledger_is_detected(book, left):
    with book.raw() as db:
        db.execute("DELETE FROM entry WHERE id & ? > ?", (SEQ, left))
    verdict = book.verdict()
    assert (verdict["ok"], verdict["first_bad_seq"]) == (False, left + 1)


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 4), (5, 6), (1, ENTRIES), (11, ENTRIES)])
def test_two_swapped_entries_are_detected(book, one, other):
    with book.raw() as db:
        (low,) = db.execute("SELECT id FROM entry WHERE id & ? = ?", (SEQ, one)).fetchone()
        (high,) = db.execute("SELECT id FROM entry WHERE id & ? = ?", (SEQ, other)).fetchone()
        for old, new in ((low, 1), (high, low), (1, high)):
            db.execute("UPDATE entry SET id = ? WHERE id = ?", (new, old))
    verdict = book.verdict()
    assert (verdict["ok"], verdict["first_bad_seq"]) == (False, one)


def test_inserted_entry_is_detected(book):
    with book.raw() as db:
        rest = ", ".join(COLUMNS[1:])
        db.execute(
            f"INSERT INTO entry (id, {rest}) SELECT id + 1, {rest} FROM entry WHERE id & {SEQ} = "
            f"{ENTRIES}"
        )
    verdict = book.verdict()
    assert (verdict["ok"], verdict["first_bad_seq"]) == (False, ENTRIES + 1)


@pytest.mark.parametrize("seq", [1, 2, 5, ENTRIES])
def test_content_removed_without_an_erasure_is_detected(book, seq):
    with book.raw() as db:
        db.execute("UPDATE entry SET envelope = NULL, salt = NULL WHERE id & ? = ?", (SEQ, seq))
    verdict = book.verdict()
    assert (verdict["ok"], verdict["first_bad_seq"]) == (False, seq)


def test_content_removed_behind_a_forged_tombstone_is_detected(book):
    """Only the chain proves an erasure; a row in another table does not."""
    with book.raw() as db:
        db.execute(
            "INSERT OR IGNORE INTO tombstone SELECT digest FROM entry WHERE id & ? = 3", (SEQ,)
        )
        db.execute("UPDATE entry SET envelope = NULL, salt = NULL WHERE id & ? = 3", (SEQ,))
    assert not book.verdict()["ok"]


def test_thread_of_an_erased_entry_is_covered_by_the_hash(book):
    with book.raw() as db:
        db.execute(
            "UPDATE entry SET thread = (SELECT thread FROM entry WHERE id & ? = 2) WHERE "
            "envelope IS NULL "
            "AND thread IS NOT NULL",
            (SEQ,),
        )
        assert db.changes() == 1
    assert not book.verdict()["ok"], "an erased entry now belongs to the history of another memory"


def test_restored_erased_content_is_detected(book):
    with book.raw() as db:
        db.execute(
            "UPDATE entry SET envelope = ?, salt = ? WHERE envelope IS NULL", (b"{}", b"salt")
        )
    assert not book.verdict()["ok"]


def test_malformed_envelope_is_reported_without_a_crash(book):
    with book.raw() as db:
        db.execute("UPDATE entry SET envelope = ? WHERE id & ? = 3", (b'{"v":1,"scope":7}', SEQ))
    assert book.verdict()["first_bad_seq"] == 3


@pytest.mark.parametrize("seq", [0, 1, 99])
def test_wrong_head_is_detected(book, seq):
    with book.raw() as db:
        db.execute("UPDATE account SET seq = ?", (seq,))
    assert not book.verdict()["ok"]


def test_writes_and_erasures_during_verify_are_not_tampering(book, monkeypatch):
    with (
        Memory(f"sqlite:///{book.path}", embedder=HashingEmbedder()) as memory,
        Memory(f"sqlite:///{book.path}", embedder=HashingEmbedder()) as other,
    ):
        store, late = type(memory.engine.store), []
        [held] = (row["id"] for row in memory.get_all(user_id="u")["results"])
        scan, folded = store.scan_entries, store.rows_between

        def interrupted(self, account, after=0, limit=None, *, thread=None):
            page = scan(self, account, after, limit, thread=thread)
            if thread is None and not page and not late:
                late.append(other.add("meanwhile", user_id="u", infer=False))
            return page

        def bereaved(self, account, after, upto):
            if len(late) == 1:
                late.append(other.erase(agent_id="a"))
                other.update(late[0]["results"][0]["id"], "and changed")
                other.update(held, "with another version")
            return folded(self, account, after, upto)

        monkeypatch.setattr(store, "scan_entries", interrupted)
        monkeypatch.setattr(store, "rows_between", bereaved)
        verdict = memory.verify()
        assert (verdict["ok"], len(late)) == (True, 2), verdict
        assert memory.verify()["entries"] > ENTRIES


def test_erasing_a_turn_during_verify_is_not_tampering(tmp_path, monkeypatch):
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=HashingEmbedder()) as memory:
        said = [
            {"role": "user", "content": text, "name": "Ann"}
            for text in ("It rains", "All day", "Until night")
        ]
        first, *_ = memory.add(said, user_id="u", infer=False)["results"]
        store, late = type(memory.engine.store), []
        folded = store.rows_between

        def bereaved(self, account, after, upto):
            if not late:
                late.append(memory.erase(first["id"]))
            return folded(self, account, after, upto)

        monkeypatch.setattr(store, "rows_between", bereaved)
        assert memory.verify()["ok"]
        assert late
        assert memory.verify()["ok"]


def test_recorded_time_of_the_ledger_end_is_verified(book):
    with book.raw() as db:
        db.execute("UPDATE account SET at = at + 1")
    assert not book.verdict()["ok"]


def test_triggers_reject_changes_of_the_ledger(book):
    db = apsw.Connection(str(book.path))
    try:
        for change in (
            "UPDATE entry SET envelope = x'00'",
            "DELETE FROM entry",
            "UPDATE entry SET at = at + 1",
        ):
            with pytest.raises(apsw.ConstraintError, match="append-only"):
                db.execute(change)
    finally:
        db.close()
    assert book.verdict()["ok"]


def test_tampered_ledger_is_not_imported(sealed, tmp_path):
    book = write_book(sealed, tmp_path)
    with Memory(f"sqlite:///{book.path}", embedder=HashingEmbedder()) as memory:
        memory.export(tmp_path / "good.jsonl")
    text = (tmp_path / "good.jsonl").read_text("utf-8")
    for number, wrong in enumerate(
        (text.replace("black tea", "white tea"), text.replace("green tea", "green pea"))
    ):
        assert wrong != text
        for url in ("ram://", f"sqlite:///{tmp_path}/{number}.db"):
            with Memory(url, embedder="none") as memory:
                with pytest.raises(Exception, match="does not match its hash|not what was written"):  # noqa: RUF043
                    memory.import_(wrong.encode())
                assert memory.stats()["entries"] == 0, "all or nothing"
