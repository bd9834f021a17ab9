"""Generate the source of `Memory` and `AsyncMemory` from the verb specification.

python -m told.api.generate --write     write the files
python -m told.api.generate --check     fail if a file is out of date
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from told.api.spec import VERBS
from told.api.verb import SCOPE_NAMES, UNSET, Interface, Param, Verb

FOLDER = Path(__file__).parent
WIDTH = 100
HEADER = '''"""The {colour} client. Generated from spec.py by `make generate`; do not edit."""

# mypy: disable-error-code="no-any-return"
# `BaseMemory` runs a verb by its name, so its result has no static type.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from told.api.base import BaseMemory
from told.api.verb import UNSET
from told.model.query import Bundle
from told.ports import View


class {name}(BaseMemory):
    """The {colour} client of a memory."""
'''
EXIT = """
    {prefix}def {enter}(self) -> Self:
        return self

    {prefix}def {exit}(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
"""


def render_client(name: str, *, is_async: bool) -> str:
    """Return the source of a client."""
    verbs = [verb for verb in VERBS.values() if Interface.SDK in verb.interfaces]
    methods = [line for verb in verbs for line in ("", *_render_method(verb, is_async=is_async))]
    colour = "asynchronous" if is_async else "synchronous"
    names = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
    footer = EXIT.format(prefix="async " if is_async else "", enter=names[0], exit=names[1])
    return HEADER.format(name=name, colour=colour) + "\n".join(methods) + "\n" + footer


def _render_method(verb: Verb, *, is_async: bool) -> Iterator[str]:
    opening = f"    {'async ' if is_async else ''}def {verb.name}("
    params = ["self", *_render_params(verb.params)]
    line = f"{opening}{', '.join(params)}) -> {verb.returns}:"
    if len(line) <= WIDTH:
        yield line
    else:
        yield opening
        inner = f"        {', '.join(params)}"
        yield from [inner] if len(inner) <= WIDTH else [f"        {param}," for param in params]
        yield f"    ) -> {verb.returns}:"
    yield from _render_docstring(verb)
    run = "await self._acall" if is_async else "self._call"
    arguments = [f'"{verb.name}"']
    arguments += [
        f"{param.name}={param.name}" for param in verb.params if param.name not in SCOPE_NAMES
    ]
    arguments += [f"scope=({', '.join(SCOPE_NAMES)})"] if verb.is_scoped else []
    yield from _render_call(f"        return {run}(", arguments)


def _render_params(params: Sequence[Param]) -> Iterator[str]:
    has_marker = False
    for param in params:
        if not param.positional and not has_marker:
            has_marker = True
            yield "*"
        yield f"{param.name}: {param.type}" + (
            "" if param.is_required else f" = {_render_default(param)}"
        )


def _render_default(param: Param) -> str:
    if param.default is UNSET:
        return "UNSET"
    return f'"{param.default}"' if isinstance(param.default, str) else repr(param.default)


def _render_docstring(verb: Verb) -> Iterator[str]:
    if not verb.details:
        yield f'        """{verb.summary}"""'
        return
    yield f'        """{verb.summary}'
    yield ""
    yield from textwrap.wrap(verb.details, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    yield '        """'


def _render_call(opening: str, arguments: Sequence[str]) -> Iterator[str]:
    line = f"{opening}{', '.join(arguments)})"
    if len(line) <= WIDTH:
        yield line
        return
    yield opening
    inner = f"            {', '.join(arguments)}"
    yield from [inner] if len(inner) <= WIDTH else [f"            {arg}," for arg in arguments]
    yield "        )"


def render_files() -> Mapping[Path, str]:
    """Return the generated files with their content."""
    return {
        FOLDER / "memory.py": render_client("Memory", is_async=False),
        FOLDER / "async_memory.py": render_client("AsyncMemory", is_async=True),
    }


def find_stale_files() -> Mapping[Path, str]:
    """Return the files that are out of date with the content they should have."""
    return {
        path: text
        for path, text in render_files().items()
        if not path.exists() or path.read_text("utf-8") != text
    }


def main(words: Sequence[str] | None = None) -> int:
    """Write or check the generated files and return the exit code."""
    parser = argparse.ArgumentParser(description="Generate the SDK clients from the spec.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="write the files")
    mode.add_argument("--check", action="store_true", help="fail if a file is out of date")
    options = parser.parse_args(words)
    stale = find_stale_files()
    for path, text in stale.items():
        if options.write:
            path.write_text(text, "utf-8")
        state = "written" if options.write else "out of date; run `make generate`"
        sys.stdout.write(f"{path.name}: {state}\n")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
