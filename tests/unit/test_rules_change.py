"""Negation, change, hedging and time in claims of the rule extractor."""

from datetime import UTC, datetime

import pytest

from listening import claims, hear, triples
from tables import each_row
from told.text.dates import ALWAYS, to_us

CHANGES = {
    "I used to live in Chicago": {("-lives_in", "Chicago")},
    "I lived in Paris for five years": {("-lives_in", "Paris")},
    "I'm not at Acme any more": {("-works_at", "Acme")},
    "I don't work at Google anymore": {("-works_at", "Google")},
    "I quit my job at Acme last week": {("-works_at", "Acme")},
    "I left Google in January": {("-works_at", "Google")},
    "I switched from vim to VS Code": {("uses", "VS Code"), ("-uses", "vim")},
    "We migrated from MySQL to Postgres last quarter": {("uses", "Postgres"), ("-uses", "MySQL")},
    "We moved from Slack to Teams": {("uses", "Teams"), ("-uses", "Slack")},
    "I traded in my Civic for a Prius": {("owns", "Prius"), ("-owns", "Civic")},
    "I used to be a teacher, now I'm a realtor": {
        ("-works_as", "teacher"),
        ("works_as", "realtor"),
    },
    "I moved back to Spain": {("lives_in", "Spain")},
    "I no longer eat meat": {("avoids", "meat")},
    "I gave up coffee": {("avoids", "coffee")},
    "I quit smoking": {("-habit", "smoking")},
    "I stopped playing the violin": {("-plays", "violin")},
    "I broke up with my girlfriend": {("-has_partner", "girlfriend")},
    "My dog Rex died last week": {("-has_pet", "Rex")},
    "I sold my car last month": {("-owns", "car")},
    "I have no siblings": {("-has_sibling", "siblings")},
    "I don't have any pets": {("-has_pet", "pets")},
    "I'm not vegan": {("-diet", "vegan")},
    "I don't own a TV": {("-owns", "TV")},
    "No, I live in Lyon, not Paris": {("lives_in", "Lyon")},
    "Actually my name is Jon, not John": {("name", "Jon")},
    "actually it's Bob, not Rob": {("name", "Bob")},
}


@each_row(("said", "wanted"), CHANGES.items(), ids=CHANGES.keys())
def test_a_denial_or_a_change_is_extracted(said, wanted):
    assert triples(said) == {("User", *pair) for pair in wanted}


@pytest.mark.parametrize("said", ["I started eating meat again", "User started eating meat again"])
def test_eating_meat_again_gives_an_inferred_denial_of_vegetarian(said):
    (claim,) = claims(said)
    assert claim.text == "User started eating meat again"
    assert (claim.predicate, claim.object, claim.polarity) == ("diet", "vegetarian", "negated")
    assert claim.modality == "inferred"


DOUBTS = [
    "I might move to Spain",
    "I think I'm allergic to cats",
    "I'm thinking of getting a dog",
    "I might be allergic to nuts",
]


@pytest.mark.parametrize("said", DOUBTS)
def test_a_doubtful_statement_is_hedged_with_lower_confidence(said):
    (claim,) = claims(said)
    (sure,) = claims("I'm allergic to cats")
    assert claim.modality == "hedged"
    assert claim.confidence < sure.confidence


def test_a_future_statement_is_planned():
    (claim,) = claims("I'm moving to Berlin in May")
    assert (claim.predicate, claim.modality) == ("plans", "planned")


DATES = {
    "I ran a marathon last Sunday": "2026-03-15",
    "I got laid off yesterday": "2026-03-17",
    "I visited Rome in 2022": "2022",
    "my flight is on 30 March": "2026-03-30",
    "my flight is on 3 March": "2027-03-03",
    "My exam is next Friday": "2026-03-20",
    "the deadline is Friday": "2026-03-20",
    "I have a dentist appointment tomorrow at 3pm": "2026-03-19T15:00Z",
    "I'm flying to Tokyo in May": "2026-05",
    "We moved to Denver in 2019": "2019/..",
    "Last year I moved to Denver": "2025/..",
    "I've been vegan for 6 years": "2020/..",
    "I've worked at Acme since 2018": "2018/..",
}


@each_row(("said", "wanted"), DATES.items(), ids=DATES.keys())
def test_a_relative_time_becomes_an_interval(said, wanted):
    (claim,) = claims(said)
    assert str(claim.valid) == wanted


def test_relative_times_are_resolved_from_the_time_of_the_turn():
    said_at = to_us(datetime(2023, 5, 8, 13, 56, tzinfo=UTC))
    (claim,) = claims("I went to a support group yesterday", said_at=said_at)
    assert (str(claim.valid), claim.said_at) == ("2023-05-07", said_at)


def test_a_statement_without_a_time_uses_the_time_of_the_turn():
    (found,) = hear("I live in Rome").claims
    assert found.claim.valid == ALWAYS
