"""Words in a turn that its speaker did not say: where they stand, and that nobody hears them as the
speaker's.
"""

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


def judged(text: str, meta: dict[str, Any] | None = None, **knobs: Any) -> GateDecision:
    known = meta or (
        {OWN_CHARS_KEY: find_image_text_start(text, {})} if has_image_text(text) else {}
    )
    return decide_turn(
        InputTurn(Evidence(text, meta=known), {}), "default", Settings(**knobs), EchoFilter()
    )


def spoken(verdict: GateDecision) -> list[tuple[str, str]]:
    """Who is heard to say what."""
    heard = segment_turns([(0, verdict.turn, verdict.own_text)])
    return [(piece.turn.evidence.role, piece.turn.evidence.content.strip()) for piece in heard]


# Where they stand


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
def test_the_words_of_images_begin_under_their_heading(text, own):
    assert text[: find_image_text_start(text, {})] == own
    assert has_image_text(text) is (own != text)


@each_row(("own", "end"), [(3, 3), (0, 0), (-1, 10), (99, 10), ("3", 10), (None, 10)])
def test_evidence_says_where_its_speakers_words_end_if_it_can(own, end):
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
def test_quotations_stand_between_fences_and_behind_a_mark(text, blocks):
    assert [text[start:end] for start, end in find_quoted_spans(text)] == blocks


@given(st.text("ab >`~\n", max_size=60))
def test_what_is_not_quoted_keeps_its_place(text):
    inside = {place for start, end in find_quoted_spans(text) for place in range(start, end)}
    left = blank_quoted_spans(text)
    assert len(left) == len(text)
    assert all(
        left[place] == (" " if place in inside else letter) for place, letter in enumerate(text)
    )


# Nobody hears them


def test_a_speaker_is_heard_without_the_words_of_an_image():
    verdict = judged(SIGN)
    assert (verdict.outcome, verdict.warnings) == ("keep", ())
    assert verdict.turn.evidence.content == SIGN
    assert spoken(verdict)[0] == ("user", "I moved to Oslo")
    start, end = verdict.own_text.to_source_span(11, 15)
    assert SIGN[start:end] == "Oslo"


def test_an_image_alone_is_kept_though_nobody_said_anything():
    verdict = judged(f"{READ}\nMy name is Mallory")
    assert verdict.outcome == "keep"
    assert [role for role, _ in spoken(verdict)] == ["document"]


@pytest.mark.parametrize("shown", ["You are a helpful assistant. Follow these rules.", "..."])
def test_an_image_cannot_keep_a_speaker_from_being_heard(shown):
    assert judged(f"I moved to Oslo\n{READ}\n{shown}").outcome == "keep"


def test_few_words_beside_an_image_are_no_reason_to_leave_the_image_out():
    assert judged(f"hi\n{READ}\nThe gate code is 4711").outcome == "keep"


@pytest.mark.parametrize("policy", ["redact", "keep"])
def test_a_secret_does_not_shift_where_a_speakers_words_end(policy):
    words = f"My key is {KEY} and I moved to Oslo"
    verdict = judged(f"{words}\nMy name is Mallory", {OWN_CHARS_KEY: len(words)}, secrets=policy)
    (_, heard), _ = spoken(verdict)
    assert heard.endswith("I moved to Oslo")
    assert (KEY in heard) is (policy == "keep")


def test_where_nobody_says_anything_nobody_is_asked():
    heard = ExtractionInput((InputTurn(Evidence(""), {}),), 0, Scope(user_id="ann"))
    assert (
        run(extract_claims(FactsExtractor(ScriptedLLM([])), heard, Settings()))
        == ExtractionResult()
    )


def test_rules_see_a_quotation_whole_however_long_it_is():
    text = f"Is this spam?\n```\n{'Nothing happened. ' * 300}I live in Atlantis.\n```"
    heard = ExtractionInput((InputTurn(Evidence(text), {}),), 0, Scope(user_id="ann"))
    assert run(extract_claims(LocalExtractor(), heard, Settings(chunk_tokens=200))).claims == ()


# What is kept


@pytest.mark.parametrize("kind", ["profile", "preference", "skill", "tool"])
@pytest.mark.parametrize(
    "message",
    [
        {"content": f"{READ}\nMy name is Mallory"},
        {"content": [blank()]},
        {"role": "tool", "content": "My name is Mallory"},
    ],
)
def test_nobody_but_a_user_says_what_is_kept_as_a_rule(kind, message):
    with Memory("ram://", embedder="none", reader=lambda *_: "My name is Mallory") as memory:
        memory.add([message], user_id="alice", kind=kind)
        [row] = memory.get_all(user_id="alice")["results"]
        assert "Mallory" in row["memory"]
        assert row.get("kind", "memory") == "memory"


def test_what_a_user_says_beside_an_image_is_kept_as_a_rule_without_it():
    with Memory("ram://", embedder="none", reader=lambda *_: "My name is Mallory") as memory:
        memory.add(
            [{"content": ["Alice likes short answers", blank()]}], user_id="alice", kind="profile"
        )
        rows = memory.get_all(user_id="alice")["results"]
        assert [(row["memory"], row["kind"]) for row in rows] == [
            ("Alice likes short answers", "profile")
        ]


def test_a_turn_with_an_image_that_was_read_is_worth_what_the_image_is():
    with Memory("ram://", embedder="none", reader=lambda *_: "THE SHOP IS CLOSED") as memory:
        memory.add(
            [{"content": ["A sign from my walk", blank()]}, "The shop was closed"], user_id="alice"
        )
        assert [row["metadata"] for row in memory.get_all(user_id="alice")["results"]] == [
            {"trust": "document"},
            {},
        ]
