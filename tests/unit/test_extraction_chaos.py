"""Every extractor with every garbage reply: only an unavailable model raises, and errors are
reported."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos import FAILURES, Chaos, ChaosLLM, answers, everything
from hearing import assistant, extract, heard, texts
from tables import each_row
from told.errors import LLMError
from told.extraction.apertures import DEEP, EXHAUSTIVE, ApertureExtractor
from told.extraction.closed_world import ClosedExtractor
from told.extraction.graph import GraphExtractor
from told.extraction.llm import FactsExtractor
from told.extraction.react import ReactExtractor
from told.extraction.replies import REPLY_LIMIT
from told.model.entry import Claim
from told.model.kind import load_ontology
from told.ports import ToolCall

SAID = heard(
    "Hi, my name is Ines and I live in Porto. I drink coffee.",
    ontology=load_ontology(
        {
            "concepts": {
                "Person.Home": {
                    "label": "Home",
                    "examples": ["I live in X"],
                    "persistence_class": "long_term",
                    "salience_weight": 0.7,
                }
            }
        }
    ),
)
MAKERS = {
    "facts": FactsExtractor,
    "closed": ClosedExtractor,
    "closed, replies too": lambda llm: ClosedExtractor(llm, replies=True),
    "single": ApertureExtractor,
    "exhaustive": lambda llm: ApertureExtractor(llm, EXHAUSTIVE),
    "deep": lambda llm: ApertureExtractor(llm, DEEP),
    "react": ReactExtractor,
    "graph": GraphExtractor,
}
NOTHING = {"empty-array", "empty-object", "huge-fences", "array-in-text", "call-many"}
"""Answers that may be read as: there is nothing."""


@each_row("maker", MAKERS.values(), ids=MAKERS)
@each_row("chaos", answers(), ids=lambda chaos: chaos.id)
def test_a_garbage_reply_is_reported_and_yields_only_valid_claims(chaos: Chaos, maker):
    found = extract(maker(ChaosLLM(chaos)), SAID)
    brought = (*found.claims, *found.entities, *found.relations)
    reported = (*found.rejected, *found.warnings, *found.unreadable_replies)
    assert brought or reported or chaos.id in NOTHING
    assert all(chaos.answer.startswith(raw) for raw in found.unreadable_replies if not chaos.calls)
    assert all(len(raw) <= REPLY_LIMIT for raw in found.unreadable_replies)
    assert found.usage.calls >= 1
    for one in found.claims:
        check_fit_to_keep(one.claim)


def check_fit_to_keep(claim: Claim) -> None:
    assert 0.0 <= claim.confidence <= 1.0
    assert claim.text.strip()
    assert "\0" not in claim.text
    assert claim.text.encode()
    assert claim.kind == "quarantine" or claim.span is not None


@each_row("chaos", [one for one in answers() if one.facts is not None], ids=lambda chaos: chaos.id)
def test_complete_facts_are_salvaged(chaos: Chaos):
    assert texts(extract(FactsExtractor(ChaosLLM(chaos)), SAID)) == list(chaos.facts)


@each_row("maker", MAKERS.values(), ids=MAKERS)
@each_row("chaos", FAILURES, ids=lambda chaos: chaos.id)
def test_an_unavailable_model_raises_a_model_error(chaos: Chaos, maker):
    with pytest.raises(LLMError):
        extract(maker(ChaosLLM(chaos)), SAID)


KEYS = st.sampled_from(
    """facts entities relations subject predicate object_lit object_iri concept value polarity evidence text name type
    source relation target confidence modality v arguments""".split()  # noqa: E501
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=12)
    | st.sampled_from(
        [
            "User lives in Porto",
            "I live in Porto",
            "Person.Home",
            "asserted",
            "user",
            "Porto",
            "person",
        ]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


TEXTS = st.text(max_size=60)


@given(said=TEXTS, answer=VALUES.map(json.dumps) | TEXTS, calls=st.lists(VALUES, max_size=3))
@settings(max_examples=60)
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_no_reply_to_any_conversation_raises(maker, said, answer, calls):
    tools = ["extract_entities", "extract_relations", "extract_Person_Home", "read", "list"]
    wishes = tuple(ToolCall(f"c{n}", tools[n], call) for n, call in enumerate(calls))
    what = heard(f"I live in Porto {said}", assistant(said), said, ontology=SAID.ontology)
    found = extract(maker(ChaosLLM(Chaos("fuzz", "fuzz", answer, wishes))), what)
    for one in found.claims:
        check_fit_to_keep(one.claim)
        content = what.turns[one.turn].evidence.content
        assert one.claim.span is None or 0 <= one.claim.span[0] < one.claim.span[1] <= len(content)


def test_ungrounded_claims_are_always_quarantined():
    ungrounded = next(one for one in everything() if one.id == "ungrounded")
    found = extract(FactsExtractor(ChaosLLM(ungrounded)), SAID)
    assert {one.claim.kind for one in found.claims} == {"quarantine"}


def test_an_injected_instruction_is_quarantined():
    injection = next(one for one in everything() if one.id == "injection")
    kinds = [one.claim.kind for one in extract(FactsExtractor(ChaosLLM(injection)), SAID).claims]
    assert kinds == ["memory", "quarantine", "quarantine"]
