"""The commands for salience and forgetting."""

import pytest

from told import Memory
from told.cli import charts

COFFEE = "name: coffee\ntier: ephemeral\nweight: 0.9\n"


@pytest.fixture
def kinds(tmp_path, monkeypatch):
    """Define a kind that decays by turns."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "coffee.yaml").write_text(COFFEE)
    monkeypatch.setenv("TOLD_KINDS", str(folder))


@pytest.fixture
def coffee(run_cli, kinds):
    """Add a memory that fades within a few turns and return its id."""
    done = run_cli("add", "I could use a coffee", "-u", "alice", "--kind", "coffee", "--json").json
    return done["results"][0]["id"]


def add_turns(run_cli, turns):
    for number in range(turns):
        run_cli("add", f"We look at room {number}", "-u", "alice")


def test_about_shows_memories_with_salience_and_time_left(run_cli, coffee):
    run_cli("add", "I own a bicycle", "-u", "alice", "--source", "chat")
    shown = run_cli("about", "--user", "alice").out
    assert "I could use a coffee" in shown
    assert "fades in 3 turns" in shown
    assert "source chat" in shown
    assert "fades in 418 days" in shown
    assert shown.splitlines()[0].strip() == "memory"


def test_about_as_json_equals_the_sdk_result(run_cli, sdk, coffee):
    ours, theirs = run_cli("about", "-u", "alice", "--json").json, sdk("about", user_id="alice")
    assert (
        [row["id"] for row in ours["results"]]
        == [row["id"] for row in theirs["results"]]
        == [coffee]
    )
    assert ours["results"][0]["words"] == "I could use a coffee"


def test_about_an_unknown_user_is_empty(run_cli):
    assert "Nothing is remembered" in run_cli("about", "-u", "nobody").out
    assert run_cli("about", "--json", code=2).error["error"] == "ScopeError"


def test_decay_draws_the_curve(run_cli, coffee):
    add_turns(run_cli, 1)
    shown = run_cli("decay", coffee, "--points", "40").out
    assert shown.splitlines()[0] == "I could use a coffee"
    assert "coffee · ephemeral · by turns · weighs 0.50 · fades in 3 turns" in shown
    assert "█" in shown
    assert "┄" in shown
    assert "▲ said  ● now, after 1 turn" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_decay_can_be_drawn_in_ascii(run_cli, coffee, monkeypatch):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda _: True))
    shown = run_cli("decay", coffee, "--no-color").out
    chart = shown.splitlines()[3:]
    assert all(line.isascii() for line in chart)
    assert any("#" in line for line in chart)


def test_decay_as_json_equals_the_sdk_result(run_cli, coffee, store):
    ours = run_cli("decay", coffee, "--points", "3", "--clock", "time", "--json").json
    assert (ours["id"], ours["clock"], len(ours["curve"])) == (coffee, "time", 3)
    assert run_cli("decay", "nothing", code=1).err


def test_forget_removes_faded_memories(run_cli, coffee):
    assert "Nothing has faded" in run_cli("forget", "-u", "alice").out
    add_turns(run_cli, 4)
    shown = run_cli("forget", "-u", "alice").out
    assert "I could use a coffee" in shown
    assert "0.08" in shown
    assert run_cli("get", coffee, code=1).err


def test_forget_removes_one_memory_by_id(run_cli, coffee):
    [lost] = run_cli("forget", coffee, "--json").json["results"]
    assert (lost["id"], lost["salience"]) == (coffee, 0.9)


def test_narrow_curve_keeps_its_first_and_last_point():
    assert charts.sample_weights([4.0, 3.0, 2.0, 1.0, 0.0], 3) == [4.0, 2.0, 0.0]
    assert charts.sample_weights([1.0, 0.5], 2) == [1.0, 0.5]


@pytest.mark.parametrize(
    ("number", "words"),
    [(1.0, "1 turn"), (0.25, "0.2 turns"), (12.7, "13 turns"), (3.0, "3 turns")],
)
def test_amounts_are_formatted_for_people(number, words):
    assert charts.format_amount(number, "turns") == words


def test_fade_date_is_omitted_without_a_clock_to_predict_it(store, kinds):
    with Memory(store, embedder="none") as memory:
        [made] = memory.add("A cup of tea", user_id="bob", kind="coffee")["results"]
        fades = memory.decay(made["id"])["fades_at"]
    assert (fades["time"], fades["left"]) == (None, 4.0)
