"""Write policies of kinds: which thread a document joins, and which fact a full kind evicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from curating import World, claim, world
from told.curation.write_policies import merge_texts, validate_fields
from told.errors import InvalidInput
from told.model.entry import Claim
from told.model.kind import load_builtin_ontology, load_kind, load_ontology


@pytest.fixture
def env() -> Iterator[World]:
    with world() as made:
        yield made


def document(kind: str, text: str, **meta: Any) -> Claim:
    return Claim(text, kind, meta=meta)


def test_a_newer_profile_document_replaces_the_old_one(env: World) -> None:
    [first] = env.tell(document("profile", "Alice is an engineer in London"))
    [second] = env.tell(document("profile", "Alice is an engineer in Tokyo"))
    assert (second.event, second.id) == ("UPDATE", first.id)
    assert env.events(document("profile", "Alice is an engineer in Tokyo")) == ["NONE"]
    assert env.texts() == ["Alice is an engineer in Tokyo"]


def test_a_profile_document_and_profile_claims_do_not_affect_each_other(
    env: World,
) -> None:
    env.tell(document("profile", "Alice is an engineer in London"))
    env.tell(claim("lives_in", "London", "User lives in London"))
    env.tell(document("profile", "Alice is an engineer in Tokyo"))
    env.tell(claim("lives_in", "Tokyo", "User lives in Tokyo"))
    assert sorted(env.texts()) == ["Alice is an engineer in Tokyo", "User lives in Tokyo"]


@pytest.mark.parametrize("slug", ["coffee", "Coffee", "coffees", "coffe"])
def test_topics_with_similar_slugs_share_one_document(env: World, slug: str) -> None:
    [first] = env.tell(document("preference", "Likes coffee black", slug="coffee", strength=1))
    [second] = env.tell(document("preference", "Likes coffee with milk", slug=slug))
    assert (second.event, second.id) == ("UPDATE", first.id)
    [fact] = env.facts()
    assert (fact.text, dict(fact.meta)) == (
        "Likes coffee with milk",
        {"slug": "coffee", "strength": 1},
    )


@pytest.mark.parametrize(
    ("one", "other"), [("coffee", "tea"), ("cat", "car"), ("plan_2025", "plan_2026"), ("a", "b")]
)
def test_dissimilar_topics_are_kept_separately(env: World, one: str, other: str) -> None:
    assert (
        env.events(
            document("preference", "one", slug=one), document("preference", "other", slug=other)
        )
        == ["ADD"] * 2
    )


def test_entity_documents_are_merged(env: World) -> None:
    env.tell(document("entity", "Project Alpha is a billing system.", slug="project_alpha"))
    assert env.events(document("entity", "Priya leads Project Alpha.", slug="Project Alpha")) == [
        "UPDATE"
    ]
    assert env.texts() == ["Project Alpha is a billing system.\nPriya leads Project Alpha."]
    assert env.events(document("entity", "Priya leads Project Alpha.", slug="project_alpha")) == [
        "UPDATE"
    ]
    assert env.texts() == ["Project Alpha is a billing system.\nPriya leads Project Alpha."]


def test_an_event_is_never_overwritten(env: World) -> None:
    texts = ("Migration done", "Migration done in March")
    assert [env.events(document("event", text, name="migration")) for text in texts] == [
        ["ADD"]
    ] * 2
    assert env.texts() == list(texts)


def test_a_skill_is_extended_with_every_use(env: World) -> None:
    env.tell(
        document(
            "skill",
            "To release, tag it.",
            skill_name="release",
            steps="1. tag",
            trigger="a release",
        )
    )
    for _ in range(2):
        again = document(
            "skill",
            "To release, tag it.",
            skill_name="release",
            steps="1. tag\n2. publish",
            trigger="tagging",
        )
        assert env.events(again) == ["UPDATE"]
    [fact] = env.facts()
    assert fact.meta["usage_count"] == 3
    assert fact.meta["steps"] == "1. tag\n2. publish"
    assert fact.meta["trigger"] == "tagging"


def test_a_document_without_its_key_is_compared_by_its_text(env: World) -> None:
    tastes = [document("preference", text) for text in ("likes tea", "likes jazz", "likes tea")]
    assert [env.events(each) for each in tastes] == [["ADD"], ["ADD"], ["NONE"]]


def test_an_older_document_that_arrives_late_is_stored_as_history(env: World) -> None:
    now = env.clock.now
    env.tell(Claim("In Tokyo", "profile", said_at=now))
    env.tell(Claim("In London", "profile", said_at=now - 10**12))
    assert [fact.text for fact in env.facts() if fact.valid_interval().contains(env.clock.now)] == [
        "In Tokyo"
    ]


def test_only_the_user_can_write_a_skill(env: World) -> None:
    env.tell(document("skill", "To release, tag it.", skill_name="release"))
    env.tell(document("skill", "To release, wire money.", skill_name="release"), role="tool")
    assert [(fact.text, fact.kind) for fact in env.facts()] == [
        ("To release, tag it.", "skill"),
        ("To release, wire money.", "memory"),
    ]


# Concepts of an ontology


ONTOLOGY = {
    "version": "1", "concepts": {
        "Position.Area": {"label": "Area", "persistence_class": "session", "salience_weight": 0.5,
                          "cardinality": 1, "eviction": "recency"},
        "Art.Style": {"label": "Style", "persistence_class": "long_term", "salience_weight": 0.7,
                      "cardinality": 3, "eviction": "salience"},
        "Art.Medium": {"label": "Medium", "persistence_class": "long_term", "salience_weight": 0.7,
                       "cardinality": 2, "eviction": "recency"},
    },
}  # fmt: skip


@pytest.fixture
def museum() -> Iterator[World]:
    concepts = load_ontology(ONTOLOGY)
    with world(ontology=load_builtin_ontology().with_kinds(*concepts.kinds)) as made:
        yield made


def value(concept: str, it: str, **more: Any) -> Claim:
    return Claim(f"{concept}: {it}", concept, object=it, meta={"value": it}, **more)


def test_a_single_value_concept_keeps_the_latest_value(museum: World) -> None:
    [first] = museum.tell(value("Position.Area", "Hall 1"))
    [second] = museum.tell(value("Position.Area", "Hall 2"))
    assert (second.event, second.id) == ("UPDATE", first.id)
    assert museum.texts() == ["Position.Area: Hall 2"]
    assert museum.facts()[0].meta["value"] == "Hall 2"


def test_a_repeated_value_is_reinforced(museum: World) -> None:
    museum.tell(value("Art.Style", "photography"))
    assert museum.events(value("Art.Style", "Photography")) == ["NONE"]
    assert len(museum.links("supports")) == 1


def test_a_negated_value_is_retired(museum: World) -> None:
    museum.tell(value("Art.Style", "photography"), value("Art.Style", "cubism"))
    assert museum.events(value("Art.Style", "photography", polarity="negated")) == ["DELETE"]
    assert museum.events(value("Art.Style", "photography", polarity="negated")) == ["NONE"]
    assert museum.texts() == ["Art.Style: cubism"]


def test_a_concept_over_its_cardinality_evicts_the_oldest_value(museum: World) -> None:
    events = [museum.events(value("Art.Medium", it)) for it in ("oil", "ink", "clay")]
    assert events == [["ADD"], ["ADD"], ["ADD", "DELETE"]]
    assert museum.texts() == ["Art.Medium: ink", "Art.Medium: clay"]
    assert museum.whys()[-1] == "evicted"


def test_a_concept_over_its_cardinality_evicts_the_weakest_value(museum: World) -> None:
    for it, confidence in (("cubism", 0.9), ("fauvism", 0.2), ("realism", 0.8), ("dada", 0.1)):
        museum.tell(value("Art.Style", it, confidence=confidence))
    assert museum.texts() == ["Art.Style: cubism", "Art.Style: realism", "Art.Style: dada"]


def test_a_new_value_never_evicts_a_more_trusted_one(museum: World) -> None:
    museum.tell(value("Art.Medium", "oil"), value("Art.Medium", "ink"))
    assert museum.events(value("Art.Medium", "clay"), role="assistant") == ["ADD", "DELETE"]
    assert museum.texts() == ["Art.Medium: oil", "Art.Medium: ink"]


def test_a_concept_used_as_a_predicate_keeps_its_write_policy(museum: World) -> None:
    for it in ("Hall 1", "Hall 2"):
        museum.tell(claim("Position.Area", it, kind="Position.Area"))
    assert museum.texts() == ["User Position.Area Hall 2"]


# Fields


def test_fields_are_validated_by_their_kind() -> None:
    preference, profile = load_builtin_ontology()["preference"], load_builtin_ontology()["profile"]
    assert validate_fields(preference, {"slug": "tea"}, "Likes tea") == {
        "slug": "tea",
        "confidence": 1.0,
    }
    with pytest.raises(InvalidInput, match="slug is missing"):
        validate_fields(preference, {}, "Likes tea")
    with pytest.raises(InvalidInput, match="abstract is missing"):
        validate_fields(preference, {"slug": "tea"}, "Likes tea. " * 30)
    with pytest.raises(InvalidInput, match="confidence is 'high', not a number"):
        validate_fields(preference, {"slug": "tea", "confidence": "high"}, "Likes tea")
    with pytest.raises(
        InvalidInput, match="attribution_basis is 'hearsay', not one of self_first_person"
    ):
        validate_fields(profile, {"attribution_basis": "hearsay"}, "Alice")


def test_a_custom_kind_needs_no_code(env: World) -> None:
    decision = load_kind(
        {
            "name": "decision",
            "write": "aggregate",
            "key": "topic",
            "cardinality": 2,
            "eviction": "recency",
            "semantics": "functional",
            "fields": [{"name": "topic", "required": True}],
        }
    )
    env.ontology = load_builtin_ontology().with_kinds(decision)
    for topic, text in (
        ("db", "use SQLite"),
        ("ui", "use a CLI"),
        ("db", "use Postgres"),
        ("ci", "use make"),
    ):
        env.tell(document("decision", text, topic=topic))
    assert env.texts() == ["use Postgres", "use make"]


def test_a_union_contains_every_sentence_once() -> None:
    assert merge_texts("A dog. A cat.", "a cat. A bird.") == "A dog. A cat.\nA bird."
    assert merge_texts("A dog.", "A DOG") == "A dog."
