"""Trust levels, belief strategies, contradictions and revoked sources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from curating import World, claim, world
from told.curation.revoke import load_contradictions, revoke_source
from told.errors import InvalidInput
from told.flow import run
from told.ingest.context import ExtractionConfig, WriteContext
from told.ledger.history import load_history
from told.ledger.views import fold_all
from told.model.beliefs import (
    BELIEFS,
    Trust,
    lowest_trust,
    may_replace,
    safe_kind,
    select_believed,
    trust_of_channel,
    trust_of_claim,
)
from told.model.entry import Asserted, Claim, Draft, Linked
from told.model.fact import QUARANTINE
from told.ports import Batch
from told.settings import Settings


@pytest.fixture
def env() -> Iterator[World]:
    with world() as made:
        yield made


# Trust


def test_trust_levels_are_ordered_by_role_and_source() -> None:
    assert Trust.USER > Trust.TOOL > Trust.INFERENCE > Trust.DOCUMENT
    assert [trust_of_channel(role) for role in ("user", "tool", "assistant", "system", None)] == [
        Trust.USER,
        Trust.TOOL,
        Trust.INFERENCE,
        Trust.DOCUMENT,
        Trust.USER,
    ]
    assert (
        trust_of_channel("user", "document") is trust_of_channel("tool", "image") is Trust.DOCUMENT
    )
    assert trust_of_channel(None, author="summary:m") is Trust.INFERENCE


def test_combined_trust_is_the_lowest_of_its_sources() -> None:
    assert lowest_trust([Trust.USER, Trust.DOCUMENT, Trust.TOOL]) is Trust.DOCUMENT
    assert lowest_trust([]) is Trust.INFERENCE


def test_trust_metadata_can_only_lower_trust() -> None:
    assert trust_of_claim(Claim("x", role="user", meta={"trust": "tool"})) is Trust.TOOL
    assert trust_of_claim(Claim("x", role="assistant", meta={"trust": "user"})) is Trust.INFERENCE
    assert trust_of_claim(Claim("x", role="user", meta={"trust": ["odd"]})) is Trust.USER
    assert trust_of_claim(Claim("x", role="user", modality="inferred")) is Trust.INFERENCE


def test_only_equal_or_higher_trust_may_replace_a_fact() -> None:
    touches = {(new, held): may_replace(new, held) for new in Trust for held in Trust}
    assert all(allowed == (new >= held) for (new, held), allowed in touches.items())
    assert safe_kind("profile", Trust.TOOL) == "memory"
    assert (safe_kind("profile", Trust.USER), safe_kind("event", Trust.DOCUMENT)) == (
        "profile",
        "event",
    )


# Beliefs


def add_birthplaces(env: World) -> None:
    """Add three birthplaces: the first three times, the second by a tool, the third last."""
    env.tell(claim("born_in", "Oslo", "User was born in Oslo"))
    env.tell(claim("born_in", "Lima", "User was born in Lima"))
    env.tell(claim("likes", "tea"))
    for _ in range(2):
        env.tell(claim("born_in", "Oslo", "User was born in Oslo"))


def test_a_belief_strategy_selects_among_contradicting_facts(env: World) -> None:
    add_birthplaces(env)
    facts = env.facts()
    links = env.store.find_links("default", [fact.id for fact in facts])
    chosen = {
        belief: [fact.text for fact in select_believed(facts, links, belief)] for belief in BELIEFS
    }
    assert chosen == {
        "latest": ["User was born in Lima", "User likes tea"],
        "all": ["User was born in Oslo", "User was born in Lima", "User likes tea"],
        "majority": ["User was born in Oslo", "User likes tea"],
        "trusted": ["User was born in Lima", "User likes tea"],
    }


def test_the_trusted_strategy_selects_the_most_trusted_fact(env: World) -> None:
    env.tell(claim("born_in", "Lima", "User was born in Lima"), role="tool")
    env.tell(claim("born_in", "Oslo", "User was born in Oslo"))
    env.tell(claim("likes", "tea"))
    tool, *rest = env.facts()
    links = env.store.find_links("default", [tool.id])
    assert tool.text not in [fact.text for fact in select_believed([tool, *rest], links, "trusted")]


def test_repeated_documents_do_not_outvote_the_user(env: World) -> None:
    env.tell(claim("born_in", "Oslo", "User was born in Oslo"))
    env.tell(claim("born_in", "Lima", "User was born in Lima"))
    env.tell(claim("born_in", "Lima", "User was born in Lima"))
    for _ in range(5):
        env.tell(claim("born_in", "Oslo", "User was born in Oslo"), sort="document")
    facts = env.facts()
    links = env.store.find_links("default", [fact.id for fact in facts])
    assert [fact.text for fact in select_believed(facts, links, "majority")] == [
        "User was born in Lima"
    ]


def test_quarantined_facts_contradict_nothing(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"))
    env.tell(claim("lives_in", "Minsk", "User lives in Minsk"), role="tool")
    facts = env.facts()
    links = env.store.find_links("default", [fact.id for fact in facts])
    assert [fact.kind for fact in facts] == ["profile", QUARANTINE]
    assert all(facts[0] in select_believed(facts, links, belief) for belief in BELIEFS)


def test_an_unknown_belief_strategy_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="hope"):
        select_believed([], [], "hope")


def test_contradictions_are_listed(env: World) -> None:
    assert run(load_contradictions(env.store, env.scope, env.clock.now)) == []
    add_birthplaces(env)
    [found] = run(load_contradictions(env.store, env.scope, env.clock.now))
    assert found.slot == "born_in"
    assert [row["memory"] for row in found.as_dict()["memories"]] == [
        "User was born in Lima",
        "User was born in Oslo",
    ]


def test_a_contradiction_ends_when_either_fact_is_retired(env: World) -> None:
    add_birthplaces(env)
    env.tell(claim("born_in", "Lima", "User was not born in Lima", polarity="negated"))
    assert run(load_contradictions(env.store, env.scope, env.clock.now)) == []


# Revoking


def write_context(env: World) -> WriteContext:
    return WriteContext(env.store, env.store.mint, Settings(), ExtractionConfig(Settings()))


def test_revoking_a_source_retracts_all_its_facts(env: World) -> None:
    env.tell(claim("likes", "tea"), claim("plans", "a trip"), source="mail")
    env.tell(claim("likes", "jazz"), source="chat")
    receipt = run(revoke_source(write_context(env), "default", "mail"))
    assert sorted((event.event, event.text) for event in receipt.events) == [
        ("DELETE", "User likes tea"),
        ("DELETE", "User plans a trip"),
    ]
    assert env.texts() == ["User likes jazz"]
    steps = run(load_history(env.store, "default", receipt.events[0].id))
    assert [(step.event, step.why) for step in steps] == [("ADD", ""), ("DELETE", "revoked")]


def test_facts_derived_from_a_revoked_source_are_retracted(env: World) -> None:
    [event] = env.tell(claim("likes", "tea"), source="mail")
    drafts = [
        Draft(Asserted("digest", Claim("User drinks")), env.scope),
        Draft(Linked("digest", "derived_from", event.id), env.scope),
        Draft(Asserted("moral", Claim("User is thirsty")), env.scope),
        Draft(Linked("moral", "derived_from", "digest"), env.scope),
    ]
    env.store.commit(Batch("default", drafts), fold_all)
    run(revoke_source(write_context(env), "default", "mail"))
    assert env.texts() == []


def test_later_user_facts_survive_revocation(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"), role="tool", source="mail")
    env.tell(claim("lives_in", "Oslo", "User lives in Oslo"), source="chat")
    assert run(revoke_source(write_context(env), "default", "mail")).events == ()
    assert env.texts() == ["User lives in Oslo"]


def test_facts_replaced_by_a_revoked_source_are_restored(env: World) -> None:
    env.tell(claim("lives_in", "Rome", "User lives in Rome"), source="chat")
    env.tell(claim("lives_in", "Oslo", "User lives in Oslo"), source="mail")
    receipt = run(revoke_source(write_context(env), "default", "mail"))
    assert [(event.event, event.text) for event in receipt.events] == [
        ("DELETE", "User lives in Oslo"),
        ("ADD", "User lives in Rome"),
    ]
    assert env.texts() == ["User lives in Rome"]


def test_revoking_a_source_without_facts_is_not_an_error(env: World) -> None:
    env.tell(claim("likes", "tea"))
    assert run(revoke_source(write_context(env), "default", "nobody")).events == ()
    assert env.texts() == ["User likes tea"]
