"""Properties of topics: a rebuild equals the incremental view, and no note outlives its turns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass import Compass, exchange
from histories import tried
from told import Memory
from told.model.topics import IN_TOPIC, is_packed_mean, unpack_mean
from told.testing import ManualClock, seeded_mint

U = {"user_id": "u"}
steps = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 160), st.integers(0, 160)),
    st.tuples(st.just("file"), st.just(0), st.just(0)),
    st.tuples(st.just("erase"), st.integers(0, 40), st.just(0)),
    st.tuples(st.just("merge"), st.just(0), st.just(0)),
    st.tuples(st.just("abstract"), st.just(0), st.just(0)),
)
plays = st.lists(steps, min_size=3, max_size=24)


@contextmanager
def stage(kind: str) -> Iterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        url = "ram://" if kind == "ram" else f"sqlite:///{folder}/m.db"
        mint = seeded_mint(1, ManualClock())
        with Memory(
            url, embedder=Compass(), mint=mint, extract="verbatim", gate=False, topic_cap=4
        ) as memory:
            yield memory


def play(memory: Memory, moves: list[tuple[str, int, int]]) -> None:
    said: list[str] = []
    for number, (move, one, other) in enumerate(moves):
        if move == "say":
            said += exchange(memory, f"said {number} n{one}", f"reply {number} n{other}", **U)
        elif move == "file":
            memory.file_topics()
        elif move == "merge":
            memory.merge_topics(**U)
        elif move == "abstract":
            memory.abstract_topics(**U)
        elif said and memory.get(said[one % len(said)]):
            memory.erase(said[one % len(said)])
    memory.file_topics()


def dump_view(memory: Memory) -> dict[str, bytes]:
    notes = memory.engine.store.read_notes("default", "topics")
    return {key: bytes(note) for key, note in notes.items() if not key.startswith("epoch")}


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@given(moves=plays)
@tried(25)
def test_rebuilt_topic_view_equals_the_incremental_one(
    kind: str, moves: list[tuple[str, int, int]]
) -> None:
    with stage(kind) as memory:
        play(memory, moves)
        before, rows = dump_view(memory), memory.topics(**U)
        memory.rebuild()
        assert dump_view(memory) == before
        assert memory.topics(**U) == rows


@given(moves=plays)
@tried(40)
def test_every_exchange_has_one_topic_and_every_note_refers_to_existing_turns(
    moves: list[tuple[str, int, int]],
) -> None:
    with stage("ram") as memory:
        play(memory, moves)
        store, notes = memory.engine.store, dump_view(memory)
        rows = [row for row in memory.topics(**U)["results"] if not row["super"]]
        versions = store.find_versions("default", scope=memory.engine.resolve_scope(U))
        links = store.find_links("default", [fact.id for fact in versions])
        exchanges = {link.dst for link in links if link.rel == "in_exchange"}
        held = {row["id"] for row in rows}
        inside = {
            (link.meta["exchange"], link.dst)
            for link in links
            if link.rel == IN_TOPIC and link.dst in held
        }
        assert sorted(key for key, _ in inside) == sorted(exchanges), "each in one"
        assert {key for key, note in notes.items() if not is_packed_mean(note)} == exchanges
        assert {key for key, note in notes.items() if is_packed_mean(note)} == held
        for row in rows:
            mean = unpack_mean(notes[row["id"]], "compass")
            assert mean is not None
            assert mean.count == sum(topic == row["id"] for _, topic in inside)
