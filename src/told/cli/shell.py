"""The command context: global options, opening the memory, printing, prompting and progress."""

from __future__ import annotations

import codecs
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TextIO, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from told.errors import InvalidInput
from told.model.validation import suggest_option
from told.settings import LoadedSettings, load_settings, resolve_store_file

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from told.api.memory import Memory


ASCII_MARKS = {
    "✓": "+",
    "✗": "x",
    "→": ">",
    "·": "-",
    "…": "...",
    "–": "-",
    "×": "x",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
    "━": "=",
    "─": "-",
    "█": "#",
    "▓": "%",
    "▒": "+",
    "░": ".",
}
"""ASCII replacements for told's marks, of equal width where possible."""

ENCODE_ERROR_HANDLER = "told-spelled"


def configure_streams() -> None:
    """Make standard streams usable: escape unencodable characters, replace closed streams.

    Undecodable input becomes surrogates, which the store refuses.
    """
    codecs.register_error(ENCODE_ERROR_HANDLER, _replace_unencodable)
    if os.environ.get("COLUMNS") == "0":  # a width of 0 would print nothing
        del os.environ["COLUMNS"]
    null_device = Path(os.devnull)
    sys.stdin = sys.stdin or null_device.open(encoding="utf-8")
    # the descriptor is open for reading only: printing to it must fail
    sys.stdout = sys.stdout or os.fdopen(os.open(null_device, os.O_RDONLY), "w", encoding="utf-8")
    sys.stderr = sys.stderr or null_device.open("w", encoding="utf-8")
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, ENCODE_ERROR_HANDLER),
        (sys.stderr, ENCODE_ERROR_HANDLER),
    ):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Replace told's marks with ASCII and other characters with Python escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(
        ASCII_MARKS.get(character) or character.encode("ascii", "backslashreplace").decode()
        for character in unknown
    ), error.end


def dump_json_for(stream: TextIO, value: Any, **layout: Any) -> str:
    """Serialise a value as JSON that the stream can encode."""
    is_unicode = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(value, ensure_ascii=not is_unicode, **layout)


def read_stdin() -> str:
    """Read standard input as text."""
    return decode_input(sys.stdin.buffer.read()).replace("\r\n", "\n").replace("\r", "\n")


def decode_input(data: bytes) -> str:
    """Decode bytes as UTF-8, else with the terminal's encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            return data.decode(sys.stdin.encoding)
        except UnicodeDecodeError:
            raise InvalidInput(f"Standard input is not UTF-8 text: {error}.") from error


P = ParamSpec("P")
TickCallback: TypeAlias = Callable[[int], None]
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_UNSOUND, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes: done, failed, bad usage or input, verification failed, interrupted."""

PANEL = "Global options"
PIPED_WIDTH = 120
"""Columns used when there is no terminal and COLUMNS is not set."""


@dataclass(frozen=True, slots=True)
class Shell:
    """The global options and the output helpers of one command."""

    context: typer.Context
    store: str | None = None
    account: str | None = None
    embedder: str | None = None
    zone: str | None = None
    json: bool = False
    no_color: bool = False
    debug: bool = False
    created_files: list[Path] = field(default_factory=list, init=False)
    """The store file this command created, reported so that a mistyped path is noticed."""

    def load_settings(self) -> LoadedSettings:
        """Load the settings and the origin of each."""
        return load_settings(
            store=self.store, account=self.account, embedder=self.embedder, zone=self.zone
        )

    def open_with_llm(self) -> Memory:
        """Open the memory with its language model, for commands that extract."""
        return self._open_memory(self.embedder, None)

    def open_without_llm(self) -> Memory:
        """Open the memory without a language model, for commands that read."""
        return self._open_memory(self.embedder, "none")

    def open_without_models(self) -> Memory:
        """Open the memory without any model, for commands that need no embedder."""
        return self._open_memory("none", "none")

    def _open_memory(self, embedder: str | None, llm: str | None) -> Memory:
        from told.api.memory import Memory

        file = resolve_store_file(self.load_settings().settings)
        if file is not None and not os.access(
            file, os.F_OK
        ):  # exists() would raise here; opening reports the error
            self.created_files.append(file)
        return Memory(self.store, embedder=embedder, llm=llm, account=self.account, zone=self.zone)

    # Printing

    def make_console(self, *, stderr: bool = False) -> Console:
        """Create a rich console for standard output or standard error."""
        from rich.console import Console

        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
        return Console(
            stderr=stderr,
            no_color=self.no_color or None,
            highlight=False,
            markup=False,
            width=width,
        )

    def show_result(self, value: Any, view: Callable[[Any], RenderableType]) -> None:
        """Print a result as JSON or with a view, and its warnings on standard error."""
        from rich.text import Text

        if self.json:
            self.print_json(value)
            return
        rendering = view(value)
        # Keep one-line text, such as a path, on one line at any width.
        self.make_console().print(rendering, soft_wrap=isinstance(rendering, str | Text))
        for warning in value.get("warnings", ()) if isinstance(value, dict) else ():
            self.print_note(f"warning: {warning}")

    def report_created_store(self) -> None:
        """Report that a new store file was created."""
        while self.created_files and not self.json:
            self.print_note(f"a new store: {self.created_files.pop()}")

    def print_json(self, value: Any) -> None:
        """Print one JSON value: indented on a terminal, on one line in a pipe."""
        print(dump_json_for(sys.stdout, value, indent=2 if sys.stdout.isatty() else None))

    def print_note(self, text: str) -> None:
        """Print a note on standard error."""
        from told.cli.views import safe_text

        self.make_console(stderr=True).print(safe_text(text), style="dim", soft_wrap=True)

    # Prompting and progress

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask for confirmation; abort if it is refused."""
        if yes:
            return
        try:
            agreed = typer.confirm(question, err=True)
        except typer.Abort as gone:
            if sys.stdin.isatty():
                raise
            print(file=sys.stderr)
            raise InvalidInput(
                "Cannot ask for confirmation: standard input is not a terminal.", hint="Pass --yes."
            ) from gone
        if not agreed:
            self.print_note("Nothing was changed.")
            raise typer.Exit(EXIT_FAILED)

    @contextmanager
    def show_progress(self, label: str, total: float | None = None) -> Iterator[TickCallback]:
        """Show a progress bar on standard error if it is a terminal; yield its tick function."""
        from rich.progress import Progress

        with Progress(
            console=self.make_console(stderr=True), transient=True, disable=not sys.stderr.isatty()
        ) as bar:
            task = bar.add_task(label, total=total)
            yield lambda steps: bar.advance(task, steps)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("told"))
        raise typer.Exit


def root_callback(
    ctx: typer.Context,
    *,
    store: Annotated[
        str | None,
        typer.Option(
            help="Store URL, such as sqlite:///memory.db.",
            metavar="URL",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            help="The account (tenant).", metavar="NAME", rich_help_panel=PANEL, show_default=False
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="auto, none, local, local:MODEL or a plug-in.",
            metavar="NAME",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            help="Default time zone, such as Europe/Berlin.",
            metavar="ZONE",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print exactly what the SDK returns, as JSON.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", help="Disable colours; NO_COLOR does the same.", rich_help_panel=PANEL
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=PANEL)
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version; `told version` prints details.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Persistent memory for LLM agents, on your own machine."""
    ctx.obj = Shell(ctx, store, account, embedder, zone, json, no_color, debug)
    if ctx.invoked_subcommand is None:
        print_help(ctx)


def print_help(ctx: typer.Context) -> None:
    """Print the help of a command."""
    if text := ctx.get_help():  # rich has printed it already
        print(text)


_ROOT_ONLY = frozenset({"ctx", "_version"})
GLOBAL_OPTIONS = {
    name: given
    for name, given in inspect.signature(root_callback, eval_str=True).parameters.items()
    if name not in _ROOT_ONLY
}
_CONTEXT_PARAMETER = inspect.Parameter(
    "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
)


class CliCommand(TyperCommand):
    """A command whose help shows metavars in place of Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with flags shown without a value."""
        return _hide_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line; optional metavars bring their own brackets."""
        arguments = [
            param.metavar for param in self.get_params(ctx) if param.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *arguments]


class CliGroup(TyperGroup):
    """A command group that suggests the closest command on a typo."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command that a line begins with."""
        word = args[0] if args else ""
        suggestion = (
            ""
            if ctx.resilient_parsing or self.get_command(ctx, word)
            else suggest_option(word, self.commands)
        )
        if suggestion:
            ctx.fail(f"No such command {word!r}. {suggestion}")
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with flags shown without a value."""
        return _hide_types(super().get_params(ctx))


def _hide_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = (
                _display_no_type  # newer typer versions call this for the type to show
            )
    return params


def _display_no_type(ctx: Any) -> None:
    """Return no type; the metavar shows it."""


def command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[Callable[Concatenate[Shell, P], None]], Callable[Concatenate[Shell, P], None]]:
    """Register a command: it receives a `Shell`, and global options may follow its name."""

    def register(
        function: Callable[Concatenate[Shell, P], None],
    ) -> Callable[Concatenate[Shell, P], None]:
        _, *own_parameters = inspect.signature(function, eval_str=True).parameters.values()

        @wraps(function)
        def wrapper(ctx: typer.Context, *args: P.args, **given: P.kwargs) -> None:
            global_values = {option: given.pop(option) for option in GLOBAL_OPTIONS}
            shell = _merge_options(ctx.obj, global_values)
            function(shell, *args, **given)
            shell.report_created_store()

        parameters = [
            _CONTEXT_PARAMETER,
            *(parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own_parameters),
            *GLOBAL_OPTIONS.values(),
        ]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, cls=CliCommand, **settings)(wrapper)
        return function

    return register


def _merge_options(shell: Shell, global_values: dict[str, Any]) -> Shell:
    """Merge global options given before and after the command; later ones win."""
    return Shell(
        shell.context,
        **{name: global_values[name] or getattr(shell, name) for name in GLOBAL_OPTIONS},
    )
