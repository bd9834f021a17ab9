"""Results of latency.py as tables, ratios and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from bench import _table

MILLI = 1e6


def quantile(values: Sequence[float], percent: int) -> float:
    """Return a quantile that is one of the values."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


Rounds: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""Measurements of each contender by round."""


def ratio(rounds: Rounds, what: str, above: str, below: str) -> float | None:
    """Return the ratio of two contenders' times, by the medians within each round."""
    if above not in rounds or below not in rounds:
        return None
    pairs = zip(rounds[above], rounds[below], strict=True)
    return statistics.median(quantile(a[what], 50) / quantile(b[what], 50) for a, b in pairs)


def verdicts(scenarios: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare the measurements with every speed target."""
    found: list[dict[str, Any]] = []
    for one in scenarios:
        slow = f", every sync {one['sync']:g} ms" if one["slow"] else ""
        found += [*_adds(one, one["rounds"], ""), *_adds(one, one["slow_rounds"], slow)]
        found += [*_searches(one), *_figures(one)]
    spread = [one for one in scenarios if one["users"] > 1]
    if len(spread) > 1:
        small, large = (
            one["figures"]["told-full"]["search"][50] for one in (spread[0], spread[-1])
        )
        title = f"search of 100 memories, {spread[-1]['title']} / {spread[0]['title']}"
        found.append(_table.verdict(title, large / small, "<=", 1.5))
    return found


def _adds(one: dict[str, Any], rounds: Rounds, where: str) -> Iterator[dict[str, Any]]:
    """Compare adds on one disk with the peer and with the bare limit."""
    if "mem0" in rounds:
        name = _with_peer(one) + where
        yield _table.verdict(
            f"{name}: add, mem0 / told full", ratio(rounds, "add", "mem0", "told-full"), ">=", 4
        )
        yield _table.verdict(
            f"{name}: add, mem0 / told normal",
            ratio(rounds, "add", "mem0", "told-normal"),
            ">=",
            20,
        )
    for durability in ("full", "normal") if rounds else ():
        for limit in ("rows", "bare"):
            nearness = ratio(rounds, "add", f"told-{durability}", f"{limit}-{durability}")
            yield _table.verdict(
                f"{one['title']}{where}: add, told / {limit}, {durability}", nearness, "<=", 3
            )


def _searches(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    rounds = one["rounds"]
    if "mem0" in rounds:
        faster = ratio(rounds, "search", "mem0", "told-full")
        yield _table.verdict(f"{_with_peer(one)}: search, mem0 / told", faster, ">=", 20)
    nearness = ratio(rounds, "search", "told-full", "bare-full")
    yield _table.verdict(f"{one['title']}: search, told / bare", nearness, "<=", 3)


def _figures(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the absolute targets; opening is judged with many users, not one large one."""
    name, told = one["title"], one["figures"]["told-full"]
    cold = told["cold_best"]["both"] / MILLI
    yield _table.verdict(f"{name}: bulk add, full", told["bulk"], ">=", 5000, "/s")
    if one["users"] > 1:
        yield _table.verdict(f"{name}: cold open and first search, best", cold, "<=", 50, " ms")
    else:
        yield _table.figure(f"{name}: cold open and first search, best", cold, " ms")


def _with_peer(one: dict[str, Any]) -> str:
    """Mark a title if the peer ran out of time and so holds fewer memories, in its favour."""
    peer = one["figures"]["mem0"]
    return (
        str(one["title"])
        if peer["whole"]
        else f"{one['title']} (mem0 holds {_table.number(peer['count'])})"
    )


HEAD = (
    "",
    "memories",
    "add ms p50 / p95 (CPU)",
    "bulk add/s",
    "search ms p50 / p95 (CPU)",
    "with embedding ms",
    "open ms best (median)",
    "first search ms best (median)",
    "RSS MB",
    "disk B/memory",
)
SLOW_HEAD = ("", "add ms p50 / p95 (CPU)", "syncs an add", "mem0 / it")


def tables(scenario: dict[str, Any]) -> dict[str, tuple[Sequence[str], _table.Rows]]:
    """Build the tables of a scenario by title: the machine's disk, and adds on a slow one."""
    found: dict[str, tuple[Sequence[str], _table.Rows]] = {
        scenario["title"]: (HEAD, rows(scenario))
    }
    if scenario["slow"]:
        title = f"{scenario['title']}: adds where every sync takes {scenario['sync']:g} ms"
        found[title] = (
            SLOW_HEAD,
            [_slow_row(name, scenario) for name, _ in _ordered(scenario["slow"])],
        )
    return found


def rows(scenario: dict[str, Any]) -> list[list[str]]:
    """Format a scenario as table rows."""
    return [_row(name, figures) for name, figures in _ordered(scenario["figures"])]


def _ordered(figures: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    order = (
        "bare-full",
        "rows-full",
        "told-full",
        "bare-normal",
        "rows-normal",
        "told-normal",
        "mem0",
    )
    return [(name, figures[name]) for name in order if name in figures]


def _row(name: str, figures: dict[str, Any]) -> list[str]:
    cut = "" if figures["whole"] else " (time up)"
    return [
        name.replace("-", ", "),
        _table.number(figures["count"]) + cut,
        _timed(figures, "add"),
        _table.number(figures["bulk"]),
        _timed(figures, "search"),
        _pair(figures["embedded"]) if "embedded" in figures else "–",
        _cold(figures, "open"),
        _cold(figures, "first"),
        _table.number(figures["cold"]["resident"] / 2**20) if "cold" in figures else "–",
        _table.number(figures["bytes"]),
    ]


def _slow_row(name: str, scenario: dict[str, Any]) -> list[str]:
    figures, faster = scenario["slow"][name], ratio(scenario["slow_rounds"], "add", "mem0", name)
    times = "–" if faster is None else f"{_table.number(faster)}×"
    return [name.replace("-", ", "), _timed(figures, "add"), _table.number(figures["syncs"]), times]


def _timed(figures: dict[str, Any], what: str) -> str:
    if what not in figures:
        return "–"
    return f"{_pair(figures[what])} ({_table.number(figures[f'{what}_cpu'] / MILLI)})"


def _cold(figures: dict[str, Any], what: str) -> str:
    if "cold" not in figures:
        return "–"
    best, median = (_table.number(figures[which][what] / MILLI) for which in ("cold_best", "cold"))
    return f"{best} ({median})"


def _pair(quantiles: dict[int, float]) -> str:
    return f"{_table.number(quantiles[50] / MILLI)} / {_table.number(quantiles[95] / MILLI)}"


def notes(scenario: dict[str, Any]) -> str:
    """Describe what the table omits."""
    figures = scenario["figures"]
    spent = figures["bare-full"]["parts"].items()
    parts = " · ".join(f"{part} {_table.number(nanos / MILLI)}" for part, nanos in spent)
    loading = f"modules {_table.number(figures['told-full']['cold']['import'] / MILLI)} ms"
    if "mem0" in figures:
        loading += f" (mem0 {_table.number(figures['mem0']['cold']['import'] / MILLI)} ms)"
    return f"bare search by parts, ms: {parts}; loading told's {loading}"


def about_disks(disks: Sequence[tuple[str, float]]) -> str:
    """Describe the sync time of each disk."""
    return (
        "An fdatasync of 4 KB: "
        + "; ".join(f"{_table.number(taken)} ms on {title}" for title, taken in disks)
        + "."
    )


def page(results: dict[str, Any]) -> str:
    """Format the results for the docs."""
    taken = f"`{results['machine']['command']}` on {_table.where(results['machine'])}."
    sections = [f"{taken} {about_disks(results['disks'])}"]
    for scenario in results["scenarios"]:
        for head, (columns, lines) in tables(scenario).items():
            sections += [f"**{head}**", _table.markdown(columns, lines)]
        sections.append(notes(scenario).capitalize() + ".")
    sections.append(_table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(results["verdicts"])))
    return "\n\n".join(sections)
