"""Render the demo on a terminal: headings, each call and its result."""

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

from told.cli import views
from told.cli.shell import Shell
from told.tools import demo

NEXT_COMMANDS = (
    'add "I live in Lisbon and work at Acme" -u me',
    'add "I moved to Porto" -u me',
    "list -u me",
    'search "where do I live?" -u me',
    "timeline -u me",
    "doctor",
)
KEPT_STORE_COMMANDS = (
    "list -u mara",
    'search "Where is the cat?" -u mara --as-of "March 2026"',
    "verify",
)


def play_demo(shell: Shell, keep: Path | None) -> None:
    """Load the story, run each act and print what to try next."""
    lines = demo.load_story()
    with demo.open_demo_memory(keep, shell.embedder) as (memory, clock, folder):
        with shell.show_progress("Remembering", len(lines)) as tick:
            ids = demo.replay_story(memory, clock, tick)
        acts = demo.iter_acts(memory, ids, folder)
        model = None if memory.embedder is None else memory.embedder.model
        if shell.json:
            act_rows = [act.as_dict() for act in acts]
            shell.print_json({"messages": len(lines), "embedder": model, "acts": act_rows})
            return
        console = shell.make_console()
        console.print(_render_intro(lines, model))
        for act in acts:
            console.print(render_act(act))
    console.print(_render_heading("Try it yourself"))
    for command in _next_commands(keep):
        console.print(f"  {command}", style="green", soft_wrap=True)


def _render_intro(lines: Any, model: str | None) -> RenderableType:
    users = sorted({line.user for line in lines})
    facts = (
        f"{len(lines)} messages of {' and '.join(users)}, {lines[0].at[:10]} to {lines[-1].at[:10]}"
    )
    search_mode = (
        f"words and meaning, with {model}"
        if model
        else "words alone; `told models install` adds meaning"
    )
    intro = Text.assemble(
        ("told", "bold"), " remembers a conversation\n", (f"{facts}\nfound by {search_mode}", "dim")
    )
    return Padding(intro, (1, 0, 0, 0))


def render_act(act: demo.DemoAct) -> RenderableType:
    """Render one act: heading, comment, call and result."""
    heading = _render_heading(act.title) if act.title else Text()
    comment = Text(act.comment, style="italic")
    call = Table.grid()
    call.add_row(
        Text(">>> ", style="dim"), Text(act.call, style="cyan")
    )  # a long call wraps below itself
    return Group(heading, comment, call, Padding(RENDERERS[act.verb](act.result), (0, 0, 0, 2)))


def _render_context(body: Mapping[str, Any]) -> RenderableType:
    return Group(
        views.safe_text(body["text"]),
        views.dim_text(f"{body['tokens']} of {body['budget']} tokens"),
    )


def _render_byte_counts(body: Mapping[str, int]) -> RenderableType:
    total = sum(body.values())
    rows = views.render_pairs(
        {name: f"{count} times" if count else "nowhere" for name, count in body.items()}
    )
    return Group(rows, Text("✓ gone", style="bold green")) if not total else rows


RENDERERS: Mapping[str, Callable[[Any], RenderableType]] = {
    "add": views.render_receipt,
    "update": views.render_receipt,
    "contradictions": views.render_contradictions,
    "search": views.render_search_results,
    "get_all": views.render_memories,
    "diff": views.render_diff,
    "history": views.render_changes,
    "timeline": views.render_timeline,
    "explain": views.render_explanation,
    "context": _render_context,
    "erase": views.render_certificate,
    "verify": views.render_verify_result,
    "scan": _render_byte_counts,
}


def _render_heading(title: str) -> RenderableType:
    return Group(Text(), Rule(Text(title, style="bold"), align="left", style="dim"), Text())


def _next_commands(keep: Path | None) -> list[str]:
    """Return commands to try next, on the kept store if there is one."""
    store_option = f" --store sqlite:///{keep.absolute() / demo.STORE_FILE}" if keep else ""
    return [
        f"{_program_name()} {command}{store_option}"
        for command in (KEPT_STORE_COMMANDS if keep else NEXT_COMMANDS)
    ]


def _program_name() -> str:
    """Return the name or path this program was called by."""
    return sys.argv[0] if Path(sys.argv[0]).name == "told" and which("told") is None else "told"
