"""A kind that nobody knows is kept or looked for all the same, and named in a warning with what was
probably meant.
"""

from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.model.kind import Kind, load_builtin_ontology


@pytest.fixture(params=["sqlite", "ram"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = f"sqlite:///{tmp_path}/m.db" if request.param == "sqlite" else "ram://"
    with Memory(url, embedder="none") as opened:
        yield opened


def unknown(body: Any) -> list[str]:
    """The warnings about kinds."""
    return [each for each in body.get("warnings", ()) if "Unknown kind" in each]


def reads(memory: Memory, kind: str, **more: Any) -> dict[str, list[str]]:
    """What each read that takes kinds says of one."""
    named = {"kinds": [kind], "user_id": "mara", **more}
    return {
        "search": unknown(memory.search("tea", **named)),
        "explain": unknown(memory.explain("tea", **named)),
        "get_all": unknown(memory.get_all(**named)),
        "context": unknown({"warnings": memory.context("tea", **named).warnings}),
        "context of nothing": unknown({"warnings": memory.context(**named).warnings}),
    }


def test_what_is_kept_under_an_unknown_kind_is_kept_and_warned_of_once(memory: Memory) -> None:
    first = memory.add("Tea before ten", user_id="mara", kind="prefrence")
    assert first["results"][0]["event"] == "ADD"
    (warning,) = unknown(first)
    assert "'prefrence'" in warning
    assert warning.endswith("Did you mean 'preference'?")
    assert unknown(memory.add("Coffee after ten", user_id="mara", kind="prefrence")) == []
    assert unknown(memory.add("Juice at noon", user_id="jonas", kind="prefrence")) != [], (
        "each scope for itself"
    )


def test_every_read_that_asks_for_an_unknown_kind_says_so(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara", kind="event")
    for read, warnings in reads(memory, "evnt").items():
        assert [warning.endswith("Did you mean 'event'?") for warning in warnings] == [True], read
    assert (
        unknown(memory.get_all(user_id="mara", filters={"OR": [{"kind": "evnt"}, {"topic": "x"}]}))
        != []
    )


@pytest.mark.parametrize("kind", load_builtin_ontology().names)
def test_what_is_declared_is_known_though_no_memory_has_it(memory: Memory, kind: str) -> None:
    assert set(map(tuple, reads(memory, kind).values())) == {()}


def test_a_kind_of_ones_own_is_known_when_it_is_declared_or_had_by_a_memory(memory: Memory) -> None:
    memory.add("The fuse is behind the mirror", user_id="mara", kind="household")
    assert set(map(tuple, reads(memory, "household").values())) == {()}
    assert reads(memory, "houshold")["search"][0].endswith("Did you mean 'household'?")
    with Memory("ram://", embedder="none", ontology=[Kind("household")]) as declared:
        assert (
            unknown(declared.add("The fuse is behind the mirror", user_id="mara", kind="household"))
            == []
        )
        assert set(map(tuple, reads(declared, "household").values())) == {()}


def test_nothing_is_learned_of_the_kinds_of_others(memory: Memory) -> None:
    before = reads(memory, "houshold")
    memory.add("The fuse is behind the mirror", user_id="jonas", kind="household")
    assert reads(memory, "houshold") == before
    assert set(map(len, reads(memory, "household").values())) == {1}
    with Memory("ram://", embedder="none", subscribes=["event"]) as reader:
        reader.add("The fuse is behind the mirror", user_id="mara", kind="household")
        assert len(unknown(reader.search("fuse", user_id="mara", kinds=["household"]))) == 1


def test_what_was_said_of_a_kind_as_of_a_moment_never_changes(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara")
    then = memory.search("tea", user_id="mara", kinds=["houshold"], as_of="#2")
    memory.add("The fuse is behind the mirror", user_id="mara", kind="household")
    assert memory.search("tea", user_id="mara", kinds=["houshold"], as_of="#2") == then


def test_what_is_only_left_out_by_its_kind_needs_no_warning(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara")
    assert unknown(memory.get_all(user_id="mara", filters={"kind": {"ne": "evnt"}})) == []
    assert unknown(memory.get_all(user_id="mara", filters={"NOT": {"kind": "evnt"}})) == []
    assert unknown(memory.get_all(user_id="mara", filters={"metadata.kind": "evnt"})) == []
