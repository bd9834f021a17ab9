"""The commands of the sleep path: recalls, and the group reconsolidate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import (
    Agent,
    Limit,
    MemoryId,
    Run,
    User,
    argument,
    option,
    parse_messages,
    scope_args,
)
from told.faces.cli.shell import Shell, command, print_help
from told.faces.cli.streams import read_stdin

app = typer.Typer()
group = typer.Typer()


@command(app, rich_help_panel="Understand")
def recalls(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show when a memory was recalled, at which rank and with which score."""
    with shell.open_without_models() as memory:
        result = memory.recalls(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, _render_recalls)


def _render_recalls(body: Mapping[str, Any]) -> Any:
    from told.faces.cli import views

    if not body["results"]:
        return views.dim_text("Never recalled.")
    grid = views.build_table("when", "rank", "score", "query hash")
    for row in body["results"]:
        cells = (
            views.format_minute(row["at"]),
            row["rank"],
            f"{row['score']:.3f}",
            row.get("query_hash", ""),
        )
        grid.add_row(*map(views.safe_text, cells))
    return grid


@group.callback(invoke_without_command=True)
def reconsolidate_group(ctx: typer.Context) -> None:
    """Memories that were recalled and are to be thought over: enqueue, queue, run, apply."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(group)
def enqueue(
    shell: Shell,
    memory_id: MemoryId,
    reason: Annotated[
        str,
        option(
            "--reason",
            about="explicit, recall, contradiction, policy_change or scheduled_review.",
            metavar="WORD",
        ),
    ] = "explicit",
    priority: Annotated[
        float, option("--priority", about="How urgent, 0 to 1.", metavar="NUMBER")
    ] = 1.0,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Queue a memory to be thought over."""
    from told.faces.cli.views import render_pairs

    with shell.open_without_models() as memory:
        result = memory.enqueue(
            memory_id, reason=reason, priority=priority, **scope_args(user, agent, run)
        )
    shell.show_result(result, render_pairs)


@command(group)
def queue(shell: Shell, limit: Limit = None) -> None:
    """List what is to be thought over, the most urgent first, and why."""
    with shell.open_without_models() as memory:
        result = memory.queue(limit=limit)
    shell.show_result(result, _render_queue)


def _render_queue(body: Mapping[str, Any]) -> Any:
    from rich.text import Text

    from told.faces.cli import views

    if not body["results"]:
        return views.dim_text("Nothing is queued.")
    grid = views.build_table("priority", "due", "reason", "memory")
    for column in grid.columns[:3]:
        column.no_wrap = True
    for row in body["results"]:
        reasons = [", ".join(row["why"])] if "why" in row else []
        lines = [
            views.safe_text(row["memory"]),
            *(views.safe_text(line, "dim") for line in (*reasons, row["id"])),
        ]
        grid.add_row(
            f"{row['priority']:.2f}",
            views.format_minute(row["due"]),
            row["reason"],
            Text("\n").join(lines),
        )
    return grid


@command(group)
def run(
    shell: Shell,
    limit: Limit = None,
    watch: Annotated[
        bool, option("--watch", about="Look into the queue again and again, until Ctrl-C.")
    ] = False,
) -> None:
    """Think over what is queued and due; what comes of it stands beside the memories it came from."""
    with shell.open_with_llm() as memory:
        shell.show_result(memory.reflect(limit=limit), _render_outcome)
        while watch:
            time.sleep(memory.engine.settings.reconsolidate_poll)
            result = memory.reflect(limit=limit)
            if result["tasks"] or result["failed"]:
                shell.show_result(result, _render_outcome)


@command(group)
def apply(
    shell: Shell,
    delta: Annotated[str, argument("The delta as JSON, or - for standard input.", "JSON")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Do what a delta says, an operation or a list of them: all of it, or nothing."""
    from told.faces.cli import views

    delta_json = parse_messages(read_stdin() if delta == "-" else delta, "the delta")
    with shell.open_without_llm() as memory:
        result = memory.apply_delta(delta_json, **scope_args(user, agent, run))
    shell.show_result(result, views.render_receipt)


def _render_outcome(body: Mapping[str, Any]) -> Any:
    """What a look into the queue came to."""
    from told.faces.cli import views

    counts = views.render_pairs(
        {"tasks": body["tasks"], "failed": body["failed"], "operations": len(body["operations"])}
    )
    if not body["operations"]:
        return counts
    grid = views.build_table("operation", "of")
    for operation in body["operations"]:
        details = ", ".join(f"{name} {value}" for name, value in operation.items() if name != "op")
        grid.add_row(views.safe_text(operation["op"]), views.safe_text(details))
    return grid
