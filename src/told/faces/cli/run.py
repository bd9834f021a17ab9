"""Running a command line: its exit code, and its errors in one line with the way out."""

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

from told.core.errors import InvalidInput, ScopeError, ToldError
from told.core.lazy import regex
from told.faces.cli.app import SPELLED, app
from told.faces.cli.shell import FAILED, INTERRUPTED, MISUSED, OK
from told.faces.cli.streams import json_for, settle

NAME_ONE = "Pass --user, --agent or --run, or set TOLD_USER."

VERB, OPENING = regex(r"\b([a-z_]+)\(\)"), regex(r"Memory\((\w+)=\.\.\.\)")
"""A verb of the SDK, and what a memory is opened with, where a hint names them."""

UsageError: TypeAlias = typer.BadParameter
_REFUSALS = cast(
    "type[UsageError]", next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
)
"""Everything the parser refuses; the class stands in another module in older versions of typer."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and leave with its exit code; even a bug of ours ends in one line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not _given("--debug", words):
        sys.excepthook = _unexpected
    settle()
    sys.exit(run(words))


def run(words: Sequence[str]) -> int:
    """Run a command line and give its exit code; errors have been printed."""
    try:
        code = _invoke(words)
    except BrokenPipeError:
        return _unheard()
    except (ToldError, OSError, _REFUSALS) as error:
        if isinstance(error.__cause__, BrokenPipeError):
            return _unheard()
        if _given("--debug", words):
            traceback.print_exception(error)
        _say(_as_dict(error), as_json=_given("--json", words))
        _drain()
        return _code(error)
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def _drain() -> None:
    """Print what is left; where that cannot be, the error has been that."""
    try:
        sys.stdout.flush()
    except OSError:
        _unheard()


def _unheard() -> int:
    """The reader went away and wants no more; what Python flushes at its end must not complain about that either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def _invoke(words: Sequence[str]) -> int:
    code = typer.main.get_command(app).main(list(words), prog_name="told", standalone_mode=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else OK


def _given(flag: str, words: Sequence[str]) -> bool:
    """Whether a flag is on the line, even on one that cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return flag in options


def _code(error: BaseException) -> int:
    if isinstance(error, _REFUSALS):
        return int(error.exit_code)
    return MISUSED if isinstance(error, InvalidInput) else FAILED


def _as_dict(error: BaseException) -> dict[str, Any]:
    match error:
        case ScopeError():
            return {"hint": NAME_ONE, **error.as_dict()}
        case ToldError():
            return error.as_dict()
        case OSError(strerror=str(reason)):
            about = f"{error.filename}: {reason}." if error.filename else f"{reason}."
            return {"code": f"TOLD-{ToldError.code}", "error": type(error).__name__, "message": about}
        case _ if isinstance(error, _REFUSALS):
            return _refusal(error)
    return {"code": f"TOLD-{ToldError.code}", "error": type(error).__name__, "message": str(error)}


def _refusal(error: UsageError) -> dict[str, Any]:
    context = getattr(error, "ctx", None)
    hint = f"See `{context.command_path} --help`." if context else "See `told --help`."
    message = error.format_message().rstrip(".?") + ("?" if error.format_message().endswith("?") else ".")
    return {"code": f"TOLD-{InvalidInput.code}", "error": "UsageError", "message": message, "hint": hint}


def _say(error: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json_for(sys.stderr, error, default=str), file=sys.stderr)
        return
    message, hint = str(error["message"]), _spelled(error.get("hint", ""))
    words = f"{message}{'.' if hint and message[-1:].isalnum() else ''} {hint}"
    print("error:", " ".join(words.split()), file=sys.stderr)


def _spelled(hint: str) -> str:
    """A way out as it is typed here: `told list` for `get_all()`, a setting for what a memory is opened with."""
    known = cast("Any", typer.main.get_command(app)).commands

    def typed(verb: re.Match[str]) -> str:
        name = SPELLED.get(verb[1], verb[1])
        return f"`told {name}`" if name.split()[0] in known else verb[0]

    return OPENING.sub(r"the setting `\1`", VERB.sub(typed, hint))


def _unexpected(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    """The last resort for what nobody foresaw."""
    print(f"error: told failed unexpectedly: {kind.__name__}: {error}. Run again with --debug.", file=sys.stderr)
