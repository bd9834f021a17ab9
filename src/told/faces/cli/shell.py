"""What every command works with: the global options, the memory they open, and the ways to print, ask and wait."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from told.core.errors import InvalidInput
from told.core.reading import meant
from told.faces.cli.streams import json_for
from told.settings import Loaded, load, store_file

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from told.faces.sdk import Memory

P = ParamSpec("P")
Tick: TypeAlias = Callable[[int], None]
OK, FAILED, MISUSED, UNSOUND, INTERRUPTED = 0, 1, 2, 3, 130
"""What an exit code says: done, told could not, bad usage or input, verification failed, Ctrl-C."""

PANEL = "Global options"
PIPED_WIDTH = 120
"""Columns where there is no terminal to ask and COLUMNS is not set."""


@dataclass(frozen=True, slots=True)
class Shell:
    """The global options, and how to speak to whoever gave them."""

    context: typer.Context
    store: str | None = None
    account: str | None = None
    embedder: str | None = None
    zone: str | None = None
    json: bool = False
    no_color: bool = False
    debug: bool = False
    made: list[Path] = field(default_factory=list, init=False)
    """The store's file, where this command made it: a mistyped path must not pass for an empty memory."""

    def loaded(self) -> Loaded:
        """The settings in force, and where each came from."""
        return load(store=self.store, account=self.account, embedder=self.embedder, zone=self.zone)

    def asking(self) -> Memory:
        """The memory the options name, with its language model, for verbs that understand what is said."""
        return self._opened(self.embedder, None)

    def memory(self) -> Memory:
        """The memory without a language model: nobody is asked because somebody reads."""
        return self._opened(self.embedder, "none")

    def words(self) -> Memory:
        """The memory without any model, for verbs that embed nothing: quicker to open, and never a mismatch."""
        return self._opened("none", "none")

    def _opened(self, embedder: str | None, llm: str | None) -> Memory:
        from told.faces.sdk import Memory

        file = store_file(self.loaded().settings)
        if file is not None and not os.access(file, os.F_OK):  # unlike exists(), it leaves every complaint to opening
            self.made.append(file)
        return Memory(self.store, embedder=embedder, llm=llm, account=self.account, zone=self.zone)

    # Printing ---------------------------------------------------------------------------------------------------------

    def console(self, *, stderr: bool = False) -> Console:
        """Where renderings go."""
        from rich.console import Console

        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
        return Console(stderr=stderr, no_color=self.no_color or None, highlight=False, markup=False, width=width)

    def show(self, value: Any, view: Callable[[Any], RenderableType]) -> None:
        """Print what a verb returned: as it is for machines, as a rendering for people, its warnings beside it."""
        from rich.text import Text

        if self.json:
            self.print_json(value)
            return
        rendering = view(value)
        # One line of text, such as a path, stays one line however narrow the terminal is.
        self.console().print(rendering, soft_wrap=isinstance(rendering, str | Text))
        for warning in value.get("warnings", ()) if isinstance(value, dict) else ():
            self.note(f"warning: {warning}")

    def name_made(self) -> None:
        """Say that the store is a new one, once what was asked for is done."""
        while self.made and not self.json:
            self.note(f"a new store: {self.made.pop()}")

    def print_json(self, value: Any) -> None:
        """One JSON value on standard output: spread out on a terminal, on one line in a pipe."""
        print(json_for(sys.stdout, value, indent=2 if sys.stdout.isatty() else None))

    def note(self, text: str) -> None:
        """A remark beside the result, on standard error."""
        from told.faces.cli.views import safe

        self.console(stderr=True).print(safe(text), style="dim", soft_wrap=True)

    # Asking and waiting -----------------------------------------------------------------------------------------------

    def sure(self, question: str, *, yes: bool) -> None:
        """Go on only if the user agrees."""
        if yes:
            return
        try:
            agreed = typer.confirm(question, err=True)
        except typer.Abort as gone:
            if sys.stdin.isatty():
                raise
            print(file=sys.stderr)
            raise InvalidInput("Nobody is there to confirm this.", hint="Pass --yes.") from gone
        if not agreed:
            self.note("Nothing was changed.")
            raise typer.Exit(FAILED)

    @contextmanager
    def progress(self, label: str, total: float | None = None) -> Iterator[Tick]:
        """A progress bar on standard error, if that is a terminal, and the function that moves it."""
        from rich.progress import Progress

        with Progress(console=self.console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(label, total=total)
            yield lambda steps: bar.advance(task, steps)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("told"))
        raise typer.Exit


def root(
    ctx: typer.Context, *,
    store: Annotated[str | None, typer.Option(
        help="Where memories live, such as sqlite:///memory.db.", metavar="URL", rich_help_panel=PANEL,
        show_default=False)] = None,
    account: Annotated[str | None, typer.Option(
        help="The account (tenant).", metavar="NAME", rich_help_panel=PANEL, show_default=False)] = None,
    embedder: Annotated[str | None, typer.Option(
        help="auto, none, local, local:MODEL or a plug-in.", metavar="NAME", rich_help_panel=PANEL,
        show_default=False)] = None,
    zone: Annotated[str | None, typer.Option(
        help="Time zone of times that name none, such as Europe/Berlin.", metavar="ZONE", rich_help_panel=PANEL,
        show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print exactly what the SDK returns, as JSON; never automatic.",
                                       rich_help_panel=PANEL)] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; NO_COLOR does the same.",
                                           rich_help_panel=PANEL)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.",
                                        rich_help_panel=PANEL)] = False,
    _version: Annotated[bool, typer.Option("--version", help="Print the version; `told version` says more.",
                                           is_eager=True, callback=_print_version)] = False,
) -> None:  # fmt: skip
    """Remember, search and travel in time: a persistent memory for agents, on your own machine."""
    ctx.obj = Shell(ctx, store, account, embedder, zone, json, no_color, debug)
    if ctx.invoked_subcommand is None:
        print_help(ctx)


def print_help(ctx: typer.Context) -> None:
    """Print the help of a command."""
    if text := ctx.get_help():  # with rich, it has printed itself
        print(text)


_ROOTS_OWN = frozenset({"ctx", "_version"})
GLOBALS = {
    name: given for name, given in inspect.signature(root, eval_str=True).parameters.items() if name not in _ROOTS_OWN
}
_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)


class Command(TyperCommand):
    """A command whose help says of arguments and flags what their metavars say, and not their Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag takes nothing."""
        return _plain(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line: a metavar has brackets of its own where it may be left out."""
        arguments = [param.metavar for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *arguments]


class Group(TyperGroup):
    """A group of commands with the same manners, which names the one command that was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command a line begins with."""
        word = args[0] if args else ""
        near = "" if ctx.resilient_parsing or self.get_command(ctx, word) else meant(word, self.commands)
        if near:
            ctx.fail(f"No such command {word!r}. {near}")
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag takes nothing."""
        return _plain(super().get_params(ctx))


def _plain(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = _untyped  # what newer versions of typer ask for the type to show
    return params


def _untyped(ctx: Any) -> None:
    """No type: the metavar says it."""


def command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[Callable[Concatenate[Shell, P], None]], Callable[Concatenate[Shell, P], None]]:
    """Make a function a command: it is given a `Shell`, and the global options may stand after its name too."""

    def register(function: Callable[Concatenate[Shell, P], None]) -> Callable[Concatenate[Shell, P], None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        @wraps(function)
        def run(ctx: typer.Context, *args: P.args, **given: P.kwargs) -> None:
            here = {option: given.pop(option) for option in GLOBALS}
            shell = _merged(ctx.obj, here)
            function(shell, *args, **given)
            shell.name_made()

        parameters = [_CONTEXT, *(part.replace(kind=part.KEYWORD_ONLY) for part in own), *GLOBALS.values()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {part.name: part.annotation for part in parameters}
        app.command(name, cls=Command, **settings)(run)
        return function

    return register


def _merged(before: Shell, here: dict[str, Any]) -> Shell:
    """The options given before the command, and after it; the later ones count."""
    return Shell(before.context, **{name: here[name] or getattr(before, name) for name in GLOBALS})
