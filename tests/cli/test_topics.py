"""The commands about topics, as somebody at a terminal meets them."""

import pytest

TALK = {
    "We use Redis for session caching.": "Noted, Redis holds the session cache.",
    "Session caching in Redis expires after a day.": "So the session cache in Redis is "
    "short-lived.",
    "My tomatoes on the balcony turn red.": "Tomatoes on a balcony like the sun.",
}


@pytest.fixture
def filed(told, sdk, monkeypatch):
    """Three exchanges of one user, in two topics."""
    knobs = {
        "EMBEDDER": "hash:256",
        "EXTRACT": "verbatim",
        "TOPIC_JOIN": "0.4",
        "TOPIC_GROUP": "0.01",
    }
    for name, value in knobs.items():
        monkeypatch.setenv(f"TOLD_{name}", value)
    for asked, answered in TALK.items():
        said = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        sdk("add", said, user_id="mara")
    told("consolidate", "-u", "mara", "--force")
    return told


def test_topics_are_listed_with_how_much_they_hold(filed, monkeypatch):
    shown = filed("topics", "list", "-u", "mara").out
    assert "We use Redis for session caching." in shown
    rows = filed("topics", "list", "-u", "mara", "--json").json["results"]
    assert [row["members"] for row in rows] == [2, 1]
    monkeypatch.setenv("COLUMNS", "60")
    assert all(row["id"] in filed("topics", "list", "-u", "mara").out for row in rows)


def test_a_topic_is_shown_with_its_turns(filed):
    [first, _] = filed("topics", "list", "-u", "mara", "--json").json["results"]
    shown = filed("topics", "show", first["id"]).out
    assert "Session caching in Redis expires" in shown
    assert "tomatoes" not in shown


def test_what_is_no_topic_is_said_to_be_none(filed):
    assert "There is no topic" in filed("topics", "show", "nothing", code=1).err


def test_filing_merging_and_abstracting_say_what_they_did(filed):
    assert filed("topics", "file", "--json").json == {
        "filed": 0,
        "made": 0,
        "split": 0,
        "warnings": [],
    }
    assert "No topics to merge" in filed("topics", "merge", "-u", "mara").out
    made = filed("topics", "abstract", "-u", "mara", "--json").json["results"]
    assert [len(row["parts"]) for row in made] in ([], [2])


def test_where_there_are_none_it_says_so(told):
    assert "No topics yet" in told("topics", "list", "-u", "mara").out
    assert "abstract" in told("topics").out
