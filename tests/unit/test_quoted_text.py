"""Quoted and OCR text in a turn: where it is, and that it is not attributed to the speaker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers import blank
from tables import each_row
from told import Memory
from told.extraction.llm import FactsExtractor
from told.extraction.rules import LocalExtractor
from told.flow import run
from told.ingest.chunking import extract_claims
from told.ingest.gate import GateDecision, decide_turn
from told.ingest.messages import InputTurn, segment_turns
from told.ingest.types import ExtractionInput, ExtractionResult
from told.model.entry import Evidence
from told.model.scope import Scope
from told.settings import Settings
from told.testing import ScriptedLLM
from told.text.echo import (
    OWN_CHARS_KEY,
    EchoFilter,
    blank_quoted_spans,
    find_image_text_start,
    find_quoted_spans,
    has_image_text,
)

KEY = "AKIA" + "IOSFODNN7ABCDEFG"
READ = "[OCR text from image #1]"
SIGN = f"I moved to Oslo\n{READ}\nMy name is Mallory"


def decide(text: str, meta: dict[str, Any] | None = None, **knobs: Any) -> GateDecision:
    known = meta or (
        {OWN_CHARS_KEY: find_image_text_start(text, {})} if has_image_text(text) else {}
    )
    return decide_turn(
        InputTurn(Evidence(text, meta=known), {}), "default", Settings(**knobs), EchoFilter()
    )


def attributed_text(verdict: GateDecision) -> list[tuple[str, str]]:
    """Return the text attributed to each speaker."""
    heard = segment_turns([(0, verdict.turn, verdict.own_text)])
    return [(piece.turn.evidence.role, piece.turn.evidence.content.strip()) for piece in heard]


# Positions


@each_row(
    ("text", "own"),
    [
        ("I like tea", "I like tea"),
        (SIGN, "I moved to Oslo\n"),
        (f"{READ}\nMy name is Mallory", ""),
        ("Look\n  [Description of image #12]\nA cat", "Look\n"),
        ("two\n[OCR text from image #1]\nEXIT\n[OCR text from image #2]\nI am Eve", "two\n"),
        (f"What does {READ} mean?", f"What does {READ} mean?"),
        ("Look\n[image #1: png 640x480]", "Look\n[image #1: png 640x480]"),
    ],
)
def test_image_text_starts_at_its_heading(text, own):
    assert text[: find_image_text_start(text, {})] == own
    assert has_image_text(text) is (own != text)


@each_row(("own", "end"), [(3, 3), (0, 0), (-1, 10), (99, 10), ("3", 10), (None, 10)])
def test_evidence_records_where_the_speakers_text_ends(own, end):
    assert find_image_text_start("I like tea", {OWN_CHARS_KEY: own}) == end


@each_row(
    ("text", "blocks"),
    [
        ("I like tea", []),
        ("3 > 2 and a ```code``` word", []),
        ("Is this spam?\n> I am Eve\n> really\nI am Ann", ["> I am Eve", "> really"]),
        ("Look:\n```\nI am Eve\n```\nI am Ann", ["```\nI am Eve\n```"]),
        ("Look:\n  ~~~ text\nI am Eve\n```\n~~~\nI am Ann", ["  ~~~ text\nI am Eve\n```\n~~~"]),
        ("Look:\n```\nI am Eve", ["```\nI am Eve"]),
        ("```py``` is what I write\nI am Ann", []),
    ],
)
def test_fenced_and_marked_quotations_are_found(text, blocks):
    assert [text[start:end] for start, end in find_quoted_spans(text)] == blocks


@given(st.text("ab >`~\n", max_size=60))
def test_unquoted_text_keeps_its_position(text):
    inside = {place for start, end in find_quoted_spans(text) for place in range(start, end)}
    left = blank_quoted_spans(text)
    assert len(left) == len(text)
    assert all(
        left[place] == (" " if place in inside else letter) for place, letter in enumerate(text)
    )


# Attribution


def test_image_text_is_not_attributed_to_the_speaker():
    verdict = decide(SIGN)
    assert (verdict.outcome, verdict.warnings) == ("keep", ())
    assert verdict.turn.evidence.content == SIGN
    assert attributed_text(verdict)[0] == ("user", "I moved to Oslo")
    start, end = verdict.own_text.to_source_span(11, 15)
    assert SIGN[start:end] == "Oslo"


def test_an_image_alone_is_kept_without_speaker_text():
    verdict = decide(f"{READ}\nMy name is Mallory")
    assert verdict.outcome == "keep"
    assert [role for role, _ in attributed_text(verdict)] == ["document"]


@pytest.mark.parametrize("shown", ["You are a helpful assistant. Follow these rules.", "..."])
def test_an_image_does_not_hide_the_speakers_text(shown):
    assert decide(f"I moved to Oslo\n{READ}\n{shown}").outcome == "keep"


def test_an_image_with_a_short_caption_is_kept():
    assert decide(f"hi\n{READ}\nThe gate code is 4711").outcome == "keep"


@pytest.mark.parametrize("policy", ["redact", "keep"])
def test_redacting_a_secret_keeps_the_end_of_the_speakers_text(policy):
    words = f"My key is {KEY} and I moved to Oslo"
    verdict = decide(f"{words}\nMy name is Mallory", {OWN_CHARS_KEY: len(words)}, secrets=policy)
    (_, heard), _ = attributed_text(verdict)
    assert heard.endswith("I moved to Oslo")
    assert (KEY in heard) is (policy == "keep")


def test_empty_input_makes_no_model_request():
    heard = ExtractionInput((InputTurn(Evidence(""), {}),), 0, Scope(user_id="ann"))
    assert (
        run(extract_claims(FactsExtractor(ScriptedLLM([])), heard, Settings()))
        == ExtractionResult()
    )


def test_a_long_quotation_is_not_split_for_the_rules():
    text = f"Is this spam?\n```\n{'Nothing happened. ' * 300}I live in Atlantis.\n```"
    heard = ExtractionInput((InputTurn(Evidence(text), {}),), 0, Scope(user_id="ann"))
    assert run(extract_claims(LocalExtractor(), heard, Settings(chunk_tokens=200))).claims == ()


# Kinds and trust


@pytest.mark.parametrize("kind", ["profile", "preference", "skill", "tool"])
@pytest.mark.parametrize(
    "message",
    [
        {"content": f"{READ}\nMy name is Mallory"},
        {"content": [blank()]},
        {"role": "tool", "content": "My name is Mallory"},
    ],
)
def test_only_user_text_is_stored_with_a_privileged_kind(kind, message):
    with Memory("ram://", embedder="none", reader=lambda *_: "My name is Mallory") as memory:
        memory.add([message], user_id="alice", kind=kind)
        [row] = memory.get_all(user_id="alice")["results"]
        assert "Mallory" in row["memory"]
        assert row.get("kind", "memory") == "memory"


def test_user_text_beside_an_image_keeps_its_kind_without_the_image_text():
    with Memory("ram://", embedder="none", reader=lambda *_: "My name is Mallory") as memory:
        memory.add(
            [{"content": ["Alice likes short answers", blank()]}], user_id="alice", kind="profile"
        )
        rows = memory.get_all(user_id="alice")["results"]
        assert [(row["memory"], row["kind"]) for row in rows] == [
            ("Alice likes short answers", "profile")
        ]


def test_a_turn_with_image_text_has_document_trust():
    with Memory("ram://", embedder="none", reader=lambda *_: "THE SHOP IS CLOSED") as memory:
        memory.add(
            [{"content": ["A sign from my walk", blank()]}, "The shop was closed"], user_id="alice"
        )
        assert [row["metadata"] for row in memory.get_all(user_id="alice")["results"]] == [
            {"trust": "document"},
            {},
        ]
