"""The commands of the sleep path, as somebody at a terminal meets them."""

import json
import time

import pytest


@pytest.fixture
def tea(told):
    """A memory that was recalled once."""
    (row,) = told("add", "I like tea", "-u", "mara", "--json").json["results"]
    told("search", "tea", "-u", "mara")
    return row["id"]


def test_recalls_shows_when_a_memory_was_recalled(told, sdk, tea):
    assert told("recalls", tea, "-u", "mara", "--json").json == sdk("recalls", tea, user_id="mara")
    shown = told("recalls", tea).out
    assert sdk("recalls", tea)["results"][0]["query_hash"] in shown


def test_a_memory_that_nobody_recalled_says_so(told):
    (row,) = told("add", "I like tea", "-u", "mara", "--json").json["results"]
    assert "Never recalled" in told("recalls", row["id"]).out
    assert "Nothing is queued" in told("reconsolidate", "queue").out


def test_what_is_queued_is_listed_and_run(told, tea, monkeypatch):
    assert told("reconsolidate", "enqueue", tea, "--priority", "0.5", "--json").json == {
        "id": tea,
        "queued": True,
    }
    rows = told("reconsolidate", "queue", "--json").json["results"]
    assert sorted(row["reason"] for row in rows) == ["explicit", "recall"]
    monkeypatch.setenv("COLUMNS", "80")
    shown = told("reconsolidate", "queue").out
    assert "I like tea" in shown
    assert f" {tea}\n" in shown
    assert "0.50" in shown
    assert told("reconsolidate", "run", "--limit", "1", "--json").json["tasks"] == 1
    assert "tasks" in told("reconsolidate", "run").out
    assert "Nothing is queued" in told("reconsolidate", "queue").out


def test_a_delta_is_applied_from_an_argument_or_from_standard_input(told, sdk, tea):
    delta = {"op": "update_confidence", "id": tea, "confidence": 0.5, "lane": "human"}
    told("reconsolidate", "apply", json.dumps(delta), "-u", "mara")
    assert sdk("get", tea)["confidence"] == 0.5
    told(
        "reconsolidate",
        "apply",
        "-",
        "-u",
        "mara",
        stdin=json.dumps([{**delta, "confidence": 0.25}]),
    )
    assert sdk("get", tea)["confidence"] == 0.25


def test_a_bad_delta_is_bad_input(told, tea):
    failed = told(
        "reconsolidate", "apply", json.dumps({"op": "rewrite", "id": tea}), "--json", code=2
    )
    assert "There is no operation 'rewrite'" in json.dumps(failed.error)
    assert told("reconsolidate", "apply", "{", code=2).err


def test_watching_looks_again_until_it_is_stopped(told, tea, monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", nap)
    told("reconsolidate", "run", "--watch", code=130)
    assert naps == [5.0, 5.0]
    assert "Nothing is queued" in told("reconsolidate", "queue").out


def test_the_group_by_itself_says_what_there_is(told):
    shown = told("reconsolidate").out
    assert all(name in shown for name in ("enqueue", "queue", "run", "apply"))
