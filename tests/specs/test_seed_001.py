"""Context engine retrieval: text levels, tree expansion, hotness and query intents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import Any

import pytest

from told import Memory
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Linked
from told.model.scope import Scope
from told.ports import Batch
from told.testing import HashingEmbedder, ManualClock, seeded_mint

DAY = 86_400_000_000
U = {"user_id": "u"}
SCOPE = Scope(user_id="u")


class Harness:
    """A memory on a manual clock, with shorthands for one user."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        options = {"embedder": "none", "mint": seeded_mint(1, self.clock), **settings}
        self.memory = Memory("ram://", **options)

    def add_text(self, text: str, **options: Any) -> str:
        return str(self.memory.add(text, **{**U, **options})["results"][0]["id"])

    def commit(self, *drafts: Draft) -> None:
        self.memory.engine.store.commit(Batch("default", drafts), fold_all)

    def explain(self, query: str, **options: Any) -> dict[str, dict[str, Any]]:
        return {
            row["memory"]: row for row in self.memory.explain(query, **U, **options)["candidates"]
        }

    def search(self, query: str, **options: Any) -> list[str]:
        return [row["memory"] for row in self.memory.search(query, **U, **options)["results"]]


@pytest.fixture
def open_harness() -> Iterator[Callable[..., Harness]]:
    harnesses: list[Harness] = []

    def open_harness(**settings: Any) -> Harness:
        harnesses.append(Harness(**settings))
        return harnesses[-1]

    yield open_harness
    for harness in harnesses:
        harness.memory.close()


@pytest.fixture
def harness(open_harness: Callable[..., Harness]) -> Harness:
    return open_harness()


# Three-level retrieval (L0/L1/L2)

CONTENT = " ".join(
    f"Step {number} of the procedure is described here in full detail." for number in range(60)
)
LEVELS = {
    "overview": "How releases are prepared, tagged and announced to customers.",
    "abstract": "Kangaroo release checklist",
}


@pytest.mark.parametrize("embedder", [HashingEmbedder(), "none"])
@pytest.mark.parametrize(
    ("query", "level"),
    [
        ("kangaroo checklist", "abstract"),
        ("announced to customers", "overview"),
        ("step 17 described", "content"),
    ],
)
def test_search_covers_all_three_levels(
    open_harness: Callable[..., Harness], embedder: Any, query: str, level: str
) -> None:
    harness = open_harness(embedder=embedder)
    harness.add_text(CONTENT, metadata=LEVELS)
    harness.add_text("The kitchen was painted green")
    found = harness.explain(query)
    assert next(iter(found)) == CONTENT
    assert found[CONTENT]["level"] == level


def test_match_in_the_abstract_returns_the_content(harness: Harness) -> None:
    harness.add_text(CONTENT, metadata=LEVELS)
    assert harness.search("kangaroo") == [CONTENT], "the word stands in the abstract alone"


def test_memory_matching_on_several_levels_is_one_hit(harness: Harness) -> None:
    harness.add_text(f"kangaroo. {CONTENT} kangaroo.", metadata={**LEVELS, "overview": "kangaroo"})
    assert len(harness.search("kangaroo")) == 1


def test_context_falls_back_to_overview_then_abstract_as_the_budget_shrinks(
    harness: Harness,
) -> None:
    harness.add_text(CONTENT, metadata=LEVELS)
    shown = []
    for budget in (2000, 60, 34, 10):
        bundle = harness.memory.context("kangaroo", **U, budget=budget)
        assert bundle.tokens <= budget
        texts = {"content": CONTENT, **LEVELS}
        shown.append([level for level, text in texts.items() if text in bundle.text])
        kept = [candidate for candidate in bundle.trace.candidates if candidate.kept]
        assert [candidate.level for candidate in kept] == shown[-1]
    assert shown == [["content"], ["overview"], ["abstract"], []]


def test_level_is_abstract_when_only_an_abstract_is_given(harness: Harness) -> None:
    harness.add_text(CONTENT, metadata={"abstract": LEVELS["abstract"]})
    bundle = harness.memory.context("kangaroo", **U, budget=50)
    assert LEVELS["abstract"] in bundle.text
    assert [candidate.level for candidate in bundle.trace.candidates] == ["abstract"]


@pytest.mark.parametrize("shorter", ["", "   ", 7, None, ["x"]])
def test_blank_or_non_text_abstract_is_ignored(harness: Harness, shorter: Any) -> None:
    harness.add_text(CONTENT, metadata={"abstract": shorter})
    assert harness.search("procedure") == [CONTENT]
    assert harness.memory.context("procedure", **U, budget=30).hits == ()


def test_text_over_budget_does_not_exclude_others(harness: Harness) -> None:
    harness.add_text("x" * 590 + " quokka")
    harness.add_text(CONTENT * 9, metadata={"abstract": "quokka quokka"})
    harness.add_text("a quokka is small")
    text = harness.memory.context("quokka", **U, budget=60).text
    assert "a quokka is small" in text
    assert "quokka quokka" in text


def test_context_prints_only_the_matching_chunk_of_a_long_text(harness: Harness) -> None:
    harness.add_text(f"{CONTENT} The wombat sleeps in box nine. {CONTENT.replace('Step', 'Stage')}")
    bundle = harness.memory.context("wombat", **U, budget=1000)
    assert "wombat sleeps in box nine" in bundle.text
    assert bundle.tokens < 300


# Score propagation: final = α·child + (1-α)·parent


def raw_score(row: dict[str, Any]) -> float:
    return float(row["parts"]["raw"])


def own_score(row: dict[str, Any]) -> float:
    return raw_score(row) - (row["parts"].get("parent") or 0.0)


def add_family(harness: Harness, *children: str, weight: float = 1.0) -> list[str]:
    """Add a parent that matches "quokka habitat" and children linked as parts of it."""
    parent = harness.add_text("quokka habitat guide")
    made = [harness.add_text(child) for child in children]
    for child in made:
        harness.memory.link(child, "part_of", parent, weight=weight, **U)
    return [parent, *made]


def test_child_score_is_the_mean_of_its_own_and_its_parents(
    open_harness: Callable[..., Harness],
) -> None:
    harness = open_harness(expand_hot=0.0)
    add_family(harness, "they sleep under bushes", "the habitat has shrubs")
    harness.add_text("nothing to do with it")
    found = harness.explain("quokka habitat")
    parent = raw_score(found["quokka habitat guide"])
    for child in ("they sleep under bushes", "the habitat has shrubs"):
        assert raw_score(found[child]) == pytest.approx(
            0.5 * own_score(found[child]) + 0.5 * parent
        )
        assert "child" in found[child]["sources"]
    assert own_score(found["they sleep under bushes"]) == 0.0
    assert own_score(found["the habitat has shrubs"]) > 0.0
    assert "nothing to do with it" not in found
    assert harness.search("quokka habitat") == [
        "quokka habitat guide",
        "the habitat has shrubs",
        "they sleep under bushes",
    ]


def test_parent_score_is_scaled_by_link_weight(open_harness: Callable[..., Harness]) -> None:
    harness = open_harness(expand_hot=0.0)
    add_family(harness, "they sleep under bushes", weight=0.4)
    found = harness.explain("quokka habitat")
    assert raw_score(found["they sleep under bushes"]) == pytest.approx(
        0.5 * 0.4 * raw_score(found["quokka habitat guide"])
    )


def test_score_propagates_to_grandchildren(open_harness: Callable[..., Harness]) -> None:
    harness = open_harness(expand_hot=0.0)
    _, child = add_family(harness, "they sleep under bushes")
    grandchild = harness.add_text("mostly at noon")
    harness.memory.link(grandchild, "part_of", child, **U)
    found = harness.explain("quokka habitat")
    assert raw_score(found["mostly at noon"]) == pytest.approx(
        raw_score(found["quokka habitat guide"]) / 4
    )


def test_child_of_two_parents_takes_the_higher_score(open_harness: Callable[..., Harness]) -> None:
    harness = open_harness(expand_hot=0.0)
    weak = harness.add_text("a habitat of bees and other small things that fly")
    _, child = add_family(harness, "they sleep under bushes")
    other = harness.add_text("leaves")
    strong = harness.add_text("quokka habitat atlas")
    for parent in (weak, strong):
        harness.memory.link(other, "part_of", parent, **U)
    found = harness.explain("quokka habitat")
    assert raw_score(found["leaves"]) == pytest.approx(
        0.5 * raw_score(found["quokka habitat atlas"])
    )
    assert child


def test_parent_does_not_lower_a_higher_scoring_child(open_harness: Callable[..., Harness]) -> None:
    harness = open_harness(expand_hot=0.0)
    parent, child = (
        harness.add_text("a guide to the habitat of many other things"),
        harness.add_text("quokka habitat"),
    )
    harness.memory.link(child, "part_of", parent, **U)
    before = raw_score(harness.explain("quokka habitat", as_of="#4")["quokka habitat"])
    assert raw_score(harness.explain("quokka habitat")["quokka habitat"]) == pytest.approx(before)
    assert harness.search("quokka habitat")[0] == "quokka habitat"


def test_limit_does_not_change_which_hits_are_expanded(
    open_harness: Callable[..., Harness],
) -> None:
    harness = open_harness(expand_hot=0.0, expand_own=0.0, spare=0)
    ninth = harness.add_text("quokka habitat")
    for number in range(8):
        harness.add_text(f"quokka habitat {number}")
    harness.memory.link(harness.add_text("they sleep under bushes"), "part_of", ninth, **U)
    everything = harness.search("quokka habitat")
    assert [harness.search("quokka habitat", limit=limit) for limit in (1, 3, 9)] == [
        everything[:n] for n in (1, 3, 9)
    ]
    assert "they sleep under bushes" in everything


def test_child_is_lifted_regardless_of_its_initial_rank(
    open_harness: Callable[..., Harness],
) -> None:
    """The better of two children stays ahead, whether or not it was among the ten best."""
    harness = open_harness(expand_hot=0.0)
    parent = harness.add_text("quokka habitat guide")
    good, weak = harness.add_text("habitat with shrubs"), harness.add_text("a b c d e f")
    for child in (good, weak):
        harness.memory.link(child, "part_of", parent, **U)
    for number in range(30):
        harness.add_text(f"filler {number} about something else")
    found = harness.search("quokka habitat")
    assert found[:3] == ["quokka habitat guide", "habitat with shrubs", "a b c d e f"]


# Hotness blending: blended = (1-α_hotness)·semantic + α_hotness·h_score


def test_expanded_score_is_blended_with_hotness(harness: Harness) -> None:
    _, child = add_family(harness, "they sleep under bushes")
    found = harness.explain("quokka habitat")
    parent = raw_score(found["quokka habitat guide"])
    assert raw_score(found["they sleep under bushes"]) == pytest.approx(0.8 * 0.5 * parent)
    fact = harness.memory.engine.store.get_fact("default", child)
    assert fact is not None
    for _ in range(3):
        harness.memory.engine.hot_buffers.record_hits(
            "default", Scope(user_id="elsewhere"), [fact], harness.clock.now
        )
    hot = log(4) / (log(4) + 1)
    for days in (0, 7, 14):
        found = harness.explain("quokka habitat")
        wanted = 0.8 * 0.5 * parent + 0.2 * 10 * hot * 2 ** (-days / 7)
        assert raw_score(found["they sleep under bushes"]) == pytest.approx(wanted, rel=1e-6)
        harness.clock.tick(7 * DAY)


def test_recall_never_lowers_an_expanded_candidate(harness: Harness) -> None:
    add_family(harness, "they sleep under bushes", "leaves are eaten")
    harness.memory.search("bushes", **U, limit=1)
    for days in (0, 7, 70):
        harness.clock.tick(days * DAY)
        found = list(harness.explain("quokka habitat"))
        assert found.index("they sleep under bushes") < found.index("leaves are eaten")


# HierarchicalSearcher: convergence


@pytest.mark.parametrize("rel", ["part_of", "relates_to"])
def test_expansion_terminates_on_link_cycles(harness: Harness, rel: str) -> None:
    made = [harness.add_text(text) for text in ("quokka habitat", "two", "three", "four")]
    for here, there in zip(made, [*made[1:], made[0]], strict=True):
        harness.memory.link(here, rel, there, **U)
        harness.memory.link(here, rel, here, **U)
    found = harness.explain("quokka habitat")
    assert next(iter(found)) == "quokka habitat"
    assert set(found) == {"quokka habitat", "two", "three", "four"}


def test_expansion_is_capped_in_a_wide_tree(harness: Harness) -> None:
    [parent] = add_family(harness)
    made = harness.memory.add([f"leaf {number}" for number in range(200)], **U)["results"]
    harness.commit(*(Draft(Linked(row["id"], "part_of", parent), SCOPE) for row in made))
    led = [row for row in harness.explain("quokka habitat").values() if row["sources"] == ["child"]]
    assert len(led) == 30
    found = [row for row in harness.explain("quokka habitat").values() if "child" in row["sources"]]
    assert len(found) == 30


def test_expansion_depth_is_capped_in_a_deep_chain(harness: Harness) -> None:
    [above] = add_family(harness)
    for number in range(20):
        below = harness.add_text(f"link number {number}")
        harness.memory.link(below, "part_of", above, **U)
        above = below
    found = harness.explain("quokka habitat")
    assert [text for text in found if text.startswith("link")] == [
        f"link number {number}" for number in range(6)
    ]


def test_expansion_stops_after_three_rounds_without_change_at_the_top(
    open_harness: Callable[..., Harness],
) -> None:
    harness = open_harness(expand_top=2, expand_rounds=20)
    [above] = add_family(harness)
    harness.add_text("another quokka habitat")
    for number in range(10):
        below = harness.add_text(f"link number {number}")
        harness.memory.link(below, "part_of", above, **U)
        above = below
    assert len([text for text in harness.explain("quokka habitat") if text.startswith("link")]) == 3


def test_deleted_children_do_not_count_towards_the_cap(harness: Harness) -> None:
    [parent] = add_family(harness)
    for number in range(40):
        child = harness.add_text(f"leaf {number}")
        harness.memory.link(child, "part_of", parent, **U)
        if number < 39:
            harness.memory.delete(child)
    assert "leaf 39" in harness.search("quokka habitat")


def test_links_into_other_scopes_are_not_followed(harness: Harness) -> None:
    [parent] = add_family(harness)
    strangers = [harness.add_text(f"secret {number}", user_id="other") for number in range(40)]
    own_child = harness.add_text("leaf")
    threads = [*strangers, own_child]
    harness.commit(*(Draft(Linked(thread, "part_of", parent), SCOPE) for thread in threads))
    found = harness.memory.explain("quokka habitat", **U)
    assert "secret" not in str(found)
    assert "leaf" in harness.search("quokka habitat")


@pytest.mark.parametrize("source", ["tree", "graph"])
def test_each_source_can_be_disabled(open_harness: Callable[..., Harness], source: str) -> None:
    rels = {"tree": "part_of", "graph": "relates_to"}
    for sources, wanted in ((source, True), ("hot time", False)):
        harness = open_harness(sources=sources)
        [parent] = add_family(harness)
        for name, rel in rels.items():
            harness.memory.link(harness.add_text(f"by {name}"), rel, parent, **U)
        found = harness.search("quokka habitat")
        assert (f"by {source}" in found) is wanted
        assert sum(text.startswith("by") for text in found) == wanted


# Graph retrieval


@pytest.mark.parametrize("forward", [True, False])
def test_linked_memories_are_retrieved_together(
    open_harness: Callable[..., Harness], forward: bool
) -> None:
    harness = open_harness(expand_hot=0.0)
    [hit] = add_family(harness)
    other = harness.add_text("Ann told us so")
    here, there = (hit, other) if forward else (other, hit)
    harness.memory.link(here, "relates_to", there, weight=0.5, **U)
    found = harness.explain("quokka habitat")
    assert raw_score(found["Ann told us so"]) == pytest.approx(
        0.25 * raw_score(found["quokka habitat guide"])
    )
    assert found["Ann told us so"]["sources"] == ["graph"]


@pytest.mark.parametrize("rel", ["supersedes", "contradicts", "supports", "derived_from"])
def test_non_neighbour_relations_are_not_followed(harness: Harness, rel: str) -> None:
    [hit] = add_family(harness)
    harness.memory.link(harness.add_text("Ann told us so"), rel, hit, **U)
    assert harness.search("quokka habitat") == ["quokka habitat guide"]


def test_as_of_read_follows_only_links_that_existed_then(harness: Harness) -> None:
    [hit] = add_family(harness)
    other = harness.add_text("Ann told us so")
    before = harness.memory.engine.store.get_head("default").seq
    harness.memory.link(hit, "relates_to", other, **U)
    assert harness.search("quokka habitat", as_of=f"#{before}") == ["quokka habitat guide"]
    assert harness.search("quokka habitat", as_of=f"#{before + 1}") == [
        "quokka habitat guide",
        "Ann told us so",
    ]


def test_extracted_fact_retrieves_its_source_turn(harness: Harness) -> None:
    words = harness.add_text("so I said, why not move up north, it was in spring")
    fact = harness.memory.engine.store.get_fact("default", words)
    assert fact is not None
    claim = Claim("Ann lives in Tromsø", "profile", evidence=fact.evidence)
    harness.commit(Draft(Asserted("taken", claim), SCOPE, author="model"))
    found = harness.explain("Tromsø")
    assert found["so I said, why not move up north, it was in spring"]["sources"] == ["key"]


# QueryPlanner: intents


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What did we decide about the database?", "historical_decisions"),
        ("What is still open?", "open_items"),
        ("How do I deploy the service?", "reusable_skills"),
        ("How is Ann related to Bob?", "entity_relations"),
        ("Tell me about the weather", "background_supplement"),
        ("What did we decide about the tasks that are still open?", "historical_decisions"),
    ],
)
def test_first_matching_intent_wins(harness: Harness, query: str, intent: str) -> None:
    assert harness.memory.explain(query, **U)["asked"]["intent"] == intent


def test_skill_ranks_first_for_a_how_to_query(harness: Harness) -> None:
    harness.add_text("deploy the service on Friday")
    skill = "to deploy the service run make ship"
    harness.memory.add(skill, **U, memory_type="procedural_memory")
    assert (
        harness.memory.explain("What are the steps to deploy the service?", **U)["asked"]["sort"]
        == "skill"
    )
    assert harness.search("What are the steps to deploy the service?")[0] == skill


# Assembly: the token budget is never exceeded


def add_profile(harness: Harness, *texts: str) -> None:
    for number, text in enumerate(texts):
        harness.commit(Draft(Asserted(f"profile{number}{text[:5]}", Claim(text, "profile")), SCOPE))


def test_context_starts_with_the_profile_for_every_query(harness: Harness) -> None:
    add_profile(harness, "Ann is allergic to peanuts", "Ann lives in Oslo")
    for number in range(10):
        harness.add_text(f"note {number} on tea, coffee and the garden")
    texts = [
        harness.memory.context(query, **U, budget=300).text
        for query in ("tea", "the garden", "coffee 7", "nothing")
    ]
    for text in texts:
        head = text.splitlines()
        assert head[2] == "Always:"
        assert [line.partition(": ")[2] for line in head[4:6]] == [
            "Ann is allergic to peanuts",
            "Ann lives in Oslo",
        ]
        assert head[:6] == texts[0].splitlines()[:6]


def test_pinned_profile_takes_at_most_its_share_of_the_budget(harness: Harness) -> None:
    add_profile(harness, *(f"fact {number} about Ann and her many houses" for number in range(50)))
    harness.add_text("quokka habitat guide")
    bundle = harness.memory.context("quokka habitat", **U, budget=300)
    assert "quokka habitat guide" in bundle.text
    assert 1 <= bundle.text.count("many houses") <= 0.3 * 300 / 10
    assert bundle.tokens <= 300


def test_profile_that_also_matches_is_printed_once(harness: Harness) -> None:
    add_profile(harness, "Ann is allergic to peanuts")
    assert harness.memory.context("peanuts", **U).text.count("peanuts") == 1
