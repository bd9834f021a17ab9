"""Commands about fading and tiers: about, decay, forget, consolidate, tiers, registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.cli.options import (
    Agent,
    AsOf,
    Limit,
    MemoryId,
    OptionalMemoryId,
    Run,
    User,
    option,
    scope_args,
)
from told.cli.shell import Shell, command

if TYPE_CHECKING:
    from rich.console import RenderableType

PANEL = "Fade and forget"


app = typer.Typer()


ClockOption = Annotated[
    str | None,
    option("--clock", about="Use another decay clock: turns, time or tokens.", metavar="CLOCK"),
]


PointsOption = Annotated[
    int, option("--points", about="Number of points of the curve.", metavar="N")
]


@command(app, rich_help_panel=PANEL)
def about(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None
) -> None:
    """Show everything remembered about a scope: source, salience and when each memory fades."""
    from told.cli.charts import render_remembered

    with shell.open_without_models() as memory:
        result = memory.about(**scope_args(user, agent, run), as_of=as_of)
    shell.show_result(result, render_remembered)


@command(app, rich_help_panel=PANEL)
def decay(
    shell: Shell,
    memory_id: MemoryId,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    clock: ClockOption = None,
    points: PointsOption = 60,
) -> None:
    """Draw a memory's decay curve."""
    from told.cli.charts import render_decay

    with shell.open_without_models() as memory:
        result = memory.decay(
            memory_id, points=points, clock=clock, as_of=as_of, **scope_args(user, agent, run)
        )
    shell.show_result(result, render_decay)


@command(app, rich_help_panel=PANEL)
def forget(
    shell: Shell,
    memory_id: OptionalMemoryId = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Forget one memory, or everything in a scope that has faded; the history is kept."""
    from told.cli.charts import render_forgotten

    with shell.open_without_models() as memory:
        result = memory.forget(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, render_forgotten)


TIERS_PANEL = "Maintenance"


Force = Annotated[bool, option("--force", about="Archive everything now, regardless of age.")]


@command(app, rich_help_panel=TIERS_PANEL)
def consolidate(
    shell: Shell, force: Force = False, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Move old turns to the registry and drop small talk; for all scopes if none is given."""
    from told.cli.views import render_pairs

    with shell.open_with_llm() as memory, shell.show_progress("Consolidating"):
        result = memory.consolidate(**scope_args(user, agent, run), force=force)
    shell.show_result(
        result,
        lambda body: render_pairs(
            {name: value for name, value in body.items() if name != "warnings"}
        ),
    )


@command(app, rich_help_panel=TIERS_PANEL)
def tiers(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Show how memories are spread over tail, index, hot buffer, registry and topics."""
    from told.cli.charts import render_tier_lines, render_tier_panel

    with shell.open_without_models() as memory:
        result = memory.tiers(**scope_args(user, agent, run))
    shell.show_result(
        result, render_tier_panel if shell.make_console().is_terminal else render_tier_lines
    )


@command(app, rich_help_panel=TIERS_PANEL)
def registry(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = None
) -> None:
    """List archived exchanges, newest first."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.registry(**scope_args(user, agent, run), limit=limit)

    def render_table(body: Mapping[str, Any]) -> RenderableType:
        if not body["results"]:
            return views.dim_text("No exchange is archived yet.")
        grid = views.build_table("when", "importance", "exchange")
        for row in body["results"]:
            grid.add_row(
                row["at"][:10], views.render_bar(row["importance"]), views.safe_text(row["summary"])
            )
        return grid

    shell.show_result(result, render_table)
