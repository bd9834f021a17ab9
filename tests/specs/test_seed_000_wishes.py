"""Seed 000, its wishes: recall of what has faded, forgetting, what is remembered, replies, other
clocks, no model.
"""

import json

import pytest

from ontologies import KEEPERS, MUSEUM, SEED, STYLE, concept, opened, tiers, values
from told import Memory
from told.model.salience import decay_per_event
from told.ontology import MemoryStore, extract_facts, filtered_block
from told.providers.local import registry
from told.testing import HashingEmbedder, ManualClock, ScriptedLLM

DAY = 24 * 3_600_000_000
COFFEE = "ImmediateNeed.Refreshment"
MODELS = registry.home()
HERE = any((MODELS / name / registry.MANIFEST_FILENAME).is_file() for name in ("e5-small",))


@pytest.fixture(params=KEEPERS)
def kept(request, tmp_path):
    """How a store keeps its facts, and the clock it goes by."""
    clock = ManualClock()
    with opened(request.param, tmp_path, clock) as options:
        yield options, clock


@pytest.fixture
def visitor(kept):
    """A store that heard of deafness, photography and a coffee, some turns ago."""
    store = MemoryStore(MUSEUM, **kept[0])
    store.upsert("SpecialNeed.Hearing", "deaf", "asserted", "I should mention I'm deaf.")
    store.upsert(STYLE, "photography", "asserted", "I really love photography.")
    store.tick()
    store.upsert(COFFEE, "coffee", "asserted", "I could really use a coffee.")
    store.tick(6)
    return store


# Recall


def test_a_query_recalls_what_has_faded(visitor):
    assert COFFEE not in [fact.concept for fact in visitor.facts.values()]
    [coffee] = visitor.recall("where is the coffee?")
    assert (coffee.value, coffee.salience < 0.10) == ("coffee", True)
    assert COFFEE not in [fact.concept for fact in visitor.facts.values()]


def test_this_process_keeps_the_newest_of_what_has_faded(monkeypatch):
    monkeypatch.setattr("told.api.ontology.storage.MAX_ARCHIVED", 3)
    store = MemoryStore(SEED)
    for number in range(8):
        store.upsert(STYLE, f"style {number}", "asserted", f"I like style {number}.")
        store.tick(300)
    assert not store.facts
    assert sorted(fact.value for fact in store.recall("which style?", limit=9)) == [
        "style 5",
        "style 6",
        "style 7",
    ]


def test_a_query_that_points_back_recalls_what_was_said_last(visitor):
    assert visitor.recall("Where can I have one?", limit=1)[0].value == "coffee"
    assert visitor.recall("Where is the airport?") == []


def test_a_query_finds_words_of_the_value_before_those_of_the_sentence(kept):
    store = MemoryStore(SEED, **kept[0])
    for value, evidence in (
        ("oil", "I love oil more than glass"),
        ("glass", "Glass is fine"),
        ("wool", "Wool"),
    ):
        store.upsert(STYLE, value, "asserted", evidence)
    assert [fact.value for fact in store.recall("glasses")] == ["glass", "oil"]
    assert len(store.recall("art style", limit=2)) == 2


def test_what_was_negated_or_forgotten_is_never_recalled(visitor):
    visitor.upsert(STYLE, "photography", "negated", "No photography")
    visitor.forget(COFFEE)
    assert (visitor.recall("photography"), visitor.recall("coffee")) == ([], [])


def test_an_embedder_finds_what_is_meant(kept):
    store = MemoryStore(SEED, 0.99, HashingEmbedder(dim=512), **kept[0])
    store.upsert(STYLE, "photojournalism", "asserted", "I love it")
    store.upsert(STYLE, "wool", "asserted", "wool")
    assert [fact.value for fact in store.recall("photojournalist?")] == ["photojournalism"]


# Forgetting, and what is remembered


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"concept": STYLE}, ["deaf"]),
        ({"value": "DEAF"}, ["photography"]),
        ({"concept": "SpecialNeed."}, ["photography"]),
        ({"concept": "SpecialNeed.*", "value": "blind"}, ["deaf", "photography"]),
        ({}, []),
    ],
)
def test_what_a_user_wants_forgotten_is_forgotten_even_if_permanent(visitor, asked, left):
    before = len(visitor.facts) + 1
    gone = visitor.forget(**asked)
    assert sorted(values(visitor)) == left
    assert len(gone) == before - len(left) - (0 if asked == {} else 1)


def test_what_is_alike_is_forgotten_by_another_name(kept):
    store = MemoryStore(SEED, 0.8, **kept[0])
    store.upsert(STYLE, "photography", "asserted", "x")
    assert [fact.value for fact in store.forget(value="photos")] == ["photography"]
    assert values(store) == []


def test_a_user_is_told_what_is_remembered(visitor, kept):
    deaf, photography = visitor.about()
    assert (deaf["label"], deaf["value"]) == ("Hearing impairment", "deaf")
    assert deaf["evidence"] == "I should mention I'm deaf."
    assert (deaf["first_turn"], deaf["said"], deaf["salience"], deaf["fades_in_turns"]) == (
        0,
        1,
        1.0,
        None,
    )
    assert deaf["first_at"].startswith("2026-01-05T08:00:00")
    assert photography["salience"] == pytest.approx(0.7 * 0.99**7, abs=1e-4)
    visitor.tick(int(photography["fades_in_turns"]) - 1)
    assert "photography" in values(visitor)
    visitor.tick()
    assert "photography" not in values(visitor)
    assert json.loads(json.dumps(visitor.about())) == visitor.about()


# Clocks


def test_facts_may_fade_by_time(kept):
    options, clock = kept
    store = MemoryStore(tiers(), clock="time", **options)
    for tier in ("permanent", "long_term", "session", "ephemeral"):
        store.upsert(tier, tier, "asserted", tier)
    store.tick(1000)
    assert len(store.facts) == 4
    clock.tick(DAY)
    assert {fact.value: fact.salience for fact in store.facts.values()} == pytest.approx(
        {"permanent": 1.0, "long_term": 0.5 ** (1 / 180), "session": 0.5}
    )
    assert [row["fades_in_days"] for row in store.about()] == [None, 597.0, 3.0]


def test_facts_may_fade_by_tokens(kept):
    store = MemoryStore(tiers(), clock="tokens", **kept[0])
    fact = store.upsert("session", "x", "asserted", "x")
    store.tick(tokens=100)
    assert store.facts[fact.id].salience == pytest.approx(0.85**0.5)
    store.tick(tokens=300)
    store.tick()
    assert store.facts[fact.id].salience == pytest.approx(0.85**3)
    assert store.turn == 3


def test_a_concept_may_have_a_clock_of_its_own(kept):
    options, clock = kept
    rules = {
        "A": concept("session", half_life_days=2),
        "B": concept("session"),
        "C": concept("session", clock="time"),
    }
    store = MemoryStore({"concepts": rules}, **options)
    for name in rules:
        store.upsert(name, name, "asserted", name)
    store.tick()
    clock.tick(2 * DAY)
    weights = {fact.value: fact.salience for fact in store.facts.values()}
    assert weights == pytest.approx({"A": 0.5, "B": 0.85, "C": 0.25})


def test_several_events_to_a_turn_decay_as_one_turn_does(kept, monkeypatch):
    from told.ontology import DECAY

    store = MemoryStore(tiers(), **kept[0])
    monkeypatch.setitem(DECAY, "ephemeral", decay_per_event(0.55, 10))
    fact = store.upsert("ephemeral", "x", "asserted", "x")
    for _ in range(10):
        store.tick()
    assert store.facts[fact.id].salience == pytest.approx(0.55)


# Replies


def line(name, value, evidence):
    return {"concept": name, "value": value, "polarity": "asserted", "evidence": evidence}


REPLY = "As you are deaf, I booked the captioned tour for you."
DEAF = line("SpecialNeed.Hearing", "deaf", REPLY)


def test_replies_are_read_in_a_second_pass_if_wanted():
    found = [line(STYLE, "oil", "I love oil"), line("SpecialNeed.Hearing", "deaf", "you are deaf")]
    llm = ScriptedLLM([json.dumps({"facts": found[:1]}), json.dumps({"facts": found[1:]})])
    assert extract_facts("I love oil", REPLY, MUSEUM, llm, replies=True) == found
    assert "assistant's lines" in llm.asked[1][0]
    assert "assistant's lines" not in llm.asked[0][0]
    once = ScriptedLLM([json.dumps({"facts": found})])
    dropped = []
    assert extract_facts("I love oil", REPLY, MUSEUM, once, dropped=dropped) == found[:1]
    assert [row["reason"] for row in dropped] == ["only the assistant said so"]


def test_rules_read_replies_too():
    assert extract_facts("Thanks", REPLY, MUSEUM, "local") == []
    assert extract_facts("Thanks", REPLY, MUSEUM, "local", replies=True) == [DEAF]
    assert extract_facts("", REPLY, MUSEUM, "local", replies=True) == [DEAF]


def test_what_a_user_says_yes_to_is_said():
    asked = "Do you love photography?"
    assert extract_facts("Yes, a lot!", asked, MUSEUM, "local") == [
        line(STYLE, "photography", asked)
    ]
    assert extract_facts("No.", asked, MUSEUM, "local") == []


# Without a model

SAID = [
    ("Hi! I'm visiting today, and I should mention I'm deaf.", "SpecialNeed.Hearing", "deaf"),
    ("I really love photography, especially mid-century stuff.", STYLE, "photography"),
    ("I only have about an hour.", "VisitPlan.TimeBudget", "an hour"),
    ("I could really use a coffee.", COFFEE, "coffee"),
    ("I'm in the east wing now.", "Position.CurrentArea", "east wing"),
]


@pytest.mark.parametrize(("text", "name", "value"), SAID)
def test_rules_fill_in_the_examples_of_an_ontology(text, name, value):
    [fact] = extract_facts(text, None, MUSEUM, "local")
    assert (fact["concept"], fact["value"], fact["polarity"]) == (name, value, "asserted")
    assert fact["evidence"] in text


@pytest.mark.parametrize(
    "text", ["Where can I have one?", "Do I love photography?", "The weather is fine.", "ok"]
)
def test_rules_find_nothing_where_nothing_is_said(text):
    assert extract_facts(text, None, MUSEUM, "local") == []


def test_rules_hear_a_denial():
    [fact] = extract_facts("I don't love sculpture any more", None, MUSEUM, "local")
    assert (fact["value"], fact["polarity"]) == ("sculpture", "negated")


def test_without_a_model_that_is_configured_rules_do_with_a_warning():
    with pytest.warns(UserWarning, match="rules"):
        assert len(extract_facts("I love oil and ink", None, MUSEUM)) == 2


def test_a_conversation_without_a_model_fades_as_the_seed_shows(kept):
    memory = MemoryStore(MUSEUM, **kept[0])

    def turn(text):
        for fact in extract_facts(user_msg=text, bot_msg=None, ontology=MUSEUM, model="local"):
            memory.upsert(
                concept=fact["concept"],
                value=fact["value"],
                polarity=fact["polarity"],
                evidence=fact["evidence"],
            )
        memory.tick()
        return values(memory)

    for text, _, value in SAID[:4]:
        assert value in turn(text)
    assert "coffee" in turn("Where can I have one?")
    for _ in range(3):
        turn("What is this painting?")
    assert values(memory) == ["deaf", "photography", "an hour"]
    assert filtered_block(memory, ["SpecialNeed."]) == "- Hearing impairment: deaf"


# The embedder on this machine


@pytest.mark.skipif(not HERE, reason="run `told models install e5-small`: the model is not here")
def test_the_local_embedder_merges_synonyms(monkeypatch):
    monkeypatch.setenv("TOLD_MODELS", str(MODELS))
    store = MemoryStore(SEED, similarity_threshold=0.94, similarity_fn="local:e5-small")
    for value in (
        "car",
        "automobile",
        "photography",
        "photos",
        "Monet",
        "Picasso",
        "Pablo Picasso",
    ):
        store.upsert(STYLE, value, "asserted", value)
    assert sorted(values(store)) == ["Monet", "Picasso", "car", "photography"]
    assert [fact.value for fact in store.recall("pictures with a camera", limit=1)] == [
        "photography"
    ]


def test_the_embedder_of_a_memory_helps_to_recall():
    with Memory("ram://", embedder=HashingEmbedder(dim=512)) as memory:
        store = MemoryStore(SEED, memory=memory, user_id="ann")
        store.upsert(STYLE, "photojournalism", "asserted", "I love it")
        assert [fact.value for fact in store.recall("photojournalist?")] == ["photojournalism"]
