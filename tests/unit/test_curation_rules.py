"""The rule curator: decisions about a claim given the facts already held."""

from collections.abc import Iterator

import pytest

from curating import DAY, World, claim, denied, world
from told.model.entry import Claim, Retracted
from told.model.fact import QUARANTINE
from told.text.dates import Interval


@pytest.fixture
def env() -> Iterator[World]:
    with world() as made:
        yield made


def test_a_new_fact_is_added(env: World) -> None:
    [event] = env.tell(claim("likes", "Python", "User likes Python"))
    assert (event.event, event.text, event.previous) == ("ADD", "User likes Python", None)
    assert [fact.evidence is None for fact in env.facts()] == [False]


@pytest.mark.parametrize(
    "again", ["User likes Python", "user likes python", "User likes the Python"]
)
def test_a_repeated_fact_only_adds_evidence(env: World, again: str) -> None:
    [first] = env.tell(claim("likes", "Python", "User likes Python"))
    [second] = env.tell(claim("likes", "python", again))
    assert (second.event, second.id) == ("NONE", first.id)
    assert env.texts() == ["User likes Python"]
    assert len(env.links("supports")) == 1


def test_a_duplicate_is_recognised_under_another_predicate(env: World) -> None:
    env.tell(claim("has", "motorbike", "User has a motorbike"), claim("favourite_colour", "teal"))
    assert env.events(claim("owns", "motorbike", "User owns a motorbike")) == ["NONE"]
    assert env.events(claim("favourite_color", "teal"), claim("favourite_color", "red")) == [
        "NONE",
        "UPDATE",
    ]
    assert env.events(denied("owns", "motorbike", "User sold the motorbike")) == ["DELETE"]
    assert env.texts() == ["User favourite color red"]


def test_a_move_updates_the_home(env: World) -> None:
    [first] = env.tell(claim("lives_in", "NYC", "User lives in NYC"))
    [second] = env.tell(claim("lives_in", "San Francisco", "User lives in San Francisco"))
    assert (second.event, second.id, second.previous) == ("UPDATE", first.id, "User lives in NYC")
    assert env.texts() == ["User lives in San Francisco"]


def test_a_more_specific_job_updates_a_vague_one(env: World) -> None:
    [first] = env.tell(claim("works_in", "tech", "User works in tech"))
    [second] = env.tell(claim("works_at", "Google", "User works at Google as a senior engineer"))
    assert (second.event, second.id) == ("UPDATE", first.id)
    assert env.texts() == ["User works at Google as a senior engineer"]


@pytest.mark.parametrize(
    ("first", "then", "held"),
    [
        (
            claim("works_at", "Acme", "User works at Acme"),
            claim("works_as", "designer", "User works as a designer"),
            "User works at Acme as a designer",
        ),
        (
            claim("works_as", "nurse", "User works as a nurse"),
            claim("works_at", "St Mary", "User works at St Mary"),
            "User works at St Mary as a nurse",
        ),
        (
            claim("works_at", "Acme", "User works at Acme as an analyst"),
            claim("works_as", "lead", "User works as a lead"),
            "User works at Acme as a lead",
        ),
        (
            claim("works_at", "Acme", "User works at Acme as an analyst"),
            claim("works_at", "Google", "User works at Google"),
            "User works at Google",
        ),
        (
            claim("studies", "physics", "User studies physics"),
            claim("studies_at", "MIT", "User studies at MIT"),
            "User studies physics at MIT",
        ),
        (
            claim("has_pet", "dog", "User has a dog"),
            claim("has_pet", "dog named Rex", "User has a dog named Rex"),
            "User has a dog named Rex",
        ),
        (
            claim("name", "Bob", "User's name is Bob"),
            claim("name", "Bob Smith", "User's name is Bob Smith"),
            "User's name is Bob Smith",
        ),
        (
            claim("lives_in", "Boston", "User lives in Boston"),
            claim("lives_in", "Boston, MA", "User lives in Boston, MA"),
            "User lives in Boston, MA",
        ),
    ],
)
def test_a_more_detailed_claim_updates_the_fact(
    env: World, first: Claim, then: Claim, held: str
) -> None:
    assert [env.events(first), env.events(then)] == [["ADD"], ["UPDATE"]]
    assert env.texts() == [held]
    assert env.events(then) == ["NONE"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (
            claim("works_at", "Google", "User works at Google as an engineer"),
            claim("works_in", "tech", "User works in tech"),
        ),
        (
            claim("works_at", "Google", "User works at Google as an engineer"),
            claim("works_at", "Google", "User works at Google"),
        ),
        (
            claim("works_at", "Acme", "User works at Acme as an analyst"),
            claim("works_as", "analyst", "User works as an analyst"),
        ),
        (
            claim("has_pet", "dog named Rex", "User has a dog named Rex"),
            claim("has_pet", "dog", "User has a dog"),
        ),
        (
            claim("name", "Bob Smith", "User's name is Bob Smith"),
            claim("name", "Bob", "User's name is Bob"),
        ),
        (
            claim("lives_in", "Boston, MA", "User lives in Boston, MA"),
            claim("lives_in", "Boston", "User lives in Boston"),
        ),
    ],
)
def test_a_less_detailed_claim_changes_nothing(env: World, first: Claim, then: Claim) -> None:
    assert [env.events(first), env.events(then)] == [["ADD"], ["NONE"]]
    assert env.texts() == [first.text]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (claim("favourite_colour", "blue"), claim("favourite_food", "pizza")),
        (claim("has_pet", "dog named Rex"), claim("has_pet", "dog named Bella")),
        (claim("has_pet", "dog"), claim("has_pet", "another dog")),
        (claim("likes", "coffee"), claim("likes", "coffee ice cream")),
        (claim("likes", "tea"), claim("likes", "green tea")),
        (claim("likes", "coffee"), claim("dislikes", "tea")),
        (claim("lives_in", "Rome"), claim("works_at", "Acme")),
        (claim("lives_in", "Rome"), claim("lives_in", "Oslo", subject="Bob")),
        (claim("allergic_to", "peanuts"), claim("likes", "peanuts")),
        (claim("speaks", "German"), claim("speaks", "French")),
        (
            claim("did", "the gym", valid=Interval(DAY, 2 * DAY, "day")),
            claim("did", "the gym", valid=Interval(3 * DAY, 4 * DAY, "day")),
        ),
    ],
)
def test_unrelated_facts_are_kept_separately(env: World, first: Claim, then: Claim) -> None:
    assert [env.events(first), env.events(then)] == [["ADD"], ["ADD"]]
    assert env.texts() == [first.text, then.text]


def test_a_new_preference_replaces_its_opposite(env: World) -> None:
    env.tell(claim("likes", "coffee"), claim("likes", "tea"))
    assert env.events(claim("dislikes", "coffee")) == ["UPDATE"]
    assert sorted(env.texts()) == ["User dislikes coffee", "User likes tea"]


# Denials


def test_a_denial_retires_the_denied_fact(env: World) -> None:
    [first] = env.tell(claim("diet", "vegetarian", "User is vegetarian"))
    [second] = env.tell(denied("diet", "vegetarian", "User is no longer vegetarian"))
    assert (second.event, second.id, second.previous) == ("DELETE", first.id, "User is vegetarian")
    assert env.texts() == []
    [*_, last] = env.store.scan_entries("default", thread=first.id)
    assert last.verb == Retracted(first.id, "negated")


@pytest.mark.parametrize(
    "change",
    [
        claim("started", "eating meat again", "User started eating meat again"),
        claim("diet", "eats meat", "User eats meat again"),
        denied("diet", "vegetarian", "User started eating meat again"),
        denied("diet", "vegetarian", "User started eating meat again", modality="inferred"),
    ],
)
@pytest.mark.parametrize("diet", ["vegetarian", "vegan"])
def test_eating_meat_again_retires_the_vegetarian_fact(
    env: World, change: Claim, diet: str
) -> None:
    env.tell(claim("diet", diet, f"User is {diet}"), claim("likes", "tofu"))
    env.tell(change)
    assert not any(diet in text for text in env.texts())
    assert "User likes tofu" in env.texts()


def test_giving_up_meat_keeps_the_vegetarian_fact(env: World) -> None:
    env.tell(claim("diet", "vegetarian", "User is vegetarian"))
    env.tell(claim("did", "stop", "User stopped eating meat"))
    assert "User is vegetarian" in env.texts()


def test_a_denial_retires_no_other_fact(env: World) -> None:
    env.tell(claim("likes", "tea"), claim("likes", "green tea"), claim("drives", "tea van"))
    assert env.events(denied("likes", "tea")) == ["DELETE"]
    assert env.texts() == ["User likes green tea", "User drives tea van"]


def test_a_general_denial_retires_the_only_specific_fact(env: World) -> None:
    env.tell(claim("has_pet", "dog named Rex"), claim("has_pet", "cat"))
    assert env.events(denied("has_pet", "dog")) == ["DELETE"]
    assert env.texts() == ["User has pet cat"]


def test_an_ambiguous_denial_retires_nothing_and_is_recorded(env: World) -> None:
    env.tell(claim("has_pet", "dog named Rex"), claim("has_pet", "dog named Bella"))
    assert env.events(denied("has_pet", "dog", "User does not have a dog")) == ["ADD"]
    assert len(env.texts()) == 3
    assert len(env.links("contradicts")) == 2


def test_leaving_a_job_also_retires_the_role(env: World) -> None:
    env.tell(claim("works_at", "Acme", "User works at Acme as a designer"))
    assert env.events(denied("works_at", "Acme", "User no longer works at Acme")) == ["DELETE"]
    env.tell(claim("works_at", "Acme", "User works at Acme as a designer"))
    assert env.events(denied("works_as", "designer", "User no longer works as a designer")) == [
        "UPDATE"
    ]
    assert env.texts() == ["User works at Acme"]


def test_ending_a_fact_that_is_not_held_does_nothing(env: World) -> None:
    [event] = env.tell(denied("works_at", "Acme", "User no longer works at Acme"))
    assert (event.event, event.id, event.text) == ("NONE", "", "User no longer works at Acme")
    assert env.texts() == []


def test_denying_a_fact_that_is_not_held_adds_a_memory(env: World) -> None:
    no_kids = denied("has_child", "child", "User does not have children")
    assert [env.events(no_kids), env.events(no_kids)] == [["ADD"], ["NONE"]]
    assert env.events(claim("has_child", "child", "User has a child")) == ["UPDATE"]
    assert env.texts() == ["User has a child"]


def test_a_retired_fact_can_be_added_again(env: World) -> None:
    env.tell(claim("diet", "vegetarian", "User is vegetarian"))
    env.tell(denied("diet", "vegetarian", "User is no longer vegetarian"))
    assert env.events(claim("diet", "vegetarian", "User is vegetarian")) == ["ADD"]
    assert env.events(claim("diet", "vegetarian", "User is vegetarian")) == ["NONE"]
    assert env.texts() == ["User is vegetarian"]


# Immutable predicates


def test_a_second_birthday_is_kept_as_a_contradiction(env: World) -> None:
    env.tell(claim("born_in", "Oslo", "User was born in Oslo"))
    assert env.events(claim("born_in", "Lima", "User was born in Lima")) == ["ADD"]
    assert env.texts() == ["User was born in Oslo", "User was born in Lima"]
    assert env.links("contradicts") == [("User was born in Lima", "User was born in Oslo")]
    assert env.events(claim("born_in", "Lima", "User was born in Lima")) == ["NONE"]


# Time


def test_a_past_fact_never_replaces_a_current_one(env: World) -> None:
    now = env.clock.now
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    gone = claim(
        "lives_in",
        "Oslo",
        "User lived in Oslo in 2019",
        valid=Interval(now - 900 * DAY, now - 500 * DAY, "day"),
    )
    assert [env.events(gone), env.events(gone)] == [["ADD"], ["NONE"]]
    assert env.events(claim("lives_in", "Lima", "User lives in Lima")) == ["UPDATE"]
    assert env.texts() == ["User lived in Oslo in 2019", "User lives in Lima"]


def test_a_used_to_statement_updates_the_current_fact(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    over = Interval(None, env.clock.now, "day")
    assert env.events(claim("lives_in", "Rome", "User used to live in Rome", valid=over)) == [
        "UPDATE"
    ]
    assert env.texts() == ["User used to live in Rome"]
    assert env.events(claim("lives_in", "Lima", "User lives in Lima")) == ["ADD"]


def test_an_older_statement_that_arrives_late_is_stored_as_history(env: World) -> None:
    now = env.clock.now
    env.tell(claim("lives_in", "Rome", "User lives in Rome", said_at=now))
    older = claim("lives_in", "Oslo", "User lives in Oslo", said_at=now - 100 * DAY)
    assert [env.events(older), env.events(older)] == [["ADD"], ["NONE"]]
    then, today = (
        [fact.text for fact in env.facts() if fact.valid_interval().contains(at)]
        for at in (now - 50 * DAY, now)
    )
    assert (then, today) == (["User lives in Oslo"], ["User lives in Rome"])
    assert env.events(claim("lives_in", "Lima", "User lives in Lima", said_at=now + 1)) == [
        "UPDATE"
    ]


def test_an_older_denial_retires_nothing(env: World) -> None:
    now = env.clock.now
    env.tell(claim("likes", "tea", said_at=now))
    assert env.events(denied("likes", "tea", said_at=now - DAY)) == ["NONE"]
    assert env.texts() == ["User likes tea"]


def test_hedged_or_planned_claims_do_not_replace_facts(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    maybe = claim("lives_in", "Oslo", "User might live in Oslo", modality="hedged")
    soon = claim(
        "lives_in",
        "Lima",
        "User will live in Lima",
        valid=Interval(env.clock.now + DAY * 30, None, "month"),
    )
    assert [env.events(maybe), env.events(soon), env.events(maybe)] == [
        ["ADD"],
        ["ADD"],
        ["NONE"],
    ]
    assert "User lives in Rome" in env.texts()
    assert env.events(claim("lives_in", "Oslo", "User lives in Oslo")) == ["UPDATE", "DELETE"]
    assert sorted(env.texts()) == ["User lives in Oslo", "User will live in Lima"]


def test_an_expired_fact_is_renewed_when_repeated(env: World) -> None:
    [first] = env.tell(
        claim("plans", "trip", "User plans a trip", expires=env.clock.now + 2_000_000)
    )
    env.clock.tick(DAY)
    [again] = env.tell(claim("plans", "trip", "User plans a trip"))
    assert (again.event, again.id) == ("UPDATE", first.id)


# Claims without a predicate


def test_claims_without_a_predicate_are_compared_by_text(env: World) -> None:
    events = [
        env.events(Claim(text))
        for text in ("lives in Rome", "lives in Oslo", "lives in Rome", "not in Rome")
    ]
    assert events == [["ADD"], ["ADD"], ["NONE"], ["ADD"]]


# One turn, many claims


def test_later_claims_of_a_turn_see_earlier_decisions(env: World) -> None:
    events = env.tell(
        claim("lives_in", "NYC", "User lives in NYC"),
        claim("likes", "tea"),
        claim("lives_in", "Rome", "User lives in Rome"),
        claim("likes", "tea"),
        denied("likes", "tea"),
    )
    assert [event.event for event in events] == ["ADD", "ADD", "UPDATE", "NONE", "DELETE"]
    assert events[2].id == events[0].id
    assert env.texts() == ["User lives in Rome"]
    assert env.links("supports") == []


# Trust


def test_a_document_never_changes_a_user_fact(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    poison = claim("lives_in", "Minsk", "User lives in Minsk")
    assert env.events(poison, sort="document") == ["ADD"]
    assert env.events(poison, sort="document") == ["NONE"]
    assert [(fact.text, fact.kind) for fact in env.facts()] == [
        ("User lives in Rome", "profile"),
        ("User lives in Minsk", QUARANTINE),
    ]
    assert env.facts()[1].meta["kind"] == "memory"
    assert env.links("contradicts") == [("User lives in Minsk", "User lives in Rome")]


@pytest.mark.parametrize("more", [{"role": "tool"}, {"role": "assistant"}, {"sort": "document"}])
def test_only_the_user_can_add_profile_or_preference_facts(
    env: World, more: dict[str, str]
) -> None:
    env.tell(
        claim("likes", "forwarding mail"),
        claim("allergic_to", "nuts"),
        claim("plans", "a trip"),
        **more,
    )
    assert [fact.kind for fact in env.facts()] == ["memory", "memory", "event"]


@pytest.mark.parametrize("more", [{"role": "tool"}, {"role": "assistant"}, {"sort": "document"}])
def test_only_the_user_can_retire_a_user_fact(env: World, more: dict[str, str]) -> None:
    env.tell(claim("allergic_to", "nuts", "User is allergic to nuts"))
    env.tell(denied("allergic_to", "nuts", "User is not allergic to nuts"), **more)
    assert [fact.text for fact in env.facts() if fact.kind != QUARANTINE] == [
        "User is allergic to nuts"
    ]


def test_the_user_can_correct_and_confirm_document_facts(env: World) -> None:
    env.tell(
        claim("lives_in", "Minsk", "User lives in Minsk"), claim("likes", "tea"), sort="document"
    )
    assert env.events(claim("lives_in", "Rome", "User lives in Rome"), claim("likes", "tea")) == [
        "UPDATE",
        "UPDATE",
    ]
    assert [(fact.text, fact.kind) for fact in env.facts()] == [
        ("User lives in Rome", "profile"),
        ("User likes tea", "preference"),
    ]


def test_an_inference_never_replaces_a_statement(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    env.tell(claim("lives_in", "Milan", "User lives in Milan", modality="inferred"))
    assert [fact.text for fact in env.facts() if fact.kind != QUARANTINE] == ["User lives in Rome"]


def test_metadata_cannot_raise_trust(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    env.tell(
        claim("lives_in", "Minsk", "User lives in Minsk", meta={"trust": "user"}), sort="document"
    )
    assert [fact.text for fact in env.facts() if fact.kind != QUARANTINE] == ["User lives in Rome"]


def test_every_decision_has_a_reason(env: World) -> None:
    for each in (
        claim("likes", "tea"),
        claim("likes", "tea"),
        denied("likes", "tea"),
        denied("likes", "jazz"),
    ):
        env.tell(each)
        assert all(env.whys())
