"""`told chat`: read lines from a terminal or a pipe, print replies, run slash commands."""

from __future__ import annotations

from typing import Annotated

import typer

from told.cli.options import Agent, AsOf, Run, User, Yes, option, scope_args
from told.cli.shell import Shell, command

PANEL = "Talk"


app = typer.Typer()


ModelOption = Annotated[
    str | None,
    option(
        "--llm",
        metavar="MODEL",
        about="Model that replies, such as openai:gpt-4o-mini; none replies from memory alone. "
        "Default: setting llm.",
    ),
]


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
    """Chat with a memory: answered by a model if one is configured, else from memory; see /help.

    Each line is one message, on a terminal or from a pipe. With --json each reply is one line
    of JSON.
    """
    from told.cli.chat_loop import run_chat

    if exit_code := run_chat(shell, scope_args(user, agent, run), llm, as_of=as_of, yes=yes):
        raise typer.Exit(exit_code)
