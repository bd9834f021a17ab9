"""Chunking of long input: no loss, no duplicates, allowed split points and original spans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from told import Memory
from told.flow import Flow, run
from told.ingest.chunking import (
    Chunk,
    collect_pending,
    extract_claims,
    find_topic_starts,
    merge_results,
    restore_positions,
    select_chunk,
    split_into_chunks,
)
from told.ingest.messages import InputTurn
from told.ingest.types import (
    Entity,
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    RejectedClaim,
    Relation,
)
from told.model.entry import Claim, Evidence
from told.model.scope import Scope
from told.ports import Usage
from told.settings import Settings
from told.testing import ManualClock, seeded_mint
from told.text.dates import parse_instant
from told.text.tokens import estimate_tokens

HOME = Scope(user_id="u", run_id="r")


def turn(text: str, at: str | None = None, role: str = "user") -> InputTurn:
    return InputTurn(Evidence(text, role, said_at=None if at is None else parse_instant(at)), {})


def make_settings(most: int, **more: Any) -> Settings:
    return Settings(chunk_tokens=most, **more)


def texts_of(turns: Sequence[InputTurn], chunk: Chunk) -> list[str]:
    return [
        part.evidence.content
        for part in select_chunk(ExtractionInput(tuple(turns), 0, HOME), chunk).turns
    ]


bits = st.sampled_from(
    (
        "tea",
        "Berlin",
        "Dr.",
        ". ",
        "! ",
        "? ",
        "。",
        "\n",
        "\n\n",
        " \n \n ",
        " ",
        "x" * 37,
        "東京に住んでいます",
        "a",
        "1.5",
        "👩‍👩‍👧",
        "\r\n\r\n",
    )
)
said = st.lists(bits, max_size=60).map("".join) | st.text(max_size=200)
talks = st.lists(said, max_size=8)
sizes = st.integers(16, 60)


@given(talks, sizes)
def test_every_turn_is_in_exactly_one_chunk_in_order(talk: list[str], most: int) -> None:
    turns = [turn(text) for text in talk]
    slices = [
        part for chunk in split_into_chunks(turns, make_settings(most)) for part in chunk.slices
    ]
    assert [(part.turn, part.start) for part in slices] == sorted(
        (part.turn, part.start) for part in slices
    )
    for number, text in enumerate(talk):
        own = [part for part in slices if part.turn == number]
        assert all(one.end <= two.start for one, two in pairwise(own)), "no overlap"
        assert "".join("".join(text[p.start : p.end] for p in own).split()) == "".join(
            text.split()
        ), "nothing is lost"


@given(talks, sizes)
def test_chunks_respect_the_size_limit(talk: list[str], most: int) -> None:
    turns = [turn(text) for text in talk]
    for chunk in split_into_chunks(turns, make_settings(most)):
        assert chunk.slices
        assert chunk.tokens == sum(estimate_tokens(text) for text in texts_of(turns, chunk))
        assert chunk.tokens <= most * 2 or len(chunk.slices) == 1


@given(
    st.lists(
        st.sampled_from(("One two.", "Three!", "Is it four?", "Five six seven eight.")),
        min_size=1,
        max_size=80,
    )
)
def test_long_turns_are_split_between_sentences(sentences: list[str]) -> None:
    turns = [turn(" ".join(sentences))]
    for chunk in split_into_chunks(turns, make_settings(16)):
        assert all(text.strip().endswith((".", "!", "?")) for text in texts_of(turns, chunk))


def test_input_that_fits_is_one_chunk() -> None:
    turns = [turn("I like tea"), turn("I like coffee")]
    assert [texts_of(turns, chunk) for chunk in split_into_chunks(turns, make_settings(100))] == [
        ["I like tea", "I like coffee"]
    ]
    assert split_into_chunks([], make_settings(100)) == ()


def test_turns_that_fit_individually_are_not_split() -> None:
    turns = [turn("word " * 30) for _ in range(4)]
    assert [len(chunk.slices) for chunk in split_into_chunks(turns, make_settings(80))] == [2, 2]


def test_paragraphs_that_fit_are_not_split() -> None:
    paragraphs = ["First thing. " * 8, "Second thing. " * 8, "Third thing. " * 8]
    turns = [turn("\n\n".join(text.strip() for text in paragraphs))]
    found = [
        text
        for chunk in split_into_chunks(turns, make_settings(40))
        for text in texts_of(turns, chunk)
    ]
    assert [set(text.replace(" thing.", "").split()) for text in found] == [
        {"First"},
        {"Second"},
        {"Third"},
    ]


def test_a_new_topic_that_does_not_fit_starts_a_new_chunk() -> None:
    sea = [
        "The boat sails over the sea",
        "Waves rock the boat at sea",
        "A sail of the boat tore at sea",
    ]
    bread = [
        "Bake the bread with flour",
        "Flour and yeast make bread",
        "The bread needs more flour",
        "Bread and flour again",
    ]
    turns = [turn(text) for text in sea + bread]
    cost = sum(estimate_tokens(text) for text in sea + bread)
    found = [
        [part.turn for part in chunk.slices]
        for chunk in split_into_chunks(turns, make_settings(cost - 4))
    ]
    assert found == [[0, 1, 2], [3, 4, 5, 6]]


# Topics


def test_a_long_pause_starts_a_new_topic() -> None:
    times = (
        "2024-05-01T10:00:00Z",
        "2024-05-01T10:05:00Z",
        "2024-05-01T11:00:00Z",
        "2024-05-01T11:30:00Z",
    )
    turns = [turn("the same words every time", at) for at in times]
    assert find_topic_starts(turns, Settings()) == (0, 2)
    assert find_topic_starts(turns, Settings(pause_minutes=60)) == (0,)


def test_without_times_topics_are_detected_by_words_alone() -> None:
    assert find_topic_starts(
        [turn("the cat sleeps"), turn("my cat sleeps again")] * 3, Settings()
    ) == (0,)
    assert find_topic_starts([], Settings()) == ()


def test_different_words_start_a_new_topic() -> None:
    sea = [
        "The boat sails over the sea",
        "Waves rock the boat at sea",
        "A sail of the boat tore at sea",
    ]
    bread = [
        "Bake the bread with flour",
        "Flour and yeast make bread",
        "The bread needs more flour",
    ]
    assert find_topic_starts([turn(text) for text in sea + bread], Settings()) == (0, 3)
    assert find_topic_starts([turn(text) for text in sea + bread], Settings(topic_shift=0.0)) == (
        0,
    )


@given(talks)
def test_topic_starts_begin_at_the_first_turn_and_ascend(talk: list[str]) -> None:
    found = find_topic_starts([turn(text) for text in talk], Settings())
    assert list(found) == sorted(set(found))
    assert found[:1] == ((0,) if talk else ())
    assert all(place < len(talk) for place in found)


# Extracting


class UpperCaseExtractor:
    """An extractor that returns every upper-case word with its span."""

    name = "shouting"
    local = False

    def __init__(self) -> None:
        self.heard: list[int] = []

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        self.heard.append(len(inputs.turns))
        found = [
            ExtractedClaim(Claim(word, span=(at, at + len(word))), number)
            for number, one in enumerate(inputs.turns)
            for word in one.evidence.content.split()
            if word.isupper() and (at := one.evidence.content.index(word)) >= 0
        ]
        relations = tuple(Relation(one.claim.text, "near", "here", turn=one.turn) for one in found)
        dropped = tuple(RejectedClaim("why", one.claim.text, one.turn) for one in found)
        return ExtractionResult(
            tuple(found),
            (Entity("Here"),),
            relations,
            (*dropped, RejectedClaim("all", "x")),
            ("hm",),
            ("bad",),
            Usage(1, 2, 3),
        )
        yield


@given(st.lists(st.text("abc .\n", max_size=200), min_size=1, max_size=5), sizes)
def test_spans_found_in_chunks_are_mapped_to_the_original_turns(
    noise: list[str], most: int
) -> None:
    turns = tuple(turn(f"{text} WORD{number} {text}") for number, text in enumerate(noise))
    shouting = UpperCaseExtractor()
    found = run(extract_claims(shouting, ExtractionInput(turns, 0, HOME), make_settings(most)))
    assert [one.claim.text for one in found.claims] == [
        f"WORD{number}" for number in range(len(noise))
    ]
    for number, one in enumerate(found.claims):
        assert one.claim.span is not None
        assert turns[one.turn].evidence.content[slice(*one.claim.span)] == one.claim.text
        assert one.turn == number
    assert [relation.turn for relation in found.relations] == list(range(len(noise)))
    assert [one.turn for one in found.rejected if one.turn is not None] == list(range(len(noise)))
    assert found.entities == (Entity("Here"),)
    assert found.warnings == ("hm",)
    assert found.usage == Usage(
        len(shouting.heard), 2 * len(shouting.heard), 3 * len(shouting.heard)
    )
    assert len(found.unreadable_replies) == len(shouting.heard)


def test_empty_input_gives_no_claims() -> None:
    shouting = UpperCaseExtractor()
    assert (
        run(extract_claims(shouting, ExtractionInput((), 0, HOME), Settings()))
        == ExtractionResult()
    )
    assert shouting.heard == []
    assert merge_results([]) == ExtractionResult()


def test_a_claim_without_a_span_gets_none() -> None:
    (chunk,) = split_into_chunks([turn("I like tea")], Settings())
    found = restore_positions(chunk, ExtractionResult((ExtractedClaim(Claim("x"), 0),)))
    assert found.claims[0].claim.span is None


# Pending


@pytest.fixture
def memory() -> Any:
    with Memory("ram://", embedder=None, mint=seeded_mint(1, ManualClock())) as opened:
        yield opened


def load_pending(
    memory: Memory, cursor: int, threshold: int, *, flush: bool = False, scope: Scope = HOME
) -> Any:
    entries = memory.engine.store.scan_entries("default")
    return collect_pending(entries, scope, cursor, threshold, flush=flush)


def test_only_turns_after_the_cursor_are_pending(memory: Memory) -> None:
    memory.add("I like tea very much", user_id="u", run_id="r")
    first = load_pending(memory, 0, 0)
    assert [one.evidence.content for one in first.turns] == ["I like tea very much"]
    assert first.is_ready
    assert not load_pending(memory, first.cursor, 0).is_ready
    memory.add(
        {"role": "user", "content": "I like rice", "timestamp": "2024-05-01T10:00:00Z"},
        user_id="u",
        run_id="r",
    )
    memory.add("Somebody else", user_id="v", run_id="r")
    memory.add("Another session", user_id="u", run_id="s")
    second = load_pending(memory, first.cursor, 0)
    assert [one.evidence.content for one in second.turns] == ["I like rice"]
    assert second.turns[0].valid.start == parse_instant("2024-05-01T10:00:00Z")
    assert len(second.evidence_ids) == 1
    assert second.cursor > first.cursor


def test_a_small_batch_waits_for_more_turns_or_the_end_of_the_session(memory: Memory) -> None:
    memory.add("word " * 40, user_id="u", run_id="r")
    few = load_pending(memory, 0, 200)
    assert (few.tokens, few.is_ready) == (50, False)
    assert load_pending(memory, 0, 200, flush=True).is_ready
    memory.add("other " * 120, user_id="u", run_id="r")
    assert load_pending(memory, 0, 200).is_ready


def test_an_empty_batch_is_never_ready(memory: Memory) -> None:
    none = load_pending(memory, 7, 0, flush=True)
    assert (none.turns, none.tokens, none.cursor, none.is_ready) == ((), 0, 7, False)


def test_erased_turns_are_not_pending(memory: Memory) -> None:
    memory.add("I like tea", user_id="u", run_id="r")
    memory.erase(user_id="u")
    assert load_pending(memory, 0, 0).turns == ()


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("tea", 1), ("word " * 4, 5), ("東京に", 2), ("漢" * 150, 100)]
)
def test_token_counts_are_estimates(text: str, count: int) -> None:
    assert estimate_tokens(text) == count


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "a\n\n" * 33_000,
        "漢\n\n" * 33_000,
        "a" * 100_000,
        "漢。" * 50_000,
        " " * 100_000,
        "\n" * 100_000,
    ],
)
def test_hostile_text_is_chunked_in_reasonable_time(text: str) -> None:
    found = split_into_chunks([turn(text)], Settings(chunk_tokens=2000))
    assert sum(part.end - part.start for chunk in found for part in chunk.slices) <= len(text)
