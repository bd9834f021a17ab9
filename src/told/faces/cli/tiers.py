"""The commands about the tiers: consolidate, tiers, registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.faces.cli.options import Agent, Limit, Run, User, option, scope_args
from told.faces.cli.shell import Shell, command

if TYPE_CHECKING:
    from rich.console import RenderableType

PANEL = "Look after it"
MAX_TAIL_ROWS = 5
"""How many turns of the tail are shown; --json gives all of them."""

app = typer.Typer()
Force = Annotated[bool, option("--force", about="File everything now, however new it is.")]


@command(app, rich_help_panel=PANEL)
def consolidate(
    shell: Shell, force: Force = False, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """File what was said long ago and let small talk go; with no user, agent or run, for everybody."""
    from told.faces.cli.views import render_pairs

    with shell.open_with_llm() as memory, shell.show_progress("Consolidating"):
        result = memory.consolidate(**scope_args(user, agent, run), force=force)
    shell.show_result(
        result,
        lambda body: render_pairs(
            {name: value for name, value in body.items() if name != "warnings"}
        ),
    )


@command(app, rich_help_panel=PANEL)
def tiers(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Show where memories are: tail, index, hot buffer, registry and topics, at a glance."""
    with shell.open_without_models() as memory:
        result = memory.tiers(**scope_args(user, agent, run))
    shell.show_result(
        result, render_tier_panel if shell.make_console().is_terminal else render_tier_lines
    )


@command(app, rich_help_panel=PANEL)
def registry(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = None
) -> None:
    """List the exchanges that were filed, the newest first."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.registry(**scope_args(user, agent, run), limit=limit)

    def render_table(body: Mapping[str, Any]) -> RenderableType:
        if not body["results"]:
            return views.dim_text("Nothing is filed yet.")
        grid = views.build_table("when", "importance", "exchange")
        for row in body["results"]:
            grid.add_row(
                row["at"][:10], views.render_bar(row["importance"]), views.safe_text(row["summary"])
            )
        return grid

    shell.show_result(result, render_table)


def render_tier_lines(body: Mapping[str, Any]) -> RenderableType:
    """The figures, one tier a line."""
    from told.faces.cli.views import render_pairs

    return render_pairs(_tier_figures(body))


def _tier_figures(body: Mapping[str, Any]) -> dict[str, str]:
    index, registry_figures = body["index"], body["registry"]
    newest_note = (
        f", the newest of {registry_figures['newest'][:10]}" if registry_figures["newest"] else ""
    )
    return {
        "tail": f"{len(body['tail'])} turns",
        "index": f"{index['count']} turns, {index['cold']} cold",
        "hot buffer": f"{len(body['hot'])} memories",
        "registry": f"{registry_figures['exchanges']} exchanges{newest_note}",
        "topics": str(body["topics"]["count"]),
    }


def render_tier_panel(body: Mapping[str, Any]) -> RenderableType:
    """The figures, and the newest turns with what they are worth, in one panel."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from told.faces.cli import views

    parts: list[RenderableType] = [views.render_pairs(_tier_figures(body))]
    if body["tail"]:
        grid = views.build_table("worth", "who", "said last")
        for row in body["tail"][-MAX_TAIL_ROWS:]:
            grid.add_row(
                views.render_bar(row["importance"]),
                views.safe_text(row["role"], "dim"),
                views.safe_text(row["memory"]),
            )
        parts += [Text(), grid]
    return Panel(Group(*parts), title="tiers", title_align="left", box=box.ROUNDED, expand=False)
