"""Laws of what is beside the ledger: the clock of a conversation, what reads leave behind, what consumers note."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from told.core.entry import Asserted, Claim, Draft, Evidence, Observed, Ruled
from told.core.errors import Conflict, InvalidInput
from told.core.fact import NEVER, Tick
from told.core.query import Touch
from told.core.recall import Access, Left, Reason, Recalled, RecallState, Task
from told.core.scope import Scope
from told.ports import VIEWS, Batch, Step
from told.testing.contract.erasing import erase
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe

THEIRS = "umbrella"
AT_WORK = Scope(ACCOUNT, user_id="alice", agent_id="clerk", run_id="r1")
RESET = Draft(Ruled("ledger", "reset", {}), None)
HALF = "\ud800"


def said(book: Scribe, content: str, scope: Scope = ALICE, role: str = "user", **evidence: object) -> int:
    """A turn somebody said; the position of its evidence."""
    made = Evidence(content, role=role, **{"sort": "turn", **evidence})  # type: ignore[arg-type]
    [entry] = book.write(Observed(book.store.mint.id(), made), scope=scope)
    return entry.seq


def known(book: Scribe, *threads: str) -> None:
    """Threads with a version each."""
    book.write(*(Asserted(thread, Claim(f"fact of {thread}")) for thread in threads))


def stepped(book: Scribe, before: int, notes: Mapping[str, bytes | None], *drafts: Draft) -> None:
    """A commit that moves the consumer `topics` one on and notes something with it."""
    batch = Batch(book.account, drafts, step=Step("topics", before, before + 1), notes=notes)
    book.store.commit(batch, book.folding(VIEWS))


def left(book: Scribe, account: str = ACCOUNT) -> tuple[object, ...]:
    """All that is beside the ledger of t1, t2 and t3."""
    store, threads = book.store, ("t1", "t2", "t3")
    return (
        dict(store.met(account, threads)), [list(store.recalls(account, thread)) for thread in threads],
        list(store.states(account, threads)), list(store.queue(account)), dict(store.notes(account, "topics")),
    )  # fmt: skip


def fill(book: Scribe, account: str = ACCOUNT) -> None:
    """Something of every sort about t1, t2 and t3."""
    store = book.store
    store.meet(account, {("t1", "t2"): Touch(1, 1), ("t3", "t1"): Touch(2, 2), ("t2", "t3"): Touch(3, 3)})
    store.write_down(account, Left(recalls=[Recalled(thread, 5, query="q") for thread in ("t1", "t2", "t3")], keep=10))
    store.enqueue(account, [Task(thread, Reason.RECALL) for thread in ("t1", "t2", "t3")], 0)
    store.note(account, "topics", {"t1": b"one", "t2": b"two", "all": b"three"})


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """What some threads make of the same moment."""
    gate = Barrier(count)

    def run(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


class OverlayLaws(Laws):
    """Ticks are a view; the rest is beside the ledger, and goes with what it belongs to."""

    # Ticks

    def test_what_a_user_says_is_a_tick_and_what_an_agent_says_is_none(self, book: Scribe) -> None:
        first = said(book, "one two three four")
        said(book, "an answer", role="assistant")
        said(book, "a document", sort="document")
        second = said(book, "", sort="tick", meta={"turns": 3, "tokens": 90})
        ats = [entry.at for entry in book.entries() if entry.seq in (first, second)]
        ticks = list(book.store.ticks(ALICE))
        assert [(tick.seq, tick.scope, tick.turns, tick.at) for tick in ticks] == [
            (first, ALICE, 1, ats[0]), (second, ALICE, 3, ats[1])
        ]  # fmt: skip
        assert (ticks[0].tokens > 0, ticks[1].tokens) == (True, 90)

    def test_ticks_are_those_of_a_home_whatever_the_run(self, book: Scribe) -> None:
        here, there, other = said(book, "a"), said(book, "b", AT_WORK), said(book, "c", BOB)
        for scope in (ALICE, AT_WORK, Scope(ACCOUNT, user_id="alice", agent_id="nobody yet")):
            assert [(tick.seq, tick.scope) for tick in book.store.ticks(scope)] == [(here, ALICE), (there, AT_WORK)]
        assert [tick.seq for tick in book.store.ticks(BOB)] == [other]
        for nobody in (Scope(ACCOUNT, user_id="nobody"), Scope(THEIRS, user_id="alice"), Scope(ACCOUNT, user_id=HALF)):
            assert list(book.store.ticks(nobody)) == []

    def test_ticks_up_to_a_position_are_the_last_ones_in_order(self, book: Scribe) -> None:
        seqs = [said(book, f"turn {number}") for number in range(6)]
        assert [tick.seq for tick in book.store.ticks(ALICE, limit=2)] == seqs[-2:]
        assert [tick.seq for tick in book.store.ticks(ALICE, seqs[3], 2)] == seqs[2:4]
        assert [tick.seq for tick in book.store.ticks(ALICE, seqs[0])] == seqs[:1]
        assert [tick.seq for tick in book.store.ticks(ALICE, 1 << 50)] == seqs
        assert (list(book.store.ticks(ALICE, 0)), list(book.store.ticks(ALICE, limit=0))) == ([], [])

    def test_ticks_add_up_to_each_position(self, book: Scribe) -> None:
        one = said(book, "", sort="tick", meta={"turns": 1, "tokens": 10})
        said(book, "", BOB, sort="tick", meta={"turns": 50, "tokens": 50})
        two = said(book, "", AT_WORK, sort="tick", meta={"turns": 4, "tokens": 0})
        last = said(book, "", sort="tick", meta={"turns": 2, "tokens": 7})
        places = [last, 0, one, two - 1, two, 1 << 50, NEVER, last]
        assert dict(book.store.ticked(AT_WORK, places)) == {
            0: (0, 0), one: (1, 10), two - 1: (1, 10), two: (5, 10), last: (7, 17), 1 << 50: (7, 17), NEVER: (7, 17)
        }  # fmt: skip
        assert dict(book.store.ticked(ALICE, [])) == {}
        for nobody in (Scope(ACCOUNT, user_id="nobody"), Scope(THEIRS, user_id="alice"), Scope(ACCOUNT, user_id=HALF)):
            assert dict(book.store.ticked(nobody, [last])) == {last: (0, 0)}
        erase(book, [one])
        assert dict(book.store.ticked(ALICE, [last])) == {last: (6, 7)}

    def test_erased_turns_are_no_ticks_and_a_rebuild_agrees(self, book: Scribe) -> None:
        seqs = [said(book, f"turn {number}", scope) for number, scope in enumerate((ALICE, AT_WORK, BOB, ALICE))]
        erase(book, [seqs[0], seqs[2]])
        grown = book.rows()
        assert [tick.seq for tick in book.store.ticks(ALICE)] == [seqs[1], seqs[3]]
        assert list(book.store.ticks(BOB)) == []
        assert len(grown["ticks"]) == 2
        assert book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))["ticks"] == 2
        assert book.rows() == grown
        assert [tick.seq for tick in book.store.ticks(ALICE)] == [seqs[1], seqs[3]]

    def test_ticks_alone_can_be_rebuilt_and_nothing_is_behind(self, book: Scribe) -> None:
        said(book, "one")
        before: Sequence[Tick] = list(book.store.ticks(ALICE))
        assert book.store.rebuild(ACCOUNT, ["ticks"], book.folding(["ticks"])) == {"ticks": 1}
        assert list(book.store.ticks(ALICE)) == before
        assert list(book.store.behind(ACCOUNT)) == list(book.store.behind(THEIRS)) == []

    def test_adopted_turns_are_ticks_there_too(self, book: Scribe, open_book: Callable[[], Scribe]) -> None:
        seqs = [said(book, "one"), said(book, "two")]
        other = open_book()
        other.store.adopt(ACCOUNT, book.entries(), book.folding(VIEWS))
        assert list(other.store.ticks(ALICE)) == list(book.store.ticks(ALICE))
        erase(book, seqs[:1])
        other.store.adopt(ACCOUNT, book.entries(), book.folding(VIEWS))
        assert [tick.seq for tick in other.store.ticks(ALICE)] == seqs[1:]

    # Topics that came up together

    def test_meetings_add_up_whoever_is_named_first(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        book.store.meet(ACCOUNT, {("t1", "t2"): Touch(1, 9), ("t3", "t2"): Touch(1, 1)})
        book.store.meet(ACCOUNT, {("t2", "t1"): Touch(2, 5)})
        assert dict(book.store.met(ACCOUNT, ["t1"])) == {("t1", "t2"): Touch(3, 9)}
        both = {("t1", "t2"): Touch(3, 9), ("t2", "t3"): Touch(1, 1)}
        assert dict(book.store.met(ACCOUNT, ["t2"])) == dict(book.store.met(ACCOUNT, ["t1", "t2", HALF])) == both
        assert dict(book.store.met(ACCOUNT, [])) == dict(book.store.met(THEIRS, ["t1"])) == {}

    def test_a_pair_with_an_unknown_end_or_of_one_with_itself_is_not_counted(self, book: Scribe) -> None:
        known(book, "t1")
        pairs = [("t1", "t9"), ("t9", "t1"), ("t1", "t1"), ("t1", HALF)]
        book.store.meet(ACCOUNT, dict.fromkeys(pairs, Touch(1, 1)))
        book.store.meet(THEIRS, {("t1", "t2"): Touch(1, 1)})
        known(book, "t9")
        assert dict(book.store.met(ACCOUNT, ["t1", "t9"])) == {}
        assert list(book.store.accounts()) == [ACCOUNT]

    def test_meetings_counted_at_once_all_count(self, book: Scribe) -> None:
        known(book, "t1", "t2")

        def meet(number: int) -> None:
            for each in range(10):
                book.store.meet(ACCOUNT, {("t1", "t2"): Touch(1, number * 10 + each)})

        at_once(8, meet)
        assert dict(book.store.met(ACCOUNT, ["t1"])) == {("t1", "t2"): Touch(80, 79)}

    # What reads leave behind

    def test_what_reads_leave_behind_is_written_down_as_if_each_part_were_alone(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        met, counts = {("t2", "t1"): Touch(2, 7), ("t1", "t9"): Touch(1, 1)}, {"t1": Touch(3, 9), "t9": Touch(1, 1)}
        recalls = [Recalled(thread, at, query="q") for at in range(4) for thread in ("t3", "t1", "t9")]
        tasks = [Task(thread, Reason.RECALL, 0.5, 4) for thread in ("t2", "t9", "t2")]
        for _ in range(2):
            book.store.write_down(ACCOUNT, Left(counts, met, recalls, 3, tasks, 10))
        assert dict(book.store.touched(ACCOUNT, ["t1", "t9"])) == {"t1": Touch(6, 9)}
        assert dict(book.store.met(ACCOUNT, ["t1"])) == {("t1", "t2"): Touch(4, 7)}
        assert [recall.at for recall in book.store.recalls(ACCOUNT, "t1")] == [2, 3, 3]
        assert [state.count for state in book.store.states(ACCOUNT, ["t3"])] == [6, 7, 8]
        assert [(task.thread, task.priority, task.due) for task in book.store.queue(ACCOUNT)] == [("t2", 0.5, 4)]

    def test_where_no_recall_is_kept_none_is_noted_and_the_rest_is_written_down(self, book: Scribe) -> None:
        known(book, "t1")
        book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t1", 1)], keep=10))
        book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 2)}, recalls=[Recalled("t1", 2)]))
        assert [recall.at for recall in book.store.recalls(ACCOUNT, "t1")] == [1]
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {"t1": Touch(1, 2)}

    def test_what_cannot_be_written_down_as_a_whole_is_not_written_down(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        whole = {("t1", "t2"): Touch(1, 1)}, [Recalled("t1", 1), Recalled("t2", 1, query=HALF)]
        before = left(book)
        with pytest.raises(InvalidInput):
            book.store.write_down(ACCOUNT, Left({"t1": Touch(1, 1)}, *whole, 10, [Task("t1", Reason.RECALL)], 0))
        assert dict(book.store.touched(ACCOUNT, ["t1"])) == {}
        assert left(book) == before

    # Recalls one by one

    def test_recalls_are_kept_as_they_were_oldest_first(self, book: Scribe) -> None:
        known(book, "t1", "t2")
        late, early = Recalled("t1", 20, 1, 0.25, "abc", Access.CITED), Recalled("t1", 10)
        others = [Recalled("t2", 5), Recalled("t9", 5), Recalled(HALF, 5)]
        book.store.write_down(ACCOUNT, Left(recalls=[late, *others], keep=10))
        book.store.write_down(ACCOUNT, Left(recalls=[early], keep=10))
        assert list(book.store.recalls(ACCOUNT, "t1")) == [early, late]
        assert list(book.store.recalls(ACCOUNT, "t2")) == [Recalled("t2", 5)]
        for account, thread in ((ACCOUNT, "t9"), (ACCOUNT, HALF), (THEIRS, "t1")):
            assert list(book.store.recalls(account, thread)) == []
            assert list(book.store.states(account, [thread])) == []

    def test_each_recall_closes_a_state_and_opens_a_stronger_one(self, book: Scribe) -> None:
        known(book, "t1", "t2")
        book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t1", 10), Recalled("t2", 15)], keep=10))
        book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t1", 20), Recalled("t1", 30)], keep=10))
        assert list(book.store.states(ACCOUNT, ["t2", "t1", "t9"])) == [
            RecallState("t1", 10, 20, 1, 0.1), RecallState("t1", 20, 30, 2, 0.2), RecallState("t1", 30, NEVER, 3, 0.3),
            RecallState("t2", 15, NEVER, 1, 0.1),
        ]  # fmt: skip

    def test_a_recall_told_late_opens_no_state_before_the_open_one(self, book: Scribe) -> None:
        known(book, "t1")
        book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t1", 20), Recalled("t1", 10)], keep=10))
        found = [(state.since, state.until, state.count) for state in book.store.states(ACCOUNT, ["t1"])]
        assert found == [(20, 20, 1), (20, NEVER, 2)]

    def test_the_newest_recalls_stay_and_strength_ends_at_one(self, book: Scribe) -> None:
        known(book, "t1", "t2")
        book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t2", 1)], keep=3))
        for at in range(12):
            book.store.write_down(ACCOUNT, Left(recalls=[Recalled("t1", at)], keep=3))
        assert [recall.at for recall in book.store.recalls(ACCOUNT, "t1")] == [9, 10, 11]
        states = list(book.store.states(ACCOUNT, ["t1"]))
        assert [(state.since, state.until, state.count) for state in states] == [
            (9, 10, 10), (10, 11, 11), (11, NEVER, 12)
        ]  # fmt: skip
        assert states[-1].strength == 1.0
        assert len(book.store.recalls(ACCOUNT, "t2")) == len(book.store.states(ACCOUNT, ["t2"])) == 1

    # What is to be thought over

    def test_tasks_stand_by_urgency_then_by_when_they_are_due(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        tasks = [
            Task("t1", Reason.RECALL, 0.5, 30), Task("t2", Reason.RECALL, 0.5, 10),
            Task("t3", Reason.EXPLICIT, 0.9, 90), Task("t9", Reason.RECALL, 1.0), Task(HALF, Reason.RECALL, 1.0),
        ]  # fmt: skip
        assert book.store.enqueue(ACCOUNT, tasks, 0) == 3
        found = book.store.queue(ACCOUNT)
        assert [task.thread for task in found] == ["t3", "t2", "t1"]
        assert [task.thread for task in book.store.queue(ACCOUNT, 1)] == ["t3"]
        assert len({task.id for task in found} - {0}) == 3
        assert book.store.stats(ACCOUNT)["tasks"] == 3
        assert book.store.enqueue(THEIRS, tasks, 0) == len(book.store.queue(THEIRS)) == 0
        assert book.store.stats(THEIRS)["tasks"] == 0

    def test_what_is_due_within_the_window_is_one_task_of_the_larger_priority(self, book: Scribe) -> None:
        known(book, "t1", "t2")
        tasks = [Task("t1", Reason.RECALL, 0.2, 100), Task("t1", Reason.RECALL, 0.7, 150)]
        assert book.store.enqueue(ACCOUNT, tasks, 50) == 1
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, 0.1, 50)], 50) == 0
        [task] = book.store.queue(ACCOUNT)
        assert (task.due, task.priority) == (50, 0.7)
        others = [Task("t1", Reason.RECALL, due=-1), Task("t1", Reason.EXPLICIT, due=100), Task("t2", Reason.RECALL)]
        assert book.store.enqueue(ACCOUNT, others, 50) == 3

    def test_what_nobody_has_taken_is_one_task_however_long_it_waits(self, book: Scribe) -> None:
        known(book, "t1")
        for due in range(0, 5000, 100):
            book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, due / 5000, due)], 50)
        [task] = book.store.queue(ACCOUNT)
        assert (task.due, task.priority) == (0, 0.98)

    def test_a_task_that_is_being_worked_on_is_joined_within_the_window_only(self, book: Scribe) -> None:
        known(book, "t1")
        book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, due=100)], 50)
        [taken] = book.store.claim(ACCOUNT, 100, 9, 20)
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, due=150)], 50) == 0
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, due=151)], 50) == 1
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL, due=999)], 50) == 0
        assert [(task.id == taken.id, task.due) for task in book.store.queue(ACCOUNT)] == [(True, 100), (False, 151)]

    def test_a_claimed_task_is_nobody_elses_until_its_lease_is_over(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        asked = (("t1", 0.1, 10), ("t2", 0.9, 10), ("t3", 1.0, 99))
        book.store.enqueue(ACCOUNT, [Task(thread, Reason.RECALL, urgent, due) for thread, urgent, due in asked], 0)
        [first] = book.store.claim(ACCOUNT, 50, 1, 20)
        assert (first.thread, first.claimed, first.attempts) == ("t2", 50, 1)
        assert [task.thread for task in book.store.claim(ACCOUNT, 60, 9, 20)] == ["t1"]
        assert list(book.store.claim(ACCOUNT, 70, 9, 20)) == []
        [again] = book.store.claim(ACCOUNT, 71, 9, 20)
        assert (again.id, again.claimed, again.attempts) == (first.id, 71, 2)
        assert {task.thread: task.claimed for task in book.store.queue(ACCOUNT)} == {"t3": 0, "t2": 71, "t1": 60}
        assert list(book.store.claim(THEIRS, 999, 9, 20)) == list(book.store.claim(ACCOUNT, 999, 0, 20)) == []

    def test_a_task_is_open_until_it_is_done(self, book: Scribe) -> None:
        known(book, "t1", "t2")
        book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL), Task("t2", Reason.RECALL)], 0)
        [task, other] = book.store.claim(ACCOUNT, 50, 9, 20)
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL)], 0) == 0
        assert book.store.done(THEIRS, [task.id]) == book.store.done(ACCOUNT, []) == 0
        assert book.store.done(ACCOUNT, [task.id, 999]) == 1
        assert [left.id for left in book.store.queue(ACCOUNT)] == [other.id]
        assert book.store.enqueue(ACCOUNT, [Task("t1", Reason.RECALL)], 0) == 1
        assert task.id not in {queued.id for queued in book.store.queue(ACCOUNT)}

    def test_no_two_workers_get_the_same_task(self, book: Scribe) -> None:
        names = [f"t{number}" for number in range(40)]
        known(book, *names)
        book.store.enqueue(ACCOUNT, [Task(name, Reason.RECALL) for name in names], 0)
        taken = at_once(2, lambda _: [task.id for _ in range(10) for task in book.store.claim(ACCOUNT, 50, 3, 20)])
        ids = [id_ for each in taken if isinstance(each, list) for id_ in each]
        assert sorted(ids) == sorted(task.id for task in book.store.queue(ACCOUNT))
        assert len(ids) == len(set(ids)) == 40

    # What consumers note for themselves

    def test_notes_are_a_consumers_own(self, book: Scribe) -> None:
        book.store.note(ACCOUNT, "topics", {"a": b"\x00\xff", "b": b"", "c": b"old"})
        book.store.note(ACCOUNT, "topics", {"b": None, "c": b"new", "never": None})
        assert dict(book.store.notes(ACCOUNT, "topics")) == {"a": b"\x00\xff", "c": b"new"}
        assert dict(book.store.notes(ACCOUNT, "topics", ["c", "b", HALF])) == {"c": b"new"}
        assert dict(book.store.notes(ACCOUNT, "topics", [])) == dict(book.store.notes(ACCOUNT, "other")) == {}
        assert dict(book.store.notes(THEIRS, "topics")) == dict(book.store.notes(ACCOUNT, HALF)) == {}
        with pytest.raises(InvalidInput):
            book.store.note(ACCOUNT, "topics", {"d": b"x", HALF: b"x"})
        assert "d" not in book.store.notes(ACCOUNT, "topics")

    def test_notes_commit_with_their_step_or_not_at_all(self, book: Scribe) -> None:
        stepped(book, 0, {"a": b"1", "b": b"1"}, Draft(Asserted("t1", Claim("tea")), ALICE))
        stepped(book, 1, {"a": None, "b": b"2"})
        assert (book.store.cursor(ACCOUNT, "topics"), dict(book.store.notes(ACCOUNT, "topics"))) == (2, {"b": b"2"})
        with pytest.raises(Conflict):
            stepped(book, 1, {"b": b"3"})
        with pytest.raises(InvalidInput):
            stepped(book, 2, {"b": b"3", HALF: b"3"}, Draft(Asserted("t2", Claim("mate")), ALICE))
        assert (book.store.cursor(ACCOUNT, "topics"), dict(book.store.notes(ACCOUNT, "topics"))) == (2, {"b": b"2"})
        assert book.texts() == ["tea"]

    def test_notes_without_a_step_are_refused(self) -> None:
        with pytest.raises(InvalidInput):
            Batch(ACCOUNT, [], notes={"a": b"1"})

    # All of it

    def test_erasing_a_thread_takes_all_that_belongs_to_it(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        fill(book)
        erase(book, [1])
        met, recalls, states, tasks, notes = left(book)
        assert met == {("t2", "t3"): Touch(3, 3)}
        assert recalls == [[], [Recalled("t2", 5, query="q")], [Recalled("t3", 5, query="q")]]
        assert isinstance(states, list)
        assert isinstance(tasks, list)
        assert [state.thread for state in states] == [task.thread for task in tasks] == ["t2", "t3"]
        assert notes == {"all": b"three", "t2": b"two"}
        fill(book)
        assert dict(book.store.met(ACCOUNT, ["t1"])) == {}
        assert not [*book.store.recalls(ACCOUNT, "t1"), *book.store.states(ACCOUNT, ["t1"])]
        assert "t1" not in {task.thread for task in book.store.queue(ACCOUNT)}

    def test_an_adopted_tombstone_takes_it_too(self, book: Scribe) -> None:
        other = self.elsewhere(book, THEIRS)
        known(book, "t1", "t2", "t3")
        other.store.adopt(THEIRS, book.entries(), book.folding(VIEWS))
        fill(book, THEIRS)
        erase(book, [1, 2, 3])
        other.store.adopt(THEIRS, book.entries(), book.folding(VIEWS))
        assert left(book, THEIRS) == ({}, [[], [], []], [], [], {"all": b"three"})

    def test_a_reset_takes_everything_of_one_account(self, book: Scribe) -> None:
        other = self.elsewhere(book, THEIRS)
        other.write(*(Asserted(f"t{n}", Claim("x")) for n in (1, 2, 3)), scope=Scope(THEIRS, user_id="alice"))
        known(book, "t1", "t2", "t3")
        said(book, "one")
        for account in (ACCOUNT, THEIRS):
            fill(book, account)
        theirs = left(book, THEIRS)
        book.store.reset(ACCOUNT, RESET)
        known(book, "t1", "t2", "t3")
        assert left(book) == ({}, [[], [], []], [], [], {})
        assert list(book.store.ticks(ALICE)) == []
        assert left(book, THEIRS) == theirs

    def test_it_changes_neither_the_ledger_nor_a_view_and_a_rebuild_leaves_it(self, book: Scribe) -> None:
        known(book, "t1", "t2", "t3")
        said(book, "one")
        before = (book.store.head(ACCOUNT), list(book.entries()), book.rows(), book.search("fact"))
        fill(book)
        filled = left(book)
        assert (book.store.head(ACCOUNT), list(book.entries()), book.rows(), book.search("fact")) == before
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert left(book) == filled
        assert list(book.store.check()) == []
