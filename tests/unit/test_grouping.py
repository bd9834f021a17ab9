"""What belongs to a turn, when a turn is stale, and how a turn and its claims become one."""

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


def scored(seq: int, score: float, slot: int = 0) -> ScoredCandidate:
    return ScoredCandidate(Candidate(seq, slot, 0, seq), score, {"dense": score})


TURN_1 = fact(1, "I live in NYC and work at Acme", kind=TURN)
HOME, JOB = fact(2, "User lives in NYC", "home"), fact(3, "User works at Acme", "job")
MOVED = fact(5, "User lives in Oslo", "home", evidence="e2")


def ended(one: Fact, until: int, gone: int = NEVER) -> Fact:
    return Fact(
        **{name: getattr(one, name) for name in one.__dataclass_fields__}
        | {"until": until, "gone": gone}
    )


# Kindred


def test_a_turn_knows_what_is_held_of_it_and_what_replaced_the_rest() -> None:
    kins = group_by_evidence([TURN_1, ended(HOME, 5), JOB, MOVED], NOW, {})
    assert kins["e1"] == EvidenceGroup(TURN_1, (JOB,), ((ended(HOME, 5), MOVED),))
    assert kins["e2"] == EvidenceGroup(None, (MOVED,))


def test_at_an_earlier_moment_nothing_had_been_replaced() -> None:
    lives = [TURN_1, ended(HOME, 5), JOB, MOVED]
    assert group_by_evidence(lives, AsOf(4, 0), {})["e1"] == EvidenceGroup(
        TURN_1, (ended(HOME, 5), JOB)
    )
    assert "e2" not in group_by_evidence(lives, AsOf(4, 0), {})


def test_a_claim_that_was_given_up_has_no_heir() -> None:
    assert group_by_evidence([TURN_1, ended(HOME, 9, 9)], NOW, {})["e1"] == EvidenceGroup(
        TURN_1, (), ((ended(HOME, 9, 9), None),)
    )


def test_another_version_on_the_same_words_replaces_nothing() -> None:
    again = fact(6, "User lives in NYC", "home", meta={"checked": True})
    assert group_by_evidence([TURN_1, ended(HOME, 6), again], NOW, {})["e1"] == EvidenceGroup(
        TURN_1, (again,)
    )


def test_what_lost_a_contradiction_is_replaced_by_what_won_it() -> None:
    assert group_by_evidence([TURN_1, HOME], NOW, {"home": MOVED})["e1"] == EvidenceGroup(
        TURN_1, (), ((HOME, MOVED),)
    )


def test_nodes_and_doubts_are_no_claims() -> None:
    assert group_by_evidence(
        [TURN_1, fact(2, "x", kind="node"), fact(3, "y", kind="quarantine")], NOW, {}
    )["e1"] == EvidenceGroup(TURN_1)


# Stale

KIN = EvidenceGroup(TURN_1, (JOB,), ((HOME, MOVED),))


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
def test_a_turn_is_stale_where_what_replaced_it_answers_as_well_and_better_than_what_is_left(
    relevance: Mapping[int, float], is_stale: bool
) -> None:
    assert (detect_stale_turn(KIN, relevance.get, frozenset()) == StaleTurn(MOVED)) is is_stale


@pytest.mark.parametrize(
    ("query", "is_stale"),
    [({"live"}, True), ({"nyc"}, False), ({"live", "nyc"}, False), ({"zebra"}, False)],
)
def test_a_turn_is_stale_too_where_what_replaced_it_has_every_word_of_it_that_is_asked_for(
    query: set[str], is_stale: bool
) -> None:
    far = {1: 9.0, 5: 3.0, 3: 2.0}
    assert (detect_stale_turn(KIN, far.get, frozenset(query)) == StaleTurn(MOVED)) is is_stale


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
def test_of_what_was_given_up_the_words_decide(
    query: set[str], held: tuple[Fact, ...], is_stale: bool
) -> None:
    kin = EvidenceGroup(TURN_1, held, ((HOME, None),))
    assert (detect_stale_turn(kin, lambda _: None, frozenset(query)) == StaleTurn()) is is_stale


def test_what_was_never_replaced_is_never_stale() -> None:
    assert detect_stale_turn(EvidenceGroup(TURN_1, (HOME, JOB)), {1: 1.0}.get, frozenset()) is None
    assert (
        detect_stale_turn(EvidenceGroup(None, (), ((HOME, MOVED),)), {5: 1.0}.get, frozenset())
        is None
    )


# Folding


def order(found: list[ScoredCandidate]) -> list[tuple[int, float]]:
    return [(one.candidate.seq, round(one.score, 3)) for one in found]


WHOLE = EvidenceGroup(TURN_1, (HOME, JOB))


def test_a_search_gives_the_place_of_the_turn_to_its_best_claim() -> None:
    done = group_turns_and_claims(
        [scored(1, 9), scored(7, 8), scored(3, 5), scored(2, 4)], [WHOLE], {}, verbatim=False
    )
    assert order(done.scored) == [(3, 9), (7, 8), (2, 4)]
    assert done.merged_into == {1: 3}


def test_a_context_gives_the_claims_to_the_turn_which_meets_the_best_half_way() -> None:
    done = group_turns_and_claims(
        [scored(3, 9), scored(7, 8), scored(1, 5), scored(2, 4)], [WHOLE], {}, verbatim=True
    )
    assert order(done.scored) == [(7, 8), (1, 7)]
    assert done.merged_into == {2: 1, 3: 1}


def test_words_that_were_not_found_take_the_place_of_the_claim_that_leads_to_them() -> None:
    done = group_turns_and_claims([scored(3, 9), scored(7, 8)], [WHOLE], {}, verbatim=True)
    assert order(done.scored) == [(1, 9), (7, 8)]
    assert [one.candidate.seq for one in done.added_utterances] == [1]


def test_long_words_that_were_not_found_stay_where_they_are() -> None:
    long = EvidenceGroup(fact(1, "word " * 300, kind=TURN), (HOME,))
    assert order(group_turns_and_claims([scored(2, 9)], [long], {}, verbatim=True).scored) == [
        (2, 9)
    ]


@pytest.mark.parametrize("verbatim", [True, False])
def test_a_stale_turn_stands_just_below_what_replaced_it(verbatim: bool) -> None:
    done = group_turns_and_claims(
        [scored(1, 9), scored(7, 8), scored(5, 5)], [KIN], {1: StaleTurn(MOVED)}, verbatim=verbatim
    )
    assert [seq for seq, _ in order(done.scored)] == [5, 1, 7]
    assert done.scored[0].score == 9


def test_who_asks_for_the_past_finds_a_stale_turn_where_it_was() -> None:
    found = [scored(1, 9), scored(3, 6), scored(5, 5)]
    assert order(
        group_turns_and_claims(
            found, [KIN], {1: StaleTurn(MOVED)}, verbatim=False, asks_past=True
        ).scored
    ) == [(1, 9), (3, 6), (5, 5)]


def test_only_the_best_passage_of_a_long_turn_is_raised() -> None:
    done = group_turns_and_claims(
        [scored(3, 9), scored(1, 5, 1), scored(1, 4, 0)], [WHOLE], {}, verbatim=True
    )
    assert [(one.candidate.slot, one.score) for one in done.scored] == [(1, 7.0), (0, 4)]
