"""Shared command options: their flags and parsers; help texts come from the verb spec."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypedDict

import typer

from told.api import verb
from told.cli.shell import read_stdin
from told.errors import InvalidInput

SCOPE_PANEL = "Scope"
TIME_PANEL = "Time"
FILTER_PANEL = "Filters and limits"


def parse_json_object(text: str) -> dict[str, Any]:
    """Parse an option that holds a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter('it must be a JSON object such as \'{"topic": "travel"}\'')
    return value


def parse_file_or_stdin(text: str) -> Path:
    """Parse an existing file or pipe, or `-` for standard input."""
    path = Path(text)
    if text == "-":
        return path
    if not os.access(path, os.F_OK):
        raise typer.BadParameter(f"there is no file {text!r}")
    if path.is_dir():
        raise typer.BadParameter(f"{text!r} is a folder")
    return path


def option(*names: str, about: str, panel: str | None = None, **settings: Any) -> Any:
    """Declare an option that does not print its default."""
    return typer.Option(*names, help=about, rich_help_panel=panel, show_default=False, **settings)


def argument(about: str, metavar: str | None = None, **settings: Any) -> Any:
    """Declare an argument that does not print its default."""
    return typer.Argument(help=about, metavar=metavar, show_default=False, **settings)


# Scope

User: TypeAlias = Annotated[
    str | None,
    option(
        "--user",
        "-u",
        "--user-id",
        about=verb.USER_ID.help,
        panel=SCOPE_PANEL,
        envvar="TOLD_USER",
        metavar="ID",
    ),
]
NamedUser: TypeAlias = Annotated[
    str | None,
    option(
        "--user",
        "-u",
        "--user-id",
        about=f"{verb.USER_ID.help} TOLD_USER is not read.",
        panel=SCOPE_PANEL,
        metavar="ID",
    ),
]
Agent: TypeAlias = Annotated[
    str | None,
    option(
        "--agent", "-a", "--agent-id", about=verb.AGENT_ID.help, panel=SCOPE_PANEL, metavar="ID"
    ),
]
Run: TypeAlias = Annotated[
    str | None,
    option("--run", "-r", "--run-id", about=verb.RUN_ID.help, panel=SCOPE_PANEL, metavar="ID"),
]

# Time

AsOf: TypeAlias = Annotated[
    str | None,
    option(
        "--as-of",
        panel=TIME_PANEL,
        metavar="TIME",
        about=verb.AS_OF.help,
    ),
]
ValidAt: TypeAlias = Annotated[
    str | None,
    option("--valid-at", about=verb.VALID_AT.help, panel=TIME_PANEL, metavar="TIME"),
]
ReferenceDate: TypeAlias = Annotated[
    str | None,
    option(
        "--reference-date",
        about=verb.REFERENCE_DATE.help,
        panel=TIME_PANEL,
        metavar="TIME",
    ),
]

# Which memories

Filter: TypeAlias = Annotated[
    dict[str, Any] | None,
    option(
        "--filter",
        about="A filter expression as JSON.",
        panel=FILTER_PANEL,
        metavar="JSON",
        parser=parse_json_object,
    ),
]
Where: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--where",
        about="Filter by metadata; repeatable.",
        panel=FILTER_PANEL,
        metavar="KEY=VALUE",
    ),
]
Limit: TypeAlias = Annotated[
    int | None, option("--limit", "-k", about=verb.LIMIT.help, panel=FILTER_PANEL, metavar="N")
]
ShowExpired: TypeAlias = Annotated[
    bool, option("--show-expired", about=verb.SHOW_EXPIRED.help, panel=FILTER_PANEL)
]
MinScore: TypeAlias = Annotated[
    float | None,
    option(
        "--min-score",
        "--threshold",
        about=verb.MIN_SCORE.help,
        panel=FILTER_PANEL,
        metavar="SCORE",
    ),
]
Kinds: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--kind",
        about="Only memories of this kind; repeatable.",
        panel=FILTER_PANEL,
        metavar="KIND",
    ),
]
Rerank: TypeAlias = Annotated[
    bool,
    option(
        "--rerank",
        about=verb.RERANK.help,
        panel=FILTER_PANEL,
    ),
]

Belief: TypeAlias = Annotated[
    str | None,
    option(
        "--belief",
        panel=FILTER_PANEL,
        metavar="SIDE",
        about=verb.BELIEF.help,
    ),
]
Lens: TypeAlias = Annotated[
    str | None,
    option(
        "--lens",
        panel=FILTER_PANEL,
        metavar="LENS",
        about=verb.LENS.help,
    ),
]

# Writing

Metadata: TypeAlias = Annotated[
    dict[str, Any] | None,
    option(
        "--metadata",
        "-m",
        about=verb.METADATA.help,
        metavar="JSON",
        parser=parse_json_object,
    ),
]
Expires: TypeAlias = Annotated[
    str | None, option("--expires", about=verb.EXPIRATION.help, metavar="TIME")
]
Why: TypeAlias = Annotated[str, option("--why", about="The reason to record.", metavar="TEXT")]
Yes: TypeAlias = Annotated[bool, option("--yes", "-y", about="Do not ask for confirmation.")]
DryRun: TypeAlias = Annotated[bool, option("--dry-run", about="Only show what would be removed.")]
MemoryId: TypeAlias = Annotated[str, argument("The memory's id.", "ID")]
OptionalMemoryId: TypeAlias = Annotated[str | None, argument("The memory's id.", "[ID]")]


class ScopeArgs(TypedDict):
    """Scope arguments of the SDK."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None


class TimeArgs(TypedDict):
    """Time-travel arguments of the SDK."""

    as_of: str | None
    valid_at: str | None


class FilterArgs(TypedDict):
    """Filter and limit arguments of the SDK."""

    filters: dict[str, Any] | None
    limit: int | None
    show_expired: bool


class QueryArgs(TypedDict):
    """Query arguments of the SDK."""

    kinds: list[str] | None
    min_score: float | None
    reference_date: str | None


def scope_args(user: str | None, agent: str | None, run: str | None) -> ScopeArgs:
    """Build the SDK's scope arguments."""
    return {"user_id": user, "agent_id": agent, "run_id": run}


def time_args(as_of: str | None, valid_at: str | None) -> TimeArgs:
    """Build the SDK's time-travel arguments."""
    return {"as_of": as_of, "valid_at": valid_at}


def filter_args(
    filter: dict[str, Any] | None,
    where: Sequence[str] | None,
    limit: int | None,
    show_expired: bool,
) -> FilterArgs:
    """Build the SDK's filter arguments."""
    return {"filters": build_filter(filter, where), "limit": limit, "show_expired": show_expired}


def query_args(
    kinds: Sequence[str] | None, min_score: float | None, reference_date: str | None
) -> QueryArgs:
    """Build the SDK's query arguments."""
    return {
        "kinds": list(kinds) if kinds else None,
        "min_score": min_score,
        "reference_date": reference_date,
    }


def build_filter(
    expression: dict[str, Any] | None, pairs: Sequence[str] | None
) -> dict[str, Any] | None:
    """Combine a JSON filter and `key=value` pairs with AND."""
    conditions = [
        *([expression] if expression else []),
        *(_parse_pair(text) for text in pairs or ()),
    ]
    return {"AND": conditions} if len(conditions) > 1 else conditions[0] if conditions else None


def _parse_pair(text: str) -> dict[str, Any]:
    """Parse `key=value`; JSON numbers, booleans and null keep their type."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="'--where'")
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    return {key: value if isinstance(parsed, str | list | dict) else parsed}


def parse_messages(text: str, name: str) -> Any:
    """Parse messages from JSON or JSON Lines."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deeply.") from error
    except ValueError as json_error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or name.endswith(".json"):
            raise InvalidInput(f"{name} holds no JSON: {json_error}.") from json_error
        return [_parse_json_line(line, number, name) for number, line in lines]


def _parse_json_line(line: str, number: int, name: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"Line {number} of {name} is not JSON: {error}.") from error


def read_text(path: Path) -> str:
    """Read a file as text, or standard input for `-`."""
    try:
        return read_stdin() if str(path) == "-" else path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error}.") from error
