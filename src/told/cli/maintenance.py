"""Commands that maintain a store, its topics and the reconsolidation queue."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from told.cli.options import (
    Agent,
    AsOf,
    Limit,
    MemoryId,
    Run,
    User,
    Yes,
    argument,
    option,
    parse_file_or_stdin,
    parse_messages,
    scope_args,
)
from told.cli.shell import EXIT_UNSOUND, Shell, TickCallback, command, print_help, read_stdin
from told.errors import InvalidInput

if TYPE_CHECKING:
    from told.api.memory import Memory
    from told.ports import Embedder, Purpose, Vector, View

PANEL = "Maintenance"
app = typer.Typer()
topics_app = typer.Typer()
ExportTarget = Annotated[Path, argument("File to write; - or none for standard output.", "[PATH]")]
TypeFilter = Annotated[
    str | None, option("--type", "-t", about="Only this type: user, agent or run.", metavar="TYPE")
]
ViewNames = Annotated[
    list[str] | None, argument("evidence facts links passages ticks; default: all.", "[VIEW]...")
]
ImportSource = Annotated[
    Path, argument("Exported ledger; - for standard input.", "PATH", parser=parse_file_or_stdin)
]


@command(app, rich_help_panel=PANEL)
def verify(shell: Shell) -> None:
    """Verify the ledger's hash chain and views; exit code 3 if it was changed."""
    from told.cli import views

    with shell.open_without_models() as memory, shell.show_progress("Verifying"):
        result = memory.verify()
    shell.show_result(result, views.render_verify_result)
    if not result["ok"]:
        raise typer.Exit(EXIT_UNSOUND)


@command(app, rich_help_panel=PANEL)
def rebuild(shell: Shell, views: ViewNames = None) -> None:
    """Rebuild views from the ledger; calls no model."""
    from told.cli.views import render_pairs

    with shell.open_without_models() as memory, shell.show_progress("Rebuilding"):
        result = memory.rebuild(cast("Sequence[View] | None", views or None))
    shell.show_result(result, lambda body: render_pairs(body["rebuilt"]))


@command(app, rich_help_panel=PANEL)
def reindex(shell: Shell) -> None:
    """Embed everything with --embedder, or only missing vectors with the current embedder."""
    from told.cli.views import render_pairs
    from told.plugins import open_embedder

    choice = shell.load_settings().settings.embedder
    with (
        shell.open_without_models() as memory,
        _open_progress(shell, memory, "Embedding", "memories") as tick,
    ):
        embedder = open_embedder(choice, memory.engine.store)
        result = memory.reindex(None if embedder is None else ProgressEmbedder(embedder, tick))
    shell.show_result(result, render_pairs)


def _open_progress(
    shell: Shell, memory: Memory, label: str, count: str
) -> AbstractContextManager[TickCallback]:
    """Open a progress bar sized by one of the store's counts."""
    return shell.show_progress(label, memory.stats().get(count))


@dataclass(frozen=True, slots=True)
class ProgressEmbedder:
    """An embedder that reports progress."""

    inner: Embedder
    tick: TickCallback

    @property
    def model(self) -> str:
        """Return the model name."""
        return self.inner.model

    @property
    def dim(self) -> int:
        """Return the vector dimension."""
        return self.inner.dim

    @property
    def local(self) -> bool:
        """Return whether the embedder runs on this machine."""
        return self.inner.local

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Any:
        """Embed with the wrapped embedder, now or awaitable."""
        from told.flow import map_reply

        return map_reply(
            self.inner.embed(texts, purpose), lambda vectors: self._advance(vectors, len(texts))
        )

    def _advance(self, vectors: Sequence[Vector], count: int) -> Sequence[Vector]:
        self.tick(count)
        return vectors


@command(app, rich_help_panel=PANEL)
def stats(shell: Shell) -> None:
    """Show counts and sizes."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.stats()
    shell.show_result(result, views.render_stats)


@command(app, rich_help_panel=PANEL)
def users(shell: Shell, type: TypeFilter = None) -> None:
    """List users, agents and runs with their memory counts and dates."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.users(type=type)
    shell.show_result(result, views.render_users)


@command(app, rich_help_panel=PANEL)
def export(shell: Shell, target: ExportTarget = Path("-"), yes: Yes = False) -> None:
    """Export the ledger as JSON Lines to a file or standard output."""
    from told.cli.views import build_count_view, pluralize
    from told.ledger.files import replace_file

    if str(target) == "-":
        with shell.open_without_models() as memory:
            result = memory.export(sys.stdout.buffer)
        sys.stdout.flush()
        shell.print_note(pluralize(result["entries"], "entry", "entries"))
        return
    _confirm_overwrite(shell, target, yes)
    with (
        shell.open_without_models() as memory,
        replace_file(target) as file,
        _open_progress(shell, memory, "Exporting", "entries") as tick,
    ):
        result = {**memory.export(ProgressWriter(file, tick)), "path": str(target)}
    shell.show_result(result, build_count_view("entry", "entries"))


def _confirm_overwrite(shell: Shell, target: Path, yes: bool) -> None:
    if target.is_file():
        shell.confirm(f"{target} exists. Overwrite it?", yes=yes)


@dataclass(frozen=True, slots=True)
class ProgressWriter:
    """A file wrapper that reports the bytes written."""

    file: IO[bytes]
    tick: TickCallback

    def write(self, data: bytes) -> int:
        """Write one line."""
        self.tick(1)
        return self.file.write(data)


@command(app, "import", rich_help_panel=PANEL)
def import_(shell: Shell, source: ImportSource) -> None:
    """Import an exported ledger that continues this account's chain."""
    from told.cli.views import build_count_view

    if str(source) == "-":
        with shell.open_without_llm() as memory:
            result = memory.import_(sys.stdin.buffer)
    else:
        bar = shell.show_progress("Importing", source.stat().st_size)
        with shell.open_without_llm() as memory, source.open("rb") as file, bar as tick:
            result = memory.import_(_track_lines(file, tick))
    shell.show_result(result, build_count_view("new entry", "new entries"))


def _track_lines(file: IO[bytes], tick: TickCallback) -> Iterator[bytes]:
    """Yield the lines of a file and advance the bar by their length."""
    for line in file:
        tick(len(line))
        yield line


@command(app, rich_help_panel=PANEL)
def backup(shell: Shell, target: Annotated[Path, argument("The file to write.", "PATH")]) -> None:
    """Write a consistent copy of the store while it is in use."""
    from told.cli import views

    if target.exists():
        raise InvalidInput(f"{target} exists already.", hint="Name a new file for the backup.")
    with shell.open_without_models() as memory, shell.show_progress("Copying"):
        result = memory.backup(target)
    shell.show_result(result, lambda body: views.safe_text(f"copied → {body['path']}"))


group = typer.Typer()


@command(app, rich_help_panel="Extraction")
def recalls(
    shell: Shell, memory_id: MemoryId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show when a memory was recalled, at which rank and score."""
    with shell.open_without_models() as memory:
        result = memory.recalls(memory_id, **scope_args(user, agent, run))
    shell.show_result(result, _render_recalls)


def _render_recalls(body: Mapping[str, Any]) -> Any:
    from told.cli import views

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
    """Manage the reconsolidation queue: enqueue, queue, run, apply."""
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
        float, option("--priority", about="Priority from 0 to 1.", metavar="NUMBER")
    ] = 1.0,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
) -> None:
    """Queue a memory for review."""
    from told.cli.views import render_pairs

    with shell.open_without_models() as memory:
        result = memory.enqueue(
            memory_id, reason=reason, priority=priority, **scope_args(user, agent, run)
        )
    shell.show_result(result, render_pairs)


@command(group)
def queue(shell: Shell, limit: Limit = None) -> None:
    """List the review queue, most urgent first, with reasons."""
    with shell.open_without_models() as memory:
        result = memory.queue(limit=limit)
    shell.show_result(result, _render_queue)


def _render_queue(body: Mapping[str, Any]) -> Any:
    """Render the review queue, most urgent first."""
    from rich.text import Text

    from told.cli import views

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
    watch: Annotated[bool, option("--watch", about="Keep polling the queue until Ctrl-C.")] = False,
) -> None:
    """Review the memories that are due; results are stored beside their sources."""
    with shell.open_with_llm() as memory:
        shell.show_result(memory.reflect(limit=limit), _render_outcome)
        while watch:
            time.sleep(memory.engine.settings.maintenance.reconsolidate_poll)
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
    """Apply a delta, one operation or a list, all or nothing."""
    from told.cli import views

    delta_json = parse_messages(read_stdin() if delta == "-" else delta, "the delta")
    with shell.open_without_llm() as memory:
        result = memory.apply_delta(delta_json, **scope_args(user, agent, run))
    shell.show_result(result, views.render_receipt)


def _render_outcome(body: Mapping[str, Any]) -> Any:
    """Render the result of a queue run."""
    from told.cli import views

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


TopicId = Annotated[str, argument("The topic's id.", "TOPIC")]


@topics_app.callback(invoke_without_command=True)
def topics_group(ctx: typer.Context) -> None:
    """Manage topics: list, show, file, merge, abstract."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


@command(topics_app, "list")
def list_topics(
    shell: Shell, user: User = None, agent: Agent = None, run: Run = None, as_of: AsOf = None
) -> None:
    """List topics with their exchange counts and related topics."""
    with shell.open_without_models() as memory:
        result = memory.topics(**scope_args(user, agent, run), as_of=as_of)
    shell.show_result(result, _render_topics)


@command(topics_app)
def show(
    shell: Shell, topic_id: TopicId, user: User = None, agent: Agent = None, run: Run = None
) -> None:
    """Show one topic and its turns."""
    from told.cli import views

    with shell.open_without_models() as memory:
        result = memory.topic(topic_id, **scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        grid = views.build_table("said")
        grid.title = views.safe_text(body["label"])
        for row in body["results"]:
            grid.add_row(views.text_with_id(row["memory"], row["id"]))
        return grid

    shell.show_result(result, render_table)


@command(topics_app)
def file(shell: Shell) -> None:
    """Assign every waiting exchange to a topic."""
    from told.cli.views import render_pairs

    with shell.open_without_llm() as memory, shell.show_progress("Filing"):
        result = memory.file_topics()
    shell.show_result(result, render_pairs)


@command(topics_app)
def merge(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Merge topics that are nearly the same."""
    from told.cli import views

    with shell.open_without_llm() as memory:
        result = memory.merge_topics(**scope_args(user, agent, run))

    def render_table(body: Mapping[str, Any]) -> Any:
        grid = views.build_table("topic", "merged into")
        for row in body["merged"]:
            grid.add_row(views.safe_text(row["id"]), views.safe_text(row["into"]))
        return grid if body["merged"] else views.dim_text("No topics to merge.")

    shell.show_result(result, render_table)


@command(topics_app)
def abstract(shell: Shell, user: User = None, agent: Agent = None, run: Run = None) -> None:
    """Group topics into supertopics, named by the model if there is one."""
    with shell.open_with_llm() as memory:
        result = memory.abstract_topics(**scope_args(user, agent, run))
    shell.show_result(result, _render_topics)


def _render_topics(body: Mapping[str, Any]) -> Any:
    from told.cli import views

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
