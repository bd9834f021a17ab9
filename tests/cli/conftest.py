"""What the tests of the command line share: a store of their own, and the same store by both roads
to it.
"""

import io
import json
import sys
from dataclasses import dataclass

import pytest

from told import Memory
from told.cli.app import run


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
    """A store of this test's own, named by the environment.

    No model is loaded and words are kept as they are said, unless a test asks for more.
    """
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    monkeypatch.setenv("TOLD_STORE", url)
    monkeypatch.setenv("TOLD_EMBEDDER", "none")
    monkeypatch.setenv("TOLD_EXTRACT", "verbatim")
    monkeypatch.setenv("COLUMNS", "120")
    return url


@pytest.fixture
def listening(store, monkeypatch):
    """The store as it is unless told otherwise: what is said is understood."""
    monkeypatch.delenv("TOLD_EXTRACT")


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
