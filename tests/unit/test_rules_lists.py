"""Lists of people, days and favourites, project parts and due dates."""

import pytest

from listening import texts, triples
from tables import each_row

LISTS = {
    "Who does what:\n- Anna: design\n- Bo: QA\n- me: product manager": {
        ("Anna", "works_as", "design"),
        ("Bo", "works_as", "QA"),
        ("User", "works_as", "product manager"),
    },
    "Coming up:\n- 3 July: dentist\n- 9 August: camping in Wales": {
        ("User", "plans", "dentist"),
        ("User", "plans", "camping in Wales"),
    },
    "What happened:\n- 3 January: knee operation\n- 9 February: Ed's funeral": {
        ("User", "did", "knee operation"),
        ("User", "did", "Ed's funeral"),
    },
    "My favourites:\nfilm - Alien\nbook - Dune": {
        ("User", "favourite_film", "Alien"),
        ("User", "favourite_book", "Dune"),
    },
    "Family: mum Carol (nurse), brother Ash (lives in Bonn)": {
        ("User", "has_parent", "Carol"),
        ("Carol", "works_as", "nurse"),
        ("User", "has_sibling", "Ash"),
        ("Ash", "lives_in", "Bonn"),
    },
    "Current meds: metformin 500 mg, mornings": {("User", "takes", "metformin 500 mg")},
    "What I want from you: short answers, no tables": {
        ("User", "prefers", "short answers"),
        ("User", "prefers", "no tables"),
    },
    "Backend in Kotlin, frontend is Vue, hosted on Azure.": {
        ("User", "project_uses", "Kotlin"),
        ("User", "project_uses", "Vue"),
        ("User", "project_uses", "Azure"),
    },
    "The app is called Tidepool": {("User", "works_on", "Tidepool")},
    "No pork, no alcohol please": {("User", "avoids", "pork"), ("User", "avoids", "alcohol")},
    "Budget is 2k": {("User", "budget", "2k")},
    "need a bike, budget 600 quid": {("User", "budget", "600 quid")},
}


@each_row(("said", "wanted"), LISTS.items(), ids=LISTS.keys())
def test_a_list_is_read_according_to_its_heading(said, wanted):
    assert triples(said) == wanted


DUE = {
    "The grant application closes on 2 April": ["User's grant application closes on 2026-04-02"],
    "My essay is due on Friday": ["User's essay is due on 2026-03-20"],
    "I have to hand in my tax return by 31 July": [
        "User has to hand in their tax return on 2026-07-31"
    ],
    "My editor wants the first chapter by Friday": ["User's first chapter is due on 2026-03-20"],
    "The launch has to happen before the summer holidays": [
        "User's launch is due before the summer holidays"
    ],
}


@pytest.mark.parametrize(("said", "wanted"), DUE.items(), ids=DUE.keys())
def test_due_dates_are_extracted(said, wanted):
    assert texts(said) == wanted


@each_row(
    "said",
    [
        "Steps:\n- step 1: install\n- step 2: run",
        "Error log:\nuser: bob\nhost: web1",
        "I have to leave by 5",
        "config:\n- port: 80\n- host: localhost",
        "The database is slow and the API returns 500",
        "api key is missing",
        "The film ends in a fight",
        "I need to fix this bug by Friday",
        "What budget do I need for Japan?",
        "The lease runs out when the server restarts",
        "No problem, no worries",
        "People:\n- Name: string\n- Age: int",
        "Schedule:\n- Monday: legs\n- Tuesday: arms",
        "The book is called Dune",
        "The app is called Slack, right?",
        "The offer ends on Friday!",
        "I need to buy milk by tomorrow",
    ],
)
def test_an_unrelated_list_gives_no_claims(said):
    assert texts(said) == []
