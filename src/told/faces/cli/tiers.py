"""The commands about the tiers: consolidate, tiers, registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.faces.cli.options import Agent, Limit, Run, User, option, scope
from told.faces.cli.shell import Shell, command

if TYPE_CHECKING:
    from rich.console import RenderableType

PANEL = "Look after it"
NEWEST = 5
"""How many turns of the tail are shown; --json gives all of them."""

app = typer.Typer()
Force = Annotated[bool, option("--force", about="File everything now, however new it is.")]


@command(app, rich_help_panel=PANEL)
def consolidate(
    shell: Shell, force: Force = False, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """File what was said long ago and let small talk go; with no user, agent or run, for everybody."""
    from told.faces.cli.views import pairs

    with shell.asking() as memory, shell.progress("Consolidating"):
        done = memory.consolidate(**scope(user, agent, run), force=force)
    shell.show(done, lambda body: pairs({name: value for name, value in body.items() if name != "warnings"}))


@command(app, rich_help_panel=PANEL)
def tiers(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Show where memories are: tail, index, hot buffer, registry and topics, at a glance."""
    with shell.words() as memory:
        found = memory.tiers(**scope(user, agent, run))
    shell.show(found, _glance if shell.console().is_terminal else _plain)


@command(app, rich_help_panel=PANEL)
def registry(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = None
) -> None:
    """List the exchanges that were filed, the newest first."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.registry(**scope(user, agent, run), limit=limit)

    def table(body: Mapping[str, Any]) -> RenderableType:
        if not body["results"]:
            return views.quiet("Nothing is filed yet.")
        grid = views.grid("when", "importance", "exchange")
        for row in body["results"]:
            grid.add_row(row["at"][:10], views.bar(row["importance"]), views.safe(row["summary"]))
        return grid

    shell.show(found, table)


def _plain(body: Mapping[str, Any]) -> RenderableType:
    """The figures, one tier a line."""
    from told.faces.cli.views import pairs

    return pairs(_figures(body))


def _figures(body: Mapping[str, Any]) -> dict[str, str]:
    index, filed = body["index"], body["registry"]
    since = f", the newest of {filed['newest'][:10]}" if filed["newest"] else ""
    return {
        "tail": f"{len(body['tail'])} turns", "index": f"{index['count']} turns, {index['cold']} cold",
        "hot buffer": f"{len(body['hot'])} memories", "registry": f"{filed['exchanges']} exchanges{since}",
        "topics": str(body["topics"]["count"]),
    }  # fmt: skip


def _glance(body: Mapping[str, Any]) -> RenderableType:
    """The figures, and the newest turns with what they are worth, in one panel."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from told.faces.cli import views

    parts: list[RenderableType] = [views.pairs(_figures(body))]
    if body["tail"]:
        grid = views.grid("worth", "who", "said last")
        for row in body["tail"][-NEWEST:]:
            grid.add_row(views.bar(row["importance"]), views.safe(row["role"], "dim"), views.safe(row["memory"]))
        parts += [Text(), grid]
    return Panel(Group(*parts), title="tiers", title_align="left", box=box.ROUNDED, expand=False)
