"""Laws of care: cursors, faults, health, figures and closing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from told.core.entry import Asserted, Claim, Draft, Erased, Evidence, Observed, Ruled
from told.core.errors import Conflict, StoreClosed
from told.core.fact import Passage
from told.core.query import Probe, Touch
from told.core.recall import Left, Reason, Task
from told.core.scope import Scope
from told.ports import VIEWS, Batch, CloseThread, EndVersion, Row, RowOp, Step, Store
from told.testing.contract.erasing import erase
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe, ticket
from told.testing.fakes import ManualClock

CALLS: dict[str, Callable[[Store, Scribe], Any]] = {
    "commit": lambda s, b: s.commit(Batch(ACCOUNT, [Draft(Asserted("t", Claim("x")), ALICE)]), b.folding(VIEWS)),
    "adopt": lambda s, b: s.adopt(ACCOUNT, [], b.folding(VIEWS)),
    "erase": lambda s, _: s.erase(ACCOUNT, [], Draft(Erased(()), None)),
    "reset": lambda s, _: s.reset(ACCOUNT, Draft(Ruled("a", "b", {}), None)),
    "rebuild": lambda s, b: s.rebuild(ACCOUNT, VIEWS, b.folding(VIEWS)),
    "accounts": lambda s, _: s.accounts(),
    "head": lambda s, _: s.head(ACCOUNT),
    "position": lambda s, _: s.position(ACCOUNT, 0),
    "scan": lambda s, _: s.scan(ACCOUNT),
    "thread": lambda s, _: s.thread(ACCOUNT, "t"),
    "tombstoned": lambda s, _: s.tombstoned(ACCOUNT, [b"x"]),
    "held": lambda s, _: s.held(ALICE, 0, about=[("x", "y")], kinds=["z"]),
    "known": lambda s, _: s.known(ALICE, ["x"], [b"x"], "x"),
    "fact": lambda s, _: s.fact(ACCOUNT, "t"),
    "versions": lambda s, _: s.versions(ACCOUNT, [1]),
    "lives": lambda s, _: s.lives(ALICE),
    "links": lambda s, _: s.links(ACCOUNT, ["t"]),
    "witnesses": lambda s, _: s.witnesses(ACCOUNT, scope=ALICE),
    "rows": lambda s, _: list(s.rows(ACCOUNT, "facts")),
    "folded": lambda s, _: s.folded(ACCOUNT, 0, 9),
    "model": lambda s, _: s.model(),
    "use_model": lambda s, _: s.use_model("m", 2),
    "cached": lambda s, _: s.cached([b"x"]),
    "pending": lambda s, _: s.pending(),
    "put_vectors": lambda s, _: s.put_vectors({b"x": [1.0]}, "m"),
    "switch_model": lambda s, _: s.switch_model("m", 2),
    "cursor": lambda s, _: s.cursor(ACCOUNT, "c"),
    "advance": lambda s, _: s.advance(ACCOUNT, "c", 1),
    "fault": lambda s, _: s.fault(ACCOUNT, "c", 1, "x"),
    "faults": lambda s, _: s.faults(ACCOUNT),
    "scopes": lambda s, _: s.scopes(ACCOUNT),
    "tallies": lambda s, _: s.tallies(ACCOUNT),
    "settle": lambda s, _: s.settle(ACCOUNT, [1]),
    "touched": lambda s, _: s.touched(ACCOUNT, ["t"]),
    "put_blob": lambda s, _: s.put_blob(ACCOUNT, b"x", "text/plain"),
    "blob": lambda s, _: s.blob(ACCOUNT, "x"),
    "blobs": lambda s, _: s.blobs(ACCOUNT),
    "drop_blob": lambda s, _: s.drop_blob(ACCOUNT, "x"),
    "behind": lambda s, _: s.behind(ACCOUNT),
    "ticks": lambda s, _: s.ticks(ALICE),
    "write_down": lambda s, _: s.write_down(ACCOUNT, Left({"t": Touch(1, 1)})),
    "meet": lambda s, _: s.meet(ACCOUNT, {("t", "u"): Touch(1, 1)}),
    "met": lambda s, _: s.met(ACCOUNT, ["t"]),
    "recalls": lambda s, _: s.recalls(ACCOUNT, "t"),
    "states": lambda s, _: s.states(ACCOUNT, ["t"]),
    "enqueue": lambda s, _: s.enqueue(ACCOUNT, [Task("t", Reason.RECALL)], 1),
    "queue": lambda s, _: s.queue(ACCOUNT),
    "claim": lambda s, _: s.claim(ACCOUNT, 1, 1, 1),
    "done": lambda s, _: s.done(ACCOUNT, [1]),
    "notes": lambda s, _: s.notes(ACCOUNT, "c"),
    "note": lambda s, _: s.note(ACCOUNT, "c", {"k": b"x"}),
    "check": lambda s, _: s.check(),
    "mistyped": lambda s, _: s.mistyped(),
    "stats": lambda s, _: s.stats(ACCOUNT),
}


class CareLaws(Laws):
    """A store says how it is, and after closing says only that it is closed."""

    def test_a_consumer_starts_at_the_beginning_and_stays_where_it_was_moved(self, book: Scribe) -> None:
        book.tell("one")
        store = book.store
        assert store.cursor(ACCOUNT, "graph") == 0
        store.advance(ACCOUNT, "graph", 1)
        store.advance("umbrella", "graph", 7)
        assert store.cursor(ACCOUNT, "graph") == 1
        assert store.cursor(ACCOUNT, "tree") == 0
        assert store.cursor("umbrella", "graph") == 7
        store.advance(ACCOUNT, "graph", 0)
        assert store.cursor(ACCOUNT, "graph") == 0

    def test_a_cursor_makes_no_ledger(self, book: Scribe) -> None:
        book.store.advance(ACCOUNT, "graph", 0)
        assert list(book.store.accounts()) == []

    def test_a_write_does_not_move_a_cursor(self, book: Scribe) -> None:
        book.store.advance(ACCOUNT, "graph", 0)
        book.tell("one")
        book.store.advance(ACCOUNT, "graph", 1)
        book.tell("two")
        assert book.store.cursor(ACCOUNT, "graph") == 1

    def test_a_cursor_moves_with_the_batch_of_its_consumer_or_not_at_all(self, book: Scribe) -> None:
        book.tell("one")
        store, draft = book.store, Draft(Asserted("t9", Claim("made of one")), ALICE)
        store.commit(Batch(ACCOUNT, [draft], step=Step("facts", 0, 1)), book.folding(VIEWS))
        assert store.cursor(ACCOUNT, "facts") == 1
        with pytest.raises(Conflict):
            store.commit(Batch(ACCOUNT, [draft], step=Step("facts", 0, 1)), book.folding(VIEWS))
        assert store.head(ACCOUNT).seq == 2
        store.commit(Batch(ACCOUNT, [], step=Step("facts", 1, 2)), book.folding(VIEWS))
        assert (store.cursor(ACCOUNT, "facts"), store.head(ACCOUNT).seq) == (2, 2)

    def test_a_fault_is_kept_with_its_attempts(self, book: Scribe, clock: ManualClock) -> None:
        book.tell("one")
        store = book.store
        store.fault(ACCOUNT, "graph", 1, "no answer")
        clock.tick()
        store.fault(ACCOUNT, "graph", 1, "garbled")
        store.fault(ACCOUNT, "tree", 1, "too deep")
        store.fault("umbrella", "tree", 1, "theirs")
        kept = [(f.account, f.consumer, f.seq, f.error, f.attempts) for f in store.faults(ACCOUNT)]
        assert kept == [(ACCOUNT, "graph", 1, "garbled", 2), (ACCOUNT, "tree", 1, "too deep", 1)]
        assert [fault.at for fault in store.faults(ACCOUNT)] == [clock.now] * 2
        assert len({fault.id for account in (ACCOUNT, "umbrella") for fault in store.faults(account)}) == 3

    def test_a_fault_keeps_what_a_model_answered_until_it_is_settled(self, book: Scribe) -> None:
        book.tell("one")
        store = book.store
        store.fault(ACCOUNT, "facts", 1, "garbled", '["a", "b')
        store.fault(ACCOUNT, "tree", 1, "too deep")
        store.fault("umbrella", "tree", 1, "theirs")
        facts, tree = store.faults(ACCOUNT)
        assert (facts.raw, tree.raw) == ('["a", "b', "")
        assert store.settle(ACCOUNT, [facts.id, store.faults("umbrella")[0].id, 10_000]) == 1
        assert [fault.consumer for fault in store.faults(ACCOUNT)] == ["tree"]
        assert len(store.faults("umbrella")) == 1
        assert store.settle(ACCOUNT, []) == 0

    def test_the_rows_of_some_entries_are_what_is_folded_from_them(self, book: Scribe) -> None:
        book.write(Observed("e1", Evidence("hi", role="user", source="chat")))
        book.tell("lives in Rome", "home", actor="Ann", evidence="e1")
        book.tell("since May", "may", actor="Ann", after="home", meta={"abstract": "May"})
        book.link("home", "relates_to", "may")
        book.write(Observed("e2", Evidence("ho", role="user")), scope=BOB)
        folded = _as_stored(book.folding(VIEWS)(book.entries()))
        for after in range(book.seq + 1):
            for upto in range(after, book.seq + 1):
                found = book.store.folded(ACCOUNT, after, upto)
                assert _sorted(found) == _sorted([row for row in folded if after < row.seq <= upto])
        assert len(folded) == 10
        assert book.store.folded("umbrella", 0, 99) == []

    def test_a_passage_stands_after_no_turn_that_is_gone(self, book: Scribe) -> None:
        book.tell("lives in Rome", "home", actor="Ann")
        book.tell("since May", "may", actor="Ann", after="home")
        erase(book, [1])
        [passage] = [row for row in book.store.folded(ACCOUNT, 0, 9) if isinstance(row, Passage)]
        assert (passage.seq, passage.after) == (2, None)

    def test_tickets_and_cursors_that_are_not_of_the_ledger_are_problems_that_a_rebuild_solves(
        self, book: Scribe
    ) -> None:
        book.write(Asserted("t1", Claim("one")), ticket=ticket("good", "t1"))
        book.store.advance(ACCOUNT, "c", 1)
        assert list(book.store.check()) == []
        book.write(Asserted("t2", Claim("two")), ticket=ticket("bad", "nobody"))
        assert len(book.store.check()) == 1
        book.store.advance(ACCOUNT, "c", 99)
        assert len(book.store.check()) == 2
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert list(book.store.check()) == []
        assert book.store.cursor(ACCOUNT, "c") == book.seq
        kept = [book.store.known(ALICE, [], [], key).ticket for key in ("good", "bad")]
        assert [each and each.key for each in kept] == ["good", None]

    def test_a_sound_store_has_no_problems(self, book: Scribe) -> None:
        assert list(book.store.check()) == []
        book.store.use_model("m", 2)
        book.observe("said", "e1")
        book.tell("one", "t1", evidence="e1")
        book.tell("two", "t1")
        book.retract("t1")
        erase(book, [2])
        assert list(book.store.check()) == []

    def test_the_figures_count_what_is_there(self, book: Scribe) -> None:
        book.observe("said", "e1")
        book.tell("one", "t1", evidence="e1")
        book.tell("two", "t1")
        book.tell("three", "t2", BOB)
        book.tell("four", "t3", Scope(ACCOUNT, user_id="alice", agent_id="a", run_id="r"))
        book.link("t3", "supports", "t1")
        erase(book, [4])
        stats = book.store.stats(ACCOUNT)
        wanted = {
            "entries": 7, "erased": 1, "memories": 2, "versions": 3, "links": 1, "evidence": 1, "users": 1, "agents": 1,
            "runs": 1, "faults": 0, "recalls": 0, "blobs": 0, "tasks": 0, "model": None, "pending_vectors": 0,
        }  # fmt: skip
        assert {name: stats.get(name, "missing") for name in wanted} == wanted
        book.store.use_model("m", 2)
        stats = book.store.stats(ACCOUNT)
        assert (stats["model"], stats["pending_vectors"]) == ({"name": "m", "dim": 2}, 3)
        assert book.store.stats("umbrella")["entries"] == 0

    @pytest.mark.parametrize("name", CALLS)
    def test_a_closed_store_refuses(self, book: Scribe, name: str) -> None:
        CALLS[name](book.store, book)
        book.store.close()
        with pytest.raises(StoreClosed):
            CALLS[name](book.store, book)

    def test_a_closed_store_refuses_reads_of_facts(self, book: Scribe) -> None:
        find = book.find()
        book.store.close()
        with pytest.raises(StoreClosed):
            book.store.facts(find)
        with pytest.raises(StoreClosed):
            book.store.index.search(Probe(find, ("tea",)))

    def test_closing_twice_is_fine(self, book: Scribe) -> None:
        book.store.close()
        book.store.close()


def _as_stored(ops: Iterable[RowOp]) -> list[Row]:
    """What is folded, as the rows of a store where nothing has ended are."""
    rows = [op for op in ops if not isinstance(op, CloseThread | EndVersion)]
    return [replace(row, thread=None) if isinstance(row, Passage) else row for row in rows]


def _sorted(rows: Sequence[Row]) -> list[str]:
    """Rows of several views in an order of their own."""
    return sorted(map(repr, rows))
