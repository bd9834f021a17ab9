"""Data beside the ledger is the same on every store after the same reads, notes and erasures."""

from hypothesis import given
from hypothesis import strategies as st

from histories import tried
from told.backends.memory.store import InMemoryStore
from told.backends.sqlite import open_store
from told.ledger.views import build_fold, fold_all
from told.model.entry import Asserted, Claim, Draft, Erased, Evidence, Observed, Ruled
from told.model.query import (
    LATEST,
    AccessBatch,
    AccessCount,
    AccessOutcome,
    AccessRecord,
    ReviewReason,
    ReviewTask,
)
from told.model.scope import Scope
from told.ports import VIEWS, Batch, CursorStep
from told.testing import ManualClock, seeded_mint

ACCOUNT = "default"
HOMES = (Scope(user_id="u"), Scope(user_id="u", run_id="r"), Scope(agent_id="a"))
THREADS = ("t1", "t2", "t3", "unknown")

threads, small = st.sampled_from(THREADS), st.integers(0, 40)
touches = st.builds(AccessCount, st.integers(1, 3), small)
recalls = st.builds(
    AccessRecord,
    threads,
    small,
    st.integers(0, 3),
    st.floats(0, 1),
    st.text("qz", max_size=2),
    st.sampled_from(AccessOutcome),
)
tasks = st.builds(
    ReviewTask, threads, st.sampled_from(ReviewReason), st.sampled_from((0.0, 0.1, 0.5, 1.0)), small
)
counts, pairs = (
    st.dictionaries(each, touches, max_size=3) for each in (threads, st.tuples(threads, threads))
)
left = st.builds(
    AccessBatch,
    counts,
    pairs,
    st.lists(recalls, max_size=9),
    st.integers(0, 3),
    st.lists(tasks, max_size=4),
    st.integers(0, 20),
)
noted = st.dictionaries(
    st.sampled_from((*THREADS, "k")), st.none() | st.binary(max_size=3), max_size=3
)
steps = st.one_of(
    st.tuples(st.just("tell"), threads.filter("unknown".__ne__)),
    st.tuples(
        st.just("say"), st.sampled_from(HOMES), st.sampled_from(("turn", "tick", "document"))
    ),
    st.tuples(st.just("record_accesses"), st.builds(AccessBatch, cooccurrences=pairs)),
    st.tuples(st.just("record_accesses"), left),
    st.tuples(
        st.just("record_accesses"),
        st.builds(AccessBatch, tasks=st.lists(tasks, max_size=4), window=st.integers(0, 20)),
    ),
    st.tuples(st.just("claim_tasks"), small, st.integers(0, 3), st.integers(0, 20)),
    st.tuples(st.just("complete_tasks"), st.lists(st.integers(1, 9), max_size=2)),
    st.tuples(st.just("note"), st.just("c"), noted),
    st.tuples(st.just("step"), noted),
    st.tuples(st.just("erase"), st.integers(0, 9)),
    st.tuples(st.just("reset")),
)


def play(store, step):
    """Take one step and return its result."""
    name, *arguments = step
    match step:
        case "tell", thread:
            return store.commit(
                Batch(ACCOUNT, [Draft(Asserted(thread, Claim(thread)), HOMES[0])]), fold_all
            )
        case "say", scope, sort:
            said = Observed(
                store.mint.new_id(),
                Evidence("some words", sort=sort, meta={"turns": 2, "tokens": 9}),
            )
            return store.commit(Batch(ACCOUNT, [Draft(said, scope)]), fold_all)
        case "note", consumer, notes:
            return store.update_consumer(ACCOUNT, consumer, notes=notes)
        case "step", notes:
            before = store.get_cursor(ACCOUNT, "c")
            return store.commit(
                Batch(ACCOUNT, [], step=CursorStep("c", before, before + 1), notes=notes), fold_all
            )
        case "erase", number:
            seqs = (
                (1 + number % store.get_head(ACCOUNT).seq,) if store.get_head(ACCOUNT).seq else ()
            )
            return store.erase(ACCOUNT, seqs, Draft(Erased(seqs), None))[0]
        case ("reset",):
            return store.reset(ACCOUNT, Draft(Ruled("ledger", "reset", {}), None))
        case _:
            return getattr(store, name)(ACCOUNT, *arguments)


def dump_overlay(store):
    """Return everything readable beside the ledger, and the ticks."""
    return {
        "met": list(store.cooccurrence(ACCOUNT, THREADS).items()),
        "recalls": [list(store.access_history(ACCOUNT, thread).records) for thread in THREADS],
        "states": [list(store.access_history(ACCOUNT, thread).states) for thread in THREADS],
        "queue": [places(task) for task in store.list_tasks(ACCOUNT)],
        "notes": (
            list(store.read_notes(ACCOUNT, "c").items()),
            dict(store.read_notes(ACCOUNT, "c", ["k", "t1"])),
        ),
        "ticked": [dict(store.tick_totals(scope, (3, 5, 9)).totals) for scope in HOMES],
        "ticks": [
            list(store.tick_totals(scope, [upto], 3).recent)
            for scope in HOMES
            for upto in (LATEST, 5)
        ],
        "tasks": store.get_stats(ACCOUNT)["tasks"],
    }


def places(task):
    return task.id, task.thread, task.reason, task.priority, task.due, task.claimed, task.attempts


@given(script=st.lists(steps, max_size=30))
@tried(60)
def test_overlay_is_the_same_on_every_store(tmp_path_factory, script):
    path = tmp_path_factory.mktemp("overlay") / "m.db"
    clock = ManualClock()
    ram, disk = (seeded_mint(1, clock) for _ in range(2))
    stores = [
        InMemoryStore(ram),
        open_store(f"sqlite:///{path}", mint=disk, settings={"durability": "normal"}),
    ]
    try:
        for step in script:
            clock.tick(1000)
            ram, disk = (play(store, step) for store in stores)
            assert ram == (list(disk) if isinstance(ram, list) else disk), step
            assert dump_overlay(stores[0]) == dump_overlay(stores[1]), step
        for store in stores:
            before = dump_overlay(store), [list(store.view_rows(ACCOUNT, view)) for view in VIEWS]
            store.rebuild(ACCOUNT, VIEWS, build_fold(VIEWS))
            assert (
                dump_overlay(store),
                [list(store.view_rows(ACCOUNT, view)) for view in VIEWS],
            ) == before
    finally:
        for store in stores:
            store.close()
