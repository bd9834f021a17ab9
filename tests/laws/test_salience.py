"""Salience depends only on the times of the mentions, and only faded memories are forgotten."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import tried
from told import Memory, ToldError
from told.model.decay import ClockReadings
from told.model.fact import Tick
from told.model.salience import (
    MAX_SALIENCE,
    DecayClock,
    DecayCurve,
    Tier,
    compute_salience,
    decay_per_day,
    decay_per_event,
    find_fade_time,
)
from told.model.scope import Scope
from told.text.dates import format_iso
from visits import VISIT, visit

STORES = ["ram", "sqlite"]
shares = st.floats(0.0, 1.0)
decays = st.sampled_from([tier.decay for tier in Tier]) | st.floats(0.01, 1.0)
curves = st.builds(DecayCurve, base=shares, decay=decays, is_permanent=st.booleans(), floor=shares)
readings = st.integers(0, 300) | st.floats(0.0, 300.0)
saids = st.lists(readings, min_size=1, max_size=8)

# The function


@given(curve=curves, said=saids, now=readings)
@tried(300)
def test_salience_is_between_zero_and_the_maximum(curve, said, now):
    assert 0.0 <= compute_salience(curve, said, now) <= MAX_SALIENCE


@given(curve=curves, said=saids, nows=st.lists(readings, min_size=2, max_size=6))
@tried(300)
def test_salience_never_grows_without_repetition(curve, said, nows):
    later = sorted(max(said) + now for now in nows)
    weights = [compute_salience(curve, said, now) for now in later]
    assert all(after <= before for before, after in pairwise(weights))


@given(curve=curves, said=saids, now=readings)
@tried(300)
def test_repetition_never_weakens_a_memory_that_has_not_faded(curve, said, now):
    """A read may therefore load repetitions only for memories that seem to have faded."""
    alone = compute_salience(curve, [min(said)], now)
    if now >= min(said) and not curve.is_faded(alone):
        assert compute_salience(curve, said, now) >= alone * (1 - 1e-9)
        assert not curve.is_faded(compute_salience(curve, said, now)) or alone < curve.floor * (
            1 + 1e-9
        )


@given(curve=curves, said=saids, now=readings, data=st.data())
@tried(200)
def test_salience_does_not_depend_on_the_order_of_the_times(curve, said, now, data):
    mixed = data.draw(st.permutations(said))
    assert compute_salience(curve, mixed, now) == compute_salience(curve, said, now)


@given(curve=curves, said=st.lists(st.integers(0, 300), min_size=1, max_size=8))
@tried(300)
def test_memory_fades_exactly_at_the_predicted_time(curve, said):
    end = find_fade_time(curve, said, max(said))
    if end is None:
        assert curve.is_permanent or curve.decay == 1.0 or curve.floor == 0.0
    else:
        assert curve.is_faded(compute_salience(curve, said, end))
        assert end == max(said) or not curve.is_faded(compute_salience(curve, said, end - 1))


@given(decay=st.floats(0.05, 0.999), events=st.integers(1, 50), turns=st.integers(0, 40))
@tried(100)
def test_events_of_a_turn_decay_like_the_turn(decay, events, turns):
    assert decay_per_event(decay, events) ** (events * turns) == pytest.approx(decay**turns)


@given(days=st.floats(0.05, 1000.0))
@tried(50)
def test_salience_is_one_half_after_a_half_life(days):
    assert decay_per_day(days) ** days == pytest.approx(0.5)


# Clocks

NOWHERE = Scope(user_id="ann")


@given(
    sizes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 900)), max_size=12), data=st.data()
)
@tried(200)
def test_one_tick_of_many_turns_equals_many_ticks_of_one(sizes, data):
    batched = [Tick(10 * place, NOWHERE, place, *size) for place, size in enumerate(sizes, 1)]
    single = [
        Tick(
            tick.seq,
            NOWHERE,
            tick.at,
            1,
            tick.tokens // tick.turns + (n < tick.tokens % tick.turns),
        )
        for tick in batched
        for n in range(tick.turns)
    ]
    whole = [tick for tick in batched if tick.turns]
    one, many = counted(whole), counted(single)
    place = data.draw(st.integers(0, 130))
    for clock in (DecayClock.TURNS, DecayClock.TOKENS):
        assert one.reading_at(clock, place, 0) == pytest.approx(many.reading_at(clock, place, 0))
        assert one.current_reading(clock) == pytest.approx(many.current_reading(clock))


def counted(ticks):
    sums = accumulate(
        ticks,
        lambda before, tick: (before[0] + tick.turns, before[1] + tick.tokens),
        initial=(0, 0),
    )
    return ClockReadings.from_counts(
        dict(zip((0, *(tick.seq for tick in ticks)), sums, strict=True)), 0
    )


steps = st.one_of(
    st.tuples(
        st.just("says"), st.sampled_from(sorted(VISIT["concepts"])), st.sampled_from("abcdefgh")
    ),
    st.tuples(
        st.just("passes"),
        st.integers(1, 12),
        st.integers(0, 900),
        st.sampled_from((0.0, 0.0, 0.3, 2.0)),
    ),
)
visits = st.lists(steps, max_size=14)


def play(here, step, split=False):
    match step:
        case ("says", kind, value):
            here.here.clock.tick()
            here.says(kind, f"{kind.rpartition('.')[2].lower()} {value}")
        case ("passes", turns, tokens, days) if split:
            here.passes(0, days=days)
            for number in range(turns):
                here.passes(1, tokens // turns + (number < tokens % turns))
        case ("passes", turns, tokens, days):
            here.passes(turns, tokens, days)


@given(script=visits)
@tried(25)
def test_salience_does_not_depend_on_how_turns_are_batched(script):
    with visit() as one, visit() as other:
        for step in script:
            play(one, step)
            play(other, step, split=True)
        assert one.weights() == pytest.approx(other.weights(), rel=1e-6)


# As of


@pytest.mark.parametrize("kind", STORES)
@given(script=visits)
@tried(20)
def test_as_of_salience_equals_the_salience_at_that_time(kind, script):
    with visit(kind) as here:
        seen = []
        for step in script:
            play(here, step)
            here.here.clock.tick()
            seen.append((format_iso(here.here.clock.now), here.weights()))
            here.here.clock.tick()
        here.passes(40, 9000, 30.0)
        for moment, weights in seen:
            assert here.weights(as_of=moment) == weights


# Forgetting


@pytest.mark.parametrize("kind", STORES)
@given(script=visits)
@tried(20)
def test_only_faded_memories_are_forgotten_and_never_permanent_ones(kind, script):
    with visit(kind) as here:
        for step in script:
            play(here, step)
        rows = {row["id"]: row for row in here.memory.about(**here.ids)["results"]}
        lost = {row["id"]: row["salience"] for row in here.memory.forget(**here.ids)["results"]}
        assert lost == {key: row["salience"] for key, row in rows.items() if row["faded"]}
        assert all(
            rows[key]["tier"] != "permanent" and weight < 0.1 for key, weight in lost.items()
        )
        assert {
            row["id"] for row in here.memory.about(**here.ids)["results"]
        } == rows.keys() - lost.keys()
        assert here.memory.forget(**here.ids) == {"results": []}


# Cardinality


def make_claim(kind, number):
    value = f"style {number}"
    return {
        "messages": f"I like {value}",
        "user_id": "ann",
        "kind": kind,
        "metadata": {"value": value},
    }


@pytest.mark.parametrize("kind", ["Art.Few", "Art.Last"])
def test_concurrent_writers_never_exceed_the_cardinality_of_a_kind(kind, tmp_path):
    url = f"sqlite:///{tmp_path}/room.db"
    memories = [
        Memory(url, embedder="none", ontology=VISIT, extract="closed", durability="normal")
        for _ in range(4)
    ]
    start = threading.Barrier(len(memories))

    def tell(place, number):
        start.wait()
        memories[place].add(**make_claim(kind, number))

    with ThreadPoolExecutor(len(memories)) as pool, ExitStack() as opened:
        first, *_ = [opened.enter_context(memory) for memory in memories]
        for turn in range(8):
            list(pool.map(tell, range(len(memories)), range(turn * 10, turn * 10 + len(memories))))
            rows = [
                row
                for row in first.get_all(user_id="ann", limit=1000)["results"]
                if row.get("kind") == kind
            ]
            assert len(rows) == 3
        assert first.verify()["ok"]


@pytest.mark.parametrize("store", STORES)
def test_writer_retries_when_another_filled_the_last_place(store):
    with visit(store) as here:
        for number in range(2):
            here.memory.add(**make_claim("Art.Few", number))
        late = make_claim("Art.Few", 8)
        ids = {"user_id": late.pop("user_id")}
        flow = here.memory.engine.add(late.pop("messages"), ids, **late)
        drive_with_interruption(flow, lambda: here.memory.add(**make_claim("Art.Few", 9)))
        assert here.held() == {"style 1", "style 8", "style 9"}


@pytest.mark.parametrize("store", STORES)
def test_memory_repeated_while_being_forgotten_is_kept(store):
    with visit(store) as here:
        for need in ("tea", "coffee"):
            here.says("Need.Coffee", need)
        here.passes(9)
        lost = drive_with_interruption(
            here.memory.engine.forget(None, here.ids), lambda: here.says("Need.Coffee", "tea")
        )
        assert [each.fact.object for each in lost] == ["coffee"]
        assert here.held() == {"tea"}


def drive_with_interruption(flow, do):
    """Drive a flow, and call `do` just before its first commit."""
    waiting, reply, error = True, None, None
    try:
        while True:
            effect = flow.throw(error) if error is not None else flow.send(reply)
            reply, error = None, None
            if waiting and effect.function.__name__ == "commit":
                waiting = False
                do()
            try:
                reply = effect.function(*effect.args, **effect.kwargs)
            except ToldError as raised:
                error = raised
    except StopIteration as done:
        assert not waiting, "it never committed"
        return done.value
