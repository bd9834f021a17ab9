"""Graph extraction: named entities and the relations between them."""

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


def test_a_tool_model_is_offered_two_tools():
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


def test_a_model_that_returns_only_entities_is_asked_again():
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
def test_a_model_without_tools_replies_in_json(reply):
    found = extract(GraphExtractor(Plain(json.dumps(reply))), SAID)
    assert found.entities == EXPECTED
    assert found.relations == (Relation("Alice", "works_at", "Google", turn=1),)
    assert found.unreadable_replies == ()


def extract_graph(entities, relations, said=SAID):
    return extract(
        GraphExtractor(Plain(json.dumps({"entities": entities, "relations": relations}))), said
    )


def test_a_name_not_in_the_text_is_dropped():
    found = extract_graph(
        [{"name": "Microsoft", "type": "organization"}], [{**WORKS, "target": "Microsoft"}]
    )
    assert [one.name for one in found.entities] == ["Alice"]
    assert found.relations == ()
    assert {one.reason for one in found.rejected} == {NAME_NOT_FOUND, UNKNOWN_ENDPOINT}


def test_the_speaker_can_be_an_endpoint_of_a_relation():
    said = heard(turn("I work at Google", name="Alice"))
    found = extract_graph(
        [{"name": "Google", "type": "company"}], [{**WORKS, "source": "user"}], said
    )
    assert found.relations == (Relation("Alice", "works_at", "Google"),)
    assert (
        extract_graph([], [{**WORKS, "source": "User"}], heard("I work at Google")).relations[0].src
        == "User"
    )


def test_relations_use_entity_spelling_and_are_deduplicated():
    found = extract_graph(
        [*ENTITIES, {"name": "alice", "type": "person"}], [WORKS, {**WORKS, "source": "ALICE"}]
    )
    assert len(found.entities) == 3
    assert len(found.relations) == 1
    assert [one.reason for one in found.rejected] == ["said twice", "said twice"]


def test_invalid_entities_and_relations_are_dropped_and_reported():
    ties = [WORKS, {"source": "Alice"}, "x", {**WORKS, "target": "Alice"}]
    found = extract_graph([*ENTITIES, {"type": "person"}, 7, None], ties)
    assert len(found.entities) == 3
    assert len(found.relations) == 1
    assert len(found.rejected) == 6


def test_a_reply_that_is_not_a_graph_is_a_fault():
    for garbage in ("", "I can't.", "[1, 2]", '["Alice"]', '{"error": 1}'):
        assert extract(GraphExtractor(Plain(garbage)), SAID).unreadable_replies == (garbage,)


def test_names_only_the_assistant_used_are_dropped():
    said = heard("I work at Google", assistant("Do you know Microsoft?"))
    assert extract_graph([{"name": "Microsoft", "type": "organization"}], [], said).entities == ()


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
def test_entity_types_are_normalised(said, type):
    assert normalise_entity_type(said) == type


def test_an_unavailable_model_raises_an_error():
    with pytest.raises(LLMError):
        extract(GraphExtractor(ToolScript([TimeoutError()])), SAID)


def test_without_a_model_the_graph_comes_from_another_extractor():
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
