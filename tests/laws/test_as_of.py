"""Properties of as-of reads: they equal the reads of a store that holds nothing later."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import Stage, answers, any_step, kept, questions, scripts, stage, tried
from told.text.dates import format_iso

KINDS = ["ram", "sqlite"]


@contextmanager
def replay_until(here: Stage, kind: str, seq: int) -> Iterator[Stage]:
    """Open a store with the ledger replayed up to `seq`, its clock at that entry's time."""
    lines = io.BytesIO(here.exported()).readlines()
    entry = here.memory.engine.store.scan_entries("default", seq - 1, 1)[0]
    with stage(kind, seed="replay", now=entry.at) as there:
        there.memory.import_(b"".join(lines[: seq + 1]))
        assert there.head == seq
        yield there


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(any_step), question=questions, data=st.data())
@tried(40)
def test_reading_as_of_a_position_equals_reading_a_store_replayed_to_it(
    kind, script, question, data
):
    with stage(kind) as here:
        here.player.play(script)
        boundaries = here.boundaries()
        if not boundaries:
            return
        seq = data.draw(st.sampled_from(boundaries))
        ids = here.player.ids
        with replay_until(here, kind, seq) as there:
            live = answers(here.player.call, question, ids, f"#{seq}")
            assert live == answers(there.player.call, question, ids, f"#{seq}")
            assert live == answers(there.player.call, question, ids), (
                "a store that knows no more needs no as_of"
            )
            at = format_iso(there.clock.now)
            assert live == answers(here.player.call, question, ids, at), (
                "an instant is as good as its position"
            )


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(kept), question=questions)
@tried(25)
def test_later_corrections_never_change_an_earlier_answer(kind, script, question):
    with stage(kind) as here:
        then = {}
        for step in script:
            here.player.step(step)
            if here.head and here.head not in then:
                ids = here.player.ids
                then[here.head] = (ids, answers(here.player.call, question, ids, f"#{here.head}"))
        for seq, (ids, before) in then.items():
            assert answers(here.player.call, question, ids, f"#{seq}") == before


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(kept), question=questions)
@tried(15)
def test_rebuild_does_not_change_as_of_answers(kind, script, question):
    with stage(kind) as here:
        here.player.play(script)
        moments = [f"#{seq}" for seq in here.boundaries()]
        before = [
            answers(here.player.call, question, here.player.ids, moment) for moment in moments
        ]
        here.memory.rebuild()
        assert [
            answers(here.player.call, question, here.player.ids, moment) for moment in moments
        ] == before


@pytest.mark.parametrize("kind", KINDS)
@given(steps=st.lists(st.integers(-3_600_000_000, 3_600_000_000), min_size=1, max_size=12))
@tried(20)
def test_clock_stepping_back_keeps_entry_order_and_as_of_answers(kind, steps):
    with stage(kind) as here:
        instants = []
        for number, step in enumerate(steps):
            here.clock.tick(step)
            [made] = here.memory.add(f"fact number {number}", user_id="u")["results"]
            instants.append(here.memory.get(made["id"])["created_at"])
        assert instants == sorted(set(instants)), "every write is later than the one before it"
        listed = here.memory.get_all(user_id="u")["results"]
        assert [row["memory"] for row in listed] == [
            f"fact number {number}" for number in range(len(steps))
        ]
        for number, instant in enumerate(instants):
            seen = here.memory.get_all(user_id="u", as_of=instant)["results"]
            assert [row["id"] for row in seen] == [row["id"] for row in listed[: number + 1]]
        assert here.memory.verify()["ok"]


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(any_step))
@tried(20)
def test_diff_equals_the_difference_of_the_two_listings(kind, script):
    with stage(kind) as here:
        here.player.play(script)
        boundaries = here.boundaries()
        if not boundaries:
            return
        for before, after in (
            (boundaries[0], boundaries[-1]),
            (boundaries[len(boundaries) // 2], boundaries[-1]),
        ):
            options = {"user_id": "x", "show_expired": True, "limit": 1000}
            old, new = (
                {
                    row["id"]: row
                    for row in here.memory.get_all(as_of=f"#{seq}", **options)["results"]
                }
                for seq in (before, after)
            )
            found = here.memory.diff(f"#{before}", f"#{after}", user_id="x")
            assert {row["id"] for row in found["added"]} == new.keys() - old.keys()
            assert {row["id"] for row in found["removed"]} == old.keys() - new.keys()
            changed = {
                key for key in old.keys() & new.keys() if old[key]["memory"] != new[key]["memory"]
            }
            assert changed <= {row["id"] for row in found["changed"]} <= old.keys() & new.keys()
