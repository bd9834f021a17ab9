"""The commands that read: search, get, list, context, explain, history, timeline and diff."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from told.core.errors import NotFoundError
from told.faces.cli.options import (
    Agent,
    AsOf,
    Expired,
    Filter,
    Limit,
    MemoryId,
    Run,
    Threshold,
    User,
    ValidAt,
    Where,
    argument,
    choice,
    option,
    scope,
    times,
)
from told.faces.cli.shell import Shell, command

PANEL = "Recall"
app = typer.Typer()


@command(app, rich_help_panel=PANEL)
def search(
    shell: Shell, query: Annotated[str, argument("What to look for.")],
    user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None, valid_at: ValidAt = None,
    filter: Filter = None, where: Where = None, limit: Limit = None, threshold: Threshold = None,
    show_expired: Expired = False,
) -> None:  # fmt: skip
    """Find the memories that answer a query best."""
    from told.faces.cli import views

    with shell.memory() as memory:
        found = memory.search(
            query, **scope(user, agent, run), **times(as_of, valid_at), **choice(filter, where, limit, show_expired),
            threshold=threshold,
        )  # fmt: skip
    shell.show(found, views.memories)


@command(app, "list", rich_help_panel=PANEL)
def list_(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None,
    valid_at: ValidAt = None, filter: Filter = None, where: Where = None, limit: Limit = None,
    offset: Annotated[int, option(about="Leave out this many first.", metavar="N", min=0)] = 0,
    show_expired: Expired = False,
) -> None:  # fmt: skip
    """List what a scope holds, oldest first."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.get_all(
            **scope(user, agent, run), **times(as_of, valid_at), **choice(filter, where, limit, show_expired),
            offset=offset,
        )  # fmt: skip
    shell.show(found, views.memories)


@command(app, rich_help_panel=PANEL)
def get(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None,
    valid_at: ValidAt = None,
) -> None:  # fmt: skip
    """Show one memory, now or as it was."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.get(memory_id, **times(as_of, valid_at), **scope(user, agent, run))
    if found is None:
        raise NotFoundError(f"There is no memory {memory_id!r} here.", hint="List them with `told list`.")
    shell.show(found, views.memory)


@command(app, rich_help_panel=PANEL)
def context(
    shell: Shell,
    query: Annotated[str | None, argument(
        "What the prompt is about; without it, the newest memories.", "[QUERY]")] = None,
    user: User = None, agent: Agent = None, run: Run = None,
    budget: Annotated[int | None, option(about="At most this many tokens.", metavar="N")] = None,
    as_of: AsOf = None, valid_at: ValidAt = None, filter: Filter = None, where: Where = None, limit: Limit = None,
    show_expired: Expired = False,
) -> None:  # fmt: skip
    """Print a block of memories for a prompt that never costs more than its budget of tokens."""
    from told.faces import shapes
    from told.faces.cli import views

    with shell.memory() as memory:
        found = memory.context(
            query, **scope(user, agent, run), budget=budget, **times(as_of, valid_at),
            **choice(filter, where, limit, show_expired),
        )  # fmt: skip
    if shell.json:
        shell.print_json(shapes.bundle(found))
        return
    print(views.safe(found.text).plain if sys.stdout.isatty() else found.text)
    shell.note(f"{found.tokens} of {found.budget} tokens, {len(found.hits)} memories")
    for warning in found.warnings:
        shell.note(f"warning: {warning}")


@command(app, rich_help_panel=PANEL)
def explain(
    shell: Shell, query: Annotated[str, argument("The search to explain.")],
    user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None, valid_at: ValidAt = None,
    filter: Filter = None, where: Where = None, limit: Limit = None, threshold: Threshold = None,
    show_expired: Expired = False,
) -> None:  # fmt: skip
    """Show why a search finds what it finds: every candidate, its scores and its fate."""
    from told.faces.cli import views

    with shell.memory() as memory:
        found = memory.explain(
            query, **scope(user, agent, run), **times(as_of, valid_at), **choice(filter, where, limit, show_expired),
            threshold=threshold,
        )  # fmt: skip
    shell.show(found, views.explanation)


@command(app, rich_help_panel=PANEL)
def history(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show everything that happened to a memory."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.history(memory_id, **scope(user, agent, run))
    shell.show(found, views.changes)


@command(app, rich_help_panel=PANEL)
def timeline(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = None
) -> None:
    """Show everything a scope came to believe or gave up; with --limit, the newest of it."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.timeline(**scope(user, agent, run), limit=limit)
    shell.show(found, views.timeline)


@command(app, rich_help_panel=PANEL)
def diff(
    shell: Shell, before: Annotated[str, argument("The earlier moment.")],
    after: Annotated[str | None, argument("The later one; now if left out.", "[AFTER]")] = None,
    user: User = None, agent: Agent = None, run: Run = None,
) -> None:  # fmt: skip
    """Show what changed in a scope between two moments."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.diff(before, after, **scope(user, agent, run))
    shell.show(found, views.diff)
