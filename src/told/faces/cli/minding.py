"""The commands about what was understood: wait, contradictions, entities, relations, revoke, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, MemoryId, Run, User, argument, scope_args
from told.faces.cli.shell import Shell, command, print_help

PANEL = "Understand"
app = typer.Typer()
faults = typer.Typer()
quarantine = typer.Typer()
FaultNumbers = Annotated[
    list[int] | None, argument("The faults' numbers; all of them if left out.", "[NUMBER]...")
]


@command(app, rich_help_panel=PANEL)
def wait(shell: Shell) -> None:
    """Ask the language model about everything that waits for it."""
    from told.faces.cli import views

    with shell.open_with_llm() as memory, shell.show_progress("Understanding"):
        result = memory.wait()
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def contradictions(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List memories that say different things of the same."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.contradictions(**scope_args(user, agent, run))
    shell.show_result(result, views.render_contradictions)


@command(app, rich_help_panel=PANEL)
def entities(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List whom and what memories speak of."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.entities(**scope_args(user, agent, run))
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, "name", "type", "description")
            or views.dim_text("Nobody yet.")
        ),
    )


@command(app, rich_help_panel=PANEL)
def relations(
    shell: Shell,
    name: Annotated[str, argument("Whom or what to look at.", "NAME")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Show how one that memories speak of bears on others."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.relations(name, **scope_args(user, agent, run))
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, "source", "relation", "target")
            or views.dim_text("No relation yet.")
        ),
    )


@command(app, rich_help_panel=PANEL)
def identify(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Note which names may mean the same, for searches with --lens; nothing is merged."""
    from told.faces.cli import views

    with shell.open_without_llm() as memory:
        result = memory.identify(**scope_args(user, agent, run))
    columns = ("source", "target", "weight", "method")
    shell.show_result(
        result,
        lambda body: (
            _build_results_table(body, *columns)
            or views.dim_text("No names look alike that were not noted yet.")
        ),
    )


def _build_results_table(body: Mapping[str, Any], *names: str) -> Any:
    """A table of some fields of the results, if there are any."""
    from told.faces.cli import views

    if not body["results"]:
        return None
    grid = views.build_table(*names)
    for row in body["results"]:
        grid.add_row(*(views.safe_text(row.get(name, "")) for name in names))
    return grid


@command(app, rich_help_panel=PANEL)
def revoke(
    shell: Shell,
    source: Annotated[str, argument("The source not to be believed any more.", "NAME")],
) -> None:
    """Give up everything that was taken from a source; its history stays. To destroy it use `erase --source`."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.revoke(source)
    shell.show_result(result, views.render_receipt)


@command(app, rich_help_panel=PANEL)
def reveal(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Print a memory with the secrets in it that are kept encrypted; needs the key they were kept with."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.reveal(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, lambda body: views.safe_text(body["memory"]))


# Faults ---------------------------------------------------------------------------------------------------------------


@faults.callback(invoke_without_command=True)
def faults_group(ctx: typer.Context) -> None:
    """What could not be done, such as a model's answer that could not be read: list, retry, drop."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(faults, "list")
def list_faults(shell: Shell) -> None:
    """List what could not be done; with --json, what the model answered too."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.faults()
    columns = ("id", "consumer", "error", "attempts", "at")
    shell.show_result(
        result, lambda body: _build_results_table(body, *columns) or views.dim_text("No faults.")
    )


@command(faults, "retry")
def retry_faults(shell: Shell, numbers: FaultNumbers = None) -> None:
    """Ask the model again about what failed."""
    from told.faces.cli.views import render_pairs

    with shell.open_with_llm() as memory:
        result = memory.retry_faults(numbers or None)
    shell.show_result(result, render_pairs)


@command(faults, "drop")
def drop_faults(shell: Shell, numbers: FaultNumbers = None) -> None:
    """Forget what failed; the words are kept."""
    from told.faces.cli.views import render_pairs

    with shell.open_without_models() as memory:
        result = memory.drop_faults(numbers or None)
    shell.show_result(result, render_pairs)


# Quarantine -----------------------------------------------------------------------------------------------------------


@quarantine.callback(invoke_without_command=True)
def quarantine_group(ctx: typer.Context) -> None:
    """Claims in doubt, which no search finds: list, accept, reject."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(quarantine, "list")
def list_quarantine(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the claims that wait for a review, and why they do."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.quarantine(**scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.dim_text("Nothing is in doubt.")
        grid = views.build_table("claim", "why")
        grid.columns[0].min_width = len(body["results"][0]["id"])
        for row in body["results"]:
            grid.add_row(
                views.text_with_id(row["memory"], row["id"]),
                views.safe_text(row["metadata"].get("why", ""), "dim"),
            )
        return grid

    shell.show_result(result, render_table)


@command(quarantine)
def accept(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Hold a claim as if you had said it yourself."""
    _review_claim(shell, memory_id, accept=True, ids=scope_args(user, agent, run))


@command(quarantine)
def reject(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Give a claim up."""
    _review_claim(shell, memory_id, accept=False, ids=scope_args(user, agent, run))


def _review_claim(shell: Shell, memory_id: str, *, accept: bool, ids: Any) -> None:
    from told.faces.cli import views

    with shell.open_without_llm() as memory:
        result = memory.review(memory_id, accept, **ids)
    shell.show_result(result, views.render_receipt)
