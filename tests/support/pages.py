"""Parse Markdown pages for tests: the blocks to execute, the headings and the links.

A ```python block is executed; the blocks of one page share a namespace. In a ```console block each
line that starts with `$ ` is a command; those of `NOT_RUN` set up a machine and are skipped, the
rest must succeed. The word `notest` after the language skips a block.
"""

import ast
import asyncio
import inspect
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType

from markdown_it import MarkdownIt
from markdown_it.token import Token

NOT_RUN = {"brew", "cd", "docker", "git", "make", "pip", "pipx", "python3", "source", "uv", "uvx"}
MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text and the line of its first line."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link or an image: its target and its line."""

    target: str
    line: int


def pages(root: Path) -> list[Path]:
    """Return the README, the contributing guide and the pages of docs and examples."""
    top = [root / "README.md", root / "CONTRIBUTING.md"]
    below = [*sorted(root.glob("docs/**/*.md")), *sorted(root.glob("examples/*/README.md"))]
    return [*(page for page in top if page.exists()), *below]


def tokens(page: Path) -> list[Token]:
    """Parse a page."""
    return MARKDOWN.parse(page.read_text(encoding="utf-8"))


def first_line(token: Token) -> int:
    """Return the line a token starts on, counted from one."""
    return token.map[0] + 1 if token.map else 1


def blocks(page: Path) -> Iterator[Block]:
    """Return the blocks of a page to execute, in order."""
    for token in tokens(page):
        language, *words = token.info.split() or [""]
        if token.type == "fence" and language in ("python", "console") and "notest" not in words:
            yield Block(language, token.content, first_line(token) + 1)


def commands(block: Block) -> list[str]:
    """Return the commands of a console block that are run, with continuation lines joined."""
    joined = block.text.replace("\\\n", " ")
    asked = [
        line.removeprefix("$ ").strip() for line in joined.splitlines() if line.startswith("$ ")
    ]
    return [command for command in asked if command.split()[0] not in NOT_RUN]


def compiled(block: Block, page: Path) -> CodeType:
    """Compile a block with the line numbers of its page; top-level `await` is allowed."""
    source = "\n" * (block.line - 1) + block.text
    code: CodeType = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


def shell(script: str, folder: Path, environment: dict[str, str]) -> None:
    """Run commands in bash; the first failure fails the page with all their output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(
            f"exit code {done.returncode} of:\n{script}\n{done.stdout}{done.stderr}"
        )


def execute(page: Path, folder: Path, environment: dict[str, str]) -> dict[str, object]:
    """Run every block of a page in order and return its namespace, with resources closed."""
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(page)}
    with asyncio.Runner() as runner:
        try:
            for block in blocks(page):
                if block.language == "console":
                    where = f"# {page.name}, line {block.line}\n"
                    shell(where + "\n".join(commands(block)), folder, environment)
                    continue
                waiting = eval(compiled(block, page), names)
                if inspect.isawaitable(waiting):
                    runner.run(_await(waiting))
        finally:
            _close(names, runner)
    return names


async def _await(waiting: object) -> None:
    assert inspect.isawaitable(waiting)
    await waiting


def _close(names: dict[str, object], runner: asyncio.Runner) -> None:
    """Close what the examples of a page left open."""
    for value in {id(value): value for value in names.values()}.values():
        close = getattr(value, "close", None)
        if callable(close) and type(value).__module__.startswith("told"):
            closing = close()
            if inspect.isawaitable(closing):
                runner.run(_await(closing))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the forges make them."""
    found = tokens(page)
    seen: Counter[str] = Counter()
    slugs = set()
    for heading, text in pairwise(found):
        if heading.type == "heading_open":
            plain = "".join(child.content for child in text.children or [])
            slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
            slugs.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return slugs


def links(page: Path) -> Iterator[Link]:
    """Return the links and images of a page that point into the repository."""
    for token in tokens(page):
        for child in token.children or []:
            target = child.attrs.get("href") or child.attrs.get("src")
            if isinstance(target, str) and not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield Link(target, first_line(token))


def broken_tables(page: Path) -> list[int]:
    """Return the lines where a table without a heading begins."""
    lines = ["", *page.read_text("utf-8").splitlines(), ""]
    starts = [
        n
        for n in range(1, len(lines) - 1)
        if lines[n].startswith("|") and not lines[n - 1].startswith("|")
    ]
    return [n for n in starts if not set(lines[n + 1]) <= set("|- :") or not lines[n + 1]]


def broken_links(page: Path, root: Path) -> list[str]:
    """Return the broken links of a page, each with its line."""
    broken = []
    for link in links(page):
        path, _, anchor = link.target.partition("#")
        file = (page.parent / path).resolve() if path else page
        inside = file.is_relative_to(root.resolve())
        found = (
            inside
            and file.exists()
            and (not anchor or file.suffix != ".md" or anchor in anchors(file))
        )
        if not found:
            broken.append(f"{page.relative_to(root)}:{link.line}: {link.target} leads nowhere")
    return broken
