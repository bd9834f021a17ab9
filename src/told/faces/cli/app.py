"""The tree of commands."""

from __future__ import annotations

import typer

from told.faces.cli import about, blobs, care, evals, kinds, minding, models, reads, tiers, topics, writes
from told.faces.cli.shell import root

EPILOGUE = (
    "Exit codes: 0 done · 1 told could not do it (not found, conflict, store trouble), or you declined · "
    "2 bad usage or bad input · 3 verification failed (verify, doctor) · 130 interrupted. "
    "Results are text for people; with --json they are exactly what the SDK returns, and errors are JSON too."
)

SPELLED = {
    "get_all": "list", "delete_all": "delete", "import_": "import", "why_not": "why-not", "upload": "blob upload",
    "blob": "blob get", "blobs": "blob list", "faults": "faults list", "retry_faults": "faults retry",
    "drop_faults": "faults drop", "quarantine": "quarantine list", "review": "quarantine accept",
    "infer_kinds": "kinds infer", "topics": "topics list", "topic": "topics show", "file_topics": "topics file",
    "merge_topics": "topics merge", "abstract_topics": "topics abstract",
}  # fmt: skip
"""SDK verbs that are called otherwise here; `delete_all` is `delete --all`."""

DECLINED = frozenset({"tool_result"})
"""SDK verbs the command line leaves out: what a tool says is handed in by the agent that called it."""

app = typer.Typer(
    name="told", help=root.__doc__, epilog=EPILOGUE, context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False, rich_markup_mode="rich",
)  # fmt: skip
app.callback(invoke_without_command=True)(root)
for part in (writes.app, reads.app, minding.app, tiers.app, care.app, evals.app, about.app):
    app.add_typer(part)
app.add_typer(kinds.app, name="kinds", rich_help_panel=minding.PANEL)
app.add_typer(topics.app, name="topics", rich_help_panel=minding.PANEL)
app.add_typer(minding.quarantine, name="quarantine", rich_help_panel=minding.PANEL)
app.add_typer(minding.faults, name="faults", rich_help_panel="Look after it")
app.add_typer(blobs.app, name="blob", rich_help_panel="Remember and forget")
app.add_typer(models.app, name="models", rich_help_panel="Look after it")
