"""The context engine's retrieval: three levels of text, signposts, tree expansion, hotness and
intents.
"""

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


class Desk:
    """A memory with a clock, in words that fit these tests."""

    def __init__(self, **knobs: Any) -> None:
        self.clock = ManualClock()
        options = {"embedder": "none", "mint": seeded_mint(1, self.clock), **knobs}
        self.memory = Memory("ram://", **options)

    def tell(self, text: str, **options: Any) -> str:
        return str(self.memory.add(text, **{**U, **options})["results"][0]["id"])

    def commit(self, *drafts: Draft) -> None:
        self.memory.engine.store.commit(Batch("default", drafts), fold_all)

    def explain(self, query: str, **options: Any) -> dict[str, dict[str, Any]]:
        return {
            row["memory"]: row for row in self.memory.explain(query, **U, **options)["candidates"]
        }

    def found(self, query: str, **options: Any) -> list[str]:
        return [row["memory"] for row in self.memory.search(query, **U, **options)["results"]]


@pytest.fixture
def open_desk() -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def open_desk(**knobs: Any) -> Desk:
        desks.append(Desk(**knobs))
        return desks[-1]

    yield open_desk
    for desk in desks:
        desk.memory.close()


@pytest.fixture
def desk(open_desk: Callable[..., Desk]) -> Desk:
    return open_desk()


# ---------------------------------------------------------------------------- Why L0/L1/L2 three-
# level retrieval?

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
def test_one_search_goes_over_all_three_levels(
    open_desk: Callable[..., Desk], embedder: Any, query: str, level: str
) -> None:
    desk = open_desk(embedder=embedder)
    desk.tell(CONTENT, metadata=LEVELS)
    desk.tell("The kitchen was painted green")
    found = desk.explain(query)
    assert next(iter(found)) == CONTENT
    assert found[CONTENT]["level"] == level


def test_a_signpost_leads_to_the_content_behind_it(desk: Desk) -> None:
    desk.tell(CONTENT, metadata=LEVELS)
    assert desk.found("kangaroo") == [CONTENT], "the word stands in the abstract alone"


def test_a_memory_is_one_hit_however_many_of_its_levels_match(desk: Desk) -> None:
    desk.tell(f"kangaroo. {CONTENT} kangaroo.", metadata={**LEVELS, "overview": "kangaroo"})
    assert len(desk.found("kangaroo")) == 1


def test_a_context_prints_the_content_else_the_overview_else_the_abstract(desk: Desk) -> None:
    desk.tell(CONTENT, metadata=LEVELS)
    shown = []
    for budget in (2000, 60, 34, 10):
        bundle = desk.memory.context("kangaroo", **U, budget=budget)
        assert bundle.tokens <= budget
        texts = {"content": CONTENT, **LEVELS}
        shown.append([level for level, text in texts.items() if text in bundle.text])
        kept = [candidate for candidate in bundle.trace.candidates if candidate.kept]
        assert [candidate.level for candidate in kept] == shown[-1]
    assert shown == [["content"], ["overview"], ["abstract"], []]


def test_with_an_abstract_alone_the_shorter_form_is_called_that(desk: Desk) -> None:
    desk.tell(CONTENT, metadata={"abstract": LEVELS["abstract"]})
    bundle = desk.memory.context("kangaroo", **U, budget=50)
    assert LEVELS["abstract"] in bundle.text
    assert [candidate.level for candidate in bundle.trace.candidates] == ["abstract"]


@pytest.mark.parametrize("shorter", ["", "   ", 7, None, ["x"]])
def test_a_shorter_form_that_is_no_text_is_none(desk: Desk, shorter: Any) -> None:
    desk.tell(CONTENT, metadata={"abstract": shorter})
    assert desk.found("procedure") == [CONTENT]
    assert desk.memory.context("procedure", **U, budget=30).hits == ()


def test_a_text_too_long_for_the_budget_keeps_no_other_out(desk: Desk) -> None:
    desk.tell("x" * 590 + " quokka")
    desk.tell(CONTENT * 9, metadata={"abstract": "quokka quokka"})
    desk.tell("a quokka is small")
    text = desk.memory.context("quokka", **U, budget=60).text
    assert "a quokka is small" in text
    assert "quokka quokka" in text


def test_only_the_piece_that_matches_is_printed_of_a_long_text(desk: Desk) -> None:
    desk.tell(f"{CONTENT} The wombat sleeps in box nine. {CONTENT.replace('Step', 'Stage')}")
    bundle = desk.memory.context("wombat", **U, budget=1000)
    assert "wombat sleeps in box nine" in bundle.text
    assert bundle.tokens < 300


# ------------------------------------------------------------- Score propagation: final = α·child
# + (1-α)·parent


def raw(row: dict[str, Any]) -> float:
    return float(row["parts"]["raw"])


def own(row: dict[str, Any]) -> float:
    return raw(row) - (row["parts"].get("parent") or 0.0)


def family(desk: Desk, *children: str, weight: float = 1.0) -> list[str]:
    """A parent that matches "quokka habitat", and children that are parts of it."""
    parent = desk.tell("quokka habitat guide")
    made = [desk.tell(child) for child in children]
    for child in made:
        desk.memory.link(child, "part_of", parent, weight=weight, **U)
    return [parent, *made]


def test_a_child_meets_its_parent_half_way(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(expand_hot=0.0)
    family(desk, "they sleep under bushes", "the habitat has shrubs")
    desk.tell("nothing to do with it")
    found = desk.explain("quokka habitat")
    parent = raw(found["quokka habitat guide"])
    for child in ("they sleep under bushes", "the habitat has shrubs"):
        assert raw(found[child]) == pytest.approx(0.5 * own(found[child]) + 0.5 * parent)
        assert "child" in found[child]["sources"]
    assert own(found["they sleep under bushes"]) == 0.0
    assert own(found["the habitat has shrubs"]) > 0.0
    assert "nothing to do with it" not in found
    assert desk.found("quokka habitat") == [
        "quokka habitat guide",
        "the habitat has shrubs",
        "they sleep under bushes",
    ]


def test_a_weak_link_brings_less(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(expand_hot=0.0)
    family(desk, "they sleep under bushes", weight=0.4)
    found = desk.explain("quokka habitat")
    assert raw(found["they sleep under bushes"]) == pytest.approx(
        0.5 * 0.4 * raw(found["quokka habitat guide"])
    )


def test_grandchildren_come_up_from_their_parents(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(expand_hot=0.0)
    _, child = family(desk, "they sleep under bushes")
    grandchild = desk.tell("mostly at noon")
    desk.memory.link(grandchild, "part_of", child, **U)
    found = desk.explain("quokka habitat")
    assert raw(found["mostly at noon"]) == pytest.approx(raw(found["quokka habitat guide"]) / 4)


def test_of_two_parents_the_stronger_one_lifts(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(expand_hot=0.0)
    weak = desk.tell("a habitat of bees and other small things that fly")
    _, child = family(desk, "they sleep under bushes")
    other = desk.tell("leaves")
    strong = desk.tell("quokka habitat atlas")
    for parent in (weak, strong):
        desk.memory.link(other, "part_of", parent, **U)
    found = desk.explain("quokka habitat")
    assert raw(found["leaves"]) == pytest.approx(0.5 * raw(found["quokka habitat atlas"]))
    assert child


def test_a_parent_does_not_pull_a_better_child_down(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(expand_hot=0.0)
    parent, child = (
        desk.tell("a guide to the habitat of many other things"),
        desk.tell("quokka habitat"),
    )
    desk.memory.link(child, "part_of", parent, **U)
    before = raw(desk.explain("quokka habitat", as_of="#4")["quokka habitat"])
    assert raw(desk.explain("quokka habitat")["quokka habitat"]) == pytest.approx(before)
    assert desk.found("quokka habitat")[0] == "quokka habitat"


def test_what_the_ninth_best_leads_to_is_found_however_few_are_wanted(
    open_desk: Callable[..., Desk],
) -> None:
    desk = open_desk(expand_hot=0.0, expand_own=0.0, spare=0)
    ninth = desk.tell("quokka habitat")
    for number in range(8):
        desk.tell(f"quokka habitat {number}")
    desk.memory.link(desk.tell("they sleep under bushes"), "part_of", ninth, **U)
    everything = desk.found("quokka habitat")
    assert [desk.found("quokka habitat", limit=limit) for limit in (1, 3, 9)] == [
        everything[:n] for n in (1, 3, 9)
    ]
    assert "they sleep under bushes" in everything


def test_a_child_is_lifted_wherever_it_stood_before(open_desk: Callable[..., Desk]) -> None:
    """One of the ten best is lifted as one further down is: the better of two children stays the
    better.
    """
    desk = open_desk(expand_hot=0.0)
    parent = desk.tell("quokka habitat guide")
    good, weak = desk.tell("habitat with shrubs"), desk.tell("a b c d e f")
    for child in (good, weak):
        desk.memory.link(child, "part_of", parent, **U)
    for number in range(30):
        desk.tell(f"filler {number} about something else")
    found = desk.found("quokka habitat")
    assert found[:3] == ["quokka habitat guide", "habitat with shrubs", "a b c d e f"]


# ------------------------------------- Hotness blending: blended = (1-α_hotness)·semantic +
# α_hotness·h_score


def test_a_lead_is_blended_with_how_much_it_is_in_use(desk: Desk) -> None:
    _, child = family(desk, "they sleep under bushes")
    found = desk.explain("quokka habitat")
    parent = raw(found["quokka habitat guide"])
    assert raw(found["they sleep under bushes"]) == pytest.approx(0.8 * 0.5 * parent)
    fact = desk.memory.engine.store.get_fact("default", child)
    assert fact is not None
    for _ in range(3):
        desk.memory.engine.hot_buffers.record_hits(
            "default", Scope(user_id="elsewhere"), [fact], desk.clock.now
        )
    hot = log(4) / (log(4) + 1)
    for days in (0, 7, 14):
        found = desk.explain("quokka habitat")
        wanted = 0.8 * 0.5 * parent + 0.2 * 10 * hot * 2 ** (-days / 7)
        assert raw(found["they sleep under bushes"]) == pytest.approx(wanted, rel=1e-6)
        desk.clock.tick(7 * DAY)


def test_being_recalled_never_sets_a_lead_back(desk: Desk) -> None:
    family(desk, "they sleep under bushes", "leaves are eaten")
    desk.memory.search("bushes", **U, limit=1)
    for days in (0, 7, 70):
        desk.clock.tick(days * DAY)
        found = list(desk.explain("quokka habitat"))
        assert found.index("they sleep under bushes") < found.index("leaves are eaten")


# HierarchicalSearcher: convergence


@pytest.mark.parametrize("rel", ["part_of", "relates_to"])
def test_a_circle_of_links_comes_to_an_end(desk: Desk, rel: str) -> None:
    made = [desk.tell(text) for text in ("quokka habitat", "two", "three", "four")]
    for here, there in zip(made, [*made[1:], made[0]], strict=True):
        desk.memory.link(here, rel, there, **U)
        desk.memory.link(here, rel, here, **U)
    found = desk.explain("quokka habitat")
    assert next(iter(found)) == "quokka habitat"
    assert set(found) == {"quokka habitat", "two", "three", "four"}


def test_a_wide_tree_is_followed_only_so_far(desk: Desk) -> None:
    [parent] = family(desk)
    made = desk.memory.add([f"leaf {number}" for number in range(200)], **U)["results"]
    desk.commit(*(Draft(Linked(row["id"], "part_of", parent), SCOPE) for row in made))
    led = [row for row in desk.explain("quokka habitat").values() if row["sources"] == ["child"]]
    assert len(led) == 30
    found = [row for row in desk.explain("quokka habitat").values() if "child" in row["sources"]]
    assert len(found) == 30


def test_a_deep_chain_is_followed_only_so_many_rounds(desk: Desk) -> None:
    [above] = family(desk)
    for number in range(20):
        below = desk.tell(f"link number {number}")
        desk.memory.link(below, "part_of", above, **U)
        above = below
    found = desk.explain("quokka habitat")
    assert [text for text in found if text.startswith("link")] == [
        f"link number {number}" for number in range(6)
    ]


def test_it_ends_after_three_rounds_that_change_nothing_at_the_top(
    open_desk: Callable[..., Desk],
) -> None:
    desk = open_desk(expand_top=2, expand_rounds=20)
    [above] = family(desk)
    desk.tell("another quokka habitat")
    for number in range(10):
        below = desk.tell(f"link number {number}")
        desk.memory.link(below, "part_of", above, **U)
        above = below
    assert len([text for text in desk.explain("quokka habitat") if text.startswith("link")]) == 3


def test_children_that_were_given_up_take_no_room_from_those_that_are_there(desk: Desk) -> None:
    [parent] = family(desk)
    for number in range(40):
        child = desk.tell(f"leaf {number}")
        desk.memory.link(child, "part_of", parent, **U)
        if number < 39:
            desk.memory.delete(child)
    assert "leaf 39" in desk.found("quokka habitat")


def test_links_into_other_scopes_lead_nowhere(desk: Desk) -> None:
    [parent] = family(desk)
    strangers = [desk.tell(f"secret {number}", user_id="other") for number in range(40)]
    own_child = desk.tell("leaf")
    threads = [*strangers, own_child]
    desk.commit(*(Draft(Linked(thread, "part_of", parent), SCOPE) for thread in threads))
    found = desk.memory.explain("quokka habitat", **U)
    assert "secret" not in str(found)
    assert "leaf" in desk.found("quokka habitat")


@pytest.mark.parametrize("source", ["tree", "graph"])
def test_each_source_can_be_left_out(open_desk: Callable[..., Desk], source: str) -> None:
    rels = {"tree": "part_of", "graph": "relates_to"}
    for sources, wanted in ((source, True), ("hot time", False)):
        desk = open_desk(sources=sources)
        [parent] = family(desk)
        for name, rel in rels.items():
            desk.memory.link(desk.tell(f"by {name}"), rel, parent, **U)
        found = desk.found("quokka habitat")
        assert (f"by {source}" in found) is wanted
        assert sum(text.startswith("by") for text in found) == wanted


# ------------------------------------------------------------------------------------------ Graph
# Retrieval


@pytest.mark.parametrize("forward", [True, False])
def test_linked_memories_come_up_with_each_other(
    open_desk: Callable[..., Desk], forward: bool
) -> None:
    desk = open_desk(expand_hot=0.0)
    [hit] = family(desk)
    other = desk.tell("Ann told us so")
    here, there = (hit, other) if forward else (other, hit)
    desk.memory.link(here, "relates_to", there, weight=0.5, **U)
    found = desk.explain("quokka habitat")
    assert raw(found["Ann told us so"]) == pytest.approx(0.25 * raw(found["quokka habitat guide"]))
    assert found["Ann told us so"]["sources"] == ["graph"]


@pytest.mark.parametrize("rel", ["supersedes", "contradicts", "supports", "derived_from"])
def test_relations_that_are_no_neighbourhood_are_not_followed(desk: Desk, rel: str) -> None:
    [hit] = family(desk)
    desk.memory.link(desk.tell("Ann told us so"), rel, hit, **U)
    assert desk.found("quokka habitat") == ["quokka habitat guide"]


def test_a_link_is_followed_as_of_then_only_if_it_was_there_then(desk: Desk) -> None:
    [hit] = family(desk)
    other = desk.tell("Ann told us so")
    before = desk.memory.engine.store.get_head("default").seq
    desk.memory.link(hit, "relates_to", other, **U)
    assert desk.found("quokka habitat", as_of=f"#{before}") == ["quokka habitat guide"]
    assert desk.found("quokka habitat", as_of=f"#{before + 1}") == [
        "quokka habitat guide",
        "Ann told us so",
    ]


def test_an_extracted_fact_leads_to_the_words_it_was_taken_from(desk: Desk) -> None:
    words = desk.tell("so I said, why not move up north, it was in spring")
    fact = desk.memory.engine.store.get_fact("default", words)
    assert fact is not None
    claim = Claim("Ann lives in Tromsø", "profile", evidence=fact.evidence)
    desk.commit(Draft(Asserted("taken", claim), SCOPE, author="model"))
    found = desk.explain("Tromsø")
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
def test_a_query_has_one_intent_and_the_first_that_fits_wins(
    desk: Desk, query: str, intent: str
) -> None:
    assert desk.memory.explain(query, **U)["asked"]["intent"] == intent


def test_a_skill_goes_first_when_one_is_asked_for(desk: Desk) -> None:
    desk.tell("deploy the service on Friday")
    skill = "to deploy the service run make ship"
    desk.memory.add(skill, **U, memory_type="procedural_memory")
    assert (
        desk.memory.explain("What are the steps to deploy the service?", **U)["asked"]["sort"]
        == "skill"
    )
    assert desk.found("What are the steps to deploy the service?")[0] == skill


# ---------------------------------------------------------------------- assemble: never exceed
# the token budget


def profile(desk: Desk, *texts: str) -> None:
    for number, text in enumerate(texts):
        desk.commit(Draft(Asserted(f"profile{number}{text[:5]}", Claim(text, "profile")), SCOPE))


def test_the_profile_stands_first_and_the_beginning_is_the_same_for_every_query(desk: Desk) -> None:
    profile(desk, "Ann is allergic to peanuts", "Ann lives in Oslo")
    for number in range(10):
        desk.tell(f"note {number} on tea, coffee and the garden")
    texts = [
        desk.memory.context(query, **U, budget=300).text
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


def test_what_is_pinned_takes_at_most_its_share(desk: Desk) -> None:
    profile(desk, *(f"fact {number} about Ann and her many houses" for number in range(50)))
    desk.tell("quokka habitat guide")
    bundle = desk.memory.context("quokka habitat", **U, budget=300)
    assert "quokka habitat guide" in bundle.text
    assert 1 <= bundle.text.count("many houses") <= 0.3 * 300 / 10
    assert bundle.tokens <= 300


def test_a_profile_that_is_also_found_is_printed_once(desk: Desk) -> None:
    profile(desk, "Ann is allergic to peanuts")
    assert desk.memory.context("peanuts", **U).text.count("peanuts") == 1
