"""Unknown kinds are accepted on write and read, with a warning that suggests the closest kind."""

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


def kind_warnings(body: Any) -> list[str]:
    """Return the warnings about unknown kinds."""
    return [text for text in body.get("warnings", ()) if "Unknown kind" in text]


def read_warnings(memory: Memory, kind: str, **more: Any) -> dict[str, list[str]]:
    """Return the unknown-kind warnings of every read that takes kinds."""
    named = {"kinds": [kind], "user_id": "mara", **more}
    return {
        "search": kind_warnings(memory.search("tea", **named)),
        "explain": kind_warnings(memory.explain("tea", **named)),
        "get_all": kind_warnings(memory.get_all(**named)),
        "context": kind_warnings({"warnings": memory.context("tea", **named).warnings}),
        "context of nothing": kind_warnings({"warnings": memory.context(**named).warnings}),
    }


def test_write_with_an_unknown_kind_succeeds_and_warns_once_per_scope(memory: Memory) -> None:
    first = memory.add("Tea before ten", user_id="mara", kind="prefrence")
    assert first["results"][0]["event"] == "ADD"
    (warning,) = kind_warnings(first)
    assert "'prefrence'" in warning
    assert warning.endswith("Did you mean 'preference'?")
    assert kind_warnings(memory.add("Coffee after ten", user_id="mara", kind="prefrence")) == []
    assert kind_warnings(memory.add("Juice at noon", user_id="jonas", kind="prefrence")) != [], (
        "each scope for itself"
    )


def test_every_read_warns_about_an_unknown_kind(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara", kind="event")
    for read, warnings in read_warnings(memory, "evnt").items():
        assert [warning.endswith("Did you mean 'event'?") for warning in warnings] == [True], read
    assert (
        kind_warnings(
            memory.get_all(user_id="mara", filters={"OR": [{"kind": "evnt"}, {"topic": "x"}]})
        )
        != []
    )


@pytest.mark.parametrize("kind", load_builtin_ontology().names)
def test_declared_kind_without_memories_gives_no_warning(memory: Memory, kind: str) -> None:
    assert set(map(tuple, read_warnings(memory, kind).values())) == {()}


def test_custom_kind_is_known_when_declared_or_in_use(memory: Memory) -> None:
    memory.add("The fuse is behind the mirror", user_id="mara", kind="household")
    assert set(map(tuple, read_warnings(memory, "household").values())) == {()}
    assert read_warnings(memory, "houshold")["search"][0].endswith("Did you mean 'household'?")
    with Memory("ram://", embedder="none", ontology=[Kind("household")]) as declared:
        assert (
            kind_warnings(
                declared.add("The fuse is behind the mirror", user_id="mara", kind="household")
            )
            == []
        )
        assert set(map(tuple, read_warnings(declared, "household").values())) == {()}


def test_warnings_do_not_reveal_kinds_of_other_users(memory: Memory) -> None:
    before = read_warnings(memory, "houshold")
    memory.add("The fuse is behind the mirror", user_id="jonas", kind="household")
    assert read_warnings(memory, "houshold") == before
    assert set(map(len, read_warnings(memory, "household").values())) == {1}
    with Memory("ram://", embedder="none", subscribes=["event"]) as reader:
        reader.add("The fuse is behind the mirror", user_id="mara", kind="household")
        assert len(kind_warnings(reader.search("fuse", user_id="mara", kinds=["household"]))) == 1


def test_warnings_of_an_as_of_read_never_change(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara")
    then = memory.search("tea", user_id="mara", kinds=["houshold"], as_of="#2")
    memory.add("The fuse is behind the mirror", user_id="mara", kind="household")
    assert memory.search("tea", user_id="mara", kinds=["houshold"], as_of="#2") == then


def test_excluding_an_unknown_kind_gives_no_warning(memory: Memory) -> None:
    memory.add("Tea before ten", user_id="mara")
    assert kind_warnings(memory.get_all(user_id="mara", filters={"kind": {"ne": "evnt"}})) == []
    assert kind_warnings(memory.get_all(user_id="mara", filters={"NOT": {"kind": "evnt"}})) == []
    assert kind_warnings(memory.get_all(user_id="mara", filters={"metadata.kind": "evnt"})) == []
