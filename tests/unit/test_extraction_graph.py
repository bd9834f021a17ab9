"""The graph of a conversation: who and what was named, and how they belong together; nothing
else.
"""

import json

import pytest

from hearing import Plain, ToolScript, assistant, extract, heard, turn, wish
from told.errors import LLMError
from told.extraction.graph import (
    NAME_NOT_FOUND,
    UNKNOWN_ENDPOINT,
    GraphExtractor,
    LocalGraphExtractor,
    normalise_entity_type,
)
from told.ingest.types import Entity, ExtractedClaim, ExtractionResult, Relation
from told.model.entry import Claim
from told.ports import Usage

SAID = heard("Hello!", "Alice works at Google in Zurich and uses Rust.")
ENTITIES = [
    {"name": "Alice", "type": "person", "description": "works at Google"},
    {"name": "Google", "type": "organization"},
    {"name": "Zurich", "type": "location"},
]
WORKS = {"source": "Alice", "relation": "works_at", "target": "Google"}
EXPECTED = (
    Entity("Alice", "person", "works at Google"),
    Entity("Google", "organization"),
    Entity("Zurich", "place"),
)


def test_a_model_with_tools_is_given_two():
    steps = [
        wish("extract_entities", entities=ENTITIES),
        wish("extract_relations", relations=[WORKS]),
    ]
    llm = ToolScript([steps])
    found = extract(GraphExtractor(llm), SAID)
    assert [tool.name for tool in llm.offered[0]] == ["extract_entities", "extract_relations"]
    assert found.entities == EXPECTED
    assert found.relations == (Relation("Alice", "works_at", "Google", turn=1),)
    assert found.usage == Usage(1, 10, 1)


def test_a_model_that_names_entities_only_is_asked_once_more():
    llm = ToolScript(
        [
            [wish("extract_entities", entities=ENTITIES)],
            [wish("extract_relations", relations=[WORKS])],
        ]
    )
    found = extract(GraphExtractor(llm), SAID)
    assert len(found.relations) == 1
    assert [tool.name for tool in llm.offered[1]] == ["extract_relations"]


@pytest.mark.parametrize(
    "reply",
    [
        {"entities": ENTITIES, "relations": [WORKS]},
        {"data": {"entities": ENTITIES, "relations": [["Alice", "works at", "Google"]]}},
        [
            {"entities": ENTITIES},
            {"relations": [{"from": "Alice", "type": "worksAt", "to": "Google"}]},
        ],
    ],
)
def test_a_model_without_tools_answers_in_json(reply):
    found = extract(GraphExtractor(Plain(json.dumps(reply))), SAID)
    assert found.entities == EXPECTED
    assert found.relations == (Relation("Alice", "works_at", "Google", turn=1),)
    assert found.unreadable_replies == ()


def drawn(entities, relations, said=SAID):
    return extract(
        GraphExtractor(Plain(json.dumps({"entities": entities, "relations": relations}))), said
    )


def test_a_name_nobody_said_is_left_out():
    found = drawn(
        [{"name": "Microsoft", "type": "organization"}], [{**WORKS, "target": "Microsoft"}]
    )
    assert [one.name for one in found.entities] == ["Alice"]
    assert found.relations == ()
    assert {one.reason for one in found.rejected} == {NAME_NOT_FOUND, UNKNOWN_ENDPOINT}


def test_the_speaker_may_be_an_end_of_a_relation():
    said = heard(turn("I work at Google", name="Alice"))
    found = drawn([{"name": "Google", "type": "company"}], [{**WORKS, "source": "user"}], said)
    assert found.relations == (Relation("Alice", "works_at", "Google"),)
    assert (
        drawn([], [{**WORKS, "source": "User"}], heard("I work at Google")).relations[0].src
        == "User"
    )


def test_names_are_spelt_as_the_entities_are_and_each_thing_is_told_once():
    found = drawn(
        [*ENTITIES, {"name": "alice", "type": "person"}], [WORKS, {**WORKS, "source": "ALICE"}]
    )
    assert len(found.entities) == 3
    assert len(found.relations) == 1
    assert [one.reason for one in found.rejected] == ["said twice", "said twice"]


def test_junk_among_entities_and_relations_is_dropped_and_reported():
    ties = [WORKS, {"source": "Alice"}, "x", {**WORKS, "target": "Alice"}]
    found = drawn([*ENTITIES, {"type": "person"}, 7, None], ties)
    assert len(found.entities) == 3
    assert len(found.relations) == 1
    assert len(found.rejected) == 6


def test_an_answer_that_is_no_graph_is_a_fault():
    for garbage in ("", "I can't.", "[1, 2]", '["Alice"]', '{"error": 1}'):
        assert extract(GraphExtractor(Plain(garbage)), SAID).unreadable_replies == (garbage,)


def test_what_only_an_assistant_named_is_left_out():
    said = heard("I work at Google", assistant("Do you know Microsoft?"))
    assert drawn([{"name": "Microsoft", "type": "organization"}], [], said).entities == ()


@pytest.mark.parametrize(
    ("said", "type"),
    [
        ("ex:Person", "person"),
        ("LOCATION", "place"),
        ("Company", "organization"),
        ("dragon", "thing"),
        (7, "thing"),
    ],
)
def test_types_are_told_from_whatever_a_model_calls_them(said, type):
    assert normalise_entity_type(said) == type


def test_a_model_that_is_down_is_an_error():
    with pytest.raises(LLMError):
        extract(GraphExtractor(ToolScript([TimeoutError()])), SAID)


def test_without_a_model_the_graph_is_what_another_extractor_draws():
    class Inner:
        name, local = "rules", True

        def extract(self, heard):
            claims = (ExtractedClaim(Claim("x"), 0),)
            return ExtractionResult(
                claims, (Entity("Alice", "person"),), (Relation("Alice", "knows", "Bob"),)
            )
            yield

    lean = LocalGraphExtractor(Inner())
    found = extract(lean, SAID)
    assert (found.claims, len(found.entities), len(found.relations)) == ((), 1, 1)
    assert (lean.name, lean.local) == ("graph:rules", True)
