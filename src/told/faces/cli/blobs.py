"""`told blob`: documents and images as files: remember them, keep a folder in step, list them, get them back."""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.core.errors import InvalidInput, StoreError, ToldError
from told.faces.cli.options import Agent, Ids, Metadata, Run, User, argument, option, scope
from told.faces.cli.shell import FAILED, Shell, command, print_help

if TYPE_CHECKING:
    from told.faces.sdk import Memory

app = typer.Typer()
Files = Annotated[list[str], argument("Files, or URLs if fetch_urls is set.", "FILE...")]
Folder = Annotated[Path, argument("The folder.", "FOLDER", exists=True, file_okay=False)]
Source = Annotated[
    str | None, option("--source", about="What tells it from other documents, if not its path.", metavar="NAME")
]
MediaType = Annotated[str | None, option("--media-type", about="What it is, such as text/html.", metavar="TYPE")]
Prune = Annotated[bool, option("--prune", about="Give up documents whose file is gone.")]
DryRun = Annotated[bool, option("--dry-run", about="Only show which files would be read and given up.")]
Output = Annotated[
    Path | None, option("--output", "-o", about="Write it to this file, which must not be there yet.", metavar="PATH")
]


@app.callback(invoke_without_command=True)
def blob(ctx: typer.Context) -> None:
    """Documents and images: upload, sync, list, get."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app)
def upload(
    shell: Shell, files: Files, user: User = None, agent: Agent = None, run: Run = None, source: Source = None,
    media_type: MediaType = None, metadata: Metadata = None,
) -> None:  # fmt: skip
    """Remember documents: text, Markdown, HTML, PDF, DOCX or images; a changed one replaces what was known of it."""
    if source is not None and len(files) > 1:
        raise InvalidInput("--source names one document; give one file with it.")
    with shell.asking() as memory:
        rows = [
            {"file": file, **memory.upload(
                file, source=source, media_type=media_type, metadata=metadata, **scope(user, agent, run)
            )}
            for file in files
        ]  # fmt: skip
    _report(shell, {"results": rows})


@command(app)
def sync(
    shell: Shell, folder: Folder, user: User = None, agent: Agent = None, run: Run = None, metadata: Metadata = None,
    prune: Prune = False, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Remember every document in a folder; what has not changed is left alone, and what cannot be read is named."""
    from told.faces.cli import views

    found = dict(_documents(folder))
    ids = scope(user, agent, run)
    with shell.asking() as memory:
        gone = _gone(memory, ids, folder, found) if prune else {}
        if dry_run:
            shell.show({"files": sorted(found), "gone": sorted(gone)}, views.pairs)
            return
        rows = [_synced(memory, path, source, ids, metadata) for source, path in found.items()]
        for source, threads in gone.items():
            for thread in threads:
                memory.retract(thread, why="removed", **ids)
            rows.append({"file": source, "results": [{"event": "DELETE", "id": thread} for thread in threads[:1]]})
    _report(shell, {"results": rows})
    if any("error" in row for row in rows):
        raise typer.Exit(FAILED)


def _documents(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that are documents by their name, each under its path from the folder on."""
    from told.write.documents.read import SUFFIXES
    from told.write.media.parts import SUFFIXES as IMAGES

    home = folder.resolve()
    for place, folders, files in os.walk(home):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            known = path.suffix.lower() in SUFFIXES or path.suffix.lower() in IMAGES
            if known and not name.startswith(".") and not path.is_symlink():
                yield f"{home.name}/{path.relative_to(home).as_posix()}", path


def _gone(memory: Memory, ids: Ids, folder: Path, found: dict[str, Path]) -> dict[str, list[str]]:
    """The documents that came from a folder and are no longer in it, with the memories made of each."""
    prefix, page = f"{folder.resolve().name}/", 1000
    gone: dict[str, list[str]] = {}
    offset = 0
    while rows := memory.get_all(**ids, filters={"kind": "document"}, limit=page, offset=offset)["results"]:
        offset += len(rows)
        for row in rows:
            source = row.get("source", "")
            if source.startswith(prefix) and source not in found:
                gone.setdefault(source, []).append(row["id"])
    return gone


def _synced(
    memory: Memory, path: Path, source: str, ids: Ids, metadata: dict[str, Any] | None
) -> dict[str, Any]:
    """What became of one file of a folder; one that cannot be read does not stop the rest."""
    try:
        return {"file": source, **memory.upload(path, source=source, metadata=metadata, **ids)}
    except StoreError:
        raise
    except ToldError as error:
        return {"file": source, "error": str(error)}


def _report(shell: Shell, body: dict[str, Any]) -> None:
    from told.faces.cli import views

    def table(body: dict[str, Any]) -> Any:
        grid = views.grid("", "file", "what", "id")
        for row in body["results"]:
            done = row["results"][0] if "results" in row else {}
            what = row.get("error") or SAYS.get(done.get("event", ""), "")
            grid.add_row(views.mark("error" not in row), views.safe(row["file"]), views.safe(what), done.get("id", ""))
        return grid if body["results"] else views.quiet("There is no document there.")

    shell.show(body, table)
    for row in () if shell.json else body["results"]:
        for warning in row.get("warnings", ()):
            shell.note(f"warning: {row['file']}: {warning}")


SAYS = {"ADD": "new", "UPDATE": "revised", "NONE": "unchanged", "DELETE": "gone"}


@command(app, "list")
def list_(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the documents and images that came with what was said."""
    from told.faces.cli import views

    def table(body: dict[str, Any]) -> Any:
        grid = views.grid("hash", "type", "bytes", "from")
        for row in body["results"]:
            sources = views.safe(", ".join(row["sources"]))
            grid.add_row(row["hash"], views.safe(row["media_type"]), f"{row['size']:,}", sources)
        return grid if body["results"] else views.quiet("There are none.")

    with shell.words() as memory:
        shell.show(memory.blobs(**scope(user, agent, run)), table)


@command(app)
def get(
    shell: Shell, hash: Annotated[str, argument("The hash of its content, as `told blob list` prints it.", "HASH")],
    user: User = None, agent: Agent = None, run: Run = None, output: Output = None,
) -> None:  # fmt: skip
    """Get a document or an image back, byte for byte: into a file, or on standard output."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.blob(hash, **scope(user, agent, run))
    if output is None and shell.json:
        shell.print_json(found)
    elif output is None:
        sys.stdout.buffer.write(b64decode(found["data"]))
        sys.stdout.buffer.flush()
    else:
        _save(output, b64decode(found["data"]))
        about = {name: found[name] for name in ("hash", "media_type", "size")}
        shell.show({**about, "path": str(output)}, lambda body: views.safe(body["path"]))


def _save(path: Path, data: bytes) -> None:
    """Write bytes to a new file that only its owner may read."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.", hint="Choose another path.") from error
