"""What the local extractor finds in what people say, and what becomes of it: on utterances it was
not made with.

`python bench/extraction.py` prints the figures style by style and lists what goes wrong on the dev
split.
"""

import pytest

from labels import SPLITS, accuracy, by_style, measure, measure_updates, total
from told import Memory

PRECISION, RECALL, DECISIONS = 0.90, 0.70, 0.85
SILENT = ("asking", "chit-chat", "hypothetical", "sarcastic")
"""Styles in which next to nothing is said that a memory should keep."""

LOCAL, CURATOR = "told.extraction.rules", "told.curation"


@pytest.fixture(scope="module", params=SPLITS)
def judged(request):
    local = pytest.importorskip(LOCAL, reason="the local extractor is not in this version")
    return measure(request.param, local.LocalExtractor())


def test_what_is_claimed_was_said(judged):
    score = total(judged)
    wrong = [f"{one.utterance.id}: {claim.text}" for one in judged for claim in one.wrong]
    assert score.precision >= PRECISION, wrong


def test_most_of_what_was_said_is_claimed(judged):
    assert total(judged).recall >= RECALL


def test_little_is_claimed_of_what_says_nothing(judged):
    """Every fourth such utterance may be misunderstood, no more."""
    quiet = [one for one in judged if one.utterance.style in SILENT]
    wrong = [f"{one.utterance.text} → {claim.text}" for one in quiet for claim in one.wrong]
    assert len(wrong) <= len(quiet) / 4, wrong


def test_no_style_is_left_out(judged):
    """Each is understood in part, the strange ones too."""
    unheard = [
        style
        for style, score in by_style(judged).items()
        if score.wanted > 4 and score.recall < 0.3
    ]
    assert not unheard


@pytest.mark.parametrize("split", SPLITS)
def test_updates_are_decided_well(split):
    for name in (LOCAL, CURATOR):
        pytest.importorskip(name, reason=f"{name} is not in this version")
    outcomes = measure_updates(lambda: Memory("ram://", embedder="none"), split)
    faults = [f"{one.update.id}: {'; '.join(one.faults)}" for one in outcomes if one.faults]
    assert accuracy(outcomes) >= DECISIONS, faults
