"""The commands about forgetting: what people see of what is remembered, how it fades, and what was
let go.
"""

import pytest

from told import Memory
from told.cli import charts

COFFEE = "name: coffee\ntier: ephemeral\nweight: 0.9\n"


@pytest.fixture
def kinds(tmp_path, monkeypatch):
    """A kind that fades by turns."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "coffee.yaml").write_text(COFFEE)
    monkeypatch.setenv("TOLD_KINDS", str(folder))


@pytest.fixture
def coffee(told, kinds):
    """The id of a memory that fades within a few turns."""
    done = told("add", "I could use a coffee", "-u", "alice", "--kind", "coffee", "--json").json
    return done["results"][0]["id"]


def talk(told, turns):
    for number in range(turns):
        told("add", f"We look at room {number}", "-u", "alice")


def test_about_shows_what_is_remembered_how_strong_and_for_how_long(told, coffee):
    told("add", "I own a bicycle", "-u", "alice", "--source", "chat")
    shown = told("about", "--user", "alice").out
    assert "I could use a coffee" in shown
    assert "fades in 3 turns" in shown
    assert "source chat" in shown
    assert "fades in 418 days" in shown
    assert shown.splitlines()[0].strip() == "memory"


def test_about_is_for_machines_what_the_sdk_says(told, sdk, coffee):
    ours, theirs = told("about", "-u", "alice", "--json").json, sdk("about", user_id="alice")
    assert (
        [row["id"] for row in ours["results"]]
        == [row["id"] for row in theirs["results"]]
        == [coffee]
    )
    assert ours["results"][0]["words"] == "I could use a coffee"


def test_about_nobody_is_nothing(told):
    assert "Nothing is remembered" in told("about", "-u", "nobody").out
    assert told("about", "--json", code=2).error["error"] == "ScopeError"


def test_decay_draws_the_curve(told, coffee):
    talk(told, 1)
    shown = told("decay", coffee, "--points", "40").out
    assert shown.splitlines()[0] == "I could use a coffee"
    assert "coffee · ephemeral · by turns · weighs 0.50 · fades in 3 turns" in shown
    assert "█" in shown
    assert "┄" in shown
    assert "▲ said  ● now, after 1 turn" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_decay_needs_no_more_than_plain_letters(told, coffee, monkeypatch):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda _: True))
    shown = told("decay", coffee, "--no-color").out
    chart = shown.splitlines()[3:]
    assert all(line.isascii() for line in chart)
    assert any("#" in line for line in chart)


def test_decay_is_for_machines_what_the_sdk_says(told, coffee, store):
    ours = told("decay", coffee, "--points", "3", "--clock", "time", "--json").json
    assert (ours["id"], ours["clock"], len(ours["curve"])) == (coffee, "time", 3)
    assert told("decay", "nothing", code=1).err


def test_forget_lets_go_of_what_has_faded(told, coffee):
    assert "Nothing has faded" in told("forget", "-u", "alice").out
    talk(told, 4)
    shown = told("forget", "-u", "alice").out
    assert "I could use a coffee" in shown
    assert "0.08" in shown
    assert told("get", coffee, code=1).err


def test_forget_lets_go_of_one_at_once(told, coffee):
    [lost] = told("forget", coffee, "--json").json["results"]
    assert (lost["id"], lost["salience"]) == (coffee, 0.9)


def test_a_curve_has_its_first_and_its_last_point_however_narrow_it_is():
    assert charts.sample_weights([4.0, 3.0, 2.0, 1.0, 0.0], 3) == [4.0, 2.0, 0.0]
    assert charts.sample_weights([1.0, 0.5], 2) == [1.0, 0.5]


@pytest.mark.parametrize(
    ("number", "words"),
    [(1.0, "1 turn"), (0.25, "0.2 turns"), (12.7, "13 turns"), (3.0, "3 turns")],
)
def test_amounts_are_said_as_people_say_them(number, words):
    assert charts.format_amount(number, "turns") == words


def test_what_has_no_clock_to_guess_by_names_no_day(store, kinds):
    with Memory(store, embedder="none") as memory:
        [made] = memory.add("A cup of tea", user_id="bob", kind="coffee")["results"]
        fades = memory.decay(made["id"])["fades_at"]
    assert (fades["time"], fades["left"]) == (None, 4.0)
