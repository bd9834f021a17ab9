"""The commands for the tiers."""

import io
import json

import pytest
from rich.console import Console

from told.cli import charts

CHAT = "haha that's so funny"


@pytest.fixture
def conversation(run_cli, monkeypatch):
    """Add a conversation with one turn more than its tail of two holds."""
    monkeypatch.setenv("TOLD_TAIL_SIZE", "2")
    for text in (CHAT, "We keep sessions in Redis 7", "The deadline is March 3"):
        run_cli("add", text, "-u", "mara")


def test_consolidate_runs_for_one_user_or_for_all(run_cli, sdk, conversation):
    done = run_cli("consolidate", "-u", "mara", "--json").json
    assert (done["left"], done["dropped"], done["filed"]) == (1, 1, 0)
    assert run_cli("consolidate", "--force", "--json").json["filed"] == 2
    assert CHAT not in [row["memory"] for row in sdk("get_all", user_id="mara")["results"]]


def test_consolidate_prints_figures(run_cli, conversation):
    shown = run_cli("consolidate", "--user", "mara", "--force").out.splitlines()
    assert [line.split() for line in shown] == [
        ["judged", "0"],
        ["returned", "0"],
        ["left", "3"],
        ["dropped", "1"],
        ["summarised", "0"],
        ["filed", "2"],
        ["topics", "0"],
        ["forgotten", "0"],
    ]


def test_piped_tiers_are_plain_lines(run_cli, conversation):
    shown = run_cli("tiers", "-u", "mara").out.splitlines()
    assert [line.split(maxsplit=1)[0] for line in shown] == [
        "tail",
        "index",
        "hot",
        "registry",
        "topics",
    ]
    assert "2 turns" in shown[0]
    assert "1 turns, 0 cold" in shown[1]
    assert "0 exchanges" in shown[3]


def test_tiers_are_a_panel_on_a_terminal(run_cli, sdk, conversation):
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(charts.render_tier_panel(sdk("tiers", user_id="mara")))
    drawn = console.export_text()
    assert "tiers" in drawn.splitlines()[0]
    assert "The deadline is March 3" in drawn
    assert "2 turns" in drawn


def test_tiers_as_json_equal_the_sdk_result(run_cli, sdk, conversation):
    assert run_cli("tiers", "-u", "mara", "--json").json == json.loads(
        json.dumps(sdk("tiers", user_id="mara"))
    )


def test_registry_lists_exchanges_with_their_summaries(run_cli, conversation):
    assert "No exchange is archived yet." in run_cli("registry", "-u", "mara").out
    run_cli("consolidate", "--force")
    shown = run_cli("registry", "-u", "mara", "--limit", "1").out
    assert "User: The deadline is March 3" in shown
    assert "Redis" not in shown
    assert len(run_cli("registry", "-u", "mara", "--json").json["results"]) == 2


def test_tiers_require_a_scope(run_cli):
    assert "user_id" in run_cli("tiers", code=2).err
