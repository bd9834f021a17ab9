"""The documentation works: its code runs, its commands succeed, its links resolve."""

import os
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from pages import anchors, blocks, broken_links, broken_tables, commands, execute, pages

ROOT = Path(__file__).parent.parent.parent
PAGES = pages(ROOT)
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


@pytest.fixture
def environment(home) -> dict[str, str]:
    """Return the environment of a fresh install: told on the path and an empty home."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch, environment):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples")
    execute(page, tmp_path, environment)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_of_a_page_resolve(page):
    assert broken_links(page, ROOT) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_tables_of_a_page_have_headings(page):
    assert broken_tables(page) == []


# Tests of the page checker on sample pages


@pytest.fixture
def page(tmp_path):
    """Write a page from its text."""

    def write(text: str, name: str = "page.md") -> Path:
        file = tmp_path / name
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    return write


def test_blocks_of_a_page_share_a_namespace(page, tmp_path):
    two = page("""
        ```python
        x = 20
        ```
        Then, in a list:

        -   like this

            ```python
            y = x + 1
            ```
        """)
    assert execute(two, tmp_path, {})["y"] == 21


def test_rows_after_a_blank_line_are_not_part_of_a_table(page):
    assert broken_tables(page("| a |\n| --- |\n| b |\n")) == []
    assert broken_tables(page("| a |\n| --- |\n\n| b |\n")) == [4]


def test_failing_block_reports_the_line_of_the_page(page, tmp_path):
    wrong = page("# Title\n\n```python\nfine = 1\n\nassert fine == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        execute(wrong, tmp_path, {})
    assert caught.traceback[-1].lineno + 1 == 6
    assert str(caught.traceback[-1].path) == str(wrong)


def test_top_level_await_works_across_blocks(page, tmp_path):
    text = """
        ```python
        import asyncio
        lock = asyncio.Event()
        await asyncio.sleep(0)
        ```
        ```python
        asyncio.get_running_loop().call_soon(lock.set)
        await lock.wait()
        done = True
        ```
        """
    assert execute(page(text), tmp_path, {})["done"] is True


def test_notest_blocks_and_other_languages_are_skipped(page):
    text = """
        ```python notest
        1 / 0
        ```
        ```json
        {}
        ```
        ```
        no language
        ```
        ```console notest
        $ false
        ```
        """
    assert list(blocks(page(text))) == []


def test_console_lines_after_a_dollar_are_commands_and_the_rest_is_output(page):
    text = """
        ```console
        $ make demo
        $ pip install told
        $ told add "I moved" \\
            --user alice
        told: remembered
        $ echo hello | told add -
        ```
        """
    (block,) = blocks(page(text))
    assert [command.split() for command in commands(block)] == [
        ["told", "add", '"I', 'moved"', "--user", "alice"],
        ["echo", "hello", "|", "told", "add", "-"],
    ]


def test_failing_command_fails_the_page_with_its_output(page, tmp_path, environment):
    failing = page("```console\n$ echo before; echo oops >&2; exit 3\n$ touch after\n```\n")
    with pytest.raises(AssertionError, match=r"exit code 3(.|\n)*before\noops"):
        execute(failing, tmp_path, environment)
    assert not (tmp_path / "after").exists()


def test_failure_inside_a_pipe_is_detected(page, tmp_path, environment):
    with pytest.raises(AssertionError, match="exit code 1"):
        execute(page("```console\n$ false | cat\n```\n"), tmp_path, environment)


def test_broken_link_is_reported_with_its_line(page, tmp_path):
    page("# One thing\n\n## A `code` heading, with: signs!\n\n## Twice\n\n## Twice\n", "there.md")
    linking = page(
        """\
        [ok](there.md) [ok](there.md#one-thing) [ok](#here) [ok](https://example.org/x)
        [ok](there.md#a-code-heading-with-signs) [ok](there.md#twice-1)

        ## Here
        [gone](missing.md)

        | a | b |
        |---|---|
        | [gone](there.md#nothing) | ![gone](picture.png) |

        ```text
        [not a link](missing.md)
        ```
        """
    )
    assert broken_links(linking, tmp_path) == [
        "page.md:5: missing.md leads nowhere",
        "page.md:9: there.md#nothing leads nowhere",
        "page.md:9: picture.png leads nowhere",
    ]


def test_link_out_of_the_repository_is_broken(page, tmp_path):
    (tmp_path / "docs").mkdir()
    page("text", "outside.md")
    inside = page("[x](../outside.md)", "docs/inside.md")
    assert len(broken_links(inside, tmp_path / "docs")) == 1


def test_headings_in_every_script_have_anchors(page):
    assert anchors(page("# 記憶 と Erinnerung\n")) == {"記憶-と-erinnerung"}
