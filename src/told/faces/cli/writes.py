"""The commands that write: add, update, link, and the three ways to let go (delete, retract, erase), and reset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.core.errors import InvalidInput
from told.faces.cli import options
from told.faces.cli.options import (
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
from told.faces.cli.shell import Shell, command
from told.faces.cli.streams import read_stdin

if TYPE_CHECKING:
    from told.faces.sdk import Memory

PANEL = "Remember and forget"
app = typer.Typer()


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
    from told.faces.cli import views

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
    from told.faces.cli import views
    from told.faces.verbs import UNSET

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
    from told.faces.cli import views

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
    from told.faces.cli import views

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
    from told.faces.cli import views

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
    from told.faces.cli import views

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
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        if dry_run:
            shell.show_result(memory.stats(), views.render_stats)
            return
        account = memory.engine.account
        shell.confirm(f"Destroy all memories of every user in the account {account}?", yes=yes)
        result = memory.reset()
    shell.show_result(result, lambda body: views.safe_text(body["message"]))
