"""The commands about forgetting: about, decay and forget."""

from __future__ import annotations

from typing import Annotated

import typer

from told.faces.cli.options import (
    Agent,
    AsOf,
    MemoryId,
    OptionalMemoryId,
    Run,
    User,
    option,
    scope_args,
)
from told.faces.cli.shell import Shell, command

PANEL = "Fade and forget"
app = typer.Typer()
ClockOption = Annotated[
    str | None,
    option(
        "--clock", about="As if it faded by another clock: turns, time or tokens.", metavar="CLOCK"
    ),
]
PointsOption = Annotated[
    int, option("--points", about="How many points the curve has.", metavar="N")
]


@command(app, rich_help_panel=PANEL)
def about(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None
) -> None:
    """Show what is remembered of somebody: every memory, from which words, how strong, and when it will fade."""
    from told.faces.cli import curves

    with shell.open_without_models() as memory:
        result = memory.about(**scope_args(user, agent, run), as_of=as_of)
    shell.show_result(result, curves.render_remembered)


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
    """Draw how a memory fades."""
    from told.faces.cli import curves

    with shell.open_without_models() as memory:
        result = memory.decay(
            memory_id, points=points, clock=clock, as_of=as_of, **scope_args(user, agent, run)
        )
    shell.show_result(result, curves.render_decay)


@command(app, rich_help_panel=PANEL)
def forget(
    shell: Shell,
    memory_id: OptionalMemoryId = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Give up a memory, or with a scope alone everything in it that has faded; the past keeps it."""
    from told.faces.cli import curves

    with shell.open_without_models() as memory:
        result = memory.forget(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, curves.render_forgotten)
