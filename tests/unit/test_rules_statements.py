"""Statements about the user and related people, and the claims extracted from them."""

import pytest

from listening import claims, texts, triples
from tables import each_row

SENTENCES = {
    "My name is Bob": ["User's name is Bob"],
    "I'm Alice, I work at Acme": ["User's name is Alice", "User works at Acme"],
    "I moved from NYC to San Francisco": ["User lives in San Francisco"],
    "I'm a data scientist at Spotify": ["User works at Spotify as a data scientist"],
    "I just switched jobs. I'm now at BigTech Inc.": ["User works at BigTech Inc"],
    "I prefer PyTorch over TensorFlow": ["User prefers PyTorch over TensorFlow"],
    "I specialize in NLP and recommendation systems": [
        "User specializes in NLP and recommendation systems"
    ],
    "my wife works at Google": ["User's wife works at Google"],
    "My parents live in Ohio": ["User's parents live in Ohio"],
    "I have a dog named Rex": ["User has a dog named Rex"],
    "our project uses FastAPI": ["User's project uses FastAPI"],
    "please answer in short sentences": ["User asks the assistant to answer in short sentences"],
    "call me Sam": ["User goes by Sam"],
    "I passed my driving test!": ["User passed their driving test"],
    "I ran a marathon last Sunday": ["User ran a marathon on 2026-03-15"],
    "We're getting married in June": ["User plans to get married in 2026-06"],
    "I used to live in Chicago": ["User used to live in Chicago"],
    "I don't speak Chinese": ["User does not speak Chinese"],
    "I'm not at Acme any more": ["User no longer works at Acme"],
    "I'm no longer vegetarian": ["User is no longer vegetarian"],
    "I've never been to Japan": ["User has never been to Japan"],
}


@each_row(("said", "wanted"), SENTENCES.items(), ids=SENTENCES.keys())
def test_statements_are_rewritten_in_the_third_person(said, wanted):
    assert texts(said) == wanted


STATED = [
    ("im alice", "name", "Alice"),
    ("hey, dana here. quick q about pandas", "name", "Dana"),
    ("Just so you know, I go by Max", "nickname", "Max"),
    ("i live in berln", "lives_in", "berln"),
    ("Just moved to Lisbon last month, loving it so far", "lives_in", "Lisbon"),
    ("I live in Austin, Texas with my parents and two friends", "lives_in", "Austin, Texas"),
    ("I'm originally from Brazil", "comes_from", "Brazil"),
    ("I was born in Nairobi in 1990", "born_in", "Nairobi"),
    ("I'm 34 years old", "age", "34"),
    ("my birthday is on 3 March", "birthday", "3 March"),
    ("My native language is Polish", "native_language", "Polish"),
    ("my pronouns are they/them", "pronouns", "they/them"),
    ("my email is bob@example.com", "email", "bob@example.com"),
    ("My phone number is +1 555 123 4567", "phone", "+1 555 123 4567"),
    ("i wrok at google as a swe", "works_at", "google"),
    ("I work as a nurse", "works_as", "nurse"),
    ("User works in tech", "works_in", "tech"),
    ("I got promoted to engineering manager", "works_as", "engineering manager"),
    ("I'm on the platform team", "team", "platform"),
    ("My manager is Priya", "manager", "Priya"),
    ("I'm studying computer science at MIT", "studies_at", "MIT"),
    ("I graduated from Stanford in 2015", "graduated_from", "Stanford"),
    ("I'm married to Jonas", "married_to", "Jonas"),
    ("I'm single", "relationship_status", "single"),
    ("My wife's name is Anna", "has_partner", "Anna"),
    ("What are good gifts for my daughter Mia?", "has_child", "Mia"),
    ("I have three kids", "has_child", "three kids"),
    ("Anna is my sister", "has_sibling", "Anna"),
    ("my best friend is Carlos", "has_friend", "Carlos"),
    ("Our cat is called Pixel", "has_pet", "Pixel"),
    ("I can't stand loud music", "dislikes", "loud music"),
    ("I don't like mushrooms", "dislikes", "mushrooms"),
    ("I'm a big fan of Radiohead", "likes", "Radiohead"),
    ("my fav color is green", "favourite_color", "green"),
    ("Sushi is my favourite food", "favourite_food", "Sushi"),
    ("im allergic to shellfish fyi", "allergic_to", "shellfish"),
    ("I have a peanut allergy", "allergic_to", "peanut"),
    ("Since I'm vegan, what should I cook?", "diet", "vegan"),
    ("As a vegetarian, what can I eat in Argentina?", "diet", "vegetarian"),
    ("I don't eat pork", "avoids", "pork"),
    ("I'm fluent in French", "speaks", "French"),
    ("I was diagnosed with type 2 diabetes", "has_condition", "type 2 diabetes"),
    ("My doctor told me I have high blood pressure", "has_condition", "high blood pressure"),
    ("I take metformin daily", "takes", "metformin"),
    ("I play the guitar", "plays", "guitar"),
    ("I drive a Honda Civic", "drives", "Honda Civic"),
    ("I have a MacBook Pro", "owns", "MacBook Pro"),
    ("I use Arch btw", "uses", "Arch"),
    ("we use Postgres", "uses", "Postgres"),
    ("I'm learning Rust", "learning", "Rust"),
    ("I'm working on my thesis", "works_on", "thesis"),
    ("My goal is to run a sub-4 marathon", "goal", "run a sub-4 marathon"),
    ("I run every morning", "habit", "run every morning"),
    ("I visited Rome in 2022", "visited", "Rome"),
    ("I bought a new car yesterday", "bought", "new car"),
    ("I'm an introvert", "is", "introvert"),
    ("The project needs a login page", "project_needs", "login page"),
    ("my nmae is kevin", "name", "Kevin"),
    ("I'm form Chicago", "comes_from", "Chicago"),
    ("i realy like anime", "likes", "anime"),
    ("I don't mean to brag but I live in New York", "lives_in", "New York"),
    ("Moved to Berlin last month.", "lives_in", "Berlin"),
    ("Allergic to nuts btw", "allergic_to", "nuts"),
    ("As someone who lives in Seattle, do I need AC?", "lives_in", "Seattle"),
    ("After ten years at IBM I joined a small startup called Foxtrot", "works_at", "Foxtrot"),
    ("You can reach me at alice@foo.org", "email", "alice@foo.org"),
    ("I can't have dairy", "avoids", "dairy"),
    ("I wear glasses", "has", "glasses"),
    ("My budget is $500", "budget", "$500"),
    ("don't use emojis", "reply_style", "don't use emojis"),
    ("No emojis please", "reply_style", "No emojis"),
    ("always reply in German please", "reply_style", "reply in German"),
]


@each_row(("said", "predicate", "value"), STATED, ids=[row[0] for row in STATED])
def test_a_statement_about_oneself_is_extracted(said, predicate, value):
    assert triples(said) == {("User", predicate, value)}


SEVERAL = {
    "I like hiking, chess and sushi": {("likes", "hiking"), ("likes", "chess"), ("likes", "sushi")},
    "I love mac and cheese": {("likes", "mac and cheese")},
    "I speak German and a bit of Spanish": {("speaks", "German"), ("speaks", "Spanish")},
    "I have two cats, Luna and Milo": {("has_pet", "Luna"), ("has_pet", "Milo")},
    "I'm Sam, a nurse from Leeds": {
        ("name", "Sam"),
        ("works_as", "nurse"),
        ("comes_from", "Leeds"),
    },
    "I'm a 34-year-old nurse from Leeds living in York": {
        ("age", "34"),
        ("works_as", "nurse"),
        ("comes_from", "Leeds"),
        ("lives_in", "York"),
    },
    "Quick context: 29, product designer, living in Barcelona, originally from Argentina.": {
        ("age", "29"),
        ("works_as", "product designer"),
        ("lives_in", "Barcelona"),
        ("comes_from", "Argentina"),
    },
    "I grew up in Ohio but now live in Seattle": {("comes_from", "Ohio"), ("lives_in", "Seattle")},
    "Name: Bob\nFavourite food: ramen": {("name", "Bob"), ("favourite_food", "ramen")},
    "My kids' names are Ava and Ben": {("has_child", "Ava"), ("has_child", "Ben")},
    "I'm Maria, 27, living in Lisbon": {("name", "Maria"), ("age", "27"), ("lives_in", "Lisbon")},
    "I'm allergic to: peanuts, tree nuts, and soy.": {
        ("allergic_to", "peanuts"),
        ("allergic_to", "tree nuts"),
        ("allergic_to", "soy"),
    },
    "I'm a teacher and I have asthma": {("works_as", "teacher"), ("has_condition", "asthma")},
}


@each_row(("said", "wanted"), SEVERAL.items(), ids=SEVERAL.keys())
def test_one_turn_can_give_several_claims(said, wanted):
    assert triples(said) == {("User", *pair) for pair in wanted}


OTHERS = {
    "Bob lives in Rome": {("Bob", "lives_in", "Rome")},
    "my daughter Mia is 5": {("User", "has_child", "Mia"), ("Mia", "age", "5")},
    "My sister Emma lives in Boston. She works as a lawyer.": {
        ("User", "has_sibling", "Emma"),
        ("Emma", "lives_in", "Boston"),
        ("Emma", "works_as", "lawyer"),
    },
    "can u suggest a gift for my mum? she loves gardening": {("User's mum", "likes", "gardening")},
    "what's a good gift for my dad who loves fishing?": {("User's dad", "likes", "fishing")},
    "Tom's wife works at the UN": {("Tom's wife", "works_at", "the UN")},
    "My husband is allergic to cats": {("User's husband", "allergic_to", "cats")},
    "my gf and i just moved to chicago": {("User", "lives_in", "chicago")},
}


@each_row(("said", "wanted"), OTHERS.items(), ids=OTHERS.keys())
def test_a_fact_about_another_person_has_that_subject(said, wanted):
    assert triples(said) == wanted


FOREIGN = {
    "Ich heiße Anna und wohne in München": {("name", "Anna"), ("lives_in", "München")},
    "Ich arbeite bei Siemens": {("works_at", "Siemens")},
    "Ich bin allergisch gegen Nüsse": {("allergic_to", "Nüsse")},
    "Je m'appelle Pierre et j'habite à Lyon": {("name", "Pierre"), ("lives_in", "Lyon")},
    "J'aime le café et les croissants": {("likes", "café"), ("likes", "croissants")},
    "Me llamo Carlos y vivo en Madrid": {("name", "Carlos"), ("lives_in", "Madrid")},
    "Ya no trabajo en Telefónica": {("-works_at", "Telefónica")},
    "Mi chiamo Giulia e vivo a Roma": {("name", "Giulia"), ("lives_in", "Roma")},
    "Sono allergico alle noci": {("allergic_to", "noci")},
    "Eu moro em São Paulo e trabalho na Google": {
        ("lives_in", "São Paulo"),
        ("works_at", "Google"),
    },
}


@each_row(("said", "wanted"), FOREIGN.items(), ids=FOREIGN.keys())
def test_common_statements_are_extracted_in_other_languages(said, wanted):
    assert triples(said) == {("User", *pair) for pair in wanted}


def test_a_named_speaker_is_the_subject():
    assert texts("I'm Caroline and I live in Boston", name="Caroline") == [
        "Caroline lives in Boston"
    ]


def test_a_claim_has_the_kind_of_its_predicate():
    kinds = {
        claim.predicate: claim.kind
        for claim in claims("I live in Rome. I love tea. I ran a marathon yesterday.")
    }
    assert kinds == {"lives_in": "profile", "likes": "preference", "did": "event"}


def test_role_and_employer_are_both_extracted():
    (claim,) = claims("I work at Acme Corp as a data scientist")
    assert (claim.object, dict(claim.meta)) == ("Acme Corp", {"job": "data scientist"})


ANSWERS = [
    ("What's your name?", "Bob", ("name", "Bob")),
    ("Where do you live?", "in Berlin, Germany", ("lives_in", "Berlin, Germany")),
    ("Hi! How old are you?", "34", ("age", "34")),
    ("What's your favourite movie?", "probably Inception", ("favourite_movie", "Inception")),
    (
        "What kind of data science work do you do?",
        "Mostly NLP and search.",
        ("skilled_in", "NLP and search"),
    ),
]


@pytest.mark.parametrize(("asked", "said", "wanted"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_a_bare_answer_is_read_with_its_question(asked, said, wanted):
    assert triples(("assistant", asked), said) == {("User", *wanted)}
    assert triples(said) == set()
