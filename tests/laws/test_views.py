"""A rebuilt view equals the incremental one, and building one calls no model."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import any_step, scripts, stage, tried
from told.ports import VIEWS, Purpose, Vector
from told.testing import HashingEmbedder


class CountingEmbedder(HashingEmbedder):
    """Count the calls of an embedder."""

    calls = 0

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        self.calls += 1
        return super().embed(texts, purpose)


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@given(script=scripts(any_step, 16), views=st.sets(st.sampled_from(VIEWS)))
@tried(40)
def test_rebuilt_view_equals_the_incremental_view_row_for_row(kind, script, views):
    embedder = CountingEmbedder()
    with stage(kind, embedder=embedder) as here:
        here.player.play(script)
        assert here.memory.verify()["index_problems"] == []
        grown, asked = here.rows(), embedder.calls
        counted = here.memory.rebuild(sorted(views) or None)["rebuilt"]
        assert here.rows() == grown
        assert here.memory.verify()["index_problems"] == []
        assert embedder.calls == asked
        assert set(counted) == (views or set(VIEWS))
        assert counted.get("facts", len(grown["facts"])) == len(grown["facts"])


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@given(script=scripts(any_step, 16))
@tried(15)
def test_search_finds_the_same_after_a_rebuild(kind, script):
    with stage(kind) as here:
        here.player.play(script)
        reads = [
            {"user_id": "x"},
            {"agent_id": "x"},
            {"run_id": "y"},
            {"user_id": "x", "agent_id": "x"},
        ]
        before = [
            here.memory.search("green tea in Berlin", explain=True, **scope) for scope in reads
        ]
        here.memory.rebuild()
        assert [
            here.memory.search("green tea in Berlin", explain=True, **scope) for scope in reads
        ] == before


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_metadata_rows_do_not_depend_on_key_order(kind):
    with stage(kind) as here:
        [first] = here.memory.add("tea", user_id="u", metadata={"b": 1, "a": {"z": 1, "y": 2}})[
            "results"
        ]
        here.memory.add("coffee", user_id="u")
        [_, second] = here.memory.get_all(user_id="u")["results"]
        here.memory.link(
            first["id"], "relates_to", second["id"], user_id="u", metadata={"b": 1, "a": 2}
        )
        grown = here.rows()
        here.memory.rebuild()
        assert here.rows() == grown


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_imported_ledger_produces_the_same_rows_as_its_source(kind):
    with stage(kind) as here, stage(kind, seed="elsewhere") as there:
        [made] = here.memory.add(
            "tea", user_id="u", metadata={"b": 1, "a": 2}, timestamp="2020-01-01"
        )["results"]
        here.memory.update(made["id"], "coffee", expiration_date="2031")
        here.memory.add("soup", user_id="v")
        here.memory.delete_all(user_id="v")
        there.memory.import_(here.exported())
        assert there.rows() == here.rows()
