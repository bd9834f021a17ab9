"""The commands that look after a store: verify, rebuild, reindex, stats, users, export, import and backup."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from told.core.errors import InvalidInput
from told.faces.cli.options import Yes, argument, option, parse_file_or_stdin
from told.faces.cli.shell import EXIT_UNSOUND, Shell, TickCallback, command

if TYPE_CHECKING:
    from told.faces.sdk import Memory
    from told.ports import Embedder, Purpose, Vector, View

PANEL = "Look after it"
app = typer.Typer()
ExportTarget = Annotated[
    Path, argument("The file to write; - or nothing is standard output.", "[PATH]")
]
TypeFilter = Annotated[
    str | None, option("--type", "-t", about="Only these: user, agent or run.", metavar="TYPE")
]
ViewNames = Annotated[
    list[str] | None, argument("evidence facts links passages ticks; all if left out.", "[VIEW]...")
]
ImportSource = Annotated[
    Path, argument("An exported ledger; - is standard input.", "PATH", parser=parse_file_or_stdin)
]


@command(app, rich_help_panel=PANEL)
def verify(shell: Shell) -> None:
    """Prove that the ledger is what it was when it was written; exit code 3 if it is not."""
    from told.faces.cli import views

    with shell.open_without_models() as memory, shell.show_progress("Verifying"):
        result = memory.verify()
    shell.show_result(result, views.render_verify_result)
    if not result["ok"]:
        raise typer.Exit(EXIT_UNSOUND)


@command(app, rich_help_panel=PANEL)
def rebuild(shell: Shell, views: ViewNames = None) -> None:
    """Drop views and fold them again from the ledger; no model is asked."""
    from told.faces.cli.views import render_pairs

    with shell.open_without_models() as memory, shell.show_progress("Rebuilding"):
        result = memory.rebuild(cast("Sequence[View] | None", views or None))
    shell.show_result(result, lambda body: render_pairs(body["rebuilt"]))


@command(app, rich_help_panel=PANEL)
def reindex(shell: Shell) -> None:
    """Embed everything with the embedder of --embedder, or what has no vector yet with the present one."""
    from told.faces.cli.views import render_pairs
    from told.open import open_embedder

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
    """A progress bar as long as one of the counts of the store."""
    return shell.show_progress(label, memory.stats().get(count))


@dataclass(frozen=True, slots=True)
class ProgressEmbedder:
    """An embedder that says how far it has come."""

    inner: Embedder
    tick: TickCallback

    @property
    def model(self) -> str:
        """The model's name."""
        return self.inner.model

    @property
    def dim(self) -> int:
        """The length of its vectors."""
        return self.inner.dim

    @property
    def local(self) -> bool:
        """Whether it answers on this machine."""
        return self.inner.local

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Any:
        """What the embedder inside gives, at once or later."""
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
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.stats()
    shell.show_result(result, views.render_stats)


@command(app, rich_help_panel=PANEL)
def users(shell: Shell, type: TypeFilter = None) -> None:
    """List whose memories there are: users, agents and runs, how many are theirs, and since when."""
    from told.faces.cli import views

    with shell.open_without_models() as memory:
        result = memory.users(type=type)
    shell.show_result(result, views.render_users)


@command(app, rich_help_panel=PANEL)
def export(shell: Shell, target: ExportTarget = Path("-"), yes: Yes = False) -> None:
    """Write the ledger as portable JSON Lines, to a file or into a pipe."""
    from told.faces.cli.views import build_count_view, pluralize
    from told.faces.files import replace_file

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
    """A file that counts what is written to it."""

    file: IO[bytes]
    tick: TickCallback

    def write(self, data: bytes) -> int:
        """Write one line."""
        self.tick(1)
        return self.file.write(data)


@command(app, "import", rich_help_panel=PANEL)
def import_(shell: Shell, source: ImportSource) -> None:
    """Append an exported ledger to the account it continues."""
    from told.faces.cli.views import build_count_view

    if str(source) == "-":
        with shell.open_without_llm() as memory:
            result = memory.import_(sys.stdin.buffer)
    else:
        bar = shell.show_progress("Importing", source.stat().st_size)
        with shell.open_without_llm() as memory, source.open("rb") as file, bar as tick:
            result = memory.import_(_track_lines(file, tick))
    shell.show_result(result, build_count_view("new entry", "new entries"))


def _track_lines(file: IO[bytes], tick: TickCallback) -> Iterator[bytes]:
    """The lines of a file; each moves the bar by its length."""
    for line in file:
        tick(len(line))
        yield line


@command(app, rich_help_panel=PANEL)
def backup(shell: Shell, target: Annotated[Path, argument("The file to write.", "PATH")]) -> None:
    """Write a consistent copy of the store while others go on using it."""
    from told.faces.cli import views

    if target.exists():
        raise InvalidInput(f"{target} exists already.", hint="Name a new file for the backup.")
    with shell.open_without_models() as memory, shell.show_progress("Copying"):
        result = memory.backup(target)
    shell.show_result(result, lambda body: views.safe_text(f"copied → {body['path']}"))
