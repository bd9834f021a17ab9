"""Examples as templates: filled values, negations and questions."""

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


def match_values(text, **options):
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
def test_a_sentence_fills_a_template(text, values):
    assert match_values(text) == {(value, False) for value in values}


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
def test_a_negation_is_detected(text, value):
    assert match_values(text) == {(value, True)}


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
def test_text_that_is_not_a_statement_by_the_speaker_fills_nothing(text):
    assert match_values(text) == set()


def test_words_may_follow_the_blank():
    assert ("45 minutes", False) in match_values("I have 45 minutes left.")


def test_a_negated_ability_is_a_value():
    assert match_values("I cannot climb stairs") == {("cannot climb stairs", False)}
    assert match_values("I can't climb stairs") == {("can't climb stairs", False)}


def test_second_person_statements_are_matched_on_request():
    assert match_values("As you are deaf, take the captioned tour.", second_person=True) == {
        ("deaf", False)
    }
    assert match_values("You love jazz, so listen to this.", second_person=True) == {
        ("jazz", False)
    }
    assert match_values("I love jazz", second_person=True) == set()


@pytest.mark.parametrize(
    ("answer", "values"),
    [("Yes!", ["jazz"]), ("Exactly, thanks", ["jazz"]), ("No", []), ("Yesterday", [])],
)
def test_a_question_matches_only_when_answered_with_yes(answer, values):
    assert [one.value for one in match_confirmed(EXAMPLES, "So you love jazz?", answer)] == values


def test_an_example_without_words_is_not_a_template():
    assert match_examples(("X", "...", ""), "anything at all") == []
