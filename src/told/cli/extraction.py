"""Commands about extraction, kinds, faults and quarantine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from told.cli.options import Agent, MemoryId, Run, User, argument, option, scope_args
from told.cli.shell import EXIT_UNSOUND, Shell, command, print_help

app = typer.Typer()
kinds_app = typer.Typer()
KindName = Annotated[str, argument("The kind's name.", "NAME")]
KindPaths = Annotated[
    list[Path] | None,
    argument("YAML files, folders, or ontology JSON; default: your kinds.", "[PATH]..."),
]
TargetFolder = Annotated[
    Path | None,
    option("--into", about="Target folder; default: your kinds folder.", metavar="PATH"),
]
WriteModeOption = Annotated[
    str, typer.Option("--write", help="merge, aggregate, append or cumulative.", metavar="WAY")
]
FieldNames = Annotated[
    list[str] | None, option("--field", about="Field name; repeatable.", metavar="NAME")
]


@kinds_app.callback(invoke_without_command=True)
def kinds_group(ctx: typer.Context) -> None:
    """Manage kinds of memory: list, show, check, new, infer."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(kinds_app, "list")
def list_(shell: Shell) -> None:
    """List the kinds in use and their sources."""
    from told.api import kinds as files
    from told.cli import views
    from told.model.kind import load_builtin_ontology

    settings = shell.load_settings().settings
    all_kinds, _ = files.resolve_ontology(None, settings)
    own_folder = str(files.find_kinds_folder(settings))
    rows = [
        files.kind_to_dict(
            kind, "told" if load_builtin_ontology().get(name) is kind else own_folder
        )
        for name, kind in all_kinds.items()
    ]

    def render_table(rows: Sequence[Mapping[str, Any]]) -> Any:
        grid = views.build_table("name", "write", "owner", "tier", "weight", "from")
        for row in rows:
            cells = (row["write"], row["owner"], row["tier"], f"{row['weight']:g}", row["origin"])
            grid.add_row(
                views.safe_text(row["name"], "bold"), *(views.safe_text(cell) for cell in cells)
            )
        return grid

    shell.show_result(rows, render_table)


@command(kinds_app)
def show(shell: Shell, name: KindName) -> None:
    """Show every rule of a kind."""
    from told.api import kinds as files
    from told.cli import views
    from told.model.kind import load_builtin_ontology

    settings = shell.load_settings().settings
    kind = files.resolve_ontology(None, settings)[0].get_kind(name)
    is_own = load_builtin_ontology().get(name) is not kind
    rules = files.kind_to_dict(kind, str(files.find_kinds_folder(settings)) if is_own else "told")
    named_rules = {"name": kind.name, **rules}
    shell.show_result(
        rules,
        lambda _: views.render_sheet(
            {name: _format_rule(value) for name, value in named_rules.items()}
        ),
    )


def _format_rule(value: Any) -> Any:
    """Format a rule as it is written in YAML."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(
                str(item["name"] if isinstance(item, dict) else item) for item in value
            )
    return value


@command(kinds_app)
def check(shell: Shell, paths: KindPaths = None) -> None:
    """Check kind files; exit code 3 if one is invalid, with the file, the key and the fix."""
    from told.api import kinds as files
    from told.cli import views

    settings = shell.load_settings().settings
    own_folder = files.find_kinds_folder(settings)
    rows = files.check_paths(
        paths or ([own_folder] if settings.kinds or own_folder.exists() else [])
    )

    def describe_row(row: Mapping[str, Any]) -> str:
        return (
            ", ".join(row["kinds"])
            if row["ok"]
            else f"{row['problem']} {row['hint'] or ''}".strip()
        )

    empty_note = views.dim_text(
        f"No kinds of your own in {own_folder}; create one with `told kinds new NAME`."
    )
    shell.show_result(
        rows,
        lambda rows: (
            views.render_pairs({row["path"]: describe_row(row) for row in rows})
            if rows
            else empty_note
        ),
    )
    if not all(row["ok"] for row in rows):
        raise typer.Exit(EXIT_UNSOUND)


@command(kinds_app)
def new(
    shell: Shell,
    name: KindName,
    into: TargetFolder = None,
    write: WriteModeOption = "aggregate",
    fields: FieldNames = None,
) -> None:
    """Write a starter file for a new kind."""
    from told.api import kinds as files
    from told.cli import views

    folder = into or files.find_kinds_folder(shell.load_settings().settings)
    target = files.create_kind_file(name, folder, write=write, fields=fields or ())
    shell.show_result(
        {"name": target.stem, "path": str(target)}, lambda body: views.safe_text(body["path"])
    )


@command(kinds_app)
def infer(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Propose kinds for quarantined claims that match no kind."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.infer_kinds(**scope_args(user, agent, run))

    def render_drafts(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.dim_text("No quarantined claim needs a new kind.")
        return views.safe_text("\n".join(_format_draft(row) for row in body["results"]))

    shell.show_result(result, render_drafts)


def _format_draft(row: Mapping[str, Any]) -> str:
    """Format a proposed kind file with the number of claims that need it."""
    return f"# {row['claims']} {'claim' if row['claims'] == 1 else 'claims'}\n{row['yaml']}"


PANEL = "Extraction"
faults = typer.Typer()
quarantine = typer.Typer()
FaultNumbers = Annotated[list[int] | None, argument("Fault numbers; default: all.", "[NUMBER]...")]


@command(app, rich_help_panel=PANEL)
def wait(shell: Shell) -> None:
    """Run extraction for everything that is queued."""
    from told.cli import views

    with shell.open_with_llm() as memory, shell.show_progress("Understanding"):
        result = memory.wait()
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def contradictions(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List conflicting memories."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.contradictions(**scope_args(user, agent, run))
    shell.show_result(result, views.render_contradictions)


@command(app, rich_help_panel=PANEL)
def entities(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the entities mentioned in a scope."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.entities(**scope_args(user, agent, run))
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, "name", "type", "description")
            or views.dim_text("Nobody yet.")
        ),
    )


@command(app, rich_help_panel=PANEL)
def relations(
    shell: Shell,
    name: Annotated[str, argument("Name of the entity.", "NAME")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """List an entity's relations."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.relations(name, **scope_args(user, agent, run))
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, "source", "relation", "target")
            or views.dim_text("No relations yet.")
        ),
    )


@command(app, rich_help_panel=PANEL)
def identify(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Record which names may refer to the same entity, for searches with --lens; merge nothing."""
    from told.cli import views

    with shell.open_without_llm() as memory:
        result = memory.identify(**scope_args(user, agent, run))
    columns = ("source", "target", "weight", "method")
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, *columns) or views.dim_text("No new similar names found.")
        ),
    )


def _build_results_table(body: Mapping[str, Any], *names: str) -> Any:
    """Build a table of the given fields, or a note if there are no results."""
    from told.cli import views

    if not body["results"]:
        return None
    grid = views.build_table(*names)
    for row in body["results"]:
        grid.add_row(*(views.safe_text(row.get(name, "")) for name in names))
    return grid


@command(app, rich_help_panel=PANEL)
def revoke(
    shell: Shell,
    source: Annotated[str, argument("Name of the source to revoke.", "NAME")],
) -> None:
    """Retract everything from a source; its history is kept (see `erase --source`)."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.revoke(source)
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def reveal(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Print a memory with its encrypted secrets decrypted; needs the vault key."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.reveal(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, lambda body: views.safe_text(body["memory"]))


# Faults


@faults.callback(invoke_without_command=True)
def faults_group(ctx: typer.Context) -> None:
    """Manage faults, such as unreadable model replies: list, retry, drop."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(faults, "list")
def list_faults(shell: Shell) -> None:
    """List faults; with --json, include the model's raw reply."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.faults()
    columns = ("id", "consumer", "error", "attempts", "at")
    shell.show_result(
        result, lambda body: _build_results_table(body, *columns) or views.dim_text("No faults.")
    )


@command(faults, "retry")
def retry_faults(shell: Shell, numbers: FaultNumbers = None) -> None:
    """Retry failed work with the model."""
    from told.cli.views import render_pairs

    with shell.open_with_llm() as memory:
        result = memory.retry_faults(numbers or None)
    shell.show_result(result, render_pairs)


@command(faults, "drop")
def drop_faults(shell: Shell, numbers: FaultNumbers = None) -> None:
    """Drop faults; the evidence is kept."""
    from told.cli.views import render_pairs

    with shell.open_without_models() as memory:
        result = memory.drop_faults(numbers or None)
    shell.show_result(result, render_pairs)


# Quarantine


@quarantine.callback(invoke_without_command=True)
def quarantine_group(ctx: typer.Context) -> None:
    """Review quarantined claims, which no search returns: list, accept, reject."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(quarantine, "list")
def list_quarantine(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List quarantined claims and the reason for each."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.quarantine(**scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.dim_text("Nothing is in quarantine.")
        grid = views.build_table("claim", "why")
        grid.columns[0].min_width = len(body["results"][0]["id"])
        for row in body["results"]:
            grid.add_row(
                views.text_with_id(row["memory"], row["id"]),
                views.safe_text(row["metadata"].get("why", ""), "dim"),
            )
        return grid

    shell.show_result(result, render_table)


@command(quarantine)
def accept(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Accept a quarantined claim as a memory."""
    _review_claim(shell, memory_id, accept=True, ids=scope_args(user, agent, run))


@command(quarantine)
def reject(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Reject a quarantined claim."""
    _review_claim(shell, memory_id, accept=False, ids=scope_args(user, agent, run))


def _review_claim(shell: Shell, memory_id: str, *, accept: bool, ids: Any) -> None:
    from told.cli import views

    with shell.open_without_llm() as memory:
        result = memory.review(memory_id, accept, **ids)
    shell.show_result(result, views.render_receipt)
