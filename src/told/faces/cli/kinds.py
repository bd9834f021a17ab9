"""`told kinds`: which sorts of memory there are, whether a file of them is sound, and how to make one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, Run, User, argument, option, scope_args
from told.faces.cli.shell import EXIT_UNSOUND, Shell, command, print_help

app = typer.Typer()
KindName = Annotated[str, argument("The kind's name.", "NAME")]
KindPaths = Annotated[list[Path] | None, argument("YAML files, folders of them, or ontology JSON; your own if left out.",
                                              "[PATH]...")]  # fmt: skip
TargetFolder = Annotated[
    Path | None,
    option("--into", about="The folder to write to; your kinds if left out.", metavar="PATH"),
]
WriteModeOption = Annotated[
    str, typer.Option("--write", help="merge, aggregate, append or cumulative.", metavar="WAY")
]
FieldNames = Annotated[
    list[str] | None, option("--field", about="A field of it; repeatable.", metavar="NAME")
]


@app.callback(invoke_without_command=True)
def kinds_group(ctx: typer.Context) -> None:
    """Sorts of memory and their rules: list, show, check, new, infer."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app, "list")
def list_(shell: Shell) -> None:
    """List the kinds in force, and where each comes from."""
    from told.core.kind import load_builtin_ontology
    from told.faces import kinds as files
    from told.faces.cli import views

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


@command(app)
def show(shell: Shell, name: KindName) -> None:
    """Show every rule of a kind."""
    from told.core.kind import load_builtin_ontology
    from told.faces import kinds as files
    from told.faces.cli import views

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
    """A rule as people write it."""
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


@command(app)
def check(shell: Shell, paths: KindPaths = None) -> None:
    """Check files of kinds; exit code 3 if one is wrong, with the file, the key and the fix."""
    from told.faces import kinds as files
    from told.faces.cli import views

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
        f"No kinds of your own in {own_folder}; `told kinds new NAME` begins one."
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


@command(app)
def new(
    shell: Shell,
    name: KindName,
    into: TargetFolder = None,
    write: WriteModeOption = "aggregate",
    fields: FieldNames = None,
) -> None:
    """Write a file to begin a new kind with."""
    from told.faces import kinds as files
    from told.faces.cli import views

    folder = into or files.find_kinds_folder(shell.load_settings().settings)
    target = files.create_kind_file(name, folder, write=write, fields=fields or ())
    shell.show_result(
        {"name": target.stem, "path": str(target)}, lambda body: views.safe_text(body["path"])
    )


@command(app)
def infer(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Propose kinds for the claims that waited in quarantine because no kind was theirs."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.infer_kinds(**scope_args(user, agent, run))

    def render_drafts(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.dim_text("Nothing in quarantine asks for a kind of its own.")
        return views.safe_text("\n".join(_format_draft(row) for row in body["results"]))

    shell.show_result(result, render_drafts)


def _format_draft(row: Mapping[str, Any]) -> str:
    """The file of a kind, under a line that says how many claims ask for it."""
    return f"# {row['claims']} {'claim' if row['claims'] == 1 else 'claims'}\n{row['yaml']}"
