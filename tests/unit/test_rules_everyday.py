"""Everyday messages to an assistant, and near misses that state nothing."""

import pytest

from listening import texts
from tables import each_row

STATEMENTS = {
    "We're on Rails 7 with MySQL 8, deploys run through CircleCI to Heroku.": [
        "User uses Rails 7",
        "User uses MySQL 8",
        "User's project uses CircleCI",
        "User's project uses Heroku",
    ],
    "I write mostly Go at work but Ruby for side projects.": ["User uses Go", "User uses Ruby"],
    "I use Helix on NixOS.": ["User uses Helix", "User uses NixOS"],
    "Stack is Remix 2, Prisma and Postgres.": [
        "User's project uses Remix 2",
        "User's project uses Prisma",
        "User's project uses Postgres",
    ],
    "Need SSO before the demo on 3 April.": ["User needs an SSO", "User has a demo on 2026-04-03"],
    "Goals this year\n- run a 10k\n- pay off my card": [
        "User wants to run a 10k",
        "User wants to pay off their card",
    ],
    "My meds\n* lisinopril 10mg\n* metformin": [
        "User takes lisinopril 10mg",
        "User takes metformin",
    ],
    "Trip notes:\n- staying with aunt Clara in Trastevere\n- budget ~600 EUR": [
        "User plans staying with aunt Clara in Trastevere",
        "User has a budget of 600 EUR",
    ],
    "As a vegan with a soy allergy, what should I order?": [
        "User is vegan",
        "User is allergic to soy",
    ],
    "As a diabetic who hates fish, what can I have?": ["User is diabetic", "User dislikes fish"],
    "Since I work late shifts at the bakery, when should I eat?": [
        "User works at bakery",
        "User works late shifts",
    ],
    "Should I take my levothyroxine before breakfast?": ["User takes levothyroxine"],
    "I've got a Toyota Yaris from 2012 - when is it too old?": ["User has a Toyota Yaris"],
    "I have a Kindle and an old iPad.": ["User has a Kindle", "User has an old iPad"],
    "Haircut on 20 March at 5.": ["User has a haircut on 2026-03-20"],
    "Job interview at Bosch on 2 April": ["User has a job interview at Bosch on 2026-04-02"],
    "Aisle seat always, I hate queues.": ["User prefers Aisle seat", "User dislikes queues"],
    "Tea over coffee any day.": ["User prefers Tea over coffee"],
    "I'm in my third year of a degree in architecture at Leeds.": [
        "User studies architecture at Leeds"
    ],
    "I graduated from Oxford in 2018, been at Shell ever since as a geologist.": [
        "User graduated from Oxford",
        "User works at Shell as a geologist",
    ],
    "I have gout so no red meat for me.": ["User has gout", "User avoids red meat"],
    "I'm not vegan anymore, I eat eggs and cheese now.": [
        "User is no longer vegan",
        "User eats eggs and cheese",
    ],
    "My sister lives in Lyon with her wife Claire.": [
        "User's sister lives in Lyon",
        "User's sister's wife is Claire",
    ],
    "On 28 March I'm helping my sister move into her new flat.": [
        "User plans to help their sister move into her new flat on 2026-03-28",
    ],
    "my cats name is Tiger hes a maine coon": [
        "User has a cat named Tiger",
        "Tiger is a maine coon",
    ],
    "my wifes brithday is 3 may": ["User's wife's birthday is 3 may"],
    "We try to keep rent under 900 a month.": ["User has a budget of 900 a month"],
    "oh I just LOVE when my neighbour practises the tuba": ["User's neighbour plays tuba"],
    "I'm a great cook.": ["User is a great cook"],
}

NEAR_MISSES = [
    "The dentist on Monday was rude.",
    "Flight to Oslo on 3 March was cancelled.",
    "Lunch tomorrow?",
    "World Cup final on Sunday is going to be great.",
    "What should a vegan with a nut allergy eat?",
    "As a rule with a few exceptions, prices rise.",
    "Should I take my time?",
    "I have a Zoom call and a meeting.",
    "I have a Python question and a Java one.",
    "If I have a Honda Jazz and a Ford Focus, which one is faster?",
    "My brother met Tom with his dog at the park.",
    "no rush for me",
    "Budget 2026 was announced today.",
    "Goals scored in the match\n- Messi\n- Mbappe",
    "Allergies in dogs\n- fleas\n- pollen",
    "Steps to reproduce\n1. open the app\n2. click save",
    "Travel blog ideas:\n- visiting castles in Wales\n- taking photos at night",
    "Tests run in 3 minutes, deploys go through review.",
    "Storage is Full.",
    "Need support with my bill.",
    "What did the team ship before the release in 2019?",
    "We keep it under 100 lines.",
    "I try to keep my heart rate below 150.",
    "I'm such a brilliant driver.",
    "Sure, I'm a real athlete.",
    "I'm in the second year of marriage.",
    "I'm not with Jake anymore.",
    "visiting the museum was fun",
]


@each_row("said", STATEMENTS)
def test_everyday_statements_are_extracted(said):
    assert sorted(texts(said)) == sorted(STATEMENTS[said])


@each_row("said", NEAR_MISSES)
def test_near_misses_give_no_claims(said):
    assert texts(said) == []


OTHER_LANGUAGES = {
    "Vivo en Madrid con mi marido y nuestra hija.": {
        "lives in Madrid",
        "is with marido",
        "has hija",
    },
    "Je vis à Nantes avec mon mari et mes trois filles.": {
        "lives in Nantes",
        "is with mari",
        "has trois filles",
    },
    "Ich lebe mit meinem Mann in Graz.": {"lives in Graz", "is with Mann"},
    "Vivo a Torino con mia moglie e i nostri due figli.": {
        "lives in Torino",
        "is with moglie",
        "has due figli",
    },
    "Moro no Porto com o meu namorado.": {"lives in Porto", "is with namorado"},
    "Ich arbeite bei Siemens als Ingenieurin.": {"works at Siemens", "works as Ingenieurin"},
    "Ho due gatti e un cane.": {"has due gatti", "has un cane"},
    "Sono professore di storia.": {"works as professore di storia"},
}
ABOUT_RELATIVES = {
    "Mi hermana vive en Sevilla y odia el calor.": {
        "sister lives in Sevilla",
        "sister dislikes calor",
    },
    "Mon frère habite à Québec et il adore le ski.": {
        "brother lives in Québec",
        "brother likes ski",
    },
    "Mein Bruder wohnt in Bremen und er hasst Fisch.": {
        "brother lives in Bremen",
        "brother dislikes Fisch",
    },
    "Mia sorella abita a Pisa e odia il mare.": {"sister lives in Pisa", "sister dislikes mare"},
    "A minha irmã mora em Braga e odeia frio.": {"sister lives in Braga", "sister dislikes frio"},
}


@each_row("said", OTHER_LANGUAGES)
def test_home_family_and_work_are_extracted_in_other_languages(said):
    assert set(texts(said)) == {f"User {one}" for one in OTHER_LANGUAGES[said]}


@pytest.mark.parametrize("said", ABOUT_RELATIVES)
def test_follow_up_statements_about_a_relative_have_the_relative_as_subject(said):
    assert set(texts(said)) == {f"User's {one}" for one in ABOUT_RELATIVES[said]}


@pytest.mark.parametrize(
    "said",
    [
        "Mi hermana y mi hermano odian el calor.",
        "¿Vives con tu mujer?",
        "Mon frère dit que Paul déteste le froid.",
    ],
)
def test_statements_about_others_are_not_assigned_to_a_relative(said):
    assert texts(said) == []
