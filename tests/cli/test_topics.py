"""The commands for topics."""

import pytest

TALK = {
    "We use Redis for session caching.": "Noted, Redis holds the session cache.",
    "Session caching in Redis expires after a day.": "So the session cache in Redis is "
    "short-lived.",
    "My tomatoes on the balcony turn red.": "Tomatoes on a balcony like the sun.",
}


@pytest.fixture
def run_with_topics(run_cli, sdk, monkeypatch):
    """File three exchanges of one user into two topics; return the command runner."""
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
    run_cli("consolidate", "-u", "mara", "--force")
    return run_cli


def test_topics_are_listed_with_their_sizes(run_with_topics, monkeypatch):
    shown = run_with_topics("topics", "list", "-u", "mara").out
    assert "We use Redis for session caching." in shown
    rows = run_with_topics("topics", "list", "-u", "mara", "--json").json["results"]
    assert [row["members"] for row in rows] == [2, 1]
    monkeypatch.setenv("COLUMNS", "60")
    assert all(row["id"] in run_with_topics("topics", "list", "-u", "mara").out for row in rows)


def test_topic_is_shown_with_its_turns(run_with_topics):
    [first, _] = run_with_topics("topics", "list", "-u", "mara", "--json").json["results"]
    shown = run_with_topics("topics", "show", first["id"]).out
    assert "Session caching in Redis expires" in shown
    assert "tomatoes" not in shown


def test_unknown_topic_is_not_found(run_with_topics):
    assert "There is no topic" in run_with_topics("topics", "show", "nothing", code=1).err


def test_filing_merging_and_abstracting_report_their_work(run_with_topics):
    assert run_with_topics("topics", "file", "--json").json == {
        "filed": 0,
        "made": 0,
        "split": 0,
        "warnings": [],
    }
    assert "No topics to merge" in run_with_topics("topics", "merge", "-u", "mara").out
    made = run_with_topics("topics", "abstract", "-u", "mara", "--json").json["results"]
    assert [len(row["parts"]) for row in made] in ([], [2])


def test_empty_list_of_topics_says_so(run_cli):
    assert "No topics yet" in run_cli("topics", "list", "-u", "mara").out
    assert "abstract" in run_cli("topics").out
