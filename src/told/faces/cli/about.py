"""The commands about told itself: demo, doctor, where, config, version and help."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import typer

from told.faces.cli.options import argument, option
from told.faces.cli.shell import UNSOUND, Shell, command, print_help

PANEL = "About told"
app = typer.Typer()
Words = Annotated[list[str] | None, argument("Of this command alone.", "[COMMAND]...")]
Keep = Annotated[Path | None, option("--keep", about="Keep the demo's store in this folder.", metavar="FOLDER")]
Origin = Annotated[bool, option("--origin", about="Say where each value came from.")]


@command(app, rich_help_panel=PANEL)
def demo(shell: Shell, keep: Keep = None) -> None:
    """Remember a year of a sample conversation and look around in it: no key, no server, no network."""
    from told.faces.cli import stage

    stage.play(shell, keep)


@command(app, rich_help_panel=PANEL)
def doctor(shell: Shell) -> None:
    """Check this installation and this store, and say how to mend what is wrong; exit code 3 if something is."""
    from told.faces import doctor
    from told.faces.cli import views

    with shell.progress("Examining"):
        checks = doctor.examine(
            store=shell.store, account=shell.account, embedder=shell.embedder, zone=shell.zone
        )
    body = {"ok": doctor.healthy(checks), "checks": [check.as_dict() for check in checks]}
    shell.show(body, views.checks)
    if not body["ok"]:
        raise typer.Exit(UNSOUND)


@command(app, rich_help_panel=PANEL)
def where(shell: Shell) -> None:
    """Print where the store, the configuration and the models are."""
    import os

    from told.faces.cli import models, views
    from told.settings import config_file, data_folder, store_url

    config = config_file(os.environ)
    places = {
        "store": store_url(shell.loaded().settings), "config": None if config is None else str(config.absolute()),
        "data": str(data_folder()), "models": str(models.provider().registry.home()),
    }  # fmt: skip
    shell.show(places, lambda rows: views.pairs({name: place or "none" for name, place in rows.items()}))


@command(app, rich_help_panel=PANEL)
def config(shell: Shell, origin: Origin = False) -> None:
    """Print every setting and its value."""
    loaded = shell.loaded()
    values = {name: getattr(loaded.settings, name) for name in loaded.origin}
    if origin:
        shell.show({name: {"value": value, "origin": loaded.origin[name]} for name, value in values.items()}, _origins)
    else:
        shell.show(values, _settings)


def _settings(values: dict[str, Any]) -> Any:
    """Names as a file or the environment spells them."""
    from told.faces.cli import views

    width = max(map(len, values)) + 2
    return views.safe("\n".join(f"{name:{width}}{value}".rstrip() for name, value in values.items()))


def _origins(rows: dict[str, dict[str, Any]]) -> Any:
    from told.faces.cli import views

    table = views.grid("setting", "value", "origin")
    for name, row in rows.items():
        table.add_row(name, views.safe(row["value"]), views.safe(row["origin"], "dim"))
    return table


@command(app, rich_help_panel=PANEL)
def version(shell: Shell) -> None:
    """Print the versions of told and of what it stands on."""
    from told.faces.cli import views

    parts = {name: _version(name) for name in ("told", "apsw", "numpy", "onnxruntime")}
    sqlite = None if parts["apsw"] is None else parts["apsw"].rpartition(".")[0]  # apsw carries SQLite's own number
    found = {"told": parts.pop("told"), "python": platform.python_version(), "sqlite": sqlite, **parts}
    shell.show(found, lambda rows: views.pairs({name: value or "not installed" for name, value in rows.items()}))


def _version(distribution: str) -> str | None:
    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return None


@command(app, "help", rich_help_panel=PANEL)
def help_(shell: Shell, words: Words = None) -> None:
    """Print the help of a command; with --json, the whole tree of commands for a program to read."""
    from told.faces.cli import tree

    context = tree.find(shell.context, words or [])
    if shell.json:
        shell.print_json(tree.describe(context))
    else:
        print_help(context)
