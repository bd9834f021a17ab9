"""Each ranking feature in isolation, on handmade candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.model.entry import NO_META
from told.model.fact import Fact
from told.model.kind import load_builtin_ontology
from told.model.query import AccessCount, Candidate, Candidates, IndexResult, RankedList
from told.model.scope import Scope
from told.model.scoring import find_named_speakers, quantise
from told.retrieval import ranking
from told.retrieval.candidates import parse_query_words
from told.retrieval.intent import AnswerSource, QueryIntent, analyse_query
from told.retrieval.ranking import ScoredCandidate, compute_relevance
from told.retrieval.state import take_first_facts, take_first_seqs
from told.settings import Settings
from told.text.dates import Interval

DAY = 86_400_000_000
NOON = 1_700_000_000_000_000
PLAIN = Settings(rank_talk=0.0)
NOTHING = QueryIntent("")
NOW = datetime(2026, 3, 18, tzinfo=UTC)


def make_candidate(seq: int = 1, **known: object) -> Candidate:
    return Candidate(seq, 0, NOON, seq)._replace(**known)


def rank(
    *marks: Candidate, asks: QueryIntent = NOTHING, settings: Settings = PLAIN, **found: object
) -> list[ScoredCandidate]:
    return ranking.rank_candidates(
        replace(IndexResult(candidates=marks), **found), asks, settings, 0.1
    )


def score_parts(
    name: str,
    *marks: Candidate,
    asks: QueryIntent = NOTHING,
    settings: Settings = PLAIN,
    **found: object,
) -> list[float]:
    """Return one feature's contribution to each candidate, in the given order."""
    scored = {one.candidate.seq: one for one in rank(*marks, asks=asks, settings=settings, **found)}
    return [scored[each.seq].parts.get(name, 0.0) for each in marks]


# fusion


def test_weighted_fusion_adds_dense_spread_and_word_coverage() -> None:
    one = make_candidate(dense=0.25, cover=1.5)
    [scored] = rank(one)
    assert scored.parts == pytest.approx({"dense": 2.5, "cover": 1.8, "talk": 0.0})
    assert scored.score == pytest.approx(4.3)


def test_a_candidate_without_a_vector_is_scored_by_words_alone() -> None:
    [scored] = rank(make_candidate(dense=None, cover=1.0))
    assert scored.parts == {"dense": 0.0, "cover": 1.2, "talk": 0.0}


def test_reciprocal_rank_fusion_matches_hand_computed_scores() -> None:
    settings = Settings(fusion="rrf", rank_talk=0.0)
    both, near, words = (
        make_candidate(1, near=1, words=1),
        make_candidate(2, near=2),
        make_candidate(3, words=61),
    )
    found = rank(
        both,
        near,
        words,
        make_candidate(4),
        settings=settings,
        by_vector=((1, 0.9), (2, 0.8)),
        by_terms=((1, 3.0),),
    )
    scores = {one.candidate.seq: one.score for one in found}
    assert scores[1] == pytest.approx(10.0), "first in both lists is as good as it gets"
    assert scores[2] == pytest.approx(10 / 62 * 61 / 2)
    assert scores[3] == pytest.approx(10 / 121 * 61 / 2)
    assert scores[4] == 0.0


def test_with_one_list_the_first_candidate_gets_the_maximum_score() -> None:
    settings = Settings(fusion="rrf", rank_talk=0.0)
    [first, second] = rank(
        make_candidate(1, words=1),
        make_candidate(2, words=2),
        settings=settings,
        by_terms=((1, 3.0), (2, 1.0)),
    )
    assert (first.score, second.score) == (pytest.approx(10.0), pytest.approx(610 / 62))


def test_anchored_fusion_weighs_cosine_at_seven_tenths() -> None:
    settings = Settings(fusion="anchored", rank_talk=0.0)
    [scored] = rank(make_candidate(cosine=0.6, bm25=4.0), settings=settings)
    assert scored.parts == pytest.approx({"dense": 4.2, "cover": 1.5, "talk": 0.0})
    [away] = rank(make_candidate(cosine=-0.3, bm25=0.0), settings=settings)
    assert away.score == 0.0


@pytest.mark.parametrize("way", ["weighted", "rrf", "anchored", "fused"])
def test_every_fusion_accepts_empty_lists(way: str) -> None:
    assert compute_relevance(
        IndexResult(candidates=[make_candidate()]), Settings(fusion=way), 0.1
    ) == (
        [0.0],
        [0.0],
    )


def test_ties_are_ordered_newest_first() -> None:
    assert [
        one.candidate.seq
        for one in rank(
            make_candidate(1, cover=1.0), make_candidate(3, cover=1.0), make_candidate(2, cover=1.0)
        )
    ] == [3, 2, 1]


def test_candidates_are_built_lazily() -> None:
    looked_at: list[int] = []

    class Watched(Candidates):
        def take(self, places: Sequence[int]) -> Sequence[Candidate]:
            looked_at.extend(places)
            return super().take(places)

    marks = Watched(
        lambda: [
            make_candidate(1, cover=1.0),
            make_candidate(2, cover=3.0),
            make_candidate(3, cover=2.0),
        ]
    )
    found = ranking.rank_candidates(IndexResult(candidates=marks), NOTHING, PLAIN, 0.1)
    assert list(ranking.list_seqs(found)) == [2, 3, 1]
    assert looked_at == []
    assert [one.candidate.seq for one in (found[0], *found[:2])] == [2, 2, 3]
    assert looked_at == [1, 2]


def test_retriever_candidates_are_built_lazily_once_per_fact() -> None:
    made: list[bool] = []

    def passages() -> list[tuple[int, float]]:
        made.append(True)
        return [(2, 0.9), (1, 0.8), (2, 0.7)]

    offers = RankedList(True, passages)
    assert offers
    assert not made
    assert list(offers) == [(2, 0.9), (1, 0.8)]
    assert offers == [(2, 0.9), (1, 0.8)]
    assert len(made) == 1
    assert not RankedList(False, list)


@given(st.lists(st.integers(1, 6), max_size=12), st.integers(1, 7))
def test_first_facts_are_the_longest_prefix_within_the_limit(seqs: list[int], most: int) -> None:
    scored = [ScoredCandidate(make_candidate(seq), 0.0, {}) for seq in seqs]
    beginnings = [seqs[:end] for end in range(len(seqs) + 1)]
    longest = max((each for each in beginnings if len(set(each)) <= most), key=len)
    assert list(take_first_seqs(scored, most)) == longest
    assert [one.candidate.seq for one in take_first_facts(scored, most)] == longest


def test_a_time_match_with_zero_weight_is_still_listed_in_the_parts() -> None:
    asks = replace(NOTHING, spans=(Interval(NOON - DAY, NOON + DAY, "day"),))
    settings = Settings(rank_time=0.0)
    inside, outside = rank(
        make_candidate(2), make_candidate(1, said_at=NOON - 90 * DAY), asks=asks, settings=settings
    )
    assert inside.parts["time"] == 0.0
    assert "time" not in outside.parts


# speaker

SPEAKERS = ("Caroline", "Melanie", "Howard Stern")


@each_row(
    ("query", "people"),
    [
        ("What does Melanie paint?", ("Melanie",)),
        ("what does melanie paint?", ("Melanie",)),
        ("MELANIE?", ("Melanie",)),
        ("What does Mel paint?", ("Melanie",)),
        ("What is Melanie's dog called?", ("Melanie",)),
        ("What is Melanie’s dog called?", ("Melanie",)),
        ("¿Melanie pinta?", ("Melanie",)),
        ("「Melanie」？", ("Melanie",)),
        ("Did Mr Stern call?", ("Howard Stern",)),
        ("Melanie and Caroline", ("Caroline", "Melanie")),
        ("what does mel paint?", ()),
        ("What does Me paint?", ()),
        ("What does Melanies paint?", ()),
        ("How old is the dog?", ()),
        ("Who is it?", ()),
        ("", ()),
    ],
)
def test_a_speaker_is_named_by_a_name_or_its_capitalised_prefix(
    query: str, people: tuple[str, ...]
) -> None:
    assert find_named_speakers(SPEAKERS, parse_query_words(query))[0] == people


@each_row(
    ("query", "speaker"),
    [
        ("How are you?", "Howard"),
        ("The dog", "Theresa"),
        ("Will it rain?", "William"),
        ("Can I swim?", "Candace"),
        ("And then?", "Andrew"),
        ("Did it work?", "Didier"),
        ("Her cat", "Herbert"),
        ("Was it good?", "Wasim"),
        ("Wie alt ist er?", "Wiebke"),
        ("Para quién?", "Paramjit"),
    ],
)
def test_the_first_word_of_a_question_names_no_speaker(query: str, speaker: str) -> None:
    assert find_named_speakers([speaker], parse_query_words(query))[0] == ()


def test_name_terms_are_separated_from_question_terms() -> None:
    assert find_named_speakers(SPEAKERS, parse_query_words("Which violin has Mel?"))[
        1
    ] == frozenset(("mel",))


def test_a_single_named_speaker_is_boosted() -> None:
    marks = (make_candidate(1, actor="Ann"), make_candidate(2, actor="Bob"), make_candidate(3))
    assert score_parts("speaker", *marks, named_speakers=("Bob",)) == [0.0, 2.5, 0.0]


@pytest.mark.parametrize("people", [(), ("Ann", "Bob")])
def test_no_speaker_is_boosted_unless_exactly_one_is_named(people: tuple[str, ...]) -> None:
    assert score_parts(
        "speaker",
        make_candidate(1, actor="Ann"),
        make_candidate(2, actor="Bob"),
        named_speakers=people,
    ) == [
        0.0,
        0.0,
    ]


# time


def time_query(start: int | None, end: int | None) -> QueryIntent:
    return replace(NOTHING, spans=(Interval(start, end, "day"),))


@each_row(
    ("days", "said", "worth"),
    [
        (1, 0.5, 1.0),
        (1, 0.0, 1.0),
        (1, 1.0, 0.5),
        (1, -6.9, 0.5),
        (1, 7.9, 0.5),
        (1, -8.0, 0.2),
        (1, 31.0, 0.2),
        (1, -32.0, 0.0),
        (1, 40.0, 0.0),
        (7, 3.0, 1.0),
        (7, -1.0, 0.0),
        (7, 7.0, 0.0),
        (31, 0.0, 1.0),
        (31, 30.9, 1.0),
        (31, 31.0, 0.0),
        (92, 50.0, 0.5),
        (92, -1.0, 0.0),
        (366, 100.0, 0.2),
        (3650, 5.0, 0.0),
    ],
)
def test_candidates_in_the_requested_time_are_boosted(days: int, said: float, worth: float) -> None:
    """A day, week, month, season, year and decade, said a number of days after its start."""
    asks = time_query(NOON, NOON + days * DAY)
    assert score_parts("time", make_candidate(said_at=NOON + round(said * DAY)), asks=asks) == [
        pytest.approx(2.5 * worth)
    ]


def test_the_best_matching_time_counts() -> None:
    year, day = (
        Interval(NOON, NOON + 366 * DAY, "year"),
        Interval(NOON + 5 * DAY, NOON + 6 * DAY, "day"),
    )
    asks = replace(NOTHING, spans=(year, day))
    marks = (make_candidate(1, said_at=NOON + 5 * DAY), make_candidate(2, said_at=NOON + 200 * DAY))
    assert score_parts("time", *marks, asks=asks) == [2.5, 0.5]


@pytest.mark.parametrize(("start", "end"), [(None, NOON), (NOON, None), (None, None)])
def test_an_open_ended_time_boosts_nothing(start: int | None, end: int | None) -> None:
    assert score_parts("time", make_candidate(said_at=NOON), asks=time_query(start, end)) == [0.0]


# role, conversation and time words


def test_assistant_turns_are_penalised_unless_asked_for() -> None:
    marks = (
        make_candidate(1, role="assistant"),
        make_candidate(2, role="user"),
        make_candidate(3, role="tool"),
        make_candidate(4),
    )
    assert score_parts("role", *marks) == [-3.0, 0.0, 0.0, 0.0]
    assert score_parts("role", *marks, asks=replace(NOTHING, asks_reply=True)) == [
        1.0,
        0.0,
        0.0,
        0.0,
    ]
    assert analyse_query("What did you recommend for dinner?", now=NOW).asks_reply
    assert not analyse_query("What would you recommend for dinner?", now=NOW).asks_reply


def test_the_three_best_turns_boost_the_whole_conversation() -> None:
    talk = [
        make_candidate(number, talk=1, cover=cover)
        for number, cover in enumerate((4.0, 3.0, 2.0, 1.0), 1)
    ]
    alone = make_candidate(9, cover=5.0)
    lent = score_parts("talk", *talk, alone, settings=Settings(rank_cover=1.0, rank_talk=0.3))
    assert lent == pytest.approx([0.9, 0.9, 0.9, 0.9, 1.5])


def test_a_conversation_of_two_turns_uses_their_mean() -> None:
    talk = (make_candidate(1, talk=1, cover=4.0), make_candidate(2, talk=1, cover=1.0))
    assert score_parts(
        "talk", *talk, settings=Settings(rank_cover=1.0, rank_talk=0.3)
    ) == pytest.approx([0.75, 0.75])


def fact(seq: int = 1, text: str = "tea", **known: object) -> Fact:
    return replace(
        Fact(f"id{seq}", seq, seq, Scope(), text, "", meta=NO_META, updated_at=NOON), **known
    )


def fact_parts(
    told: Fact,
    asks: QueryIntent = NOTHING,
    touch: AccessCount | None = None,
    alive: float = 0.0,
    **knobs: object,
) -> dict[str, float]:
    """Return the score parts that depend on the fact."""
    settings = Settings(rank_talk=0.0).replace(**knobs)
    touches = {} if touch is None else {told.id: touch}
    scored = rank(make_candidate(told.seq), settings=settings)
    [one] = ranking.add_fact_scores(
        scored,
        {told.seq: told},
        touches,
        asks,
        load_builtin_ontology(),
        settings,
        NOON,
        {told.seq: alive},
    )
    return {
        name: value for name, value in one.parts.items() if name not in ("dense", "cover", "talk")
    }


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("We met.", 0.0),
        ("We met yesterday.", 0.5),
        ("We met last Tuesday at nine, yesterday it rained.", 1.0),
    ],
)
def test_time_words_count_for_when_questions(text: str, worth: float) -> None:
    found = fact_parts(fact(text=text), replace(NOTHING, asks_when=True))
    assert found.get("when", 0.0) == worth
    assert "when" not in fact_parts(fact(text=text))


def test_a_skill_is_boosted_when_one_is_asked_for() -> None:
    asks = replace(NOTHING, answer_source=AnswerSource.SKILL)
    assert fact_parts(fact(kind="skill"), asks) == {"kind": 2.0}
    assert fact_parts(fact(kind="memory"), asks) == {}
    assert fact_parts(fact(kind="skill")) == {}


def test_recency_importance_and_use_count_only_if_enabled() -> None:
    told = fact(
        kind="of no kind", said_at=NOON - 30 * DAY, meta={"importance": 0.4}, confidence=0.5
    )
    assert fact_parts(told, touch=AccessCount(1, NOON)) == {}
    assert fact_parts(told, rank_recency=2.0) == {"recency": pytest.approx(1.0)}
    assert fact_parts(told, rank_importance=2.0) == {"importance": pytest.approx(0.8)}
    assert fact_parts(told, alive=0.4, rank_salience=2.0) == {"salience": pytest.approx(0.8)}
    much = log(2)
    found = fact_parts(told, touch=AccessCount(1, NOON - 7 * DAY), rank_hotness=1.0)
    assert found == {"hotness": pytest.approx(much / (1 + much) / 2)}


def test_entity_matches_count_by_the_share_of_named_entities() -> None:
    asks = QueryIntent("what did Ann do in Oslo")
    assert fact_parts(fact(text="Ann was here"), asks, rank_entity=1.0) == {"entity": 0.5}


# newest first

SAME, OTHER = quantise([1.0, 0.0, 0.0]), quantise([0.0, 1.0, 0.0])


def make_scored(
    seq: int, score: float, *, at: int = 0, code: bytes = SAME, actor: str | None = "Ann"
) -> ScoredCandidate:
    return ScoredCandidate(
        make_candidate(seq, said_at=NOON + at, code=code, actor=actor), score, {"cover": score}
    )


def order_newest_first(
    *scored: ScoredCandidate, asks: QueryIntent = NOTHING, settings: Settings = PLAIN
) -> list[int]:
    return [one.candidate.seq for one in ranking.put_newest_first(scored, asks, 0.0, settings)]


def test_the_newer_of_two_similar_facts_ranks_first_with_the_higher_score() -> None:
    old, new = make_scored(1, 9.0), make_scored(2, 7.0, at=1)
    found = ranking.put_newest_first((old, new), NOTHING, 0.0, PLAIN)
    assert [one.candidate.seq for one in found] == [2, 1]
    assert found[0].score == pytest.approx(9.0, abs=0.001)
    assert found[0].parts["newer"] == found[0].score - 7.0
    assert found[1].score == 9.0


def test_at_equal_times_the_later_written_fact_ranks_first() -> None:
    assert order_newest_first(make_scored(1, 9.0), make_scored(2, 7.0)) == [2, 1]


def test_three_similar_facts_are_ordered_newest_first() -> None:
    assert order_newest_first(make_scored(1, 9.0), make_scored(2, 8.0), make_scored(3, 7.0)) == [
        3,
        2,
        1,
    ]


def test_dissimilar_facts_and_other_speakers_keep_their_rank() -> None:
    assert order_newest_first(make_scored(1, 9.0), make_scored(2, 7.0, code=OTHER)) == [1, 2]
    assert order_newest_first(make_scored(1, 9.0), make_scored(2, 7.0, actor="Bob")) == [1, 2]
    assert order_newest_first(make_scored(1, 9.0), make_scored(2, 7.0, code=b"")) == [1, 2]
    assert order_newest_first(make_scored(2, 9.0), make_scored(1, 7.0)) == [2, 1]


def test_a_question_about_the_past_keeps_the_order() -> None:
    assert order_newest_first(
        make_scored(1, 9.0), make_scored(2, 7.0), asks=replace(NOTHING, asks_past=True)
    ) == [1, 2]


def test_only_the_first_five_are_reordered() -> None:
    others = [make_scored(number, 9.0 - number / 10, code=b"") for number in range(12, 16)]
    assert order_newest_first(make_scored(1, 9.0), *others, make_scored(2, 1.0))[0] == 1
    assert order_newest_first(make_scored(1, 9.0), *others[:3], make_scored(2, 1.0)) == [
        2,
        1,
        12,
        13,
        14,
    ]
    assert order_newest_first(
        make_scored(1, 9.0), make_scored(2, 7.0), settings=Settings(newest_among=0)
    ) == [1, 2]


def test_passages_of_one_memory_are_not_reordered() -> None:
    first = make_scored(1, 9.0)
    second = first._replace(candidate=first.candidate._replace(slot=1), score=7.0)
    assert [
        one.candidate.slot for one in ranking.put_newest_first((first, second), NOTHING, 0.0, PLAIN)
    ] == [0, 1]


def test_similarity_is_measured_relative_to_the_scope_mean() -> None:
    """Three vectors whose mean is known by hand: x, y and their mean."""
    x, y = quantise([1.0, 0.0]), quantise([0.0, 1.0])
    mean = sqrt(0.5)
    a, b = make_candidate(1, code=x, hub=0.5), make_candidate(2, code=y, hub=0.5)
    assert ranking.measure_similarity(a, b, mean) == pytest.approx(-1.0), (
        "on opposite sides of the mean"
    )
    assert ranking.measure_similarity(a, a, mean) == pytest.approx(1.0)
    assert ranking.measure_similarity(a, make_candidate(3), mean) == 0.0


# diversity


def test_diversity_penalises_candidates_similar_to_earlier_ones() -> None:
    scored = (make_scored(1, 9.0), make_scored(2, 8.0), make_scored(3, 7.0, code=OTHER))
    assert [one.candidate.seq for one in ranking.diversify(scored, 0.0, PLAIN)] == [1, 2, 3]
    found = ranking.diversify(scored, 0.0, Settings(diversity=2.0))
    assert [(one.candidate.seq, one.score) for one in found] == [
        (1, 9.0),
        (3, 7.0),
        (2, pytest.approx(6.0)),
    ]
    assert found[2].parts["diversity"] == pytest.approx(-2.0)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from((SAME, OTHER, b""))), max_size=8),
    st.sampled_from((0.5, 3.0)),
    st.sampled_from((2, 150)),
)
def test_diversity_drops_nothing_and_never_raises_a_score(
    rows: list[tuple[int, bytes]], much: float, depth: int
) -> None:
    scored = ranking.sort_by_score(
        make_scored(number, float(score), code=code) for number, (score, code) in enumerate(rows)
    )
    found = ranking.diversify(scored, 0.0, Settings(diversity=much, depth=depth))
    before = {one.candidate.seq: one.score for one in scored}
    assert {one.candidate.seq for one in found} == before.keys()
    assert len(found) == len(scored)
    assert all(one.score <= before[one.candidate.seq] for one in found)
    assert found[:1] == scored[:1]


# confidence

weights = st.floats(0.0, 12.0)


@given(
    st.lists(st.tuples(weights, weights, st.sampled_from(("Ann", "Bob", None))), max_size=6),
    st.sampled_from(((), ("Ann",), ("Ann", "Bob"), ("Cy",))),
    weights,
)
def test_confidence_is_between_zero_and_one(
    rows: list[tuple[float, float, str | None]], people: tuple[str, ...], mass: float
) -> None:
    marks = [
        make_candidate(
            seq, dense=dense, cover=min(told, mass) / sqrt(mass) if mass else 0.0, actor=actor
        )
        for seq, (dense, told, actor) in enumerate(rows)
    ]
    found = IndexResult(candidates=marks, named_speakers=people, total_weight=mass)
    scored = ranking.rank_candidates(found, NOTHING, PLAIN, 0.01)
    assert 0.0 <= ranking.estimate_confidence(scored, found, PLAIN) <= 1.0


def test_no_results_mean_zero_confidence() -> None:
    assert ranking.estimate_confidence([], IndexResult(), PLAIN) == 0.0


def test_better_query_coverage_raises_confidence() -> None:
    found = IndexResult(total_weight=4.0)
    none, half, all_ = (
        ranking.estimate_confidence(
            [ScoredCandidate(make_candidate(cover=cover), 1.0, {})], found, PLAIN
        )
        for cover in (0.0, 1.0, 2.0)
    )
    assert none < half < all_
    assert half - none == pytest.approx(all_ - half)


def test_matches_by_other_speakers_lower_confidence_in_the_named_one() -> None:
    found = IndexResult(total_weight=1.0, named_speakers=("Ann",))
    ann = ScoredCandidate(make_candidate(1, actor="Ann", cover=1.0), 4.5, {"speaker": 2.5})
    bob = ScoredCandidate(make_candidate(2, actor="Bob", cover=1.0), 2.0, {})
    alone = ranking.estimate_confidence([ann], found, PLAIN)
    assert ranking.estimate_confidence([ann, bob], found, PLAIN) == pytest.approx(alone / 2)
    assert ranking.estimate_confidence([bob], found, PLAIN) == 0.0


@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=6),
    st.sampled_from(((), ((1, 0.5),))),
    st.integers(0, 10**6),
)
def test_a_shown_score_is_monotonic_between_zero_and_one(
    scores: list[float], near: tuple[tuple[int, float], ...], visible: int
) -> None:
    found = IndexResult(by_vector=near, total_weight=4.0, passage_count=visible)
    shown = [ranking.calibrate_score(score, found, PLAIN) for score in sorted(scores)]
    assert shown == sorted(shown)
    assert all(0.0 <= score <= 1.0 for score in shown)


# sums


@given(
    st.lists(
        st.tuples(
            weights, weights, st.sampled_from(("Ann", None)), st.sampled_from(("assistant", "user"))
        )
    )
)
def test_a_score_is_the_sum_of_its_parts(rows: list[tuple[float, float, str | None, str]]) -> None:
    marks = [
        make_candidate(seq, dense=d, cover=c, actor=who, role=role)
        for seq, (d, c, who, role) in enumerate(rows)
    ]
    scored = rank(
        *marks, asks=time_query(NOON, NOON + DAY), settings=Settings(), named_speakers=("Ann",)
    )
    assert all(one.score == pytest.approx(sum(one.parts.values())) for one in scored)
    assert all(better.score >= worse.score for better, worse in pairwise(scored))
    assert len(scored) == len(marks)
