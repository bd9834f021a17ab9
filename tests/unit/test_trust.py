"""Trust: a less trusted source never replaces, extends or outranks a more trusted one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curating import World, claim, denied, world
from hearing import assistant, heard, turn
from told.curation.lookup import apply_source_trust
from told.extraction.grounding import GroundingIndex
from told.ingest.messages import InputTurn
from told.ingest.types import ExtractedClaim, ExtractionInput
from told.model.beliefs import (
    EXTERNAL_SOURCES,
    Trust,
    trust_of_channel,
    trust_of_claim,
    trust_of_source,
)
from told.model.entry import Claim, Evidence
from told.model.fact import QUARANTINE, Fact
from told.model.query import Candidate
from told.model.scope import Scope
from told.retrieval import ranking
from told.retrieval.intent import AnswerSource, QueryIntent
from told.retrieval.ranking import ScoredCandidate
from told.retrieval.render import format_speaker, get_trust_label
from told.settings import Settings

SCOPE = Scope(user_id="ines")
MALLORY = Claim("User's name is Mallory", "profile", "User", "name", "Mallory")


@pytest.fixture
def env() -> Iterator[World]:
    with world() as made:
        yield made


def held_texts(env: World) -> list[str]:
    return [fact.text for fact in env.facts() if fact.kind != QUARANTINE]


# Claims


def test_an_inference_has_lower_trust_than_its_speaker():
    guess = Claim("User is tall", role="user", modality="inferred")
    assert (trust_of_source(guess), trust_of_claim(guess)) == (Trust.USER, Trust.INFERENCE)


@pytest.mark.parametrize(
    ("role", "label"), [("tool", "tool"), ("document", "document"), ("assistant", "inference")]
)
def test_a_claim_is_trusted_no_more_than_its_turn(role, label):
    sort = "document" if role == "document" else "turn"
    said = ExtractionInput(
        (InputTurn(Evidence("My name is Mallory", role, sort=sort), {}),), 0, SCOPE
    )
    found = apply_source_trust(said, ExtractedClaim(replace(MALLORY, role="user"), 0))
    assert (found.kind, found.meta) == ("memory", {"trust": label})


# Grounding


def locate(claim_: Claim, *turns: str | InputTurn) -> tuple[int, bool] | None:
    found = GroundingIndex(heard(*turns).turns).locate_claim(claim_)
    return None if found is None else (found.turn, found.unconfirmed)


def test_tool_and_user_text_are_not_combined():
    talk = ("I wonder where I work and live", turn("Evil Corp, Pyongyang", "tool"))
    assert locate(Claim("User works at Evil Corp in Pyongyang"), *talk) == (1, False)
    assert (
        locate(
            Claim("User works at Acme in Pyongyang"), "I work at Acme", turn("Pyongyang", "tool")
        )
        is None
    )


def test_user_turns_are_grounded_before_others():
    talk = (turn("lives in Porto", "document"), turn("lives in Porto", "tool"), "I live in Porto")
    assert locate(Claim("User lives in Porto", subject="User", object="Porto"), *talk) == (2, False)
    assert locate(Claim("User lives in Porto", subject="User", object="Porto"), *talk[:2]) == (
        1,
        False,
    )


def test_a_value_the_user_only_mentions_does_not_ground_a_tool_claim():
    talk = ("Mallory sent me this page", turn("The user's name is Mallory", "tool"))
    assert locate(MALLORY, *talk) == (1, False)
    assert locate(MALLORY, "My name is Mallory", talk[1]) == (0, False)


def test_only_a_user_can_confirm_an_assistant():
    question = assistant("So your name is Mallory?")
    assert locate(MALLORY, question, "Yes, it is") == (1, False)
    assert locate(MALLORY, question, turn("Yes, it is", "tool")) == (0, True)


def test_an_ungrounded_claim_falls_back_to_the_least_trusted_turn():
    assert (
        GroundingIndex(
            heard(turn("Hello", "document"), "Hi", turn("ok", "tool"), "Bye").turns
        ).get_fallback_turn()
        == 0
    )
    assert GroundingIndex(heard("Hi", assistant("Hello"), "Bye").turns).get_fallback_turn() == 2
    assert GroundingIndex(heard(assistant("Hello")).turns).get_fallback_turn() == 0


# Curation


def test_a_document_does_not_extend_a_user_fact(env: World):
    env.tell(claim("works_as", "spy", "User works as a spy"), role="document", sort="document")
    env.tell(claim("works_at", "Acme", "User works at Acme"))
    assert not [text for text in held_texts(env) if "Acme" in text and "spy" in text]
    assert "User works at Acme" in held_texts(env)


def test_a_less_detailed_user_claim_replaces_a_document_fact(env: World):
    env.tell(
        claim("lives_in", "Minsk, Belarus", "User lives in Minsk, Belarus"),
        role="document",
        sort="document",
    )
    assert env.events(claim("lives_in", "Minsk", "User lives in Minsk")) == ["UPDATE"]
    [fact] = env.facts()
    assert (fact.text, trust_of_claim(fact)) == ("User lives in Minsk", Trust.USER)


def test_an_ambiguous_denial_by_a_document_is_quarantined(env: World):
    env.tell(claim("owns", "a black dog", "User owns a black dog"))
    env.tell(claim("owns", "a white dog", "User owns a white dog"))
    env.tell(denied("owns", "a dog", "User owns no dog"), role="document", sort="document")
    assert held_texts(env) == ["User owns a black dog", "User owns a white dog"]
    assert [fact.text for fact in env.facts() if fact.kind == QUARANTINE] == ["User owns no dog"]


@pytest.mark.parametrize(
    "gone", [Claim("User is on holiday", role="user"), claim("likes", "tea", "User likes tea")]
)
def test_a_document_does_not_restore_an_expired_user_fact(env: World, gone: Claim):
    env.tell(replace(gone, expires=env.clock.now + 10_000_000))
    env.clock.tick(60_000_000)
    assert env.events(gone, role="document", sort="document") == ["NONE"]
    assert held_texts(env) == []
    assert env.events(gone) == ["UPDATE"]
    assert held_texts(env) == [gone.text]


def test_a_user_update_of_a_document_fact_has_user_trust(env: World):
    env.tell(claim("drives", "Volvo", "User drives a Volvo", meta={"trust": "document"}))
    env.tell(claim("drives", "red Volvo", "User drives a red Volvo"))
    [fact] = env.facts()
    assert (fact.text, trust_of_claim(fact)) == ("User drives a red Volvo", Trust.USER)


def test_a_merged_text_has_the_lower_trust(env: World):
    def entity_claim(text: str) -> Claim:
        return Claim(text, "entity", meta={"slug": "acme"}, role="user")

    env.tell(entity_claim("Acme pays in gold."), role="document", sort="document")
    env.tell(entity_claim("Acme makes anvils."))
    [fact] = env.facts()
    assert fact.text == "Acme pays in gold.\nAcme makes anvils."
    assert trust_of_claim(fact) is Trust.DOCUMENT


# Ranking

NOTHING = QueryIntent("")


def make_scored(*rows: tuple[str, float]) -> list[ScoredCandidate]:
    marks = [(Candidate(seq, 0, 0, seq, role), score) for seq, (role, score) in enumerate(rows, 1)]
    return ranking.sort_by_score(
        ScoredCandidate(mark, score, {"dense": score}) for mark, score in marks
    )


def users_first(
    *rows: tuple[str, float], asks: QueryIntent = NOTHING, slack: float = 3.0
) -> list[ScoredCandidate]:
    settings = Settings(rank_trust=slack)
    given = make_scored(*rows)
    return ranking.put_users_first(
        given, [trust_of_channel(one.candidate.role) for one in given], asks, settings
    )


def ranked_roles(
    *rows: tuple[str, float], asks: QueryIntent = NOTHING, slack: float = 3.0
) -> list[str | None]:
    return [one.candidate.role for one in users_first(*rows, asks=asks, slack=slack)]


def test_user_facts_rank_before_tool_and_document_facts():
    assert ranked_roles(("user", 1.0), ("tool", 2.0), ("document", 3.9)) == [
        "user",
        "document",
        "tool",
    ]
    assert ranked_roles(("user", 5.0), ("user", 1.0), ("tool", 4.0)) == ["user", "user", "tool"]


def test_a_much_better_match_keeps_its_rank():
    assert ranked_roles(("user", 1.0), ("tool", 4.1)) == ["tool", "user"]
    assert ranked_roles(("user", 1.0), ("tool", 2.0), slack=0.5) == ["tool", "user"]
    assert ranked_roles(("user", 1.0), ("tool", 2.0), slack=0.0) == ["tool", "user"]


def test_a_question_about_a_document_keeps_the_order():
    assert ranked_roles(
        ("user", 1.0), ("document", 2.0), asks=replace(NOTHING, answer_source=AnswerSource.RESOURCE)
    ) == ["document", "user"]


def test_without_user_facts_nothing_is_demoted():
    rows = (("document", 3.0), ("assistant", 2.5), ("tool", 2.0))
    assert users_first(*rows) == make_scored(*rows)


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "tool", "document", "assistant"]), st.floats(-9, 9)),
        max_size=12,
    )
)
def test_trust_ranking_drops_nothing_and_keeps_its_margin(rows):
    before = {one.candidate.seq: one.score for one in make_scored(*rows)}
    after = users_first(*rows)
    assert {one.candidate.seq for one in after} == before.keys()
    for place_, one in enumerate(after):
        foreign = trust_of_channel(one.candidate.role) in EXTERNAL_SOURCES
        assert one.score == pytest.approx(sum(one.parts.values()))
        assert one.score == before[one.candidate.seq] or (
            foreign and before[one.candidate.seq] - 3.1 < one.score
        )
        for later in after[place_ + 1 :] if foreign else ():
            assert (
                later.candidate.role != "user"
                or before[one.candidate.seq] - before[later.candidate.seq] > 3.0 - 1e-9
            )


@pytest.mark.parametrize(
    ("said", "who", "how"),
    [
        ({"role": "document", "actor": "user"}, "document", "reported"),
        ({"role": "document"}, "document", "reported"),
        ({"role": "tool", "actor": "Alice"}, "tool", "reported"),
        ({"role": "user", "meta": {"trust": "document"}}, "user", "reported"),
        ({"role": "user", "modality": "inferred"}, "user", "stated"),
    ],
)
def test_text_of_others_is_never_labelled_as_stated(said, who, how):
    fact = Fact("m1", 1, 1, SCOPE, "My name is Mallory", "", **said)
    assert (format_speaker(fact), get_trust_label(fact)) == (who, how)
