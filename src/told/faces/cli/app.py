"""The tree of commands."""

from __future__ import annotations

import typer

from told.faces.cli import (
    about,
    blobs,
    care,
    chat,
    evals,
    fading,
    kinds,
    minding,
    models,
    reads,
    reconsolidate,
    tiers,
    topics,
    writes,
)
from told.faces.cli.shell import CliGroup, root_callback

EPILOG = (
    "Exit codes: 0 done · 1 told could not do it (not found, conflict, store trouble), or you declined · "
    "2 bad usage or bad input · 3 verification failed (verify, doctor) · 130 interrupted. "
    "Results are text for people; with --json they are exactly what the SDK returns, and errors are JSON too."
)

COMMAND_NAMES = {
    "get_all": "list", "delete_all": "delete", "import_": "import", "why_not": "why-not", "upload": "blob upload",
    "blob": "blob get", "blobs": "blob list", "faults": "faults list", "retry_faults": "faults retry",
    "drop_faults": "faults drop", "quarantine": "quarantine list", "review": "quarantine accept",
    "infer_kinds": "kinds infer", "enqueue": "reconsolidate enqueue", "queue": "reconsolidate queue",
    "reflect": "reconsolidate run", "apply_delta": "reconsolidate apply",
    "topics": "topics list", "topic": "topics show", "file_topics": "topics file",
    "merge_topics": "topics merge", "abstract_topics": "topics abstract",
}  # fmt: skip
"""SDK verbs that are called otherwise here; `delete_all` is `delete --all`."""

OMITTED_VERBS = frozenset({"tool_result"})
"""SDK verbs the command line leaves out: what a tool says is handed in by the agent that called it."""

app = typer.Typer(
    name="told",
    cls=CliGroup,
    help=root_callback.__doc__,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.callback(invoke_without_command=True)(root_callback)
PARTS = (
    chat.app, writes.app, reads.app, fading.app, minding.app, reconsolidate.app, tiers.app, care.app, evals.app,
    about.app,
)  # fmt: skip
for part in PARTS:
    app.add_typer(part)
GROUPS = {
    "kinds": (kinds.app, minding.PANEL), "topics": (topics.app, minding.PANEL),
    "quarantine": (minding.quarantine, minding.PANEL), "reconsolidate": (reconsolidate.group, minding.PANEL),
    "faults": (minding.faults, care.PANEL), "blob": (blobs.app, writes.PANEL), "models": (models.app, care.PANEL),
}  # fmt: skip
for name, (group, panel) in GROUPS.items():
    app.add_typer(group, name=name, cls=CliGroup, rich_help_panel=panel)
