"""Fixtures of the command-line tests: a store, and access to it by command line and SDK."""

import io
import json
import sys
from dataclasses import dataclass

import pytest

from told import Memory
from told.cli.app import run


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

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
    """Create a store for this test and name it in the environment.

    No model is loaded and texts are stored verbatim, unless a test asks for more.
    """
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    monkeypatch.setenv("TOLD_STORE", url)
    monkeypatch.setenv("TOLD_EMBEDDER", "none")
    monkeypatch.setenv("TOLD_EXTRACT", "verbatim")
    monkeypatch.setenv("COLUMNS", "120")
    return url


@pytest.fixture
def extraction_enabled(store, monkeypatch):
    """Use the default extractor instead of storing texts verbatim."""
    monkeypatch.delenv("TOLD_EXTRACT")


@pytest.fixture
def run_cli(store, capsys, monkeypatch):
    """Run a command in this process and check its exit code."""

    def call(*words: str, stdin: str | bytes = "", code: int = 0) -> CommandResult:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        ended = run(words)
        out, err = capsys.readouterr()
        assert ended == code, f"told {' '.join(words)} ended with {ended}\n{out}{err}"
        return CommandResult(ended, out, err)

    return call


@pytest.fixture
def sdk(store):
    """Call a verb of the SDK on the same store, opened for one call."""

    def call(verb: str, *args, **options):
        with Memory(store, embedder="none") as memory:
            return getattr(memory, verb)(*args, **options)

    return call


@pytest.fixture
def memory_id(run_cli):
    """Add one memory of alice and return its id."""
    return run_cli("add", "I moved to Lisbon", "-u", "alice", "--json").json["results"][0]["id"]
