"""The rule curator: decisions about a claim given the facts already held."""

from collections.abc import Iterator

import pytest

from curating import DAY, World, claim, denied, world
from told.model.entry import Claim, Retracted
from told.model.fact import QUARANTINE
from told.text.dates import Interval


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        yield made


def test_a_new_fact_is_added(here: World) -> None:
    [event] = here.tell(claim("likes", "Python", "User likes Python"))
    assert (event.event, event.text, event.previous) == ("ADD", "User likes Python", None)
    assert [fact.evidence is None for fact in here.facts()] == [False]


@pytest.mark.parametrize(
    "again", ["User likes Python", "user likes python", "User likes the Python"]
)
def test_a_repeated_fact_only_adds_evidence(here: World, again: str) -> None:
    [first] = here.tell(claim("likes", "Python", "User likes Python"))
    [second] = here.tell(claim("likes", "python", again))
    assert (second.event, second.id) == ("NONE", first.id)
    assert here.texts() == ["User likes Python"]
    assert len(here.links("supports")) == 1


def test_a_duplicate_is_recognised_under_another_predicate(here: World) -> None:
    here.tell(claim("has", "motorbike", "User has a motorbike"), claim("favourite_colour", "teal"))
    assert here.events(claim("owns", "motorbike", "User owns a motorbike")) == ["NONE"]
    assert here.events(claim("favourite_color", "teal"), claim("favourite_color", "red")) == [
        "NONE",
        "UPDATE",
    ]
    assert here.events(denied("owns", "motorbike", "User sold the motorbike")) == ["DELETE"]
    assert here.texts() == ["User favourite color red"]


def test_a_move_updates_the_home(here: World) -> None:
    [first] = here.tell(claim("lives_in", "NYC", "User lives in NYC"))
    [second] = here.tell(claim("lives_in", "San Francisco", "User lives in San Francisco"))
    assert (second.event, second.id, second.previous) == ("UPDATE", first.id, "User lives in NYC")
    assert here.texts() == ["User lives in San Francisco"]


def test_a_more_specific_job_updates_a_vague_one(here: World) -> None:
    [first] = here.tell(claim("works_in", "tech", "User works in tech"))
    [second] = here.tell(claim("works_at", "Google", "User works at Google as a senior engineer"))
    assert (second.event, second.id) == ("UPDATE", first.id)
    assert here.texts() == ["User works at Google as a senior engineer"]


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
    here: World, first: Claim, then: Claim, held: str
) -> None:
    assert [here.events(first), here.events(then)] == [["ADD"], ["UPDATE"]]
    assert here.texts() == [held]
    assert here.events(then) == ["NONE"]


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
def test_a_less_detailed_claim_changes_nothing(here: World, first: Claim, then: Claim) -> None:
    assert [here.events(first), here.events(then)] == [["ADD"], ["NONE"]]
    assert here.texts() == [first.text]


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
def test_unrelated_facts_are_kept_separately(here: World, first: Claim, then: Claim) -> None:
    assert [here.events(first), here.events(then)] == [["ADD"], ["ADD"]]
    assert here.texts() == [first.text, then.text]


def test_a_new_preference_replaces_its_opposite(here: World) -> None:
    here.tell(claim("likes", "coffee"), claim("likes", "tea"))
    assert here.events(claim("dislikes", "coffee")) == ["UPDATE"]
    assert sorted(here.texts()) == ["User dislikes coffee", "User likes tea"]


# Denials


def test_a_denial_retires_the_denied_fact(here: World) -> None:
    [first] = here.tell(claim("diet", "vegetarian", "User is vegetarian"))
    [second] = here.tell(denied("diet", "vegetarian", "User is no longer vegetarian"))
    assert (second.event, second.id, second.previous) == ("DELETE", first.id, "User is vegetarian")
    assert here.texts() == []
    [*_, last] = here.store.scan_entries("default", thread=first.id)
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
    here: World, change: Claim, diet: str
) -> None:
    here.tell(claim("diet", diet, f"User is {diet}"), claim("likes", "tofu"))
    here.tell(change)
    assert not any(diet in text for text in here.texts())
    assert "User likes tofu" in here.texts()


def test_giving_up_meat_keeps_the_vegetarian_fact(here: World) -> None:
    here.tell(claim("diet", "vegetarian", "User is vegetarian"))
    here.tell(claim("did", "stop", "User stopped eating meat"))
    assert "User is vegetarian" in here.texts()


def test_a_denial_retires_no_other_fact(here: World) -> None:
    here.tell(claim("likes", "tea"), claim("likes", "green tea"), claim("drives", "tea van"))
    assert here.events(denied("likes", "tea")) == ["DELETE"]
    assert here.texts() == ["User likes green tea", "User drives tea van"]


def test_a_general_denial_retires_the_only_specific_fact(here: World) -> None:
    here.tell(claim("has_pet", "dog named Rex"), claim("has_pet", "cat"))
    assert here.events(denied("has_pet", "dog")) == ["DELETE"]
    assert here.texts() == ["User has pet cat"]


def test_an_ambiguous_denial_retires_nothing_and_is_recorded(here: World) -> None:
    here.tell(claim("has_pet", "dog named Rex"), claim("has_pet", "dog named Bella"))
    assert here.events(denied("has_pet", "dog", "User does not have a dog")) == ["ADD"]
    assert len(here.texts()) == 3
    assert len(here.links("contradicts")) == 2


def test_leaving_a_job_also_retires_the_role(here: World) -> None:
    here.tell(claim("works_at", "Acme", "User works at Acme as a designer"))
    assert here.events(denied("works_at", "Acme", "User no longer works at Acme")) == ["DELETE"]
    here.tell(claim("works_at", "Acme", "User works at Acme as a designer"))
    assert here.events(denied("works_as", "designer", "User no longer works as a designer")) == [
        "UPDATE"
    ]
    assert here.texts() == ["User works at Acme"]


def test_ending_a_fact_that_is_not_held_does_nothing(here: World) -> None:
    [event] = here.tell(denied("works_at", "Acme", "User no longer works at Acme"))
    assert (event.event, event.id, event.text) == ("NONE", "", "User no longer works at Acme")
    assert here.texts() == []


def test_denying_a_fact_that_is_not_held_adds_a_memory(here: World) -> None:
    no_kids = denied("has_child", "child", "User does not have children")
    assert [here.events(no_kids), here.events(no_kids)] == [["ADD"], ["NONE"]]
    assert here.events(claim("has_child", "child", "User has a child")) == ["UPDATE"]
    assert here.texts() == ["User has a child"]


def test_a_retired_fact_can_be_added_again(here: World) -> None:
    here.tell(claim("diet", "vegetarian", "User is vegetarian"))
    here.tell(denied("diet", "vegetarian", "User is no longer vegetarian"))
    assert here.events(claim("diet", "vegetarian", "User is vegetarian")) == ["ADD"]
    assert here.events(claim("diet", "vegetarian", "User is vegetarian")) == ["NONE"]
    assert here.texts() == ["User is vegetarian"]


# Immutable predicates


def test_a_second_birthday_is_kept_as_a_contradiction(here: World) -> None:
    here.tell(claim("born_in", "Oslo", "User was born in Oslo"))
    assert here.events(claim("born_in", "Lima", "User was born in Lima")) == ["ADD"]
    assert here.texts() == ["User was born in Oslo", "User was born in Lima"]
    assert here.links("contradicts") == [("User was born in Lima", "User was born in Oslo")]
    assert here.events(claim("born_in", "Lima", "User was born in Lima")) == ["NONE"]


# Time


def test_a_past_fact_never_replaces_a_current_one(here: World) -> None:
    now = here.clock.now
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    gone = claim(
        "lives_in",
        "Oslo",
        "User lived in Oslo in 2019",
        valid=Interval(now - 900 * DAY, now - 500 * DAY, "day"),
    )
    assert [here.events(gone), here.events(gone)] == [["ADD"], ["NONE"]]
    assert here.events(claim("lives_in", "Lima", "User lives in Lima")) == ["UPDATE"]
    assert here.texts() == ["User lived in Oslo in 2019", "User lives in Lima"]


def test_a_used_to_statement_updates_the_current_fact(here: World) -> None:
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    over = Interval(None, here.clock.now, "day")
    assert here.events(claim("lives_in", "Rome", "User used to live in Rome", valid=over)) == [
        "UPDATE"
    ]
    assert here.texts() == ["User used to live in Rome"]
    assert here.events(claim("lives_in", "Lima", "User lives in Lima")) == ["ADD"]


def test_an_older_statement_that_arrives_late_is_stored_as_history(here: World) -> None:
    now = here.clock.now
    here.tell(claim("lives_in", "Rome", "User lives in Rome", said_at=now))
    older = claim("lives_in", "Oslo", "User lives in Oslo", said_at=now - 100 * DAY)
    assert [here.events(older), here.events(older)] == [["ADD"], ["NONE"]]
    then, today = (
        [fact.text for fact in here.facts() if fact.valid_interval().contains(at)]
        for at in (now - 50 * DAY, now)
    )
    assert (then, today) == (["User lives in Oslo"], ["User lives in Rome"])
    assert here.events(claim("lives_in", "Lima", "User lives in Lima", said_at=now + 1)) == [
        "UPDATE"
    ]


def test_an_older_denial_retires_nothing(here: World) -> None:
    now = here.clock.now
    here.tell(claim("likes", "tea", said_at=now))
    assert here.events(denied("likes", "tea", said_at=now - DAY)) == ["NONE"]
    assert here.texts() == ["User likes tea"]


def test_hedged_or_planned_claims_do_not_replace_facts(here: World) -> None:
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    maybe = claim("lives_in", "Oslo", "User might live in Oslo", modality="hedged")
    soon = claim(
        "lives_in",
        "Lima",
        "User will live in Lima",
        valid=Interval(here.clock.now + DAY * 30, None, "month"),
    )
    assert [here.events(maybe), here.events(soon), here.events(maybe)] == [
        ["ADD"],
        ["ADD"],
        ["NONE"],
    ]
    assert "User lives in Rome" in here.texts()
    assert here.events(claim("lives_in", "Oslo", "User lives in Oslo")) == ["UPDATE", "DELETE"]
    assert sorted(here.texts()) == ["User lives in Oslo", "User will live in Lima"]


def test_an_expired_fact_is_renewed_when_repeated(here: World) -> None:
    [first] = here.tell(
        claim("plans", "trip", "User plans a trip", expires=here.clock.now + 2_000_000)
    )
    here.clock.tick(DAY)
    [again] = here.tell(claim("plans", "trip", "User plans a trip"))
    assert (again.event, again.id) == ("UPDATE", first.id)


# Claims without a predicate


def test_claims_without_a_predicate_are_compared_by_text(here: World) -> None:
    events = [
        here.events(Claim(text))
        for text in ("lives in Rome", "lives in Oslo", "lives in Rome", "not in Rome")
    ]
    assert events == [["ADD"], ["ADD"], ["NONE"], ["ADD"]]


# One turn, many claims


def test_later_claims_of_a_turn_see_earlier_decisions(here: World) -> None:
    events = here.tell(
        claim("lives_in", "NYC", "User lives in NYC"),
        claim("likes", "tea"),
        claim("lives_in", "Rome", "User lives in Rome"),
        claim("likes", "tea"),
        denied("likes", "tea"),
    )
    assert [event.event for event in events] == ["ADD", "ADD", "UPDATE", "NONE", "DELETE"]
    assert events[2].id == events[0].id
    assert here.texts() == ["User lives in Rome"]
    assert here.links("supports") == []


# Trust


def test_a_document_never_changes_a_user_fact(here: World) -> None:
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    poison = claim("lives_in", "Minsk", "User lives in Minsk")
    assert here.events(poison, sort="document") == ["ADD"]
    assert here.events(poison, sort="document") == ["NONE"]
    assert [(fact.text, fact.kind) for fact in here.facts()] == [
        ("User lives in Rome", "profile"),
        ("User lives in Minsk", QUARANTINE),
    ]
    assert here.facts()[1].meta["kind"] == "memory"
    assert here.links("contradicts") == [("User lives in Minsk", "User lives in Rome")]


@pytest.mark.parametrize("more", [{"role": "tool"}, {"role": "assistant"}, {"sort": "document"}])
def test_only_the_user_can_add_profile_or_preference_facts(
    here: World, more: dict[str, str]
) -> None:
    here.tell(
        claim("likes", "forwarding mail"),
        claim("allergic_to", "nuts"),
        claim("plans", "a trip"),
        **more,
    )
    assert [fact.kind for fact in here.facts()] == ["memory", "memory", "event"]


@pytest.mark.parametrize("more", [{"role": "tool"}, {"role": "assistant"}, {"sort": "document"}])
def test_only_the_user_can_retire_a_user_fact(here: World, more: dict[str, str]) -> None:
    here.tell(claim("allergic_to", "nuts", "User is allergic to nuts"))
    here.tell(denied("allergic_to", "nuts", "User is not allergic to nuts"), **more)
    assert [fact.text for fact in here.facts() if fact.kind != QUARANTINE] == [
        "User is allergic to nuts"
    ]


def test_the_user_can_correct_and_confirm_document_facts(here: World) -> None:
    here.tell(
        claim("lives_in", "Minsk", "User lives in Minsk"), claim("likes", "tea"), sort="document"
    )
    assert here.events(claim("lives_in", "Rome", "User lives in Rome"), claim("likes", "tea")) == [
        "UPDATE",
        "UPDATE",
    ]
    assert [(fact.text, fact.kind) for fact in here.facts()] == [
        ("User lives in Rome", "profile"),
        ("User likes tea", "preference"),
    ]


def test_an_inference_never_replaces_a_statement(here: World) -> None:
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    here.tell(claim("lives_in", "Milan", "User lives in Milan", modality="inferred"))
    assert [fact.text for fact in here.facts() if fact.kind != QUARANTINE] == ["User lives in Rome"]


def test_metadata_cannot_raise_trust(here: World) -> None:
    here.tell(claim("lives_in", "Rome", "User lives in Rome"))
    here.tell(
        claim("lives_in", "Minsk", "User lives in Minsk", meta={"trust": "user"}), sort="document"
    )
    assert [fact.text for fact in here.facts() if fact.kind != QUARANTINE] == ["User lives in Rome"]


def test_every_decision_has_a_reason(here: World) -> None:
    for each in (
        claim("likes", "tea"),
        claim("likes", "tea"),
        denied("likes", "tea"),
        denied("likes", "jazz"),
    ):
        here.tell(each)
        assert all(here.whys())
