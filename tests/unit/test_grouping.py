"""Grouping turns with their claims, and detection of stale turns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tables import each_row
from told.model.fact import NEVER, TURN, Fact
from told.model.query import LATEST, AsOf, Candidate
from told.model.scope import Scope
from told.retrieval.grouping import (
    EvidenceGroup,
    StaleTurn,
    detect_stale_turn,
    group_by_evidence,
    group_turns_and_claims,
)
from told.retrieval.ranking import ScoredCandidate
from told.text.tokens import md5_hex

NOW = AsOf(LATEST, 0)
SCOPE = Scope(user_id="u")


def fact(
    seq: int,
    text: str,
    id: str = "",
    kind: str = "profile",
    evidence: str | None = "e1",
    **more: object,
) -> Fact:
    author = "user" if kind in (TURN, "memory") else "local"
    return Fact(
        id or f"f{seq}",
        seq,
        seq,
        SCOPE,
        text,
        md5_hex(text),
        kind,
        author=author,
        evidence=evidence,
        **more,
    )  # type: ignore[arg-type]


def make_scored(seq: int, score: float, slot: int = 0) -> ScoredCandidate:
    return ScoredCandidate(Candidate(seq, slot, 0, seq), score, {"dense": score})


TURN_1 = fact(1, "I live in NYC and work at Acme", kind=TURN)
HOME, JOB = fact(2, "User lives in NYC", "home"), fact(3, "User works at Acme", "job")
MOVED = fact(5, "User lives in Oslo", "home", evidence="e2")


def end_fact(one: Fact, until: int, gone: int = NEVER) -> Fact:
    return Fact(
        **{name: getattr(one, name) for name in one.__dataclass_fields__}
        | {"until": until, "gone": gone}
    )


# Evidence groups


def test_a_group_lists_current_claims_and_replacements() -> None:
    kins = group_by_evidence([TURN_1, end_fact(HOME, 5), JOB, MOVED], NOW, {})
    assert kins["e1"] == EvidenceGroup(TURN_1, (JOB,), ((end_fact(HOME, 5), MOVED),))
    assert kins["e2"] == EvidenceGroup(None, (MOVED,))


def test_an_earlier_as_of_time_has_no_replacements() -> None:
    lives = [TURN_1, end_fact(HOME, 5), JOB, MOVED]
    assert group_by_evidence(lives, AsOf(4, 0), {})["e1"] == EvidenceGroup(
        TURN_1, (end_fact(HOME, 5), JOB)
    )
    assert "e2" not in group_by_evidence(lives, AsOf(4, 0), {})


def test_a_retracted_claim_has_no_replacement() -> None:
    assert group_by_evidence([TURN_1, end_fact(HOME, 9, 9)], NOW, {})["e1"] == EvidenceGroup(
        TURN_1, (), ((end_fact(HOME, 9, 9), None),)
    )


def test_a_new_version_from_the_same_evidence_is_no_replacement() -> None:
    again = fact(6, "User lives in NYC", "home", meta={"checked": True})
    assert group_by_evidence([TURN_1, end_fact(HOME, 6), again], NOW, {})["e1"] == EvidenceGroup(
        TURN_1, (again,)
    )


def test_the_loser_of_a_contradiction_is_replaced_by_the_winner() -> None:
    assert group_by_evidence([TURN_1, HOME], NOW, {"home": MOVED})["e1"] == EvidenceGroup(
        TURN_1, (), ((HOME, MOVED),)
    )


def test_nodes_and_quarantined_facts_are_not_claims() -> None:
    assert group_by_evidence(
        [TURN_1, fact(2, "x", kind="node"), fact(3, "y", kind="quarantine")], NOW, {}
    )["e1"] == EvidenceGroup(TURN_1)


# Stale turns

GROUP = EvidenceGroup(TURN_1, (JOB,), ((HOME, MOVED),))


@each_row(
    ("relevance", "is_stale"),
    [
        ({1: 9.0, 5: 9.0, 3: 2.0}, True),
        ({1: 9.0, 5: 7.5, 3: 2.0}, True),
        ({1: 9.0, 5: 6.0, 3: 2.0}, False),
        ({1: 9.0, 5: 8.0, 3: 8.5}, False),
        ({1: 9.0, 3: 2.0}, False),
        ({5: 3.0}, True),
        ({1: 9.0, 5: 9.0}, True),
    ],
)
def test_a_turn_is_stale_if_its_replacement_is_more_relevant_than_its_remaining_claims(
    relevance: Mapping[int, float], is_stale: bool
) -> None:
    assert (detect_stale_turn(GROUP, relevance.get, frozenset()) == StaleTurn(MOVED)) is is_stale


@pytest.mark.parametrize(
    ("query", "is_stale"),
    [({"live"}, True), ({"nyc"}, False), ({"live", "nyc"}, False), ({"zebra"}, False)],
)
def test_a_turn_is_stale_if_its_replacement_has_every_query_word_of_the_turn(
    query: set[str], is_stale: bool
) -> None:
    far = {1: 9.0, 5: 3.0, 3: 2.0}
    assert (detect_stale_turn(GROUP, far.get, frozenset(query)) == StaleTurn(MOVED)) is is_stale


@each_row(
    ("query", "held", "is_stale"),
    [
        ({"live"}, (), True),
        ({"live"}, (JOB,), True),
        ({"acm"}, (JOB,), False),
        ({"live", "acm"}, (JOB,), False),
        ({"acm"}, (), False),
        (set(), (), True),
        (set(), (JOB,), False),
        ({"zebra"}, (JOB,), False),
    ],
)
def test_staleness_after_a_retraction_depends_on_the_query_words(
    query: set[str], held: tuple[Fact, ...], is_stale: bool
) -> None:
    kin = EvidenceGroup(TURN_1, held, ((HOME, None),))
    assert (detect_stale_turn(kin, lambda _: None, frozenset(query)) == StaleTurn()) is is_stale


def test_a_turn_without_replacements_is_never_stale() -> None:
    assert detect_stale_turn(EvidenceGroup(TURN_1, (HOME, JOB)), {1: 1.0}.get, frozenset()) is None
    assert (
        detect_stale_turn(EvidenceGroup(None, (), ((HOME, MOVED),)), {5: 1.0}.get, frozenset())
        is None
    )


# Merging turns and claims


def seqs_and_scores(found: list[ScoredCandidate]) -> list[tuple[int, float]]:
    return [(one.candidate.seq, round(one.score, 3)) for one in found]


TURN_GROUP = EvidenceGroup(TURN_1, (HOME, JOB))


def test_a_search_replaces_the_turn_with_its_best_claim() -> None:
    done = group_turns_and_claims(
        [make_scored(1, 9), make_scored(7, 8), make_scored(3, 5), make_scored(2, 4)],
        [TURN_GROUP],
        {},
        verbatim=False,
    )
    assert seqs_and_scores(done.scored) == [(3, 9), (7, 8), (2, 4)]
    assert done.merged_into == {1: 3}


def test_a_context_merges_claims_into_the_turn_at_the_mean_score() -> None:
    done = group_turns_and_claims(
        [make_scored(3, 9), make_scored(7, 8), make_scored(1, 5), make_scored(2, 4)],
        [TURN_GROUP],
        {},
        verbatim=True,
    )
    assert seqs_and_scores(done.scored) == [(7, 8), (1, 7)]
    assert done.merged_into == {2: 1, 3: 1}


def test_a_turn_that_was_not_found_takes_the_place_of_its_claim() -> None:
    done = group_turns_and_claims(
        [make_scored(3, 9), make_scored(7, 8)], [TURN_GROUP], {}, verbatim=True
    )
    assert seqs_and_scores(done.scored) == [(1, 9), (7, 8)]
    assert [one.candidate.seq for one in done.added_utterances] == [1]


def test_a_long_turn_that_was_not_found_is_not_added() -> None:
    long = EvidenceGroup(fact(1, "word " * 300, kind=TURN), (HOME,))
    assert seqs_and_scores(
        group_turns_and_claims([make_scored(2, 9)], [long], {}, verbatim=True).scored
    ) == [(2, 9)]


@pytest.mark.parametrize("verbatim", [True, False])
def test_a_stale_turn_ranks_just_below_its_replacement(verbatim: bool) -> None:
    done = group_turns_and_claims(
        [make_scored(1, 9), make_scored(7, 8), make_scored(5, 5)],
        [GROUP],
        {1: StaleTurn(MOVED)},
        verbatim=verbatim,
    )
    assert [seq for seq, _ in seqs_and_scores(done.scored)] == [5, 1, 7]
    assert done.scored[0].score == 9


def test_a_query_about_the_past_keeps_a_stale_turn_in_place() -> None:
    found = [make_scored(1, 9), make_scored(3, 6), make_scored(5, 5)]
    assert seqs_and_scores(
        group_turns_and_claims(
            found, [GROUP], {1: StaleTurn(MOVED)}, verbatim=False, asks_past=True
        ).scored
    ) == [(1, 9), (3, 6), (5, 5)]


def test_only_the_best_passage_of_a_long_turn_is_raised() -> None:
    done = group_turns_and_claims(
        [make_scored(3, 9), make_scored(1, 5, 1), make_scored(1, 4, 0)],
        [TURN_GROUP],
        {},
        verbatim=True,
    )
    assert [(one.candidate.slot, one.score) for one in done.scored] == [(1, 7.0), (0, 4)]
