"""The commands for reconsolidation."""

import json
import time

import pytest


@pytest.fixture
def tea(run_cli):
    """Add a memory and recall it once."""
    (row,) = run_cli("add", "I like tea", "-u", "mara", "--json").json["results"]
    run_cli("search", "tea", "-u", "mara")
    return row["id"]


def test_recalls_shows_when_a_memory_was_recalled(run_cli, sdk, tea):
    assert run_cli("recalls", tea, "-u", "mara", "--json").json == sdk(
        "recalls", tea, user_id="mara"
    )
    shown = run_cli("recalls", tea).out
    assert sdk("recalls", tea)["results"][0]["query_hash"] in shown


def test_memory_without_recalls_says_so(run_cli):
    (row,) = run_cli("add", "I like tea", "-u", "mara", "--json").json["results"]
    assert "Never recalled" in run_cli("recalls", row["id"]).out
    assert "Nothing is queued" in run_cli("reconsolidate", "queue").out


def test_queue_is_listed_and_run(run_cli, tea, monkeypatch):
    assert run_cli("reconsolidate", "enqueue", tea, "--priority", "0.5", "--json").json == {
        "id": tea,
        "queued": True,
    }
    rows = run_cli("reconsolidate", "queue", "--json").json["results"]
    assert sorted(row["reason"] for row in rows) == ["explicit", "recall"]
    monkeypatch.setenv("COLUMNS", "80")
    shown = run_cli("reconsolidate", "queue").out
    assert "I like tea" in shown
    assert f" {tea}\n" in shown
    assert "0.50" in shown
    assert run_cli("reconsolidate", "run", "--limit", "1", "--json").json["tasks"] == 1
    assert "tasks" in run_cli("reconsolidate", "run").out
    assert "Nothing is queued" in run_cli("reconsolidate", "queue").out


def test_delta_is_applied_from_an_argument_or_standard_input(run_cli, sdk, tea):
    delta = {"op": "update_confidence", "id": tea, "confidence": 0.5, "lane": "human"}
    run_cli("reconsolidate", "apply", json.dumps(delta), "-u", "mara")
    assert sdk("get", tea)["confidence"] == 0.5
    run_cli(
        "reconsolidate",
        "apply",
        "-",
        "-u",
        "mara",
        stdin=json.dumps([{**delta, "confidence": 0.25}]),
    )
    assert sdk("get", tea)["confidence"] == 0.25


def test_invalid_delta_is_rejected(run_cli, tea):
    failed = run_cli(
        "reconsolidate", "apply", json.dumps({"op": "rewrite", "id": tea}), "--json", code=2
    )
    assert "There is no operation 'rewrite'" in json.dumps(failed.error)
    assert run_cli("reconsolidate", "apply", "{", code=2).err


def test_watch_polls_until_it_is_stopped(run_cli, tea, monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", nap)
    run_cli("reconsolidate", "run", "--watch", code=130)
    assert naps == [5.0, 5.0]
    assert "Nothing is queued" in run_cli("reconsolidate", "queue").out


def test_group_without_a_command_lists_the_commands(run_cli):
    shown = run_cli("reconsolidate").out
    assert all(name in shown for name in ("enqueue", "queue", "run", "apply"))
