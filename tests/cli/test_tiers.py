"""The commands about the tiers, as somebody at a terminal meets them."""

import io
import json

import pytest
from rich.console import Console

from told.cli import fading

CHAT = "haha that's so funny"


@pytest.fixture
def talked(told, monkeypatch):
    """A conversation of which one turn has left a tail of two."""
    monkeypatch.setenv("TOLD_TAIL_SIZE", "2")
    for text in (CHAT, "We keep sessions in Redis 7", "The deadline is March 3"):
        told("add", text, "-u", "mara")


def test_what_is_said_can_be_consolidated_for_one_user_or_for_everybody(told, sdk, talked):
    done = told("consolidate", "-u", "mara", "--json").json
    assert (done["left"], done["dropped"], done["filed"]) == (1, 1, 0)
    assert told("consolidate", "--force", "--json").json["filed"] == 2
    assert CHAT not in [row["memory"] for row in sdk("get_all", user_id="mara")["results"]]


def test_people_see_figures(told, talked):
    shown = told("consolidate", "--user", "mara", "--force").out.splitlines()
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


def test_the_tiers_are_plain_lines_in_a_pipe(told, talked):
    shown = told("tiers", "-u", "mara").out.splitlines()
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


def test_the_tiers_are_a_panel_on_a_terminal(told, sdk, talked):
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(fading.render_tier_panel(sdk("tiers", user_id="mara")))
    drawn = console.export_text()
    assert "tiers" in drawn.splitlines()[0]
    assert "The deadline is March 3" in drawn
    assert "2 turns" in drawn


def test_the_tiers_as_json_are_what_the_sdk_returns(told, sdk, talked):
    assert told("tiers", "-u", "mara", "--json").json == json.loads(
        json.dumps(sdk("tiers", user_id="mara"))
    )


def test_the_registry_lists_exchanges_with_their_summaries(told, talked):
    assert "No exchange is archived yet." in told("registry", "-u", "mara").out
    told("consolidate", "--force")
    shown = told("registry", "-u", "mara", "--limit", "1").out
    assert "User: The deadline is March 3" in shown
    assert "Redis" not in shown
    assert len(told("registry", "-u", "mara", "--json").json["results"]) == 2


def test_whose_tiers_has_to_be_said(told):
    assert "user_id" in told("tiers", code=2).err
