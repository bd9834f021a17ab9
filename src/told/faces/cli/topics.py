"""The commands about topics: list, show, file, merge, abstract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, AsOf, Run, User, argument, scope_args
from told.faces.cli.shell import Shell, command, print_help

app = typer.Typer()
TopicId = Annotated[str, argument("The topic's id.", "TOPIC")]


@app.callback(invoke_without_command=True)
def topics_group(ctx: typer.Context) -> None:
    """What exchanges are about: list, show, file, merge, abstract."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app, "list")
def list_topics(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None
) -> None:
    """List topics with how many exchanges they hold and which they came up with."""
    with shell.open_without_models() as memory:
        result = memory.topics(**scope_args(user, agent, run), as_of=as_of)
    shell.show_result(result, _render_topics)


@command(app)
def show(
    shell: Shell, topic_id: TopicId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show one topic with the turns in it."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.topic(topic_id, **scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        grid = views.build_table("said")
        grid.title = views.safe_text(body["label"])
        for row in body["results"]:
            grid.add_row(views.text_with_id(row["memory"], row["id"]))
        return grid

    shell.show_result(result, render_table)


@command(app)
def file(shell: Shell) -> None:
    """Put every exchange that waits into a topic."""
    from told.faces.cli.views import render_pairs

    with shell.open_without_llm() as memory, shell.show_progress("Filing"):
        result = memory.file_topics()
    shell.show_result(result, render_pairs)


@command(app)
def merge(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Make one of topics that are nearly the same."""
    from told.faces.cli import views

    with shell.open_without_llm() as memory:
        result = memory.merge_topics(**scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        grid = views.build_table("topic", "is one with")
        for row in body["merged"]:
            grid.add_row(views.safe_text(row["id"]), views.safe_text(row["into"]))
        return grid if body["merged"] else views.dim_text("No two topics are the same.")

    shell.show_result(result, render_table)


@command(app)
def abstract(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Make topics of topics, named by the language model if there is one."""
    with shell.open_with_llm() as memory:
        result = memory.abstract_topics(**scope_args(user, agent, run))
    shell.show_result(result, _render_topics)


def _render_topics(body: Mapping[str, Any]) -> Any:
    from told.faces.cli import views

    if not body["results"]:
        return views.dim_text("No topics yet.")
    grid = views.build_table("exchanges", "topics", "label")
    for row in body["results"]:
        neighbours = ", ".join(
            f"{neighbour['label']} ×{neighbour['count']}" for neighbour in row["neighbours"][:3]
        )
        label = views.text_with_id(row["label"], row["id"])
        label.append(
            f"\ncame up with {views.safe_text(neighbours)}" if neighbours else "", style="dim"
        )
        grid.add_row(str(row["members"] or ""), str(len(row["parts"]) or ""), label)
    return grid
