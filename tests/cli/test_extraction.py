"""The commands for extraction."""

import json

import pytest

SAID = "I live in Lisbon and I'm allergic to peanuts"
ALLERGY = {
    "label": "Food allergy",
    "examples": ["I'm allergic to X"],
    "persistence_class": "permanent",
}
CONCEPTS = {"Diet.Allergy": {**ALLERGY, "salience_weight": 0.9}}


@pytest.fixture
def ontology(tmp_path, monkeypatch):
    """Create an ontology with one concept and set `kinds` to it."""
    file = tmp_path / "ontology.json"
    file.write_text(json.dumps({"concepts": CONCEPTS}), "utf-8")
    monkeypatch.setenv("TOLD_KINDS", str(file))
    return file


def test_closed_extractor_uses_only_the_configured_ontology(run_cli, sdk, ontology):
    run_cli("add", SAID, "-u", "mara", "--extract", "closed")
    assert [row["kind"] for row in sdk("get_all", user_id="mara")["results"]] == ["Diet.Allergy"]


def test_folder_of_kinds_extends_the_builtin_kinds(run_cli, sdk, tmp_path, monkeypatch):
    monkeypatch.setenv("TOLD_KINDS", str(tmp_path / "kinds"))
    run_cli("kinds", "new", "recipe", "--into", str(tmp_path / "kinds"))
    run_cli("add", SAID, "-u", "mara", "--extract", "closed")
    assert {row["kind"] for row in sdk("get_all", user_id="mara")["results"]} == {"profile"}


def test_quarantined_fact_is_shown_with_its_reason_and_id(run_cli, ontology):
    shown = run_cli("add", SAID, "-u", "mara", "--extract", "closed").out
    (waiting,) = run_cli("quarantine", "list", "-u", "mara", "--json").json["results"]
    (line,) = [row for row in shown.splitlines() if row.startswith("SKIP")]
    assert "User lives in Lisbon: outside the ontology" in line
    assert waiting["id"] in line


def test_accepting_a_quarantined_fact_returns_the_new_memory(run_cli, sdk, ontology):
    run_cli("add", SAID, "-u", "mara", "--extract", "closed")
    (waiting,) = run_cli("quarantine", "list", "-u", "mara", "--json").json["results"]
    (row,) = run_cli("quarantine", "accept", waiting["id"], "--json").json["results"]
    assert row["event"] == "ADD"
    assert sdk("get", row["id"])["memory"] == "User lives in Lisbon"
    assert "Nothing is in quarantine" in run_cli("quarantine", "list", "-u", "mara").out


def test_kinds_infer_writes_a_file_that_kinds_check_accepts(run_cli, tmp_path, ontology):
    run_cli("add", SAID, "-u", "mara", "--extract", "closed")
    draft = tmp_path / "lives_in.yaml"
    draft.write_text(run_cli("kinds", "infer", "-u", "mara").out, "utf-8")
    assert draft.read_text("utf-8").startswith("# 1 claim\n")
    assert run_cli("kinds", "check", str(draft), "--json").json[0]["kinds"] == ["lives_in"]


def test_rules_of_a_kind_are_shown_as_written(run_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    shown = dict(
        line.rstrip().split(None, 1)
        for line in run_cli("kinds", "show", "preference").out.splitlines()
    )
    assert shown["name"] == "preference"
    assert shown["fields"].startswith("slug, content")
    assert shown["levels"] == "L0, L1, L2"
    assert shown["system"] == "no"


def test_message_without_a_full_stop_is_separated_from_its_hint(run_cli):
    assert "must be provided. Pass --user" in run_cli("list", code=2).err


def test_possibly_equal_names_are_recorded_and_shown(run_cli):
    run_cli(
        "add",
        "Bob works at Initech Inc.",
        "Carol studies at Initech.",
        "-u",
        "mara",
        "--extract",
        "local",
    )
    shown = run_cli("identify", "-u", "mara").out
    assert "Initech Inc" in shown
    assert "fuzzy" in shown
    assert "No new similar names" in run_cli("identify", "-u", "mara").out
    (edge,) = [
        row
        for row in run_cli("relations", "Initech", "-u", "mara", "--json").json["results"]
        if "Inc" in str(row)
    ]
    assert edge["relation"] == "same_as"


# Only extraction opens a language model


@pytest.fixture
def unusable_model(monkeypatch):
    """Configure a model that cannot be opened because its key is missing."""
    monkeypatch.setenv("TOLD_LLM", "openai:gpt-4o-mini")


@pytest.mark.parametrize(
    "words",
    [
        ["list", "-u", "mara"],
        ["search", "tea", "-u", "mara"],
        ["context", "tea", "-u", "mara"],
        ["stats"],
        ["verify"],
        ["faults", "list"],
        ["quarantine", "list", "-u", "mara"],
        ["demo", "--embedder", "none"],
    ],
    ids=" ".join,
)
def test_read_commands_open_no_model(run_cli, unusable_model, words):
    run_cli(*words)


@pytest.mark.parametrize(
    "words", [["add", "I like tea", "-u", "mara"], ["wait"], ["faults", "retry"]], ids=" ".join
)
def test_extraction_commands_need_the_model(run_cli, unusable_model, words):
    assert "OPENAI_API_KEY" in run_cli(*words, code=2).err


def test_doctor_names_the_model_without_calling_it(run_cli, unusable_model):
    (check,) = [
        one for one in run_cli("doctor", "--json", code=3).json["checks"] if one["state"] == "fail"
    ]
    assert check["name"] == "language model"


def test_kinds_check_without_custom_kinds_has_nothing_to_check(run_cli, home, monkeypatch):
    assert "No kinds of your own" in run_cli("kinds", "check").out
    monkeypatch.setenv("TOLD_KINDS", str(home / "absent"))
    assert "absent" in run_cli("kinds", "check", code=3).out


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_unknown_fault_is_not_found(verb, run_cli):
    assert "no fault 9" in run_cli("faults", verb, "9", code=1).err
