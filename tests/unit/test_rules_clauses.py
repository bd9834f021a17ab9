"""Clauses that share a subject, people mentioned across sentences, and lists of attributes."""

from listening import texts
from tables import each_row

SHARED_SUBJECT = {
    "I used to live in Oslo but moved to Rome": ["User used to live in Oslo", "User lives in Rome"],
    "I'm 61 and still working two days a week in a bakery": [
        "User is 61 years old",
        "User works at a bakery",
    ],
    "im from dundee but living in york": ["User comes from dundee", "User lives in york"],
    "My son is 7 and obsessed with trains": [
        "User's son is 7 years old",
        "User's son likes trains",
    ],
    "My dad's retired and collects stamps": ["User's dad is retired", "User's dad collects stamps"],
    "I sold my car and bought a tandem": ["User no longer owns a car", "User bought a tandem"],
    "I'm a Leo, left-handed, and terrible with names": [
        "User is a Leo",
        "User is left-handed",
        "User is terrible with names",
    ],
    "Left-handed, asthmatic and hopeless at chess, that's me": [
        "User is Left-handed",
        "User is asthmatic",
        "User is hopeless at chess",
    ],
    "On Mondays I sing in a choir and on Thursdays I run a chess club": [
        "User sings in a choir",
        "User runs a chess club",
    ],
    "I ended up teaching maths": ["User teaches maths"],
    "I like walks and runs": ["User likes walks", "User likes runs"],
    "I love hiking and working with wood": ["User likes hiking"],
    "I want to live in Oslo and work at Equinor": [
        "User wants to live in Oslo and work at Equinor"
    ],
    "In 2019, my parents moved to Spain": ["User's parents live in Spain"],
}


@each_row(("said", "wanted"), SHARED_SUBJECT.items(), ids=SHARED_SUBJECT.keys())
def test_a_clause_inherits_the_subject_of_the_one_before(said, wanted):
    assert texts(said) == wanted


PEOPLE = {
    "It's me, my wife Ines and her mother Rosa. Rosa uses a wheelchair. Ines doesn't eat fish.": [
        "User's wife is Ines",
        "Rosa uses a wheelchair",
        "Ines avoids fish",
    ],
    "I've one brother, Lorcan, who's a priest": [
        "User has a brother named Lorcan",
        "Lorcan works as a priest",
    ],
    "My gran's got dementia": ["User's gran has dementia"],
    "My brother's just bought a kayak": ["User's brother bought a kayak"],
    "My eldest is at Leeds studying medicine": ["User's eldest studies medicine at Leeds"],
    "My nephew's getting married in May": ["User's nephew plans to get married in 2026-05"],
    "My wife's turning 40 next month, any ideas?": ["User's wife is turning 40 in 2026-04"],
    "We have three girls": ["User has three girls"],
}


@each_row(("said", "wanted"), PEOPLE.items(), ids=PEOPLE.keys())
def test_people_are_resolved_from_earlier_sentences(said, wanted):
    assert texts(said) == wanted


LIVES = {
    "I've had asthma since I was nine": ["User has asthma"],
    "I was brought up in Zambia": ["User grew up in Zambia"],
    "I'm a retired postman": ["User is a retired postman"],
    "I've been made head of sales": ["User works as head of sales"],
    "I sit on the parish council": ["User sits on the parish council"],
    "I look after my nan": ["User looks after their nan"],
    "I drive a night bus": ["User drives a night bus"],
    "I inherited a harp from my aunt": ["User owns a harp"],
    "I'm having my tonsils out on Friday": ["User plans to have their tonsils on 2026-03-20"],
    "We fly to Lima on 9 October": ["User plans to fly to Lima on 2026-10-09"],
    "I'm halfway through a nursing degree": ["User does a nursing degree"],
    "I'm looking for a flat in Leeds": ["User is looking for flat in Leeds"],
    "We've set aside 2000 euros": ["User has a budget of 2000 euros"],
    "I'm hopeless with money": ["User is hopeless with money"],
    "We run everything on FreeBSD": ["User uses FreeBSD"],
    "I go to bed at ten": ["User goes to bed at ten"],
}


@each_row(("said", "wanted"), LIVES.items(), ids=LIVES.keys())
def test_life_circumstances_are_extracted(said, wanted):
    assert texts(said) == wanted


@each_row(
    "said",
    [
        "I run the script and it fails",
        "I make a request and get a 404",
        "I keep getting an error",
        "I start the server on port 80",
        "I set up the database and put the data in it",
        "I broke the build",
        "I dropped out of the call",
        "I got offered a drink",
        "I'm doing great",
        "My code drives me crazy",
        "I lost my temper",
        "I'm in London today",
        "I have three boys in my class",
        "I do the dishes",
    ],
)
def test_technical_and_one_time_actions_give_no_claims(said):
    assert texts(said) == []
