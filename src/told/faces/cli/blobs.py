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
from told.faces.cli.options import (
    Agent,
    Metadata,
    Run,
    ScopeArgs,
    User,
    argument,
    option,
    scope_args,
)
from told.faces.cli.shell import EXIT_FAILED, Shell, command, print_help

if TYPE_CHECKING:
    from told.faces.sdk import Memory

app = typer.Typer()
FileArguments = Annotated[list[str], argument("Files, or URLs if fetch_urls is set.", "FILE...")]
FolderArgument = Annotated[Path, argument("The folder.", "FOLDER", exists=True, file_okay=False)]
SourceOption = Annotated[
    str | None,
    option(
        "--source", about="What tells it from other documents, if not its path.", metavar="NAME"
    ),
]
MediaTypeOption = Annotated[
    str | None, option("--media-type", about="What it is, such as text/html.", metavar="TYPE")
]
PruneOption = Annotated[bool, option("--prune", about="Give up documents whose file is gone.")]
SyncDryRun = Annotated[
    bool, option("--dry-run", about="Only show which files would be read and given up.")
]
OutputOption = Annotated[
    Path | None,
    option(
        "--output",
        "-o",
        about="Write it to this file, which must not be there yet.",
        metavar="PATH",
    ),
]


@app.callback(invoke_without_command=True)
def blob_group(ctx: typer.Context) -> None:
    """Documents and images: upload, sync, list, get."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app)
def upload(
    shell: Shell,
    files: FileArguments,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    source: SourceOption = None,
    media_type: MediaTypeOption = None,
    metadata: Metadata = None,
) -> None:
    """Remember documents: text, Markdown, HTML, PDF, DOCX or images; a changed one replaces what was known of it."""
    if source is not None and len(files) > 1:
        raise InvalidInput("--source names one document; give one file with it.")
    with shell.open_with_llm() as memory:
        rows = [
            {
                "file": file,
                **memory.upload(
                    file,
                    source=source,
                    media_type=media_type,
                    metadata=metadata,
                    **scope_args(user, agent, run),
                ),
            }
            for file in files
        ]
    _show_report(shell, {"results": rows})


@command(app)
def sync(
    shell: Shell,
    folder: FolderArgument,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    metadata: Metadata = None,
    prune: PruneOption = False,
    dry_run: SyncDryRun = False,
) -> None:
    """Remember every document in a folder; what has not changed is left alone, and what cannot be read is named."""
    from told.faces.cli import views

    documents = dict(_find_documents(folder))
    ids = scope_args(user, agent, run)
    with shell.open_with_llm() as memory:
        removed = _find_removed(memory, ids, folder, documents) if prune else {}
        if dry_run:
            shell.show_result(
                {"files": sorted(documents), "gone": sorted(removed)}, views.render_pairs
            )
            return
        rows = [
            _upload_file(memory, path, source, ids, metadata) for source, path in documents.items()
        ]
        for source, threads in removed.items():
            for thread in threads:
                memory.retract(thread, why="removed", **ids)
            rows.append(
                {
                    "file": source,
                    "results": [{"event": "DELETE", "id": thread} for thread in threads[:1]],
                }
            )
    _show_report(shell, {"results": rows})
    if any("error" in row for row in rows):
        raise typer.Exit(EXIT_FAILED)


def _find_documents(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that are documents by their name, each under its path from the folder on."""
    from told.write.documents.read import MEDIA_TYPES_BY_SUFFIX
    from told.write.media.parts import IMAGE_SUFFIXES as IMAGES

    home = folder.resolve()
    for directory, folders, files in os.walk(home):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(directory, name)
            is_document = (
                path.suffix.lower() in MEDIA_TYPES_BY_SUFFIX or path.suffix.lower() in IMAGES
            )
            if is_document and not name.startswith(".") and not path.is_symlink():
                yield f"{home.name}/{path.relative_to(home).as_posix()}", path


def _find_removed(
    memory: Memory, ids: ScopeArgs, folder: Path, documents: dict[str, Path]
) -> dict[str, list[str]]:
    """The documents that came from a folder and are no longer in it, with the memories made of each."""
    prefix, page_size = f"{folder.resolve().name}/", 1000
    removed: dict[str, list[str]] = {}
    offset = 0
    while rows := memory.get_all(
        **ids, filters={"kind": "document"}, limit=page_size, offset=offset
    )["results"]:
        offset += len(rows)
        for row in rows:
            source = row.get("source", "")
            if source.startswith(prefix) and source not in documents:
                removed.setdefault(source, []).append(row["id"])
    return removed


def _upload_file(
    memory: Memory, path: Path, source: str, ids: ScopeArgs, metadata: dict[str, Any] | None
) -> dict[str, Any]:
    """What became of one file of a folder; one that cannot be read does not stop the rest."""
    try:
        return {"file": source, **memory.upload(path, source=source, metadata=metadata, **ids)}
    except StoreError:
        raise
    except ToldError as error:
        return {"file": source, "error": str(error)}


def _show_report(shell: Shell, body: dict[str, Any]) -> None:
    from told.faces.cli import views

    def render_table(body: dict[str, Any]) -> Any:
        grid = views.build_table("", "file", "what", "id")
        for row in body["results"]:
            event = row["results"][0] if "results" in row else {}
            outcome = row.get("error") or EVENT_LABELS.get(event.get("event", ""), "")
            grid.add_row(
                views.render_mark("error" not in row),
                views.safe_text(row["file"]),
                views.safe_text(outcome),
                event.get("id", ""),
            )
        return grid if body["results"] else views.dim_text("There is no document there.")

    shell.show_result(body, render_table)
    for row in () if shell.json else body["results"]:
        for warning in row.get("warnings", ()):
            shell.print_note(f"warning: {row['file']}: {warning}")


EVENT_LABELS = {"ADD": "new", "UPDATE": "revised", "NONE": "unchanged", "DELETE": "gone"}


@command(app, "list")
def list_(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the documents and images that came with what was said."""
    from told.faces.cli import views

    def render_table(body: dict[str, Any]) -> Any:
        grid = views.build_table("hash", "type", "bytes", "from")
        for row in body["results"]:
            sources = views.safe_text(", ".join(row["sources"]))
            grid.add_row(
                row["hash"], views.safe_text(row["media_type"]), f"{row['size']:,}", sources
            )
        return grid if body["results"] else views.dim_text("There are none.")

    with shell.open_without_models() as memory:
        shell.show_result(memory.blobs(**scope_args(user, agent, run)), render_table)


@command(app)
def get(
    shell: Shell,
    hash: Annotated[
        str, argument("The hash of its content, as `told blob list` prints it.", "HASH")
    ],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    output: OutputOption = None,
) -> None:
    """Get a document or an image back, byte for byte: into a file, or on standard output."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.blob(hash, **scope_args(user, agent, run))
    if output is None and shell.json:
        shell.print_json(result)
    elif output is None:
        sys.stdout.buffer.write(b64decode(result["data"]))
        sys.stdout.buffer.flush()
    else:
        _write_new_file(output, b64decode(result["data"]))
        fields = {name: result[name] for name in ("hash", "media_type", "size")}
        shell.show_result(
            {**fields, "path": str(output)}, lambda body: views.safe_text(body["path"])
        )


def _write_new_file(path: Path, data: bytes) -> None:
    """Write bytes to a new file that only its owner may read."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}.", hint="Choose another path."
        ) from error
