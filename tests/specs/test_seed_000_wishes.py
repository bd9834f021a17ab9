"""Seed 000, optional features: recall of faded facts, forget, about, replies, clocks, rules."""

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
MODEL_INSTALLED = any(
    (MODELS / name / registry.MANIFEST_FILENAME).is_file() for name in ("e5-small",)
)


@pytest.fixture(params=KEEPERS)
def backend(request, tmp_path):
    """Store options of each backend, and its clock."""
    clock = ManualClock()
    with opened(request.param, tmp_path, clock) as options:
        yield options, clock


@pytest.fixture
def visitor(backend):
    """Store with facts about deafness, photography and a faded coffee."""
    store = MemoryStore(MUSEUM, **backend[0])
    store.upsert("SpecialNeed.Hearing", "deaf", "asserted", "I should mention I'm deaf.")
    store.upsert(STYLE, "photography", "asserted", "I really love photography.")
    store.tick()
    store.upsert(COFFEE, "coffee", "asserted", "I could really use a coffee.")
    store.tick(6)
    return store


# Recall


def test_query_recalls_faded_fact(visitor):
    assert COFFEE not in [fact.concept for fact in visitor.facts.values()]
    [coffee] = visitor.recall("where is the coffee?")
    assert (coffee.value, coffee.salience < 0.10) == ("coffee", True)
    assert COFFEE not in [fact.concept for fact in visitor.facts.values()]


def test_in_process_store_keeps_newest_faded_facts(monkeypatch):
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


def test_referring_query_recalls_the_latest_fact(visitor):
    assert visitor.recall("Where can I have one?", limit=1)[0].value == "coffee"
    assert visitor.recall("Where is the airport?") == []


def test_value_match_ranks_above_evidence_match(backend):
    store = MemoryStore(SEED, **backend[0])
    for value, evidence in (
        ("oil", "I love oil more than glass"),
        ("glass", "Glass is fine"),
        ("wool", "Wool"),
    ):
        store.upsert(STYLE, value, "asserted", evidence)
    assert [fact.value for fact in store.recall("glasses")] == ["glass", "oil"]
    assert len(store.recall("art style", limit=2)) == 2


def test_negated_or_forgotten_fact_is_not_recalled(visitor):
    visitor.upsert(STYLE, "photography", "negated", "No photography")
    visitor.forget(COFFEE)
    assert (visitor.recall("photography"), visitor.recall("coffee")) == ([], [])


def test_embedder_recalls_by_similarity(backend):
    store = MemoryStore(SEED, 0.99, HashingEmbedder(dim=512), **backend[0])
    store.upsert(STYLE, "photojournalism", "asserted", "I love it")
    store.upsert(STYLE, "wool", "asserted", "wool")
    assert [fact.value for fact in store.recall("photojournalist?")] == ["photojournalism"]


# forget and about


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
def test_forget_removes_matching_facts_even_if_permanent(visitor, asked, left):
    before = len(visitor.facts) + 1
    gone = visitor.forget(**asked)
    assert sorted(values(visitor)) == left
    assert len(gone) == before - len(left) - (0 if asked == {} else 1)


def test_forget_matches_similar_values(backend):
    store = MemoryStore(SEED, 0.8, **backend[0])
    store.upsert(STYLE, "photography", "asserted", "x")
    assert [fact.value for fact in store.forget(value="photos")] == ["photography"]
    assert values(store) == []


def test_about_lists_remembered_facts(visitor, backend):
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


def test_facts_can_fade_by_time(backend):
    options, clock = backend
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


def test_facts_can_fade_by_tokens(backend):
    store = MemoryStore(tiers(), clock="tokens", **backend[0])
    fact = store.upsert("session", "x", "asserted", "x")
    store.tick(tokens=100)
    assert store.facts[fact.id].salience == pytest.approx(0.85**0.5)
    store.tick(tokens=300)
    store.tick()
    assert store.facts[fact.id].salience == pytest.approx(0.85**3)
    assert store.turn == 3


def test_concept_can_set_its_own_clock(backend):
    options, clock = backend
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


def test_decay_per_event_matches_decay_per_turn(backend, monkeypatch):
    from told.ontology import DECAY

    store = MemoryStore(tiers(), **backend[0])
    monkeypatch.setitem(DECAY, "ephemeral", decay_per_event(0.55, 10))
    fact = store.upsert("ephemeral", "x", "asserted", "x")
    for _ in range(10):
        store.tick()
    assert store.facts[fact.id].salience == pytest.approx(0.55)


# Replies


def fact_line(name, value, evidence):
    return {"concept": name, "value": value, "polarity": "asserted", "evidence": evidence}


REPLY = "As you are deaf, I booked the captioned tour for you."
DEAF = fact_line("SpecialNeed.Hearing", "deaf", REPLY)


def test_replies_option_reads_assistant_in_second_pass():
    found = [
        fact_line(STYLE, "oil", "I love oil"),
        fact_line("SpecialNeed.Hearing", "deaf", "you are deaf"),
    ]
    llm = ScriptedLLM([json.dumps({"facts": found[:1]}), json.dumps({"facts": found[1:]})])
    assert extract_facts("I love oil", REPLY, MUSEUM, llm, replies=True) == found
    assert "assistant's lines" in llm.asked[1][0]
    assert "assistant's lines" not in llm.asked[0][0]
    once = ScriptedLLM([json.dumps({"facts": found})])
    dropped = []
    assert extract_facts("I love oil", REPLY, MUSEUM, once, dropped=dropped) == found[:1]
    assert [row["reason"] for row in dropped] == ["only the assistant said so"]


def test_rules_extract_from_replies():
    assert extract_facts("Thanks", REPLY, MUSEUM, "local") == []
    assert extract_facts("Thanks", REPLY, MUSEUM, "local", replies=True) == [DEAF]
    assert extract_facts("", REPLY, MUSEUM, "local", replies=True) == [DEAF]


def test_affirmed_question_is_extracted():
    asked = "Do you love photography?"
    assert extract_facts("Yes, a lot!", asked, MUSEUM, "local") == [
        fact_line(STYLE, "photography", asked)
    ]
    assert extract_facts("No.", asked, MUSEUM, "local") == []


# Rules without a model

SAID = [
    ("Hi! I'm visiting today, and I should mention I'm deaf.", "SpecialNeed.Hearing", "deaf"),
    ("I really love photography, especially mid-century stuff.", STYLE, "photography"),
    ("I only have about an hour.", "VisitPlan.TimeBudget", "an hour"),
    ("I could really use a coffee.", COFFEE, "coffee"),
    ("I'm in the east wing now.", "Position.CurrentArea", "east wing"),
]


@pytest.mark.parametrize(("text", "name", "value"), SAID)
def test_rules_match_the_examples_of_an_ontology(text, name, value):
    [fact] = extract_facts(text, None, MUSEUM, "local")
    assert (fact["concept"], fact["value"], fact["polarity"]) == (name, value, "asserted")
    assert fact["evidence"] in text


@pytest.mark.parametrize(
    "text", ["Where can I have one?", "Do I love photography?", "The weather is fine.", "ok"]
)
def test_rules_extract_nothing_from_texts_without_facts(text):
    assert extract_facts(text, None, MUSEUM, "local") == []


def test_rules_detect_negation():
    [fact] = extract_facts("I don't love sculpture any more", None, MUSEUM, "local")
    assert (fact["value"], fact["polarity"]) == ("sculpture", "negated")


def test_rules_are_used_with_warning_without_a_model():
    with pytest.warns(UserWarning, match="rules"):
        assert len(extract_facts("I love oil and ink", None, MUSEUM)) == 2


def test_conversation_without_model_fades_as_specified(backend):
    memory = MemoryStore(MUSEUM, **backend[0])

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


# Embedders


@pytest.mark.skipif(
    not MODEL_INSTALLED, reason="run `told models install e5-small`: the model is not here"
)
def test_local_embedder_merges_synonyms(monkeypatch):
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


def test_recall_uses_the_embedder_of_the_memory():
    with Memory("ram://", embedder=HashingEmbedder(dim=512)) as memory:
        store = MemoryStore(SEED, memory=memory, user_id="ann")
        store.upsert(STYLE, "photojournalism", "asserted", "I love it")
        assert [fact.value for fact in store.recall("photojournalist?")] == ["photojournalism"]
