"""Cache tier retrieval: hot buffer, tail, topic co-occurrence and recall side effects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from told import Memory
from told.flow import run
from told.ledger.views import fold_all
from told.model.entry import Draft, Linked
from told.model.query import AccessCount
from told.model.scope import Scope
from told.ports import Batch
from told.retrieval.access_log import load_access_counts
from told.testing import HashingEmbedder, ManualClock, seeded_mint
from told.text.importance import score_importance

U = {"user_id": "u"}
SCOPE = Scope("default", user_id="u")


@pytest.fixture
def open_memory() -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def open_memory(**knobs: Any) -> Memory:
        clock = ManualClock()
        opened.append(
            Memory("ram://", **{"embedder": "none", "mint": seeded_mint(1, clock), **knobs})
        )
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    return open_memory()


def add_texts(memory: Memory, *texts: str, **ids: str) -> list[str]:
    return [row["id"] for row in memory.add(list(texts), **(ids or U))["results"]]


def search_texts(memory: Memory, query: str, **options: Any) -> list[str]:
    return [row["memory"] for row in memory.search(query, **{**U, **options})["results"]]


def explain_sources(memory: Memory, query: str, **options: Any) -> dict[str, list[str]]:
    return {
        row["memory"]: row["sources"]
        for row in memory.explain(query, **{**U, **options})["candidates"]
    }


def count_recalls(memory: Memory, *ids: str) -> list[int]:
    """Count how often each memory was recalled."""
    engine = memory.engine
    counts = run(load_access_counts(engine.store, engine.hot_buffers, "default", ids))
    return [counts.get(memory_id, AccessCount(0, 0)).count for memory_id in ids]


# Hot buffer


def test_selected_memory_enters_the_hot_buffer(memory: Memory) -> None:
    add_texts(memory, "green tea", "black coffee")
    assert explain_sources(memory, "zebra") == {}
    assert search_texts(memory, "tea") == ["green tea"]
    assert explain_sources(memory, "zebra") == {"green tea": ["hot"]}
    assert explain_sources(memory, "coffee") == {"black coffee": ["words #1"], "green tea": ["hot"]}


def test_only_selected_memories_enter_the_hot_buffer(memory: Memory) -> None:
    add_texts(memory, "green tea", "green soup", "green shirt")
    [first] = search_texts(memory, "green", limit=1)
    assert set(explain_sources(memory, "zebra")) == {first}


def test_hot_buffer_holds_twenty_and_evicts_the_least_recently_used(memory: Memory) -> None:
    add_texts(memory, *(f"note{number} alone" for number in range(25)))
    for number in range(25):
        assert search_texts(memory, f"note{number}", limit=1) == [f"note{number} alone"]
    hot = memory.engine.store.find_versions(
        "default", seqs=memory.engine.hot_buffers.get_hot_seqs(SCOPE)
    )
    assert {fact.text for fact in hot} == {f"note{number} alone" for number in range(5, 25)}


def test_hot_buffer_belongs_to_one_scope(memory: Memory) -> None:
    add_texts(memory, "green tea")
    add_texts(memory, "black tea", user_id="u", run_id="r")
    assert search_texts(memory, "black tea", run_id="r") == ["black tea"]
    assert explain_sources(memory, "zebra") == {}
    assert explain_sources(memory, "zebra", run_id="r") == {"black tea": ["hot"]}
    assert memory.explain("zebra", user_id="v")["candidates"] == []


def test_as_of_read_neither_uses_nor_fills_the_hot_buffer(memory: Memory) -> None:
    add_texts(memory, "green tea")
    head = f"#{memory.engine.store.get_head('default').seq}"
    assert search_texts(memory, "tea", as_of=head) == ["green tea"]
    assert memory.engine.hot_buffers.get_hot_seqs(SCOPE) == ()
    assert search_texts(memory, "tea") == ["green tea"]
    assert explain_sources(memory, "zebra", as_of=head) == {}
    assert explain_sources(memory, "zebra", valid_at="2030-01-01") == {}


def test_deleted_updated_or_erased_memory_leaves_the_hot_buffer(memory: Memory) -> None:
    gone, changed, erased = add_texts(memory, "tea one", "tea two", "tea three")
    assert len(search_texts(memory, "tea")) == 3
    memory.delete(gone)
    memory.update(changed, "coffee")
    memory.erase(erased)
    assert explain_sources(memory, "zebra") == {}


def test_filters_apply_to_hot_memories(memory: Memory) -> None:
    memory.add("green tea", **U, metadata={"tag": "home"})
    search_texts(memory, "tea")
    assert explain_sources(memory, "zebra", filters={"tag": "work"}) == {}
    assert explain_sources(memory, "zebra", filters={"tag": "home"}) == {"green tea": ["hot"]}


@pytest.mark.parametrize("knobs", [{"hot_size": 0}, {"sources": "time tree"}])
def test_hot_buffer_can_be_disabled(
    open_memory: Callable[..., Memory], knobs: dict[str, Any]
) -> None:
    memory = open_memory(**knobs)
    add_texts(memory, "green tea")
    search_texts(memory, "tea")
    assert explain_sources(memory, "zebra") == {}


# Side effects (only for selected items)


def test_only_selected_memories_count_as_recalled(memory: Memory) -> None:
    ids = add_texts(memory, "green tea", "green soup", "black coffee")
    [first] = memory.search("green", **U, limit=1)["results"]
    assert count_recalls(memory, *ids) == [int(first["id"] == memory_id) for memory_id in ids]
    memory.search("green", **U)
    assert sum(count_recalls(memory, *ids)) == 3
    assert count_recalls(memory, ids[2]) == [0]


def test_context_counts_recalls_only_of_its_hits(memory: Memory) -> None:
    ids = add_texts(memory, "green tea", "green " + "and very long " * 60)
    bundle = memory.context("green", **U, budget=50)
    assert [hit.fact.id for hit in bundle.hits] == [ids[0]]
    assert count_recalls(memory, *ids) == [1, 0]


def test_memories_dropped_by_threshold_or_dedup_are_not_counted(memory: Memory) -> None:
    [one] = add_texts(memory, "green tea")
    [other] = add_texts(memory, "green tea", user_id="u", run_id="r")
    [row] = memory.search("green tea", **U)["results"]
    assert row["also"] == [({one, other} - {row["id"]}).pop()]
    assert sum(count_recalls(memory, one, other)) == 1
    assert memory.search("green tea", **U, threshold=1.0)["results"] == []
    assert sum(count_recalls(memory, one, other)) == 1


def test_explain_get_and_as_of_reads_count_no_recall(memory: Memory) -> None:
    ids = add_texts(memory, "green tea")
    memory.explain("tea", **U)
    memory.why_not("tea", ids[0], **U)
    memory.get(ids[0])
    memory.get_all(**U)
    memory.search("tea", **U, as_of="#2")
    memory.context("tea", **U, as_of="#2")
    assert count_recalls(memory, *ids) == [0]
    assert memory.engine.hot_buffers.get_hot_seqs(SCOPE) == ()


# L0 tail (last 5 items, always shown verbatim)


def test_context_ends_with_the_last_five_turns_verbatim(memory: Memory) -> None:
    add_texts(
        memory, "my sister lives in Oslo", *(f"turn {number}: hm, yes!" for number in range(7))
    )
    for query in ("sister", "zebra", None):
        bundle = memory.context(query, **U, tail=5)
        lines = bundle.text.splitlines()
        start = lines.index("Just said:")
        said = [line.partition(": ")[2] for line in lines[start + 2 : -1]]
        assert said == [f"turn {number}: hm, yes!" for number in range(2, 7)]
    assert "my sister lives in Oslo" in memory.context("sister", **U, tail=5).text


def test_context_without_tail_has_no_tail_section(memory: Memory) -> None:
    add_texts(memory, "green tea", "coffee")
    assert "Just said:" not in memory.context("tea", **U).text


def test_tail_turn_that_also_matches_is_printed_once(memory: Memory) -> None:
    add_texts(memory, "green tea")
    assert memory.context("tea", **U, tail=5).text.count("green tea") == 1


# Knowledge graph: topics and co_occurs edges


def commit_links(memory: Memory, *links: tuple[str, str, str, float]) -> None:
    drafts = [Draft(Linked(src, rel, dst, weight), SCOPE) for src, rel, dst, weight in links]
    memory.engine.store.commit(Batch("default", drafts), fold_all)


def raw_scores(memory: Memory, query: str) -> dict[str, float]:
    return {row["memory"]: row["parts"]["raw"] for row in memory.explain(query, **U)["candidates"]}


def test_members_of_a_topic_are_retrieved_together(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory(expand_hot=0.0)
    tea, pot, dog = add_texts(memory, "green tea", "a cast iron pot", "the dog is brown")
    commit_links(
        memory, (tea, "in_topic", "topic:kitchen", 1.0), (pot, "in_topic", "topic:kitchen", 0.8)
    )
    scores = raw_scores(memory, "tea")
    assert scores == {
        "green tea": scores["green tea"],
        "a cast iron pot": pytest.approx(0.4 * scores["green tea"]),
    }
    assert explain_sources(memory, "tea")["a cast iron pot"] == ["topic"]
    assert dog


def test_cooccurring_topics_retrieve_each_others_members(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory(expand_hot=0.0)
    tea, violin, far = add_texts(memory, "green tea", "a violin lesson", "two steps away")
    commit_links(
        memory,
        (tea, "in_topic", "topic:a", 1.0),
        (violin, "in_topic", "topic:b", 0.9),
        ("topic:b", "co_occurs", "topic:a", 0.5),
        (far, "in_topic", "topic:c", 1.0),
        ("topic:b", "co_occurs", "topic:c", 1.0),
    )
    scores = raw_scores(memory, "tea")
    assert scores["a violin lesson"] == pytest.approx(0.5 * 0.5 * 0.9 * scores["green tea"])
    assert scores.get("two steps away", 0.0) < scores["a violin lesson"]


def test_topic_expansion_can_be_disabled(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory(sources="hot time tree graph keys")
    tea, pot = add_texts(memory, "green tea", "a cast iron pot")
    commit_links(
        memory, (tea, "in_topic", "topic:kitchen", 1.0), (pot, "in_topic", "topic:kitchen", 1.0)
    )
    assert list(raw_scores(memory, "tea")) == ["green tea"]


def test_expansion_of_a_large_topic_is_capped(memory: Memory) -> None:
    [tea] = add_texts(memory, "green tea")
    others = add_texts(memory, *(f"member {number}" for number in range(300)))
    commit_links(memory, *((thread, "in_topic", "topic:t", 1.0) for thread in (tea, *others)))
    assert 1 < len(raw_scores(memory, "tea")) <= 1 + 30 * 6


def test_topic_members_of_another_user_are_not_retrieved(memory: Memory) -> None:
    [tea] = add_texts(memory, "green tea")
    [theirs] = add_texts(memory, "a secret", user_id="v")
    commit_links(memory, (tea, "in_topic", "topic:t", 1.0), (theirs, "in_topic", "topic:t", 1.0))
    assert "secret" not in str(memory.explain("tea", **U))


# Dedupe: hash content, skip duplicates


def test_duplicates_are_returned_once_with_the_ids_of_the_others(memory: Memory) -> None:
    [one] = add_texts(memory, "Green  tea!")
    [two] = add_texts(memory, "Green  tea!", user_id="u", run_id="r")
    [other] = add_texts(memory, "black tea")
    rows = memory.search("tea", **U)["results"]
    assert {row["memory"] for row in rows} == {"Green  tea!", "black tea"}
    assert {(row["id"], *row.get("also", ())) for row in rows} in (
        {(one, two), (other,)},
        {(two, one), (other,)},
    )


def test_duplicates_do_not_count_towards_the_limit(memory: Memory) -> None:
    for number in range(40):
        add_texts(memory, "green tea is good", user_id="u", run_id=f"r{number}")
    add_texts(memory, "green tea in the morning", "a tea pot")
    wanted = ["green tea is good", "green tea in the morning", "a tea pot"]
    assert sorted(search_texts(memory, "green tea is good", limit=3)) == sorted(wanted)


# Fused score and weights


def test_weights_of_the_seed_can_be_configured(open_memory: Callable[..., Memory]) -> None:
    """0.6·sim + 0.3·recency + 0.1·importance, on a scale of ten."""
    memory = open_memory(
        embedder=HashingEmbedder(),
        fusion="anchored",
        fusion_alpha=1.0,
        rank_recency=3.0,
        rank_importance=1.0,
        rank_talk=0.0,
        newest_among=0,
    )
    memory.add("green tea", **U, timestamp="2024-01-01", metadata={"importance": 0.1})
    memory.add("green tea!", **U, timestamp="2026-01-01", metadata={"importance": 0.1})
    memory.add("green tea?", **U, timestamp="2026-01-01", metadata={"importance": 0.9})
    rows = memory.search("green tea", **U, explain=True)["results"]
    [best, *_] = rows
    assert best["metadata"] == {"importance": 0.9}
    for row in rows:
        parts = row["score_details"]
        assert parts["dense"] == pytest.approx(10.0 * parts["cosine"])
        assert parts["importance"] == pytest.approx(row["metadata"]["importance"])
        assert 0.0 < parts["recency"] <= 3.0


DAY = 86_400_000_000


def expected_score(
    row: dict[str, Any], age_days: float, half_life: float, importance: float
) -> float:
    similarity: float = row["score_details"]["cosine"]
    return 0.6 * similarity + 0.3 * math.exp(-age_days / half_life) + 0.1 * importance


def add_aged_turns(memory: Memory) -> dict[str, str]:
    """Add three turns, 20, 5 and 0 days old; only the first has an importance."""
    clock = memory.engine.store.mint.clock
    ids, worth = {}, {"importance": 0.9}
    for text, meta, days in (
        ("green tea", worth, 15),
        ("green tea pot", {}, 5),
        ("a blue tea cup", {}, 0),
    ):
        [ids[text]] = [
            row["id"] for row in memory.add(text, **U, infer=False, metadata=meta)["results"]
        ]
        clock.tick(days * DAY)
    return ids


def test_fused_score_weighs_similarity_recency_and_importance(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory(embedder=HashingEmbedder(), fusion="fused", newest_among=0)
    add_aged_turns(memory)
    ages, worth = {"green tea": 20, "green tea pot": 5, "a blue tea cup": 0}, {"green tea": 0.9}
    rows = memory.search("green tea", **U, explain=True)["results"]
    assert len(rows) == 3
    for row in rows:
        text, parts = row["memory"], row["score_details"]
        expected = expected_score(row, ages[text], 7.0, worth.get(text, score_importance(text)))
        assert row["score"] == pytest.approx(expected, abs=1e-4)
        assert parts["dense"] == pytest.approx(6.0 * parts["cosine"])
        assert parts["recency"] == pytest.approx(3.0 * math.exp(-ages[text] / 7.0), abs=1e-3)
        assert parts["importance"] == pytest.approx(worth.get(text, score_importance(text)))
        assert parts["raw"] == pytest.approx(
            parts["dense"] + parts["recency"] + parts["importance"]
        )
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert rows[0]["memory"] == "green tea pot", "what matches best is twenty days old"
    usual = open_memory(embedder=HashingEmbedder())
    add_aged_turns(usual)
    assert search_texts(usual, "green tea", limit=1) == ["green tea"], (
        "and by default it is the first"
    )


def test_fused_score_uses_registry_recency_and_judged_importance(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory(embedder=HashingEmbedder(), fusion="fused", newest_among=0)
    ids = add_aged_turns(memory)
    filed = Linked(ids["green tea"], "in_exchange", "x", 0.5)
    judged = Linked("words", "importance", ids["green tea pot"], 0.2)
    drafts = [Draft(link, SCOPE, "told") for link in (filed, judged)]
    memory.engine.store.commit(Batch("default", drafts), fold_all)
    rows = {row["memory"]: row for row in memory.search("green tea", **U, explain=True)["results"]}
    old, pot = rows["green tea"], rows["green tea pot"]
    assert old["score"] == pytest.approx(expected_score(old, 20, 30.0, 0.9), abs=1e-4)
    assert pot["score"] == pytest.approx(expected_score(pot, 5, 7.0, 0.2), abs=1e-4)


def test_fused_score_without_vectors_uses_term_coverage(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory(fusion="fused")
    add_texts(memory, "green tea", "black tea")
    one, other = memory.search("green tea", **U, explain=True)["results"]
    assert one["score_details"]["cover"] == pytest.approx(6.0), "all of it"
    assert 0.0 < other["score_details"]["cover"] < 6.0
    assert one["memory"] == "green tea"
