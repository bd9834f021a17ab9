"""The commands that write: add, update, link, and the three ways to let go (delete, retract, erase), and reset."""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.cli.options import Agent, Metadata, Run, ScopeArgs, User, argument, option, scope_args
from told.cli.shell import EXIT_FAILED, Shell, command, print_help
from told.errors import InvalidInput, StoreError, ToldError

if TYPE_CHECKING:
    from told.api.memory import Memory
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
from told.cli.shell import Shell, command, read_stdin
from told.errors import InvalidInput

app = typer.Typer()
blob_app = typer.Typer()
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


@blob_app.callback(invoke_without_command=True)
def blob_group(ctx: typer.Context) -> None:
    """Documents and images: upload, sync, list, get."""
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
    """Remember every document in a folder; what has not changed is left alone, and what cannot be read is named."""
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
    """The files of a folder that are documents by their name, each under its path from the folder on."""
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
        return grid if body["results"] else views.dim_text("There is no document there.")

    shell.show_result(body, render_table)
    for row in () if shell.json else body["results"]:
        for warning in row.get("warnings", ()):
            shell.print_note(f"warning: {row['file']}: {warning}")


EVENT_LABELS = {"ADD": "new", "UPDATE": "revised", "NONE": "unchanged", "DELETE": "gone"}


@command(blob_app, "list")
def list_(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the documents and images that came with what was said."""
    from told.cli import views

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


@command(blob_app)
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
    """Write bytes to a new file that only its owner may read."""
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
        argument("What was said, one message each; - reads standard input.", "[TEXT]..."),
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
            about="Keep it as it stands, as a memory of this kind; see `told kinds list`.",
            metavar="KIND",
        ),
    ] = None,
    source: Annotated[
        str | None,
        option(
            about="Where it comes from; `revoke` and `erase --source` take it all back.",
            metavar="NAME",
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None, option(about="Makes a retry return the first receipt.", metavar="KEY")
    ] = None,
    extract: Annotated[
        str | None,
        option(
            about="Who finds facts in it: verbatim, local, facts, closed, apertures, exhaustive, deep, react or graph.",
            metavar="NAME",
        ),
    ] = None,
    prompt: Annotated[
        str | None, option(about="A prompt of your own for the model that does.", metavar="TEXT")
    ] = None,
) -> None:
    """Remember what was said, and the facts in it."""
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
    """The messages of a call: those of a file, or each text by the same speaker."""
    if (file is None) == (not texts):
        raise InvalidInput(
            "Give texts or a --file, one of them.", hint="`told add -` reads standard input."
        )
    if file is not None:
        return options.parse_messages(options.read_text(file), str(file))
    contents = [_read_stdin_text() if text == "-" else text for text in texts]
    return [{**speaker, "content": content} for content in contents]


def _read_stdin_text() -> str:
    """Standard input without the end of its last line, which belongs to the pipe and not to what was said."""
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
    never_expires: Annotated[
        bool, option("--never-expires", about="Take the expiry away.")
    ] = False,
) -> None:
    """Give a memory a new text, metadata or expiry; the version before it stays in its history."""
    from told.api.verb import UNSET
    from told.cli import views

    if expires and never_expires:
        raise InvalidInput("--expires and --never-expires contradict each other; give one of them.")
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
    src: Annotated[str, argument("The memory that bears on another.", "ID")],
    rel: Annotated[
        str, argument("How: supports, contradicts, supersedes, relates_to …", "RELATION")
    ],
    dst: Annotated[str, argument("The memory it bears on.", "OTHER")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    metadata: Metadata = None,
    weight: Annotated[float, typer.Option(help="How strongly, 0 to 1.", metavar="W")] = 1.0,
) -> None:
    """Say that one memory bears on another."""
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
    everything: Annotated[bool, option("--all", about="Everything the scope holds.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Give up a memory, or with --all everything a scope holds; the past keeps it (see `erase`)."""
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
    """The memories a deletion would take."""
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
    """Give up a memory and record the reason."""
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
        str | None, option(about="Everything that came from there.", metavar="NAME")
    ] = None,
    why: Why = "requested",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Destroy content, and all that was made from it, for good; prints a certificate."""
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
    """Destroy everything in the account and begin anew."""
    from told.cli import views

    with shell.open_without_models() as memory:
        if dry_run:
            shell.show_result(memory.stats(), views.render_stats)
            return
        account = memory.engine.account
        shell.confirm(f"Destroy all memories of every user in the account {account}?", yes=yes)
        result = memory.reset()
    shell.show_result(result, lambda body: views.safe_text(body["message"]))
