"""What latency.py found, as tables, ratios and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench import _table

MILLI = 1e6


def quantile(values: Sequence[float], percent: int) -> float:
    """A quantile of some values, one of them."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def ratio(scenario: dict[str, Any], what: str, above: str, below: str) -> float | None:
    """How many times longer one contender takes than another, by the medians within each round."""
    rounds = scenario["rounds"]
    if above not in rounds or below not in rounds:
        return None
    pairs = zip(rounds[above], rounds[below], strict=True)
    return statistics.median(quantile(a[what], 50) / quantile(b[what], 50) for a, b in pairs)


def verdicts(scenarios: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every target of speed, held against what was measured."""
    found: list[dict[str, Any]] = []
    for one in scenarios:
        found += [*_against_peer(one), *_against_limit(one)]
    spread = [one for one in scenarios if one["users"] > 1]
    if len(spread) > 1:
        small, large = (one["figures"]["told-full"]["search"][50] for one in (spread[0], spread[-1]))
        title = f"search of 100 memories, {spread[-1]['title']} / {spread[0]['title']}"
        found.append(_table.verdict(title, large / small, "<=", 1.5))
    return found


def _against_peer(one: dict[str, Any]) -> list[dict[str, Any]]:
    """How many times faster than the peer; one that ran out of time holds fewer memories, which flatters it."""
    peer = one["figures"].get("mem0")
    if peer is None:
        return []
    name = one["title"] if peer["whole"] else f"{one['title']} (mem0 holds {_table.number(peer['count'])})"
    return [
        _table.verdict(f"{name}: add, mem0 / told full", ratio(one, "add", "mem0", "told-full"), ">=", 4),
        _table.verdict(f"{name}: add, mem0 / told normal", ratio(one, "add", "mem0", "told-normal"), ">=", 20),
        _table.verdict(f"{name}: search, mem0 / told", ratio(one, "search", "mem0", "told-full"), ">=", 20),
    ]


def _against_limit(one: dict[str, Any]) -> list[dict[str, Any]]:
    """How near to the bare limit, and the targets that are plain figures."""
    name, told = one["title"], one["figures"]["told-full"]
    normal = ratio(one, "add", "told-normal", "bare-normal")
    return [
        _table.verdict(f"{name}: add, told / bare, full", ratio(one, "add", "told-full", "bare-full"), "<=", 3),
        _table.verdict(f"{name}: add, told / bare, normal", normal, "<=", 3),
        _table.verdict(f"{name}: search, told / bare", ratio(one, "search", "told-full", "bare-full"), "<=", 3),
        _table.verdict(f"{name}: bulk add, full", told["bulk"], ">=", 5000, "/s"),
        _table.verdict(f"{name}: cold open and first search, best", _cold_ms(told), "<=", 50, " ms"),
    ]


def _cold_ms(figures: dict[str, Any], which: str = "cold_best") -> float:
    return float(figures[which]["open"] + figures[which]["first"]) / MILLI


HEAD = ("", "memories", "add ms p50 / p95 (CPU)", "bulk add/s", "search ms p50 / p95 (CPU)", "with embedding ms",
        "cold open ms best (median)", "RSS MB", "disk B/memory")  # fmt: skip


def rows(scenario: dict[str, Any]) -> list[list[str]]:
    """A scenario as rows of a table."""
    return [_row(name, figures) for name, figures in _ordered(scenario["figures"])]


def _ordered(figures: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    order = ("bare-full", "told-full", "bare-normal", "told-normal", "mem0")
    return [(name, figures[name]) for name in order if name in figures]


def _row(name: str, figures: dict[str, Any]) -> list[str]:
    cut = "" if figures["whole"] else " (time up)"
    return [
        name.replace("-", ", "), _table.number(figures["count"]) + cut,
        f"{_pair(figures['add'])} ({_table.number(figures['add_cpu'] / MILLI)})", _table.number(figures["bulk"]),
        f"{_pair(figures['search'])} ({_table.number(figures['search_cpu'] / MILLI)})",
        _pair(figures["embedded"]) if "embedded" in figures else "–", _cold(figures),
        _table.number(figures["cold"]["resident"] / 2**20), _table.number(figures["bytes"]),
    ]  # fmt: skip


def _cold(figures: dict[str, Any]) -> str:
    return f"{_table.number(_cold_ms(figures))} ({_table.number(_cold_ms(figures, 'cold'))})"


def _pair(quantiles: dict[int, float]) -> str:
    return f"{_table.number(quantiles[50] / MILLI)} / {_table.number(quantiles[95] / MILLI)}"


def notes(scenario: dict[str, Any]) -> str:
    """What the table leaves out."""
    figures = scenario["figures"]
    spent = figures["bare-full"]["parts"].items()
    parts = " · ".join(f"{part} {_table.number(nanos / MILLI)}" for part, nanos in spent)
    loading = f"modules {_table.number(figures['told-full']['cold']['import'] / MILLI)} ms"
    if "mem0" in figures:
        loading += f" (mem0 {_table.number(figures['mem0']['cold']['import'] / MILLI)} ms)"
    return f"bare search by parts, ms: {parts}; loading told's {loading}"


def page(results: dict[str, Any]) -> str:
    """The results for the docs."""
    sections = [f"`{results['machine']['command']}` on {_table.where(results['machine'])}."]
    for scenario in results["scenarios"]:
        table = _table.markdown(HEAD, rows(scenario))
        sections += [f"**{scenario['title']}**", table, notes(scenario).capitalize() + "."]
    sections.append(_table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(results["verdicts"])))
    return "\n\n".join(sections)
