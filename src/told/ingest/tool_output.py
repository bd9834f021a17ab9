"""Shorten a tool's output for the agent and keep the original as evidence.

The shortened output has the beginning, the end and lines with errors, and describes the rest: its
size, format, files and exit code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from told.errors import TooLarge
from told.flow import Flow
from told.ingest import gate
from told.ingest.context import ExtractionOptions, WriteContext
from told.ingest.messages import InputTurn, ParsedMessages
from told.model.entry import BLOBS_KEY, Blob, Evidence
from told.model.query import Receipt
from told.model.scope import Scope
from told.runtime import lazy_regex
from told.settings import Settings
from told.text.tokens import make_snippet

MAX_ROW_CHARS = 400
"""Split longer lines into rows of this many characters."""

DEFAULT_KEEP_CHARS = 2000
MAX_NAMES = 12
MAX_JSON_CHARS = 2_000_000
"""Do not parse longer texts as JSON just to describe them."""


@dataclass(frozen=True, slots=True)
class CompressedOutput:
    """A shortened output with an overview and properties of the original."""

    shown_text: str
    overview: str
    original_chars: int
    properties: Mapping[str, Any]


class OutputRow(NamedTuple):
    """A line of output, or a part of a long one."""

    number: int
    text: str


def is_large(text: str, settings: Settings) -> bool:
    """Return True if an output is long enough to be shortened."""
    limits = settings.ingestion
    return len(text) >= limits.tool_chars or text.count("\n") + 1 >= limits.tool_lines


def compress_output(text: str, uri: str, *, keep: int = DEFAULT_KEEP_CHARS) -> CompressedOutput:
    """Shorten an output to about `keep` characters under a banner with the original's location."""
    lines = text.splitlines()
    properties = collect_properties(text, lines)
    shown_text = (
        text
        if len(text) <= keep
        else "\n".join((_format_banner(properties, uri), *_shorten_lines(lines, keep)))
    )
    return CompressedOutput(shown_text, _format_properties(properties), len(text), properties)


def _format_banner(properties: Mapping[str, Any], uri: str) -> str:
    size = f"{properties['lines']:,} lines, {properties['characters']:,} characters"
    return f"[Shortened from {size}. The original: {' '.join(uri.split())}]"


# Head, errors and tail


def _shorten_lines(lines: Sequence[str], keep: int) -> Iterator[str]:
    rows = list(_split_rows(lines))
    head = _count_fitting(rows, keep * 2 // 5)
    tail = _count_fitting(rows[head:][::-1], keep * 3 // 10)
    between = rows[head : len(rows) - tail]
    errors = [row for row in between if _has_error(row.text)]
    shown_errors = errors[: _count_fitting(errors, keep * 3 // 10)]
    yield from (row.text for row in rows[:head])
    if between:
        count = len({row.number for row in between})
        error_note = (
            f"; {len(shown_errors)} of {len(errors)} that speak of errors:" if errors else ""
        )
        yield f"[… {count:,} {'line' if count == 1 else 'lines'} left out{error_note}]"
    yield from (f"{row.number}: {row.text}" for row in shown_errors)
    if shown_errors:
        yield "[…]"
    yield from (row.text for row in rows[len(rows) - tail :])


def _split_rows(lines: Sequence[str]) -> Iterator[OutputRow]:
    for number, line in enumerate(lines, 1):
        for start in range(0, max(len(line), 1), MAX_ROW_CHARS):
            yield OutputRow(number, line[start : start + MAX_ROW_CHARS])


def _count_fitting(rows: Sequence[OutputRow], room: int) -> int:
    """Return how many leading rows fit, at least one."""
    count = 0
    for row in rows:
        room -= len(row.text) + 1
        if room < 0 and count:
            break
        count += 1
    return count


_ERROR = lazy_regex(
    r"(?i)\b(?:error|exception|fail(?:ed|ure|s)?|fatal|panic(?:ked)?|traceback|critical|denied"
    r"|refused|timed ?out|cannot|can't|could not|unable to|not found|no such file"
    r"|undefined reference|segmentation fault|killed|assert)\b"
    r"|\w(?:Error|Exception)\b"
)
_NO_ERROR = lazy_regex(r"(?i)\b(?:0|no|without) (?:errors?|failures?|failed|exceptions?)\b")


def _has_error(text: str) -> bool:
    return _ERROR.search(text) is not None and not _NO_ERROR.search(text)


# Properties

_EXIT = lazy_regex(
    r"(?i)\bexit(?:ed)?(?: with)?(?: (?:code|status))?\s?[:=]?\s?(-?\d{1,5})\b"
    r"|\breturn ?code\s?[:=]\s?(-?\d{1,5})\b"
)
_FILE = lazy_regex(r"(?<![\w@+~./:-])[\w@+~./-]{1,300}\.(?P<ending>[A-Za-z]\w{0,5})(?![\w/-])")
_ENDINGS = frozenset(
    """c cc cfg conf cpp cs css csv db env go h hpp html ini ipynb java js json jsx kt lock log
    lua md mjs php pl png py pyi rb rs rst scala sh sql svg swift tex toml ts tsv
    tsx txt vue xml yaml yml zip""".split()
)
_WARNING = lazy_regex(r"(?i)\bwarn(?:ing)?s?\b")


def collect_properties(text: str, lines: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Return the size, format, error counts, exit code and files of an output."""
    lines = text.splitlines() if lines is None else lines
    properties: dict[str, Any] = {
        "lines": len(lines),
        "characters": len(text),
        **_detect_format(text, lines),
    }
    counts = {
        "errors": sum(map(_has_error, lines)),
        "warnings": sum(_WARNING.search(line) is not None for line in lines),
    }
    properties |= {name: count for name, count in counts.items() if count}
    exit_codes = [code or other for code, other in _EXIT.findall(text)]
    if exit_codes:
        properties["exit_code"] = int(exit_codes[-1])
    files = dict.fromkeys(
        match[0] for match in _FILE.finditer(text) if match["ending"].lower() in _ENDINGS
    )
    if files:
        properties |= {"files": list(files)[:MAX_NAMES], "files_in_all": len(files)}
    return properties


def _detect_format(text: str, lines: Sequence[str]) -> Mapping[str, Any]:
    """Return the format of a text, if recognised."""
    if text.lstrip().startswith(("{", "[")) and len(text) <= MAX_JSON_CHARS:
        try:
            return _describe_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    if any(line.startswith("diff --git ") for line in lines):
        added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
        removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
        return {"format": "diff", "added": added, "removed": removed}
    return {}


def _describe_json(value: Any) -> Mapping[str, Any]:
    members = value[0] if isinstance(value, list) and value else value
    keys = (
        [make_snippet(str(key), 40) for key in list(members)[:MAX_NAMES]]
        if isinstance(members, dict)
        else []
    )
    size = {"items": len(value)} if isinstance(value, list) else {}
    return {"format": "json", **size, **({"keys": keys} if keys else {})}


def _format_properties(properties: Mapping[str, Any]) -> str:
    """Format the properties as lines."""
    rows = {
        name: ", ".join(value) if isinstance(value, list) else str(value)
        for name, value in properties.items()
    }
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in rows.items())


PLAIN_TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The text to show to the agent, with the receipt and blob hash of the original."""

    text: str
    receipt: Receipt
    blob: str | None = None
    properties: dict[str, Any] | None = None


def keep_output(
    ctx: WriteContext, scope: Scope, text: str, tool: str | None, source: str | None
) -> Flow[ToolOutput]:
    """Store a tool's output; shorten a long one and store the original as a blob."""
    if len(text) > ctx.settings.document_limit:
        raise TooLarge(
            f"The output has {len(text)} characters; the limit is {ctx.settings.document_limit}."
        )
    screened, warnings = gate.screen_text(text, ctx.settings)
    if not is_large(screened, ctx.settings):
        parsed = ParsedMessages(
            (InputTurn(Evidence(screened, "tool", tool, source=source), {}),), (), warnings=warnings
        )
        return ToolOutput(screened, (yield from _add_evidence(ctx, scope, parsed)))
    blob = Blob.from_bytes(screened.encode(), PLAIN_TEXT)
    compressed = compress_output(screened, blob.hash, keep=ctx.settings.ingestion.tool_keep)
    properties = dict(compressed.properties)
    evidence = Evidence(
        compressed.shown_text, "tool", tool, source=source, meta={BLOBS_KEY: [blob.hash]}
    )
    parsed = ParsedMessages(
        (InputTurn(evidence, {"overview": compressed.overview}),),
        (),
        blobs=(blob,),
        warnings=warnings,
    )
    return ToolOutput(
        compressed.shown_text, (yield from _add_evidence(ctx, scope, parsed)), blob.hash, properties
    )


def _add_evidence(ctx: WriteContext, scope: Scope, parsed: ParsedMessages) -> Flow[Receipt]:
    from told.ingest import pipeline

    request = pipeline.build_request(
        ctx, scope, parsed, expires=None, kind=pipeline.PLAIN_KIND, options=ExtractionOptions()
    )
    return (yield from pipeline.write_memories(ctx, request, None))
