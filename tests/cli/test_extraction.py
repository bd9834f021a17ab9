"""The commands about what was understood, as somebody at a terminal meets them."""

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
    """An ontology with one concept, named by the setting `kinds`."""
    file = tmp_path / "ontology.json"
    file.write_text(json.dumps({"concepts": CONCEPTS}), "utf-8")
    monkeypatch.setenv("TOLD_KINDS", str(file))
    return file


def test_an_ontology_in_the_settings_is_the_whole_world_of_the_closed_extractor(
    told, sdk, ontology
):
    told("add", SAID, "-u", "mara", "--extract", "closed")
    assert [row["kind"] for row in sdk("get_all", user_id="mara")["results"]] == ["Diet.Allergy"]


def test_a_folder_of_kinds_adds_to_those_told_has(told, sdk, tmp_path, monkeypatch):
    monkeypatch.setenv("TOLD_KINDS", str(tmp_path / "kinds"))
    told("kinds", "new", "recipe", "--into", str(tmp_path / "kinds"))
    told("add", SAID, "-u", "mara", "--extract", "closed")
    assert {row["kind"] for row in sdk("get_all", user_id="mara")["results"]} == {"profile"}


def test_a_fact_that_became_no_memory_is_shown_with_the_reason_and_its_id(told, ontology):
    shown = told("add", SAID, "-u", "mara", "--extract", "closed").out
    (waiting,) = told("quarantine", "list", "-u", "mara", "--json").json["results"]
    (line,) = [row for row in shown.splitlines() if row.startswith("SKIP")]
    assert "User lives in Lisbon: outside the ontology" in line
    assert waiting["id"] in line


def test_what_waits_can_be_accepted_and_the_receipt_names_the_memory_it_became(told, sdk, ontology):
    told("add", SAID, "-u", "mara", "--extract", "closed")
    (waiting,) = told("quarantine", "list", "-u", "mara", "--json").json["results"]
    (row,) = told("quarantine", "accept", waiting["id"], "--json").json["results"]
    assert row["event"] == "ADD"
    assert sdk("get", row["id"])["memory"] == "User lives in Lisbon"
    assert "Nothing is in quarantine" in told("quarantine", "list", "-u", "mara").out


def test_kinds_infer_writes_a_file_that_kinds_check_accepts(told, tmp_path, ontology):
    told("add", SAID, "-u", "mara", "--extract", "closed")
    draft = tmp_path / "lives_in.yaml"
    draft.write_text(told("kinds", "infer", "-u", "mara").out, "utf-8")
    assert draft.read_text("utf-8").startswith("# 1 claim\n")
    assert told("kinds", "check", str(draft), "--json").json[0]["kinds"] == ["lives_in"]


def test_the_rules_of_a_kind_are_shown_as_people_write_them(told, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    shown = dict(
        line.rstrip().split(None, 1)
        for line in told("kinds", "show", "preference").out.splitlines()
    )
    assert shown["name"] == "preference"
    assert shown["fields"].startswith("slug, content")
    assert shown["levels"] == "L0, L1, L2"
    assert shown["system"] == "no"


def test_a_message_without_a_full_stop_is_told_apart_from_its_hint(told):
    assert "must be provided. Pass --user" in told("list", code=2).err


def test_names_that_may_be_one_are_noted_and_shown(told):
    told(
        "add",
        "Bob works at Initech Inc.",
        "Carol studies at Initech.",
        "-u",
        "mara",
        "--extract",
        "local",
    )
    shown = told("identify", "-u", "mara").out
    assert "Initech Inc" in shown
    assert "fuzzy" in shown
    assert "No new similar names" in told("identify", "-u", "mara").out
    (edge,) = [
        row
        for row in told("relations", "Initech", "-u", "mara", "--json").json["results"]
        if "Inc" in str(row)
    ]
    assert edge["relation"] == "same_as"


# A language model is asked by those who understand, and by nobody else


@pytest.fixture
def far(monkeypatch):
    """A model is configured that cannot be opened: there is no key for it."""
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
def test_who_only_reads_opens_no_model(told, far, words):
    told(*words)


@pytest.mark.parametrize(
    "words", [["add", "I like tea", "-u", "mara"], ["wait"], ["faults", "retry"]], ids=" ".join
)
def test_who_has_something_to_understand_needs_the_model(told, far, words):
    assert "OPENAI_API_KEY" in told(*words, code=2).err


def test_the_doctor_names_the_model_and_asks_it_nothing(told, far):
    (check,) = [
        one for one in told("doctor", "--json", code=3).json["checks"] if one["state"] == "fail"
    ]
    assert check["name"] == "language model"


def test_who_has_no_kinds_of_their_own_has_nothing_to_check(told, home, monkeypatch):
    assert "No kinds of your own" in told("kinds", "check").out
    monkeypatch.setenv("TOLD_KINDS", str(home / "absent"))
    assert "absent" in told("kinds", "check", code=3).out


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_a_fault_that_is_not_there_is_not_found(verb, told):
    assert "no fault 9" in told("faults", verb, "9", code=1).err
