"""The command line beyond the memory verbs: care, help, models, errors, and words that must not
steer a terminal.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from told import Memory, __version__
from told.api.spec import VERBS
from told.api.verb import Interface
from told.cli import models as models_module
from told.settings import SETTING_FIELDS

TOLD = Path(sys.executable).with_name("told")


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


# Looking after a store


def test_verify_proves_a_sound_ledger(told, sdk, moved):
    assert told("verify", "--json").json == sdk("verify")
    assert "sound" in told("verify").out


def tamper(store: str) -> None:
    with apsw.Connection(store.removeprefix("sqlite:///")) as db:
        db.execute("DROP TRIGGER entry_append_only")
        db.execute("UPDATE entry SET at = at + 1 WHERE id = (SELECT max(id) FROM entry)")


def test_verify_ends_with_three_on_a_ledger_that_was_touched(told, store, moved):
    tamper(store)
    body = told("verify", "--json", code=3).json
    assert not body["ok"]
    assert body["first_bad_seq"] == 2
    assert "not sound" in told("verify", code=3).out


def test_rebuild_folds_the_views_again(told, sdk, moved):
    assert told("rebuild", "--json").json == sdk("rebuild")
    assert set(told("rebuild", "facts", "links", "--json").json["rebuilt"]) == {"facts", "links"}
    assert "Views:" in told("rebuild", "walls", code=2).err


def test_reindex_embeds_what_has_no_vector(told, moved):
    assert "models install" in told("reindex", code=1).err
    done = told("reindex", "--embedder", "local:minilm", "--json").json
    assert done == {"embedded": 1, "model": "local:minilm", "dim": 384}
    assert told("reindex", "--embedder", "local:minilm", "--json").json["embedded"] == 0


def test_stats_counts(told, sdk, moved):
    assert told("stats", "--json").json == sdk("stats")
    assert "entries" in told("stats").out
    assert "model            none" in told("stats").out
    told("reindex", "--embedder", "hash")
    assert "hash" in told("stats").out
    assert "{" not in told("stats").out


def test_an_export_is_imported_elsewhere_and_exported_the_same(told, sdk, moved, tmp_path):
    first, second, other = (
        tmp_path / "a.jsonl",
        tmp_path / "b.jsonl",
        f"sqlite:///{tmp_path / 'other.db'}",
    )
    assert told("export", str(first), "--json").json == {"entries": 2, "path": str(first)}
    assert told("import", str(first), "--store", other, "--json").json == {"entries": 2}
    told("export", str(second), "--store", other)
    assert first.read_bytes() == second.read_bytes()
    assert told("list", "-u", "alice", "--store", other, "--json").json == sdk(
        "get_all", user_id="alice"
    )


def test_an_export_goes_through_a_pipe(told, moved, tmp_path):
    exported = told("export").out
    assert exported == told("export", "-").out
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert told("import", "-", "--store", other, "--json", stdin=exported).json == {"entries": 2}
    assert "0 new entries" in told("import", "-", "--store", other, stdin=exported).out


def test_an_export_does_not_overwrite_unasked(told, moved, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("precious")
    told("export", str(file), stdin="n\n", code=1)
    assert file.read_text() == "precious"
    told("export", str(file), "--yes")
    assert file.read_text() != "precious"


def test_an_export_is_its_owners_alone_and_never_takes_the_place_of_the_store(
    told, store, moved, tmp_path
):
    told("export", str(tmp_path / "mine.jsonl"))
    assert (tmp_path / "mine.jsonl").stat().st_mode & 0o077 == 0
    assert (
        "belongs to a database"
        in told("export", store.removeprefix("sqlite:///"), "--yes", code=2).err
    )
    assert told("verify", "--json").json["ok"]


def test_nobody_is_asked_about_a_folder_or_a_device(told, moved, tmp_path):
    assert "Is a directory" in told("export", str(tmp_path), code=2).err
    assert "entries → /dev/null" in told("export", "/dev/null").out


def test_what_is_no_export_is_refused(told, tmp_path):
    (tmp_path / "x").write_text("hello\n")
    assert "not a told export" in told("import", str(tmp_path / "x"), code=2).err
    told("import", str(tmp_path / "absent"), code=2)


def test_a_backup_is_a_store(told, sdk, moved, tmp_path):
    copy = tmp_path / "copy.db"
    assert told("backup", str(copy), "--json").json == {"path": str(copy)}
    assert told("list", "-u", "alice", "--store", f"sqlite:///{copy}", "--json").json == sdk(
        "get_all", user_id="alice"
    )
    assert "exists already" in told("backup", str(copy), code=2).err


def test_users_are_listed_for_people_and_for_machines(told, sdk):
    assert told("users").out == "No users, agents or runs.\n"
    told("add", "I like rain", "-u", "mara", "-a", "editor")
    told("add", "I like sun", "-u", "mara")
    rows = [line.split() for line in told("users").out.splitlines()]
    assert rows[0] == ["who", "name", "memories", "first", "last"]
    assert [row[:3] for row in rows[2:]] == [["user", "mara", "2"], ["agent", "editor", "1"]]
    assert told("users", "--type", "agent", "--json").json == sdk("users", type="agent")
    assert "Did you mean 'user'?" in told("users", "-t", "users", code=2).err


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_names_of_users_are_whole_and_their_figures_readable_on_a_narrow_terminal(
    columns, told, monkeypatch
):
    name = "01a1e2a4-b797-7104-87b3-8bd6b6ba0da4"
    for user in (name, "bob"):
        told("add", "I like tea", "-u", user)
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line.strip() for line in told("users").out.splitlines()]
    assert name in lines
    assert any(line.startswith("user, 1 memory, 20") for line in lines)
    assert max(map(len, lines)) <= int(columns)


def test_who_erases_nobody_is_told_where_to_look(told):
    assert "`told users`" in told("erase", "-u", "nobody", "--yes", code=1).err


def test_an_unknown_kind_is_a_warning_beside_what_was_done(told):
    done = told("add", "I like rain", "-u", "mara", "--kind", "prefrence")
    assert "Did you mean 'preference'?" in done.err
    assert "Did you mean" not in told("add", "I like sun", "-u", "mara", "--kind", "prefrence").err
    assert "Did you mean 'prefrence'?" in told("list", "-u", "mara", "--kind", "prefrense").err
    assert told("list", "-u", "mara", "--kind", "evnt", "--json").json["warnings"]


# About told


def test_a_store_that_is_made_by_opening_it_is_named_once(told, tmp_path):
    file = tmp_path / "typo.db"
    first, second = (told("list", "-u", "alice", "--store", f"sqlite:///{file}") for _ in range(2))
    assert (first.out, first.err) == ("Nothing found.\n", f"a new store: {file}\n")
    assert second.err == ""
    assert told("list", "-u", "alice", "--store", "ram://").err == ""


def test_where_prints_the_places(told, store, home, monkeypatch):
    monkeypatch.setenv("TOLD_MODELS", str(home / "models"))
    body = told("where", "--json").json
    places = {"data": str(home / ".data" / "told"), "models": str(home / "models")}
    assert body == {"store": store, "config": None, **places}
    monkeypatch.setenv("COLUMNS", "20")
    assert f"{store}\n" in told("where").out


def test_config_prints_every_setting_and_its_origin(told, store, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    file = home / ".config" / "told" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("budget: 500\n")
    values = told("config", "--json").json
    assert list(values) == list(SETTING_FIELDS)
    assert (values["budget"], values["store"]) == (500, store)
    origins = told("config", "--origin", "--json", "--zone", "Europe/Berlin").json
    assert origins["budget"] == {"value": 500, "origin": str(file)}
    assert origins["store"]["origin"] == "TOLD_STORE"
    assert origins["zone"]["origin"] == "argument"
    assert origins["limit"]["origin"] == "default"
    assert str(file) in told("config", "--origin").out


def test_config_spells_a_setting_as_a_file_does(told, home):
    assert "llm_timeout" in told("config").out


def test_a_mistyped_setting_is_answered_with_the_one_meant(told, home):
    file = home / ".config" / "told" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("buget: 500\n")
    assert "Did you mean `budget`?" in told("config", code=2).err


def test_version_names_what_told_stands_on(told):
    body = told("version", "--json").json
    assert body["told"] == __version__
    assert body["python"] == ".".join(map(str, sys.version_info[:3]))
    assert body["sqlite"] == apsw.sqlite_lib_version()
    assert {"apsw", "numpy", "onnxruntime"} <= body.keys()
    assert __version__ in told("version").out
    assert told("--version").out == f"{__version__}\n"


@pytest.mark.parametrize(
    "words", [["version"], ["--help"], ["search", "--help"], ["help", "--json"], ["config"]]
)
def test_small_questions_load_nothing_heavy(words):
    code = (
        f"import sys\nfrom told.cli.app import run\nassert run({words!r}) == 0\n"
        "print(sorted({'numpy', 'onnxruntime', 'apsw', 'told.engine'} & set(sys.modules)), "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def test_help_is_there_for_every_command_and_names_the_exit_codes(told):
    tree = told("help", "--json").json
    for name in tree["commands"]:
        assert "Usage:" in told(name, "--help").out
    shown = told("--help").out
    assert all(name in shown for name in tree["commands"])
    assert "Exit codes" in shown
    assert told().out.strip() == shown.strip()


def test_help_tells_a_program_everything(told):
    tree = told("help", "--json").json
    search = tree["commands"]["search"]
    assert [row["names"] for row in search["arguments"]] == [["query"]]
    assert ["--user", "-u", "--user-id"] in [row["names"] for row in search["options"]]
    assert ["--json"] in [row["names"] for row in tree["options"]]
    assert set(tree["commands"]["models"]["commands"]) == {
        "list",
        "install",
        "path",
        "verify",
        "remove",
    }
    assert told("help", "models", "install", "--json").json["command"] == "told models install"
    assert "Did you mean 'search'?" in told("help", "serach", code=2).err


def test_every_verb_of_the_sdk_is_a_command(told):
    tree = told("help", "--json").json["commands"]
    below = {
        f"{group} {name}" for group, command in tree.items() for name in command.get("commands", ())
    }
    commands = {*tree, *below}
    offered = {verb.command_name for verb in VERBS.values() if Interface.CLI in verb.interfaces}
    assert offered <= commands


def test_the_shell_completes_commands_and_options(store):
    asked = {"_TOLD_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    for words, wanted in {"told sea": {"search"}, "told reb": {"rebuild"}}.items():
        environment = {**os.environ, **asked, "COMP_WORDS": words}
        done = subprocess.run([TOLD], env=environment, capture_output=True, text=True, check=False)
        assert set(done.stdout.split()) == wanted


# Models


@pytest.fixture
def installed(home, monkeypatch):
    """A model folder as the installer leaves it, with a file that was damaged since."""
    folder = home / "models" / "e5-small"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"damaged")
    (folder / "manifest.json").write_text(json.dumps({"files": {"model.onnx": "00"}}))
    monkeypatch.setenv("TOLD_MODELS", str(folder.parent))
    return folder


def test_models_are_listed_with_their_places(told, installed):
    rows = {row["name"]: row for row in told("models", "list", "--json").json}
    assert rows["e5-small"]["path"] == str(installed)
    assert rows["e5-small"]["dim"] == 384
    assert "e5-small" in told("models", "list").out
    assert "Usage: told models" in told("models").out


def test_a_model_says_where_it_is(told, installed):
    assert told("models", "path", "e5-small").out == f"{installed}\n"
    assert "Known models" in told("models", "path", "e6-small", code=2).err


def test_a_damaged_model_is_found(told, installed):
    rows = told("models", "verify", "e5-small", "--json", code=3).json
    assert rows == [{"name": "e5-small", "ok": False, "first_bad_file": "model.onnx"}]
    assert "e5-small" in told("models", "verify", code=3).out


def test_a_model_is_removed_once(told, installed):
    told("models", "remove", "e5-small")
    assert not installed.exists()
    assert "told models install e5-small" in told("models", "remove", "e5-small", code=1).err
    told("models", "path", "e5-small", code=1)


def test_install_leaves_an_installed_model_alone(told, installed):
    done = told("models", "install", "e5-small", "--json")
    assert done.json == {"name": "e5-small", "path": str(installed)}
    assert "already installed" in done.err


def test_install_without_a_name_takes_the_best(told, installed, monkeypatch):
    real, asked = models_module.load_provider(), []

    class Recording:
        registry = real.registry

        def install(self, name, *, source, progress):
            asked.append((name, source))
            return installed

    monkeypatch.setattr(models_module, "load_provider", Recording)
    told("models", "install")
    assert asked == [(real.registry.models()[0].name, None)]


# Errors


MISUSES = [
    ["serch", "x"],
    ["search"],
    ["list", "-u", "alice", "--limit", "many"],
    ["list", "-u", "*"],
    ["list", "--usr", "a"],
    ["add", "x", "-u", "alice", "--metadata", "{"],
    ["add", "x", "-u", "alice", "--metadata", "[]"],
    ["list", "-u", "alice", "--where", "topic"],
    ["--store", "memory.db", "list", "-u", "alice"],
    ["models", "lst"],
]


@pytest.mark.parametrize("words", MISUSES, ids=" ".join)
def test_misuse_is_answered_in_one_line(words, told):
    done = told(*words, code=2)
    assert done.err.startswith("error: ")
    assert one_line(done.err)
    assert done.out == ""


def test_a_mistyped_command_is_answered_with_the_one_meant(told):
    assert "Did you mean 'search'?" in told("serch", "x", "-u", "alice", code=2).err


def test_a_mistyped_store_is_answered_with_the_one_meant(told):
    assert (
        "Did you mean 'sqlite'?"
        in told("list", "-u", "alice", "--store", "sqlit:///x.db", code=2).err
    )


def test_with_json_an_error_is_the_same_object_as_everywhere(told):
    error = told("search", "x", "--json", code=2).error
    assert (error["code"], error["error"]) == ("TOLD-E101", "ScopeError")
    usage = told("serch", "--json", code=2).error
    assert usage["error"] == "UsageError"
    assert "search" in usage["message"]


def test_a_traceback_is_shown_only_when_asked_for(told):
    assert "Traceback" not in told("get", "nothing", code=1).err
    assert "Traceback" in told("get", "nothing", "--debug", code=1).err


def test_a_file_that_cannot_be_written_is_one_line(told, moved, tmp_path):
    done = told("export", str(tmp_path / "no" / "such" / "folder.jsonl"), code=2)
    assert one_line(done.err)
    assert "folder.jsonl" in done.err


def test_ctrl_c_ends_with_130(told, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "get_all", interrupted)
    done = told("list", "-u", "alice", code=130)
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["help", "--json"],
        ["list", "-u", "alice"],
        ["context", "-u", "alice"],
        ["config"],
        ["export"],
    ],
)
def test_a_reader_that_goes_away_is_no_reason_to_complain(words, store, moved):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([TOLD, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"error" not in done.stderr.lower()


def test_a_fault_nobody_foresaw_still_ends_in_one_line(store):
    code = (
        "import told.api.memory as sdk\nfrom told.cli import main\n"
        "def broken(*_, **__): raise ZeroDivisionError('oops')\n"
        "sdk.Memory.get_all = broken\nmain(['list', '-u', 'alice'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert one_line(done.stderr)
    assert "ZeroDivisionError" in done.stderr
    assert "--debug" in done.stderr


# Somebody else's words


def test_a_memory_cannot_steer_the_terminal(told):
    told("add", "red \x1b[31m alert \x1b[0m \x9b2J \u202eback", "-u", "alice")
    for words in (["list"], ["search", "alert"], ["timeline"], ["explain", "alert"]):
        shown = told(*words, "-u", "alice").out
        assert "alert" in shown
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert (
        told("list", "-u", "alice", "--json")
        .json["results"][0]["memory"]
        .startswith("red \x1b[31m alert")
    )


def test_a_memory_is_text_and_no_markup(told):
    told("add", "[bold]not bold[/bold] [link=https://example.org]x[/link]", "-u", "alice")
    assert (
        "[bold]not bold[/bold] [link=https://example.org]x[/link]"
        in told("list", "-u", "alice").out
    )


def test_colours_stay_out_of_pipes(told, moved, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in told("list", "-u", "alice").out


def test_ids_are_never_cut(told, moved, monkeypatch):
    told("add", "word " * 60, "-u", "alice")
    for width in ("60", "80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        assert moved in told("list", "-u", "alice").out


def test_the_program_runs(store):
    words = [TOLD, "add", "-", "-u", "alice"]
    done = subprocess.run(words, input="From a shell", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        0,
        f"a new store: {store.removeprefix('sqlite:///')}\n",
    )
    assert "From a shell" in done.stdout
