"""Invariants of the rule extractor, and the graph it produces."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listening import NOW, claims, hear, texts
from told.extraction.rules import LocalExtractor
from told.extraction.rules.lexicon import (
    compile_rule_pattern,
    get_pattern,
    load_sections,
    load_verb_rules,
)
from told.ingest.types import ExtractionInput, ExtractionResult, Extractor
from told.model.kind import FAVOURITE_PREFIX, PREDICATES
from told.model.scope import Scope
from told.text.tokens import normalise_text

CONVERSATION = (
    "Hi, I'm Alice. I work at Acme Corp as a data scientist.",
    ("assistant", "Nice to meet you, Alice! What kind of data science work do you do?"),
    "Mostly NLP and recommendation systems. I prefer PyTorch over TensorFlow.",
)


def test_a_first_conversation_is_fully_extracted():
    assert texts(*CONVERSATION) == [
        "User's name is Alice",
        "User works at Acme Corp as a data scientist",
        "User specializes in NLP and recommendation systems",
        "User prefers PyTorch over TensorFlow",
    ]


def test_a_claim_records_its_turn():
    assert [found.turn for found in hear(*CONVERSATION).claims] == [0, 0, 2, 2]


def test_the_rule_extractor_is_synchronous():
    extractor: Extractor = LocalExtractor()
    assert (extractor.name, extractor.local) == ("local", True)


def test_the_rule_extractor_makes_no_external_calls():
    flow = LocalExtractor().extract(ExtractionInput((), NOW, Scope("a", user_id="u")))
    assert inspect.isgenerator(flow)
    with pytest.raises(StopIteration) as done:
        next(flow)
    assert done.value.value == ExtractionResult()


# invariants

PHRASES = """
    I | I'm | my | we | our | my wife | my dog Rex | live in | work at | as a nurse | love | don't like | used
    to | have | two cats | named | Luna and Milo | Berlin | Acme | sushi | since 2019 | last year | and | but |
    , | . | ? | if | moved | from | to | my name is | favourite food is | allergic to | no longer | might |
    going to | years old | 34 | called | because | please answer | in German | ich wohne in | me llamo |
    j'habite à | it's | not | every day | at
""".replace("\n", " ").split(" | ")  # noqa: E501
anything = st.text(max_size=200) | st.lists(st.sampled_from(PHRASES), max_size=25).map(" ".join)


@given(
    anything,
    st.sampled_from([None, "Caroline", "\u2019"]),
    st.sampled_from(["", "What's your name?", "Where do you live?"]),
)
def test_any_text_is_accepted_and_every_claim_is_grounded(text, name, asked):
    found = hear(("assistant", asked), text, name=name).claims
    assert len(found) <= 12
    for claim in (each.claim for each in found):
        start, end = claim.span
        assert 0 <= start < end <= len(text)
        assert claim.text.strip() == claim.text != ""
        if claim.modality != "inferred":
            said = text[start:end].replace("\u2019", "'").replace("`", "'")
            assert normalise_text(claim.object) in normalise_text(said)


@given(anything)
def test_extraction_is_deterministic(text):
    assert hear(text) == hear(text)


def test_a_span_covers_the_stating_words():
    said = "Hello there! By the way, I live in Berlin now, ok?"
    (claim,) = claims(said)
    start, end = claim.span
    assert said[start:end] == "I live in Berlin"


def test_extraction_time_is_bounded_for_any_length():
    assert len(claims("I like tea and " * 20_000)) <= 12
    assert claims("a" * 100_000) == []
    assert claims("my " * 30_000) == []


# the graph


def extract_graph(*turns):
    found = hear(*turns)
    return {(each.name, each.type) for each in found.entities}, {
        (each.src, each.rel, each.dst) for each in found.relations
    }


def test_a_person_and_their_employer_become_a_relation():
    entities, relations = extract_graph("Alice works at Google")
    assert {("Alice", "person"), ("Google", "organization")} <= entities
    assert relations == {("Alice", "works_at", "Google")}


def test_a_person_met_at_a_company_has_lower_confidence():
    (relation,) = hear("I had a great call with Alice at Google").relations
    assert (relation.src, relation.rel, relation.dst) == ("Alice", "works_at", "Google")
    assert relation.confidence < 0.9


def test_a_speaker_is_named_once_the_name_is_stated():
    entities, relations = extract_graph(*CONVERSATION)
    assert ("Alice", "works_at", "Acme Corp") in relations
    assert ("User", "person") not in entities


def test_a_speaker_without_a_name_is_the_user():
    assert extract_graph("I live in Rome") == (
        {("User", "person"), ("Rome", "place")},
        {("User", "lives_in", "Rome")},
    )


def test_an_ended_relation_is_not_extracted():
    assert extract_graph("I no longer work at Acme") == (set(), set())


# the tables


def test_every_rule_is_a_pattern_and_names_a_known_predicate():
    known = {*PREDICATES, "diet_again"}
    for table in load_verb_rules().values():
        for rule in table:
            assert compile_rule_pattern(rule.pattern)
            assert rule.predicate in known, rule
            assert not rule.opposite or rule.opposite in known, rule


def test_every_pattern_compiles():
    for head in load_sections("patterns.txt"):
        assert get_pattern(head.partition(" ")[0])


def test_every_attribute_names_a_known_predicate():
    for (row,) in load_sections("attributes.txt").values():
        assert row.split(" | ")[0] in PREDICATES


def test_every_answer_names_a_known_predicate():
    for head in load_sections("answers.txt"):
        assert head.split(" | ")[0] in {*PREDICATES, FAVOURITE_PREFIX.rstrip("_")}
