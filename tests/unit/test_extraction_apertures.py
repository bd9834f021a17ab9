"""Apertures: typed triples from one pass, five parallel passes or several sequential ones."""

import hashlib
import json
import threading

import pytest

from hearing import assistant, extract, heard, texts
from told.errors import LLMError
from told.extraction.apertures import APERTURES, DEEP, EXHAUSTIVE, ApertureExtractor, claim_key
from told.extraction.prompting import load_prompt
from told.extraction.replies import DUPLICATE, GroundingOptions
from told.ingest.types import Entity, Relation
from told.model.fact import Fact
from told.model.scope import Scope
from told.ports import Usage
from told.testing import ScriptedLLM
from told.text.tokens import md5_hex

TEXT = "I met Annie Davis at the Cooktown Festival in October 1979."
SAID = heard(TEXT)


def triple(subject="user", predicate="ex:metAt", lit=None, iri=None, **more):
    given = {
        "subject": subject,
        "predicate": predicate,
        "object_lit": lit,
        "object_iri": iri,
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


MET = triple("agent:you", "ex:met", iri="person:annie-davis", confidence=0.5)
PERSON = triple("person:annie-davis", "rdf:type", iri="ex:Person")
WHEN = triple(
    "event:cooktown-festival",
    "occurredIn",
    {"v": "October 1979", "dt": "xsd:gYearMonth"},
    notes="a month",
)


class ApertureLLM:
    """A model whose reply depends on the aperture in the prompt."""

    model = "prism"

    def __init__(self, **answers):
        self.answers = answers
        self.users = []
        self._lock = threading.Lock()

    def ask(self, system, user, *, schema=None):
        with self._lock:
            self.users.append(user)
        name = next(
            one.name for one in APERTURES if system.endswith(load_prompt(f"aperture-{one.name}"))
        )
        answer = self.answers.get(name, [])
        if isinstance(answer, Exception):
            raise answer
        return json.dumps({"facts": answer})


def extract_triples(*answers, mode="single", said=SAID, **options):
    replies = [
        answer if isinstance(answer, str | Exception) else json.dumps({"facts": answer})
        for answer in answers
    ]
    llm = ScriptedLLM(replies)
    return extract(ApertureExtractor(llm, mode, **options), said), llm


def test_triples_become_claims_entities_and_relations():
    found, _ = extract_triples([MET, PERSON, WHEN])
    assert texts(found) == ["User met Annie Davis", "Cooktown Festival occurred in October 1979"]
    first, second = (one.claim for one in found.claims)
    assert (first.subject, first.predicate, first.object, first.confidence) == (
        "User",
        "met",
        "Annie Davis",
        0.5,
    )
    assert second.meta == {
        "aperture": "single",
        "key": claim_key(second),
        "dt": "xsd:gYearMonth",
        "notes": "a month",
    }
    assert TEXT[slice(*first.span)] == TEXT
    assert found.entities == (Entity("Annie Davis", "person"),)
    assert found.relations == (Relation("User", "met", "Annie Davis", 0.5),)


def test_a_triple_needs_exactly_one_object():
    found, _ = extract_triples([triple(lit="Porto", iri="place:porto"), triple(), MET])
    assert texts(found) == ["User met Annie Davis"]
    assert [one.reason for one in found.rejected] == [
        "two objects where one was asked for",
        "no object",
    ]


def test_values_may_be_bare_and_numbers_and_booleans_strings():
    said = heard("I have 3 dogs and I smoke")
    dogs = triple("user", "has_dogs", 3, confidence="0.9")
    smoke = triple("user", "is_smoking", "smoke", hypothesis_only="true")
    found, _ = extract_triples([dogs, smoke], said=said)
    assert [(one.claim.object, one.claim.confidence) for one in found.claims] == [
        ("3", 0.9),
        ("smoke", 1.0),
    ]
    assert [one.claim.modality for one in found.claims] == ["stated", "hypothesis_only"]


def test_the_content_key_ignores_confidence_and_modality():
    one, other = (
        triple(lit="Porto", confidence=0.1),
        triple(lit="Porto", confidence=0.9, modality="inferred"),
    )
    found, _ = extract_triples([one, other], said=heard("We met at Porto"))
    assert len(found.claims) == 1
    assert [drop.reason for drop in found.rejected] == [DUPLICATE]
    assert (
        found.claims[0].claim.meta["key"] == hashlib.sha256(b"user\x1fmet_at\x1fporto").hexdigest()
    )


def test_five_apertures_run_in_parallel_each_in_its_band():
    answers = {
        one.name: [triple("Annie Davis", f"seen_by_{one.name}", "Festival", confidence=0.5)]
        for one in APERTURES
    }
    llm = ApertureLLM(**answers)
    found = extract(ApertureExtractor(llm, EXHAUSTIVE), SAID)
    seen = {
        one.claim.meta["aperture"]: (one.claim.confidence, one.claim.modality)
        for one in found.claims
    }
    assert seen == {
        "surface": (0.95, "stated"),
        "linguistic": (0.85, "stated"),
        "presupposition": (0.7, "hypothesis_only"),
        "inferential": (0.5, "inferred"),
        "conceivable": (0.8, "hypothesis_only"),
    }
    assert found.usage == Usage(5)


def test_a_triple_from_two_apertures_is_kept_once_from_the_first():
    found = extract(
        ApertureExtractor(
            ApertureLLM(surface=[MET], linguistic=[MET], inferential=[MET]), EXHAUSTIVE
        ),
        SAID,
    )
    assert [one.claim.meta["aperture"] for one in found.claims] == ["surface"]
    assert [one.reason for one in found.rejected] == [DUPLICATE] * 2


def test_a_failing_aperture_does_not_affect_the_others():
    found = extract(
        ApertureExtractor(ApertureLLM(surface=[MET], linguistic=LLMError("busy")), EXHAUSTIVE), SAID
    )
    assert texts(found) == ["User met Annie Davis"]
    assert found.warnings == ("The aperture linguistic of exhaustive:prism failed: busy",)


def test_an_error_is_raised_when_all_apertures_fail():
    with pytest.raises(LLMError, match="busy"):
        extract(
            ApertureExtractor(
                ApertureLLM(**{one.name: LLMError("busy") for one in APERTURES}), EXHAUSTIVE
            ),
            SAID,
        )


def test_passes_see_earlier_triples_and_stop_when_nothing_new_is_found():
    found, llm = extract_triples([MET], [MET, WHEN], [MET], mode=DEEP, passes=5)
    assert [one.claim.meta["aperture"] for one in found.claims] == ["pass_1", "pass_2"]
    assert len(llm.asked) == 3
    assert "- User met Annie Davis" not in llm.asked[0][1]
    assert "- User met Annie Davis" in llm.asked[1][1]
    assert "- Cooktown Festival occurred in October 1979" in llm.asked[2][1]


def test_a_pass_sees_only_the_most_recent_triples():
    scope = Scope(user_id="ines")
    known = tuple(Fact(f"id{n}", n, n, scope, f"known {n}.", md5_hex(str(n))) for n in range(400))
    said = heard(TEXT, nearby_facts=known)
    _, llm = extract_triples([MET], [], mode=DEEP, passes=2, said=said)
    listed = [row for row in llm.asked[1][1].splitlines() if row.startswith("- ")]
    assert len(listed) == 300
    assert listed[-1] == "- User met Annie Davis"
    assert listed[0] == "- known 101."


def test_a_failing_later_pass_keeps_earlier_triples():
    found, _ = extract_triples([MET], LLMError("busy"), mode=DEEP)
    assert texts(found) == ["User met Annie Davis"]
    assert found.warnings == ("Pass 2 of deep:scripted failed: busy",)


def test_a_failing_first_pass_raises_an_error():
    with pytest.raises(LLMError):
        extract_triples(LLMError("busy"), mode=DEEP)


def test_truncated_replies_are_salvaged_item_by_item():
    whole = json.dumps({"facts": [MET, WHEN]})
    found, _ = extract_triples(whole[:-20])
    assert texts(found) == ["User met Annie Davis"]
    assert found.warnings


def test_provided_facts_are_used_instead_of_asking_the_model():
    found, llm = extract_triples(said=heard(TEXT, facts=(MET, "User likes tea")))
    assert texts(found) == ["User met Annie Davis", "User likes tea"]
    assert llm.asked == []


def test_strict_grounding_can_be_turned_off():
    invented = triple("user", "owns", "eleven llamas")
    assert extract_triples([invented])[0].claims[0].claim.kind == "quarantine"
    assert (
        extract_triples([invented], options=GroundingOptions(strict=False))[0].claims[0].claim.kind
        == "profile"
    )


def test_an_entity_not_named_in_the_text_is_dropped():
    found, _ = extract_triples([triple("person:bob", "type", iri="ex:Person")])
    assert found.entities == ()
    assert [one.reason for one in found.rejected] == ["its name is not in what was said"]


def test_assistant_turns_alone_are_not_extracted():
    assert extract_triples(said=heard(assistant("Hello")))[1].asked == []


def test_the_author_includes_mode_and_model():
    llm = ScriptedLLM([])
    names = [ApertureExtractor(llm, mode).name for mode in ("single", EXHAUSTIVE, DEEP)]
    assert names == ["apertures:scripted", "exhaustive:scripted", "deep:scripted"]
