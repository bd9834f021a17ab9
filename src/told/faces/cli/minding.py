"""The commands about what was understood: wait, contradictions, entities, relations, revoke, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from told.faces.cli.options import Agent, MemoryId, Run, User, argument, scope
from told.faces.cli.shell import Shell, command, print_help

PANEL = "Understand"
app = typer.Typer()
faults = typer.Typer()
quarantine = typer.Typer()
Numbers = Annotated[list[int] | None, argument("The faults' numbers; all of them if left out.", "[NUMBER]...")]


@command(app, rich_help_panel=PANEL)
def wait(shell: Shell) -> None:
    """Ask the language model about everything that waits for it."""
    from told.faces.cli import views

    with shell.asking() as memory, shell.progress("Understanding"):
        done = memory.wait()
    shell.show(done, views.receipt)


@command(app, rich_help_panel=PANEL)
def contradictions(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List memories that say different things of the same."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.contradictions(**scope(user, agent, run))
    shell.show(found, views.contradictions)


@command(app, rich_help_panel=PANEL)
def entities(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List whom and what memories speak of."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.entities(**scope(user, agent, run))
    shell.show(found, lambda body: _grid(body, "name", "type", "description") or views.quiet("Nobody yet."))


@command(app, rich_help_panel=PANEL)
def relations(
    shell: Shell, name: Annotated[str, argument("Whom or what to look at.", "NAME")],
    user: User = None, agent: Agent = None, run: Run = None,
) -> None:  # fmt: skip
    """Show how one that memories speak of bears on others."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.relations(name, **scope(user, agent, run))
    shell.show(found, lambda body: _grid(body, "source", "relation", "target") or views.quiet("No relation yet."))


@command(app, rich_help_panel=PANEL)
def identify(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Note which names may mean the same, for searches with --lens; nothing is merged."""
    from told.faces.cli import views

    with shell.memory() as memory:
        found = memory.identify(**scope(user, agent, run))
    columns = ("source", "target", "weight", "method")
    shell.show(found, lambda body: _grid(body, *columns) or views.quiet("No names look alike that were not noted yet."))


def _grid(body: Mapping[str, Any], *names: str) -> Any:
    """A table of some fields of the results, if there are any."""
    from told.faces.cli import views

    if not body["results"]:
        return None
    grid = views.grid(*names)
    for row in body["results"]:
        grid.add_row(*(views.safe(row.get(name, "")) for name in names))
    return grid


@command(app, rich_help_panel=PANEL)
def revoke(shell: Shell, source: Annotated[str, argument("The source not to be believed any more.", "NAME")]) -> None:
    """Give up everything that was taken from a source; its history stays. To destroy it use `erase --source`."""
    from told.faces.cli import views

    with shell.words() as memory:
        done = memory.revoke(source)
    shell.show(done, views.receipt)


@command(app, rich_help_panel=PANEL)
def reveal(shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Print a memory with the secrets in it that are kept encrypted; needs the key they were kept with."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.reveal(memory_id, **scope(user, agent, run))
    shell.show(found, lambda body: views.safe(body["memory"]))


# Faults ---------------------------------------------------------------------------------------------------------------


@faults.callback(invoke_without_command=True)
def _faults(ctx: typer.Context) -> None:
    """What could not be done, such as a model's answer that could not be read: list, retry, drop."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(faults, "list")
def list_faults(shell: Shell) -> None:
    """List what could not be done; with --json, what the model answered too."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.faults()
    columns = ("id", "consumer", "error", "attempts", "at")
    shell.show(found, lambda body: _grid(body, *columns) or views.quiet("No faults."))


@command(faults, "retry")
def retry_faults(shell: Shell, numbers: Numbers = None) -> None:
    """Ask the model again about what failed."""
    from told.faces.cli.views import pairs

    with shell.asking() as memory:
        done = memory.retry_faults(numbers or None)
    shell.show(done, pairs)


@command(faults, "drop")
def drop_faults(shell: Shell, numbers: Numbers = None) -> None:
    """Forget what failed; the words are kept."""
    from told.faces.cli.views import pairs

    with shell.words() as memory:
        done = memory.drop_faults(numbers or None)
    shell.show(done, pairs)


# Quarantine -----------------------------------------------------------------------------------------------------------


@quarantine.callback(invoke_without_command=True)
def _quarantine(ctx: typer.Context) -> None:
    """Claims in doubt, which no search finds: list, accept, reject."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(quarantine, "list")
def list_quarantine(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """List the claims that wait for a review, and why they do."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.quarantine(**scope(user, agent, run))

    def table(body: Mapping[str, Any]) -> Any:
        if not body["results"]:
            return views.quiet("Nothing is in doubt.")
        grid = views.grid("claim", "why")
        grid.columns[0].min_width = len(body["results"][0]["id"])
        for row in body["results"]:
            grid.add_row(views.named(row["memory"], row["id"]), views.safe(row["metadata"].get("why", ""), "dim"))
        return grid

    shell.show(found, table)


@command(quarantine)
def accept(shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Hold a claim as if you had said it yourself."""
    _reviewed(shell, memory_id, accept=True, ids=scope(user, agent, run))


@command(quarantine)
def reject(shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Give a claim up."""
    _reviewed(shell, memory_id, accept=False, ids=scope(user, agent, run))


def _reviewed(shell: Shell, memory_id: str, *, accept: bool, ids: Any) -> None:
    from told.faces.cli import views

    with shell.memory() as memory:
        done = memory.review(memory_id, accept, **ids)
    shell.show(done, views.receipt)
