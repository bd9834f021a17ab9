"""Precision and recall of the rule extractor and accuracy of updates on labelled utterances.

`python bench/extraction.py` prints the scores by style and lists the errors on the dev split.
"""

import pytest

from labels import SPLITS, accuracy, by_style, measure, measure_updates, total
from told import Memory

PRECISION, RECALL, DECISIONS = 0.90, 0.70, 0.85
SILENT = ("asking", "chit-chat", "hypothetical", "sarcastic")
"""Styles that contain almost no facts."""

LOCAL, CURATOR = "told.extraction.rules", "told.curation"


@pytest.fixture(scope="module", params=SPLITS)
def judged(request):
    local = pytest.importorskip(LOCAL, reason="the local extractor is not in this version")
    return measure(request.param, local.LocalExtractor())


def test_precision_of_extracted_claims(judged):
    score = total(judged)
    wrong = [f"{result.utterance.id}: {claim.text}" for result in judged for claim in result.wrong]
    assert score.precision >= PRECISION, wrong


def test_recall_of_extracted_claims(judged):
    assert total(judged).recall >= RECALL


def test_few_claims_from_utterances_without_facts(judged):
    """Allow at most one wrong claim per four such utterances."""
    quiet = [result for result in judged if result.utterance.style in SILENT]
    wrong = [
        f"{result.utterance.text} → {claim.text}" for result in quiet for claim in result.wrong
    ]
    assert len(wrong) <= len(quiet) / 4, wrong


def test_every_style_has_minimum_recall(judged):
    low_recall = [
        style
        for style, score in by_style(judged).items()
        if score.wanted > 4 and score.recall < 0.3
    ]
    assert not low_recall


@pytest.mark.parametrize("split", SPLITS)
def test_update_decisions_are_accurate(split):
    for name in (LOCAL, CURATOR):
        pytest.importorskip(name, reason=f"{name} is not in this version")
    outcomes = measure_updates(lambda: Memory("ram://", embedder="none"), split)
    faults = [
        f"{result.update.id}: {'; '.join(result.faults)}" for result in outcomes if result.faults
    ]
    assert accuracy(outcomes) >= DECISIONS, faults
