"""The tree of commands as data, for programs that call this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from told.core.errors import InvalidInput
from told.core.reading import suggest_option
from told.faces.cli.shell import GLOBAL_OPTIONS


def find_command(root: typer.Context, words: Sequence[str]) -> typer.Context:
    """The context of a command by its words, from the context of the whole."""
    context = root
    for word in words:
        commands = getattr(context.command, "commands", {})
        if word not in commands:
            suggestion = suggest_option(word, commands) or f"See `{context.command_path} --help`."
            raise InvalidInput(f"There is no command {word!r}.", hint=suggestion)
        context = typer.Context(commands[word], parent=context, info_name=word)
    return context


def describe_command(context: typer.Context) -> dict[str, Any]:
    """A command with its parameters and the commands below it; global options are told once, at the top."""
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
