"""Cache tier knowledge graph: topics, splits and merges, co-occurrence and the hot buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from compass import Compass, exchange, pair
from told import Memory
from told.errors import Conflict, NotFoundError
from told.extraction.prompting import fence_as_data
from told.flow import run
from told.model.entry import Linked
from told.model.salience import score_member
from told.model.scope import Scope
from told.model.scoring import quantise
from told.model.topics import Thresholds, compute_mean, unpack_code, unpack_mean
from told.retrieval import access_log
from told.settings import Settings
from told.testing import FlakyEmbedder, ManualClock, ScriptedLLM, seeded_mint

U = {"user_id": "u"}
SCOPE = Scope("default", user_id="u")
OpenMemory = Callable[..., Memory]
WORDS = {"one": "one n0", "two": "two n50", "close": "close n18", "far": "far n50"}


@pytest.fixture(params=["ram", "sqlite"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenMemory]:
    opened: list[Memory] = []

    def open_memory(**settings: Any) -> Memory:
        url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/{len(opened)}.db"
        defaults = {
            "embedder": Compass(),
            "mint": seeded_mint(1, ManualClock()),
            "extract": "verbatim",
            "gate": False,
        }
        opened.append(Memory(url, **{**defaults, **settings}))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def list_topics(memory: Memory, **ids: str) -> list[dict[str, Any]]:
    return memory.topics(**(ids or U))["results"]


def list_labels(memory: Memory, **ids: str) -> list[str]:
    return [row["label"] for row in list_topics(memory, **ids)]


def topic_sizes(memory: Memory) -> list[int]:
    return sorted(row["members"] for row in list_topics(memory) if not row["super"])


def cooccurrence_counts(memory: Memory) -> dict[frozenset[str], int]:
    engine = memory.engine
    names = {row["id"]: row["label"] for row in list_topics(memory)}
    pairs = run(
        access_log.load_cooccurrence(engine.store, engine.hot_buffers, "default", list(names))
    )
    assert all(one < other for one, other in pairs), "each pair has one order, that of its ids"
    held = {pair: touch.count for pair, touch in pairs.items() if names.keys() >= set(pair)}
    return {frozenset(names[topic] for topic in pair): count for pair, count in held.items()}


def expected_pairs(**counts: int) -> dict[frozenset[str], int]:
    """Build counts by label: `one_two=1` is the pair of topics labelled by these WORDS."""
    return {
        frozenset(WORDS[name] for name in pair.split("_")): count for pair, count in counts.items()
    }


def search_texts(memory: Memory, query: str, **options: Any) -> list[str]:
    return [row["memory"] for row in memory.search(query, **{**U, **options})["results"]]


def explain_sources(memory: Memory, query: str, **options: Any) -> dict[str, list[str]]:
    rows = memory.explain(query, **{**U, "limit": 1, **options})["candidates"]
    return {row["memory"]: row["sources"] for row in rows}


def read_topic_notes(memory: Memory) -> dict[str, bytes]:
    """Read the notes of topics and exchanges, without the epoch keys."""
    notes = memory.engine.store.read_notes("default", "topics")
    return {key: bytes(note) for key, note in notes.items() if not key.startswith("epoch")}


# Thresholds


def test_default_thresholds_match_the_seed() -> None:
    limits = Thresholds()
    assert (limits.join, limits.merge, limits.near, limits.hot) == (0.70, 0.93, 0.60, 0.60)
    assert limits.split == pytest.approx(0.70 + 0.05)
    settings = Settings()
    assert (
        settings.topic_cap,
        settings.topic_members,
        settings.hot_size,
        settings.registry_days,
    ) == (20, 2, 20, 30.0)
    assert score_member(1.0, 0.0, 0.0) == 0.5
    assert score_member(0.0, 1.0, 0.0) == 0.3
    assert score_member(0.0, 0.0, 1.0) == 0.2


# "If any centroid has cosine >= 0.70 the turn joins"


def test_near_exchange_joins_a_topic_and_distant_one_starts_a_new_topic(memory: Memory) -> None:
    for text in ("redis n0", "sessions n40", "mongo n100"):
        exchange(memory, text)
    assert memory.file_topics() == {"filed": 3, "made": 2, "split": 0, "warnings": []}
    assert [(row["label"], row["members"]) for row in list_topics(memory)] == [
        ("redis n0", 2),
        ("mongo n100", 1),
    ]


@pytest.mark.parametrize(("degrees", "topics"), [(44, 1), (47, 2)])
def test_join_threshold_is_a_cosine_of_0_70(memory: Memory, degrees: int, topics: int) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.70) == (topics == 1)
    exchange(memory, "one n0")
    exchange(memory, f"other n{degrees}")
    memory.file_topics()
    assert len(list_topics(memory)) == topics


def test_centroid_is_the_mean_of_all_members(memory: Memory) -> None:
    """Joining at 40 degrees moves the mean to 20, so 60 joins and -30 no longer does."""
    for text in ("a n0", "b n40", "c n60", "d n330"):
        exchange(memory, text)
    memory.file_topics()
    assert [(row["label"], row["members"]) for row in list_topics(memory)] == [
        ("a n0", 3),
        ("d n330", 1),
    ]


def test_user_and_agent_turns_are_embedded_together(open_memory: OpenMemory) -> None:
    embedder = Compass()
    memory = open_memory(embedder=embedder)
    exchange(memory, "when do we use it n0", "for sessions n10")
    embedder.asked.clear()
    memory.file_topics()
    assert embedder.asked == ["User: when do we use it n0\nAgent: for sessions n10"]


def test_label_is_the_first_eighty_characters_of_the_user_turn(memory: Memory) -> None:
    text = (
        "we  use\nredis for session caching because it is quick and because everybody here "
        "knows it well n0"
    )
    exchange(memory, text)
    memory.file_topics()
    [label] = list_labels(memory)
    assert label == " ".join(text.split())[:80].rstrip()


def test_each_exchange_is_filed_once(memory: Memory) -> None:
    exchange(memory, "a n0")
    assert memory.file_topics()["filed"] == 1
    assert memory.file_topics()["filed"] == 0
    exchange(memory, "b n10")
    assert memory.file_topics() == {"filed": 1, "made": 0, "split": 0, "warnings": []}
    assert topic_sizes(memory) == [2]


def test_filing_result_does_not_depend_on_page_size(open_memory: OpenMemory) -> None:
    whole, pages = open_memory(), open_memory(consumer_batch=3)
    for memory in (whole, pages):
        for number in range(12):
            exchange(memory, f"turn {number} n{number * 23 % 180}")
        memory.file_topics()
    assert [(row["label"], row["members"]) for row in list_topics(whole)] == [
        (row["label"], row["members"]) for row in list_topics(pages)
    ]


def test_without_an_embedder_nothing_is_filed_and_a_warning_is_returned(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(embedder="none")
    memory.add("nothing to file", **U)
    assert memory.file_topics() == {"filed": 0, "made": 0, "split": 0, "warnings": []}
    before = memory.engine.store.get_cursor("default", "topics")
    exchange(memory, "a n0")
    done = memory.file_topics()
    assert done["filed"] == 0
    assert "No embedder" in done["warnings"][0]
    assert list_topics(memory) == []
    assert memory.engine.store.get_cursor("default", "topics") == before


def test_failing_embedder_loses_nothing(open_memory: OpenMemory) -> None:
    flaky = FlakyEmbedder(0, Compass(), local=True)
    memory = open_memory(embedder=flaky)
    exchange(memory, "a n0")
    flaky.failures = flaky.calls + 1
    done = memory.file_topics()
    assert done["filed"] == 0
    assert "failed as it was told to" in done["warnings"][0]
    assert memory.file_topics()["filed"] == 1


def test_topics_belong_to_one_scope(memory: Memory) -> None:
    exchange(memory, "mine n0")
    exchange(memory, "theirs n0", user_id="v")
    exchange(memory, "at work n0", user_id="u", run_id="r")
    memory.file_topics()
    assert list_labels(memory, user_id="v") == ["theirs n0"]
    assert list_labels(memory, user_id="u", run_id="r") == ["at work n0"]
    assert list_labels(memory) == ["mine n0", "at work n0"]
    assert all(row["members"] == 1 for row in list_topics(memory))


def test_topics_are_hidden_from_search_and_listings(memory: Memory) -> None:
    exchange(memory, "redis n0", "yes n0")
    memory.file_topics()
    assert {row["memory"] for row in memory.get_all(**U)["results"]} == {"redis n0", "yes n0"}
    assert set(search_texts(memory, "redis n0")) == {"redis n0", "yes n0"}
    assert memory.stats()["memories"] == 2
    assert memory.verify()["ok"]


# "Nodes split when member_count > 20 (re-clustered at + 0.05)"


def test_topic_of_more_than_twenty_is_split(memory: Memory) -> None:
    for number in range(20):
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}")
    memory.file_topics()
    assert topic_sizes(memory) == [20]
    [old] = list_topics(memory)
    exchange(memory, "turn 20 n0")
    done = memory.file_topics()
    assert (done["filed"], done["split"]) == (1, 1)
    assert topic_sizes(memory) == [10, 11]
    assert old["id"] not in {row["id"] for row in list_topics(memory)}
    with pytest.raises(NotFoundError):
        memory.topic(old["id"])


def test_split_keeps_every_member(memory: Memory) -> None:
    threads = [
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}") for number in range(21)
    ]
    memory.file_topics()
    inside = [turn for row in list_topics(memory) for turns in row["turns"] for turn in turns]
    assert sorted(inside) == sorted(thread for pair in threads for thread in pair)


def test_topic_without_subclusters_is_not_split(memory: Memory) -> None:
    for number in range(50):
        exchange(memory, f"turn {number} n{number % 10}")
    assert memory.file_topics()["split"] == 0
    assert topic_sizes(memory) == [50]


def test_as_of_read_returns_the_topics_before_a_split(memory: Memory) -> None:
    for number in range(20):
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    exchange(memory, "turn 20 n0")
    memory.file_topics()
    [before] = memory.topics(**U, as_of=then)["results"]
    assert before["members"] == 20
    assert len(list_topics(memory)) == 2


def test_as_of_read_excludes_later_cooccurrence(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    search_texts(memory, "n25")
    assert [len(row["neighbours"]) for row in list_topics(memory)] == [1, 1]
    assert [row["neighbours"] for row in memory.topics(**U, as_of=then)["results"]] == [[], []]


def test_topic_of_an_unsubscribed_kind_is_not_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/guarded.db"
    with Memory(url, embedder=Compass(), extract="verbatim", gate=False) as memory:
        exchange(memory, "one n0")
        memory.file_topics()
        [topic] = list_topics(memory)
    with Memory(url, embedder=Compass(), subscribes=["memory"]) as memory:
        assert list_topics(memory) == []
        with pytest.raises(NotFoundError):
            memory.topic(topic["id"])


# Only current turns are in a topic


def test_deleted_turns_are_neither_counted_nor_used_as_labels(memory: Memory) -> None:
    threads = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    memory.delete(threads[0])
    assert [(row["label"], row["members"]) for row in list_topics(memory)] == [("fine n0", 2)]
    memory.delete(threads[1])
    [row] = list_topics(memory)
    assert (row["label"], row["members"]) == ("one n10", 1)
    assert "one n10" in {turn["memory"] for turn in memory.topic(row["id"])["results"]}
    [before] = memory.topics(**U, as_of=then)["results"]
    assert (before["label"], before["members"]) == ("secret n0", 2), "the past keeps it"


def test_topic_without_current_members_is_not_listed(memory: Memory) -> None:
    threads = exchange(memory, "secret n0")
    exchange(memory, "keep q0")
    memory.file_topics()
    [gone, _] = list_topics(memory)
    for thread in threads:
        memory.delete(thread)
    assert list_labels(memory) == ["keep q0"]
    with pytest.raises(NotFoundError):
        memory.topic(gone["id"])
    memory.file_topics()
    assert "secret" not in memory.get(gone["id"])["memory"]
    assert list_labels(memory) == ["keep q0"]


@pytest.mark.parametrize("change", ["delete", "update"])
def test_topic_is_relabelled_when_its_label_turn_is_deleted_or_updated(
    memory: Memory, change: str
) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    memory.file_topics()
    [old] = list_topics(memory)
    if change == "delete":
        memory.delete(user)
    else:
        memory.update(user, "open n0")
    wanted = "fine n0" if change == "delete" else "open n0"
    assert list_labels(memory) == [wanted]
    assert memory.get(old["id"])["memory"] == "secret n0", "it is shown so, but not written yet"
    memory.file_topics()
    assert memory.get(old["id"])["memory"] == wanted
    assert list_labels(memory) == [wanted]
    head = memory.engine.store.get_head("default")
    memory.file_topics()
    assert memory.engine.store.get_head("default") == head, "one name is enough"
    assert [row["members"] for row in list_topics(memory)] == [2]


def test_label_set_by_the_user_is_kept(memory: Memory) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    memory.file_topics()
    [topic] = list_topics(memory)
    memory.update(topic["id"], "Things of mine")
    memory.delete(user)
    memory.file_topics()
    assert list_labels(memory) == ["Things of mine"]


def test_super_topic_is_relabelled_when_its_label_source_is_deleted(memory: Memory) -> None:
    user, _ = exchange(memory, "secret cache n0", "fine place n0")
    exchange(memory, "secret place n48")
    memory.file_topics()
    [made] = memory.abstract_topics(**U)["results"]
    assert made["label"] == "secret"
    memory.delete(user)
    assert [row["label"] for row in list_topics(memory) if row["super"]] == ["place"]
    memory.file_topics()
    [again] = memory.abstract_topics(**U)["results"]
    assert (again["id"], again["label"]) == (made["id"], "place")
    assert memory.get(made["id"])["memory"] == "place"


@pytest.fixture
def bicycle(open_memory: OpenMemory) -> tuple[Memory, list[str]]:
    """A memory with a filed turn that is in no topic yet, and the claims extracted from it."""
    memory = open_memory(extract="local", gate=True)
    claims = [
        row["id"] for row in memory.add("I bought a red bicycle for 300 euros n0", **U)["results"]
    ]
    [turn] = [
        fact.id
        for fact in memory.engine.store.find_versions(SCOPE.account, scope=SCOPE)
        if fact.kind == "turn"
    ]
    assert claims
    assert turn not in claims
    pair(memory, [turn], SCOPE)
    return memory, claims


def test_turn_whose_facts_were_all_forgotten_leaves_its_topic(
    bicycle: tuple[Memory, list[str]],
) -> None:
    memory, claims = bicycle
    memory.file_topics()
    [topic] = list_topics(memory)
    assert topic["members"] == 1
    for claim in claims:
        memory.forget(claim)
    assert list_topics(memory) == []
    memory.file_topics()
    assert "bicycle" not in memory.get(topic["id"])["memory"]
    exchange(memory, "another n10")
    memory.file_topics()
    assert [(row["label"], row["members"]) for row in list_topics(memory)] == [("another n10", 1)]


def test_turn_whose_facts_were_all_forgotten_is_not_filed(
    bicycle: tuple[Memory, list[str]],
) -> None:
    memory, claims = bicycle
    for claim in claims:
        memory.forget(claim)
    assert memory.file_topics()["filed"] == 0
    assert "bicycle" not in str(memory.get_all(**U, filters={"kind": "topic"}))


# "Merge near-duplicate nodes (cosine >= 0.93)"


def test_near_duplicate_topics_are_merged(open_memory: OpenMemory) -> None:
    memory = open_memory(topic_join=0.98)
    for text in ("one n0", "two n18", "far n60"):
        exchange(memory, text)
    memory.file_topics()
    one, two, far = list_topics(memory)
    done = memory.merge_topics(**U)
    assert done == {"merged": [{"id": two["id"], "into": one["id"]}], "warnings": []}
    assert [(row["id"], row["members"]) for row in list_topics(memory)] == [
        (one["id"], 2),
        (far["id"], 1),
    ]
    assert memory.merge_topics(**U)["merged"] == []


@pytest.mark.parametrize(("degrees", "merged"), [(20, 1), (23, 0)])
def test_merge_threshold_is_a_cosine_of_0_93(
    open_memory: OpenMemory, degrees: int, merged: int
) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.93) == bool(merged)
    memory = open_memory(topic_join=0.98)
    exchange(memory, "one n0")
    exchange(memory, f"two n{degrees}")
    memory.file_topics()
    assert len(memory.merge_topics(**U)["merged"]) == merged


def test_merged_topic_inherits_cooccurrence_counts(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(topic_join=0.98)
    for text in ("one n0", "close n18", "far n50"):
        exchange(memory, text)
    memory.file_topics()
    search_texts(memory, "n30")
    run(memory.engine.flush_accesses())
    assert cooccurrence_counts(memory) == expected_pairs(one_close=1, one_far=1, close_far=1)
    memory.merge_topics(**U)
    assert cooccurrence_counts(memory) == expected_pairs(one_far=2)


# "Super-cluster KG nodes -> concept nodes", abstracted_from


def test_super_topics_link_to_their_parts(memory: Memory) -> None:
    for text in ("cache in redis n0", "cache in memory n48", "the garden q0"):
        exchange(memory, text)
    memory.file_topics()
    one, two, garden = list_topics(memory)
    [made] = memory.abstract_topics(**U)["results"]
    assert made["super"] is True
    assert made["parts"] == [one["id"], two["id"]]
    assert made["label"].startswith("cach")
    rows = {row["id"]: row for row in list_topics(memory)}
    assert rows[one["id"]]["supers"] == rows[two["id"]]["supers"] == [made["id"]]
    assert rows[garden["id"]]["supers"] == []
    assert {link.rel for link in memory.engine.store.find_links("default", [made["id"]])} >= {
        "abstracted_from"
    }
    assert memory.file_topics()["filed"] == 0
    again = memory.abstract_topics(**U)["results"]
    assert [row["id"] for row in again] == [made["id"]]


def test_model_labels_super_topics(open_memory: OpenMemory) -> None:
    llm = ScriptedLLM(["Caching"])
    memory = open_memory(llm=llm)
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    [made] = memory.abstract_topics(**U)["results"]
    assert made["label"] == "Caching"
    [(_, said)] = llm.asked
    assert said == fence_as_data("topics", ["- cache in redis n0", "- cache in memory n48"])


def test_model_is_asked_once_despite_commit_conflicts(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = ScriptedLLM(["Caching"])
    memory = open_memory(llm=llm)
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    commit, tries = memory.engine.store.commit, iter(range(2))

    def commit_with_conflicts(batch: Any, *rest: Any) -> Any:
        if next(tries, None) is not None:
            raise Conflict
        return commit(batch, *rest)

    monkeypatch.setattr(
        type(memory.engine.store), "commit", lambda _, *rest: commit_with_conflicts(*rest)
    )
    assert [row["label"] for row in memory.abstract_topics(**U)["results"]] == ["Caching"]
    assert len(llm.asked) == 1


@pytest.mark.parametrize(
    "reply", ["", "...", "Sure! Here is a name:\nCaching", "word " * 30, "x" * 200]
)
def test_unusable_model_label_falls_back_to_shared_words(
    open_memory: OpenMemory, reply: str
) -> None:
    memory = open_memory(llm=ScriptedLLM([reply]))
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    done = memory.abstract_topics(**U)
    assert done["results"][0]["label"] == "cache"
    assert "Named without the model" in done["warnings"][0]


def test_super_topic_without_shared_words_takes_the_first_label(memory: Memory) -> None:
    for text in ("we decided it n0", "the zanzibar service n48"):
        exchange(memory, text)
    memory.file_topics()
    assert memory.abstract_topics(**U)["results"][0]["label"] == "we decided it n0"


def test_failing_model_falls_back_to_shared_words(open_memory: OpenMemory) -> None:
    memory = open_memory(llm=ScriptedLLM([]))
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    done = memory.abstract_topics(**U)
    assert done["results"][0]["label"].startswith("cach")
    assert "Named without the model" in done["warnings"][0]


# "co_occurs: both >= 0.6 to the same query, selected or not"


def test_topics_near_one_query_cooccur_selected_or_not(open_memory: OpenMemory) -> None:
    memory = open_memory(centre=0.0, newest_among=0)
    for text in ("one n0", "two n50", "three n100"):
        exchange(memory, text)
    memory.file_topics()
    assert search_texts(memory, "n30", limit=1) == ["two n50"]
    assert cooccurrence_counts(memory) == expected_pairs(one_two=1)


@pytest.mark.parametrize(("degrees", "counted"), [(52, True), (55, False)])
def test_cooccurrence_threshold_is_a_cosine_of_0_60(
    memory: Memory, degrees: int, counted: bool
) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.60) == counted
    exchange(memory, "one n0")
    exchange(memory, "two n60")
    memory.file_topics()
    search_texts(memory, f"n{degrees}")
    assert bool(cooccurrence_counts(memory)) == counted


def test_cooccurrence_is_counted_per_query_and_undirected(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    for _ in range(3):
        search_texts(memory, "n25")
    memory.context("n25", **U)
    assert cooccurrence_counts(memory) == expected_pairs(one_two=4)
    one, two = list_topics(memory)
    assert [(each["label"], each["count"], each["weight"]) for each in one["neighbours"]] == [
        ("two n50", 4, 0.8)
    ]
    assert [(each["label"], each["count"]) for each in two["neighbours"]] == [("one n0", 4)]


def test_cooccurrence_is_flushed_with_recalls_and_not_in_the_ledger(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    head = memory.engine.store.get_head("default")
    search_texts(memory, "n25")
    ids = [row["id"] for row in list_topics(memory)]
    assert memory.engine.store.cooccurrence("default", ids) == {}
    run(memory.engine.flush_accesses())
    assert [touch.count for touch in memory.engine.store.cooccurrence("default", ids).values()] == [
        1
    ]
    search_texts(memory, "n25")
    assert cooccurrence_counts(memory) == expected_pairs(one_two=2)
    assert memory.engine.store.get_head("default") == head


def test_as_of_reads_and_explanations_count_no_cooccurrence(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    search_texts(memory, "n25", as_of=f"#{memory.engine.store.get_head('default').seq}")
    memory.explain("n25", **U)
    assert cooccurrence_counts(memory) == {}


# "a query hitting one will pull in the other"; two members of each topic


@pytest.fixture
def narrow_memory(open_memory: OpenMemory) -> Memory:
    """A memory with minimal search depth, so that topic expansion is visible."""
    return open_memory(depth=1, beside=0, hot_size=0, expand_hot=0.0, centre=0.0)


def test_hit_retrieves_two_members_of_its_topic(narrow_memory: Memory) -> None:
    for number in range(6):
        exchange(narrow_memory, f"turn {number} n{number * 2}", f"ok {number} n{number * 2}")
    narrow_memory.file_topics()
    sources_by_text = explain_sources(narrow_memory, "n0")
    assert sorted(by for by in map(tuple, sources_by_text.values())).count(("topic",)) == 2


def test_read_looks_up_the_links_of_each_memory_once(
    narrow_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        exchange(narrow_memory, f"turn {number} n{number * 2}", f"ok {number} n{number * 2}")
    narrow_memory.file_topics()
    store, asked = narrow_memory.engine.store, list[str]()
    links = store.find_links
    monkeypatch.setattr(
        store,
        "find_links",
        lambda account, nodes, seq: asked.extend(nodes) or links(account, nodes, seq),
    )
    assert len(search_texts(narrow_memory, "n0", limit=3)) == 3
    assert len(asked) > 3
    assert len(asked) == len(set(asked))


def test_members_are_ranked_by_similarity_recency_and_importance(narrow_memory: Memory) -> None:
    first = exchange(narrow_memory, "first n0", "yes one n1")
    for text in ("near n2", "far n30", "further n34"):
        exchange(narrow_memory, text, f"yes {text}")
    narrow_memory.file_topics()
    topic_texts = [
        text for text, by in explain_sources(narrow_memory, "n0").items() if by == ["topic"]
    ]
    assert [text.split()[-1] for text in sorted(topic_texts, key=len)] == ["n1", "n2"]
    [further] = [
        row["id"] for row in narrow_memory.get_all(**U)["results"] if row["memory"] == "further n34"
    ]
    narrow_memory.link(first[0], "importance", further, weight=1.0, **U)
    assert "further n34" in {
        text for text, by in explain_sources(narrow_memory, "n0").items() if by == ["topic"]
    }


def test_cooccurring_topics_retrieve_each_others_members(narrow_memory: Memory) -> None:
    exchange(narrow_memory, "redis n0", "yes n0")
    exchange(narrow_memory, "sessions n50", "right n50")
    narrow_memory.file_topics()
    assert "sessions n50" not in explain_sources(narrow_memory, "n0 redis")
    one, two = (row["id"] for row in list_topics(narrow_memory))
    narrow_memory.engine.hot_buffers.record_cooccurrence("default", [one, two], 1)
    assert explain_sources(narrow_memory, "n0 redis")["sessions n50"] == ["topic"]


def test_neighbour_topic_unrelated_to_the_query_is_not_retrieved(narrow_memory: Memory) -> None:
    exchange(narrow_memory, "redis n0", "yes n0")
    exchange(narrow_memory, "sessions n70", "right n70")
    narrow_memory.file_topics()
    narrow_memory.engine.hot_buffers.record_cooccurrence(
        "default", [row["id"] for row in list_topics(narrow_memory)], 1
    )
    assert "sessions n70" not in explain_sources(narrow_memory, "n0 redis")


def test_as_of_read_does_not_follow_later_cooccurrence(narrow_memory: Memory) -> None:
    exchange(narrow_memory, "redis n0", "yes n0")
    exchange(narrow_memory, "sessions n50", "right n50")
    narrow_memory.file_topics()
    narrow_memory.engine.hot_buffers.record_cooccurrence(
        "default", [row["id"] for row in list_topics(narrow_memory)], 1
    )
    then = f"#{narrow_memory.engine.store.get_head('default').seq}"
    assert "sessions n50" not in explain_sources(narrow_memory, "n0 redis", as_of=then)


def test_deleted_topic_retrieves_no_members(narrow_memory: Memory) -> None:
    for number in range(3):
        exchange(narrow_memory, f"turn {number} n{number}")
    narrow_memory.file_topics()
    [topic] = list_topics(narrow_memory)
    narrow_memory.delete(topic["id"])
    assert ["topic"] not in explain_sources(narrow_memory, "n0").values()


def test_topic_source_without_topics_changes_nothing(open_memory: OpenMemory) -> None:
    def search_rows(sources: str) -> list[Any]:
        memory = open_memory(sources=sources)
        for number in range(10):
            exchange(memory, f"turn {number} n{number * 7}", f"reply {number}")
        return [(row["memory"], row["score"]) for row in memory.search("n12", **U)["results"]]

    assert search_rows("hot time tree graph topics keys") == search_rows("hot time tree graph keys")


# "Hot buffer: LRU of 20, hit threshold cosine >= 0.6", hot_nodes


def test_hot_memory_is_a_hit_from_a_cosine_of_0_60(
    narrow_memory: Memory, open_memory: OpenMemory
) -> None:
    memory = open_memory(depth=1, beside=0, centre=0.0)
    for text in ("warm n0", "other n90"):
        memory.add(text, **U)
    assert search_texts(memory, "n0", limit=1) == ["warm n0"]
    assert explain_sources(memory, "n52")["warm n0"][-1] == "hot"
    assert explain_sources(memory, "n56")["warm n0"][-1] == "warm", "at hand, but no answer"
    assert narrow_memory.engine.hot_buffers.get_hot_seqs(SCOPE) == ()


def test_hot_buffer_holds_twenty_memories_with_vectors(open_memory: OpenMemory) -> None:
    memory = open_memory(newest_among=0)
    for number in range(25):
        memory.add(f"note{number} n{number * 7}", **U)
    for number in range(25):
        search_texts(memory, f"note{number} n{number * 7}", limit=1)
    overlay = memory.engine.hot_buffers
    assert len(overlay.get_hot_seqs(SCOPE)) == 20
    assert all(hot.code for hot in overlay._buffers[SCOPE].items.values())


def test_hot_buffer_skips_topics_it_holds_completely(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(depth=1, beside=0, expand_hot=0.0, centre=0.0)
    exchange(memory, "redis n0", "yes n40")
    memory.file_topics()
    assert explain_sources(memory, "n0")["yes n40"] == ["topic"]
    for _ in range(2):
        assert set(search_texts(memory, "n0")) == {"redis n0", "yes n40"}
    [topic] = list_topics(memory)
    members = [turn for turns in topic["turns"] for turn in turns]
    assert memory.engine.hot_buffers.find_hot_topics(SCOPE, {topic["id"]: members}) == {topic["id"]}
    assert explain_sources(memory, "n0")["yes n40"] == ["hot"]
    exchange(memory, "sessions n10", "right n10")
    memory.file_topics()
    [topic] = list_topics(memory)
    members = [turn for turns in topic["turns"] for turn in turns]
    assert memory.engine.hot_buffers.find_hot_topics(SCOPE, {topic["id"]: members}) == set()


def test_topic_leaves_the_hot_buffer_with_its_members(open_memory: OpenMemory) -> None:
    memory = open_memory(depth=1, beside=0, expand_hot=0.0, centre=0.0, hot_size=2)
    exchange(memory, "redis n0", "yes n40")
    exchange(memory, "garden q0", "right q40")
    memory.file_topics()
    redis, garden = (row["id"] for row in list_topics(memory))
    buffer = memory.engine.hot_buffers._buffers
    for query, topic in (("n0", redis), ("q0", garden)):
        for _ in range(2):
            search_texts(memory, query)
        assert set(buffer[SCOPE].topics) == {topic}


# Rebuild, erasure and transfer


def test_rebuilt_topics_equal_the_originals(open_memory: OpenMemory) -> None:
    embedder = Compass()
    memory = open_memory(embedder=embedder)
    for number in range(60):
        exchange(memory, f"turn {number} n{number * 37 % 120}", f"ok {number} n{number * 11 % 40}")
        if number % 7 == 0:
            memory.file_topics()
    memory.file_topics()
    memory.merge_topics(**U)
    memory.abstract_topics(**U)
    before, rows = read_topic_notes(memory), list_topics(memory)
    embedder.asked.clear()
    memory.rebuild()
    assert read_topic_notes(memory) == before
    assert list_topics(memory) == rows
    assert embedder.asked == [], "no model is asked"


def mean_counts(memory: Memory) -> dict[str, int]:
    """Count the exchanges in the mean of each topic, by label."""
    notes = memory.engine.store.read_notes("default", "topics")
    found = {
        row["label"]: unpack_mean(notes.get(row["id"]), "compass") for row in list_topics(memory)
    }
    return {label: 0 if mean is None else mean.count for label, mean in found.items()}


def test_erase_removes_the_turn_from_its_topic_before_it_returns(memory: Memory) -> None:
    exchange(memory, "one n0", "fine n0")
    user, agent = exchange(memory, "two n20", "secret n30")
    memory.file_topics()
    [number] = {
        link.dst
        for link in memory.engine.store.find_links("default", [user])
        if link.rel == "in_exchange"
    }
    before = read_topic_notes(memory)
    memory.erase(agent)
    after = read_topic_notes(memory)
    assert after[number] != before[number], "the vector of both together is gone"
    assert not set(after.values()) & {
        before[number],
        *(before[row["id"]] for row in list_topics(memory)),
    }
    assert mean_counts(memory) == {"one n0": 2}
    memory.erase(user)
    assert number not in read_topic_notes(memory)
    assert mean_counts(memory) == {"one n0": 1}
    [topic] = list_topics(memory)
    mean = unpack_mean(read_topic_notes(memory)[topic["id"]], "compass")
    assert mean is not None
    assert mean == compute_mean([quantise(Compass().embed(["User: one n0\nAgent: fine n0"])[0])])


def test_erasing_the_label_turn_relabels_the_topic(
    memory: Memory,
) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    exchange(memory, "two n20")
    memory.file_topics()
    assert list_labels(memory) == ["secret n0"]
    memory.erase(user)
    assert list_labels(memory) == ["fine n0"]
    [topic] = list_topics(memory)
    assert topic["members"] == 3, "the answer is still there"
    assert "secret" not in str(memory.topics(**U))
    before = read_topic_notes(memory)
    memory.rebuild()
    assert read_topic_notes(memory) == before
    assert memory.file_topics()["filed"] == 0


def test_topic_without_members_is_removed(memory: Memory) -> None:
    exchange(memory, "keep q0")
    threads = exchange(memory, "gone n0")
    memory.file_topics()
    for thread in threads:
        memory.erase(thread)
    assert list_labels(memory) == ["keep q0"]


def test_erasing_a_user_removes_all_topic_notes(memory: Memory) -> None:
    exchange(memory, "mine n0")
    exchange(memory, "theirs n0", user_id="v")
    memory.file_topics()
    memory.erase(user_id="u")
    left = read_topic_notes(memory)
    assert len(left) == 2, "one exchange and one topic, of the other"
    assert list_topics(memory) == []
    assert list_labels(memory, user_id="v") == ["theirs n0"]


def test_topic_links_are_ledger_entries(memory: Memory) -> None:
    exchange(memory, "one n0")
    memory.file_topics()
    entries = memory.engine.store.scan_entries("default", 0, 1000)
    rels = [entry.verb.rel for entry in entries if isinstance(entry.verb, Linked)]
    assert rels == ["in_exchange", "in_exchange", "derived_from", "in_topic", "in_topic"]
    assert memory.verify()["ok"]


def test_topics_are_imported_with_the_ledger_and_erasures_follow(
    open_memory: OpenMemory,
) -> None:
    here, there = open_memory(), open_memory()

    def copy_ledger() -> None:
        ledger = BytesIO()
        here.export(ledger)
        there.import_(ledger.getvalue())

    exchange(here, "one n0", "fine n0")
    user, _ = exchange(here, "two n20", "secret n30")
    here.file_topics()
    copy_ledger()
    there.file_topics()
    assert [(row["label"], row["members"]) for row in list_topics(there)] == [("one n0", 2)]
    there.rebuild()
    assert mean_counts(there) == {"one n0": 2}
    before = read_topic_notes(there)
    here.erase(user)
    copy_ledger()
    assert not set(read_topic_notes(there).values()) & set(before.values())
    there.rebuild()
    assert read_topic_notes(there) == read_topic_notes(here)


def test_erased_exchange_leaves_no_vector_bytes_on_disk(tmp_path: Path) -> None:
    with Memory(
        f"sqlite:///{tmp_path}/m.db", embedder=Compass(), extract="verbatim", gate=False
    ) as memory:
        exchange(memory, "one n0", "fine n3")
        user, agent = exchange(memory, "two n21 b40 c50", "secret n33 d60 e70")
        memory.file_topics()
        [number] = {
            link.dst
            for link in memory.engine.store.find_links("default", [user])
            if link.rel == "in_exchange"
        }
        code = unpack_code(read_topic_notes(memory)[number], "compass")
        assert code is not None

        def files_with_vector() -> list[str]:
            return [
                path.name
                for path in tmp_path.iterdir()
                if path.is_file() and code in path.read_bytes()
            ]

        assert files_with_vector(), "its own, and that of the topic it is alone in"
        memory.erase(agent)
        assert files_with_vector() == []
    assert files_with_vector() == []
