"""An ontology's store holds the same facts as a naive store that visits all facts at every turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import tried
from ontologies import concept
from told import Memory
from told.ontology import DECAY, PRUNE_THRESHOLD, MemoryStore
from told.testing import ManualClock, seeded_mint
from told.text.similarity import value_similarity

CONCEPTS = {
    "Need": concept("permanent", 0.9, 2, "recency"),
    "Taste": concept("long_term", 0.7, 3, "salience"),
    "Place": concept("session", 0.4, 1, "recency"),
    "Wish": concept("ephemeral", 0.6),
}
VALUES = ("photography", "photos", "Photos ", "Picasso", "Pablo Picasso", "Monet", "wool")


class Naive:
    """A naive store: every turn visits every fact."""

    def __init__(self, threshold):
        self.threshold, self.facts, self.said = threshold, [], 0

    def upsert(self, name, value, polarity):
        rules, self.said = CONCEPTS[name], self.said + 1
        found = self._meant(name, value.strip().lower())
        if polarity == "negated":
            self.facts = [fact for fact in self.facts if fact is not found]
        elif found:
            found["weight"] = min(1.0, found["weight"] + 0.3 * rules["salience_weight"])
            found["last"] = self.said
        else:
            fact = {
                "name": name,
                "value": value.strip(),
                "weight": rules["salience_weight"],
                "last": self.said,
            }
            self.facts.append(fact)
            self._evict(name, rules)

    def _meant(self, name, value):
        here = [fact for fact in self.facts if fact["name"] == name]
        exact = [fact for fact in here if fact["value"].lower() == value]
        if exact or self.threshold == 1.0:
            return exact[0] if exact else None
        scored = [(value_similarity(value, fact["value"].lower()), fact) for fact in here]
        best, fact = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return fact if best >= self.threshold else None

    def _evict(self, name, rules):
        here = [fact for fact in self.facts if fact["name"] == name]
        while rules["cardinality"] != "unlimited" and len(here) > rules["cardinality"]:
            recent = rules["eviction"] == "recency"
            gone = min(
                here, key=lambda fact: (0.0 if recent else round(fact["weight"], 9), fact["last"])
            )
            here = [fact for fact in here if fact is not gone]
            self.facts = [fact for fact in self.facts if fact is not gone]

    def tick(self):
        for fact in self.facts:
            fact["weight"] *= DECAY[CONCEPTS[fact["name"]]["persistence_class"]]
        self.facts = [
            f for f in self.facts if f["name"] == "Need" or f["weight"] >= PRUNE_THRESHOLD
        ]


polarities = st.sampled_from(("asserted", "asserted", "asserted", "asserted", "negated"))
upserts = st.tuples(st.sampled_from(sorted(CONCEPTS)), st.sampled_from(VALUES), polarities)
scripts = st.lists(upserts | st.integers(1, 6), max_size=25)


def play(script, store):
    for step in script:
        if isinstance(step, int):
            for _ in range(step):
                store.tick()
        else:
            name, value, polarity = step
            store.upsert(name, value, polarity)
    return store


def list_facts(store):
    return {(fact.concept, fact.value): fact.salience for fact in store.facts.values()}


@tried(150)
@given(scripts, st.sampled_from((1.0, 0.8)))
def test_lazy_decay_equals_decay_at_every_turn(script, threshold):
    naive = play(script, Naive(threshold))
    lazy = play(script, MemoryStore({"concepts": CONCEPTS}, threshold))
    assert list_facts(lazy) == pytest.approx(
        {(f["name"], f["value"]): f["weight"] for f in naive.facts}
    )


@tried(60)
@given(scripts, st.sampled_from((1.0, 0.8)))
def test_ledger_holds_the_same_facts_as_the_process(script, threshold):
    inside = play(script, MemoryStore({"concepts": CONCEPTS}, threshold))
    with Memory("ram://", embedder="none", mint=seeded_mint("law", ManualClock())) as memory:
        durable = play(
            script, MemoryStore({"concepts": CONCEPTS}, threshold, memory=memory, user_id="ann")
        )
        assert list_facts(durable) == pytest.approx(list_facts(inside))
        assert durable.turn == inside.turn
        assert sorted(durable.dump().splitlines()) == sorted(inside.dump().splitlines())


@tried(60)
@given(scripts)
def test_cardinality_is_respected_and_faded_facts_are_hidden(script):
    store = MemoryStore({"concepts": CONCEPTS})
    for step in script:
        play([step], store)
        for name, rules in CONCEPTS.items():
            here = [fact for fact in store.facts.values() if fact.concept == name]
            assert rules["cardinality"] == "unlimited" or len(here) <= rules["cardinality"]
            assert all(0.0 <= fact.salience <= 1.0 for fact in here)
            assert name == "Need" or all(fact.salience >= PRUNE_THRESHOLD for fact in here)
