"""Reading evaluation files: required and optional fields, and error messages."""

import json
import os
from pathlib import Path

import pytest

from told.errors import InvalidInput
from told.tools.evaluate.data import load_conversations

TURN = {"id": "t1", "date": "2026-02-03", "speaker": "Nora", "text": "Plot 17"}
LATER = {
    "id": "t2",
    "date": "2026-03-03T09:00:00+01:00",
    "speaker": "user",
    "text": " Plot  18 ",
    "session": "s",
}
ASKED = {"text": "Which plot?", "evidence": ["t1"]}


@pytest.fixture
def file(tmp_path):
    """Write a file and return its path."""

    def write(body) -> Path:
        path = tmp_path / "chats.json"
        path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
        return path

    return write


def conversation(turns=(TURN, LATER), questions=(ASKED,), **more):
    return {"id": "c1", "turns": list(turns), "questions": list(questions), **more}


def test_a_minimal_file_is_read(file):
    (one,) = load_conversations(file([conversation()]))
    first, second = one.turns
    assert (first.session, first.caption, first.has_role_only) == ("2026-02-03", "", False)
    assert (second.session, second.text, second.has_role_only) == ("s", " Plot  18 ", True)
    (asked,) = one.questions
    assert (asked.id, asked.category, asked.answer) == ("q1", "questions", "")
    assert asked.answerable
    assert asked.is_measurable


def test_a_file_with_every_field_is_read(file):
    turn = {**TURN, "image_caption": "a pear tree"}
    asked = {
        "id": "x",
        "text": "Which?",
        "category": "fact",
        "answer": 17,
        "evidence": ["t1", "t2", "t1"],
        "answerable": True,
        "date": "2026-04-01",
        "oldest": ["t1"],
        "newest": ["t2"],
    }
    (one,) = load_conversations(file([conversation([turn, LATER], [asked], speakers=["Nora"])]))
    assert one.turns[0].content == "Plot 17 [shares a pear tree]"
    assert (one.questions[0].answer, one.questions[0].evidence) == ("17", ("t1", "t2"))
    assert one.questions[0].superseded == ("t1",)


def test_null_means_absent(file):
    (one,) = load_conversations(
        file([conversation([{**TURN, "session": None}], [{**ASKED, "date": None}])])
    )
    assert one.questions[0].date is None


def test_an_unanswerable_question_needs_no_evidence(file):
    (one,) = load_conversations(
        file([conversation(questions=[{"text": "Which dog?", "answerable": False}])])
    )
    assert not one.questions[0].is_measurable


def test_the_newest_evidence_of_an_update_is_from_its_latest_session(file):
    """Instants are compared: a later wall clock time in another zone may be earlier."""
    turns = [
        {**TURN, "id": "new", "date": "2026-02-03T08:00:00Z", "session": "b"},
        {**TURN, "id": "old", "date": "2026-02-03T09:00:00+05:00", "session": "a"},
    ]
    asked = {"text": "Which?", "category": "knowledge_update", "evidence": ["old", "new"]}
    (one,) = load_conversations(file([conversation(turns, [asked])]))
    assert (one.questions[0].oldest, one.questions[0].newest) == (("old",), ("new",))


def test_a_naive_time_needs_a_zone(file):
    path = file([conversation([{**TURN, "date": "2026-02-03T09:00:00"}])])
    with pytest.raises(InvalidInput, match=r"turns\.0\.date"):
        load_conversations(path)
    assert load_conversations(path, zone="Europe/Berlin")[0].turns[0].date == "2026-02-03T09:00:00"


def test_the_number_of_conversations_read_can_be_limited(file):
    path = file([conversation(), {"id": "broken"}])
    assert [one.id for one in load_conversations(path, max_count=1)] == ["c1"]
    with pytest.raises(InvalidInput, match=r"conversation 'broken'\.turns: missing"):
        load_conversations(path)


def without(row, key):
    return {name: value for name, value in row.items() if name != key}


def turns(*rows):
    return [conversation(rows)]


def questions(*rows):
    return [conversation(questions=rows)]


ERRORS = {
    "not JSON": ("[{", "chats.json is not JSON"),
    "a key twice": ('[{"id": "a", "id": "b"}]', "the key 'id' appears twice"),
    "no list": ({}, "chats.json: found {}; allowed: a list of conversations"),
    "an empty list": ([], "a list of conversations"),
    "no conversation": ([1], "chats.json: 0: found 1"),
    "no id": ([{"turns": [], "questions": []}], "chats.json: 0.id: missing"),
    "the same conversation twice": ([conversation(), conversation()], "1.id: found 'c1'"),
    "an unknown key": ([conversation(turn=[])], "Did you mean 'turns'?"),
    "turns of another type": (
        [{**conversation(), "turns": {}}],
        "conversation 'c1'.turns: found {}",
    ),
    "a turn without a text": (
        turns(without(TURN, "text")),
        "conversation 'c1'.turns.0.text: missing",
    ),
    "a turn without a word": (
        turns({**TURN, "text": " "}),
        "turns.0.text: found ' '; allowed: a non-empty text",
    ),
    "a number as an id": (turns({**TURN, "id": 1}), "turns.0.id: found 1"),
    "a turn twice": (
        turns(TURN, TURN),
        "conversation 'c1'.turns.1.id: found 't1'; allowed: an id no other turn",
    ),
    "a time nobody can read": (
        turns({**TURN, "date": "soon"}),
        "turns.0.date: found 'soon'; allowed: a date",
    ),
    "evidence that is not there": (
        questions({**ASKED, "evidence": ["t12"]}),
        "conversation 'c1'.questions.0.evidence.0: found 't12'",
    ),
    "evidence misspelled": (questions({**ASKED, "evidence": ["T1"]}), "Did you mean 't1'?"),
    "no evidence": (questions(without(ASKED, "evidence")), "or `answerable: false`"),
    "a question without a text": (questions(without(ASKED, "text")), "questions.0.text: missing"),
    "two questions of one id": (
        questions({**ASKED, "id": "q"}, {**ASKED, "id": "q"}),
        "questions.1.id: found 'q'",
    ),
    "neither true nor false": (
        questions({**ASKED, "answerable": "no"}),
        "questions.0.answerable: found 'no'",
    ),
}


@pytest.mark.parametrize(("body", "says"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_names_its_location(body, says, file):
    with pytest.raises(InvalidInput) as caught:
        load_conversations(file(body))
    assert says in str(caught.value)


def test_a_missing_or_binary_file_is_rejected(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_conversations(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not JSON"):
        load_conversations(tmp_path / "binary.json")


@pytest.mark.parametrize("name", ["locomo.json", "beam_100k.json", "longmemeval_pooled.json"])
def test_the_public_data_is_read_without_errors(name):
    path = Path(os.environ.get("TOLD_EVAL_DATA", "")) / name
    if "TOLD_EVAL_DATA" not in os.environ or not path.is_file():
        pytest.skip("TOLD_EVAL_DATA names no folder with this file")
    assert (
        sum(
            one.is_measurable
            for conversation in load_conversations(path)
            for one in conversation.questions
        )
        > 100
    )
