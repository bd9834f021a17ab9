"""What every command works with: the global options, the memory they open, and the ways to print, ask and wait."""

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
    "✓": "+", "✗": "x", "→": ">", "·": "-", "…": "...", "–": "-", "×": "x", "“": '"', "”": '"', "\u00a0": " ",
    "━": "=", "─": "-", "█": "#", "▓": "%", "▒": "+", "░": ".",
}  # fmt: skip
"""Our own marks in ASCII; most are as wide, so that columns stay columns."""

ENCODE_ERROR_HANDLER = "told-spelled"


def configure_streams() -> None:
    """Make every stream one that can be used: a character it has no code for is spelled, and a closed one is there.

    What is typed and is no text comes in as surrogates, which whoever stores it refuses.
    """
    codecs.register_error(ENCODE_ERROR_HANDLER, _replace_unencodable)
    if os.environ.get("COLUMNS") == "0":  # as wide as nothing, which would print nothing
        del os.environ["COLUMNS"]
    null_device = Path(os.devnull)
    sys.stdin = sys.stdin or null_device.open(encoding="utf-8")
    # Opened to be read: what is printed there is an error, as on a full disk.
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
    """Our marks in ASCII, and any other character by its number, as Python writes it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(
        ASCII_MARKS.get(character) or character.encode("ascii", "backslashreplace").decode()
        for character in unknown
    ), error.end


def dump_json_for(stream: TextIO, value: Any, **layout: Any) -> str:
    """A value as JSON that the stream has every character of."""
    is_unicode = (stream.encoding or "").lower().startswith("utf")
    return json.dumps(value, ensure_ascii=not is_unicode, **layout)


def read_stdin() -> str:
    """Everything on standard input."""
    return decode_input(sys.stdin.buffer.read()).replace("\r\n", "\n").replace("\r", "\n")


def decode_input(data: bytes) -> str:
    """Bytes of standard input as text: UTF-8, or else what the terminal's language is written in."""
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
    created_files: list[Path] = field(default_factory=list, init=False)
    """The store's file, where this command made it: a mistyped path must not pass for an empty memory."""

    def load_settings(self) -> LoadedSettings:
        """The settings in force, and where each came from."""
        return load_settings(
            store=self.store, account=self.account, embedder=self.embedder, zone=self.zone
        )

    def open_with_llm(self) -> Memory:
        """The memory the options name, with its language model, for verbs that understand what is said."""
        return self._open_memory(self.embedder, None)

    def open_without_llm(self) -> Memory:
        """The memory without a language model: nobody is asked because somebody reads."""
        return self._open_memory(self.embedder, "none")

    def open_without_models(self) -> Memory:
        """The memory without any model, for verbs that embed nothing: quicker to open, and never a mismatch."""
        return self._open_memory("none", "none")

    def _open_memory(self, embedder: str | None, llm: str | None) -> Memory:
        from told.api.memory import Memory

        file = resolve_store_file(self.load_settings().settings)
        if file is not None and not os.access(
            file, os.F_OK
        ):  # unlike exists(), it leaves every complaint to opening
            self.created_files.append(file)
        return Memory(self.store, embedder=embedder, llm=llm, account=self.account, zone=self.zone)

    # Printing ---------------------------------------------------------------------------------------------------------

    def make_console(self, *, stderr: bool = False) -> Console:
        """Where renderings go."""
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
        """Print what a verb returned: as it is for machines, as a rendering for people, its warnings beside it."""
        from rich.text import Text

        if self.json:
            self.print_json(value)
            return
        rendering = view(value)
        # One line of text, such as a path, stays one line however narrow the terminal is.
        self.make_console().print(rendering, soft_wrap=isinstance(rendering, str | Text))
        for warning in value.get("warnings", ()) if isinstance(value, dict) else ():
            self.print_note(f"warning: {warning}")

    def report_created_store(self) -> None:
        """Say that the store is a new one, once what was asked for is done."""
        while self.created_files and not self.json:
            self.print_note(f"a new store: {self.created_files.pop()}")

    def print_json(self, value: Any) -> None:
        """One JSON value on standard output: spread out on a terminal, on one line in a pipe."""
        print(dump_json_for(sys.stdout, value, indent=2 if sys.stdout.isatty() else None))

    def print_note(self, text: str) -> None:
        """A remark beside the result, on standard error."""
        from told.cli.views import safe_text

        self.make_console(stderr=True).print(safe_text(text), style="dim", soft_wrap=True)

    # Asking and waiting -----------------------------------------------------------------------------------------------

    def confirm(self, question: str, *, yes: bool) -> None:
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
            self.print_note("Nothing was changed.")
            raise typer.Exit(EXIT_FAILED)

    @contextmanager
    def show_progress(self, label: str, total: float | None = None) -> Iterator[TickCallback]:
        """A progress bar on standard error, if that is a terminal, and the function that moves it."""
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
            help="Where memories live, such as sqlite:///memory.db.",
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
            help="Time zone of times that name none, such as Europe/Berlin.",
            metavar="ZONE",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print exactly what the SDK returns, as JSON; never automatic.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", help="No colours; NO_COLOR does the same.", rich_help_panel=PANEL
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=PANEL)
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version; `told version` says more.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Remember, search and travel in time: a persistent memory for agents, on your own machine."""
    ctx.obj = Shell(ctx, store, account, embedder, zone, json, no_color, debug)
    if ctx.invoked_subcommand is None:
        print_help(ctx)


def print_help(ctx: typer.Context) -> None:
    """Print the help of a command."""
    if text := ctx.get_help():  # with rich, it has printed itself
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
    """A command whose help says of arguments and flags what their metavars say, and not their Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a flag takes nothing."""
        return _hide_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line: a metavar has brackets of its own where it may be left out."""
        arguments = [
            param.metavar for param in self.get_params(ctx) if param.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *arguments]


class CliGroup(TyperGroup):
    """A group of commands with the same manners, which names the one command that was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command a line begins with."""
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
        """The parameters; a flag takes nothing."""
        return _hide_types(super().get_params(ctx))


def _hide_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = (
                _display_no_type  # what newer versions of typer ask for the type to show
            )
    return params


def _display_no_type(ctx: Any) -> None:
    """No type: the metavar says it."""


def command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[Callable[Concatenate[Shell, P], None]], Callable[Concatenate[Shell, P], None]]:
    """Make a function a command: it is given a `Shell`, and the global options may stand after its name too."""

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
    """The options given before the command, and after it; the later ones count."""
    return Shell(
        shell.context,
        **{name: global_values[name] or getattr(shell, name) for name in GLOBAL_OPTIONS},
    )
