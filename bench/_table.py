"""Tables for the terminal and as Markdown, and the files of results."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"

Rows = Sequence[Sequence[str]]


def plain(head: Sequence[str], rows: Rows) -> str:
    """Format a table in columns; the first is left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, ["-" * width for width in widths], *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
    return "\n".join(lines)


def markdown(head: Sequence[str], rows: Rows) -> str:
    """Format the same table as Markdown."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, marks, *rows])


def number(value: float | None, digits: int = 3) -> str:
    """Format a figure with its significant digits."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.{digits}g}" if value < 100 else f"{value:.0f}"


def verdict(
    name: str, value: float | None, bound: str, target: float, unit: str = "×"
) -> dict[str, Any]:
    """Compare a figure with its target; `bound` is `<=` or `>=`."""
    met = value is not None and (value <= target if bound == "<=" else value >= target)
    return {
        "name": name,
        "value": value,
        "bound": bound,
        "target": target,
        "unit": unit,
        "pass": met,
    }


def figure(name: str, value: float, unit: str) -> dict[str, Any]:
    """Return a figure without a target."""
    return {"name": name, "value": value, "unit": unit}


def verdict_rows(verdicts: Sequence[Mapping[str, Any]]) -> Rows:
    """Format verdicts and figures as table rows."""
    return [[one["name"], _with_unit(one["value"], one), *_judged(one)] for one in verdicts]


def _with_unit(value: float | None, one: Mapping[str, Any]) -> str:
    return number(value) if value is None else f"{number(value)}{one['unit']}"


def _judged(one: Mapping[str, Any]) -> tuple[str, str]:
    if "bound" not in one:
        return "", ""
    bound = {"<=": "≤", ">=": "≥"}[one["bound"]]
    word = "PASS" if one["pass"] else "not measured" if one["value"] is None else "FAIL"
    return f"{bound} {_with_unit(one['target'], one)}", word


VERDICT_HEAD = ("ratio", "measured", "target", "")


def machine() -> dict[str, Any]:
    """Describe the machine."""
    return {
        "taken": datetime.now(UTC).isoformat(timespec="minutes"),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "told": version("told"),
        "numpy": version("numpy"),
        "sqlite": _installed("apsw"),
        "commit": _commit(),
        "command": " ".join(["python", *_command()]),
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8").splitlines() if known.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor()) or "a processor without a name"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _command() -> list[str]:
    return [
        f"bench/{Path(sys.argv[0]).name}",
        *(option for option in sys.argv[1:] if option != "--publish"),
    ]


def save(name: str, results: Mapping[str, Any]) -> Path:
    """Save results as JSON."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=1), "utf-8")
    return path


def publish(name: str, text: str) -> None:
    """Insert a table between its marks in the benchmark page."""
    page = PAGE.read_text("utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    changed, count = pattern.subn(lambda marks: f"{marks[1]}\n{text}\n\n{marks[2]}", page)
    if not count:
        raise SystemExit(f"{PAGE.name} has no place marked {name}")
    PAGE.write_text(changed, "utf-8")


def where(facts: Mapping[str, Any]) -> str:
    """Describe the machine in one line."""
    return (
        f"{facts['processor']}, {facts['cores']} cores (load {facts['load']:.1f} at the start), "
        f"{facts['system']}, "
        f"Python {facts['python']}, apsw {facts['sqlite']}, NumPy {facts['numpy']}; told "
        f"{facts['told']} at "
        f"{facts['commit']}; {facts['taken']}"
    )
