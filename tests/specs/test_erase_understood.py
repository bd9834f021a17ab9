"""What was understood goes with the words it was taken from: claims, turns, nodes, relations and a
model's answers.
"""

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


def opened(url: str, **options: Any) -> Memory:
    return Memory(url, embedder=HashingEmbedder(), **options)


def everything(memory: Memory) -> str:
    """The ledger, every row of every view, and what failed."""
    target = io.BytesIO()
    memory.export(target)
    store = memory.engine.store
    rows = {view: list(store.view_rows("default", view)) for view in VIEWS}
    return f"{target.getvalue().decode()}{rows}{memory.faults()}{memory.entities(**U)}{memory.quarantine(**U)}"  # noqa: E501


def only(memory: Memory, text: str) -> str:
    """The id of the memory that says so."""
    [found] = [row["id"] for row in memory.get_all(**U)["results"] if row["memory"] == text]
    return found


def names(memory: Memory) -> set[str]:
    return {row["name"] for row in memory.entities(**U)["results"]}


def sound(memory: Memory) -> None:
    """The ledger verifies, and what is rebuilt is what has grown."""
    store = memory.engine.store
    rows = {view: list(store.view_rows("default", view)) for view in VIEWS}
    memory.rebuild()
    assert {view: list(store.view_rows("default", view)) for view in VIEWS} == rows
    assert memory.verify()["ok"]


def test_erasing_a_claim_takes_the_turn_its_evidence_and_whoever_only_it_speaks_of(
    url: str,
) -> None:
    with opened(url) as memory:
        memory.add("I work at Quoll as a baker", **U)
        memory.add("I live in Lisbon", **U)
        memory.add("I love working at Quoll", **U, infer=False)
        assert {"Quoll", "Lisbon"} <= names(memory)
        certificate = memory.erase(only(memory, "User works at Quoll as a baker"))
        assert certificate["destroyed"]["evidence"] == 1
        kept = everything(memory).replace("I love working at Quoll", "")
        assert "baker" not in kept
        assert "Quoll" not in kept
        assert memory.search("Lisbon", **U)["results"][0]["memory"] == "User lives in Lisbon"
        assert {"User", "Lisbon"} == names(memory), "others speak of the user still"
        assert [row["target"] for row in memory.relations("User", **U)["results"]] == ["Lisbon"]
        sound(memory)


def test_whatever_else_was_taken_from_the_erased_words_goes_too(url: str) -> None:
    with opened(url) as memory:
        memory.add("My name is Bandicoot and I am allergic to walnuts", **U)
        memory.add("I live in Lisbon", **U)
        certificate = memory.erase(only(memory, "User is allergic to walnuts"))
        assert len(certificate["memories"]) >= 3, "two claims and the turn behind them"
        assert "Bandicoot" not in everything(memory)
        assert "walnuts" not in everything(memory)
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User lives in Lisbon"]
        sound(memory)


def test_every_version_goes_with_the_words_it_was_taken_from(url: str) -> None:
    with opened(url) as memory:
        memory.add("I live in Numbatville", **U)
        memory.add("I moved to Quokkaton", **U)
        memory.add("I live in Quokkaton", **U, agent_id="planner")
        memory.erase(memory.get_all(**U)["results"][0]["id"])
        left = everything(memory)
        assert "Numbatville" not in left
        assert [row["memory"] for row in memory.get_all(**U, agent_id="planner")["results"]] == [
            "User lives in Quokkaton"
        ]
        memory.erase(**U)
        assert "Quokkaton" not in everything(memory)
        sound(memory)


def test_words_said_again_by_another_go_with_the_claim_they_support(url: str) -> None:
    with opened(url) as memory:
        memory.add("I live in Numbatville", **U)
        memory.add(
            {"role": "user", "content": "I live in Numbatville, you know", "name": None}, **U
        )
        memory.add("I live in Numbatville", **U, source="mail")
        memory.erase(only(memory, "User lives in Numbatville"))
        assert "Numbatville" not in everything(memory)
        sound(memory)


def test_erasing_a_source_takes_the_claims_nodes_and_relations_drawn_from_it(url: str) -> None:
    with opened(url) as memory:
        memory.add("I work at Google", **U, source="chat")
        memory.add("My sister Wombat works at Google", **U, source="mail")
        before = [
            (row["source"], row["relation"], row["target"])
            for row in memory.relations("Google", **U)["results"]
        ]
        assert len(before) == 2
        memory.erase(source="mail")
        assert "Wombat" not in everything(memory)
        after = [
            (row["source"], row["relation"], row["target"])
            for row in memory.relations("Google", **U)["results"]
        ]
        assert after == before[:1]
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User works at Google"]
        sound(memory)


def test_a_node_is_taken_from_the_turn_that_names_it(url: str) -> None:
    with opened(url) as memory:
        memory.add(["I live in Lisbon", "I work at Potoroo"], **U)
        memory.erase(only(memory, "User works at Potoroo"))
        assert "Potoroo" not in everything(memory)
        assert "Lisbon" in names(memory)
        sound(memory)


def test_erasing_a_user_leaves_nothing_of_any_kind(url: str) -> None:
    model = ScriptedLLM([json.dumps(["User keeps bilbies", "User lives in Quokkaton"])])
    with opened(url, llm=model, extract="facts", grounding="strict", curate="rules") as memory:
        memory.add("It is bilbies that I keep, twelve of them", **U)
        kinds = {
            fact.kind
            for fact in memory.engine.store.find_versions("default", scope=Scope(user_id="alice"))
        }
        assert {TURN, QUARANTINE} <= kinds
        memory.erase(**U)
        left = everything(memory)
        assert "bilbies" not in left
        assert "Quokkaton" not in left
        sound(memory)


@pytest.mark.parametrize("which", [0, 1])
def test_what_a_model_answered_goes_with_any_turn_it_spoke_of(url: str, which: int) -> None:
    model = ScriptedLLM(["Numbat is what they said, and Dugong, but I will not say it in JSON"])
    with opened(url, llm=model, extract="facts") as memory:
        memory.add(["I keep a Numbat", "I keep a Dugong"], **U)
        assert "not say it in JSON" in str(memory.faults())
        turns = memory.get_all(**U, filters={"kind": TURN})["results"]
        memory.erase(turns[which]["id"])
        assert "not say it in JSON" not in everything(memory)
        assert len(memory.faults()["results"]) == 1 - (which == 0), (
            "what stays is still to be asked about"
        )
        sound(memory)


class Interrupted:
    """A model that answers after somebody did something."""

    model, local = "interrupted", True

    def __init__(self, answer: str) -> None:
        self.answer, self.asked, self.first = answer, [], lambda: None

    def ask(self, system: str, user: str, *, schema: Any = None) -> str:
        self.asked.append(user)
        act, self.first = self.first, lambda: None
        act()
        return self.answer


@pytest.mark.parametrize("answer", ['["User keeps a Numbat"]', "no JSON: Numbat"])
def test_what_is_erased_while_a_model_is_asked_about_it_does_not_come_back(
    url: str, answer: str
) -> None:
    model = Interrupted(answer)
    with opened(url, llm=model, extract="facts", curate="rules") as memory:
        model.first = lambda: memory.erase(**U)
        done = memory.add("A Numbat is what I keep", **U)
        assert done["results"] == []
        assert "Numbat" not in everything(memory)
        assert memory.stats()["pending"] == 0
        sound(memory)


def test_what_was_said_beside_the_erased_is_asked_about_again_alone(url: str) -> None:
    model = Interrupted('["User keeps a Bilby"]')
    with opened(url, llm=model, extract="facts", curate="rules") as memory:
        model.first = lambda: memory.erase(
            memory.get_all(**U, filters={"kind": TURN})["results"][0]["id"]
        )
        memory.add(["A Numbat is what I keep", "And a Bilby too"], **U)
        assert len(model.asked) == 2
        assert "Numbat" not in model.asked[1]
        assert "Numbat" not in everything(memory)
        assert [row["memory"] for row in memory.get_all(**U)["results"]] == ["User keeps a Bilby"]
        sound(memory)


def test_what_is_denied_is_told_neither_as_an_entity_nor_in_quarantine(url: str) -> None:
    def allowed(row: dict[str, Any]) -> bool:
        return "Zanzibar" not in row["memory"]

    with opened(url, guard=allowed) as memory:
        memory.add(["I live in Zanzibar", "I work at Acme"], **U)
        assert names(memory) == {"User", "Acme"}
        assert [row["target"] for row in memory.relations("User", **U)["results"]] == ["Acme"]
        assert [
            row["memory"] for row in memory.timeline(**U)["results"] if "Zanzibar" in str(row)
        ] == []
        assert memory.diff("#1", f"#{memory.stats()['entries']}", **U)["added"] != []
        assert "Zanzibar" not in str(memory.diff("#1", f"#{memory.stats()['entries']}", **U))


def test_the_timeline_and_the_difference_leave_out_what_only_stands_behind(url: str) -> None:
    with opened(url) as memory:
        memory.add("I live in Lisbon", **U)
        memory.add("I moved to Porto", **U)
        kinds = {
            fact.kind
            for fact in memory.engine.store.find_versions("default", scope=Scope(user_id="alice"))
        }
        assert {TURN, NODE} <= kinds
        changes = [(row["event"], row["new_memory"]) for row in memory.timeline(**U)["results"]]
        assert changes == [("ADD", "User lives in Lisbon"), ("UPDATE", "User lives in Porto")]
        found = memory.diff("2020", f"#{memory.stats()['entries']}", **U)
        assert [row["memory"] for row in found["added"]] == ["User lives in Porto"]
