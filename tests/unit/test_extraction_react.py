"""ReAct extraction: a model reads stored memories with tools and writes only new ones."""

import json

import pytest

from hearing import ToolScript, assistant, extract, heard, quotes, texts, wish
from told.backends.memory.store import open_store
from told.errors import LLMError
from told.extraction.react import (
    ALREADY_KNOWN,
    ReactExtractor,
    StaticMemoryReader,
    StoreMemoryReader,
    build_tools,
)
from told.flow import run
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Linked
from told.model.kind import Kind, Ontology, load_kind, load_ontology
from told.model.query import AccessBatch, AccessCount
from told.model.scope import Scope
from told.ports import Batch, Usage
from told.testing.fakes import DEFAULT_START, ManualClock, seeded_mint

SAID = heard("I'm still a backend engineer. I also use Rust for side projects now.")
INES, BOB = Scope(user_id="ines"), Scope(user_id="bob")


def rust(**more):
    return wish(
        "extract_entity",
        **{
            "slug": "rust",
            "name": "Rust",
            "content": "User uses Rust for side projects",
            "abstract": "Rust",
            "evidence": "I also use Rust for side projects",
            **more,
        },
    )


def required(kind):
    tools = {tool.name: tool for tool in build_tools(heard().ontology.kinds)}
    return tools[f"extract_{kind}"].parameters["required"]


@pytest.fixture
def store():
    made = open_store("ram://", mint=seeded_mint(1, ManualClock()), settings={})
    ours, theirs = Claim("User is a backend engineer", "profile"), Claim("Bob is a spy", "profile")
    drafts = [
        Draft(Asserted("t-engineer", ours), INES),
        Draft(Asserted("t-tea", Claim("User likes tea", "preference")), INES),
        Draft(Asserted("t-doubt", Claim("User owns llamas", "quarantine")), INES),
        Draft(Asserted("t-bob", theirs), BOB),
        Draft(Linked("t-engineer", "relates_to", "t-tea"), INES),
        Draft(Linked("t-bob", "relates_to", "t-engineer"), BOB),
    ]
    made.commit(Batch("default", drafts), fold_all)
    made.record_accesses("default", AccessBatch({"t-engineer": AccessCount(3, DEFAULT_START)}))
    yield made
    made.close()


def memory_reader(store):
    return lambda scope: StoreMemoryReader(store, scope, DEFAULT_START)


def run_extractor(*steps, said=SAID, store=None, **options):
    llm = ToolScript(steps)
    made = ReactExtractor(llm, None if store is None else memory_reader(store), **options)
    return extract(made, said), llm


def tool_results(llm, step):
    """Return the tool results sent before a step."""
    return [line.text for line in llm.lines[step] if line.role == "tool"]


def test_the_model_reads_first_and_writes_only_new_memories(store):
    found, llm = run_extractor(
        [wish("list", kind="profile")], [rust()], [wish("done")], store=store
    )
    assert "backend engineer" in tool_results(llm, 1)[0]
    assert tool_results(llm, 2)[1] == "Written down."
    assert texts(found) == ["User uses Rust for side projects"]
    assert quotes(found, SAID) == ["I also use Rust for side projects"]
    claim = found.claims[0].claim
    assert claim.kind == "entity"
    assert claim.meta["slug"] == "rust"
    assert found.usage == Usage(3, 30, 3)


@pytest.mark.parametrize("end", [[wish("done")], "Nothing new.", "[]"])
def test_writing_nothing_is_a_valid_outcome(end, store):
    found, _ = run_extractor(end, store=store)
    assert (found.claims, found.rejected, found.warnings, found.unreadable_replies) == (
        (),
        (),
        (),
        (),
    )


def test_an_existing_memory_is_not_written_again(store):
    again = wish(
        "extract_profile",
        content="User is a backend engineer",
        abstract="x",
        evidence="a backend engineer",
    )
    found, llm = run_extractor([wish("read", id="t-engineer"), again], [wish("done")], store=store)
    assert found.claims == ()
    assert [one.reason for one in found.rejected] == [ALREADY_KNOWN]
    assert "already held" in tool_results(llm, 1)[1]


def test_a_fact_that_no_longer_holds_is_written_as_negated(store):
    said = heard("I don't like tea any more")
    gone = wish(
        "extract_preference",
        slug="tea",
        content="User no longer likes tea",
        abstract="No tea",
        evidence="I don't like tea any more",
        polarity="negated",
    )
    found, _ = run_extractor([gone], [wish("done")], said=said, store=store)
    assert [one.claim.polarity for one in found.claims] == ["negated"]


def test_the_model_sees_only_its_scope_and_no_quarantined_facts(store):
    looks = [
        wish("read", id="t-bob"),
        wish("read", id="t-doubt"),
        wish("read", uri="ctx://other/users/bob/memories/profile"),
        wish("relations", id="t-bob"),
        wish("access_stats", id="t-bob"),
        wish("list", kind="quarantine"),
        wish("list"),
    ]
    _, llm = run_extractor(looks, [wish("done")], store=store)
    seen = tool_results(llm, 1)
    assert seen[:3] == ["There is no memory with that id here."] * 3
    assert seen[3:6] == ["None.", "There is no memory with that id here.", "None."]
    assert [json.loads(row)["id"] for row in seen[6].splitlines()] == ["t-engineer", "t-tea"]
    assert "spy" not in " ".join(seen)


def test_relations_and_recalls_can_be_read(store):
    _, llm = run_extractor(
        [wish("relations", id="t-engineer"), wish("access_stats", id="t-engineer")],
        "done",
        store=store,
    )
    links, recalls = tool_results(llm, 1)
    assert json.loads(links) == {
        "from": "t-engineer",
        "relation": "relates_to",
        "to": "t-tea",
        "weight": 1.0,
    }
    assert json.loads(recalls)["recalls"] == 3


def test_an_incomplete_memory_is_rejected_and_can_be_corrected(store):
    found, llm = run_extractor(
        [wish("extract_entity", slug="rust")], [rust()], [wish("done")], store=store
    )
    assert tool_results(llm, 1)[0].startswith("Not written: missing or of the wrong type: ")
    assert len(found.claims) == 1
    assert len(found.rejected) == 1


def test_an_invented_memory_is_quarantined(store):
    found, _ = run_extractor(
        [rust(content="User owns eleven llamas", evidence="")], [wish("done")], store=store
    )
    assert found.claims[0].claim.kind == "quarantine"
    assert found.claims[0].claim.meta["kind"] == "entity"


def test_the_number_of_steps_is_bounded(store):
    found, llm = run_extractor(*[[wish("list")]] * 9, store=store, rounds=4)
    assert len(llm.lines) == 4
    assert found.warnings == ("react:scripted was stopped after 4 steps.",)


def test_the_number_of_tool_calls_per_step_is_bounded(store):
    _, llm = run_extractor([wish("list")] * 60, [wish("done")], store=store)
    assert tool_results(llm, 1).count("Not done: too many tools in one step.") == 10


def test_an_unknown_tool_is_rejected(store):
    found, llm = run_extractor([wish("rm_rf", path="/")], [wish("done")], store=store)
    assert [one.reason for one in found.rejected] == ["no such tool"]
    assert "no tool" in tool_results(llm, 1)[0]


def test_an_empty_first_reply_without_tool_calls_is_a_fault(store):
    assert run_extractor("I'm sorry, but I can't help with that.", store=store)[
        0
    ].unreadable_replies == ("I'm sorry, but I can't help with that.",)
    assert (
        run_extractor([wish("list")], "All right, I looked at everything.", store=store)[
            0
        ].unreadable_replies
        == ()
    )


def test_tool_calls_written_as_text_are_parsed(store):
    text = (
        "<tool_call>"
        + json.dumps({"name": "extract_entity", "arguments": dict(rust().arguments)})
        + "</tool_call>"
    )
    found, _ = run_extractor(text, [wish("done")], store=store)
    assert texts(found) == ["User uses Rust for side projects"]


def test_a_model_failure_between_steps_raises_an_error(store):
    with pytest.raises(LLMError):
        run_extractor([rust()], ConnectionResetError("reset"), store=store)


def test_known_memories_are_shown_and_used_when_there_is_no_store(store):
    fact = run(StoreMemoryReader(store, INES, DEFAULT_START).read_memory("t-tea"))
    said = heard("I like tea", nearby_facts=(fact,))
    again = wish(
        "extract_preference",
        slug="tea",
        content="User likes tea",
        abstract="Tea",
        evidence="I like tea",
    )
    found, llm = run_extractor(
        [wish("read", id="t-tea"), wish("access_stats", id="t-tea"), again],
        [wish("done")],
        said=said,
    )
    assert "- t-tea [preference] User likes tea" in llm.lines[0][0].text
    assert [one.reason for one in found.rejected] == [ALREADY_KNOWN]
    assert run(StaticMemoryReader((fact,)).list_memories("profile")) == []
    assert run(StaticMemoryReader((fact,)).list_links("t-tea")) == ()


def test_every_conversational_kind_has_a_tool():
    llm = ToolScript([[wish("done")]])
    extract(ReactExtractor(llm), SAID)
    names = [tool.name for tool in llm.offered[0]]
    assert names[:5] == ["read", "list", "relations", "access_stats", "done"]
    assert names[5:] == [
        f"extract_{kind}" for kind in "case entity event pattern preference profile skill".split()
    ]
    assert {"slug", "content", "abstract", "evidence"} <= set(required("preference"))


def test_ontology_concepts_have_tools():
    ontology = load_ontology(
        {
            "concepts": {
                "Diet.Allergy": {
                    "label": "Food allergy",
                    "persistence_class": "permanent",
                    "salience_weight": 1.0,
                }
            }
        }
    )
    said = heard("I'm allergic to nuts", ontology=ontology)
    steps = (
        [wish("extract_Diet_Allergy", value="nuts", evidence="allergic to nuts")],
        [wish("done")],
    )
    (found,) = run_extractor(*steps, said=said)[0].claims
    assert (found.claim.kind, found.claim.text) == ("Diet.Allergy", "Food allergy: nuts")


def test_fields_are_parsed_leniently():
    kind = {
        "name": "trip",
        "write": "append",
        "fields": [
            {"name": "content", "required": True},
            {"name": "days", "type": "integer"},
            {"name": "paid", "type": "boolean"},
            {"name": "rating", "type": "number"},
            {"name": "by", "enum": ["train", "bus"]},
        ],
    }
    ontology = Ontology((load_kind(kind), Kind("off", enabled=False)))
    said = heard("I went to Porto by train for 3 days", ontology=ontology)
    trip = wish(
        "extract_trip",
        content=["User went", "to Porto"],
        days="3",
        paid="yes",
        rating="nan",
        by="plane",
        confidence="0.7",
        evidence="I went to Porto",
    )
    (found,) = run_extractor([trip], [wish("done")], said=said)[0].claims
    assert (found.claim.text, found.claim.meta, found.claim.confidence) == (
        "User went to Porto",
        {"days": 3, "paid": True},
        0.7,
    )


def test_assistant_turns_alone_are_not_extracted():
    assert run_extractor(said=heard(assistant("Hello")))[1].lines == []
