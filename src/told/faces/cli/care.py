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
from told.faces.cli.options import Yes, argument, file_or_pipe, option
from told.faces.cli.shell import UNSOUND, Shell, Tick, command

if TYPE_CHECKING:
    from told.faces.sdk import Memory
    from told.ports import Embedder, Purpose, Vector, View

PANEL = "Look after it"
app = typer.Typer()
Target = Annotated[Path, argument("The file to write; - or nothing is standard output.", "[PATH]")]
Type = Annotated[str | None, option("--type", "-t", about="Only these: user, agent or run.", metavar="TYPE")]
Views = Annotated[list[str] | None, argument("evidence facts links passages ticks; all if left out.", "[VIEW]...")]
Source = Annotated[Path, argument("An exported ledger; - is standard input.", "PATH", parser=file_or_pipe)]


@command(app, rich_help_panel=PANEL)
def verify(shell: Shell) -> None:
    """Prove that the ledger is what it was when it was written; exit code 3 if it is not."""
    from told.faces.cli import views

    with shell.words() as memory, shell.progress("Verifying"):
        found = memory.verify()
    shell.show(found, views.verdict)
    if not found["ok"]:
        raise typer.Exit(UNSOUND)


@command(app, rich_help_panel=PANEL)
def rebuild(shell: Shell, views: Views = None) -> None:
    """Drop views and fold them again from the ledger; no model is asked."""
    from told.faces.cli.views import pairs

    with shell.words() as memory, shell.progress("Rebuilding"):
        done = memory.rebuild(cast("Sequence[View] | None", views or None))
    shell.show(done, lambda body: pairs(body["rebuilt"]))


@command(app, rich_help_panel=PANEL)
def reindex(shell: Shell) -> None:
    """Embed everything with the embedder of --embedder, or what has no vector yet with the present one."""
    from told.faces.cli.views import pairs
    from told.open import open_embedder

    choice = shell.loaded().settings.embedder
    with shell.words() as memory, _bar(shell, memory, "Embedding", "memories") as tick:
        embedder = open_embedder(choice, memory.engine.store)
        done = memory.reindex(None if embedder is None else Counting(embedder, tick))
    shell.show(done, pairs)


def _bar(shell: Shell, memory: Memory, label: str, count: str) -> AbstractContextManager[Tick]:
    """A progress bar as long as one of the counts of the store."""
    return shell.progress(label, memory.stats().get(count))


@dataclass(frozen=True, slots=True)
class Counting:
    """An embedder that says how far it has come."""

    inner: Embedder
    tick: Tick

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
        from told.flow import after

        return after(self.inner.embed(texts, purpose), lambda vectors: self._counted(vectors, len(texts)))

    def _counted(self, vectors: Sequence[Vector], count: int) -> Sequence[Vector]:
        self.tick(count)
        return vectors


@command(app, rich_help_panel=PANEL)
def stats(shell: Shell) -> None:
    """Show counts and sizes."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.stats()
    shell.show(found, views.counts)


@command(app, rich_help_panel=PANEL)
def users(shell: Shell, type: Type = None) -> None:
    """List whose memories there are: users, agents and runs, how many are theirs, and since when."""
    from told.faces.cli import views

    with shell.words() as memory:
        found = memory.users(type=type)
    shell.show(found, views.users)


@command(app, rich_help_panel=PANEL)
def export(shell: Shell, target: Target = Path("-"), yes: Yes = False) -> None:
    """Write the ledger as portable JSON Lines, to a file or into a pipe."""
    from told.faces.cli.views import counted, many
    from told.faces.files import replaced

    if str(target) == "-":
        with shell.words() as memory:
            done = memory.export(sys.stdout.buffer)
        sys.stdout.flush()
        shell.note(many(done["entries"], "entry", "entries"))
        return
    _overwrite(shell, target, yes)
    with shell.words() as memory, replaced(target) as file, _bar(shell, memory, "Exporting", "entries") as tick:
        done = {**memory.export(Writer(file, tick)), "path": str(target)}
    shell.show(done, counted("entry", "entries"))


def _overwrite(shell: Shell, target: Path, yes: bool) -> None:
    if target.is_file():
        shell.sure(f"{target} exists. Overwrite it?", yes=yes)


@dataclass(frozen=True, slots=True)
class Writer:
    """A file that counts what is written to it."""

    file: IO[bytes]
    tick: Tick

    def write(self, data: bytes) -> int:
        """Write one line."""
        self.tick(1)
        return self.file.write(data)


@command(app, "import", rich_help_panel=PANEL)
def import_(shell: Shell, source: Source) -> None:
    """Append an exported ledger to the account it continues."""
    from told.faces.cli.views import counted

    if str(source) == "-":
        with shell.memory() as memory:
            done = memory.import_(sys.stdin.buffer)
    else:
        bar = shell.progress("Importing", source.stat().st_size)
        with shell.memory() as memory, source.open("rb") as file, bar as tick:
            done = memory.import_(_ticking(file, tick))
    shell.show(done, counted("new entry", "new entries"))


def _ticking(file: IO[bytes], tick: Tick) -> Iterator[bytes]:
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
    with shell.words() as memory, shell.progress("Copying"):
        done = memory.backup(target)
    shell.show(done, lambda body: views.safe(f"copied → {body['path']}"))
