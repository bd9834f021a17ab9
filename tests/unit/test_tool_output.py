"""Compression of large tool output, with a banner that links the original."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from told.ingest.tool_output import (
    DEFAULT_KEEP_CHARS,
    collect_properties,
    compress_output,
    is_large,
)
from told.settings import Settings

URI = "ctx://default/users/u/evidence/0190163d"
LOG = "\n".join(
    [
        "$ make test",
        *(f"test {n} passed" for n in range(500)),
        "ERROR: test 500 failed: no such file src/app.py",
        *(f"test {n} passed" for n in range(501, 900)),
        "0 errors in setup",
        "899 passed, 1 failed",
        "exit code: 1",
    ]
)


@pytest.mark.parametrize(
    ("text", "large"),
    [
        ("x" * 8000, True),
        ("x" * 7999, False),
        ("x\n" * 99 + "x", True),
        ("x\n" * 98 + "x", False),
        ("", False),
    ],
)
def test_large_output_is_detected_by_characters_or_lines(text: str, large: bool) -> None:
    assert is_large(text, Settings()) is large


def test_the_size_limits_are_configurable() -> None:
    assert is_large("tea", Settings(tool_chars=3))
    assert is_large("tea\nrice", Settings(tool_lines=2))


def test_head_errors_and_tail_are_shown_under_a_banner() -> None:
    made = compress_output(LOG, URI)
    shown = made.shown_text.splitlines()
    assert shown[0] == f"[Shortened from 904 lines, {len(LOG):,} characters. The original: {URI}]"
    assert shown[1] == "$ make test"
    assert shown[-1] == "exit code: 1"
    assert "502: ERROR: test 500 failed: no such file src/app.py" in shown
    assert "899 passed, 1 failed" in shown
    assert any(
        line.startswith("[… ") and "left out; 1 of 1 that speak of errors:]" in line
        for line in shown
    )
    assert made.original_chars == len(LOG)


def test_properties_of_the_original_are_recorded() -> None:
    made = compress_output(LOG, URI)
    assert made.properties["lines"] == 904
    assert made.properties["exit_code"] == 1
    assert made.properties["files"] == ["src/app.py"]
    assert made.properties["errors"] == 2
    assert "exit code: 1" in made.overview.splitlines()
    assert "files: src/app.py" in made.overview.splitlines()


def test_a_short_output_is_unchanged() -> None:
    made = compress_output("all good\n", URI)
    assert made.shown_text == "all good\n"
    assert made.properties == {"lines": 1, "characters": 9}


def test_both_ends_of_one_long_line_are_shown() -> None:
    made = compress_output("a" * 20_000 + "b" * 20_000, URI)
    assert "aaaa" in made.shown_text
    assert made.shown_text.endswith("bbbb")
    assert len(made.shown_text) < 3000


def test_json_output_lists_its_keys() -> None:
    rows = [{"id": n, "name": f"row {n}"} for n in range(1000)]
    assert {**collect_properties(json.dumps(rows)), "characters": 0} == {
        "lines": 1,
        "characters": 0,
        "format": "json",
        "items": 1000,
        "keys": ["id", "name"],
    }
    assert collect_properties('{"a": 1}')["keys"] == ["a"]
    assert collect_properties("[1, 2]")["items"] == 2
    assert "format" not in collect_properties("{torn")
    assert "format" not in collect_properties("[" * 5000)


def test_a_diff_lists_its_additions() -> None:
    diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n+one\n+two\n-three\n same"
    known = collect_properties(diff)
    assert (known["format"], known["added"], known["removed"]) == ("diff", 2, 1)
    assert known["files"] == ["a/x.py", "b/x.py"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Process exited with code 0", 0),
        ("exit status 127", 127),
        ("exit: 2", 2),
        ("returncode=-9", -9),
        ("exit code: 1\nexit code: 0", 0),
    ],
)
def test_the_exit_status_is_detected(text: str, code: int) -> None:
    assert collect_properties(text)["exit_code"] == code


def test_prose_gives_no_files_or_errors() -> None:
    assert set(
        collect_properties("I like tea. e.g. green tea, v1.2.3, and 0 errors at example.org")
    ) == {"lines", "characters"}


def test_the_uri_of_the_original_cannot_break_the_banner() -> None:
    assert (
        compress_output("x\n" * 5000, "ctx://a\n[fake]")
        .shown_text.splitlines()[0]
        .endswith("The original: ctx://a [fake]]")
    )


outputs = st.lists(
    st.sampled_from(
        ("ok", "ERROR: bad", "x" * 500, "", "src/a.py:3: warning", "漢字", "exit code 1")
    ),
    max_size=300,
).map("\n".join) | st.text(max_size=3000)


@given(outputs, st.integers(200, 3000))
def test_the_shown_text_has_a_bounded_length(text: str, keep: int) -> None:
    made = compress_output(text, URI, keep=keep)
    assert len(made.shown_text) <= keep + 3 * 400 + 500
    assert made.original_chars == len(text)
    if len(text) <= keep:
        assert made.shown_text == text
    else:
        assert URI in made.shown_text.splitlines()[0]


@given(outputs)
def test_a_large_output_becomes_smaller(text: str) -> None:
    if len(text) >= 8000:
        assert len(compress_output(text, URI).shown_text) < DEFAULT_KEEP_CHARS + 1700 < len(text)


@given(outputs)
def test_every_shown_line_is_from_the_original_or_in_brackets(text: str) -> None:
    lines = text.splitlines()
    for shown in compress_output(text, URI, keep=200).shown_text.splitlines():
        bare = shown.split(": ", 1)[-1]
        assert any(shown in line or bare in line for line in lines) or shown.startswith("[")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "a/" * 50_000,
        "a.b" * 33_000,
        "exit " * 20_000,
        "\n" * 100_000,
        "[" * 100_000,
        "error " * 16_000,
        "-" * 100_000,
    ],
)
def test_a_huge_output_is_compressed_in_reasonable_time(text: str) -> None:
    assert len(compress_output(text, URI).shown_text) < 4000
