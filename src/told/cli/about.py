"""Commands about told itself: demo, doctor, where, config, version and help."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import typer

from told.cli.options import argument, option
from told.cli.shell import EXIT_UNSOUND, GLOBAL_OPTIONS, Shell, command, print_help
from told.errors import InvalidInput
from told.model.validation import suggest_option

PANEL = "About told"
app = typer.Typer()
CommandWords = Annotated[list[str] | None, argument("Show only this command.", "[COMMAND]...")]
KeepFolder = Annotated[
    Path | None, option("--keep", about="Keep the demo's store in this folder.", metavar="FOLDER")
]
ShowOrigin = Annotated[bool, option("--origin", about="Show where each value comes from.")]


@command(app, rich_help_panel=PANEL)
def demo(shell: Shell, keep: KeepFolder = None) -> None:
    """Store a sample conversation and query it: no key, no server, no network."""
    from told.cli.demo import play_demo

    play_demo(shell, keep)


@command(app, rich_help_panel=PANEL)
def doctor(shell: Shell) -> None:
    """Check the installation and the store; print fixes; exit code 3 if a check fails."""
    from told.cli import views
    from told.tools import doctor

    with shell.show_progress("Examining"):
        checks = doctor.run_checks(
            store=shell.store, account=shell.account, embedder=shell.embedder, zone=shell.zone
        )
    body = {"ok": doctor.is_healthy(checks), "checks": [check.as_dict() for check in checks]}
    shell.show_result(body, views.render_checks)
    if not body["ok"]:
        raise typer.Exit(EXIT_UNSOUND)


@command(app, rich_help_panel=PANEL)
def where(shell: Shell) -> None:
    """Print the paths of the store, the configuration and the models."""
    import os

    from told.cli import models, views
    from told.runtime import user_folder
    from told.settings import find_config_file, resolve_store_url

    config = find_config_file(os.environ)
    places = {
        "store": resolve_store_url(shell.load_settings().settings),
        "config": None if config is None else str(config.absolute()),
        "data": str(user_folder("data")),
        "models": str(models.load_provider().registry.home()),
    }
    shell.show_result(
        places,
        lambda rows: views.render_pairs({name: path or "none" for name, path in rows.items()}),
    )


@command(app, rich_help_panel=PANEL)
def config(shell: Shell, origin: ShowOrigin = False) -> None:
    """Print every setting and its value."""
    loaded = shell.load_settings()
    values = {name: getattr(loaded.settings, name) for name in loaded.origin}
    if origin:
        shell.show_result(
            {
                name: {"value": value, "origin": loaded.origin[name]}
                for name, value in values.items()
            },
            _render_origins,
        )
    else:
        shell.show_result(values, _render_settings)


def _render_settings(values: dict[str, Any]) -> Any:
    """Render settings under the names used in config files and the environment."""
    from told.cli import views

    width = max(map(len, values)) + 2
    return views.safe_text(
        "\n".join(f"{name:{width}}{value}".rstrip() for name, value in values.items())
    )


def _render_origins(rows: dict[str, dict[str, Any]]) -> Any:
    from told.cli import views

    table = views.build_table("setting", "value", "origin")
    for name, row in rows.items():
        table.add_row(name, views.safe_text(row["value"]), views.safe_text(row["origin"], "dim"))
    return table


@command(app, rich_help_panel=PANEL)
def version(shell: Shell) -> None:
    """Print the versions of told and its main dependencies."""
    from told.cli import views

    installed = {name: _find_version(name) for name in ("told", "apsw", "numpy", "onnxruntime")}
    sqlite = (
        None if installed["apsw"] is None else installed["apsw"].rpartition(".")[0]
    )  # apsw's version starts with SQLite's
    versions = {
        "told": installed.pop("told"),
        "python": platform.python_version(),
        "sqlite": sqlite,
        **installed,
    }
    shell.show_result(
        versions,
        lambda rows: views.render_pairs(
            {name: value or "not installed" for name, value in rows.items()}
        ),
    )


def _find_version(distribution: str) -> str | None:
    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return None


@command(app, "help", rich_help_panel=PANEL)
def help_(shell: Shell, words: CommandWords = None) -> None:
    """Print the help of a command; with --json, the whole command tree."""
    context = find_command(shell.context, words or [])
    if shell.json:
        shell.print_json(describe_command(context))
    else:
        print_help(context)


def find_command(root: typer.Context, words: Sequence[str]) -> typer.Context:
    """Return the context of the command that these words name."""
    context = root
    for word in words:
        commands = getattr(context.command, "commands", {})
        if word not in commands:
            suggestion = suggest_option(word, commands) or f"See `{context.command_path} --help`."
            raise InvalidInput(f"There is no command {word!r}.", hint=suggestion)
        context = typer.Context(commands[word], parent=context, info_name=word)
    return context


def describe_command(context: typer.Context) -> dict[str, Any]:
    """Describe a command tree as JSON; global options appear once."""
    command: Any = context.command
    is_root = context.parent is None
    params = [param for param in command.params if is_root or param.name not in GLOBAL_OPTIONS]
    body: dict[str, Any] = {"command": context.command_path, "help": (command.help or "").strip()}
    body["arguments"] = [
        _describe_parameter(param) for param in params if param.param_type_name == "argument"
    ]
    body["options"] = [
        _describe_parameter(param) for param in params if param.param_type_name == "option"
    ]
    subcommands = getattr(command, "commands", {})
    children = {
        name: describe_command(typer.Context(child, parent=context, info_name=name))
        for name, child in subcommands.items()
    }
    return {**body, **({"commands": children} if children else {})}


def _describe_parameter(param: Any) -> dict[str, Any]:
    names = list(param.opts) if param.param_type_name == "option" else [param.name]
    body: dict[str, Any] = {
        "names": names,
        "help": getattr(param, "help", None) or "",
        "required": param.required,
    }
    if getattr(param, "is_flag", False):
        body["flag"] = True
    elif param.metavar:
        body["value"] = param.metavar
    if param.multiple or param.nargs == -1:
        body["repeatable"] = True
    if isinstance(param.default, str | int | float) and param.default is not False:
        body["default"] = param.default
    return body
