"""The command that talks: what is said is remembered, and what is remembered answers."""

from __future__ import annotations

from typing import Annotated

import typer

from told.faces.cli.options import Agent, AsOf, Run, User, Yes, option, scope_args
from told.faces.cli.shell import Shell, command

PANEL = "Talk"
app = typer.Typer()
ModelOption = Annotated[
    str | None,
    option(
        "--llm", metavar="MODEL",
        about="Who answers, such as openai:gpt-4o-mini; none lets memory answer by itself. Otherwise the setting llm.",
    ),
]  # fmt: skip


@command(app, rich_help_panel=PANEL)
def chat(
    shell: Shell,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    llm: ModelOption = None,
    as_of: AsOf = None,
    yes: Yes = False,
) -> None:
    """Talk with somebody who remembers: with a model if there is one, else with memory itself; /help says what else.

    Every line is a message, on a terminal as in a pipe. With --json every answer is one line of JSON.
    """
    from told.faces.cli import talk

    if exit_code := talk.run_chat(shell, scope_args(user, agent, run), llm, as_of=as_of, yes=yes):
        raise typer.Exit(exit_code)
