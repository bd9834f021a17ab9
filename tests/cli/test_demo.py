"""`told demo`: everything it shows is true, it needs nothing, and it leaves nothing behind."""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from told import Memory
from told.cli.app import run
from told.text.dates import parse_instant
from told.tools import demo as demo_module
from told.tools.demo import DEMO_NOW, SECRET, STORE_FILE, load_story


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Return the folder in which the demo creates its temporary folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def demo(scratch, capsys):
    """Run the demo and return what it printed."""

    def call(*words: str, code: int = 0) -> str:
        ended = run(["demo", *words])
        out, err = capsys.readouterr()
        assert ended == code, out + err
        return out + err if code else out

    return call


@pytest.fixture
def acts(demo):
    """Return the calls of the demo and their results, without an embedder."""
    return json.loads(demo("--json", "--embedder", "none"))["acts"]


def results(acts, call: str) -> list:
    return [act["result"] for act in acts if call in act["call"]]


def test_story_is_in_order_and_ends_before_today():
    times = [parse_instant(line.at) for line in load_story()]
    assert times == sorted(times)
    assert times[-1] < DEMO_NOW
    assert len([line for line in load_story() if line.user == "mara"]) >= 25
    assert {line.user for line in load_story()} == {"mara", "jonas"}


def test_same_question_has_a_different_answer_as_of_march(acts):
    now, jonas, march = results(acts, "Where does Mara live?")
    assert now["results"][0]["memory"] == "User lives in Porto"
    assert march["results"][0]["memory"] == "User lives in Lisbon"
    assert march["results"][0]["id"] == now["results"][0]["id"]
    assert [row["user_id"] for row in jonas["results"]] == ["jonas"]


def test_detail_from_months_ago_is_found(acts):
    assert "ORB-88231" in results(acts, "frame number")[0]["results"][0]["memory"]


def test_event_time_and_record_time_differ(acts):
    unknown, held = results(acts, "papers")
    assert unknown["results"] == []
    assert "passport" in held["results"][0]["memory"]


def test_facts_are_found_and_a_new_home_replaces_the_old(acts):
    found, moved = results(acts, "memory.add")
    assert [row["event"] for row in found["results"]] == ["ADD", "ADD", "ADD"]
    assert [(row["event"], row["memory"]) for row in moved["results"]] == [
        ("UPDATE", "User lives in Braga")
    ]


def test_history_and_diff_keep_every_version(acts):
    before, after = results(acts, "memory.history")
    assert [row["event"] for row in before] == ["ADD", "UPDATE"]
    assert [row["new_memory"].split()[-1] for row in after] == ["Lisbon", "Porto", "Braga"]
    changed = results(acts, "memory.diff")[0]["changed"]
    assert [row["new_memory"].split()[1] for row in changed] == ["works", "lives"]


def test_a_contradiction_is_shown_with_both_sides(acts):
    (one,) = results(acts, "memory.contradictions")[0]["results"]
    assert {row["memory"].split()[-1] for row in one["memories"]} == {"Beja", "Évora"}


def test_explain_and_context_are_shown(acts):
    best = next(one for one in results(acts, "memory.explain")[0]["candidates"] if one["kept"])
    assert best["memory"] == "User's manager is Beatriz"
    assert best["parts"]["bm25"] > 0
    bundle = results(acts, "memory.context")[0]
    assert 0 < bundle["tokens"] <= bundle["budget"] == 140
    assert len(bundle["results"]) > 1


def test_erased_text_is_in_no_byte_of_the_file(acts):
    before, after = results(acts, "read_bytes")
    assert sum(before.values()) > 0
    assert sum(after.values()) == 0
    assert STORE_FILE in after
    assert results(acts, "memory.erase")[0]["entries"] > 0
    assert results(acts, "memory.verify")[0]["ok"]


def test_demo_leaves_no_files(demo, scratch, home):
    demo("--embedder", "none")
    assert list(scratch.iterdir()) == []
    assert list(home.rglob("*.db")) == []


def test_kept_demo_store_can_be_used(demo, tmp_path, scratch):
    folder = tmp_path / "kept"
    assert f"--store sqlite:///{folder / STORE_FILE}" in demo(
        "--embedder", "none", "--keep", str(folder)
    )
    assert all(SECRET.encode() not in file.read_bytes() for file in folder.iterdir())
    with Memory(f"sqlite:///{folder / STORE_FILE}", embedder="none") as memory:
        assert len(memory.get_all(user_id="mara")["results"]) > 15
        assert memory.verify()["ok"]


def test_non_empty_folder_is_rejected(demo, tmp_path):
    (tmp_path / "precious").write_text("mine")
    assert "not an empty folder" in demo("--keep", str(tmp_path), code=2)


@pytest.mark.parametrize("width", ["60", "100"])
def test_every_scene_is_printed_without_colours(demo, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = demo("--embedder", "none", "--no-color")
    assert not any(colour in shown for colour in ("\x1b[31m", "\x1b[32m", "\x1b[36m"))
    scenes = ("From words to facts", "Search", "Travel in time", "Change without losing", "Why?")
    for title in (*scenes, "Erase for good", "Try it yourself"):
        assert title in shown
    assert "words alone" in shown
    assert "✓ gone" in shown
    assert "✓ sound" in shown


def test_the_demo_names_the_embedder_it_found(demo):
    body = json.loads(demo("--json", "--embedder", "local:minilm"))
    assert body["embedder"] == "local:minilm"
    now, _, march = results(body["acts"], "Where does Mara live?")
    assert now["results"][0]["memory"] == "User lives in Porto"
    assert march["results"][0]["memory"] == "User lives in Lisbon"
    assert (
        results(body["acts"], "memory.explain")[0]["candidates"][0]["parts"]["cosine"] is not None
    )


def test_the_story_is_package_data():

    assert Path(demo_module.__file__).with_name("story.jsonl").is_file()


def test_suggested_commands_use_the_path_told_was_started_with(demo, monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/told"])
    monkeypatch.setenv("PATH", "")
    assert "  .venv/bin/told doctor\n" in demo("--embedder", "none")
