"""Parsing model replies: readable items are kept and unreadable text is reported."""

import json

import pytest

from tables import each_row
from told.extraction.replies import (
    DUPLICATE,
    MALFORMED,
    ParsedReply,
    RejectedItem,
    convert_items,
    parse_confidence,
    parse_flag,
    parse_items,
    split_duplicates,
    to_line,
)

FACTS = ["User's name is Ines", "User lives in Porto"]
COMPLETE_REPLY = json.dumps(FACTS)


def parse(raw, most=100):
    return parse_items(raw, ("facts",), item_keys=("fact", "text"), max_items=most, label="a model")


@each_row(
    "raw",
    [
        COMPLETE_REPLY,
        f'{{"facts": {COMPLETE_REPLY}}}',
        f'{{"FACTS": {COMPLETE_REPLY}}}',
        f'{{"status": "ok", "data": {{"items": {COMPLETE_REPLY}}}}}',
        json.dumps(COMPLETE_REPLY),
        json.dumps({"result": COMPLETE_REPLY}),
        f"Sure!\n```json\n{COMPLETE_REPLY}\n```",
        f"Draft:\n```json\n[]\n```\nFinal:\n```json\n{COMPLETE_REPLY}\n```",
        json.dumps({"choices": [{"message": {"content": COMPLETE_REPLY}}]}),
        json.dumps({"name": "extract", "arguments": {"facts": FACTS}}),
        json.dumps({"0": FACTS[0], "1": FACTS[1]}),
    ],
)
def test_items_are_found_in_any_wrapper(raw):
    assert parse(raw) == ParsedReply(tuple(FACTS))


@pytest.mark.parametrize("raw", ["[]", "{}", '{"facts": []}', "```json\n[]\n```"])
def test_an_empty_reply_is_valid(raw):
    assert parse(raw) == ParsedReply()


@each_row(
    "raw",
    [
        "",
        "  ",
        "I cannot help with that.",
        "null",
        "42",
        "true",
        "[",
        '{"error": "limit"}',
        '["User liv',
        "<think>hm",
    ],
)
def test_an_unreadable_reply_is_kept_in_full_as_a_fault(raw):
    assert parse(raw) == ParsedReply(unreadable_replies=(raw,))


def test_a_reply_that_is_not_text_is_a_fault():
    assert parse(None).unreadable_replies == ("None",)


def test_complete_items_of_a_truncated_reply_are_kept_and_the_truncation_reported():
    answer = parse('{"facts": ["User lives in Porto", "User wor')
    assert answer.items == ("User lives in Porto",)
    assert answer.unreadable_replies == ()
    assert "was truncated" in answer.warnings[0]


def test_items_over_the_limit_are_reported():
    answer = parse(json.dumps([f"fact {n}" for n in range(12)]), most=10)
    assert len(answer.items) == 10
    assert "12 items; the first 10 were read" in answer.warnings[0]
    assert len(answer.rejected) == 1


def test_a_bare_item_object_is_one_item():
    assert parse('{"fact": "User lives in Porto"}').items == ({"fact": "User lives in Porto"},)


def test_invalid_items_are_dropped_with_the_reason():
    answer = parse('["User lives in Porto", 7, "x"]')
    taken, after = convert_items(
        answer,
        "raw",
        lambda item: item if isinstance(item, str) and len(item) > 1 else RejectedItem("no"),
    )
    assert taken == ["User lives in Porto"]
    assert [(one.reason, one.text) for one in after.rejected] == [("no", "7"), ("no", '"x"')]
    assert after.unreadable_replies == ()


def test_a_reply_without_valid_items_is_a_fault():
    taken, after = convert_items(parse("[1, 2]"), "[1, 2]", lambda _: RejectedItem())
    assert taken == []
    assert after.unreadable_replies == ("[1, 2]",)
    assert {one.reason for one in after.rejected} == {MALFORMED}


@each_row(
    ("value", "text"),
    [
        ("  User\n lives\tin  Porto ", "User lives in Porto"),
        ("User\0lives", "User lives"),
        ("User\u200b lives\u202e here", "User lives here"),
        ("\u0928\u094d\u200d", "\u0928\u094d\u200d"),
        (7, "7"),
        (0.5, "0.5"),
        ("", None),
        (" \n", None),
        ("half \ud83d", None),
        (True, None),
        (None, None),
        (["x"], None),
        ("x" * 2001, None),
        ("x " * 200_000, None),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_a_line_is_clean_text_or_empty(value, text):
    assert to_line(value) == text


def test_an_overlong_number_is_ignored():
    assert to_line(10**5000) is None
    assert parse_confidence(10**5000, 0.8) == 0.8


@each_row(
    ("value", "number"),
    [
        (0.4, 0.4),
        ("0.4", 0.4),
        ("40%", 0.4),
        (-3, 0.0),
        (7, 1.0),
        ("high", 0.8),
        (None, 0.8),
        (True, 0.8),
        (float("nan"), 0.8),
        (float("inf"), 0.8),
        ([], 0.8),
    ],
)
def test_a_confidence_is_between_zero_and_one(value, number):
    assert parse_confidence(value, 0.8) == number


@each_row(
    ("value", "said"),
    [
        (True, True),
        ("true", True),
        (" Yes", True),
        (1, True),
        ("false", False),
        (0, False),
        ("?", None),
        (None, None),
    ],
)
def test_a_flag_can_be_written_as_a_word(value, said):
    assert parse_flag(value) is said


def test_duplicates_keep_the_first_and_are_counted():
    assert split_duplicates(["a", "B", "b", "A"], str.lower) == (["a", "B"], ["b", "A"])
    assert DUPLICATE
