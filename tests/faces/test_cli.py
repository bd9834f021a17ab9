"""The command line: every verb does what the SDK does, says it well to people and exactly to machines."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from told import Memory, __version__
from told.faces import verbs
from told.faces.cli import models as models_module
from told.faces.cli.app import DECLINED, SPELLED
from told.faces.cli.run import run
from told.settings import KNOBS

TOLD = Path(sys.executable).with_name("told")


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        return json.loads(self.err)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of this test's own, named by the environment; no model is loaded unless a test asks for one."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    monkeypatch.setenv("TOLD_STORE", url)
    monkeypatch.setenv("TOLD_EMBEDDER", "none")
    return url


@pytest.fixture
def told(store, capsys, monkeypatch):
    """Run a command line in this process; it must end with the code that is expected."""

    def call(*words: str, stdin: str | bytes = "", code: int = 0) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        ended = run(words)
        out, err = capsys.readouterr()
        assert ended == code, f"told {' '.join(words)} ended with {ended}\n{out}{err}"
        return Done(ended, out, err)

    return call


@pytest.fixture
def sdk(store):
    """The same store through the SDK, opened for one call."""

    def call(verb: str, *args, **options):
        with Memory(store, embedder="none") as memory:
            return getattr(memory, verb)(*args, **options)

    return call


@pytest.fixture
def moved(told):
    """The id of one memory of alice."""
    return told("add", "I moved to Lisbon", "-u", "alice", "--json").json["results"][0]["id"]


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


# Remembering


def test_add_keeps_each_text_as_a_memory(told, sdk):
    done = told("add", "I have a dog", "I play chess", "-u", "alice", "--json").json
    assert [row["memory"] for row in done["results"] if row["event"] == "ADD"] == ["I have a dog", "I play chess"]
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [row["id"] for row in done["results"]]


def test_add_reads_standard_input(told, sdk):
    told("add", "-", "-u", "alice", stdin="said through a pipe")
    assert sdk("get_all", user_id="alice")["results"][0]["memory"] == "said through a pipe"


MESSAGES = [{"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "Noted", "name": "bot"}]


FORMS = [json.dumps(MESSAGES), json.dumps(MESSAGES, indent=2), "\n".join(map(json.dumps, MESSAGES))]


@pytest.mark.parametrize("text", FORMS, ids=["json", "indented", "lines"])
def test_add_reads_messages_from_a_file_or_a_pipe(text, told, sdk, tmp_path):
    file = tmp_path / "messages"
    file.write_text(text)
    first = told("add", "--file", str(file), "-u", "alice", "--json").json
    again = told("add", "--file", "-", "-u", "alice", "--json", stdin=text).json
    assert [row["event"] for row in first["results"]] == ["ADD", "ADD"]
    assert [row["event"] for row in again["results"]] == ["NONE", "NONE"]
    assert [row.get("actor_id") for row in sdk("get_all", user_id="alice")["results"]] == [None, "bot"]


def test_add_passes_everything_on_to_the_sdk(told, sdk):
    told(
        "add", "The museum closes at six", "--user-id", "alice", "--agent", "guide", "--run-id", "r1",
        "--role", "assistant", "--name", "Guide", "--metadata", '{"topic": "art"}', "--timestamp", "2026-03-01",
        "--source", "leaflet", "--expires", "2099-01-01",
    )  # fmt: skip
    row = sdk("get_all", user_id="alice", agent_id="guide", run_id="r1")["results"][0]
    wanted = {"role": "assistant", "actor_id": "Guide", "metadata": {"topic": "art"}, "source": "leaflet"}
    assert wanted.items() <= row.items()
    assert row["said_at"].startswith("2026-03-01T00:00:00")
    assert row["expiration_date"].startswith("2099-01-02T00:00:00")


def test_add_with_a_key_returns_the_first_receipt(told):
    add = ["add", "Once only", "-u", "alice", "--idempotency-key", "k1", "--json"]
    assert told(*add).json == told(*add).json
    other = told("add", "Something else", "-u", "alice", "--idempotency-key", "k1", code=1)
    assert "fresh key" in other.err


@pytest.mark.parametrize("words", [(), ("a text", "--file", "-")])
def test_add_wants_texts_or_a_file(words, told):
    done = told("add", *words, "-u", "alice", code=2)
    assert "--file" in done.err


def test_add_names_the_broken_line_of_a_file(told, tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text('{"content": "fine"}\n{broken\n')
    assert "Line 2 of" in told("add", "-f", str(file), "-u", "alice", code=2).err


def test_update_keeps_the_earlier_version(told, sdk, moved):
    done = told("update", moved, "I moved to Porto", "--json").json
    assert (done["results"][0]["old_memory"], done["results"][0]["memory"]) == ("I moved to Lisbon", "I moved to Porto")
    assert [row["event"] for row in sdk("history", moved)] == ["ADD", "UPDATE"]


def test_update_sets_and_takes_away_an_expiry(told, sdk, moved):
    told("update", moved, "--expires", "2099-01-01", "--metadata", '{"n": 1}')
    row = sdk("get", moved)
    assert (row["memory"], row["metadata"]) == ("I moved to Lisbon", {"n": 1})
    assert "expiration_date" in row
    told("update", moved, "--never-expires")
    assert "expiration_date" not in sdk("get", moved)
    told("update", moved, "--never-expires", "--expires", "2099-01-01", code=2)


def test_update_within_another_scope_finds_nothing(told, moved):
    told("update", moved, "stolen", "-u", "bob", code=1)


def test_link_relates_two_memories(told, moved):
    other = told("add", "I live in Porto", "-u", "alice", "--json").json["results"][0]["id"]
    done = told("link", other, "contradicts", moved, "-u", "alice", "--weight", "0.5", "--json").json
    assert (done["src"], done["rel"], done["dst"]) == (other, "contradicts", moved)
    assert "contradicts" in told("link", other, "contradicts", moved, "-u", "alice").out


# Letting go


def test_delete_gives_up_one_memory(told, sdk, moved):
    assert told("delete", moved, "--json").json["message"] == "Memory deleted successfully!"
    assert sdk("get", moved) is None
    assert told("delete", moved, code=1).err.startswith("error: There is no memory")


def test_delete_all_asks_first(told, sdk, moved):
    refused = told("delete", "--all", "-u", "alice", stdin="n\n", code=1)
    assert "user alice" in refused.err
    assert sdk("get", moved) is not None
    told("delete", "--all", "-u", "alice", stdin="y\n")
    assert sdk("get", moved) is None


def test_nobody_to_ask_is_bad_usage_with_the_way_out(told, sdk, moved):
    assert "--yes" in told("delete", "--all", "-u", "alice", code=2).err
    assert "--yes" in told("reset", code=2).err
    assert sdk("get", moved) is not None


def test_a_dry_run_shows_what_would_go_and_lets_it_be(told, sdk, moved):
    for words in (["delete", "--all", "-u", "alice"], ["delete", moved], ["erase", moved], ["erase", "-u", "alice"]):
        assert "I moved to Lisbon" in told(*words, "--dry-run").out
    assert told("reset", "--dry-run", "--json").json == sdk("stats")
    assert sdk("get", moved) is not None


def test_delete_wants_an_id_or_all(told, moved):
    told("delete", code=2)
    told("delete", moved, "--all", "-u", "alice", code=2)


def test_retract_records_the_reason(told, sdk, moved):
    told("retract", moved, "--why", "it was a joke")
    assert sdk("history", moved)[-1]["why"] == "it was a joke"


def test_erase_destroys_and_certifies(told, sdk, moved, tmp_path):
    certificate = told("erase", moved, "--yes", "--json").json
    assert certificate["memories"] == [moved]
    assert all(b"Lisbon" not in file.read_bytes() for file in tmp_path.iterdir())
    assert sdk("verify")["ok"]


def test_erase_shows_its_certificate_to_people(told, moved):
    shown = told("erase", moved, stdin="y\n")
    assert "Destroy 1 memories in 2 ledger entries for good?" in shown.err
    assert "Certificate of erasure" in shown.out
    assert "sha256:" in shown.out


def test_erase_takes_a_source_back(told, sdk, moved):
    told("add", "From the leaflet", "-u", "alice", "--source", "leaflet")
    told("erase", "--source", "leaflet", "--yes")
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [moved]


def test_erase_never_takes_its_user_from_the_environment(told, sdk, moved, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert "Say what to erase" in told("erase", "--yes", code=2).err
    told("erase", moved, "--dry-run")
    assert sdk("get", moved) is not None


def test_erase_of_nothing_is_not_found(told, moved):
    told("erase", "-u", "nobody", "--yes", code=1)
    told("erase", "no-such-id", "--yes", code=1)


def test_reset_begins_anew(told, sdk, moved):
    assert told("reset", "--yes", "--json").json == {"message": "All memories reset"}
    assert sdk("get_all", user_id="alice") == {"results": []}


# Recalling


READS = {
    "search": (["search", "lisbon", "-u", "alice"], ("search", "lisbon")),
    "search with options": (
        ["search", "lisbon", "-u", "alice", "-k", "1", "--threshold", "0.1", "--as-of", "2099-01-01", "--show-expired"],
        ("search", "lisbon", {"limit": 1, "threshold": 0.1, "as_of": "2099-01-01", "show_expired": True}),
    ),
    "list": (["list", "-u", "alice"], ("get_all",)),
    "list from": (["list", "-u", "alice", "--offset", "1", "-k", "5"], ("get_all", {"offset": 1, "limit": 5})),
    "list then": (["list", "-u", "alice", "--valid-at", "2020-01-01"], ("get_all", {"valid_at": "2020-01-01"})),
    "list filtered": (["list", "-u", "alice", "--filter", '{"n": {"gte": 2}}'],
                      ("get_all", {"filters": {"n": {"gte": 2}}})),
    "list where": (["list", "-u", "alice", "--where", "topic=home", "--where", "n=1"],
                   ("get_all", {"filters": {"AND": [{"topic": "home"}, {"n": 1}]}})),
    "timeline": (["timeline", "-u", "alice", "--limit", "2"], ("timeline", {"limit": 2})),
    "diff": (["diff", "#1", "#4", "-u", "alice"], ("diff", "#1", "#4")),
    "diff until now": (["diff", "2020-01-01", "-u", "alice"], ("diff", "2020-01-01")),
}  # fmt: skip


@pytest.mark.parametrize(("words", "call"), READS.values(), ids=READS.keys())
def test_a_read_prints_what_the_sdk_returns(words, call, told, sdk):
    told("add", "I moved to Lisbon", "-u", "alice", "-m", '{"topic": "home", "n": 1}')
    told("add", "Lisbon has steep streets", "-u", "alice", "-m", '{"topic": "city", "n": 2}')
    told("add", "I live in Oslo", "-u", "bob")
    verb, *rest = call
    options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
    expected = sdk(verb, *rest, user_id="alice", **options)
    assert told(*words, "--json").json == expected
    rows = [row for name in ("results", "added", "changed", "removed") for row in expected.get(name, ())]
    texts = [row.get("memory") or row.get("new_value") for row in rows]
    shown = told(*words).out
    assert all(text in shown for text in texts)
    assert "Oslo" not in shown


def test_get_shows_one_memory_now_and_then(told, sdk, moved):
    told("update", moved, "I moved to Porto")
    assert told("get", moved, "--json").json == sdk("get", moved)
    assert told("get", moved, "--as-of", "#2", "--json").json == sdk("get", moved, as_of="#2")
    shown = told("get", moved).out
    assert "I moved to Porto" in shown
    assert moved in shown


def test_get_of_nothing_is_not_found(told, moved):
    assert one_line(told("get", "no-such-id", code=1).err)
    assert told("get", moved, "-u", "bob", "--json", code=1).error["code"] == "TOLD-E200"


def test_history_tells_every_version(told, sdk, moved):
    told("update", moved, "I moved to Porto")
    told("delete", moved)
    assert told("history", moved, "--json").json == sdk("history", moved)
    shown = told("history", moved).out
    assert all(word in shown for word in ("ADD", "UPDATE", "DELETE", "I moved to Lisbon", "I moved to Porto"))


def test_context_prints_the_block_alone_so_that_it_can_be_piped(told, sdk, moved):
    bundle = sdk("context", "lisbon", user_id="alice", budget=200)
    done = told("context", "lisbon", "-u", "alice", "--budget", "200")
    assert done.out == bundle.text + "\n"
    assert f"{bundle.tokens} of 200 tokens" in done.err
    body = told("context", "lisbon", "-u", "alice", "--budget", "200", "--json").json
    assert (body["text"], body["tokens"], body["budget"]) == (bundle.text, bundle.tokens, 200)


def test_context_without_a_query_holds_the_newest(told, sdk, moved):
    assert told("context", "-u", "alice").out == sdk("context", user_id="alice").text + "\n"


def test_explain_accounts_for_every_candidate(told, sdk, moved):
    told("add", "Lisbon has steep streets", "-u", "alice")
    body = told("explain", "lisbon", "-u", "alice", "-k", "1", "--json").json
    assert body["candidates"] == sdk("explain", "lisbon", user_id="alice", limit=1)["candidates"]
    shown = told("explain", "lisbon", "-u", "alice", "-k", "1").out
    assert "I moved to Lisbon" in shown
    assert "after the limit" in shown
    assert "gather" in shown


def test_a_search_without_an_embedder_warns_beside_the_result(told, moved):
    done = told("search", "lisbon", "-u", "alice")
    assert "warning:" in done.err
    assert "warning:" not in done.out


def test_nothing_found_is_said(told, moved):
    assert "Nothing found." in told("list", "-u", "bob").out
    assert told("list", "-u", "bob", "--json").json == {"results": []}


# Whose memory, and the global options


def test_a_scope_is_needed_and_the_error_says_how_to_give_one(told):
    done = told("search", "anything", code=2)
    assert "At least one of user_id, agent_id, or run_id must be provided" in done.err
    assert "--user" in done.err
    assert one_line(done.err)


def test_the_user_may_come_from_the_environment(told, sdk, moved, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert told("list", "--json").json == sdk("get_all", user_id="alice")
    assert told("list", "-u", "bob", "--json").json == {"results": []}


def test_global_options_stand_before_or_after_the_verb(told, sdk, moved):
    expected = sdk("get_all", user_id="alice")
    assert told("--json", "list", "-u", "alice").json == expected
    assert told("--account", "other", "list", "-u", "alice", "--json").json == {"results": []}
    assert told("--account", "other", "list", "-u", "alice", "--json", "--account", "default").json == expected


def test_a_zone_is_used_for_times_that_name_none(told, sdk):
    told("add", "Noon in Berlin", "-u", "alice", "--timestamp", "2026-01-15T12:00", code=2)
    told("add", "Noon in Berlin", "-u", "alice", "--timestamp", "2026-01-15T12:00", "--zone", "Europe/Berlin")
    assert sdk("get_all", user_id="alice")["results"][0]["said_at"].startswith("2026-01-15T11:00")


def test_times_may_be_said_in_words(told, moved):
    assert told("list", "-u", "alice", "--as-of", "last Tuesday", "--json").json == {"results": []}
    assert "last tuesday" in told("list", "-u", "alice", "--as-of", "someday", code=2).err


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


def test_an_export_is_imported_elsewhere_and_exported_the_same(told, sdk, moved, tmp_path):
    first, second, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl", f"sqlite:///{tmp_path / 'other.db'}"
    assert told("export", str(first), "--json").json == {"entries": 2, "path": str(first)}
    assert told("import", str(first), "--store", other, "--json").json == {"entries": 2}
    told("export", str(second), "--store", other)
    assert first.read_bytes() == second.read_bytes()
    assert told("list", "-u", "alice", "--store", other, "--json").json == sdk("get_all", user_id="alice")


def test_an_export_goes_through_a_pipe(told, moved, tmp_path):
    exported = told("export", "-").out
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


def test_what_is_no_export_is_refused(told, tmp_path):
    (tmp_path / "x").write_text("hello\n")
    assert "not a told export" in told("import", str(tmp_path / "x"), code=2).err
    told("import", str(tmp_path / "absent"), code=2)


def test_a_backup_is_a_store(told, sdk, moved, tmp_path):
    copy = tmp_path / "copy.db"
    assert told("backup", str(copy), "--json").json == {"path": str(copy)}
    assert told("list", "-u", "alice", "--store", f"sqlite:///{copy}", "--json").json == sdk("get_all", user_id="alice")
    assert "exists already" in told("backup", str(copy), code=2).err


# About told


def test_where_prints_the_places(told, store, home, monkeypatch):
    monkeypatch.setenv("TOLD_MODELS", str(home / "models"))
    body = told("where", "--json").json
    places = {"data": str(home / ".data" / "told"), "models": str(home / "models")}
    assert body == {"store": store, "config": None, **places}
    assert store in told("where").out


def test_config_prints_every_setting_and_its_origin(told, store, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    file = home / ".config" / "told" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("budget: 500\n")
    values = told("config", "--json").json
    assert list(values) == list(KNOBS)
    assert (values["budget"], values["store"]) == (500, store)
    origins = told("config", "--origin", "--json", "--zone", "Europe/Berlin").json
    assert origins["budget"] == {"value": 500, "origin": str(file)}
    assert origins["store"]["origin"] == "TOLD_STORE"
    assert origins["zone"]["origin"] == "argument"
    assert origins["limit"]["origin"] == "default"
    assert str(file) in told("config", "--origin").out


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


@pytest.mark.parametrize("words", [["version"], ["--help"], ["search", "--help"], ["help", "--json"], ["config"]])
def test_small_questions_load_nothing_heavy(words):
    code = (
        f"import sys\nfrom told.faces.cli.run import run\nassert run({words!r}) == 0\n"
        "print(sorted({'numpy', 'onnxruntime', 'apsw', 'told.engine'} & set(sys.modules)), file=sys.stderr)"
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
    assert set(tree["commands"]["models"]["commands"]) == {"list", "install", "path", "verify", "remove"}
    assert told("help", "models", "install", "--json").json["command"] == "told models install"
    assert "Did you mean 'search'?" in told("help", "serach", code=2).err


def test_every_verb_of_the_sdk_is_a_command(told):
    commands = set(told("help", "--json").json["commands"])
    assert {SPELLED.get(verb, verb) for verb in verbs.VERBS} - DECLINED <= commands


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
    real, asked = models_module.provider(), []

    class Recording:
        registry = real.registry

        def install(self, name, *, source, progress):
            asked.append((name, source))
            return installed

    monkeypatch.setattr(models_module, "provider", Recording)
    told("models", "install")
    assert asked == [(real.registry.models()[0].name, None)]


# Errors


MISUSES = [
    ["serch", "x"], ["search"], ["list", "-u", "alice", "--limit", "many"], ["list", "-u", "*"], ["list", "--usr", "a"],
    ["add", "x", "-u", "alice", "--metadata", "{"], ["add", "x", "-u", "alice", "--metadata", "[]"],
    ["list", "-u", "alice", "--where", "topic"], ["--store", "memory.db", "list", "-u", "alice"], ["models", "lst"],
]  # fmt: skip


@pytest.mark.parametrize("words", MISUSES, ids=" ".join)
def test_misuse_is_answered_in_one_line(words, told):
    done = told(*words, code=2)
    assert done.err.startswith("error: ")
    assert one_line(done.err)
    assert done.out == ""

def test_a_mistyped_command_is_answered_with_the_one_meant(told):
    assert "Did you mean 'search'?" in told("serch", "x", "-u", "alice", code=2).err


def test_a_mistyped_store_is_answered_with_the_one_meant(told):
    assert "Did you mean 'sqlite'?" in told("list", "-u", "alice", "--store", "sqlit:///x.db", code=2).err


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
    done = told("export", str(tmp_path / "no" / "such" / "folder.jsonl"), code=1)
    assert one_line(done.err)
    assert "folder.jsonl" in done.err


def test_ctrl_c_ends_with_130(told, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "get_all", interrupted)
    done = told("list", "-u", "alice", code=130)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", [["help", "--json"], ["list", "-u", "alice"], ["context", "-u", "alice"], ["config"]])
def test_a_reader_that_goes_away_is_no_reason_to_complain(words, store, moved):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([TOLD, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"error" not in done.stderr.lower()


def test_a_fault_nobody_foresaw_still_ends_in_one_line(store):
    code = (
        "import told.faces.sdk as sdk\nfrom told.faces.cli import main\n"
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
    assert told("list", "-u", "alice", "--json").json["results"][0]["memory"].startswith("red \x1b[31m alert")


def test_a_memory_is_text_and_no_markup(told):
    told("add", "[bold]not bold[/bold] [link=https://example.org]x[/link]", "-u", "alice")
    assert "[bold]not bold[/bold] [link=https://example.org]x[/link]" in told("list", "-u", "alice").out


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
    assert (done.returncode, done.stderr) == (0, "")
    assert "From a shell" in done.stdout
