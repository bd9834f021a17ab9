"""The museum guide example: facts live as long as the tier of their concept."""

import importlib.util
import json
import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from told import LLMError, Memory
from told.ontology import MemoryStore
from told.testing import ScriptedLLM

HERE = Path(__file__).parent.parent.parent / "examples" / "museum"
HEARING, MEDIUM, TIME, COFFEE = (
    "SpecialNeed.Hearing",
    "ArtInterest.Medium",
    "VisitPlan.TimeBudget",
    "ImmediateNeed.Refreshment",
)
VISIT = [
    ("Hi! I'm visiting today, and I should mention I'm deaf.", {HEARING: 1.0}),
    ("I really love photography, especially mid-century stuff.", {HEARING: 1.0, MEDIUM: 0.693}),
    ("I only have about an hour.", {HEARING: 1.0, MEDIUM: 0.686, TIME: 0.68}),
    ("I could really use a coffee.", {HEARING: 1.0, MEDIUM: 0.679, TIME: 0.578, COFFEE: 0.44}),
    ("Where can I have one?", {HEARING: 1.0, MEDIUM: 0.672, TIME: 0.491, COFFEE: 0.242}),
    ("Thank you!", {HEARING: 1.0, MEDIUM: 0.666, TIME: 0.418, COFFEE: 0.133}),
    ("What else is worth a look?", {HEARING: 1.0, MEDIUM: 0.659, TIME: 0.355}),
    ("Where are the paintings?", {HEARING: 1.0, MEDIUM: 0.652, TIME: 0.302}),
]


@pytest.fixture(scope="module")
def example():
    """Import the example program as a module."""
    spec = importlib.util.spec_from_file_location("museum_guide", HERE / "guide.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def file(tmp_path):
    return f"sqlite:///{tmp_path / 'museum.db'}"


@pytest.fixture(params=["in process", "in a file"])
def memory(request, file):
    """Fact store of a visitor, in process or in a file."""
    if request.param == "in process":
        yield MemoryStore(HERE / "ontology.json")
        return
    with Memory(file, embedder="none", llm="none") as opened:
        yield MemoryStore(HERE / "ontology.json", memory=opened, user_id="ana")


@pytest.fixture
def guide(example, memory):
    return example.Guide(memory)


def salience_by_concept(guide):
    return {fact.concept: round(fact.salience, 3) for fact in guide.memory.facts.values()}


def test_facts_alive_after_each_turn_of_the_visit(guide):
    for message, held in VISIT:
        guide.turn(message)
        assert salience_by_concept(guide) == held, message


def test_session_facts_fade_and_lasting_facts_stay(guide):
    for message, _ in VISIT:
        guide.turn(message)
    for _ in range(40):
        guide.turn("Tell me about this room.")
    assert salience_by_concept(guide).keys() == {HEARING, MEDIUM}


def test_repeated_fact_lasts_longer(guide):
    for message in ("I could really use a coffee.", "Thank you!", "I could really use a coffee."):
        guide.turn(message)
    once = 0.8 * 0.55**3
    assert salience_by_concept(guide)[COFFEE] > once


def test_negation_removes_the_fact(guide):
    guide.turn("I should mention I'm deaf.")
    guide.turn("I'm not deaf, that was a joke.")
    assert salience_by_concept(guide) == {}


def test_question_about_faded_fact_is_answered(guide):
    for message, _ in VISIT:
        guide.turn(message)
    assert COFFEE not in salience_by_concept(guide)
    assert "café" in guide.turn("Where was that coffee again?")


def test_deaf_visitor_is_offered_written_guide(guide):
    assert "written guide" in guide.turn("I should mention I'm deaf.")


def test_memory_and_about_commands_list_facts_and_fading(guide):
    guide.turn("I should mention I'm deaf.")
    guide.turn("I could really use a coffee.")
    assert "[ImmediateNeed.Refreshment] coffee (sal=0.44, ephemeral)" in guide.line("/memory")
    deaf, coffee = guide.line("/about").splitlines()
    assert deaf.endswith("It stays until you say otherwise.")
    assert "fades in about" in coffee


def test_forget_command_removes_matching_facts(guide):
    guide.turn("I should mention I'm deaf.")
    guide.turn("I could really use a coffee.")
    assert guide.line("/forget coffee").startswith("Forgotten: ")
    assert salience_by_concept(guide).keys() == {HEARING}
    assert guide.line("/forget nonsense") == "There is nothing of that."


def test_next_visit_keeps_only_lasting_facts(example, file):
    with Memory(file, embedder="none", llm="none") as opened:
        guide = example.Guide(MemoryStore(HERE / "ontology.json", memory=opened, user_id="ana"))
        for message, _ in VISIT[:4]:
            guide.turn(message)
    with Memory(file, embedder="none", llm="none") as opened:
        again = MemoryStore(HERE / "ontology.json", memory=opened, user_id="ana")
        assert {fact.concept for fact in again.facts.values()} == {HEARING, MEDIUM}
        assert not MemoryStore(HERE / "ontology.json", memory=opened, user_id="ben").facts


# With models


def test_model_prompt_contains_known_facts(example):
    model = ScriptedLLM(["Follow the signs, please."])
    guide = example.Guide(MemoryStore(HERE / "ontology.json"), model)
    assert guide.turn("I should mention I'm deaf.") == "Follow the signs, please."
    [(system, user)] = model.asked
    assert "- Hearing: deaf" in system
    assert user == "Visitor: I should mention I'm deaf."


def test_model_extracts_facts_from_visitor_message(example):
    said = "Lip-reading is how I follow people."
    fact = {"concept": HEARING, "value": "reads lips", "polarity": "asserted", "evidence": said}
    model = ScriptedLLM([json.dumps({"facts": [fact]})])
    guide = example.Guide(MemoryStore(HERE / "ontology.json"), extractor=model)
    guide.turn(said)
    assert [(fact.concept, fact.value) for fact in guide.memory.facts.values()] == [
        (HEARING, "reads lips")
    ]


def test_model_is_shown_the_configured_history(example):
    model = ScriptedLLM(["One.", "Two.", "Three."])
    guide = example.Guide(MemoryStore(HERE / "ontology.json"), model, history=deque(maxlen=2))
    for message in ("Hello there", "Good", "Fine"):
        guide.turn(message)
    assert model.asked[-1][1].splitlines() == ["Visitor: Good", "Guide: Two.", "Visitor: Fine"]


def test_model_failures_are_reported_and_rules_take_over(example, capsys):
    class Down:
        model, local = "down", True

        def ask(self, system, user, *, schema=None):
            raise LLMError("The model is down.")

    guide = example.Guide(MemoryStore(HERE / "ontology.json"), Down(), extractor=Down())
    assert "written guide" in guide.turn("I should mention I'm deaf.")
    assert salience_by_concept(guide) == {HEARING: 1.0}
    assert capsys.readouterr().err.count("The model is down.") == 2


# As a program


def run(*words, stdin="", **environment):
    return subprocess.run(
        [sys.executable, str(HERE / "guide.py"), *words],
        input=stdin,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_program_replays_the_visit_of_its_readme(tmp_path):
    done = run("--replay")
    assert done.returncode == 0, done.stderr
    assert "(turn 8) 3 fact(s):" in done.stdout
    page = (HERE / "README.md").read_text("utf-8")
    said = [line.removeprefix("you> ") for line in page.splitlines() if line.startswith("you> ")]
    assert [line for line in done.stdout.splitlines() if line.removeprefix("you> ") in said]
    for line in page.splitlines():
        if line.startswith("• ["):
            assert line.removesuffix(" …") in done.stdout


def test_program_reads_stdin_and_rejects_invalid_history_size():
    done = run(stdin="I'm deaf\n/memory\n/quit\nnever said\n")
    assert "[SpecialNeed.Hearing] deaf" in done.stdout
    wrong = run(HISTORY_SIZE="many")
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "error: HISTORY_SIZE is a number of turns, not 'many'.\n",
    )


def test_program_remembers_returning_visitor(file):
    first = run(
        "--store",
        file,
        "--user",
        "ana",
        stdin="I should mention I'm deaf.\nI could really use a coffee.\n",
    )
    assert first.returncode == 0, first.stderr
    again = run("--store", file, "--user", "ana", stdin="/memory\n")
    assert "[SpecialNeed.Hearing] deaf" in again.stdout
    assert "coffee" not in again.stdout
