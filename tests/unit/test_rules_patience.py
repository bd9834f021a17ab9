"""Every rule pattern reads any input in about linear time."""

import pytest

from listening import hear

TRIALS = {
    "a rule": "I like ------------------------- cut here",
    "markup": '<div class="a"><p>text</p></div>' * 130,
    "blanks": "I live in Rome" + " " * 4000 + "and so on",
    "a list": "I like " + "a, " * 2000,
    "me": "I " * 3000,
    "quotes": '"' * 3000,
    "ands": "I like " + "and " * 1500,
    "mine": "my " * 3000,
    "dashes": "- " * 3000,
    "very": "I'm a " + "very " * 1500,
    "no longer": "no longer " * 1000,
    "a long word": "I love " + "x" * 6000,
    "quoted lines": "> I live in Rome\n" * 300,
    "numbered lines": "1. I like tea\n" * 400,
    "commas": "I have " + ", " * 2000,
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", TRIALS.values(), ids=TRIALS)
def test_a_hostile_text_is_read_in_linear_time(text):
    assert len(hear(text).claims) <= 12
