"""Run a command line: build the command tree, map errors to exit codes and one-line messages."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn, TypeAlias, cast

import typer
import typer.main

from told.cli import about, chat, evaluate, extraction, fading, maintenance, models, read, write
from told.cli.shell import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    CliGroup,
    configure_streams,
    dump_json_for,
    root_callback,
)
from told.errors import InvalidInput, ScopeError, ToldError
from told.runtime import lazy_regex

EPILOG = (
    "Exit codes: 0 done · 1 failed (not found, conflict, store error) or declined · "
    "2 bad usage or bad input · 3 verification failed (verify, doctor) · 130 interrupted. "
    "Results are formatted for people; --json prints exactly what the SDK returns, and errors "
    "are JSON too."
)

app = typer.Typer(
    name="told",
    cls=CliGroup,
    help=root_callback.__doc__,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.callback(invoke_without_command=True)(root_callback)
PARTS = (
    chat.app,
    write.app,
    read.app,
    fading.app,
    extraction.app,
    maintenance.app,
    evaluate.app,
    about.app,
)
for part in PARTS:
    app.add_typer(part)
GROUPS = {
    "kinds": (extraction.kinds_app, extraction.PANEL),
    "topics": (maintenance.topics_app, extraction.PANEL),
    "quarantine": (extraction.quarantine, extraction.PANEL),
    "reconsolidate": (maintenance.group, extraction.PANEL),
    "faults": (extraction.faults, maintenance.PANEL),
    "blob": (write.blob_app, write.PANEL),
    "models": (models.app, maintenance.PANEL),
}
for name, (group, panel) in GROUPS.items():
    app.add_typer(group, name=name, cls=CliGroup, rich_help_panel=panel)


SCOPE_HINT = "Pass --user, --agent or --run, or set TOLD_USER."

VERB_PATTERN, ARGUMENT_PATTERN = (
    lazy_regex(r"\b([a-z_]+)\(\)"),
    lazy_regex(r"Memory\((\w+)=\.\.\.\)"),
)
"""A verb of the SDK, and an argument of `Memory`, as hints name them."""

UsageError: TypeAlias = typer.BadParameter
_USAGE_ERRORS = cast(
    "type[UsageError]",
    next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"),
)
"""All parser errors; older typer versions define the class elsewhere."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit; even an internal error prints one line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not _has_flag("--debug", words):
        sys.excepthook = _print_unexpected
    configure_streams()
    sys.exit(run(words))


def run(words: Sequence[str]) -> int:
    """Run a command line and return its exit code; errors are printed."""
    try:
        code = _invoke(words)
    except BrokenPipeError:
        return _silence_stdout()
    except (ToldError, OSError, _USAGE_ERRORS) as error:
        if isinstance(error.__cause__, BrokenPipeError):
            return _silence_stdout()
        if _has_flag("--debug", words):
            traceback.print_exception(error)
        _print_error(_error_to_dict(error), as_json=_has_flag("--json", words))
        _flush_stdout()
        return _exit_code(error)
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    return code


def _flush_stdout() -> None:
    """Flush standard output, ignoring errors that were already reported."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()


def _silence_stdout() -> int:
    """Redirect standard output after a broken pipe so that Python's exit flush stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_FAILED


def _invoke(words: Sequence[str]) -> int:
    code = typer.main.get_command(app).main(list(words), prog_name="told", standalone_mode=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else EXIT_OK


def _has_flag(flag: str, words: Sequence[str]) -> bool:
    """Return whether a flag is on the command line, even if it cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return flag in options


def _exit_code(error: BaseException) -> int:
    if isinstance(error, _USAGE_ERRORS):
        return int(error.exit_code)
    return EXIT_USAGE if isinstance(error, InvalidInput) else EXIT_FAILED


def _error_to_dict(error: BaseException) -> dict[str, Any]:
    match error:
        case ScopeError():
            return {"hint": SCOPE_HINT, **error.as_dict()}
        case ToldError():
            return error.as_dict()
        case OSError(strerror=str(reason)):
            message = f"{error.filename}: {reason}." if error.filename else f"{reason}."
            return {
                "code": f"TOLD-{ToldError.code}",
                "error": type(error).__name__,
                "message": message,
            }
        case _ if isinstance(error, _USAGE_ERRORS):
            return _usage_error_to_dict(error)
    return {"code": f"TOLD-{ToldError.code}", "error": type(error).__name__, "message": str(error)}


def _usage_error_to_dict(error: UsageError) -> dict[str, Any]:
    context = getattr(error, "ctx", None)
    hint = f"See `{context.command_path} --help`." if context else "See `told --help`."
    message = error.format_message().rstrip(".?") + (
        "?" if error.format_message().endswith("?") else "."
    )
    return {
        "code": f"TOLD-{InvalidInput.code}",
        "error": "UsageError",
        "message": message,
        "hint": hint,
    }


def _print_error(error: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(dump_json_for(sys.stderr, error, default=str), file=sys.stderr)
        return
    message, hint = str(error["message"]), _translate_hint(error.get("hint", ""))
    line = f"{message}{'.' if hint and message[-1:].isalnum() else ''} {hint}"
    print("error:", " ".join(line.split()), file=sys.stderr)


def _translate_hint(hint: str) -> str:
    """Rewrite an SDK hint for the command line, such as `told list` for `get_all()`."""
    from told.api.spec import VERBS

    commands = cast("Any", typer.main.get_command(app)).commands

    def to_command(match: re.Match[str]) -> str:
        verb = VERBS.get(match[1])
        name = match[1] if verb is None else verb.command_name
        return f"`told {name}`" if name.split()[0] in commands else match[0]

    return ARGUMENT_PATTERN.sub(r"the setting `\1`", VERB_PATTERN.sub(to_command, hint))


def _print_unexpected(
    kind: type[BaseException], error: BaseException, _: TracebackType | None
) -> None:
    """Print an unhandled exception as one line."""
    print(
        f"error: told failed unexpectedly: {kind.__name__}: {error}. Run again with --debug.",
        file=sys.stderr,
    )
