"""The demo on a terminal: headings, the call behind each result, and the result as the commands show it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import which
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from told.faces import demo
from told.faces.cli import reasons, views
from told.faces.cli.shell import Shell

NEXT = (
    'add "I live in Lisbon and work at Acme" -u me',
    'add "I moved to Porto" -u me',
    "list -u me",
    'search "where do I live?" -u me',
    "timeline -u me",
    "doctor",
)
KEPT = ("list -u mara", 'search "Where is the cat?" -u mara --as-of "March 2026"', "verify")


def play(shell: Shell, keep: Path | None) -> None:
    """Tell the story, walk through it, and say how to go on."""
    lines = demo.story()
    with demo.opened(keep, shell.embedder) as (memory, clock, folder):
        with shell.progress("Remembering", len(lines)) as tick:
            ids = demo.remember(memory, clock, tick)
        acts = demo.walk(memory, ids, folder)
        model = None if memory.embedder is None else memory.embedder.model
        if shell.json:
            acted = [act.as_dict() for act in acts]
            shell.print_json({"messages": len(lines), "embedder": model, "acts": acted})
            return
        console = shell.console()
        console.print(_opening(lines, model))
        for act in acts:
            console.print(scene(act))
    console.print(_heading("Try it yourself"))
    for command in _next(keep):
        console.print(f"  {command}", style="green", soft_wrap=True)


def _opening(lines: Any, model: str | None) -> RenderableType:
    users = sorted({line.user for line in lines})
    facts = f"{len(lines)} messages of {' and '.join(users)}, {lines[0].at[:10]} to {lines[-1].at[:10]}"
    how = f"words and meaning, with {model}" if model else "words alone; `told models install` adds meaning"
    about = Text.assemble(("told", "bold"), " remembers a conversation\n", (f"{facts}\nfound by {how}", "dim"))
    return Padding(about, (1, 0, 0, 0))


def scene(act: demo.Act) -> RenderableType:
    """One act: its heading if it opens a scene, what to notice, the call and the result."""
    heading = _heading(act.title) if act.title else Text()
    said = Text(act.say, style="italic")
    call = Table.grid()
    call.add_row(Text(">>> ", style="dim"), Text(act.call, style="cyan"))  # a long call goes on below itself
    return Group(heading, said, call, Padding(VIEWS[act.verb](act.result), (0, 0, 0, 2)))


def _context(body: Mapping[str, Any]) -> RenderableType:
    return Group(views.safe(body["text"]), views.quiet(f"{body['tokens']} of {body['budget']} tokens"))


def _bytes(body: Mapping[str, int]) -> RenderableType:
    total = sum(body.values())
    rows = views.pairs({name: f"{count} times" if count else "nowhere" for name, count in body.items()})
    return Group(rows, Text("✓ gone", style="bold green")) if not total else rows


VIEWS: Mapping[str, Callable[[Any], RenderableType]] = {
    "add": views.receipt, "update": views.receipt, "contradictions": views.contradictions, "search": views.found,
    "get_all": views.memories, "diff": views.diff, "history": views.changes,
    "timeline": views.timeline, "explain": reasons.explanation, "context": _context,
    "erase": views.certificate, "verify": views.verdict, "scan": _bytes,
}  # fmt: skip


def _heading(title: str) -> RenderableType:
    return Group(Text(), Rule(Text(title, style="bold"), align="left", style="dim"), Text())


def _next(keep: Path | None) -> list[str]:
    """Commands to go on with, as they can be typed here: on the kept store, else on one's own."""
    at = f" --store sqlite:///{keep.absolute() / demo.FILE}" if keep else ""
    return [f"{_called()} {command}{at}" for command in (KEPT if keep else NEXT)]


def _called() -> str:
    """The name of this program where the shell finds it, else the path it was called by."""
    return sys.argv[0] if Path(sys.argv[0]).name == "told" and which("told") is None else "told"
