"""`told kinds`: which sorts of memory there are, whether a file of them is sound, and how to make one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, Run, User, argument, option, scope
from told.faces.cli.shell import UNSOUND, Shell, command, print_help

app = typer.Typer()
Name = Annotated[str, argument("The kind's name.", "NAME")]
Paths = Annotated[list[Path] | None, argument("YAML files, folders of them, or ontology JSON; your own if left out.",
                                              "[PATH]...")]  # fmt: skip
Into = Annotated[Path | None, option("--into", about="The folder to write to; your kinds if left out.", metavar="PATH")]
Way = Annotated[str, typer.Option("--write", help="merge, aggregate, append or cumulative.", metavar="WAY")]
FieldNames = Annotated[list[str] | None, option("--field", about="A field of it; repeatable.", metavar="NAME")]


@app.callback(invoke_without_command=True)
def kinds(ctx: typer.Context) -> None:
    """Sorts of memory and their rules: list, show, check, new, infer."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app, "list")
def list_(shell: Shell) -> None:
    """List the kinds in force, and where each comes from."""
    from told.core.kind import builtin
    from told.faces import kinds as files
    from told.faces.cli import views

    settings = shell.loaded().settings
    everything, _ = files.ontology(None, settings)
    own = str(files.folder(settings))
    rows = [files.written(kind, "told" if builtin().get(name) is kind else own) for name, kind in everything.items()]

    def table(rows: Sequence[Mapping[str, Any]]) -> Any:
        grid = views.grid("name", "write", "owner", "tier", "weight", "from")
        for row in rows:
            cells = (row["write"], row["owner"], row["tier"], f"{row['weight']:g}", row["origin"])
            grid.add_row(views.safe(row["name"], "bold"), *(views.safe(cell) for cell in cells))
        return grid

    shell.show(rows, table)


@command(app)
def show(shell: Shell, name: Name) -> None:
    """Show every rule of a kind."""
    from told.core.kind import builtin
    from told.faces import kinds as files
    from told.faces.cli import views

    settings = shell.loaded().settings
    kind = files.ontology(None, settings)[0].named(name)
    own = builtin().get(name) is not kind
    found = files.written(kind, str(files.folder(settings)) if own else "told")
    first = {"name": kind.name, **found}
    shell.show(found, lambda _: views.sheet({name: _plain(value) for name, value in first.items()}))


def _plain(value: Any) -> Any:
    """A rule as people write it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(str(each["name"] if isinstance(each, dict) else each) for each in value)
    return value


@command(app)
def check(shell: Shell, paths: Paths = None) -> None:
    """Check files of kinds; exit code 3 if one is wrong, with the file, the key and the fix."""
    from told.faces import kinds as files
    from told.faces.cli import views

    settings = shell.loaded().settings
    own = files.folder(settings)
    rows = files.check(paths or ([own] if settings.kinds or own.exists() else []))

    def told(row: Mapping[str, Any]) -> str:
        return ", ".join(row["kinds"]) if row["ok"] else f"{row['problem']} {row['hint'] or ''}".strip()

    none = views.quiet(f"No kinds of your own in {own}; `told kinds new NAME` begins one.")
    shell.show(rows, lambda rows: views.pairs({row["path"]: told(row) for row in rows}) if rows else none)
    if not all(row["ok"] for row in rows):
        raise typer.Exit(UNSOUND)


@command(app)
def new(
    shell: Shell, name: Name, into: Into = None, write: Way = "aggregate", fields: FieldNames = None
) -> None:
    """Write a file to begin a new kind with."""
    from told.faces import kinds as files
    from told.faces.cli import views

    place = into or files.folder(shell.loaded().settings)
    target = files.new(name, place, write=write, fields=fields or ())
    shell.show({"name": target.stem, "path": str(target)}, lambda body: views.safe(body["path"]))


@command(app)
def infer(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Propose kinds for the claims that waited in quarantine because no kind was theirs."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.infer_kinds(**scope(user, agent, run))

    def drafts(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.quiet("Nothing in quarantine asks for a kind of its own.")
        return views.safe("\n".join(_draft(row) for row in body["results"]))

    shell.show(found, drafts)


def _draft(row: Mapping[str, Any]) -> str:
    """The file of a kind, under a line that says how many claims ask for it."""
    return f"# {row['claims']} {'claim' if row['claims'] == 1 else 'claims'}\n{row['yaml']}"
