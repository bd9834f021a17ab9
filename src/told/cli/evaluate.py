"""`told eval`: run the recall benchmark and print its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from told.cli.options import argument, option
from told.cli.shell import Shell, TickCallback, command
from told.errors import InvalidInput

if TYPE_CHECKING:
    from told.tools.evaluate.data import EvalConversation
    from told.tools.evaluate.run import EmbedderPool, EvalRun, Variant

PANEL = "Maintenance"


app = typer.Typer()


@command(app, "eval", rich_help_panel=PANEL)
def evaluate(
    shell: Shell,
    files: Annotated[
        list[Path],
        argument("Conversations with questions, as JSON.", "FILE...", exists=True, dir_okay=False),
    ],
    budget: Annotated[
        list[int] | None,
        option(
            about="Context budget in tokens; repeatable; default 500, 1000, 2000 and 4000.",
            metavar="N",
            min=1,
        ),
    ] = None,
    limit_conversations: Annotated[
        int | None,
        option(about="Use only the first N conversations of each file.", metavar="N", min=1),
    ] = None,
    misses: Annotated[
        int, typer.Option(help="How many misses to explain.", metavar="N", min=0)
    ] = 5,
    set_: Annotated[
        list[str] | None,
        option("--set", about="Setting for every run; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    compare: Annotated[
        list[str] | None,
        option(
            about="Variant to compare: optional title, then settings, such as "
            "few=depth=50; repeatable.",
            metavar="NAME=VALUE,...",
        ),
    ] = None,
    save: Annotated[
        Path | None, option(about="Write the full report to this file as JSON.", metavar="PATH")
    ] = None,
) -> None:
    """Measure recall on your own conversations: the share of evidence that fits in a context.

    The store is temporary unless --store names an empty one to keep.
    """
    from told.cli.report import render_report, report_to_json
    from told.tools.evaluate import data, run
    from told.tools.evaluate.run import BUDGETS, EmbedderPool

    if shell.store and len(files) > 1:
        raise InvalidInput(
            "--store keeps the conversations of one file.",
            hint="Give one FILE, or leave --store out.",
        )
    settings = shell.load_settings().settings
    variants = _parse_variants(
        set_ or (), compare or (), {"zone": settings.zone} if shell.zone else {}
    )
    conversations_by_file = {
        file: data.load_conversations(
            file, max_count=limit_conversations, zone=settings.zone or None
        )
        for file in files
    }
    embedders, budgets = EmbedderPool(settings.embedder), sorted(set(budget or BUDGETS))
    total = len(variants) * sum(
        run.count_steps(conversations) for conversations in conversations_by_file.values()
    )
    with shell.show_progress("Measuring", total) as tick:
        runs_by_file = {
            file: _run_variants(
                shell, file_conversations, variants, embedders, budgets, misses, tick
            )
            for file, file_conversations in conversations_by_file.items()
        }
    report = _build_report(conversations_by_file, runs_by_file, budgets)
    if save is not None:
        save.write_text(report_to_json(report), "utf-8")
    shell.show_result(report, render_report)


def _run_variants(
    shell: Shell,
    conversations: Sequence[EvalConversation],
    variants: Sequence[Variant],
    embedders: EmbedderPool,
    budgets: Sequence[int],
    misses: int,
    tick: TickCallback,
) -> list[EvalRun]:
    from told.tools.evaluate.run import evaluate

    return evaluate(
        conversations,
        variants,
        embedders,
        budgets=budgets,
        misses=misses,
        store=shell.store,
        account=shell.account,
        tick=tick,
    )


def _build_report(
    conversations_by_file: Mapping[Path, Sequence[EvalConversation]],
    runs_by_file: Mapping[Path, Sequence[EvalRun]],
    budgets: Sequence[int],
) -> dict[str, Any]:
    """Build the full report as JSON."""
    files = [
        {
            "file": str(file),
            "conversations": len(conversations),
            "turns": sum(len(conversation.turns) for conversation in conversations),
            "questions": sum(len(conversation.questions) for conversation in conversations),
            "variants": [run.as_dict() for run in runs_by_file[file]],
        }
        for file, conversations in conversations_by_file.items()
    ]
    warnings = dict.fromkeys(
        warning for runs in runs_by_file.values() for run in runs for warning in run.warnings
    )
    return {"budgets": list(budgets), "files": files, "warnings": list(warnings)}


def _parse_variants(
    base: Sequence[str], others: Sequence[str], extra: Mapping[str, Any]
) -> list[Variant]:
    """Return the base run and the variants to compare, each with its settings."""
    from told.tools.evaluate.run import Variant, check_settings

    base_settings = {
        **extra,
        **check_settings(dict(_parse_setting(text, "--set") for text in base), "--set"),
    }
    titled = [_parse_variant(text) for text in others]
    variants = [Variant(settings=base_settings)]
    variants += [
        Variant(title, {**base_settings, **check_settings(dict(pairs), "--compare")})
        for title, pairs in titled
    ]
    titles = [variant.name for variant in variants]
    duplicate = next((title for title in titles if titles.count(title) > 1), None)
    if duplicate is not None:
        raise typer.BadParameter(f"two variants are named {duplicate!r}", param_hint="'--compare'")
    return variants


def _parse_variant(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Parse a variant's optional title and its settings."""
    first, *rest = text.split(",")
    title, _, setting = first.partition("=")
    if "=" not in setting:
        title, setting = text, first
    return title, [_parse_setting(part, "--compare") for part in (setting, *rest)]


def _parse_setting(text: str, where: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=f"'{where}'")
    return name.strip(), value
