"""The labelled data is consistent, and the scorer tells correct claims from wrong ones."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from labels import (
    SPLITS,
    Outcome,
    Triple,
    Update,
    _faults,
    accuracy,
    by_style,
    forbidden,
    held_against,
    implied,
    judge,
    matches,
    measure,
    same_predicate,
    same_subject,
    same_value,
    total,
    updates,
    utterances,
)
from tables import each_row
from told.flow import Flow
from told.ingest.types import QUARANTINED, ExtractedClaim, ExtractionInput, ExtractionResult
from told.model.entry import Claim
from told.model.kind import FAVOURITE_PREFIX, PREDICATES
from told.text.dates import ALWAYS, Interval, parse_instant

NOW = parse_instant("2026-06-15T12:00:00Z")
STYLES = {
    "asking",
    "asking-with-facts",
    "assistant-tool",
    "change",
    "chit-chat",
    "code",
    "dates",
    "hedged",
    "hypothetical",
    "list",
    "long",
    "lower",
    "multi",
    "named",
    "negated",
    "non-english",
    "plain",
    "reported",
    "sarcastic",
    "third-party",
    "third-person",
    "typos",
}


def claim_of(triple: Triple) -> Claim:
    """Return the claim a perfect extractor makes for a label."""
    name, polarity = triple.predicates[0]
    subject, value = triple.subjects[0], triple.objects[0]
    text = f"{subject} {name} {value}"
    valid = Interval(parse_instant(triple.on), None, "day") if triple.on else ALWAYS
    return Claim(
        text, subject=subject, predicate=name, object=value, polarity=polarity, valid=valid
    )


@dataclass
class Oracle:
    """An extractor that knows the labels and can add or omit claims."""

    split: str
    name: str = "oracle"
    local: bool = True
    more: tuple[Claim, ...] = ()
    every: int = 1
    known: dict[str, list[Claim]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = {
            one.heard().turns[0].evidence.content: [
                claim_of(triple) for triple in one.required[:: self.every]
            ]
            for one in utterances(self.split)
        }

    def extract(self, inputs: ExtractionInput) -> Flow[ExtractionResult]:
        yield from ()
        claims = (*self.known[inputs.turns[0].evidence.content], *self.more)
        return ExtractionResult(tuple(ExtractedClaim(claim, 0) for claim in claims))


# The data


def test_the_splits_are_halves_of_the_same_styles():
    halves = {split: Counter(one.style for one in utterances(split)) for split in SPLITS}
    assert set(halves["dev"]) == set(halves["test"]) == STYLES
    assert sum(halves["dev"].values()) + sum(halves["test"].values()) >= 360
    for style in STYLES:
        assert abs(halves["dev"][style] - halves["test"][style]) <= 3


def test_utterances_are_unique():
    said = [one.text for split in SPLITS for one in utterances(split)]
    ids = [one.id for split in SPLITS for one in utterances(split)]
    assert len(said) == len({*said})
    assert len(ids) == len({*ids})


@pytest.mark.parametrize("split", SPLITS)
def test_labels_use_known_predicates(split):
    triples = [
        one
        for each in utterances(split)
        for one in (*each.gold, *each.never)
        if isinstance(one, Triple)
    ]
    names = {name for one in triples for name, _ in one.predicates}
    assert not {
        name for name in names if name not in PREDICATES and not name.startswith(FAVOURITE_PREFIX)
    }


@pytest.mark.parametrize("split", SPLITS)
def test_no_label_forbids_what_another_requires(split):
    for one in utterances(split):
        clash = [str(triple) for triple in one.required if forbidden(claim_of(triple), one, NOW)]
        assert not clash, one.id


@pytest.mark.parametrize("split", SPLITS)
def test_required_values_occur_in_the_text(split):
    """At least one word of every value must occur in the utterance."""
    for one in utterances(split):
        for triple in one.required:
            parts = {part.casefold()[:4] for value in triple.objects for part in value.split()}
            assert any(part in one.text.casefold() for part in parts), f"{one.id}: {triple}"


@pytest.mark.parametrize("split", SPLITS)
def test_an_oracle_extractor_scores_perfectly(split):
    score = total(measure(split, Oracle(split)))
    assert (score.precision, score.recall, score.f1, score.wrong, score.forbidden) == (
        1,
        1,
        1,
        0,
        0,
    )
    assert score.dated == score.well_dated > 0


@pytest.mark.parametrize("split", SPLITS)
def test_the_updates_are_numerous_and_each_can_fail(split):
    found = updates(split)
    assert len(found) >= 60
    assert len({one.id for one in found}) == len(found)
    assert {event for one in found for event in one.expect} == {"ADD", "UPDATE", "DELETE", "NONE"}
    assert all(len(one.expect) < 4 or one.now or one.gone or one.kept for one in found)


# The scorer


def test_an_unwanted_claim_costs_precision_not_recall():
    alone = measure("dev", Oracle("dev"))
    made_up = Claim("User owns a zeppelin", subject="User", predicate="owns", object="zeppelin")
    score = total(measure("dev", Oracle("dev", more=(made_up,))))
    assert (score.recall, score.wrong) == (1, len(alone))
    assert score.precision == pytest.approx(score.right / (score.right + len(alone)))


def test_a_missing_claim_costs_recall_not_precision():
    score = total(measure("dev", Oracle("dev", every=2)))
    assert score.precision == 1
    assert 0.4 < score.recall < 0.9


def test_a_quarantined_claim_does_not_count():
    doubtful = Claim(
        "User owns a zeppelin",
        subject="User",
        predicate="owns",
        object="zeppelin",
        modality=QUARANTINED,
    )
    assert total(measure("dev", Oracle("dev", more=(doubtful,)))).wrong == 0


def test_every_style_is_counted_separately():
    judged = measure("dev", Oracle("dev"))
    styles = by_style(judged)
    assert set(styles) == STYLES
    assert sum(score.wanted for score in styles.values()) == total(judged).wanted


def test_a_duplicate_claim_is_neither_right_nor_wrong():
    one = next(one for one in utterances("dev") if len(one.required) == 1)
    claims = [claim_of(one.required[0])] * 3
    score = held_against(one, claims, NOW).score
    assert (score.right, score.wrong, score.found) == (1, 0, 1)


def test_a_forbidden_claim_is_counted_as_wrong():
    one = next(one for one in utterances("dev") if one.id.startswith("asking-0") and one.never)
    [claim, *_] = [claim_of(triple) for triple in one.never if isinstance(triple, Triple)]
    judged = held_against(one, [claim], NOW)
    assert (judged.score.wrong, judged.score.forbidden, judged.wrong) == (1, 1, (claim,))


@each_row(
    ("wanted", "given", "same"),
    [
        ("Gdańsk", "gdansk", True),
        ("data scientist", "a data scientist", True),
        ("Porto", "Porto, Portugal", True),
        ("software engineer", "sofware enginer", True),
        ("two cats", "2 cats", True),
        ("大阪", "大阪", True),
        ("hiking", "hike", True),
        ("Rome", "Rome last summer", True),
        ("cats", "dogs", False),
        ("two cats", "two dogs", False),
        ("Java", "JavaScript", False),
        ("30", "36", False),
        ("Rome", "Rome and then we all went home by train", False),
        ("", "x", False),
        ("大阪", "東京", False),
        ("Berlin marathon", "Berlin", False),
        ("emojis", "no emojis", False),
        ("no emojis", "without emojis", True),
    ],
)
def test_values_are_compared_with_some_tolerance(wanted, given, same):
    assert same_value(wanted, given) is same


@each_row(
    ("wanted", "given", "same"),
    [
        ("User", "User", True),
        ("User", None, True),
        ("User", "the user", True),
        ("User", "User's wife", False),
        ("User's wife", "User", False),
        ("User's mum", "User's mother", True),
        ("Anna", "User's wife Anna", True),
        ("User's wife", "User's wife", True),
        ("User's wife", "User's sister", False),
        ("Anna", None, False),
        ("Melvin", "Melvin's son", False),
    ],
)
def test_subjects_are_distinguished(wanted, given, same):
    assert same_subject(wanted, given) is same


def test_favourites_match_at_different_levels_of_detail():
    assert same_predicate("favourite_colour", "favorite_color")
    assert same_predicate("favourite_language", "favourite_programming_language")
    assert not same_predicate("favourite_colour", "favourite_food")
    assert not same_predicate("likes", "dislikes")


LIVES = Triple(("User",), (("lives_in", "asserted"),), ("Seoul",))
LIVED = Triple(("User",), (("lives_in", "negated"),), ("Seoul",))


def claim(**more) -> Claim:
    return Claim(
        "User lives in Seoul",
        **{"subject": "User", "predicate": "lives_in", "object": "Seoul", **more},
    )


def test_an_ended_state_matches_a_denied_one():
    ended = claim(valid=Interval(parse_instant("2014"), parse_instant("2017"), "year"))
    assert matches(claim(), LIVES, NOW)
    assert not matches(claim(), LIVED, NOW)
    for denied in (ended, claim(polarity="negated")):
        assert matches(denied, LIVED, NOW)
        assert not matches(denied, LIVES, NOW)


def test_one_claim_can_match_two_labels():
    both = Claim(
        "User works at Acme as a chemist", subject="User", predicate="works_at", object="Acme"
    )
    works_as = Triple(("User",), (("works_as", "asserted"),), ("chemist",))
    assert matches(both, works_as, NOW)
    assert not matches(claim(), works_as, NOW)


def test_a_claim_without_a_predicate_is_judged_by_its_text():
    bare = Claim("User lives in Seoul")
    assert matches(bare, LIVES, NOW)
    assert not matches(Claim("User's wife lives in Seoul"), LIVES, NOW)
    assert not matches(Claim("User lives in Busan"), LIVES, NOW)


def test_naming_a_person_from_the_labels_is_not_an_error():
    gold = (Triple(("Lena", "User's daughter"), (("age", "asserted"),), ("4",)), LIVES)
    fair = {
        "User's daughter": ("name", "Lena"),
        "User": ("has_child", "Lena"),
        "the user": ("has_child", "daughter"),
    }
    for subject, (name, value) in fair.items():
        assert implied(Claim("", subject=subject, predicate=name, object=value), gold)
    for name, value in (
        ("name", "Lena"),
        ("has_child", "Max"),
        ("owns", "Lena"),
        ("relationship_status", "married"),
    ):
        assert not implied(Claim("", subject="User", predicate=name, object=value), gold)


def test_the_extractor_gets_the_speaker_and_time_of_the_utterance():
    one = next(one for one in utterances("dev") if one.style == "named" and one.required)
    heard = one.heard()
    assert heard.turns[0].evidence.name == one.said[0]["name"]
    assert heard.now == parse_instant(one.at)
    assert judge(one, Oracle("dev")).missed == ()


# Updates

STEPS = ("I'm Ida, I live in Bonn", "I live in Ulm")
MOVED = Update("x", "functional", STEPS, ("UPDATE",), ("Ulm",), ("lives in Bonn",), ("Ida",))


@each_row(
    ("events", "held", "fault"),
    [
        (["UPDATE"], ["User lives in Ulm", "User's name is Ida"], None),
        (
            ["UPDATE", "NONE"],
            ["User lives in Ulm", "User's name is Ida", "User no longer lives in Bonn"],
            None,
        ),
        (["ADD"], ["User lives in Ulm", "User's name is Ida"], "ADD, not UPDATE"),
        (["UPDATE", "DELETE"], ["User lives in Ulm", "User's name is Ida"], "DELETE/UPDATE"),
        ([], ["User lives in Ulm", "User's name is Ida"], "NONE, not UPDATE"),
        (["UPDATE"], ["User lives in Ulm"], "'Ida' is not held"),
        (["UPDATE"], ["User's name is Ida"], "'Ulm' is not held"),
        (
            ["UPDATE"],
            ["User lives in Ulm", "User lives in Bonn", "User's name is Ida"],
            "still held",
        ),
    ],
)
def test_an_update_is_scored_by_its_event_and_the_resulting_facts(events, held, fault):
    faults = [*_faults(MOVED, events, held)]
    assert faults == [] if fault is None else fault in " ".join(faults)
    assert accuracy([Outcome(MOVED, (), (), tuple(faults))]) == (fault is None)


def test_a_fact_about_another_person_is_not_the_users():
    update = Update("x", "others", ("a", "b"), ("ADD",), gone=("User works at Bosch",))
    assert not [*_faults(update, ["ADD"], ["User's wife works at Bosch"])]
    assert [*_faults(update, ["ADD"], ["User works at Bosch"])]
