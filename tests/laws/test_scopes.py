"""A scope sees exactly the memories written under all the ids it names, through every verb."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import QUERIES, filters, scopes, stage, tried, worlds
from tables import each_row
from told.errors import NotFoundError, ToldError

KINDS = ["ram", "sqlite"]
PLACES = ("user_id", "agent_id", "run_id")


def covers(reader, writer):
    return all(writer.get(place) == value for place, value in reader.items())


@pytest.mark.parametrize("kind", KINDS)
@given(
    homes=st.lists(scopes, min_size=1, max_size=7),
    reader=scopes,
    query=st.sampled_from(QUERIES),
    wanted=filters,
    valid_at=worlds,
    data=st.data(),
)
@tried(50)
def test_no_verb_returns_memories_of_other_scopes(
    kind, homes, reader, query, wanted, valid_at, data
):
    with stage(kind) as here:
        memory = here.memory
        made = {}
        for number, home in enumerate(homes):
            [row] = memory.add(
                f"Berlin green tea {number}", metadata={"tag": "work", "n": number}, **home
            )["results"]
            made[row["id"]] = home
        may_see = {memory_id for memory_id, home in made.items() if covers(reader, home)}

        assert {row["id"] for row in memory.get_all(**reader)["results"]} == may_see
        assert {
            row["id"] for row in memory.search("Berlin green tea", **reader)["results"]
        } == may_see
        assert {memory_id for memory_id in made if memory.get(memory_id, **reader)} == may_see
        assert {row["memory_id"] for row in memory.timeline(**reader)["results"]} == may_see
        assert {row["id"] for row in memory.diff("2000-01-01", **reader)["added"]} == may_see
        assert {hit.fact.id for hit in memory.context(None, budget=4000, **reader).hits} == may_see

        options = {"filters": wanted, "valid_at": valid_at, **reader}
        try:
            shown = [
                *memory.search(query, **options)["results"],
                *memory.get_all(**options)["results"],
                *memory.explain(query, **options)["candidates"],
            ]
        except ToldError:  # ids in the filter that contradict those of the scope
            shown = []
        assert {row["id"] for row in shown} <= may_see


@pytest.mark.parametrize("kind", KINDS)
@given(homes=st.lists(scopes, min_size=2, max_size=5), writer=scopes, data=st.data())
@tried(25)
def test_no_verb_changes_memories_of_other_scopes(kind, homes, writer, data):
    with stage(kind) as here:
        memory = here.memory
        made = {}
        for number, home in enumerate(homes):
            [row] = memory.add(f"fact {number}", **home)["results"]
            made[row["id"]] = home
        hidden = [memory_id for memory_id, home in made.items() if not covers(writer, home)]
        before = [memory.get(memory_id) for memory_id in hidden]
        for memory_id in hidden:
            for change in (
                lambda target: memory.update(target, "changed", **writer),
                lambda target: memory.delete(target, **writer),
                lambda target: memory.retract(target, **writer),
                lambda target: memory.link(target, "relates_to", target, **writer),
            ):
                with pytest.raises(NotFoundError):
                    change(memory_id)
        memory.delete_all(**writer)
        assert memory.get_all(**writer)["results"] == []
        assert [memory.get(memory_id) for memory_id in hidden] == before
        if len(hidden) < len(made):
            memory.erase(**writer)
        assert [memory.get(memory_id) for memory_id in hidden] == before


@pytest.mark.parametrize("kind", KINDS)
@given(
    homes=st.lists(scopes, min_size=1, max_size=4),
    others=st.lists(scopes, max_size=6),
    reader=scopes,
)
@tried(25)
def test_memories_of_other_scopes_do_not_affect_scores(kind, homes, others, reader):
    """Statistics are per scope: neither order nor scores reveal that other users exist."""
    with stage(kind) as alone, stage(kind, seed=1) as crowded:
        for number, home in enumerate(homes):
            for here in (alone, crowded):
                here.memory.add(f"green tea in Berlin {'tea ' * number}", **home)
        for number, home in enumerate(others):
            if not covers(reader, home):
                crowded.memory.add([f"green tea {number}", "Berlin Berlin tea"], **home)
        found = [
            [
                (row["memory"], row["score"], row["score_details"])
                for row in here.memory.search("green tea Berlin", explain=True, **reader)["results"]
            ]
            for here in (alone, crowded)
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
@given(homes=st.lists(scopes, min_size=1, max_size=4))
@tried(10)
def test_accounts_are_isolated(kind, homes):
    with stage(kind) as here:
        engine = here.memory.engine
        made = [here.memory.add("green tea", **home)["results"][0]["id"] for home in homes]
        other = type(here.memory)("ram://", embedder="none")
        other._engine = type(engine)(
            engine.store, engine.settings, engine.embedder, type(engine.caller)(account="elsewhere")
        )
        for home, memory_id in zip(homes, made, strict=True):
            assert other.search("green tea", **home)["results"] == []
            assert other.get_all(**home)["results"] == []
            assert other.get(memory_id) is None
            assert other.history(memory_id) == []
            assert other.timeline(**home)["results"] == []
            for refused in (lambda target: other.update(target, "x"), other.delete, other.erase):
                with pytest.raises(NotFoundError):
                    refused(memory_id)
        assert other.stats()["entries"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_one_ledger_imported_into_two_accounts_is_two_ledgers(kind):
    with stage(kind) as here:
        [row] = here.memory.add("green tea", user_id="u")["results"]
        engine = here.memory.engine
        other = type(here.memory)("ram://", embedder="none")
        other._engine = type(engine)(
            engine.store, engine.settings, engine.embedder, type(engine.caller)(account="elsewhere")
        )
        other.import_(here.exported())
        assert here.memory.get(row["id"])["memory"] == "green tea"
        other.update(row["id"], "coffee")
        assert here.memory.get(row["id"])["memory"] == "green tea"
        assert [hit["memory"] for hit in here.memory.search("tea", user_id="u")["results"]] == [
            "green tea"
        ]
        other.delete(row["id"])
        here.memory.update(row["id"], "black tea")
        assert other.get(row["id"]) is None
        assert here.memory.get(row["id"])["memory"] == "black tea"


@each_row("place", PLACES)
@each_row(
    "value",
    ["", "   ", "*", "a*", "%", "a\nb", "a\0b", "\u200b", "x" * 257, 7, ["u"], {"ne": "u"}, True],
)
def test_every_verb_rejects_an_invalid_id(place, value):
    with stage("ram") as here:
        memory, scope = here.memory, {place: value}
        here.memory.add("tea", user_id="u", agent_id="u", run_id="u")
        for ask in (
            lambda: memory.add("tea", **scope),
            lambda: memory.search("tea", **scope),
            lambda: memory.get_all(**scope),
            lambda: memory.context("tea", **scope),
            lambda: memory.explain("tea", **scope),
            lambda: memory.timeline(**scope),
            lambda: memory.diff("2020-01-01", **scope),
            lambda: memory.delete_all(**scope),
            lambda: memory.erase(**scope),
            lambda: memory.get("id", **scope),
            lambda: memory.update("id", "t", **scope),
            lambda: memory.delete("id", **scope),
        ):
            with pytest.raises(ToldError) as refused:
                ask()
            assert refused.value.status == 400
