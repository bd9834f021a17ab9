"""Closed-world extraction: only ontology concepts are extracted, and evidence must be quoted."""

import json

import pytest

from hearing import assistant, extract, heard, texts
from tables import each_row
from told.errors import ConfigError, InvalidInput, LLMError
from told.extraction.closed_world import (
    NO_EVIDENCE,
    NO_POLARITY,
    NO_VALUE,
    NOT_QUOTED,
    OUTSIDE_ONTOLOGY,
    ClosedExtractor,
)
from told.extraction.replies import ASSISTANT_ONLY
from told.ingest.types import Entity, ExtractedClaim, ExtractionResult
from told.model.entry import Claim
from told.model.kind import Kind, Ontology, load_ontology
from told.ontology import EXTRACTOR_SYSTEM, build_concept_catalog, extract_facts
from told.ports import Usage
from told.testing import ScriptedLLM

MUSEUM = {
    "version": "0.2",
    "description": "A museum",
    "concepts": {
        "ArtInterest.Style": {
            "label": "Art style or medium",
            "examples": ["I love X", "I'm into X"],
            "persistence_class": "long_term",
            "salience_weight": 0.7,
            "cardinality": 8,
            "eviction": "salience",
        },
        "SpecialNeed.Hearing": {
            "label": "Hearing impairment",
            "examples": ["I'm deaf", "I can't hear well"],
            "persistence_class": "permanent",
            "salience_weight": 1.0,
            "cardinality": 1,
            "eviction": "recency",
        },
        "Diet.Allergy": {
            "label": "Food allergy",
            "examples": [],
            "persistence_class": "permanent",
            "salience_weight": 1.0,
        },
    },
}
ONTOLOGY = load_ontology(MUSEUM)
TEXT = "I should mention I'm deaf. I really love photography, not sculpture any more."


def line(
    concept="ArtInterest.Style",
    value="photography",
    polarity="asserted",
    evidence="I really love photography",
):
    return {"concept": concept, "value": value, "polarity": polarity, "evidence": evidence}


def extract_lines(*lines, said=TEXT, **options):
    llm = ScriptedLLM([json.dumps({"facts": list(lines)})] * 2)
    what = said if not isinstance(said, str) else heard(said, ontology=ONTOLOGY)
    return extract(ClosedExtractor(llm, **options), what), llm


def test_a_reply_line_becomes_a_claim_of_its_concept():
    found, llm = extract_lines(line(), line("SpecialNeed.Hearing", "deaf", evidence="I'm deaf"))
    first, second = (one.claim for one in found.claims)
    assert (first.kind, first.predicate, first.object) == (
        "ArtInterest.Style",
        "ArtInterest.Style",
        "photography",
    )
    assert (first.text, first.meta["value"]) == ("Art style or medium: photography", "photography")
    assert TEXT[slice(*first.span)] == "I really love photography"
    assert second.kind == "SpecialNeed.Hearing"
    assert '- ArtInterest.Style: Art style or medium ("I love X"; "I\'m into X")' in llm.asked[0][0]


def test_a_statement_that_no_longer_holds_is_negated():
    found, _ = extract_lines(
        line(value="sculpture", polarity="Negated ", evidence="not sculpture any more")
    )
    assert (found.claims[0].claim.polarity, found.claims[0].claim.object) == (
        "negated",
        "sculpture",
    )


@each_row(
    ("bad", "reason"),
    [
        (line("Mood"), OUTSIDE_ONTOLOGY),
        (line(None), OUTSIDE_ONTOLOGY),
        (line(polarity="maybe"), NO_POLARITY),
        (line(polarity=None), NO_POLARITY),
        (line(value=""), NO_VALUE),
        (line(evidence=None), NO_EVIDENCE),
        (line(evidence="I adore the old masters of Delft"), NOT_QUOTED),
    ],
)
def test_an_invalid_line_is_dropped_with_its_reason(bad, reason):
    found, _ = extract_lines(bad, line())
    assert len(found.claims) == 1
    assert [one.reason for one in found.rejected] == [reason]
    assert found.unreadable_replies == ()


def test_a_value_missing_from_its_evidence_is_quarantined():
    found, _ = extract_lines(line(value="cubism"))
    assert found.claims[0].claim.kind == "quarantine"
    assert found.claims[0].claim.meta["kind"] == "ArtInterest.Style"


def test_assistant_text_counts_only_when_the_user_confirms_it():
    asks = assistant("Do you love photography?")
    alone = heard("Hi", asks, "Where is the exit?", ontology=ONTOLOGY)
    agreed = heard("Hi", asks, "Yes!", ontology=ONTOLOGY)
    quoted = line(evidence="Do you love photography?")
    assert [one.reason for one in extract_lines(quoted, said=alone)[0].rejected] == [ASSISTANT_ONLY]
    for evidence in ("Do you love photography?", "Yes!"):
        (found,) = extract_lines(line(evidence=evidence), said=agreed)[0].claims
        assert (found.turn, found.claim.kind) == (2, "ArtInterest.Style")


def test_assistant_replies_can_be_extracted_in_a_separate_request():
    said = heard(
        "Which hall?", assistant("As you are deaf, hall two has subtitles."), ontology=ONTOLOGY
    )
    reply = line("SpecialNeed.Hearing", "deaf", evidence="As you are deaf")
    found, llm = extract_lines(reply, said=said, replies=True)
    assert len(llm.asked) == 2
    assert "[0] user (context only)" in llm.asked[1][1]
    assert [(one.claim.role, one.turn) for one in found.claims] == [("assistant", 1)]
    assert found.usage == Usage(2)


def test_plain_memory_and_system_kinds_are_not_in_the_catalog():
    catalog = build_concept_catalog(heard().ontology)
    assert [row.split(":")[0] for row in catalog.splitlines()] == [
        "- case",
        "- entity",
        "- event",
        "- pattern",
        "- preference",
        "- profile",
        "- skill",
    ]


def test_a_sentence_of_a_builtin_kind_is_parsed_into_a_triple():
    said = heard("I live in Porto")
    reply = json.dumps([line("profile", "User lives in Porto", evidence="I live in Porto")])
    read = Claim("", "profile", "User", "lives_in", "Porto")
    (found,) = extract(ClosedExtractor(ScriptedLLM([reply]), reader=lambda _: read), said).claims
    claim = found.claim
    assert (claim.text, claim.kind, claim.predicate) == (
        "User lives in Porto",
        "profile",
        "lives_in",
    )


# Without a model


class FixedExtractor:
    """An extractor that returns the claims it was given."""

    name, local = "rules", True

    def __init__(self, *claims):
        self.claims = claims

    def extract(self, inputs):
        return ExtractionResult(
            tuple(ExtractedClaim(one, 0) for one in self.claims), (Entity("Delft"),)
        )
        yield


def extract_with_rules(*claims, said=TEXT, ontology=ONTOLOGY):
    return extract(
        ClosedExtractor(fallback=FixedExtractor(*claims)), heard(said, ontology=ontology)
    )


def test_without_a_model_claims_of_another_extractor_are_mapped_to_concepts():
    found = extract_with_rules(
        Claim(
            "User likes photography", "preference", "User", "likes", "photography", span=(27, 77)
        ),
        Claim("User is deaf", "profile", "User", "has_condition", "deaf", span=(0, 26)),
        Claim("User is allergic to nuts", "profile", "User", "allergic_to", "nuts", span=(0, 26)),
    )
    kinds = [(one.claim.kind, one.claim.meta["value"]) for one in found.claims]
    assert kinds == [("SpecialNeed.Hearing", "deaf"), ("ArtInterest.Style", "photography")]
    assert found.entities == ()


def test_without_a_model_a_predicate_can_match_a_concept_label():
    claim = Claim(
        "User is allergic to nuts", "profile", "User", "allergic_to", "nuts", span=(0, 18)
    )
    (found,) = extract_with_rules(claim, said="Nuts could kill me").claims
    assert (found.claim.kind, found.claim.predicate) == ("Diet.Allergy", "Diet.Allergy")


def test_without_a_model_claims_outside_the_ontology_are_dropped():
    found = extract_with_rules(
        Claim("User works at Acme", "profile", "User", "works_at", "Acme"), said="I work at Acme"
    )
    assert found.claims == ()
    assert [one.reason for one in found.rejected] == [OUTSIDE_ONTOLOGY]


def test_a_claim_whose_kind_is_in_the_ontology_is_kept():
    ontology = Ontology((Kind("profile"),))
    found = extract_with_rules(
        Claim("User works at Acme", "profile"),
        Claim("User likes tea", "preference"),
        ontology=ontology,
    )
    assert texts(found) == ["User works at Acme"]


def test_a_model_or_another_extractor_is_required():
    with pytest.raises(ConfigError):
        ClosedExtractor()
    lean = ClosedExtractor(fallback=FixedExtractor())
    assert (lean.name, lean.local) == ("closed:rules", True)
    asking = ClosedExtractor(ScriptedLLM([]), FixedExtractor())
    assert (asking.name, asking.local) == ("closed:scripted", False)


# The compatible function interface


def test_extract_facts_returns_plain_objects():
    reply = "Here:\n" + json.dumps({"facts": [line(), line("Mood"), line(evidence="never said")]})
    llm = ScriptedLLM([reply])
    assert extract_facts(user_msg=TEXT, bot_msg=None, ontology=MUSEUM, model=llm) == [line()]
    system, user = llm.asked[0]
    assert system == EXTRACTOR_SYSTEM.format(catalog=build_concept_catalog(MUSEUM))
    assert f"USER: {TEXT}" in user


def test_the_last_assistant_message_gives_context_to_a_yes():
    llm = ScriptedLLM([json.dumps([line(evidence="Yes")])])
    found = extract_facts("Yes, a lot", "Do you love photography?", MUSEUM, llm)
    assert [fact["value"] for fact in found] == ["photography"]
    assert "ASSISTANT: Do you love photography?" in llm.asked[0][1]


@pytest.mark.parametrize("garbage", ["", "I can't do that", "[1, 2", '{"facts": "none"}', "null"])
def test_a_garbled_reply_gives_no_facts(garbage):
    assert extract_facts(TEXT, None, MUSEUM, ScriptedLLM([garbage])) == []


def test_the_prompt_has_one_placeholder_that_accepts_any_text():
    assert EXTRACTOR_SYSTEM.count("{catalog}") == 1
    assert '{"facts": [{"concept": "…"' in EXTRACTOR_SYSTEM.format(catalog="- X: {odd} braces")


def test_an_ontology_can_be_given_as_json_or_as_kinds():
    assert build_concept_catalog(MUSEUM) == build_concept_catalog(ONTOLOGY)


def test_unusable_input_is_rejected_with_a_hint():
    with pytest.raises(InvalidInput, match="ontology"):
        extract_facts(TEXT, model=ScriptedLLM([]))
    with pytest.raises(InvalidInput, match="concepts"):
        build_concept_catalog({"kinds": {}})
    with pytest.raises(InvalidInput, match=r"rules of A\.B"):
        build_concept_catalog({"concepts": {"A.B": 7}})
    for model in (7, "none"):
        with pytest.raises(ConfigError, match="language model"):
            extract_facts(TEXT, None, MUSEUM, model)
    with pytest.raises(LLMError):
        extract_facts(TEXT, None, MUSEUM, ScriptedLLM([]))


def test_an_empty_message_makes_no_request():
    assert extract_facts("  ", None, MUSEUM, ScriptedLLM([])) == []
