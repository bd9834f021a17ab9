"""Kinds: built-in kinds, the accepted spellings, and error messages."""

import json
import warnings
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.errors import ConfigError, InvalidInput
from told.ids import canonical_json
from told.model import kind as kind_module
from told.model.kind import (
    Eviction,
    Field,
    FieldType,
    Kind,
    Level,
    Ontology,
    Owner,
    Semantics,
    WriteMode,
    load_builtin_ontology,
    load_kind,
    load_ontology,
)
from told.model.salience import Tier
from told.model.scope import Scope

ALICE = Scope.create(user_id="alice", agent_id="coder", run_id="r1")
VALUES = {
    "slug": "Code Style",
    "name": "Met Bob",
    "skill_name": "release",
    "tool_name": "bash",
    "ts": "20260301",
    "id": "x1",
}


@pytest.fixture
def write(tmp_path):
    def put(name: str, content: str) -> str:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    return put


# The built-in kinds


BUILTIN = {
    "profile": ("merge", "user", False, "ctx://default/users/alice/memories/profile"),
    "preference": (
        "aggregate",
        "user",
        False,
        "ctx://default/users/alice/memories/preferences/code_style",
    ),
    "entity": (
        "aggregate",
        "user",
        False,
        "ctx://default/users/alice/memories/entities/code_style",
    ),
    "pattern": (
        "aggregate",
        "agent",
        False,
        "ctx://default/agents/coder/memories/patterns/code_style",
    ),
    "event": (
        "append",
        "user",
        False,
        "ctx://default/users/alice/memories/events/met_bob_20260301",
    ),
    "case": (
        "append",
        "agent",
        False,
        "ctx://default/agents/coder/memories/cases/met_bob_20260301",
    ),
    "skill": ("cumulative", "agent", False, "ctx://default/agents/coder/skills/release"),
    "tool": ("cumulative", "agent", True, "ctx://default/agents/coder/memories/tools/bash"),
    "session_archive": (
        "append",
        "user",
        True,
        "ctx://default/users/alice/sessions/r1/archives/20260301_x1",
    ),
    "session_summary": ("aggregate", "user", True, "ctx://default/users/alice/sessions/r1/summary"),
    "memory": ("append", "user", False, "ctx://default/users/alice/memories/plain/x1"),
    "turn": ("append", "user", True, "ctx://default/users/alice/memories/turns/x1"),
    "topic": ("append", "user", True, "ctx://default/users/alice/memories/topics/x1"),
    "node": ("aggregate", "user", True, "ctx://default/users/alice/memories/nodes/code_style"),
    "document": ("append", "user", True, "ctx://default/users/alice/memories/documents/x1"),
    "quarantine": ("append", "user", True, "ctx://default/users/alice/memories/quarantines/x1"),
}


def test_the_built_in_kinds_are_these():
    assert set(load_builtin_ontology().names) == set(BUILTIN)


@each_row(("name", "expected"), BUILTIN.items(), ids=BUILTIN)
def test_a_built_in_kind_has_its_write_mode_owner_and_uri(name, expected):
    kind = load_builtin_ontology()[name]
    assert (kind.write, kind.owner, kind.system, str(kind.build_uri(ALICE, VALUES))) == expected


@each_row("kind", load_builtin_ontology().values(), ids=load_builtin_ontology())
def test_a_built_in_kind_documents_its_tier_and_fields(kind):
    assert kind.label
    assert kind.enabled
    assert kind.tier.value.replace("_", "-") in kind.description.lower()
    assert all(field.description for field in kind.fields)
    assert kind.examples or kind.system


@pytest.mark.parametrize("name", ["event", "case", "session_archive"])
def test_history_kinds_are_append_only_and_immutable(name):
    assert (load_builtin_ontology()[name].write, load_builtin_ontology()[name].semantics) == (
        "append",
        "immutable",
    )


def test_a_plain_memory_is_long_term_and_multi_valued():
    plain = load_builtin_ontology()["memory"]
    assert (plain.tier, plain.semantics, plain.levels) == (
        Tier.LONG_TERM,
        Semantics.MULTI,
        (Level.CONTENT,),
    )


def test_permanent_kinds_have_no_half_life():
    kept = {kind.name for kind in load_builtin_ontology().values() if kind.half_life is None}
    assert kept == {"profile", "skill", "topic"}, (
        "a topic ends when it is split or merged, and not by itself"
    )


def test_the_built_in_kinds_are_loaded_once():
    assert load_builtin_ontology() is load_builtin_ontology()


# Tiers


def test_tiers_have_the_specified_decay():
    assert [tier.decay for tier in Tier] == [1.00, 0.99, 0.85, 0.55]


@pytest.mark.parametrize(
    ("tier", "turns"), [(Tier.LONG_TERM, 230), (Tier.SESSION, 15), (Tier.EPHEMERAL, 4)]
)
def test_a_tier_decays_below_the_threshold_after_the_given_turns(tier, turns):
    assert tier.decay**turns < 0.1 <= tier.decay ** (turns - 1)


def test_a_kind_without_a_half_life_uses_that_of_its_tier():
    assert Kind("x", tier=Tier.SESSION).half_life == Tier.SESSION.half_life_days
    assert Kind("x", tier=Tier.SESSION, half_life_days=3).half_life == 3


# The value


def test_a_kind_is_immutable():
    with pytest.raises(FrozenInstanceError):
        Kind("x").weight = 1.0


@each_row("kind", load_builtin_ontology().values(), ids=load_builtin_ontology())
def test_a_kind_round_trips_through_the_ledger(kind):
    assert load_kind(json.loads(canonical_json(kind.as_json()))) == kind


names = st.text("abcdefgh_", min_size=1, max_size=8)
fields = st.builds(
    Field,
    name=names,
    type=st.just(FieldType.STRING),
    required=st.booleans(),
    default=st.none() | names,
)
kinds = st.builds(
    Kind,
    name=names.filter(lambda name: name.strip("_")),
    owner=st.sampled_from(Owner),
    fields=st.lists(fields, max_size=3, unique_by=lambda item: item.name).map(tuple),
    tier=st.sampled_from([Tier.LONG_TERM, Tier.SESSION, Tier.EPHEMERAL]),
    weight=st.floats(0, 1),
    cardinality=st.none() | st.integers(1, 99),
    eviction=st.sampled_from(Eviction),
    half_life_days=st.none() | st.floats(0.01, 1000),
    semantics=st.sampled_from(Semantics),
    levels=st.sets(st.sampled_from(Level), min_size=1).map(lambda levels: tuple(sorted(levels))),
    enabled=st.booleans(),
    system=st.booleans(),
)


@given(kinds)
def test_any_kind_round_trips(kind):
    assert load_kind(json.loads(canonical_json(kind.as_json()))) == kind


@each_row(
    ("changes", "says"),
    [
        ({"name": " "}, "name"),
        ({"weight": 1.5}, "from 0 to 1"),
        ({"cardinality": 0}, "whole number from 1"),
        ({"half_life_days": -1.0}, "above 0"),
        ({"tier": Tier.PERMANENT, "half_life_days": 9.0}, "does not fade"),
        ({"write": WriteMode.AGGREGATE}, "key: missing"),
        ({"fields": (Field("a"), Field("a"))}, "unique names"),
    ],
)
def test_a_kind_made_in_code_is_validated(changes, says):
    with pytest.raises(ConfigError, match=says):
        replace(Kind("x"), **changes)


# Ontologies


def test_an_ontology_is_an_ordered_mapping():
    ontology = Ontology((Kind("b"), Kind("a")))
    assert (ontology.names, list(ontology), len(ontology)) == (("b", "a"), ["b", "a"], 2)
    assert ontology.get("b") == Kind("b")
    assert ontology.get("c") is None
    assert "c" not in ontology


def test_adding_a_kind_does_not_change_the_original_ontology():
    before = Ontology((Kind("a"),), version="1")
    after = before.with_kinds(Kind("b"))
    assert (before.names, after.names, after.version) == (("a",), ("a", "b"), "1")


def test_a_kind_of_the_same_name_replaces_the_first():
    after = Ontology((Kind("a"), Kind("b"))).with_kinds(Kind("a", weight=0.9))
    assert (after.names, after["a"].weight) == (("a", "b"), 0.9)


def test_duplicate_kind_names_are_rejected():
    with pytest.raises(ConfigError, match="same name"):
        Ontology((Kind("a"), Kind("a")))


def test_an_unknown_kind_error_suggests_the_nearest():
    with pytest.raises(InvalidInput, match="Did you mean 'preference'"):
        load_builtin_ontology().get_kind("prefrence")
    assert load_builtin_ontology().get_kind("preference").name == "preference"


# Ontology JSON


CONCEPT = {
    "label": "Current area",
    "examples": ["I'm in the hall"],
    "persistence_class": "session",
    "salience_weight": 0.6,
    "cardinality": 1,
    "eviction": "recency",
}


def ontology(**changes):
    return {
        "version": "0.2",
        "description": "Museum",
        "concepts": {"Position.Area": CONCEPT | changes},
    }


def test_an_ontology_file_contains_only_its_concepts(write):
    found = load_ontology(write("museum.json", json.dumps(ontology())))
    assert (found.version, found.description, found.names) == ("0.2", "Museum", ("Position.Area",))
    area = found["Position.Area"]
    assert (area.label, area.examples) == ("Current area", ("I'm in the hall",))
    assert (area.tier, area.weight, area.cardinality, area.eviction) == (
        "session",
        0.6,
        1,
        "recency",
    )


def test_a_file_and_a_mapping_load_equally(write):
    assert load_ontology(write("museum.json", json.dumps(ontology()))) == load_ontology(ontology())


def test_each_value_of_a_concept_has_its_own_thread():
    area = load_ontology(ontology())["Position.Area"]
    assert (area.write, area.key) == (WriteMode.AGGREGATE, "value")
    assert str(area.build_uri(ALICE, {"value": "West Wing"})).endswith(
        "/memories/position.area/west_wing"
    )


@pytest.mark.parametrize(
    ("changes", "semantics"),
    [
        ({"cardinality": 1, "eviction": "recency"}, "functional"),
        ({"cardinality": 1, "eviction": "salience"}, "multi"),
        ({"cardinality": 8, "eviction": "recency"}, "multi"),
        ({"cardinality": "unlimited"}, "multi"),
    ],
)
def test_semantics_follow_cardinality_and_update_policy(changes, semantics):
    assert load_ontology(ontology(**changes))["Position.Area"].semantics == semantics


def test_unlimited_cardinality_means_no_limit():
    assert load_ontology(ontology(cardinality="unlimited"))["Position.Area"].cardinality is None


LEGACY = {
    "superseded": (1, "recency"),
    "mutable": (None, "salience"),
    "monotonic": (None, "salience"),
}


@pytest.mark.parametrize(("word", "expected"), LEGACY.items(), ids=LEGACY)
def test_an_update_policy_still_works_with_a_deprecation_warning(word, expected):
    concept = {key: CONCEPT[key] for key in ("label", "persistence_class", "salience_weight")} | {
        "update_policy": word
    }
    with pytest.warns(DeprecationWarning, match=r"concepts\.A\.update_policy") as seen:
        kind = load_ontology({"concepts": {"A": concept}})["A"]
    assert (kind.cardinality, kind.eviction) == expected
    assert seen[0].filename == __file__


def test_an_explicit_cardinality_overrides_an_update_policy():
    with pytest.warns(DeprecationWarning, match="cardinality and eviction"):
        kind = load_ontology(ontology(cardinality=5, update_policy="mutable"))["Position.Area"]
    assert (kind.cardinality, kind.eviction) == (5, "recency")


def test_a_current_ontology_gives_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_ontology(ontology())


# YAML kinds


NATIVE_YAML = """
name: decision
label: Decision
write: aggregate
key: slug
owner: agent
tier: session
weight: 0.4
cardinality: 5
eviction: recency
fields:
  - {name: slug, required: true}
  - {name: votes, type: integer, default: 1, enum: [1, 2, 3]}
"""

CONTEXT_ENGINE_YAML = """
memory_type: handoff
description: What the next agent must know.
directory: "ctx://{{account_id}}/agents/{{agent_id}}/memories/handoffs"
filename_template: "{{ topic }}"
operation_mode: upsert
owner_scope: agent
enabled: false
fields:
  - name: topic
    type: string
    required: true
    description: What it is about.
  - name: urgent
    type: boolean
    default: false
"""


def test_the_native_spelling_is_read(write):
    kind = load_kind(write("decision.yaml", NATIVE_YAML))
    assert (kind.name, kind.write, kind.key, kind.owner) == (
        "decision",
        "aggregate",
        "slug",
        "agent",
    )
    assert (kind.tier, kind.weight, kind.cardinality, kind.eviction) == (
        "session",
        0.4,
        5,
        "recency",
    )
    assert kind.fields[1] == Field("votes", FieldType.INTEGER, default=1, enum=(1, 2, 3))
    assert (
        str(kind.build_uri(ALICE, {"slug": "Use Rust"}))
        == "ctx://default/agents/coder/memories/decision/use_rust"
    )


def test_the_spelling_of_context_engines_is_read(write):
    kind = load_kind(write("handoff.yaml", CONTEXT_ENGINE_YAML))
    assert (kind.name, kind.write, kind.key, kind.owner) == (
        "handoff",
        "aggregate",
        "topic",
        "agent",
    )
    assert not kind.enabled
    assert kind.fields[1] == Field("urgent", FieldType.BOOLEAN, default=False)
    assert (
        str(kind.build_uri(ALICE, {"topic": "CI"}))
        == "ctx://default/agents/coder/memories/handoffs/ci"
    )


@pytest.mark.parametrize(
    ("mode", "filename", "write", "key"),
    [
        ("upsert", "{{topic}}", "aggregate", "topic"),
        ("upsert", "profile", "merge", None),
        ("add_only", "{{topic}}_{{ts}}", "append", "topic"),
        ("add_only", "{{id}}", "append", None),
    ],
)
def test_an_operation_mode_becomes_a_write_policy(mode, filename, write, key):
    schema = {
        "memory_type": "x",
        "operation_mode": mode,
        "filename_template": filename,
        "fields": [{"name": "topic"}],
    }
    kind = load_kind(schema)
    assert (kind.write, kind.key) == (write, key)


def test_an_explicit_write_policy_overrides_an_operation_mode():
    kind = load_kind(
        {
            "memory_type": "x",
            "operation_mode": "upsert",
            "write": "cumulative",
            "filename_template": "{{topic}}",
            "fields": [{"name": "topic"}],
        }
    )
    assert (kind.write, kind.key) == ("cumulative", "topic")


def test_a_folder_of_kinds_is_loaded_as_an_ontology(write, tmp_path):
    write("decision.yaml", NATIVE_YAML)
    write("handoff.yml", CONTEXT_ENGINE_YAML)
    write("notes.txt", "not a kind")
    assert load_ontology(tmp_path).names == ("decision", "handoff")


# Errors: the input and the expected message


DUPLICATE_KEY_YAML = "name: a\nweight: 0.1\nweight: 0.2\n"
KIND_ERRORS = {
    "unknown key": ("name: a\nwieght: 1", ["wieght", "Did you mean 'weight'?", "cardinality"]),
    "unknown word": (
        "name: a\ntier: longterm",
        ["tier", "'longterm'", "permanent, long_", "mean 'long_term'?"],
    ),
    "wrong case": ("name: a\nwrite: MERGE", ["write", "Did you mean 'merge'?"]),
    "no text": ("name: 3", ["name", "found 3", "a non-empty text"]),
    "no name": ("label: A", ["name", "missing"]),
    "no number": ("name: a\nweight: heavy", ["weight", "'heavy'", "from 0 to 1"]),
    "not a number": ("name: a\nweight: .nan", ["weight", "from 0 to 1"]),
    "a flag is no number": ("name: a\nweight: true", ["weight", "found True"]),
    "half a memory": ("name: a\ncardinality: 1.5", ["cardinality", "1.5", '"unlimited"']),
    "nearly unlimited": ("name: a\ncardinality: unlimted", ["Did you mean 'unlimited'?"]),
    "no flag": ("name: a\nenabled: maybe", ["enabled", "true or false"]),
    "forever": ("name: a\nhalf_life_days: .inf", ["half_life_days", "above 0"]),
    "no level": ("name: a\nlevels: []", ["levels", "L0, L1, L2"]),
    "unknown level": ("name: a\nlevels: [L3]", ["levels.0", "'L3'"]),
    "no list": ("name: a\nexamples: one", ["examples", "a list"]),
    "unknown type": (
        "name: a\nfields: [{name: b, type: str}]",
        ["fields.0.type", "'str'", "string, number"],
    ),
    "nameless field": ("name: a\nfields: [{type: string}]", ["fields.0.name", "missing"]),
    "misspelt field key": (
        "name: a\nfields: [{name: b, requird: 1}]",
        ["fields.0.requird", "mean 'required'?"],
    ),
    "default of another type": (
        "name: a\nfields: [{name: b, default: 1}]",
        ["fields.0.default", "type string"],
    ),
    "default outside": (
        "name: a\nfields: [{name: b, enum: [x, y], default: z}]",
        ["fields.0.default", "x, y"],
    ),
    "yes in an enum": (
        "name: a\nfields: [{name: b, enum: [yes, no]}]",
        ["fields.0.enum.0", "found True"],
    ),
    "two spellings": ("name: a\nmemory_type: b", ["memory_type", "only one spelling of name"]),
    "key nobody has": (
        "name: a\nwrite: aggregate\nkey: slgu\nfields: [{name: slug}]",
        ["key", "Did you mean 'slug'?"],
    ),
    "unknown placeholder": (
        "name: a\nfilename: '{{idd}}'",
        ["filename", "'idd'", "Did you mean 'id'?"],
    ),
    "open placeholder": ("name: a\nfilename: '{{id}'", ["filename", "{{slug}}"]),
    "append overwrites": ("name: a\nfilename: fixed", ["filename", "'fixed'", "{{ts}} or {{id}}"]),
    "aggregate forgets its key": (
        "name: a\nwrite: aggregate\nkey: b\nfields: [{name: b}]\nfilename: fixed",
        ["filename", "{{b}}, the routing key"],
    ),
    "outside the account": (
        "name: a\ndirectory: ctx://shared/{{owner_space}}",
        ["directory", "ctx://{{account_id}}/"],
    ),
    "nobody's": (
        "name: a\ndirectory: 'ctx://{{account_id}}/all'",
        ["directory", "{{owner_space}}"],
    ),
    "half an owner": (
        "name: a\ndirectory: 'ctx://{{account_id}}/{{run_id}}/x-{{owner_space}}'",
        ["of its own"],
    ),
    "an empty folder": (
        "name: a\ndirectory: 'ctx://{{account_id}}//{{owner_space}}'",
        ["directory"],
    ),
    "key twice": (DUPLICATE_KEY_YAML, ["'weight' appears twice"]),
    "not a mapping": ("- name: a", ["a mapping"]),
    "empty": ("", ["found None", "a mapping"]),
    "no YAML": ("name: [", ["cannot be read"]),
    "a knot": ("&a [*a]", ["cannot be read"]),
    "two documents": ("name: a\n---\nname: b", ["cannot be read"]),
    "code": ("name: !!python/object/apply:os.getcwd []", ["cannot be read"]),
}


@pytest.mark.parametrize(("content", "says"), KIND_ERRORS.values(), ids=KIND_ERRORS)
def test_an_error_in_a_kind_names_the_file_and_the_fix(content, says, write):
    path = write("mine.yaml", content)
    with pytest.raises(ConfigError) as caught:
        load_kind(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert caught.value.detail["file"] == path
    assert [part for part in says if part not in told] == [], told


def without(key):
    return {"concepts": {"A": {name: value for name, value in CONCEPT.items() if name != key}}}


ONTOLOGY_ERRORS = {
    "no concepts": ({"version": "1"}, ["concepts", "missing"]),
    "concepts in a list": ({"concepts": [CONCEPT]}, ["concepts", "a mapping"]),
    "concept without rules": ({"concepts": {"A": "x"}}, ["concepts.A", "a mapping"]),
    "unknown top key": ({"concept": {}}, ["concept", "Did you mean 'concepts'?"]),
    "no class": (
        without("persistence_class"),
        ["concepts.A.persistence_class", "missing", "ephemeral"],
    ),
    "no weight": (without("salience_weight"), ["concepts.A.salience_weight", "missing"]),
    "weight": (
        ontology(salience_weight=7),
        ["concepts.Position.Area.salience_weight", "found 7", "from 0 to 1"],
    ),
    "class": (
        ontology(persistence_class="longterm"),
        ["persistence_class", "Did you mean 'long_term'?"],
    ),
    "cardinality": (ontology(cardinality=0), ["cardinality", "found 0"]),
    "eviction": (ontology(eviction="recent"), ["eviction", "Did you mean 'recency'?"]),
    "update policy": (
        ontology(update_policy="supersede"),
        ["update_policy", "Did you mean 'superseded'?"],
    ),
    "key": (ontology(evictoin="recency"), ["evictoin", "Did you mean 'eviction'?"]),
}


@pytest.mark.parametrize(("data", "says"), ONTOLOGY_ERRORS.values(), ids=ONTOLOGY_ERRORS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_error_in_an_ontology_names_the_concept_and_the_fix(data, says, write):
    path = write("mine.json", json.dumps(data))
    with pytest.raises(ConfigError) as caught:
        load_ontology(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert [part for part in says if part not in told] == [], told


def test_a_duplicate_concept_is_not_silently_dropped(write):
    with pytest.raises(ConfigError, match="'A' appears twice"):
        load_ontology(write("mine.json", '{"concepts": {"A": {}, "A": {}}}'))


@each_row("load", [load_kind, load_ontology])
@each_row("path", ["missing.yaml", "x" * 5000, "nul\0.json"])
def test_a_missing_path_raises_a_told_error(load, path):
    with pytest.raises(ConfigError):
        load(path)


def test_a_file_that_is_not_utf8_raises_a_told_error(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_kind(tmp_path / "a.yaml")


def test_a_folder_without_kinds_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match="contains no kinds"):
        load_ontology(tmp_path)


def test_two_files_for_one_kind_are_rejected(write, tmp_path):
    write("a.yaml", NATIVE_YAML)
    write("b.yaml", NATIVE_YAML)
    with pytest.raises(ConfigError, match=r"b\.yaml: name: found 'decision'"):
        load_ontology(tmp_path)


KINDS_FOLDER = Path(kind_module.__file__).with_name("kinds")


def test_the_packaged_kinds_match_their_files():
    assert load_builtin_ontology() == load_ontology(KINDS_FOLDER)


def test_built_in_kinds_are_parsed_once_and_then_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_builtin_ontology.__wrapped__()
    assert [file.suffix for file in (tmp_path / "told").iterdir()] == [".json"]
    monkeypatch.setattr(kind_module, "parse_unique_yaml", None)
    assert load_builtin_ontology.__wrapped__() == first


@pytest.mark.parametrize("content", ["", "[]", "{", "\xff"])
def test_a_broken_cache_of_kinds_is_ignored(monkeypatch, tmp_path, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_builtin_ontology.__wrapped__()
    (file,) = (tmp_path / "told").iterdir()
    file.write_bytes(content.encode("latin-1"))
    assert load_builtin_ontology.__wrapped__() == load_ontology(KINDS_FOLDER)


def test_kinds_load_without_a_cache_folder(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_builtin_ontology.__wrapped__() == load_ontology(KINDS_FOLDER)
