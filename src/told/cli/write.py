"""Commands that write: add, update, link, delete, retract, erase, reset and blob."""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.cli import options
from told.cli.options import (
    Agent,
    DryRun,
    Expires,
    MemoryId,
    Metadata,
    NamedUser,
    OptionalMemoryId,
    Run,
    ScopeArgs,
    User,
    Why,
    Yes,
    argument,
    option,
    scope_args,
)
from told.cli.shell import EXIT_FAILED, Shell, command, print_help, read_stdin
from told.errors import InvalidInput, StoreError, ToldError

if TYPE_CHECKING:
    from told.api.memory import Memory

app = typer.Typer()
blob_app = typer.Typer()
FileArguments = Annotated[list[str], argument("Files, or URLs if fetch_urls is set.", "FILE...")]
FolderArgument = Annotated[Path, argument("The folder.", "FOLDER", exists=True, file_okay=False)]
SourceOption = Annotated[
    str | None,
    option("--source", about="Document identity; default: its path.", metavar="NAME"),
]
MediaTypeOption = Annotated[
    str | None, option("--media-type", about="Media type, such as text/html.", metavar="TYPE")
]
PruneOption = Annotated[bool, option("--prune", about="Delete documents whose file is gone.")]
SyncDryRun = Annotated[
    bool, option("--dry-run", about="Only show which files would be read and deleted.")
]
OutputOption = Annotated[
    Path | None,
    option(
        "--output",
        "-o",
        about="Write to this new file.",
        metavar="PATH",
    ),
]


@blob_app.callback(invoke_without_command=True)
def blob_group(ctx: typer.Context) -> None:
    """Manage documents and images: upload, sync, list, get."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(blob_app)
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
    """Store text, Markdown, HTML, PDF, DOCX or image files; a changed file is updated."""
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


@command(blob_app)
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
    """Store every document in a folder; skip unchanged files and report unreadable ones."""
    from told.cli import views

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
    """Yield the documents of a folder by file name, with their relative paths."""
    from told.ingest.documents.pipeline import MEDIA_TYPES_BY_SUFFIX
    from told.ingest.image_parts import IMAGE_SUFFIXES as IMAGES

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
    """Return documents whose file left the folder, with their memory ids."""
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
    """Upload one file of a folder; return an error row if it cannot be read."""
    try:
        return {"file": source, **memory.upload(path, source=source, metadata=metadata, **ids)}
    except StoreError:
        raise
    except ToldError as error:
        return {"file": source, "error": str(error)}


def _show_report(shell: Shell, body: dict[str, Any]) -> None:
    from told.cli import views

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
        return grid if body["results"] else views.dim_text("The folder holds no documents.")

    shell.show_result(body, render_table)
    for row in () if shell.json else body["results"]:
        for warning in row.get("warnings", ()):
            shell.print_note(f"warning: {row['file']}: {warning}")


EVENT_LABELS = {"ADD": "new", "UPDATE": "revised", "NONE": "unchanged", "DELETE": "gone"}


@command(blob_app, "list")
def list_(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List stored documents and images."""
    from told.cli import views

    def render_table(body: dict[str, Any]) -> Any:
        grid = views.build_table("hash", "type", "bytes", "from")
        for row in body["results"]:
            sources = views.safe_text(", ".join(row["sources"]))
            grid.add_row(
                row["hash"], views.safe_text(row["media_type"]), f"{row['size']:,}", sources
            )
        return grid if body["results"] else views.dim_text("No documents or images.")

    with shell.open_without_models() as memory:
        shell.show_result(memory.blobs(**scope_args(user, agent, run)), render_table)


@command(blob_app)
def get(
    shell: Shell,
    hash: Annotated[str, argument("Content hash, as printed by `told blob list`.", "HASH")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    output: OutputOption = None,
) -> None:
    """Write a stored document or image to a file or to standard output."""
    from told.cli import views

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
    """Write bytes to a new file readable by its owner only."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}.", hint="Choose another path."
        ) from error


PANEL = "Remember and forget"


@command(app, rich_help_panel=PANEL)
def add(
    shell: Shell,
    texts: Annotated[
        list[str] | None,
        argument("Messages; - reads standard input.", "[TEXT]..."),
    ] = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    file: Annotated[
        Path | None,
        option(
            "--file",
            "-f",
            about="Messages as JSON, or JSON Lines; - reads standard input.",
            metavar="PATH",
            parser=options.parse_file_or_stdin,
        ),
    ] = None,
    metadata: Metadata = None,
    expires: Expires = None,
    timestamp: Annotated[str | None, option(about="When it was said.", metavar="TIME")] = None,
    role: Annotated[
        str, typer.Option(help="Who speaks: user, assistant, tool or document.", metavar="ROLE")
    ] = "user",
    name: Annotated[str | None, option(about="The speaker's name.", metavar="NAME")] = None,
    kind: Annotated[
        str | None,
        option(
            about="Store the text verbatim as this kind; see `told kinds list`.",
            metavar="KIND",
        ),
    ] = None,
    source: Annotated[
        str | None,
        option(
            about="Source name, for `revoke` and `erase --source`.",
            metavar="NAME",
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        option(about="Idempotency key: a retry returns the first receipt.", metavar="KEY"),
    ] = None,
    extract: Annotated[
        str | None,
        option(
            about="Extractor: verbatim, local, facts, closed, apertures, exhaustive, deep, react "
            "or graph.",
            metavar="NAME",
        ),
    ] = None,
    prompt: Annotated[str | None, option(about="Custom extraction prompt.", metavar="TEXT")] = None,
) -> None:
    """Store messages and extract the facts in them."""
    from told.cli import views

    messages = _build_messages(
        texts or [], file, {"role": role, **({"name": name} if name else {})}
    )
    with shell.open_with_llm() as memory:
        result = memory.add(
            messages,
            **scope_args(user, agent, run),
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expires,
            kind=kind,
            source=source,
            idempotency_key=idempotency_key,
            extract=extract,
            prompt=prompt,
            deferred=False,
        )
    shell.show_result(result, views.render_receipt)


def _build_messages(texts: list[str], file: Path | None, speaker: dict[str, str]) -> Any:
    """Build the messages of a call from a file or from texts of one speaker."""
    if (file is None) == (not texts):
        raise InvalidInput(
            "Give either texts or --file.", hint="`told add -` reads standard input."
        )
    if file is not None:
        return options.parse_messages(options.read_text(file), str(file))
    contents = [_read_stdin_text() if text == "-" else text for text in texts]
    return [{**speaker, "content": content} for content in contents]


def _read_stdin_text() -> str:
    """Read standard input without its final newline."""
    return read_stdin().removesuffix("\n")


@command(app, rich_help_panel=PANEL)
def update(
    shell: Shell,
    memory_id: MemoryId,
    text: Annotated[str | None, argument("The new text; - reads standard input.", "[TEXT]")] = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    metadata: Metadata = None,
    expires: Expires = None,
    never_expires: Annotated[bool, option("--never-expires", about="Remove the expiry.")] = False,
) -> None:
    """Update a memory's text, metadata or expiry; the previous version stays in its history."""
    from told.api.verb import UNSET
    from told.cli import views

    if expires and never_expires:
        raise InvalidInput("Give either --expires or --never-expires.")
    expiry = expires or (None if never_expires else UNSET)
    new_text = _read_stdin_text() if text == "-" else text
    with shell.open_without_llm() as memory:
        result = memory.update(
            memory_id, new_text, metadata, expiry, **scope_args(user, agent, run)
        )
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def link(
    shell: Shell,
    src: Annotated[str, argument("Source memory id.", "ID")],
    rel: Annotated[
        str, argument("Relation: supports, contradicts, supersedes, relates_to …", "RELATION")
    ],
    dst: Annotated[str, argument("Target memory id.", "OTHER")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    metadata: Metadata = None,
    weight: Annotated[float, typer.Option(help="Weight from 0 to 1.", metavar="W")] = 1.0,
) -> None:
    """Link one memory to another."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.link(
            src, rel, dst, weight=weight, metadata=metadata, **scope_args(user, agent, run)
        )
    shell.show_result(
        result, lambda body: views.safe_text(f"{body['src']} {body['rel']} {body['dst']}")
    )


@command(app, rich_help_panel=PANEL)
def delete(
    shell: Shell,
    memory_id: OptionalMemoryId = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    everything: Annotated[bool, option("--all", about="Everything in the scope.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete a memory, or with --all everything in a scope; the history is kept (see `erase`)."""
    from told.cli import views

    if everything == (memory_id is not None):
        raise InvalidInput("Give a memory's id, or --all with a scope.")
    ids = scope_args(user, agent, run)
    with shell.open_without_models() as memory:
        if dry_run:
            shell.show_result(_preview_delete(memory, memory_id, ids), views.render_memories)
            return
        if memory_id is not None:
            result = memory.delete(memory_id, **ids)
        else:
            memory.engine.resolve_scope(ids)
            shell.confirm(f"Delete everything of {_format_scope(ids)}?", yes=yes)
            result = memory.delete_all(**ids)
    shell.show_result(result, views.render_receipt)


def _preview_delete(memory: Memory, memory_id: str | None, ids: ScopeArgs) -> dict[str, Any]:
    """Return the memories that a deletion would affect."""
    if memory_id is None:
        return memory.get_all(**ids, show_expired=True, limit=1000)
    row = memory.get(memory_id, **ids)
    return {"results": [row] if row else []}


def _format_scope(ids: ScopeArgs) -> str:
    return ", ".join(f"{name.removesuffix('_id')} {value}" for name, value in ids.items() if value)


@command(app, rich_help_panel=PANEL)
def retract(
    shell: Shell,
    memory_id: MemoryId,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    why: Why = "retracted",
) -> None:
    """Retract a memory with a reason."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.retract(memory_id, why=why, **scope_args(user, agent, run))
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def erase(
    shell: Shell,
    memory_id: OptionalMemoryId = None,
    user: NamedUser = None,
    agent: Agent = None,
    run: Run = None,
    source: Annotated[
        str | None, option(about="Everything from this source.", metavar="NAME")
    ] = None,
    why: Why = "requested",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Erase content and everything derived from it for good; print a certificate."""
    from told.cli import views

    ids = scope_args(user, agent, run)
    with shell.open_without_models() as memory:
        reach = memory.erase(memory_id, **ids, source=source, dry_run=True)
        if dry_run:
            shell.show_result(reach, views.render_memories)
            return
        memories = views.pluralize(len(reach["memories"]), "memory", "memories")
        entries = views.pluralize(reach["entries"], "ledger entry", "ledger entries")
        shell.confirm(f"Destroy {memories} in {entries} for good?", yes=yes)
        result = memory.erase(memory_id, **ids, source=source, why=why)
    shell.show_result(result, views.render_certificate)


@command(app, rich_help_panel=PANEL)
def reset(shell: Shell, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Destroy everything in the account and start a new ledger."""
    from told.cli import views

    with shell.open_without_models() as memory:
        if dry_run:
            shell.show_result(memory.stats(), views.render_stats)
            return
        account = memory.engine.account
        shell.confirm(f"Destroy all memories of every user in the account {account}?", yes=yes)
        result = memory.reset()
    shell.show_result(result, lambda body: views.safe_text(body["message"]))
