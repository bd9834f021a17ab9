"""The commands about topics: list, show, file, merge, abstract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, AsOf, Run, User, argument, scope
from told.faces.cli.shell import Shell, command, print_help

app = typer.Typer()
TopicId = Annotated[str, argument("The topic's id.", "TOPIC")]


@app.callback(invoke_without_command=True)
def _topics(ctx: typer.Context) -> None:
    """What exchanges are about: list, show, file, merge, abstract."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(app, "list")
def list_topics(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None
) -> None:
    """List topics with how many exchanges they hold and which they came up with."""
    with shell.words() as memory:
        found = memory.topics(**scope(user, agent, run), as_of=as_of)
    shell.show(found, _table)


@command(app)
def show(shell: Shell, topic_id: TopicId, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Show one topic with the turns in it."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.topic(topic_id, **scope(user, agent, run))

    def table(body: Mapping[str, Any]) -> Any:
        grid = views.grid("said")
        grid.title = views.safe(body["label"])
        for row in body["results"]:
            grid.add_row(views.named(row["memory"], row["id"]))
        return grid

    shell.show(found, table)


@command(app)
def file(shell: Shell) -> None:
    """Put every exchange that waits into a topic."""
    from told.faces.cli.views import pairs

    with shell.memory() as memory, shell.progress("Filing"):
        done = memory.file_topics()
    shell.show(done, pairs)


@command(app)
def merge(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Make one of topics that are nearly the same."""
    from told.faces.cli import views

    with shell.memory() as memory:
        done = memory.merge_topics(**scope(user, agent, run))

    def table(body: Mapping[str, Any]) -> Any:
        grid = views.grid("topic", "is one with")
        for row in body["merged"]:
            grid.add_row(views.safe(row["id"]), views.safe(row["into"]))
        return grid if body["merged"] else views.quiet("No two topics are the same.")

    shell.show(done, table)


@command(app)
def abstract(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Make topics of topics, named by the language model if there is one."""
    with shell.asking() as memory:
        done = memory.abstract_topics(**scope(user, agent, run))
    shell.show(done, _table)


def _table(body: Mapping[str, Any]) -> Any:
    from told.faces.cli import views

    if not body["results"]:
        return views.quiet("No topics yet.")
    grid = views.grid("exchanges", "topics", "label")
    for row in body["results"]:
        met = ", ".join(f"{each['label']} ×{each['count']}" for each in row["neighbours"][:3])
        about = views.named(row["label"], row["id"])
        about.append(f"\ncame up with {views.safe(met)}" if met else "", style="dim")
        grid.add_row(str(row["members"] or ""), str(len(row["parts"]) or ""), about)
    return grid
