"""Examples as forms: what people put into them, what they deny, and what they only ask."""

import pytest

from tables import each_row
from told.extraction.example_matching import match_confirmed, match_examples

EXAMPLES = (
    "I love X",
    "I'm into X",
    "I have X",
    "I have X left",
    "I could use X",
    "I'm deaf",
    "I use a wheelchair",
    "I can't climb stairs",
    "X is incredible",
    "I'm with X",
    "My guide is X",
)


def found(text, **options):
    return {(one.value, one.is_negated) for one in match_examples(EXAMPLES, text, **options)}


@each_row(
    ("text", "values"),
    [
        ("I love jazz", ["jazz"]),
        ("I really love photography, especially mid-century stuff.", ["photography"]),
        ("I love hiking, chess and sushi.", ["hiking", "chess", "sushi"]),
        ("I am really into jazz", ["jazz"]),
        ("I\u2019m into jazz", ["jazz"]),
        ("well i'm into Dada", ["Dada"]),
        ("I have about an hour", ["an hour"]),
        ("I could really use a coffee!", ["coffee"]),
        ("By the way, I'm deaf.", ["deaf"]),
        ("I am deaf", ["deaf"]),
        ("I use a wheelchair, you know", ["wheelchair"]),
        ("Picasso is incredible.", ["Picasso"]),
        ("I'm with my daughter", ["daughter"]),
        ("My guide is Ann.", ["Ann"]),
    ],
)
def test_a_sentence_fills_in_a_form(text, values):
    assert found(text) == {(value, False) for value in values}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I don't love sculpture any more", "sculpture"),
        ("I'm not deaf", "deaf"),
        ("I am no longer into jazz", "jazz"),
        ("I do not use a wheelchair", "wheelchair"),
        ("I never really love opera", "opera"),
    ],
)
def test_a_denial_is_heard(text, value):
    assert found(text) == {(value, True)}


@each_row(
    "text",
    [
        "Do I love jazz?",
        "Where can I have one?",
        'She said: "I love war, and I\'m deaf to reason"',
        "You love jazz",
        "I loved jazz",
        "I love it",
        "I love you",
        "Hi love",
        "I'm deafened",
        "Mi love jazz",
        "",
    ],
)
def test_what_is_no_statement_of_the_speaker_fills_in_nothing(text):
    assert found(text) == set()


def test_a_limit_may_stand_behind_the_blank():
    assert ("45 minutes", False) in found("I have 45 minutes left.")


def test_what_cannot_be_said_is_a_value_as_well():
    assert found("I cannot climb stairs") == {("cannot climb stairs", False)}
    assert found("I can't climb stairs") == {("can't climb stairs", False)}


def test_what_is_said_to_you_is_read_in_the_second_person():
    assert found("As you are deaf, take the captioned tour.", second_person=True) == {
        ("deaf", False)
    }
    assert found("You love jazz, so listen to this.", second_person=True) == {("jazz", False)}
    assert found("I love jazz", second_person=True) == set()


@pytest.mark.parametrize(
    ("answer", "values"),
    [("Yes!", ["jazz"]), ("Exactly, thanks", ["jazz"]), ("No", []), ("Yesterday", [])],
)
def test_a_question_counts_once_it_is_answered_with_a_yes(answer, values):
    assert [one.value for one in match_confirmed(EXAMPLES, "So you love jazz?", answer)] == values


def test_an_example_without_words_is_no_form():
    assert match_examples(("X", "...", ""), "anything at all") == []
