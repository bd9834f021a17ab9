"""The echo filter: context rendered into a prompt is removed from input; the speaker's text is
kept."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexts import item
from tables import each_row
from told import Memory
from told.retrieval.render import FORMATS, Format, assemble, flatten_text
from told.testing import HashingEmbedder
from told.text.echo import CONTEXT_NOTE, EchoFilter, OwnText, find_context_blocks

formats = st.sampled_from(FORMATS)
memories = st.lists(
    st.text(max_size=60).filter(flatten_text)
    | st.sampled_from(
        (
            "</memory>",
            "</memories>",
            CONTEXT_NOTE,
            "### Recent",
            "- **x**",
            "## What is remembered",
            "I like\n\ntea",
        )
    ),
    min_size=1,
    max_size=5,
)
words = st.text("abcdefgh, .?!", max_size=40).map(str.strip)


def extract_own(text: str) -> OwnText:
    return EchoFilter().extract_own_text("a", text)


def render_context(format: Format, texts: list[str], section: str = "recalled") -> str:
    items = [item(n, text, section=section, actor="Ann") for n, text in enumerate(texts, 1)]
    return assemble(items, 10_000, "o200k_base", format=format).text


@given(formats, memories, words, words, st.sampled_from(("recalled", "recent")))
def test_a_context_block_is_removed_and_the_text_around_it_kept(
    format: Format, texts: list[str], before: str, after: str, section: str
) -> None:
    said = f"{before}\n{render_context(format, texts, section)}\n{after}"
    assert extract_own(said).text == "\n".join(part for part in (before, after) if part)


@given(formats, memories)
def test_a_context_block_alone_leaves_no_text(format: Format, texts: list[str]) -> None:
    said = render_context(format, texts)
    assert extract_own(said) == OwnText("", ())
    assert find_context_blocks(said) == ((0, len(said)),)


@given(st.lists(words, min_size=1, max_size=4), memories, formats)
def test_spans_of_the_remaining_text_map_to_the_original(
    said: list[str], texts: list[str], format: Format
) -> None:
    whole = f"\n{render_context(format, texts)}\n".join(said)
    kept = extract_own(whole)
    offset = 0
    for start, end in kept.spans:
        assert kept.text[offset : offset + end - start] == whole[start:end]
        for first in range(offset, offset + end - start):
            place = kept.to_source_span(first, first + 1)
            assert whole[slice(*place)] == kept.text[first : first + 1]
        offset += end - start + 1
    if kept.spans:
        assert kept.to_source_span(0, len(kept.text)) == (kept.spans[0][0], kept.spans[-1][1])


@given(st.text(max_size=200))
def test_a_text_without_a_context_block_is_unchanged(text: str) -> None:
    if CONTEXT_NOTE[:-1] not in text and "<memor" not in text:
        assert extract_own(text) == OwnText(text, ((0, len(text)),))


@each_row(
    ("text", "left"),
    [
        ("<memory>I like tea</memory> Now what?", "Now what?"),
        ("<memories>\nI like tea\n</memories>\nNow what?", "Now what?"),
        ("Set <memory>512</memory> in the file", "Set <memory>512</memory> in the file"),
        ("<memory> of my youth", "<memory> of my youth"),
        ("<memory lane>", "<memory lane>"),
        (f"<memory c8da>\n{CONTEXT_NOTE}\n2024\n3 Mar Ann: tea\n\nAnd now?", "And now?"),
        (f"<memory c8da>\n{CONTEXT_NOTE}\n2024\n3 Mar Ann: tea", ""),
        (f"Hi\r\n<memory c8da>\r\n{CONTEXT_NOTE}\r\n2024\r\n</memory c8da>\r\nBye", "Hi\nBye"),
        (
            "Remembered data, not instructions, he said",
            "Remembered data, not instructions, he said",
        ),
        (
            (
                f"## What is remembered\n*{CONTEXT_NOTE}*\n### Recent\n- **3 Mar 2024, Ann:** tea\n- "  # noqa: E501
                "my own list"
            ),
            "- my own list",
        ),
    ],
)
def test_complete_torn_and_lookalike_context_blocks(text: str, left: str) -> None:
    assert extract_own(text).text == left


def test_lines_without_their_block_are_recognised_by_the_rendering_process() -> None:
    echoes = EchoFilter()
    echoes.record_prompt("default", render_context("text", ["I drink green tea"]))
    said = "Considering this:\n> 8 May Ann: I drink green tea\nwhat should I buy?"
    assert echoes.extract_own_text("default", said).text == "Considering this:\nwhat should I buy?"
    assert echoes.is_echo("default", "8 May Ann:  I drink GREEN tea")
    assert not echoes.is_echo("default", said)
    assert 0.3 < echoes.echo_share("default", said) < 0.7


@pytest.mark.parametrize("format", FORMATS)
def test_every_line_of_a_context_is_recognised(format: Format) -> None:
    echoes = EchoFilter()
    text = render_context(format, ["I drink green tea", "My cat is called Minka"])
    echoes.record_prompt("default", text)
    lines = [line for line in text.splitlines() if "tea" in line or "Minka" in line]
    assert [echoes.is_echo("default", line) for line in lines] == [True, True]


def test_a_user_repeating_a_memory_is_not_an_echo() -> None:
    echoes = EchoFilter()
    echoes.record_prompt("default", render_context("text", ["I drink green tea"]))
    assert echoes.echo_share("default", "I drink green tea") == 0.0
    assert echoes.extract_own_text("default", "2023").text == "2023", (
        "a year alone is nobody's echo"
    )


def test_echoes_are_per_account_and_can_be_forgotten() -> None:
    echoes = EchoFilter()
    for account in ("a", "b"):
        echoes.record_prompt(account, "8 May Ann: I drink green tea")
    echoes.forget_account("a")
    said = "8 May Ann: I drink green tea"
    assert [echoes.is_echo(account, said) for account in ("a", "b", "c")] == [False, True, False]


def test_only_the_latest_lines_are_kept() -> None:
    echoes = EchoFilter(max_lines=3)
    for number in range(5):
        echoes.record_prompt("a", f"8 May Ann: thing {number}")
    echoes.record_prompt("a", "8 May Ann: thing 2")
    echoes.record_prompt("a", "8 May Ann: thing 5")
    known = [number for number in range(6) if echoes.is_echo("a", f"8 May Ann: thing {number}")]
    assert known == [2, 4, 5]


@given(st.text(max_size=100))
def test_an_empty_filter_finds_no_echoes(text: str) -> None:
    assert not EchoFilter().is_echo("a", text) or find_context_blocks(text)
    assert 0.0 <= EchoFilter().echo_share("a", text) <= 1.0


@given(memories, formats)
def test_a_recorded_context_is_an_echo_with_and_without_its_frame(
    texts: list[str], format: Format
) -> None:
    echoes, text = EchoFilter(), render_context(format, texts)
    echoes.record_prompt("a", text)
    assert echoes.is_echo("a", text)
    assert echoes.echo_share("a", text) == 1.0


@pytest.mark.parametrize("format", FORMATS)
def test_a_context_rendered_by_a_memory_is_recognised(format: str) -> None:
    with Memory("ram://", embedder=HashingEmbedder()) as memory:
        memory.add("I moved to Berlin", user_id="u")
        memory.add(
            {"role": "user", "name": "Ann", "content": "My cat is called Minka"}, user_id="u"
        )
        text = str(memory.context("Berlin cat", user_id="u", format=format, tail=1))
    assert extract_own(f"{text}\n\nNow what?").text == "Now what?"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "<memory>" * 12_000,
        f"<memory abcd>\n{CONTEXT_NOTE}\n" * 2_000,
        "<memories" * 11_000,
        f'<memories note="{CONTEXT_NOTE[:-1]}">' * 2_000,
        f"## What is remembered\n*{CONTEXT_NOTE}*\n" * 1_500,
        "<memory abcd>" + " " * 90_000,
        "\n" * 100_000 + "<memory>",
    ],
)
def test_hostile_context_blocks_are_parsed_in_linear_time(text: str) -> None:
    assert len(extract_own(text).text) <= len(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_empty() -> None:
    echoes = EchoFilter()
    echoes.record_prompt("a", "8 May Ann: I drink green tea")
    child = os.fork()
    if not child:
        os._exit(1 if echoes.is_echo("a", "8 May Ann: I drink green tea") else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert echoes.is_echo("a", "8 May Ann: I drink green tea")
