"""Recall metrics on cases small enough to compute by hand."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from told.tools.evaluate import run
from told.tools.evaluate.data import EvalConversation, EvalQuestion, EvalTurn
from told.tools.evaluate.run import (
    EvalAnswer,
    QuestionResult,
    group_turn_ids_by_text,
    search_confidence,
)


def turn(name: str, text: str, session: str = "1") -> EvalTurn:
    return EvalTurn(name, session, "2026-01-01", "Nora", text)


def question(
    *evidence: str, name: str = "q", answerable: bool = True, category: str = "fact", **more
) -> EvalQuestion:
    return EvalQuestion(
        name, "Which?", category, more.pop("answer", ""), evidence, answerable, **more
    )


def row(
    figures=None, *, confidence=0.0, answerable=True, category="fact", missing=None, name="q"
) -> QuestionResult:
    asked = question(
        *(["t"] if figures else []), name=name, answerable=answerable, category=category
    )
    return QuestionResult("c", asked, confidence, figures or {}, {}, missing or {})


def make_hits(*ids: str) -> tuple[tuple[str, ...], ...]:
    """Build hits that stand for one turn each."""
    return tuple((one,) for one in ids)


# Verbatim in the context


def test_a_turn_is_recalled_when_its_text_is_in_the_context():
    pear, beans = turn("t1", "the crooked pear tree"), turn("t2", "broad beans")
    assert run.find_missing_turns("[3 Feb] Nora: the crooked pear tree", [pear, beans]) == ("t2",)


def test_white_space_is_normalised_on_both_sides():
    assert (
        run.find_missing_turns("the  crooked\n pear tree", [turn("t1", "the crooked\tpear tree")])
        == ()
    )


def test_a_turn_id_in_the_context_is_not_a_recall():
    assert run.find_missing_turns("t1 t1 t1", [turn("t1", "the crooked pear tree")]) == ("t1",)


def test_partial_or_altered_text_is_not_verbatim():
    pear = turn("t1", "the crooked pear tree")
    assert run.find_missing_turns("the crooked pear", [pear]) == ("t1",)
    assert run.find_missing_turns("The crooked pear tree", [pear]) == ("t1",)


def test_turns_of_the_same_text_are_recalled_together():
    same = [turn("t1", "Thank you!"), turn("t2", "Thank you!")]
    assert run.find_missing_turns("Nora: Thank you!", same) == ()
    assert run.find_missing_turns("", same) == ("t1", "t2")


# Ranking


def test_recall_counts_the_evidence_among_the_first_hits():
    figures = run.measure_ranking(make_hits("x", "a", "x", "x", "x", "b"), ["a", "b", "c"])
    assert figures["R@5"] == pytest.approx(1 / 3)
    assert figures["R@10"] == figures["R@50"] == pytest.approx(2 / 3)


def test_a_turn_counts_at_its_first_rank():
    assert run.first_positions([("a",), ("b", "a"), ("b",)]) == {"a": 0, "b": 1}


def test_a_hit_counts_for_all_turns_with_the_same_text():
    same = group_turn_ids_by_text(
        [turn("t1", "Thank you!"), turn("t2", "Thank  you!"), turn("t3", "No")]
    )
    assert same == {"Thank you!": ("t1", "t2"), "No": ("t3",)}
    figures = run.measure_ranking([same["Thank you!"]], ["t1", "t2"])
    assert figures["R@5"] == 1.0
    assert figures["nDCG@10"] == 1.0


def test_gain_is_discounted_by_rank():
    assert run.compute_ndcg([0], 10) == 1.0
    assert run.compute_ndcg([1], 10) == pytest.approx(1 / log2(3))
    assert run.compute_ndcg([0, run.NOT_FOUND], 10) == pytest.approx(1 / (1 + 1 / log2(3)))
    assert run.compute_ndcg([10], 10) == 0.0


@given(st.lists(st.integers(0, 60) | st.just(run.NOT_FOUND), min_size=1, max_size=12))
def test_gain_is_normalised_by_the_ideal_gain(places):
    assert 0.0 <= run.compute_ndcg(places, 10) <= 1.0 + 1e-12


# Updates


def test_the_current_evidence_must_rank_before_the_superseded():
    asked = question("old", "new", oldest=("old",), newest=("new",))
    assert run.is_newest_first(make_hits("new", "old"), asked)
    assert not run.is_newest_first(make_hits("old", "new"), asked)


def test_an_update_found_alone_ranks_first_and_a_missing_one_does_not():
    asked = question("old", "new", oldest=("old",), newest=("new",))
    assert run.is_newest_first(make_hits("x", "new"), asked)
    assert not run.is_newest_first(make_hits("x"), asked)
    assert not run.is_newest_first([("new", "old")], asked), "one hit for both puts neither first"


def test_evidence_that_is_both_old_and_new_does_not_count_as_superseded():
    conversation = EvalConversation("c", (turn("t1", "a"), turn("t2", "b")), ())
    asked = question("t1", "t2", oldest=("t1",), newest=("t1", "t2"))
    seen = run.measure_question(conversation, asked, EvalAnswer(make_hits("t1"), 0.5), {})
    assert "newest first" not in seen.metrics


# Answer coverage


def test_coverage_is_the_share_of_answer_content_words():
    assert run.compute_word_coverage("the copper tape", "Copper wire") == 0.5
    assert run.compute_word_coverage("", "anything") == 1.0


# One question


def test_a_question_is_scored_at_every_budget():
    conversation = EvalConversation("c", (turn("t1", "plot 17"), turn("t2", "four years")), ())
    asked = question("t1", "t2", answer="17 years")
    contexts = {10: "plot 17", 20: "plot 17, four years"}
    seen = run.measure_question(
        conversation, asked, EvalAnswer(make_hits("x", "t2"), 0.7), contexts
    )
    assert seen.metrics["R@10t"] == 0.5
    assert seen.metrics["all@10t"] == 0.0
    assert seen.metrics["words@10t"] == 0.5
    assert seen.metrics["R@20t"] == seen.metrics["all@20t"] == seen.metrics["words@20t"] == 1.0
    assert seen.missing == {10: ("t2",), 20: ()}
    assert seen.ranks == {"t1": None, "t2": 2}


@pytest.mark.parametrize(
    "asked", [question(), question("t1", answerable=False)], ids=["no evidence", "unanswerable"]
)
def test_a_question_without_evidence_or_answer_has_a_confidence_and_no_figures(asked):
    conversation = EvalConversation("c", (turn("t1", "plot 17"),), ())
    seen = run.measure_question(conversation, asked, EvalAnswer(make_hits("t1"), 0.4), {10: ""})
    assert (seen.confidence, dict(seen.metrics), dict(seen.missing)) == (0.4, {}, {})


# Abstention


def test_separable_scores_have_auc_one_and_ties_count_half():
    assert run.compute_auroc([0.9, 0.8], [0.1]) == 1.0
    assert run.compute_auroc([0.1], [0.9, 0.8]) == 0.0
    assert run.compute_auroc([0.5, 0.5], [0.5]) == 0.5
    assert run.compute_auroc([0.9, 0.1], [0.5]) == 0.5


@pytest.mark.parametrize(("answerable", "others"), [([], [0.1]), ([0.1], []), ([], [])])
def test_auc_is_undefined_with_a_single_class(answerable, others):
    assert run.compute_auroc(answerable, others) is None


def test_confidence_falls_back_to_the_best_cosine_then_the_best_score():
    hits = [
        {"score": 1.0, "score_details": {"cosine": 0.2}},
        {"score": 0.5, "score_details": {"cosine": 0.6}},
    ]
    words = [
        {"score": 0.5, "score_details": {"cosine": None}},
        {"score": 0.25, "score_details": {}},
    ]
    assert search_confidence({"results": hits, "confidence": 0.0}) == 0.0
    assert search_confidence({"results": hits}) == 0.6
    assert search_confidence({"results": words, "confidence": None}) == 0.5
    assert search_confidence({"results": []}) == 0.0


# Many questions


def test_a_metric_is_the_mean_over_the_questions_that_have_it():
    rows = [row({"R@5": 1.0, "newest first": 0.0}), row({"R@5": 0.0}), row(answerable=False)]
    figures = run.summarize(rows)
    assert (figures["R@5"], figures["newest first"], figures["AUROC"]) == (0.5, 0.0, 0.5)


def test_no_questions_give_no_metrics():
    assert run.summarize([]) == {"AUROC": None}


def test_a_category_without_metrics_has_no_row():
    rows = [
        row({"R@5": 1.0}, category="b"),
        row({"R@5": 0.5}, category="a"),
        row(category="none", answerable=False),
    ]
    assert {name: figures["R@5"] for name, figures in run.summarize_by_category(rows).items()} == {
        "a": 0.5,
        "b": 1.0,
    }


def test_a_difference_needs_a_metric_on_both_sides():
    assert run.diff_metrics({"a": 0.75, "b": 1.0, "c": None}, {"a": 0.5, "b": None, "c": 1.0}) == {
        "a": 0.25
    }


# Misses


def test_a_run_is_summarised_at_the_budget_nearest_the_default():
    assert run.headline_budget([500, 1000, 4000]) == 1000
    assert run.headline_budget([120, 240]) == 240
    assert run.headline_budget([1500, 500]) == 500


def test_misses_are_spread_evenly_over_the_file():
    rows = [
        row({"R@5": 0.0}, name=str(place), missing={10: ("t",) if place % 2 else ()})
        for place in range(20)
    ]
    assert [one.question.id for one in run.sample_misses(rows, 10, 3)] == ["1", "7", "13"]
    assert len(run.sample_misses(rows, 10, 99)) == 10
    assert (
        run.sample_misses(rows, 10, 0)
        == run.sample_misses(rows, 20, 5)
        == run.sample_misses([], 10, 5)
        == []
    )


def test_score_parts_are_sorted_by_relative_difference():
    missed = {"cosine": 0.8, "words": None, "speaker": 1.0, "date": 0.0, "when": 2.0}
    best = {"cosine": 0.9, "words": 4.0, "speaker": 1.0, "date": 0.0, "when": 1.0}
    assert run.compare_score_parts(missed, best) == [
        {"part": "words", "missed": None, "best": 4.0},
        {"part": "when", "missed": 2.0, "best": 1.0},
        {"part": "cosine", "missed": 0.8, "best": 0.9},
    ]
    assert run.compare_score_parts(best, best) == []
