"""Seed 000: only facts within a declared ontology are stored; others are skipped and reported."""

import inspect
import json
import warnings

import pytest

import told.api.ontology
from histories import stage
from servers import says, serving
from tables import each_row
from told import ConfigError, Memory
from told.cli.app import run as told_cli
from told.ontology import EXTRACTOR_SYSTEM, build_concept_catalog, extract_facts
from told.testing import ScriptedLLM


def concept(label, tier, weight, cardinality, eviction, *examples):
    return {
        "label": label,
        "examples": list(examples),
        "persistence_class": tier,
        "salience_weight": weight,
        "cardinality": cardinality,
        "eviction": eviction,
    }


MUSEUM = {
    "version": "0.2",
    "description": "Closed ontology for a museum",
    "concepts": {
        "Position.CurrentArea": concept(
            "Where the visitor is", "session", 0.5, 1, "recency", "I'm in X"
        ),
        "ArtInterest.Medium": concept(
            "Art medium", "long_term", 0.7, 8, "salience", "I love X", "I'm into X"
        ),
        "SpecialNeed.Allergy": concept(
            "Allergic to", "permanent", 1.0, "unlimited", "salience", "I'm allergic to X"
        ),
        "VisitPlan.TimeBudget": concept("Time budget", "session", 0.6, 1, "salience", "I have X"),
    },
}
SAID = "I'm in the east wing, it rains, and I love photography"


def fact_line(concept, value, evidence=None, polarity="asserted"):
    return {"concept": concept, "value": value, "polarity": polarity, "evidence": evidence or value}


def facts_json(*lines):
    return json.dumps({"facts": list(lines)})


@pytest.fixture(params=["ram", "sqlite"])
def museum(request):
    """Function that opens a museum memory with a scripted model."""
    stages = []

    def open_museum(*replies, ontology=MUSEUM, **knobs):
        llm = ScriptedLLM(replies) if replies else "none"
        stages.append(stage(request.param, llm=llm, ontology=ontology, extract="closed", **knobs))
        return stages[-1].__enter__().memory, llm

    yield open_museum
    for each in stages:
        each.__exit__(None, None, None)


def events(receipt):
    return [(row["event"], row["memory"]) for row in receipt["results"]]


def held(memory, user="ann"):
    return [(row.get("kind", "memory"), row["metadata"].get("value")) for row in rows(memory, user)]


def rows(memory, user="ann"):
    return memory.get_all(user_id=user, limit=1000)["results"]


# extract_facts


def test_public_functions_have_the_specified_parameters():
    assert list(inspect.signature(extract_facts).parameters)[:4] == [
        "user_msg",
        "bot_msg",
        "ontology",
        "model",
    ]
    assert list(inspect.signature(build_concept_catalog).parameters) == ["ontology"]
    assert told.api.ontology.extract_facts is extract_facts
    assert EXTRACTOR_SYSTEM.format(catalog="THE LIST").count("THE LIST") == 1


def test_extractor_prompt_contains_the_concept_catalog():
    prompt = EXTRACTOR_SYSTEM.format(catalog=build_concept_catalog(MUSEUM))
    assert '- ArtInterest.Medium: Art medium ("I love X"; "I\'m into X")' in prompt
    assert "{catalog}" not in prompt


def test_extract_facts_returns_valid_facts_unchanged():
    lines = [
        fact_line("ArtInterest.Medium", "photography", "I love photography"),
        fact_line("Position.CurrentArea", "east wing", "I'm in the east wing"),
    ]
    assert extract_facts(SAID, None, MUSEUM, ScriptedLLM([facts_json(*lines)])) == lines


@each_row(
    ("bad", "why"),
    [
        (fact_line("Weather.Now", "rain", "it rains"), "outside"),
        (fact_line("artinterest.medium", "photography"), "outside"),
        (fact_line("ArtInterest.Medium", "photography", polarity="maybe"), "negated"),
        (fact_line("ArtInterest.Medium", "photography", polarity=None), "negated"),
        (fact_line("ArtInterest.Medium", "", "I love photography"), "value"),
        (fact_line("ArtInterest.Medium", "photography") | {"evidence": ""}, "evidence"),
        (fact_line("ArtInterest.Medium", "photography", "I adore oil on canvas"), "evidence"),
        ("photography", "shape"),
    ],
)
def test_invalid_fact_is_dropped_with_its_reason(bad, why):
    good, dropped = fact_line("ArtInterest.Medium", "photography", "I love photography"), []
    assert extract_facts(
        SAID, None, MUSEUM, ScriptedLLM([facts_json(bad, good)]), dropped=dropped
    ) == [good]
    assert [why in row["reason"] for row in dropped] == [True]


def test_model_can_be_a_function_an_object_or_a_name():
    answer = facts_json(fact_line("ArtInterest.Medium", "photography"))
    chat = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }
        ]
    }
    with serving(says(chat)) as script:
        named = f"openai:any-model@{script.url}/v1"
        models = [lambda prompt: answer, lambda system, user: answer, ScriptedLLM([answer]), named]
        found = [
            [fact["value"] for fact in extract_facts(SAID, None, MUSEUM, model)] for model in models
        ]
    assert found == [["photography"]] * 4
    assert script.asked[0].body["model"] == "any-model"


def test_missing_api_key_is_named_in_the_error(monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENROUTER_API_KEY"):
        extract_facts(SAID, None, MUSEUM, "openai/gpt-4o-mini")


def test_extracted_facts_can_be_added_to_a_memory(museum):
    memory, _ = museum()
    facts = extract_facts(
        SAID,
        None,
        MUSEUM,
        lambda prompt: facts_json(fact_line("ArtInterest.Medium", "photography")),
    )
    memory.add(SAID, user_id="ann", facts=[*facts, fact_line("Weather.Now", "rain", "it rains")])
    assert held(memory) == [("ArtInterest.Medium", "photography")]


# Closed extraction


def test_prompt_lists_only_the_concepts_of_the_ontology(museum):
    memory, llm = museum(facts_json())
    memory.add(SAID, user_id="ann")
    catalogue = [
        row
        for row in llm.asked[0][0].splitlines()
        if row in build_concept_catalog(MUSEUM).splitlines()
    ]
    assert len(catalogue) == len(MUSEUM["concepts"])
    assert "- profile:" not in llm.asked[0][0]


def test_facts_outside_the_ontology_are_skipped_in_the_receipt(museum):
    lines = [
        fact_line("ArtInterest.Medium", "photography"),
        fact_line("Weather.Now", "rain", "it rains"),
        fact_line("profile", "photography"),
        fact_line("Position.CurrentArea", "east wing", polarity="?"),
    ]
    memory, _ = museum(facts_json(*lines))
    done = memory.add(SAID, user_id="ann")
    assert held(memory) == [("ArtInterest.Medium", "photography")]
    reasons = [row["reason"] for row in done["skipped"]]
    assert sorted(reasons) == [
        "neither asserted nor negated",
        "outside the ontology",
        "outside the ontology",
    ]
    assert all(row["fact"] for row in done["skipped"])
    assert not any(
        "Weather" in row["memory"] for row in memory.search("rain", user_id="ann")["results"]
    )


def test_turn_is_searchable_without_extracted_facts(museum):
    memory, _ = museum(facts_json())
    done = memory.add(SAID, user_id="ann")
    assert (done["results"], rows(memory)) == ([], [])
    assert SAID in [
        row["memory"] for row in memory.search("east wing photography", user_id="ann")["results"]
    ]


def test_ungrounded_value_is_quarantined(museum):
    memory, _ = museum(
        facts_json(fact_line("ArtInterest.Medium", "sculpture", "I love photography"))
    )
    done = memory.add(SAID, user_id="ann")
    assert (done["results"], held(memory)) == ([], [])
    [doubt] = memory.quarantine(user_id="ann")["results"]
    assert (doubt["metadata"]["kind"], done["skipped"][0]["id"]) == (
        "ArtInterest.Medium",
        doubt["id"],
    )


def test_model_is_called_once_per_turn(museum):
    memory, llm = museum(
        *(facts_json(fact_line("Position.CurrentArea", f"hall {n}")) for n in range(3))
    )
    for number in range(3):
        memory.add(f"Now I'm in hall {number}", user_id="ann")
    assert len(llm.asked) == 3
    assert held(memory) == [("Position.CurrentArea", "hall 2")]


def test_extract_replies_reads_assistant_in_second_pass(museum):
    talk = [
        {"role": "user", "content": "Where should I go?"},
        {"role": "assistant", "content": "As you are allergic to dust, avoid the attic."},
    ]
    memory, llm = museum(
        facts_json(),
        facts_json(fact_line("SpecialNeed.Allergy", "dust", "you are allergic to dust")),
        extract_replies=True,
    )
    memory.add(talk, user_id="ann")
    assert len(llm.asked) == 2
    assert held(memory) == [("SpecialNeed.Allergy", "dust")]


def test_rules_extract_concepts_without_a_model(museum):
    memory, _ = museum()
    done = memory.add("I'm allergic to peanuts and I work at Acme", user_id="ann")
    assert held(memory) == [("SpecialNeed.Allergy", "peanuts")]
    assert [row["reason"] for row in done["skipped"]] == ["outside the ontology"]


# Cardinality and eviction


def add_one_per_turn(museum, name, values, **more):
    """Add each value of a concept in a turn of its own; return the memory and receipts."""
    memory, _ = museum(*(facts_json(fact_line(name, value)) for value in values), **more)
    done = [
        memory.add(f"{value}, to be exact: {number}", user_id="ann")
        for number, value in enumerate(values)
    ]
    return memory, done


def test_cardinality_one_by_recency_updates_the_same_memory(museum):
    memory, done = add_one_per_turn(museum, "Position.CurrentArea", ["east wing", "west wing"])
    [first], [second] = (each["results"] for each in done)
    assert (second["event"], second["id"]) == ("UPDATE", first["id"])
    assert held(memory) == [("Position.CurrentArea", "west wing")]
    assert [row["event"] for row in memory.history(first["id"])] == ["ADD", "UPDATE"]


MEDIA = ["photography", "oil", "ink", "marble", "bronze", "video", "glass", "paper", "wool"]


def test_ninth_value_evicts_the_weakest_by_salience(museum):
    memory, done = add_one_per_turn(museum, "ArtInterest.Medium", MEDIA)
    assert [event for event, _ in events(done[-1])] == ["ADD", "DELETE"]
    assert {value for _, value in held(memory)} == set(MEDIA[1:])
    gone = done[-1]["results"][1]["id"]
    assert memory.history(gone)[-1]["event"] == "DELETE"


def test_repeated_value_is_not_evicted(museum):
    memory, done = add_one_per_turn(museum, "ArtInterest.Medium", [MEDIA[0], MEDIA[0], *MEDIA[1:]])
    assert events(done[1])[0][0] == "NONE"
    assert {value for _, value in held(memory)} == {MEDIA[0], *MEDIA[2:]}


def test_cardinality_one_by_salience_evicts_the_weaker(museum):
    memory, _ = add_one_per_turn(museum, "VisitPlan.TimeBudget", ["one hour", "two hours"])
    assert held(memory) == [("VisitPlan.TimeBudget", "two hours")]


def test_unlimited_cardinality_keeps_all_values(museum):
    values = [f"pollen {number}" for number in range(12)]
    memory, _ = add_one_per_turn(museum, "SpecialNeed.Allergy", values)
    assert [value for _, value in held(memory)] == values


def test_negation_removes_only_the_negated_value(museum):
    memory, llm = museum(
        facts_json(fact_line("ArtInterest.Medium", "ink"), fact_line("ArtInterest.Medium", "oil")),
        facts_json(fact_line("ArtInterest.Medium", "ink", "not ink any more", polarity="negated")),
        facts_json(fact_line("ArtInterest.Medium", "wool", "never wool", polarity="negated")),
    )
    [ink, _] = memory.add("I'm into ink and oil", user_id="ann")["results"]
    assert events(memory.add("By the way, not ink any more", user_id="ann")) == [
        ("DELETE", "Art medium: ink")
    ]
    assert held(memory) == [("ArtInterest.Medium", "oil")]
    assert [row["event"] for row in memory.history(ink["id"])] == ["ADD", "DELETE"]
    memory.add("Well, never wool", user_id="ann")
    assert ("ArtInterest.Medium", "oil") in held(memory)
    assert len(llm.asked) == 3


def test_facts_are_separate_per_user(museum):
    memory, _ = add_one_per_turn(museum, "Position.CurrentArea", ["east wing"])
    assert held(memory, "bob") == []


# Legacy and invalid ontologies

LEGACY = {
    "concepts": {
        name: {
            "label": name,
            "persistence_class": "session",
            "salience_weight": 0.5,
            "update_policy": policy,
        }
        for name, policy in (
            ("Where.Now", "superseded"),
            ("Likes.Art", "mutable"),
            ("Saw.Work", "monotonic"),
        )
    }
}


@pytest.mark.parametrize(("name", "left"), [("Where.Now", 1), ("Likes.Art", 3), ("Saw.Work", 3)])
def test_update_policy_is_honoured_with_deprecation_warning(museum, name, left):
    with pytest.warns(DeprecationWarning, match=f"{name}.update_policy"):
        memory, _ = add_one_per_turn(museum, name, MEDIA[:3], ontology=LEGACY)
    assert len(held(memory)) == left


def test_valid_ontology_emits_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Memory("ram://", embedder="none", ontology=MUSEUM).close()


BROKEN = {
    "a tier": ({"persistence_class": "permanant"}, ["persistence_class", "permanent"]),
    "a weight": ({"salience_weight": 7}, ["salience_weight", "from 0 to 1"]),
    "a count": ({"cardinality": 0}, ["cardinality", "unlimited"]),
    "an eviction": ({"eviction": "oldest"}, ["eviction", "recency"]),
    "a key": ({"persistance_class": "session"}, ["persistance_class", "persistence_class"]),
}


@pytest.mark.parametrize(("change", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_ontology_error_names_the_file_the_key_and_the_fix(change, says, tmp_path):
    path = tmp_path / "museum.json"
    whole = {**MUSEUM["concepts"]["ArtInterest.Medium"], **change}
    path.write_text(json.dumps({"concepts": {"Art.Odd": whole}}))
    with pytest.raises(ConfigError) as caught:
        Memory("ram://", embedder="none", ontology=str(path))
    message = str(caught.value)
    assert all(word in message for word in ("museum.json", "Art.Odd", *says)), message


@pytest.mark.parametrize("text", ["{", "[]", '{"concepts": []}', '{"kinds": {}}'])
def test_invalid_ontology_file_is_named_in_the_error(text, tmp_path):
    path = tmp_path / "museum.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"museum\.json"):
        Memory("ram://", embedder="none", ontology=str(path))


def test_ontology_can_be_loaded_from_a_file(tmp_path):
    path = tmp_path / "museum.json"
    path.write_text(json.dumps(MUSEUM))
    llm = ScriptedLLM([facts_json(fact_line("ArtInterest.Medium", "photography"))])
    with Memory("ram://", embedder="none", llm=llm, ontology=path) as memory:
        memory.add(SAID, user_id="ann", extract="closed")
        assert held(memory) == [("ArtInterest.Medium", "photography")]


# The command line


@pytest.fixture
def kinds(tmp_path, monkeypatch, capsys):
    """Function that runs `told kinds …` on a temporary store, and the kinds folder."""
    folder = tmp_path / "kinds"
    monkeypatch.setenv("TOLD_STORE", f"sqlite:///{tmp_path}/m.db")
    monkeypatch.setenv("TOLD_EMBEDDER", "none")
    monkeypatch.setenv("TOLD_KINDS", str(folder))
    folder.mkdir()

    def call(*words, code=0):
        capsys.readouterr()
        ended = told_cli(["kinds", *words, "--json"])
        out, err = capsys.readouterr()
        assert ended == code, out + err
        return json.loads(out or err)

    return call, folder


def test_kinds_new_creates_a_listed_and_valid_kind(kinds):
    call, folder = kinds
    made = call("new", "Decision", "--field", "reason")
    assert (folder / "decision.yaml").exists()
    assert made["name"] == "decision"
    listed = {row["name"]: row["origin"] for row in call("list")}
    assert (listed["decision"], listed["profile"]) == (str(folder), "told")
    shown = call("show", "decision")
    assert (shown["write"], shown["key"]) == ("aggregate", "slug")
    assert "reason" in [field["name"] for field in shown["fields"]]
    assert call("check") == [{"path": str(folder), "ok": True, "kinds": ["decision"]}]
    assert "decision" in call("new", "Decision", code=2)["message"]


def test_kinds_check_reports_problems_and_accepts_ontologies(kinds, tmp_path):
    call, folder = kinds
    (folder / "odd.yaml").write_text("name: odd\nwrite: sometimes\n")
    [row] = call("check", str(folder / "odd.yaml"), code=3)
    assert not row["ok"]
    assert all(word in row["problem"] for word in ("odd.yaml", "write", "sometimes"))
    museum = tmp_path / "museum.json"
    museum.write_text(json.dumps(MUSEUM))
    [row] = call("check", str(museum))
    assert row["kinds"] == list(MUSEUM["concepts"])


def test_kinds_show_of_unknown_kind_lists_existing_kinds(kinds):
    call, _ = kinds
    assert "profile" in call("show", "profil", code=2)["hint"]


def test_kinds_infer_proposes_kinds_for_skipped_facts(kinds, tmp_path):
    call, _ = kinds
    assert call("infer", "--user", "ann") == {"results": []}
    answers = [facts_json(fact_line("Weather.Now", word, word)) for word in ("rain", "snow")]
    answers.append(facts_json(fact_line("ArtInterest.Medium", "marble", "I love photography")))
    with Memory(
        f"sqlite:///{tmp_path}/m.db", embedder="none", llm=ScriptedLLM(answers), ontology=MUSEUM
    ) as memory:
        for text in ("There is rain outside", "There is snow outside", SAID):
            memory.add(text, user_id="ann", extract="closed")
    [proposal] = call("infer", "--user", "ann")["results"]
    assert (proposal["name"], proposal["claims"]) == ("weather.now", 2)
    file = tmp_path / "weather.yaml"
    file.write_text(proposal["yaml"])
    assert call("check", str(file)) == [{"path": str(file), "ok": True, "kinds": ["weather.now"]}]
