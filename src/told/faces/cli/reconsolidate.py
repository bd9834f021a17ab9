"""The commands of the sleep path: recalls, and the group reconsolidate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, Limit, MemoryId, Run, User, argument, messages, option, scope
from told.faces.cli.shell import Shell, command, print_help
from told.faces.cli.streams import piped

app = typer.Typer()
group = typer.Typer()


@command(app, rich_help_panel="Understand")
def recalls(shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Show when a memory was recalled, at which rank and with which score."""
    with shell.words() as memory:
        found = memory.recalls(memory_id, **scope(user, agent, run))
    shell.show(found, _recalls)


def _recalls(body: Mapping[str, Any]) -> Any:
    from told.faces.cli import views

    if not body["results"]:
        return views.quiet("Never recalled.")
    grid = views.grid("when", "rank", "score", "query hash")
    for row in body["results"]:
        cells = views.minute(row["at"]), row["rank"], f"{row['score']:.3f}", row.get("query_hash", "")
        grid.add_row(*map(views.safe, cells))
    return grid


@group.callback(invoke_without_command=True)
def _group(ctx: typer.Context) -> None:
    """Memories that were recalled and are to be thought over: enqueue, queue, run, apply."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(group)
def enqueue(
    shell: Shell, memory_id: MemoryId,
    reason: Annotated[str, option("--reason", about="explicit, recall, contradiction, policy_change or "
                                  "scheduled_review.", metavar="WORD")] = "explicit",
    priority: Annotated[float, option("--priority", about="How urgent, 0 to 1.", metavar="NUMBER")] = 1.0,
    user: User = None, agent: Agent = None, run: Run = None,
) -> None:  # fmt: skip
    """Queue a memory to be thought over."""
    from told.faces.cli.views import pairs

    with shell.words() as memory:
        done = memory.enqueue(memory_id, reason=reason, priority=priority, **scope(user, agent, run))
    shell.show(done, pairs)


@command(group)
def queue(shell: Shell, limit: Limit = None) -> None:
    """List what is to be thought over, the most urgent first, and why."""
    with shell.words() as memory:
        found = memory.queue(limit=limit)
    shell.show(found, _queue)


def _queue(body: Mapping[str, Any]) -> Any:
    from rich.text import Text

    from told.faces.cli import views

    if not body["results"]:
        return views.quiet("Nothing is queued.")
    grid = views.grid("priority", "due", "reason", "memory")
    for column in grid.columns[:3]:
        column.no_wrap = True
    for row in body["results"]:
        about = [", ".join(row["why"])] if "why" in row else []
        lines = [views.safe(row["memory"]), *(views.safe(line, "dim") for line in (*about, row["id"]))]
        grid.add_row(f"{row['priority']:.2f}", views.minute(row["due"]), row["reason"], Text("\n").join(lines))
    return grid


@command(group)
def run(
    shell: Shell, limit: Limit = None,
    watch: Annotated[bool, option("--watch", about="Look into the queue again and again, until Ctrl-C.")] = False,
) -> None:  # fmt: skip
    """Think over what is queued and due; what comes of it stands beside the memories it came from."""
    with shell.asking() as memory:
        shell.show(memory.reflect(limit=limit), _outcome)
        while watch:
            time.sleep(memory.engine.settings.reconsolidate_poll)
            done = memory.reflect(limit=limit)
            if done["tasks"] or done["failed"]:
                shell.show(done, _outcome)


@command(group)
def apply(
    shell: Shell, delta: Annotated[str, argument("The delta as JSON, or - for standard input.", "JSON")],
    user: User = None, agent: Agent = None, run: Run = None,
) -> None:  # fmt: skip
    """Do what a delta says, an operation or a list of them: all of it, or nothing."""
    from told.faces.cli import views

    words = messages(piped() if delta == "-" else delta, "the delta")
    with shell.memory() as memory:
        done = memory.apply_delta(words, **scope(user, agent, run))
    shell.show(done, views.receipt)


def _outcome(body: Mapping[str, Any]) -> Any:
    """What a look into the queue came to."""
    from told.faces.cli import views

    counts = views.pairs({"tasks": body["tasks"], "failed": body["failed"], "operations": len(body["operations"])})
    if not body["operations"]:
        return counts
    grid = views.grid("operation", "of")
    for each in body["operations"]:
        about = ", ".join(f"{name} {value}" for name, value in each.items() if name != "op")
        grid.add_row(views.safe(each["op"]), views.safe(about))
    return grid
