"""Facts mentioned in passing."""

import pytest

from listening import texts
from tables import each_row

MENTIONS = {
    "Is there a pool near my flat in Moabit?": ["User lives in Moabit"],
    "Can my pug eat strawberries?": ["User has a pug"],
    "Where can I get my Vespa serviced?": ["User has a Vespa"],
    "What's a good strap for my Rolex Explorer?": ["User has a Rolex Explorer"],
    "What should I give my daughter for Christmas?": ["User has a daughter"],
    "My knee hurts, should I stop running?": ["User's knee hurts"],
    "A book for someone learning Welsh like me?": ["User is learning Welsh"],
    "My visa expires in May.": ["User's visa expires in May"],
    "We had to move because of my wife's job at Airbus.": ["User's wife works at Airbus"],
    "My trip to Malta got cancelled.": ["User no longer plans a trip to Malta"],
    "Sanne, my sister, works at Shell.": ["User has a sister named Sanne", "Sanne works at Shell"],
    "Tom and I split up": ["User is no longer with Tom"],
    "I'm vegan, does that change the recipe?": ["User is vegan"],
    "Is one bag enough for us for two weeks in Peru?": ["User plans two weeks in Peru"],
    "Can my landlord in Delft raise the rent?": ["User lives in Delft"],
    "How do I tell my coach that I'm pregnant?": ["User is pregnant"],
    "Which forms do I need as a Danish citizen?": ["User is a Danish citizen"],
    "What do I get my uncle, he's into trains?": ["User's uncle likes trains"],
    "What suits a nephew who only cares about Lego?": ["User's nephew likes Lego"],
    "Yesterday the shed got broken into": ["User's shed got broken into on 2026-03-17"],
    "There's a rowing machine in the cellar": ["User has a rowing machine"],
    "The cat had to go to the vet": ["User has a cat"],
    "We keep bees up here in the Vosges": ["User keeps bees", "User lives in Vosges"],
    "My four-year-old has eczema": ["User's four-year-old has eczema"],
    "My two are Ilse and Koen": ["User has a child named Ilse", "User has a child named Koen"],
    "our daughters Mila and Ronja swim": [
        "User has a daughter named Mila",
        "User has a daughter named Ronja",
    ],
    "Swahili at home and English at work": ["User speaks Swahili", "User speaks English"],
    "My mum lives in Swansea, is diabetic and has two cats": [
        "User's mum lives in Swansea",
        "User's mum is diabetic",
        "User's mum has two cats",
    ],
}


@each_row(("said", "wanted"), MENTIONS.items(), ids=MENTIONS.keys())
def test_facts_mentioned_in_passing_are_extracted(said, wanted):
    assert texts(said) == wanted


@each_row(
    "said",
    [
        "My chicken is dry, what did I do wrong?",
        "I sold my Vespa to a friend?",
        "I lost my dog",
        "my pet peeve is a topic",
        "My car is red",
        "He has my guitar",
    ],
)
def test_phrases_that_are_not_possessions_are_not_extracted_as_such(said):
    assert not [text for text in texts(said) if text.startswith("User has ")]


def test_an_explicit_statement_is_not_also_a_mention():
    assert texts("my wife works at Google") == ["User's wife works at Google"]


def test_a_pet_that_died_is_negated():
    assert texts("My dog died in March.") == ["User no longer has a dog"]


@pytest.mark.parametrize(
    ("asked", "said", "wanted"),
    [
        ("Do you have any pets?", "Yes, two rabbits", "User has two rabbits"),
        ("Where are you based?", "Just outside Bristol.", "User lives in Bristol"),
        (
            "My favourite language is Ada.",
            "ok, mine is Kotlin",
            "User's favourite language is Kotlin",
        ),
        ("What's your budget?", "around 500 euros", "User's budget is 500 euros"),
    ],
)
def test_an_answer_is_read_with_its_question(asked, said, wanted):
    assert texts(("assistant", asked), said) == [wanted]


@pytest.mark.parametrize(
    "unit", ["https://a.b/c ", "ich bin ", "- a: b\n", "my kids are Ann, ", "I have a very very "]
)
def test_a_repetitive_text_makes_few_claims(unit):
    assert len(texts(unit * 400)) <= 12


@each_row(
    "said",
    [
        "We had to put our cat down",
        "My girlfriend dumped me",
        "The dog is a domesticated animal",
        "The cat command",
        "Is there a doctor who speaks Danish?",
        "There's a spider in the garage!",
        "Do you know a vet in Graz?",
        "Should I tell her that I'm in love?",
        "The car in front of me broke down",
    ],
)
def test_lost_or_unowned_things_give_no_claims(said):
    assert texts(said) == []
