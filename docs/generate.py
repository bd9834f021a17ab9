"""Generate the tables of the reference from the code.

A page marks a table with `<!-- generated: settings -->` and `<!-- /generated -->`; the text in
between is replaced.

    python docs/generate.py --write     write the pages
    python docs/generate.py --check     fail if a page is out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from told import errors
from told.api.spec import VERBS
from told.api.verb import SCOPE_NAMES, UNSET, Interface, Param, Verb, VerbGroup
from told.engine import VERB_ACTIONS, Engine
from told.model import entry, kind, policy
from told.providers.http import anthropic, google, ollama, openai
from told.providers.http.provider import HttpProvider
from told.settings import ENV_PREFIX, NESTED_NAMES, PROFILES, PUBLIC_FIELDS, SETTING_FIELDS
from told.text.dates import ALWAYS

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
COMMON = 4
"""The number of commands from which on a shared option is described once."""
MANY_VERBS = 12
"""The number of verbs above which a table gives their count."""
ROOTS_OWN = {"--install-completion", "--show-completion", "--help", "--version"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell(text) for text in line)} |" for line in lines]


def cell(text: str) -> str:
    """Escape a text for a table cell."""
    return " ".join(text.split()).replace("|", r"\|")


def code(text: object) -> str:
    """Format a text as code, or return an empty string for none."""
    return f"`{text}`" if text not in ("", None) else ""


def listed(names: Iterable[object]) -> str:
    """Format names as a sorted list of code."""
    return ", ".join(code(name) for name in sorted(str(name) for name in names))


def says(thing: object) -> str:
    """Return the first line of a docstring."""
    return (thing.__doc__ or "").strip().splitlines()[0]


# The tables


def settings() -> list[str]:
    """List the public settings, then those of each profile."""
    public = [name for name in SETTING_FIELDS if name not in NESTED_NAMES]
    lines = _setting_rows(public)
    for profile in PROFILES:
        nested = [name for name, (owner, _) in NESTED_NAMES.items() if owner == profile]
        about = PUBLIC_FIELDS[profile].metadata["about"]
        lines += ["", f"## `{profile}`", "", about, "", *_setting_rows(nested)]
    return lines


def _setting_rows(names: Iterable[str]) -> list[str]:
    return table(
        ["setting", "default", "environment", "what it does"],
        [
            [
                _setting_name(name),
                code(SETTING_FIELDS[name].default) or "empty",
                code(ENV_PREFIX + name.upper()),
                SETTING_FIELDS[name].metadata["about"],
            ]
            for name in names
        ],
    )


def _setting_name(name: str) -> str:
    """Return the nested and, if it differs, the flat name of a setting."""
    nested = NESTED_NAMES.get(name, ("", name))[1]
    return code(nested) if nested == name else f"{code(nested)}, flat {code(name)}"


def error_table() -> list[str]:
    """List the error tree, each error below its parent."""
    return table(
        ["error", "code", "HTTP", "default message and hint"],
        [
            [
                f"{'· ' * depth}{code(found.__name__)}",
                f"TOLD-{found.code}",
                str(found.status),
                f"{says(found)} {found.default_hint}".strip(),
            ]
            for depth, found in error_tree(errors.ToldError)
        ],
    )


def error_tree(
    top: type[errors.ToldError], depth: int = 0
) -> Iterator[tuple[int, type[errors.ToldError]]]:
    """Yield an error and its subclasses in told.errors with their depth."""
    yield depth, top
    for below in top.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from error_tree(below, depth + 1)


def kinds() -> list[str]:
    """List the built-in kinds."""
    return table(
        ["kind", "owner", "write", "key", "tier", "weight", "half-life", "semantics", "what it is"],
        [
            [
                code(each.name),
                each.owner,
                each.write,
                code(each.key),
                each.tier,
                str(each.weight),
                "never fades" if each.half_life is None else f"{each.half_life:g} days",
                each.semantics,
                f"{each.description.split('. ')[0].rstrip('.')}."
                + (" Made by told itself." if each.system else ""),
            ]
            for each in kind.load_builtin_ontology().kinds
        ],
    )


def entry_verbs() -> list[str]:
    """List the ledger verbs and their fields."""
    return table(
        ["verb", "stored as", "says", "body"],
        [
            [
                code(verb.__name__),
                code(name),
                says(verb),
                ", ".join(code(part) for part in _body(verb)),
            ]
            for name, verb in entry.VERBS.items()
        ],
    )


def _body(verb: type[Any]) -> list[str]:
    """Return the field names of a ledger verb."""
    return [part.name for part in fields(verb)]


def evidence() -> list[str]:
    """List the fields of evidence."""
    return _fields(entry.Evidence)


def claim() -> list[str]:
    """List the fields of a claim."""
    return _fields(entry.Claim)


def _fields(value: type[Any]) -> list[str]:
    blank = value("")
    rows = [
        [code(part.name), code(part.type), _default(getattr(blank, part.name))]
        for part in fields(value)
    ]
    return table(["field", "type", "default"], rows)


def _default(value: object) -> str:
    return (
        "" if value in ("", None) or value == {} else "always" if value == ALWAYS else code(value)
    )


def engine_verbs() -> list[str]:
    """List the verbs of the engine with their policy actions."""
    return table(
        ["verb", "action", "what it does"],
        [
            [code(name), code(action), says(getattr(Engine, name))]
            for name, action in VERB_ACTIONS.items()
        ],
    )


# The SDK


def sdk_table(group: VerbGroup) -> list[str]:
    """List the verbs of a group with their own parameters and results."""
    verbs = [
        verb for verb in VERBS.values() if verb.group is group and Interface.SDK in verb.interfaces
    ]
    rows = [[code(_usage(verb)), verb.summary, verb.result] for verb in verbs]
    return table(["verb", "does", "returns"], rows)


def _usage(verb: Verb) -> str:
    """Return a call with the parameters that no other verb shares, and the required ones."""
    shown = [
        param.name
        for param in verb.params
        if param.is_required or (param.positional and param.name not in SCOPE_NAMES)
    ]
    return f"{verb.name}({', '.join(shown)})"


def sdk_parameters() -> list[str]:
    """List every parameter of the SDK with its type, default, help and verbs."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for verb in VERBS.values():
        for param in verb.params:
            default = "" if param.is_required else _parameter_default(param)
            key = (param.name, param.type, default, param.help)
            rows.setdefault(key, []).append(verb.name)
    return table(
        ["parameter", "type", "default", "", "verbs"],
        [
            [code(name), code(annotation), default, about, _verb_list(verbs)]
            for (name, annotation, default, about), verbs in sorted(rows.items())
        ],
    )


def _parameter_default(param: Param) -> str:
    return "unset" if param.default is UNSET else code(repr(param.default))


def _verb_list(verbs: Sequence[str]) -> str:
    return f"{len(verbs)} verbs" if len(verbs) > MANY_VERBS else listed(verbs)


def actions() -> list[str]:
    """List the actions with their verbs and the policies that allow them to all callers."""
    return table(
        ["action", "verbs that need it", "open to other callers under"],
        [
            [
                code(action),
                listed(name for name, needed in VERB_ACTIONS.items() if needed is action),
                _giving(action),
            ]
            for action in policy.Action
        ],
    )


def _giving(action: policy.Action) -> str:
    """List the default policies that allow an action to every caller of the account."""
    giving = [each.name for each in policy.DEFAULT_POLICIES.values() if action in each.allows]
    return "every policy" if len(giving) == len(policy.DEFAULT_POLICIES) else listed(giving)


def policies() -> list[str]:
    """List the default policies."""
    return table(
        ["policy", "sort", "allows without a grant", "forbids to everybody"],
        [
            [
                code(each.name),
                code(each.kind),
                _share(each.allows),
                _share(each.forbids) or "nothing",
            ]
            for each in policy.DEFAULT_POLICIES.values()
        ],
    )


def _share(some: frozenset[policy.Action]) -> str:
    """Format a set of actions, or its complement if that is shorter."""
    rest = policy.ALL_ACTIONS - some
    return listed(some) if len(some) <= len(rest) else f"all but {listed(rest)}"


# The command line


def cli() -> list[str]:
    """Describe every command by panel; describe shared options once."""
    import typer
    from typer.main import get_command

    from told.cli import about
    from told.cli.app import app

    command: Any = get_command(app)
    whole = about.describe_command(typer.Context(command, info_name="told"))
    commands = dict(leaves(whole))
    shared = _shared(commands.values())
    lines = ["## Options of every command", "", *_options(whole["options"]), ""]
    lines += ["## Options many commands share", "", *_options(shared.values()), ""]
    panels: dict[str, list[str]] = {}
    for name, body in commands.items():
        panel = str(command.commands[name.split()[0]].rich_help_panel)
        panels.setdefault(panel, []).extend(["", *_command(name, body, shared)])
    for panel, rows in panels.items():
        lines += [f"## {panel}", *rows, ""]
    return lines[:-1]


def leaves(body: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the commands without subcommands by their full names."""
    for name, below in body.get("commands", {}).items():
        words = f"{path} {name}".strip()
        yield from leaves(below, words) if "commands" in below else [(words, below)]


def _shared(commands: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the options that many commands share with the same help."""
    found = [
        (option["names"][0], option["help"], option)
        for body in commands
        for option in body["options"]
    ]
    counts = Counter((name, about) for name, about, _ in found)
    return {name: option for name, about, option in found if counts[name, about] >= COMMON}


def _command(
    name: str, body: Mapping[str, Any], shared: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    common = [o for o in body["options"] if shared.get(o["names"][0], {}).get("help") == o["help"]]
    own = [option for option in body["options"] if option not in common]
    usage = " ".join(
        [f"told {name}", *(argument.get("value", "") for argument in body["arguments"])]
    )
    lines = [f"### told {name}", "", body["help"], "", f"`{usage}`"]
    rows = [[code(argument.get("value", "")), argument["help"]] for argument in body["arguments"]]
    if rows or own:
        lines += ["", *table(["", ""], [*rows, *_option_rows(own)])]
    if common:
        lines += ["", f"Also {', '.join(code(option['names'][0]) for option in common)}."]
    return lines


def _options(options: Iterable[Mapping[str, Any]]) -> list[str]:
    return table(
        ["option", ""],
        _option_rows(option for option in options if option["names"][0] not in ROOTS_OWN),
    )


def _option_rows(options: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    return [
        [
            " ".join(
                [", ".join(map(code, option["names"])), code(option.get("value", ""))]
            ).strip(),
            option["help"]
            + (f" Default: {code(option['default'])}." if option.get("default") else ""),
        ]
        for option in options
    ]


def llms() -> list[str]:
    """List the providers of language models."""
    return _providers(
        [
            openai.openai,
            anthropic.anthropic,
            google.google,
            openai.openrouter,
            openai.azure,
            ollama.ollama,
            openai.vllm,
            openai.lmstudio,
            openai.litellm,
        ]
    )


def embedders() -> list[str]:
    """List the providers of embedders."""
    return _providers(
        [
            openai.openai_embedder,
            openai.azure_embedder,
            google.google_embedder,
            ollama.ollama_embedder,
        ]
    )


def _providers(found: Sequence[HttpProvider]) -> list[str]:
    return table(
        ["name", "provider", "model if none is named", "key", "address"],
        [
            [
                code(each.name),
                each.title,
                code(each.model) or " or ".join(map(code, each.model_variables)) or "must be named",
                " or ".join(map(code, each.key_variables)),
                " or ".join(map(code, each.host_variables)),
            ]
            for each in found
        ],
    )


TABLES: Mapping[str, Callable[[], list[str]]] = {
    "settings": settings,
    "errors": error_table,
    "kinds": kinds,
    "entry-verbs": entry_verbs,
    "evidence": evidence,
    "claim": claim,
    "engine-verbs": engine_verbs,
    **{f"sdk-{group}": partial(sdk_table, group) for group in VerbGroup},
    "sdk-parameters": sdk_parameters,
    "actions": actions,
    "policies": policies,
    "cli": cli,
    "llms": llms,
    "embedders": embedders,
}


# Pages


def regenerated(text: str) -> str:
    """Return a page with its tables regenerated."""

    def fill(found: re.Match[str]) -> str:
        opening, name, ending = found.groups()
        if name not in TABLES:
            raise SystemExit(f"There is no table {name!r}; there are {', '.join(TABLES)}.")
        return opening + "\n".join(["", *TABLES[name](), "", ending])

    return BLOCK.sub(fill, text)


def stale(folder: Path = DOCS) -> dict[Path, str]:
    """Return the files that are out of date with the content they should have."""
    pages = {page: page.read_text("utf-8") for page in sorted(folder.glob("**/*.md"))}
    fresh = {page: regenerated(text) for page, text in pages.items()}
    return {page: text for page, text in fresh.items() if text != pages[page]}


def main(words: Sequence[str] | None = None) -> int:
    """Write or check the tables and return the exit code."""
    parser = argparse.ArgumentParser(description="Generate the tables of the reference.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the pages")
    what.add_argument("--check", action="store_true", help="fail if a page is out of date")
    asked = parser.parse_args(words)
    found = stale()
    for page, text in found.items():
        name = page.relative_to(DOCS.parent)
        if asked.write:
            page.write_text(text, "utf-8")
        print(f"{name}: {'written' if asked.write else 'out of date; run `make docs`'}")
    return 1 if found and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
