"""`told blob`: documents on the command line."""

import base64
import sys

import pytest

from papers import blank
from told.cli.app import run
from told.ids import hash_content

NOTE = "# Notes\n\nThe spare key is under the blue pot.\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Create a folder with two documents, a hidden file and a program."""
    home = tmp_path / "papers"
    (home / "deep").mkdir(parents=True)
    (home / "notes.md").write_text(NOTE, "utf-8")
    (home / "deep" / "page.html").write_text(
        "<h1>Page</h1><p>The router is in the cellar.", "utf-8"
    )
    (home / ".hidden.md").write_text("hidden", "utf-8")
    (home / "program.exe").write_bytes(b"MZ\0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOLD_READER", "none")
    return home


def events(done):
    return {row["file"]: row["results"][0]["event"] for row in done.json["results"]}


def test_added_file_is_found(run_cli, folder):
    done = run_cli(
        "blob", "upload", "papers/notes.md", "papers/deep/page.html", "-u", "alice", "--json"
    )
    assert events(done) == {"papers/notes.md": "ADD", "papers/deep/page.html": "ADD"}
    found = run_cli("search", "spare key", "-u", "alice", "--json").json["results"][0]
    assert (found["source"], found["kind"]) == ("papers/notes.md", "document")
    assert "unchanged" in run_cli("blob", "upload", "papers/notes.md", "-u", "alice").out


def test_document_is_returned_byte_for_byte(run_cli, folder, tmp_path):
    run_cli("blob", "upload", "papers/notes.md", "-u", "alice", "--source", "notes")
    listed = run_cli("blob", "list", "-u", "alice", "--json").json["results"]
    name = hash_content(NOTE.encode())
    assert listed == [
        {"hash": name, "media_type": "text/markdown", "size": len(NOTE), "sources": ["notes"]}
    ]
    assert name in run_cli("blob", "list", "-u", "alice").out
    assert (
        base64.b64decode(run_cli("blob", "get", name, "-u", "alice", "--json").json["data"])
        == NOTE.encode()
    )
    run_cli("blob", "get", name, "-u", "alice", "-o", "copy.md")
    assert (tmp_path / "copy.md").read_text("utf-8") == NOTE
    assert (tmp_path / "copy.md").stat().st_mode & 0o077 == 0
    again = run_cli("blob", "get", name, "-u", "alice", "-o", "copy.md", code=2)
    assert "cannot be written" in again.err
    assert "There is no blob" in run_cli("blob", "get", name, "-u", "bob", code=1).err


def test_document_is_piped_unchanged(run_cli, folder, monkeypatch):
    class Pipe:
        def __init__(self):
            self.buffer, self.got, self.encoding = self, b"", "utf-8"

        def write(self, data):
            self.got += data

        def flush(self):
            """Do nothing."""

        def isatty(self):
            return False

    run_cli("blob", "upload", "papers/notes.md", "-u", "alice")
    pipe = Pipe()
    monkeypatch.setattr(sys, "stdout", pipe)
    assert run(("blob", "get", hash_content(NOTE.encode()), "-u", "alice")) == 0
    assert pipe.got == NOTE.encode()


def test_folder_is_kept_in_sync(run_cli, folder):
    assert events(run_cli("blob", "sync", "papers", "-u", "alice", "--json")) == {
        "papers/notes.md": "ADD",
        "papers/deep/page.html": "ADD",
    }
    (folder / "notes.md").write_text("# Notes\n\nThe spare key is gone.\n", "utf-8")
    (folder / "deep" / "page.html").unlink()
    assert events(run_cli("blob", "sync", "papers", "-u", "alice", "--json")) == {
        "papers/notes.md": "UPDATE"
    }
    looked = run_cli("blob", "sync", "papers", "-u", "alice", "--prune", "--dry-run", "--json").json
    assert looked == {"files": ["papers/notes.md"], "gone": ["papers/deep/page.html"]}
    assert len(run_cli("list", "-u", "alice", "--json").json["results"]) == 2
    done = run_cli("blob", "sync", "papers", "-u", "alice", "--prune", "--json")
    assert events(done) == {"papers/notes.md": "NONE", "papers/deep/page.html": "DELETE"}
    assert [row["memory"] for row in run_cli("list", "-u", "alice", "--json").json["results"]] == [
        "# Notes\n\nThe spare key is gone.\n"
    ]
    assert "gone" not in run_cli("blob", "sync", "papers", "-u", "alice", "--prune").out


def test_unreadable_file_does_not_stop_the_rest(run_cli, folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "sign.png").write_bytes(blank())
    done = run_cli("blob", "sync", "papers", "-u", "alice", "--json", code=1)
    rows = {row["file"]: row for row in done.json["results"]}
    assert "PDF" in rows["papers/broken.pdf"]["error"]
    assert rows["papers/sign.png"]["results"][0]["memory"] == "[image #1: png 64x48]"
    assert rows["papers/notes.md"]["results"][0]["event"] == "ADD"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("upload", "nothing.md"), "There is no file"),
        (("upload", "papers/program.exe"), "Markdown"),
        (("upload", "papers/notes.md", "papers/notes.md", "--source", "x"), "one file"),
        (("upload", "http://127.0.0.1/a.md"), "fetch_urls"),
        (("sync", "nowhere"), "does not exist"),
    ],
)
def test_error_names_the_problem(run_cli, folder, words, says, capsys):
    assert run(("blob", *words, "-u", "alice")) in (1, 2)
    assert says in capsys.readouterr().err


def test_group_without_a_command_prints_help(run_cli, store):
    assert "sync" in run_cli("blob").out
