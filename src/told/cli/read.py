"""Commands that read: search, get, list, context, explain, why-not, history, timeline and diff."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from told.cli.options import (
    Agent,
    AsOf,
    Belief,
    Filter,
    Kinds,
    Lens,
    Limit,
    MemoryId,
    MinScore,
    ReferenceDate,
    Rerank,
    Run,
    ShowExpired,
    User,
    ValidAt,
    Where,
    argument,
    filter_args,
    option,
    query_args,
    scope_args,
    time_args,
)
from told.cli.shell import Shell, command
from told.errors import NotFoundError
from told.model.query import Bundle

PANEL = "Recall"
app = typer.Typer()


@command(app, rich_help_panel=PANEL)
def search(
    shell: Shell,
    query: Annotated[str, argument("What to look for.", "QUERY")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
    reference_date: ReferenceDate = None,
    filter: Filter = None,
    where: Where = None,
    kind: Kinds = None,
    limit: Limit = None,
    min_score: MinScore = None,
    rerank: Rerank = False,
    show_expired: ShowExpired = False,
    belief: Belief = None,
    lens: Lens = None,
) -> None:
    """Search memories by meaning and words."""
    from told.cli import views

    with shell.open_without_llm() as memory:
        result = memory.search(
            query,
            **scope_args(user, agent, run),
            **time_args(as_of, valid_at),
            **filter_args(filter, where, limit, show_expired),
            **query_args(kind, min_score, reference_date),
            rerank=rerank,
            belief=belief,
            lens=lens,
        )
    shell.show_result(result, views.render_search_results)


@command(app, "list", rich_help_panel=PANEL)
def list_(
    shell: Shell,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
    filter: Filter = None,
    where: Where = None,
    kind: Kinds = None,
    limit: Limit = None,
    offset: Annotated[int, option(about="Skip this many results.", metavar="N", min=0)] = 0,
    show_expired: ShowExpired = False,
    belief: Belief = None,
) -> None:
    """List a scope's memories, oldest first; turns and entity nodes only with --kind."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.get_all(
            **scope_args(user, agent, run),
            **time_args(as_of, valid_at),
            **filter_args(filter, where, limit, show_expired),
            offset=offset,
            kinds=kind or None,
            belief=belief,
        )
    shell.show_result(result, views.render_memories)


@command(app, rich_help_panel=PANEL)
def get(
    shell: Shell,
    memory_id: MemoryId,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
) -> None:
    """Show one memory, now or at a point in time."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.get(memory_id, **time_args(as_of, valid_at), **scope_args(user, agent, run))
    if result is None:
        raise _not_found_error(memory_id)
    shell.show_result(result, views.render_memory)


def _not_found_error(memory_id: str) -> NotFoundError:
    return NotFoundError(
        f"There is no memory {memory_id!r} here.", hint="List them with get_all()."
    )


@command(app, rich_help_panel=PANEL)
def context(
    shell: Shell,
    query: Annotated[
        str | None,
        argument("Query for the context; default: the newest memories.", "[QUERY]"),
    ] = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    budget: Annotated[int | None, option(about="At most this many tokens.", metavar="N")] = None,
    format: Annotated[
        str | None,
        option(
            about="text, markdown, xml, or messages: a JSON list for a chat model.",
            metavar="FORMAT",
        ),
    ] = None,
    tail: Annotated[
        int | None,
        option(about="Append the last N turns.", metavar="N"),
    ] = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
    reference_date: ReferenceDate = None,
    filter: Filter = None,
    where: Where = None,
    kind: Kinds = None,
    limit: Limit = None,
    min_score: MinScore = None,
    rerank: Rerank = False,
    show_expired: ShowExpired = False,
    belief: Belief = None,
    lens: Lens = None,
) -> None:
    """Print a block of memories for a prompt, within a token budget."""
    with shell.open_without_llm() as memory:
        bundle = memory.context(
            query,
            **scope_args(user, agent, run),
            budget=budget,
            format=format,
            tail=tail,
            **time_args(as_of, valid_at),
            **filter_args(filter, where, limit, show_expired),
            **query_args(kind, min_score, reference_date),
            rerank=rerank,
            belief=belief,
            lens=lens,
        )
    _print_bundle(shell, bundle, as_messages=format == "messages")


def _print_bundle(shell: Shell, bundle: Bundle, *, as_messages: bool) -> None:
    """Print the block on standard output and its cost on standard error."""
    from told.api import serialize
    from told.cli import views

    if shell.json:
        shell.print_json(serialize.bundle_to_dict(bundle))
        return
    if as_messages:
        shell.print_json([dict(message) for message in bundle.messages])
    else:
        print(views.safe_text(bundle.text).plain if sys.stdout.isatty() else bundle.text)
    shell.print_note(
        f"{bundle.tokens} of {bundle.budget} tokens, "
        f"{views.pluralize(len(bundle.hits), 'memory', 'memories')}"
    )
    for warning in bundle.warnings:
        shell.print_note(f"warning: {warning}")


@command(app, rich_help_panel=PANEL)
def explain(
    shell: Shell,
    query: Annotated[str, argument("The search to explain.", "QUERY")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
    reference_date: ReferenceDate = None,
    filter: Filter = None,
    where: Where = None,
    kind: Kinds = None,
    limit: Limit = None,
    min_score: MinScore = None,
    rerank: Rerank = False,
    show_expired: ShowExpired = False,
    belief: Belief = None,
    lens: Lens = None,
) -> None:
    """Explain a search: every candidate, its scores and the stage that dropped it."""
    from told.cli import views

    with shell.open_without_llm() as memory:
        result = memory.explain(
            query,
            **scope_args(user, agent, run),
            **time_args(as_of, valid_at),
            **filter_args(filter, where, limit, show_expired),
            **query_args(kind, min_score, reference_date),
            rerank=rerank,
            belief=belief,
            lens=lens,
        )
    shell.show_result(result, views.render_explanation)


@command(app, "why-not", rich_help_panel=PANEL)
def why_not(
    shell: Shell,
    query: Annotated[str, argument("The query that does not return it.", "QUERY")],
    memory_id: MemoryId,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_of: AsOf = None,
    valid_at: ValidAt = None,
    reference_date: ReferenceDate = None,
    filter: Filter = None,
    where: Where = None,
    kind: Kinds = None,
    limit: Limit = None,
    min_score: MinScore = None,
    show_expired: ShowExpired = False,
    belief: Belief = None,
    lens: Lens = None,
) -> None:
    """Explain why a search does not return a memory, compared with the last hit."""
    from told.cli import views

    with shell.open_without_llm() as memory:

        def call_verb(verb: Callable[..., dict[str, Any]], *words: str) -> dict[str, Any]:
            return verb(
                *words,
                **scope_args(user, agent, run),
                **time_args(as_of, valid_at),
                **filter_args(filter, where, limit, show_expired),
                **query_args(kind, min_score, reference_date),
                belief=belief,
                lens=lens,
            )

        result = call_verb(memory.why_not, query, memory_id)
        explanation = (
            None if shell.json or "parts" not in result else call_verb(memory.explain, query)
        )
    shell.show_result(result, lambda body: views.render_why_not(body, explanation))


@command(app, rich_help_panel=PANEL)
def history(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show every version of a memory."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.history(memory_id, **scope_args(user, agent, run))
    if not result:
        raise _not_found_error(memory_id)
    shell.show_result(result, views.render_changes)


@command(app, rich_help_panel=PANEL)
def timeline(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = None
) -> None:
    """Show what a scope learned and retracted; with --limit, only the newest."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.timeline(**scope_args(user, agent, run), limit=limit)
    shell.show_result(result, views.render_timeline)


@command(app, rich_help_panel=PANEL)
def diff(
    shell: Shell,
    before: Annotated[str, argument("The earlier time.", "BEFORE")],
    after: Annotated[str | None, argument("The later time; default: now.", "[AFTER]")] = None,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Show what changed in a scope between two points in time."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.diff(before, after, **scope_args(user, agent, run))
    shell.show_result(result, views.render_diff)
