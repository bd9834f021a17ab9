"""Erasure removes everything extracted from a text: claims, turns, nodes, relations, replies."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.model.fact import NODE, QUARANTINE, TURN
from told.model.scope import Scope
from told.ports import VIEWS
from told.testing import HashingEmbedder, ScriptedLLM

U = {"user_id": "alice"}


@pytest.fixture(params=["ram", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"


def open_memory(url: str, **options: Any) -> Memory:
    return Memory(url, embedder=HashingEmbedder(), **options)


def dump_store(memory: Memory) -> str:
    """Return the ledger, all view rows, faults, entities and quarantine as text."""
    target = io.BytesIO()
    memory.export(target)
    store = memory.engine.store
    rows = {view: list(store.view_rows("default", view)) for view in VIEWS}
    return f"{target.getvalue().decode()}{rows}{memory.faults()}{memory.entities(**U)}{memory.quarantine(**U)}"  # noqa: E501


def memory_id(memory: Memory, text: str) -> str:
    """Return the id of the memory with this text."""
    [id_] = [row["id"] for row in memory.get_all(**U)["results"] if row["memory"] == text]
    return id_


def entity_names(memory: Memory) -> set[str]:
    return {row["name"] for row in memory.entities(**U)["results"]}


def assert_consistent(memory: Memory) -> None:
    """Assert that a rebuild gives the same views and the store verifies."""
    store = memory.engine.store
    rows = {view: list(store.view_rows("default", view)) for view in VIEWS}
    memory.rebuild()
    assert {view: list(store.view_rows("default", view)) for view in VIEWS} == rows
    assert memory.verify()["ok"]


def test_erasing_claim_removes_turn_evidence_and_orphaned_entities(
    url: str,
) -> None:
    with open_memory(url) as memory:
        memory.add("I work at Quoll as a baker", **U)
        memory.add("I live in Lisbon", **U)
        memory.add("I love working at Quoll", **U, infer=False)
        assert {"Quoll", "Lisbon"} <= entity_names(memory)
        certificate = memory.erase(memory_id(memory, "User works at Quoll as a baker"))
        assert certificate["destroyed"]["evidence"] == 1
        kept = dump_store(memory).replace("I love working at Quoll", "")
        assert "baker" not in kept
        assert "Quoll" not in kept
        assert memory.search("Lisbon", **U)["results"][0]["memory"] == "User lives in Lisbon"
        assert {"User", "Lisbon"} == entity_names(memory), "others speak of the user still"
        assert [row["target"] for row in memory.relations("User", **U)["results"]] == ["Lisbon"]
        assert_consistent(memory)


def test_erasing_claim_removes_sibling_claims_of_the_same_turn(url: str) -> None:
    with open_memory(url) as memory:
        memory.add("My name is Bandicoot and I am allergic to walnuts", **U)
        memory.add("I live in Lisbon", **U)
        certificate = memory.erase(memory_id(memory, "User is allergic to walnuts"))
        assert len(certificate["memories"]) >= 3, "two claims and the turn behind them"
        assert "Bandicoot" not in dump_store(memory)
        assert "walnuts" not in dump_store(memory)
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User lives in Lisbon"]
        assert_consistent(memory)


def test_erasing_memory_removes_all_versions(url: str) -> None:
    with open_memory(url) as memory:
        memory.add("I live in Numbatville", **U)
        memory.add("I moved to Quokkaton", **U)
        memory.add("I live in Quokkaton", **U, agent_id="planner")
        memory.erase(memory.get_all(**U)["results"][0]["id"])
        left = dump_store(memory)
        assert "Numbatville" not in left
        assert [row["memory"] for row in memory.get_all(**U, agent_id="planner")["results"]] == [
            "User lives in Quokkaton"
        ]
        memory.erase(**U)
        assert "Quokkaton" not in dump_store(memory)
        assert_consistent(memory)


def test_erasing_claim_removes_all_supporting_evidence(url: str) -> None:
    with open_memory(url) as memory:
        memory.add("I live in Numbatville", **U)
        memory.add(
            {"role": "user", "content": "I live in Numbatville, you know", "name": None}, **U
        )
        memory.add("I live in Numbatville", **U, source="mail")
        memory.erase(memory_id(memory, "User lives in Numbatville"))
        assert "Numbatville" not in dump_store(memory)
        assert_consistent(memory)


def test_erasing_source_removes_its_claims_nodes_and_relations(url: str) -> None:
    with open_memory(url) as memory:
        memory.add("I work at Google", **U, source="chat")
        memory.add("My sister Wombat works at Google", **U, source="mail")
        before = [
            (row["source"], row["relation"], row["target"])
            for row in memory.relations("Google", **U)["results"]
        ]
        assert len(before) == 2
        memory.erase(source="mail")
        assert "Wombat" not in dump_store(memory)
        after = [
            (row["source"], row["relation"], row["target"])
            for row in memory.relations("Google", **U)["results"]
        ]
        assert after == before[:1]
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User works at Google"]
        assert_consistent(memory)


def test_erasing_claim_removes_only_nodes_of_its_turn(url: str) -> None:
    with open_memory(url) as memory:
        memory.add(["I live in Lisbon", "I work at Potoroo"], **U)
        memory.erase(memory_id(memory, "User works at Potoroo"))
        assert "Potoroo" not in dump_store(memory)
        assert "Lisbon" in entity_names(memory)
        assert_consistent(memory)


def test_erasing_user_removes_every_kind(url: str) -> None:
    model = ScriptedLLM([json.dumps(["User keeps bilbies", "User lives in Quokkaton"])])
    with open_memory(url, llm=model, extract="facts", grounding="strict", curate="rules") as memory:
        memory.add("It is bilbies that I keep, twelve of them", **U)
        kinds = {
            fact.kind
            for fact in memory.engine.store.find_versions("default", scope=Scope(user_id="alice"))
        }
        assert {TURN, QUARANTINE} <= kinds
        memory.erase(**U)
        left = dump_store(memory)
        assert "bilbies" not in left
        assert "Quokkaton" not in left
        assert_consistent(memory)


@pytest.mark.parametrize("which", [0, 1])
def test_erasing_turn_removes_the_model_reply_from_faults(url: str, which: int) -> None:
    model = ScriptedLLM(["Numbat is what they said, and Dugong, but I will not say it in JSON"])
    with open_memory(url, llm=model, extract="facts") as memory:
        memory.add(["I keep a Numbat", "I keep a Dugong"], **U)
        assert "not say it in JSON" in str(memory.faults())
        turns = memory.get_all(**U, filters={"kind": TURN})["results"]
        memory.erase(turns[which]["id"])
        assert "not say it in JSON" not in dump_store(memory)
        assert len(memory.faults()["results"]) == 1 - (which == 0), (
            "what stays is still to be asked about"
        )
        assert_consistent(memory)


class Interrupted:
    """Model that runs a callback before its first reply."""

    model, local = "interrupted", True

    def __init__(self, answer: str) -> None:
        self.answer, self.asked, self.first = answer, [], lambda: None

    def ask(self, system: str, user: str, *, schema: Any = None) -> str:
        self.asked.append(user)
        act, self.first = self.first, lambda: None
        act()
        return self.answer


@pytest.mark.parametrize("answer", ['["User keeps a Numbat"]', "no JSON: Numbat"])
def test_scope_erased_during_extraction_stays_erased(url: str, answer: str) -> None:
    model = Interrupted(answer)
    with open_memory(url, llm=model, extract="facts", curate="rules") as memory:
        model.first = lambda: memory.erase(**U)
        done = memory.add("A Numbat is what I keep", **U)
        assert done["results"] == []
        assert "Numbat" not in dump_store(memory)
        assert memory.stats()["pending"] == 0
        assert_consistent(memory)


def test_turns_not_erased_during_extraction_are_extracted_again(url: str) -> None:
    model = Interrupted('["User keeps a Bilby"]')
    with open_memory(url, llm=model, extract="facts", curate="rules") as memory:
        model.first = lambda: memory.erase(
            memory.get_all(**U, filters={"kind": TURN})["results"][0]["id"]
        )
        memory.add(["A Numbat is what I keep", "And a Bilby too"], **U)
        assert len(model.asked) == 2
        assert "Numbat" not in model.asked[1]
        assert "Numbat" not in dump_store(memory)
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User keeps a Bilby"]
        assert_consistent(memory)


def test_guard_hides_entities_relations_timeline_and_diff(url: str) -> None:
    def guard_zanzibar(row: dict[str, Any]) -> bool:
        return "Zanzibar" not in row["memory"]

    with open_memory(url, guard=guard_zanzibar) as memory:
        memory.add(["I live in Zanzibar", "I work at Acme"], **U)
        assert entity_names(memory) == {"User", "Acme"}
        assert [row["target"] for row in memory.relations("User", **U)["results"]] == ["Acme"]
        assert [
            row["memory"] for row in memory.timeline(**U)["results"] if "Zanzibar" in str(row)
        ] == []
        assert memory.diff("#1", f"#{memory.stats()['entries']}", **U)["added"] != []
        assert "Zanzibar" not in str(memory.diff("#1", f"#{memory.stats()['entries']}", **U))


def test_timeline_and_diff_omit_turns_and_nodes(url: str) -> None:
    with open_memory(url) as memory:
        memory.add("I live in Lisbon", **U)
        memory.add("I moved to Porto", **U)
        kinds = {
            fact.kind
            for fact in memory.engine.store.find_versions("default", scope=Scope(user_id="alice"))
        }
        assert {TURN, NODE} <= kinds
        changes = [(row["event"], row["new_memory"]) for row in memory.timeline(**U)["results"]]
        assert changes == [("ADD", "User lives in Lisbon"), ("UPDATE", "User lives in Porto")]
        changed = memory.diff("2020", f"#{memory.stats()['entries']}", **U)
        assert [row["memory"] for row in changed["added"]] == ["User lives in Porto"]
