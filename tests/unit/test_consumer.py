"""The consumer loop: draining, retrying, skipping, leasing and recording faults."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from told.backends.memory.store import InMemoryStore
from told.errors import Conflict, LLMError
from told.flow import Flow, call, run
from told.ledger.consumer import (
    UNREADABLE_REPLY,
    Consumer,
    CursorConflict,
    Job,
    JobBatch,
    drain,
    retry_faults,
)
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft
from told.model.query import AccessBatch, ReviewReason, ReviewTask
from told.model.scope import Scope
from told.ports import Batch, CursorStep

ACCOUNT, NAME = "acme", "worker"


@pytest.fixture
def store() -> Iterator[InMemoryStore]:
    opened = InMemoryStore()
    yield opened
    opened.close()


class Worker:
    """A consumer of the numbers 1 to `last` that raises the scripted errors."""

    def __init__(self, store: InMemoryStore, last: int, errors: Sequence[object] = ()) -> None:
        self.store, self.last, self.errors = store, last, list(errors)
        self.seen: list[int] = []

    def consumer(self, **options: object) -> Consumer[int, int]:
        return Consumer(name=NAME, load_batch=self.load, process=self.process, **options)  # type: ignore[arg-type]

    def load(self) -> Flow[JobBatch[int] | None]:
        before = yield from call(self.store.get_cursor, ACCOUNT, NAME)
        if before >= self.last:
            return None
        number = before + 1
        return JobBatch([Job(number, CursorStep(NAME, before, number), (number,))])

    def process(self, number: int, step: CursorStep | None) -> Flow[int]:
        self.seen.append(number)
        error = self.errors.pop(0) if self.errors else None
        if isinstance(error, Exception):
            raise error
        if step is not None:
            yield from call(self.store.update_consumer, ACCOUNT, NAME, cursor=step.after)
        return number


def faults(store: InMemoryStore) -> list[tuple[int, str, int, str]]:
    return [(row.seq, row.error, row.attempts, row.raw) for row in store.list_faults(ACCOUNT)]


def test_every_job_is_processed_in_order(store: InMemoryStore) -> None:
    worker = Worker(store, 3)
    result = run(drain(store, ACCOUNT, worker.consumer(attempts=3)))
    assert (result.results, result.failure, worker.seen) == ([1, 2, 3], None, [1, 2, 3])
    assert faults(store) == []


def test_a_transient_failure_stops_the_drain_until_attempts_are_used_up(
    store: InMemoryStore,
) -> None:
    worker = Worker(store, 2, [LLMError("down", raw="{"), LLMError("down")])
    consumer = worker.consumer(attempts=2)
    first = run(drain(store, ACCOUNT, consumer))
    assert (str(first.failure), first.outcomes) == ("down", [])
    assert faults(store) == [(1, "down", 1, "{")]
    second = run(drain(store, ACCOUNT, consumer))
    assert (second.failure, second.results, worker.seen) == (None, [2], [1, 1, 2])
    assert faults(store) == [(1, "down", 2, "")]


def test_a_permanent_failure_is_skipped_at_once(store: InMemoryStore) -> None:
    worker = Worker(store, 2, [LLMError("bad request", status=400)])
    result = run(drain(store, ACCOUNT, worker.consumer(attempts=5)))
    assert (result.failure, result.results) == (None, [2])
    assert faults(store) == [(1, "bad request", 1, "")]


def test_without_attempts_a_failure_stops_and_leaves_no_fault(store: InMemoryStore) -> None:
    worker = Worker(store, 2, [ValueError("broken")])
    result = run(drain(store, ACCOUNT, worker.consumer()))
    assert str(result.failure) == "ValueError: broken"
    assert (faults(store), store.get_cursor(ACCOUNT, NAME)) == ([], 0)
    with pytest.raises(ValueError, match="broken"):
        result.raise_failure()


def test_a_moved_cursor_reloads_the_job(store: InMemoryStore) -> None:
    worker = Worker(store, 1, [CursorConflict(), CursorConflict()])
    result = run(drain(store, ACCOUNT, worker.consumer(attempts=1)))
    assert (result.results, worker.seen, faults(store)) == ([1], [1, 1, 1], [])


@pytest.mark.parametrize(("conflicts", "is_done"), [(2, True), (3, False)])
def test_a_commit_conflict_is_retried_a_limited_number_of_times(
    store: InMemoryStore, conflicts: int, is_done: bool
) -> None:
    worker = Worker(store, 1, [Conflict("late") for _ in range(conflicts)])
    result = run(drain(store, ACCOUNT, worker.consumer(conflict_attempts=3)))
    assert (result.results == [1], result.failure is None) == (is_done, is_done)


def test_a_job_whose_entries_were_removed_is_reloaded(store: InMemoryStore) -> None:
    intact = iter([False, True])

    def is_intact(_: int) -> Flow[bool]:
        yield from ()
        return next(intact)

    worker = Worker(store, 1, [LLMError("down")])
    result = run(drain(store, ACCOUNT, worker.consumer(attempts=1, is_intact=is_intact)))
    assert (result.results, faults(store)) == ([1], [])


def test_an_unreadable_reply_is_a_fault_and_success_resolves_it(store: InMemoryStore) -> None:
    replies = [["<a>", "<b>"], []]
    worker = Worker(store, 1)
    consumer = worker.consumer(attempts=1, list_unreadable=lambda _: replies.pop(0))
    run(drain(store, ACCOUNT, consumer))
    assert faults(store) == [(1, UNREADABLE_REPLY, 1, "<a>\n\n<b>")]

    def load_job(seq: int) -> Flow[Job[int] | None]:
        yield from ()
        return Job(seq, seqs=(seq,))

    assert run(retry_faults(store, ACCOUNT, consumer, [], load_job)) == (1, 0)
    assert faults(store) == []


def test_the_fault_of_a_job_that_no_longer_exists_is_cleared(store: InMemoryStore) -> None:
    worker = Worker(store, 1, [LLMError("down")])
    run(drain(store, ACCOUNT, worker.consumer(attempts=1)))

    def load_job(_: int) -> Flow[Job[int] | None]:
        yield from ()
        return None

    assert run(retry_faults(store, ACCOUNT, worker.consumer(), [], load_job)) == (1, 0)


def split_job(store: InMemoryStore, fails: Callable[[int], bool]) -> Consumer[Sequence[int], int]:
    def load() -> Flow[JobBatch[Sequence[int]] | None]:
        if (yield from call(store.get_cursor, ACCOUNT, NAME)):
            return None
        return JobBatch([Job([1, 2, 3])], {NAME: 3})

    def process(numbers: Sequence[int], _: CursorStep | None) -> Flow[int]:
        yield from ()
        if any(map(fails, numbers)):
            raise LLMError("poison")
        return len(numbers)

    def split(numbers: Sequence[int]) -> list[Job[Sequence[int]]]:
        return [Job([number], seqs=(number,)) for number in numbers]

    return Consumer(name=NAME, load_batch=load, process=process, split=split, attempts=2)


def test_only_the_failing_part_of_a_job_is_skipped(store: InMemoryStore) -> None:
    result = run(drain(store, ACCOUNT, split_job(store, lambda number: number == 2)))
    assert (result.failure, store.get_cursor(ACCOUNT, NAME)) == (None, 3)
    assert faults(store) == [(2, "poison", 1, "")]


def test_nothing_is_skipped_if_every_part_fails(store: InMemoryStore) -> None:
    result = run(drain(store, ACCOUNT, split_job(store, lambda _: True)))
    assert (str(result.failure), store.get_cursor(ACCOUNT, NAME)) == ("poison", 0)
    assert faults(store) == []


@pytest.mark.parametrize(("attempts", "is_dropped"), [(3, False), (1, True)])
def test_a_leased_task_is_kept_until_its_attempts_are_used_up(
    store: InMemoryStore, attempts: int, is_dropped: bool
) -> None:
    claim = Draft(Asserted("t", Claim("Ann likes tea")), Scope(ACCOUNT, user_id="ann"))
    store.commit(Batch(ACCOUNT, [claim]), fold_all)
    tasks = [ReviewTask("t", ReviewReason.SCHEDULED_REVIEW)]
    store.record_accesses(ACCOUNT, AccessBatch(tasks=tasks))

    def lease() -> Flow[JobBatch[ReviewTask] | None]:
        tasks = yield from call(store.claim_tasks, ACCOUNT, 1, 8, 100)
        return JobBatch([Job(task, lease=task) for task in tasks]) if tasks else None

    def process(_: ReviewTask, __: CursorStep | None) -> Flow[int]:
        yield from ()
        raise LLMError("down")

    def find_fault_seq(_: ReviewTask) -> Flow[int | None]:
        yield from ()
        return 7

    consumer = Consumer(
        name=NAME,
        load_batch=lease,
        process=process,
        find_fault_seq=find_fault_seq,
        attempts=attempts,
    )
    result = run(drain(store, ACCOUNT, consumer))
    assert ([task.thread for task, _ in result.outcomes], result.failure) == (["t"], None)
    assert bool(store.list_tasks(ACCOUNT, 8)) is not is_dropped
    assert faults(store) == ([(7, "down", 1, "")] if is_dropped else [])
