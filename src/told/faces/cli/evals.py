"""The command that measures: eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.core.errors import InvalidInput
from told.faces.cli.options import argument, option
from told.faces.cli.shell import Shell, Tick, command

if TYPE_CHECKING:
    from told.faces.eval.data import Conversation
    from told.faces.eval.run import Run, Variant
    from told.faces.eval.vectors import Embedders

PANEL = "Look after it"
app = typer.Typer()


@command(app, "eval", rich_help_panel=PANEL)
def evaluate(
    shell: Shell,
    files: Annotated[list[Path], argument("Conversations with questions, as JSON.", "FILE...", exists=True,
                                          dir_okay=False)],
    budget: Annotated[list[int] | None, option(
        about="Tokens of a context; repeatable; 500, 1000, 2000 and 4000 if left out.", metavar="N", min=1)] = None,
    limit_conversations: Annotated[int | None, option(
        about="Only the first so many of each file.", metavar="N", min=1)] = None,
    misses: Annotated[int, typer.Option(help="How many misses to explain.", metavar="N", min=0)] = 5,
    set_: Annotated[list[str] | None, option(
        "--set", about="A setting of the whole run; repeatable.", metavar="NAME=VALUE")] = None,
    compare: Annotated[list[str] | None, option(
        about="Other settings to measure beside it: a title of your own if you like, then pairs, such as "
              "few=depth=50; repeatable.",
        metavar="NAME=VALUE,...")] = None,
    save: Annotated[Path | None, option(about="Write all figures to this file, as JSON.", metavar="PATH")] = None,
) -> None:  # fmt: skip
    """Measure recall on conversations of your own: what share of the evidence a context of so many tokens holds.

    The store is gone afterwards, unless --store names an empty one that is to keep the conversations.
    """
    from told.faces.cli import figures
    from told.faces.eval import data, run
    from told.faces.eval.measure import BUDGETS
    from told.faces.eval.vectors import Embedders

    if shell.store and len(files) > 1:
        raise InvalidInput("--store keeps the conversations of one file.", hint="Give one FILE, or leave --store out.")
    settings = shell.loaded().settings
    variants = _variants(set_ or (), compare or (), {"zone": settings.zone} if shell.zone else {})
    sets = {file: data.load(file, most=limit_conversations, zone=settings.zone or None) for file in files}
    embedders, budgets = Embedders(settings.embedder), sorted(set(budget or BUDGETS))
    total = len(variants) * sum(run.steps(conversations) for conversations in sets.values())
    with shell.progress("Measuring", total) as tick:
        found = {file: _runs(shell, one, variants, embedders, budgets, misses, tick) for file, one in sets.items()}
    report = _report(sets, found, budgets)
    if save is not None:
        save.write_text(figures.as_json(report), "utf-8")
    shell.show(report, figures.report)


def _runs(
    shell: Shell, conversations: Sequence[Conversation], variants: Sequence[Variant], embedders: Embedders,
    budgets: Sequence[int], misses: int, tick: Tick,
) -> list[Run]:  # fmt: skip
    from told.faces.eval.run import evaluate

    return evaluate(
        conversations, variants, embedders, budgets=budgets, misses=misses, store=shell.store, account=shell.account,
        tick=tick,
    )  # fmt: skip


def _report(
    sets: Mapping[Path, Sequence[Conversation]], found: Mapping[Path, Sequence[Run]], budgets: Sequence[int]
) -> dict[str, Any]:
    """Everything that was measured, as JSON."""
    files = [
        {
            "file": str(file), "conversations": len(conversations),
            "turns": sum(len(one.turns) for one in conversations),
            "questions": sum(len(one.questions) for one in conversations),
            "variants": [run.as_dict() for run in found[file]],
        }
        for file, conversations in sets.items()
    ]  # fmt: skip
    warnings = dict.fromkeys(warning for runs in found.values() for run in runs for warning in run.warnings)
    return {"budgets": list(budgets), "files": files, "warnings": list(warnings)}


# Settings on the command line -----------------------------------------------------------------------------------------


def _variants(base: Sequence[str], others: Sequence[str], more: Mapping[str, Any]) -> list[Variant]:
    """The run itself, and those to compare it with: each changes some settings of it."""
    from told.faces.eval.run import Variant, knobs

    own = {**more, **knobs(dict(_pair(text, "--set") for text in base), "--set")}
    named = [_titled(text) for text in others]
    variants = [Variant(knobs=own)]
    variants += [Variant(title, {**own, **knobs(dict(pairs), "--compare")}) for title, pairs in named]
    titles = [variant.name for variant in variants]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"two of them are called {twice!r}", param_hint="'--compare'")
    return variants


def _titled(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The title of a variant, which may stand before its first setting, and its settings."""
    first, *rest = text.split(",")
    title, _, setting = first.partition("=")
    if "=" not in setting:
        title, setting = text, first
    return title, [_pair(part, "--compare") for part in (setting, *rest)]


def _pair(text: str, where: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=f"'{where}'")
    return name.strip(), value
