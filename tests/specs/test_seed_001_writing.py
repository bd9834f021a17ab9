"""Seed 001: seven types of context, each written as its own lifecycle asks; a new type is a file,
not code.
"""

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


def first_of(receipt):
    [row] = receipt["results"]
    return row


def listed(memory, kind=None):
    rows = memory.get_all(**WHO, limit=1000)["results"]
    return [row for row in rows if kind in (None, row.get("kind"))]


def texts(memory, kind=None):
    return [row["memory"] for row in listed(memory, kind)]


def write(memory, kind, text, **fields):
    return first_of(memory.add(text, kind=kind, metadata=fields, **WHO))


# Said outright


def test_a_profile_merges_and_keeps_its_history(memory):
    first = write(memory, "profile", "Alice is a backend engineer in London")
    again = write(memory, "profile", "Alice is a backend engineer in London")
    moved = write(memory, "profile", "Alice is a backend engineer in Tokyo")
    assert [row["event"] for row in (first, again, moved)] == ["ADD", "NONE", "UPDATE"]
    assert first["id"] == again["id"] == moved["id"]
    assert texts(memory) == ["Alice is a backend engineer in Tokyo"]
    assert [row["new_memory"] for row in memory.history(first["id"])] == [
        first["memory"],
        moved["memory"],
    ]


@pytest.mark.parametrize("slug", ["coffee", "Coffee", "coffees", "coffe"])
@pytest.mark.parametrize(
    ("kind", "both"), [("preference", False), ("pattern", False), ("entity", True)]
)
def test_a_slug_or_one_much_like_it_gathers_into_one_memory(memory, kind, both, slug):
    first = write(memory, kind, "Black, no sugar.", slug="coffee")
    second = write(memory, kind, "With oat milk.", slug=slug)
    other = write(memory, kind, "Green, from Uji.", slug="tea")
    assert (second["event"], second["id"], other["event"]) == ("UPDATE", first["id"], "ADD")
    assert texts(memory) == [
        "Black, no sugar.\nWith oat milk." if both else "With oat milk.",
        "Green, from Uji.",
    ]
    assert listed(memory)[0]["metadata"]["slug"] == "coffee"


@pytest.mark.parametrize(
    ("one", "other"), [("plan_2025", "plan_2026"), ("cat", "car"), ("java", "javascript")]
)
def test_slugs_that_only_look_alike_stay_apart(memory, one, other):
    write(memory, "preference", "This one.", slug=one)
    assert write(memory, "preference", "That one.", slug=other)["event"] == "ADD"
    assert texts(memory) == ["This one.", "That one."]


@pytest.mark.parametrize("kind", ["event", "case"])
def test_history_is_only_ever_added_to(memory, kind):
    accounts = [
        "Completed the migration",
        "Completed the migration on March 15",
        "The migration was rolled back",
    ]
    written = [write(memory, kind, text, name="migration") for text in accounts]
    assert [row["event"] for row in written] == ["ADD"] * 3
    assert texts(memory, kind) == accounts


def test_the_same_happens_again_on_another_day_and_is_told_twice_only_once(memory):
    days = ["2026-01-01", "2026-01-02", "2026-01-02"]
    done = [memory.add("Ran five kilometres", kind="event", timestamp=day, **WHO) for day in days]
    assert [first_of(each)["event"] for each in done] == ["ADD", "ADD", "NONE"]
    assert [row["said_at"][:10] for row in listed(memory, "event")] == days[:2]


def test_a_skill_grows_and_counts_its_uses(memory):
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
    [skill] = listed(memory, "skill")
    assert skill["memory"] == "To release, tag it.\nTo release, publish the notes."
    assert skill["metadata"] == {
        "skill_name": "release",
        "trigger": "a release",
        "steps": "1. tag\n2. publish",
        "usage_count": 3,
    }
    assert [row["event"] for row in memory.history(skill["id"])] == ["ADD", "UPDATE", "UPDATE"]


def test_owners_do_not_share_a_thread(memory):
    for agent in ("coder", "writer"):
        done = memory.add(
            f"{agent} way", kind="skill", metadata={"skill_name": "release"}, agent_id=agent
        )
        assert first_of(done)["event"] == "ADD"
    for agent in ("coder", "writer"):
        assert [row["memory"] for row in memory.get_all(agent_id=agent)["results"]] == [
            f"{agent} way"
        ]


def test_a_field_of_another_type_is_refused_by_name(memory):
    with pytest.raises(
        InvalidInput, match=r"usage_count is 'often', not a integer.*told kinds show skill"
    ):
        write(memory, "skill", "To release, tag it.", skill_name="release", usage_count="often")
    assert listed(memory) == []


def test_without_its_key_a_memory_is_known_by_its_words_and_the_receipt_says_so(memory):
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


# Found by a model that looks first


@pytest.fixture(params=["ram", "sqlite"])
def reacting(request):
    """Opens a memory whose model makes the scripted calls, one step for each; after each turn it
    has nothing new.
    """
    stages = []

    def opened(*steps, **knobs):
        replies = [ToolReply("", tuple(step)) if isinstance(step, list) else step for step in steps]
        llm = ScriptedLLM(replies)
        stages.append(stage(request.param, llm=llm, extract="react", **knobs))
        return stages[-1].__enter__().memory, llm

    yield opened
    for each in stages:
        each.__exit__(None, None, None)


def told_by_turns(reacting, *turns, **knobs):
    """A memory that heard some turns, each with the one call the model makes of it, and what became
    of each.
    """
    steps = [step for _, calls in turns for step in (calls, NOTHING_NEW)]
    memory, llm = reacting(*steps, **knobs)
    return memory, llm, [memory.add(text, **WHO) for text, _ in turns]


def events(done):
    return [(row["event"], row["memory"]) for receipt in done for row in receipt["results"]]


def test_there_is_a_tool_for_every_kind_and_tools_to_look(reacting):
    memory, llm = reacting(NOTHING_NEW)
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


def profile(content, quote):
    return [wish("extract_profile", content=content, abstract=content, evidence=quote)]


def test_a_profile_that_was_found_merges_sentence_by_sentence(reacting):
    memory, _, done = told_by_turns(
        reacting,
        (
            "I'm Alice and I live in London",
            profile("User's name is Alice. User lives in London.", "I live in London"),
        ),
        ("I juggle on Sundays", profile("User juggles on Sundays", "I juggle on Sundays")),
        ("I moved to Tokyo", profile("User lives in Tokyo", "I moved to Tokyo")),
    )
    assert events(done)[-1] == ("UPDATE", "User lives in Tokyo")
    assert texts(memory, "profile") == [
        "User's name is Alice",
        "User juggles on Sundays",
        "User lives in Tokyo",
    ]


def test_a_new_detail_of_the_same_takes_the_place_of_the_old(reacting):
    memory, _, _ = told_by_turns(
        reacting,
        (
            "I'm a backend engineer in London",
            profile("User is a backend engineer in London", "in London"),
        ),
        (
            "I'm a backend engineer in Tokyo now",
            profile("User is a backend engineer in Tokyo", "in Tokyo now"),
        ),
    )
    assert texts(memory, "profile") == ["User is a backend engineer in Tokyo"]


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("preference", ["Short functions"]),
        ("pattern", ["Short functions"]),
        ("entity", ["Long functions\nShort functions"]),
    ],
)
def test_topics_that_were_found_gather_by_slug(reacting, kind, left):
    def call(slug, content):
        return [
            wish(f"extract_{kind}", slug=slug, content=content, abstract=content, evidence=content)
        ]

    memory, _, done = told_by_turns(
        reacting,
        ("Long functions, please", call("code_style", "Long functions")),
        ("Tea at noon", call("tea", "Tea at noon")),
        ("Short functions, please", call("code_styles", "Short functions")),
    )
    assert [event for event, _ in events(done)] == ["ADD", "ADD", "UPDATE"]
    assert sorted(texts(memory, kind)) == sorted([*left, "Tea at noon"])


def test_a_preference_with_a_topic_is_gathered_even_where_it_is_a_plain_sentence(reacting):
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

    memory, _, _ = told_by_turns(
        reacting,
        ("I prefer Vim", call("User prefers Vim", "I prefer Vim")),
        ("These days I prefer Emacs", call("User prefers Emacs", "I prefer Emacs")),
    )
    assert texts(memory, "preference") == ["User prefers Emacs"]


@pytest.mark.parametrize("kind", ["event", "case"])
def test_what_happened_is_added_even_in_the_very_words_of_the_turn(reacting, kind):
    said = ["The build failed because of a stale lock", "The build failed because of a full disk"]
    turns = [
        (text, [wish(f"extract_{kind}", name="build", content=text, abstract=text, evidence=text)])
        for text in said
    ]
    memory, _, done = told_by_turns(reacting, *turns)
    assert events(done) == [("ADD", text) for text in said]
    assert texts(memory, kind) == said


def test_a_skill_that_was_found_grows(reacting):
    def call(steps, quote):
        fields = {
            "skill_name": "release",
            "trigger": "a release",
            "steps": steps,
            "abstract": quote,
        }
        return [wish("extract_skill", **fields, evidence=quote)]

    memory, _, _ = told_by_turns(
        reacting,
        (
            "To release, bump the version",
            call("1. bump the version", "To release, bump the version"),
        ),
        (
            "To release, bump the version and tag it",
            call(["1. bump the version", "2. tag it"], "and tag it"),
        ),
    )
    [skill] = listed(memory, "skill")
    assert skill["metadata"]["steps"] == "1. bump the version\n2. tag it"
    assert skill["metadata"]["usage_count"] == 2


def test_what_is_known_is_looked_up_and_not_written_again(reacting):
    memory, llm = reacting(
        profile("User lives in London", "I live in London"),
        NOTHING_NEW,
        [wish("list", kind="profile")],
        profile("User lives in London", "I live in London"),
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
    assert texts(memory) == ["User lives in London"]


def test_a_call_that_lacks_something_is_told_so_and_the_receipt_too(reacting):
    memory, llm, [done] = told_by_turns(
        reacting,
        (
            "I like my tea green",
            [wish("extract_preference", content="Green tea", evidence="tea green")],
        ),
    )
    assert done["results"] == []
    assert "slug" in done["skipped"][0]["reason"]
    answers = [line.text for line in llm.conversations[1][1] if line.role == "tool"]
    assert answers == ["Not written: missing or of the wrong type: slug, abstract."]
    assert listed(memory) == []


def test_nothing_new_is_a_good_outcome_and_a_loop_has_an_end(reacting):
    memory, _ = reacting(NOTHING_NEW)
    assert memory.add("The train was late again this morning", **WHO)["extraction"] == "done"
    looking, llm = reacting(*[[wish("list", kind="")]] * 9, extract_rounds=3)
    done = looking.add("The train was late again this morning", **WHO)
    assert len(llm.conversations) == 3
    assert any("stopped after 3 steps" in warning for warning in done["warnings"])


# A kind of one's own

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


def test_a_file_in_a_folder_is_a_new_kind_with_its_own_policy(folder, request):
    with stage("sqlite", kinds=str(folder)) as here:
        memory = here.memory
        first = write(memory, "decision", "Use Postgres", slug="database", reason="it scales")
        second = write(memory, "decision", "Use SQLite", slug="databases", reason="it is simple")
        assert (second["event"], second["id"]) == ("UPDATE", first["id"])
        assert [row["metadata"]["reason"] for row in listed(memory, "decision")] == ["it is simple"]
        for text in ("Finish the tests", "Finish the docs"):
            assert write(memory, "handoff", text, name="writer")["event"] == "ADD"
        assert texts(memory, "handoff") == ["Finish the tests", "Finish the docs"]
        with pytest.raises(InvalidInput, match="risk is 'some', not one of low, high"):
            write(memory, "decision", "Use both", slug="database", risk="some")


def test_a_new_kind_is_a_tool_and_a_concept_too(folder, reacting):
    call = wish(
        "extract_decision", slug="database", content="Use Postgres", evidence="we use Postgres"
    )
    memory, llm = reacting([call], NOTHING_NEW, kinds=str(folder))
    memory.add("From now on we use Postgres", **WHO)
    assert texts(memory, "decision") == ["Use Postgres"]
    assert {"extract_decision", "extract_handoff"} <= {
        tool.name for tool in llm.conversations[0][2]
    }


def test_the_command_line_and_the_environment_know_the_folder(
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
def test_a_broken_kind_names_the_file_the_key_and_the_fix(folder, text, says):
    (folder / "decision.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        Memory("ram://", embedder="none", kinds=str(folder))
    assert all(word in str(caught.value) for word in ("decision.yaml", *says)), str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="kinds names"):
        Memory("ram://", embedder="none", kinds=str(tmp_path / "nowhere"))
