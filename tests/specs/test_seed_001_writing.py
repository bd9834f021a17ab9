"""Seed 001: seven kinds of memory, each with its own write policy; new kinds are YAML files."""

import json

import pytest

from hearing import wish
from histories import stage
from told import ConfigError, InvalidInput, Memory
from told.cli.app import run as told_cli
from told.model.scope import Scope
from told.ports import ToolReply
from told.testing import ScriptedLLM

WHO = {"user_id": "alice", "agent_id": "coder"}
NOTHING_NEW = ToolReply("Nothing new.")


@pytest.fixture(params=["ram", "sqlite"])
def memory(request):
    with stage(request.param) as here:
        yield here.memory


def get_only_row(receipt):
    [row] = receipt["results"]
    return row


def list_rows(memory, kind=None):
    rows = memory.get_all(**WHO, limit=1000)["results"]
    return [row for row in rows if kind in (None, row.get("kind"))]


def list_texts(memory, kind=None):
    return [row["memory"] for row in list_rows(memory, kind)]


def write(memory, kind, text, **fields):
    return get_only_row(memory.add(text, kind=kind, metadata=fields, **WHO))


# Written directly


def test_profile_merges_and_keeps_its_history(memory):
    first = write(memory, "profile", "Alice is a backend engineer in London")
    again = write(memory, "profile", "Alice is a backend engineer in London")
    moved = write(memory, "profile", "Alice is a backend engineer in Tokyo")
    assert [row["event"] for row in (first, again, moved)] == ["ADD", "NONE", "UPDATE"]
    assert first["id"] == again["id"] == moved["id"]
    assert list_texts(memory) == ["Alice is a backend engineer in Tokyo"]
    assert [row["new_memory"] for row in memory.history(first["id"])] == [
        first["memory"],
        moved["memory"],
    ]


@pytest.mark.parametrize("slug", ["coffee", "Coffee", "coffees", "coffe"])
@pytest.mark.parametrize(
    ("kind", "both"), [("preference", False), ("pattern", False), ("entity", True)]
)
def test_similar_slugs_merge_into_one_memory(memory, kind, both, slug):
    first = write(memory, kind, "Black, no sugar.", slug="coffee")
    second = write(memory, kind, "With oat milk.", slug=slug)
    other = write(memory, kind, "Green, from Uji.", slug="tea")
    assert (second["event"], second["id"], other["event"]) == ("UPDATE", first["id"], "ADD")
    assert list_texts(memory) == [
        "Black, no sugar.\nWith oat milk." if both else "With oat milk.",
        "Green, from Uji.",
    ]
    assert list_rows(memory)[0]["metadata"]["slug"] == "coffee"


@pytest.mark.parametrize(
    ("one", "other"), [("plan_2025", "plan_2026"), ("cat", "car"), ("java", "javascript")]
)
def test_distinct_slugs_that_look_alike_stay_separate(memory, one, other):
    write(memory, "preference", "This one.", slug=one)
    assert write(memory, "preference", "That one.", slug=other)["event"] == "ADD"
    assert list_texts(memory) == ["This one.", "That one."]


@pytest.mark.parametrize("kind", ["event", "case"])
def test_events_and_cases_are_append_only(memory, kind):
    descriptions = [
        "Completed the migration",
        "Completed the migration on March 15",
        "The migration was rolled back",
    ]
    written = [write(memory, kind, text, name="migration") for text in descriptions]
    assert [row["event"] for row in written] == ["ADD"] * 3
    assert list_texts(memory, kind) == descriptions


def test_event_repeated_on_another_day_is_added_and_on_the_same_day_is_not(memory):
    days = ["2026-01-01", "2026-01-02", "2026-01-02"]
    done = [memory.add("Ran five kilometres", kind="event", timestamp=day, **WHO) for day in days]
    assert [get_only_row(receipt)["event"] for receipt in done] == ["ADD", "ADD", "NONE"]
    assert [row["said_at"][:10] for row in list_rows(memory, "event")] == days[:2]


def test_skill_update_merges_steps_and_counts_uses(memory):
    write(
        memory,
        "skill",
        "To release, tag it.",
        skill_name="release",
        trigger="a release",
        steps="1. tag",
    )
    for _ in range(2):
        write(
            memory,
            "skill",
            "To release, publish the notes.",
            skill_name="Release",
            steps="1. tag\n2. publish",
        )
    [skill] = list_rows(memory, "skill")
    assert skill["memory"] == "To release, tag it.\nTo release, publish the notes."
    assert skill["metadata"] == {
        "skill_name": "release",
        "trigger": "a release",
        "steps": "1. tag\n2. publish",
        "usage_count": 3,
    }
    assert [row["event"] for row in memory.history(skill["id"])] == ["ADD", "UPDATE", "UPDATE"]


def test_owners_do_not_share_a_memory(memory):
    for agent in ("coder", "writer"):
        done = memory.add(
            f"{agent} way", kind="skill", metadata={"skill_name": "release"}, agent_id=agent
        )
        assert get_only_row(done)["event"] == "ADD"
    for agent in ("coder", "writer"):
        assert [row["memory"] for row in memory.get_all(agent_id=agent)["results"]] == [
            f"{agent} way"
        ]


def test_field_of_the_wrong_type_is_rejected_by_name(memory):
    with pytest.raises(
        InvalidInput, match=r"usage_count is 'often', not a integer.*told kinds show skill"
    ):
        write(memory, "skill", "To release, tag it.", skill_name="release", usage_count="often")
    assert list_rows(memory) == []


def test_memory_without_its_key_is_deduplicated_by_text_with_a_warning(memory):
    done = memory.add("Short answers, please", kind="preference", **WHO)
    assert "slug" in done["warnings"][0]
    assert write(memory, "preference", "Long walks")["event"] == "ADD"
    assert write(memory, "preference", "Short answers, please")["event"] == "NONE"


ADDRESSES = {
    "profile": "ctx://default/users/alice/memories/profile",
    "preference": "ctx://default/users/alice/memories/preferences/code_style",
    "entity": "ctx://default/users/alice/memories/entities/code_style",
    "event": "ctx://default/users/alice/memories/events/migration_7",
    "case": "ctx://default/agents/coder/memories/cases/migration_7",
    "pattern": "ctx://default/agents/coder/memories/patterns/code_style",
    "skill": "ctx://default/agents/coder/skills/release",
}


@pytest.mark.parametrize(("kind", "address"), ADDRESSES.items())
def test_every_kind_has_an_owner_and_an_address(memory, kind, address):
    rules = memory.engine.extraction.ontology[kind]
    fields = {"slug": "Code style", "name": "Migration", "skill_name": "release", "ts": 7}
    assert str(rules.build_uri(Scope(**WHO), fields)) == address
    assert rules.owner == ("agent" if "/agents/" in address else "user")


# Extracted by a model with tools


@pytest.fixture(params=["ram", "sqlite"])
def open_with_model(request):
    """Open memories whose model replays scripted tool calls, one list of calls a step."""
    stages = []

    def open_memory(*steps, **settings):
        replies = [ToolReply("", tuple(step)) if isinstance(step, list) else step for step in steps]
        llm = ScriptedLLM(replies)
        stages.append(stage(request.param, llm=llm, extract="react", **settings))
        return stages[-1].__enter__().memory, llm

    yield open_memory
    for opened_stage in stages:
        opened_stage.__exit__(None, None, None)


def add_turns(open_with_model, *turns, **settings):
    """Add turns, each with the tool calls the model makes for it; return the receipts too."""
    steps = [step for _, calls in turns for step in (calls, NOTHING_NEW)]
    memory, llm = open_with_model(*steps, **settings)
    return memory, llm, [memory.add(text, **WHO) for text, _ in turns]


def list_events(done):
    return [(row["event"], row["memory"]) for receipt in done for row in receipt["results"]]


def test_model_gets_a_tool_for_every_kind_and_lookup_tools(open_with_model):
    memory, llm = open_with_model(NOTHING_NEW)
    memory.add("I think the weather is fine today", **WHO)
    _, _, tools = llm.conversations[0]
    assert {tool.name for tool in tools} == {
        "read",
        "list",
        "relations",
        "access_stats",
        "done",
        "extract_profile",
        "extract_preference",
        "extract_entity",
        "extract_event",
        "extract_case",
        "extract_pattern",
        "extract_skill",
    }


def extract_profile_call(content, quote):
    return [wish("extract_profile", content=content, abstract=content, evidence=quote)]


def test_extracted_profile_merges_sentence_by_sentence(open_with_model):
    memory, _, done = add_turns(
        open_with_model,
        (
            "I'm Alice and I live in London",
            extract_profile_call("User's name is Alice. User lives in London.", "I live in London"),
        ),
        (
            "I juggle on Sundays",
            extract_profile_call("User juggles on Sundays", "I juggle on Sundays"),
        ),
        ("I moved to Tokyo", extract_profile_call("User lives in Tokyo", "I moved to Tokyo")),
    )
    assert list_events(done)[-1] == ("UPDATE", "User lives in Tokyo")
    assert list_texts(memory, "profile") == [
        "User's name is Alice",
        "User juggles on Sundays",
        "User lives in Tokyo",
    ]


def test_new_profile_detail_replaces_the_old_one(open_with_model):
    memory, _, _ = add_turns(
        open_with_model,
        (
            "I'm a backend engineer in London",
            extract_profile_call("User is a backend engineer in London", "in London"),
        ),
        (
            "I'm a backend engineer in Tokyo now",
            extract_profile_call("User is a backend engineer in Tokyo", "in Tokyo now"),
        ),
    )
    assert list_texts(memory, "profile") == ["User is a backend engineer in Tokyo"]


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("preference", ["Short functions"]),
        ("pattern", ["Short functions"]),
        ("entity", ["Long functions\nShort functions"]),
    ],
)
def test_extracted_topics_merge_by_slug(open_with_model, kind, left):
    def call(slug, content):
        return [
            wish(f"extract_{kind}", slug=slug, content=content, abstract=content, evidence=content)
        ]

    memory, _, done = add_turns(
        open_with_model,
        ("Long functions, please", call("code_style", "Long functions")),
        ("Tea at noon", call("tea", "Tea at noon")),
        ("Short functions, please", call("code_styles", "Short functions")),
    )
    assert [event for event, _ in list_events(done)] == ["ADD", "ADD", "UPDATE"]
    assert sorted(list_texts(memory, kind)) == sorted([*left, "Tea at noon"])


def test_plain_sentence_preference_merges_by_slug(open_with_model):
    def call(content, quote):
        return [
            wish(
                "extract_preference",
                slug="editor",
                content=content,
                abstract=content,
                evidence=quote,
            )
        ]

    memory, _, _ = add_turns(
        open_with_model,
        ("I prefer Vim", call("User prefers Vim", "I prefer Vim")),
        ("These days I prefer Emacs", call("User prefers Emacs", "I prefer Emacs")),
    )
    assert list_texts(memory, "preference") == ["User prefers Emacs"]


@pytest.mark.parametrize("kind", ["event", "case"])
def test_extracted_event_or_case_is_added_even_when_it_equals_the_turn(open_with_model, kind):
    said = ["The build failed because of a stale lock", "The build failed because of a full disk"]
    turns = [
        (text, [wish(f"extract_{kind}", name="build", content=text, abstract=text, evidence=text)])
        for text in said
    ]
    memory, _, done = add_turns(open_with_model, *turns)
    assert list_events(done) == [("ADD", text) for text in said]
    assert list_texts(memory, kind) == said


def test_extracted_skill_merges_steps_and_counts_uses(open_with_model):
    def call(steps, quote):
        fields = {
            "skill_name": "release",
            "trigger": "a release",
            "steps": steps,
            "abstract": quote,
        }
        return [wish("extract_skill", **fields, evidence=quote)]

    memory, _, _ = add_turns(
        open_with_model,
        (
            "To release, bump the version",
            call("1. bump the version", "To release, bump the version"),
        ),
        (
            "To release, bump the version and tag it",
            call(["1. bump the version", "2. tag it"], "and tag it"),
        ),
    )
    [skill] = list_rows(memory, "skill")
    assert skill["metadata"]["steps"] == "1. bump the version\n2. tag it"
    assert skill["metadata"]["usage_count"] == 2


def test_known_fact_is_looked_up_and_not_written_again(open_with_model):
    memory, llm = open_with_model(
        extract_profile_call("User lives in London", "I live in London"),
        NOTHING_NEW,
        [wish("list", kind="profile")],
        extract_profile_call("User lives in London", "I live in London"),
        NOTHING_NEW,
    )
    memory.add("I live in London", **WHO)
    done = memory.add("As I said, I live in London", **WHO)
    assert done["results"] == []
    assert [row["reason"] for row in done["skipped"]] == ["already known"]
    shown = [
        line.text for _, lines, _ in llm.conversations for line in lines if line.role == "tool"
    ]
    assert any("User lives in London" in text for text in shown)
    assert list_texts(memory) == ["User lives in London"]


def test_incomplete_tool_call_is_reported_to_the_model_and_the_caller(open_with_model):
    memory, llm, [done] = add_turns(
        open_with_model,
        (
            "I like my tea green",
            [wish("extract_preference", content="Green tea", evidence="tea green")],
        ),
    )
    assert done["results"] == []
    assert "slug" in done["skipped"][0]["reason"]
    answers = [line.text for line in llm.conversations[1][1] if line.role == "tool"]
    assert answers == ["Not written: missing or of the wrong type: slug, abstract."]
    assert list_rows(memory) == []


def test_finding_nothing_new_succeeds_and_tool_rounds_are_limited(open_with_model):
    memory, _ = open_with_model(NOTHING_NEW)
    assert memory.add("The train was late again this morning", **WHO)["extraction"] == "done"
    searching, llm = open_with_model(*[[wish("list", kind="")]] * 9, extract_rounds=3)
    done = searching.add("The train was late again this morning", **WHO)
    assert len(llm.conversations) == 3
    assert any("stopped after 3 steps" in warning for warning in done["warnings"])


# Custom kinds

DECISION = """\
name: decision
label: Decision
description: What was decided, and why.
write: aggregate
key: slug
owner: agent
tier: long_term
weight: 0.8
semantics: functional
fields:
  - {name: slug, required: true, description: "What it is about."}
  - {name: content, required: true, description: "What was decided."}
  - {name: reason, description: "Why."}
  - {name: risk, enum: [low, high], description: "How risky it is."}
"""
HANDOFF = """\
memory_type: handoff
description: Work handed from one agent to another.
directory: "ctx://{{account_id}}/{{owner_space}}/memories/handoffs"
filename_template: "{{name}}_{{ts}}"
operation_mode: add_only
owner_scope: agent
fields:
  - {name: name, type: string, required: true, description: "To whom."}
  - {name: content, type: string, required: true, description: "What is left to do."}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "decision.yaml").write_text(DECISION)
    (tmp_path / "kinds" / "handoff.yaml").write_text(HANDOFF)
    return tmp_path / "kinds"


def test_yaml_file_defines_a_new_kind_with_its_own_policy(folder, request):
    with stage("sqlite", kinds=str(folder)) as here:
        memory = here.memory
        first = write(memory, "decision", "Use Postgres", slug="database", reason="it scales")
        second = write(memory, "decision", "Use SQLite", slug="databases", reason="it is simple")
        assert (second["event"], second["id"]) == ("UPDATE", first["id"])
        assert [row["metadata"]["reason"] for row in list_rows(memory, "decision")] == [
            "it is simple"
        ]
        for text in ("Finish the tests", "Finish the docs"):
            assert write(memory, "handoff", text, name="writer")["event"] == "ADD"
        assert list_texts(memory, "handoff") == ["Finish the tests", "Finish the docs"]
        with pytest.raises(InvalidInput, match="risk is 'some', not one of low, high"):
            write(memory, "decision", "Use both", slug="database", risk="some")


def test_custom_kind_is_offered_to_the_model_as_a_tool(folder, open_with_model):
    call = wish(
        "extract_decision", slug="database", content="Use Postgres", evidence="we use Postgres"
    )
    memory, llm = open_with_model([call], NOTHING_NEW, kinds=str(folder))
    memory.add("From now on we use Postgres", **WHO)
    assert list_texts(memory, "decision") == ["Use Postgres"]
    assert {"extract_decision", "extract_handoff"} <= {
        tool.name for tool in llm.conversations[0][2]
    }


def test_kinds_folder_is_read_from_the_environment_and_by_the_cli(
    folder, monkeypatch, capsys, tmp_path
):
    monkeypatch.setenv("TOLD_KINDS", str(folder))
    monkeypatch.setenv("TOLD_EMBEDDER", "none")
    with Memory(f"sqlite:///{tmp_path}/m.db") as memory:
        write(memory, "decision", "Use Postgres", slug="database")
        assert write(memory, "decision", "Use SQLite", slug="database")["event"] == "UPDATE"
    assert told_cli(["kinds", "show", "decision", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["template"].endswith(
        "/{{owner_space}}/memories/decision/{{slug}}"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DECISION.replace("aggregate", "agregate"), ["write", "aggregate"]),
        (DECISION.replace("key: slug\n", ""), ["key"]),
        (DECISION.replace("tier:", "teir:"), ["teir", "tier"]),
        (DECISION.replace("weight: 0.8", "weight: much"), ["weight", "from 0 to 1"]),
        (DECISION.replace("key: slug", "key: topic"), ["key", "topic", "slug"]),
        ("name: [", ["YAML"]),
    ],
)
def test_broken_kind_error_names_the_file_the_key_and_the_fix(folder, text, says):
    (folder / "decision.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        Memory("ram://", embedder="none", kinds=str(folder))
    assert all(word in str(caught.value) for word in ("decision.yaml", *says)), str(caught.value)


def test_missing_kinds_folder_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="kinds names"):
        Memory("ram://", embedder="none", kinds=str(tmp_path / "nowhere"))
