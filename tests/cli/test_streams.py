"""The standard streams: any encoding, undecodable bytes, and closed or full streams."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from told.cli.app import main
from told.cli.chat_loop import LineReader

TOLD = Path(sys.executable).with_name("told")
SAID = "Zürich → 東京 ✓"
ENCODINGS = ["ascii", "latin-1", "cp1252", "cp437"]
LANG_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def accented_id(store, sdk):
    """Add a memory that few encodings can represent and return its id."""
    return sdk("add", SAID, user_id="alice")["results"][0]["id"]


@pytest.fixture
def program(store, monkeypatch):
    """Run the program in an encoding and return its exit code, output and errors as bytes."""

    def run(words, encoding="utf-8", stdin=b""):
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding, "backslashreplace"))
            patch.setattr(sys, "excepthook", sys.excepthook)
            with pytest.raises(SystemExit) as end:
                main(words)
            sys.stdout.flush()
            sys.stderr.flush()
            return end.value.code, out.getvalue(), err.getvalue()

    return run


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "words",
    [
        ["verify"],
        ["doctor"],
        ["--help"],
        ["about", "-u", "alice"],
        ["list", "-u", "alice"],
        ["context", "-u", "alice"],
        ["explain", "Zurich", "-u", "alice"],
        ["timeline", "-u", "alice"],
        ["tiers", "-u", "alice"],
    ],
)
def test_output_is_complete_in_every_terminal_encoding(words, encoding, program, accented_id):
    code, out, err = program(words, encoding)
    assert code == 0, err
    assert out
    assert b"error" not in err


def test_unencodable_character_is_escaped(program, accented_id):
    _, out, _ = program(["get", accented_id], "ascii")
    assert r"Z\xfcrich > \u6771\u4eac +" in out.decode("ascii")
    _, out, _ = program(["get", accented_id], "latin-1")
    assert r"Zürich > \u6771\u4eac +" in out.decode("latin-1")


def test_symbols_have_an_ascii_form(program, accented_id):
    _, out, _ = program(["verify"], "ascii")
    assert out.startswith(b"+ sound")
    for words in (["doctor"], ["--help"], ["explain", "Zurich", "-u", "bob"]):
        _, out, _ = program(words, "ascii")
        assert rb"\u" not in out


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-8"])
def test_json_output_and_errors_are_valid_in_every_encoding(encoding, program, accented_id):
    _, out, _ = program(["list", "-u", "alice", "--json"], encoding)
    assert json.loads(out)["results"][0]["memory"] == SAID
    code, _, err = program(["get", "Zürich ✓", "--json"], encoding)
    assert code == 1
    assert "Zürich ✓" in json.loads(err)["message"]


def test_undecodable_file_name_is_printed_as_json(program, accented_id, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    code, out, _ = program(["export", name, "--json"])
    assert code == 0
    assert json.loads(out)["path"] == name


@pytest.mark.parametrize(
    ("data", "encoding", "said"),
    [
        ("Zürich".encode(), "ascii", "Zürich"),
        ("Zürich".encode(), "latin-1", "Zürich"),
        ("Zürich".encode("latin-1"), "latin-1", "Zürich"),
        ("Zürich".encode("utf-8-sig"), "utf-8", "Zürich"),
        (b"one\r\ntwo\r\n", "utf-8", "one\ntwo"),
    ],
)
def test_piped_input_is_utf_8_or_else_the_terminal_encoding(data, encoding, said, program, sdk):
    code, _, err = program(["add", "-", "-u", "bob"], encoding, data)
    assert code == 0, err
    assert [row["memory"] for row in sdk("get_all", user_id="bob")["results"]] == [said]


@pytest.mark.parametrize(
    "words",
    [
        ["add", "-", "-u", "bob"],
        ["add", "-f", "-", "-u", "bob"],
        ["update", "x", "-"],
        ["chat", "-u", "bob"],
        ["reconsolidate", "apply", "-", "-u", "bob"],
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_undecodable_input_is_a_one_line_error(words, encoding, program):
    code, _, err = program(words, encoding, b"caf\xe9\n")
    assert code == 2
    assert err.startswith(b"error: Standard input is not UTF-8 text:")
    assert err.count(b"\n") == 1


def test_undecodable_typed_line_is_rejected_and_the_next_one_read(program, sdk, monkeypatch):
    monkeypatch.setattr(
        LineReader, "__init__", lambda self: vars(self).update(interactive=True, _pushed_back=[])
    )
    _, out, err = program(["chat", "-u", "bob"], stdin=b"caf\xe9\nI play the cello\n")
    assert b"lone surrogate" in out + err
    assert b"unexpectedly" not in err
    assert [row["memory"] for row in sdk("get_all", user_id="bob")["results"]] == [
        "I play the cello"
    ]


def test_terminal_width_zero_means_unknown_width(program, accented_id, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    assert SAID.encode() in program(["list", "-u", "alice"])[1]


def test_program_works_in_the_c_locale(accented_id):
    done = subprocess.run(
        [TOLD, "get", accented_id], capture_output=True, env={**os.environ, **LANG_C}, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"Z\xfcrich > \u6771\u4eac +" in done.stdout


def run_in_shell(words: str, redirected: str):
    return subprocess.run(
        ["sh", "-c", f"{TOLD} {words} {redirected}"], capture_output=True, check=False
    )


full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no full device here"
)


@pytest.mark.parametrize("words", ["list -u alice", "list -u alice --json", "export"])
@pytest.mark.parametrize(
    ("redirected", "why"),
    [
        (">&-", b"Bad file descriptor"),
        pytest.param(">/dev/full", b"No space left on device", marks=full_device),
    ],
)
def test_unwritable_output_is_a_one_line_error(words, redirected, why, accented_id):
    done = run_in_shell(words, redirected)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_input_is_empty(store):
    done = run_in_shell("add - -u alice --json", "<&-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["skipped"]


def test_errors_are_dropped_when_stderr_is_closed(store):
    done = run_in_shell("get nothing", "2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
