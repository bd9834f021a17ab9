"""The maintenance commands, help, models, errors, and safe printing of stored text."""

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


# Maintenance


def test_verify_accepts_an_intact_ledger(run_cli, sdk, memory_id):
    assert run_cli("verify", "--json").json == sdk("verify")
    assert "sound" in run_cli("verify").out


def tamper(store: str) -> None:
    with apsw.Connection(store.removeprefix("sqlite:///")) as db:
        db.execute("DROP TRIGGER entry_append_only")
        db.execute("UPDATE entry SET at = at + 1 WHERE id = (SELECT max(id) FROM entry)")


def test_verify_exits_with_three_on_a_tampered_ledger(run_cli, store, memory_id):
    tamper(store)
    body = run_cli("verify", "--json", code=3).json
    assert not body["ok"]
    assert body["first_bad_seq"] == 2
    assert "not sound" in run_cli("verify", code=3).out


def test_rebuild_recreates_the_views(run_cli, sdk, memory_id):
    assert run_cli("rebuild", "--json").json == sdk("rebuild")
    assert set(run_cli("rebuild", "facts", "links", "--json").json["rebuilt"]) == {"facts", "links"}
    assert "Views:" in run_cli("rebuild", "walls", code=2).err


def test_reindex_embeds_texts_without_vectors(run_cli, memory_id):
    assert "models install" in run_cli("reindex", code=1).err
    done = run_cli("reindex", "--embedder", "local:minilm", "--json").json
    assert done == {"embedded": 1, "model": "local:minilm", "dim": 384}
    assert run_cli("reindex", "--embedder", "local:minilm", "--json").json["embedded"] == 0


def test_stats_prints_the_counts(run_cli, sdk, memory_id):
    assert run_cli("stats", "--json").json == sdk("stats")
    assert "entries" in run_cli("stats").out
    assert "model            none" in run_cli("stats").out
    run_cli("reindex", "--embedder", "hash")
    assert "hash" in run_cli("stats").out
    assert "{" not in run_cli("stats").out


def test_export_and_import_round_trip(run_cli, sdk, memory_id, tmp_path):
    first, second, other = (
        tmp_path / "a.jsonl",
        tmp_path / "b.jsonl",
        f"sqlite:///{tmp_path / 'other.db'}",
    )
    assert run_cli("export", str(first), "--json").json == {"entries": 2, "path": str(first)}
    assert run_cli("import", str(first), "--store", other, "--json").json == {"entries": 2}
    run_cli("export", str(second), "--store", other)
    assert first.read_bytes() == second.read_bytes()
    assert run_cli("list", "-u", "alice", "--store", other, "--json").json == sdk(
        "get_all", user_id="alice"
    )


def test_export_can_be_piped(run_cli, memory_id, tmp_path):
    exported = run_cli("export").out
    assert exported == run_cli("export", "-").out
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run_cli("import", "-", "--store", other, "--json", stdin=exported).json == {"entries": 2}
    assert "0 new entries" in run_cli("import", "-", "--store", other, stdin=exported).out


def test_export_asks_before_it_overwrites(run_cli, memory_id, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("precious")
    run_cli("export", str(file), stdin="n\n", code=1)
    assert file.read_text() == "precious"
    run_cli("export", str(file), "--yes")
    assert file.read_text() != "precious"


def test_export_is_private_and_never_overwrites_the_store(run_cli, store, memory_id, tmp_path):
    run_cli("export", str(tmp_path / "mine.jsonl"))
    assert (tmp_path / "mine.jsonl").stat().st_mode & 0o077 == 0
    assert (
        "belongs to a database"
        in run_cli("export", store.removeprefix("sqlite:///"), "--yes", code=2).err
    )
    assert run_cli("verify", "--json").json["ok"]


def test_export_to_a_folder_or_device_does_not_prompt(run_cli, memory_id, tmp_path):
    assert "Is a directory" in run_cli("export", str(tmp_path), code=2).err
    assert "entries → /dev/null" in run_cli("export", "/dev/null").out


def test_import_rejects_a_file_that_is_not_an_export(run_cli, tmp_path):
    (tmp_path / "x").write_text("hello\n")
    assert "not a told export" in run_cli("import", str(tmp_path / "x"), code=2).err
    run_cli("import", str(tmp_path / "absent"), code=2)


def test_backup_is_a_usable_store(run_cli, sdk, memory_id, tmp_path):
    copy = tmp_path / "copy.db"
    assert run_cli("backup", str(copy), "--json").json == {"path": str(copy)}
    assert run_cli("list", "-u", "alice", "--store", f"sqlite:///{copy}", "--json").json == sdk(
        "get_all", user_id="alice"
    )
    assert "exists already" in run_cli("backup", str(copy), code=2).err


def test_users_are_listed_as_text_and_as_json(run_cli, sdk):
    assert run_cli("users").out == "No users, agents or runs.\n"
    run_cli("add", "I like rain", "-u", "mara", "-a", "editor")
    run_cli("add", "I like sun", "-u", "mara")
    rows = [line.split() for line in run_cli("users").out.splitlines()]
    assert rows[0] == ["who", "name", "memories", "first", "last"]
    assert [row[:3] for row in rows[2:]] == [["user", "mara", "2"], ["agent", "editor", "1"]]
    assert run_cli("users", "--type", "agent", "--json").json == sdk("users", type="agent")
    assert "Did you mean 'user'?" in run_cli("users", "-t", "users", code=2).err


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_user_names_and_figures_are_not_cut_on_a_narrow_terminal(columns, run_cli, monkeypatch):
    name = "01a1e2a4-b797-7104-87b3-8bd6b6ba0da4"
    for user in (name, "bob"):
        run_cli("add", "I like tea", "-u", user)
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line.strip() for line in run_cli("users").out.splitlines()]
    assert name in lines
    assert any(line.startswith("user, 1 memory, 20") for line in lines)
    assert max(map(len, lines)) <= int(columns)


def test_erasing_an_unknown_user_hints_at_the_list_of_users(run_cli):
    assert "`told users`" in run_cli("erase", "-u", "nobody", "--yes", code=1).err


def test_unknown_kind_is_a_warning(run_cli):
    done = run_cli("add", "I like rain", "-u", "mara", "--kind", "prefrence")
    assert "Did you mean 'preference'?" in done.err
    assert (
        "Did you mean" not in run_cli("add", "I like sun", "-u", "mara", "--kind", "prefrence").err
    )
    assert "Did you mean 'prefrence'?" in run_cli("list", "-u", "mara", "--kind", "prefrense").err
    assert run_cli("list", "-u", "mara", "--kind", "evnt", "--json").json["warnings"]


# Information


def test_new_store_is_announced_once(run_cli, tmp_path):
    file = tmp_path / "typo.db"
    first, second = (
        run_cli("list", "-u", "alice", "--store", f"sqlite:///{file}") for _ in range(2)
    )
    assert (first.out, first.err) == ("Nothing found.\n", f"a new store: {file}\n")
    assert second.err == ""
    assert run_cli("list", "-u", "alice", "--store", "ram://").err == ""


def test_where_prints_the_paths(run_cli, store, home, monkeypatch):
    monkeypatch.setenv("TOLD_MODELS", str(home / "models"))
    body = run_cli("where", "--json").json
    places = {"data": str(home / ".data" / "told"), "models": str(home / "models")}
    assert body == {"store": store, "config": None, **places}
    monkeypatch.setenv("COLUMNS", "20")
    assert f"{store}\n" in run_cli("where").out


def test_config_prints_every_setting_and_its_origin(run_cli, store, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    file = home / ".config" / "told" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("budget: 500\n")
    values = run_cli("config", "--json").json
    assert list(values) == list(SETTING_FIELDS)
    assert (values["budget"], values["store"]) == (500, store)
    origins = run_cli("config", "--origin", "--json", "--zone", "Europe/Berlin").json
    assert origins["budget"] == {"value": 500, "origin": str(file)}
    assert origins["store"]["origin"] == "TOLD_STORE"
    assert origins["zone"]["origin"] == "argument"
    assert origins["limit"]["origin"] == "default"
    assert str(file) in run_cli("config", "--origin").out


def test_config_prints_settings_as_in_the_file(run_cli, home):
    assert "llm_timeout" in run_cli("config").out


def test_misspelled_setting_suggests_the_right_one(run_cli, home):
    file = home / ".config" / "told" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("buget: 500\n")
    assert "Did you mean `budget`?" in run_cli("config", code=2).err


def test_version_lists_the_dependencies(run_cli):
    body = run_cli("version", "--json").json
    assert body["told"] == __version__
    assert body["python"] == ".".join(map(str, sys.version_info[:3]))
    assert body["sqlite"] == apsw.sqlite_lib_version()
    assert {"apsw", "numpy", "onnxruntime"} <= body.keys()
    assert __version__ in run_cli("version").out
    assert run_cli("--version").out == f"{__version__}\n"


@pytest.mark.parametrize(
    "words", [["version"], ["--help"], ["search", "--help"], ["help", "--json"], ["config"]]
)
def test_light_commands_import_nothing_heavy(words):
    code = (
        f"import sys\nfrom told.cli.app import run\nassert run({words!r}) == 0\n"
        "print(sorted({'numpy', 'onnxruntime', 'apsw', 'told.engine'} & set(sys.modules)), "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def test_every_command_has_help_with_exit_codes(run_cli):
    tree = run_cli("help", "--json").json
    for name in tree["commands"]:
        assert "Usage:" in run_cli(name, "--help").out
    shown = run_cli("--help").out
    assert all(name in shown for name in tree["commands"])
    assert "Exit codes" in shown
    assert run_cli().out.strip() == shown.strip()


def test_help_as_json_lists_commands_and_options(run_cli):
    tree = run_cli("help", "--json").json
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
    assert run_cli("help", "models", "install", "--json").json["command"] == "told models install"
    assert "Did you mean 'search'?" in run_cli("help", "serach", code=2).err


def test_every_verb_of_the_sdk_is_a_command(run_cli):
    tree = run_cli("help", "--json").json["commands"]
    below = {
        f"{group} {name}" for group, command in tree.items() for name in command.get("commands", ())
    }
    commands = {*tree, *below}
    offered = {verb.command_name for verb in VERBS.values() if Interface.CLI in verb.interfaces}
    assert offered <= commands


def test_shell_completes_commands_and_options(store):
    asked = {"_TOLD_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    for words, wanted in {"told sea": {"search"}, "told reb": {"rebuild"}}.items():
        environment = {**os.environ, **asked, "COMP_WORDS": words}
        done = subprocess.run([TOLD], env=environment, capture_output=True, text=True, check=False)
        assert set(done.stdout.split()) == wanted


# Models


@pytest.fixture
def installed(home, monkeypatch):
    """Create a model folder as the installer does, then damage one file."""
    folder = home / "models" / "e5-small"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"damaged")
    (folder / "manifest.json").write_text(json.dumps({"files": {"model.onnx": "00"}}))
    monkeypatch.setenv("TOLD_MODELS", str(folder.parent))
    return folder


def test_models_are_listed_with_their_paths(run_cli, installed):
    rows = {row["name"]: row for row in run_cli("models", "list", "--json").json}
    assert rows["e5-small"]["path"] == str(installed)
    assert rows["e5-small"]["dim"] == 384
    assert "e5-small" in run_cli("models", "list").out
    assert "Usage: told models" in run_cli("models").out


def test_path_of_a_model_is_printed(run_cli, installed):
    assert run_cli("models", "path", "e5-small").out == f"{installed}\n"
    assert "Known models" in run_cli("models", "path", "e6-small", code=2).err


def test_damaged_model_is_reported(run_cli, installed):
    rows = run_cli("models", "verify", "e5-small", "--json", code=3).json
    assert rows == [{"name": "e5-small", "ok": False, "first_bad_file": "model.onnx"}]
    assert "e5-small" in run_cli("models", "verify", code=3).out


def test_model_can_be_removed_only_once(run_cli, installed):
    run_cli("models", "remove", "e5-small")
    assert not installed.exists()
    assert "told models install e5-small" in run_cli("models", "remove", "e5-small", code=1).err
    run_cli("models", "path", "e5-small", code=1)


def test_install_does_not_touch_an_installed_model(run_cli, installed):
    done = run_cli("models", "install", "e5-small", "--json")
    assert done.json == {"name": "e5-small", "path": str(installed)}
    assert "already installed" in done.err


def test_install_without_a_name_installs_the_best_model(run_cli, installed, monkeypatch):
    real, asked = models_module.load_provider(), []

    class Recording:
        registry = real.registry

        def install(self, name, *, source, progress):
            asked.append((name, source))
            return installed

    monkeypatch.setattr(models_module, "load_provider", Recording)
    run_cli("models", "install")
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
def test_usage_error_is_one_line(words, run_cli):
    done = run_cli(*words, code=2)
    assert done.err.startswith("error: ")
    assert one_line(done.err)
    assert done.out == ""


def test_misspelled_command_suggests_the_right_one(run_cli):
    assert "Did you mean 'search'?" in run_cli("serch", "x", "-u", "alice", code=2).err


def test_misspelled_store_suggests_the_right_one(run_cli):
    assert (
        "Did you mean 'sqlite'?"
        in run_cli("list", "-u", "alice", "--store", "sqlit:///x.db", code=2).err
    )


def test_json_error_is_the_common_error_object(run_cli):
    error = run_cli("search", "x", "--json", code=2).error
    assert (error["code"], error["error"]) == ("TOLD-E101", "ScopeError")
    usage = run_cli("serch", "--json", code=2).error
    assert usage["error"] == "UsageError"
    assert "search" in usage["message"]


def test_traceback_is_shown_only_on_request(run_cli):
    assert "Traceback" not in run_cli("get", "nothing", code=1).err
    assert "Traceback" in run_cli("get", "nothing", "--debug", code=1).err


def test_unwritable_file_is_a_one_line_error(run_cli, memory_id, tmp_path):
    done = run_cli("export", str(tmp_path / "no" / "such" / "folder.jsonl"), code=2)
    assert one_line(done.err)
    assert "folder.jsonl" in done.err


def test_ctrl_c_exits_with_130(run_cli, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "get_all", interrupted)
    done = run_cli("list", "-u", "alice", code=130)
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
def test_closed_output_pipe_is_not_an_error(words, store, memory_id):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([TOLD, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"error" not in done.stderr.lower()


def test_unexpected_exception_is_a_one_line_error(store):
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


# Stored text on a terminal


def test_control_sequences_in_a_memory_are_escaped(run_cli):
    run_cli("add", "red \x1b[31m alert \x1b[0m \x9b2J \u202eback", "-u", "alice")
    for words in (["list"], ["search", "alert"], ["timeline"], ["explain", "alert"]):
        shown = run_cli(*words, "-u", "alice").out
        assert "alert" in shown
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert (
        run_cli("list", "-u", "alice", "--json")
        .json["results"][0]["memory"]
        .startswith("red \x1b[31m alert")
    )


def test_markup_in_a_memory_is_printed_literally(run_cli):
    run_cli("add", "[bold]not bold[/bold] [link=https://example.org]x[/link]", "-u", "alice")
    assert (
        "[bold]not bold[/bold] [link=https://example.org]x[/link]"
        in run_cli("list", "-u", "alice").out
    )


def test_piped_output_has_no_colours(run_cli, memory_id, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in run_cli("list", "-u", "alice").out


def test_ids_are_never_cut(run_cli, memory_id, monkeypatch):
    run_cli("add", "word " * 60, "-u", "alice")
    for width in ("60", "80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        assert memory_id in run_cli("list", "-u", "alice").out


def test_the_program_runs(store):
    words = [TOLD, "add", "-", "-u", "alice"]
    done = subprocess.run(words, input="From a shell", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        0,
        f"a new store: {store.removeprefix('sqlite:///')}\n",
    )
    assert "From a shell" in done.stdout
