"""The cache tiers' knowledge graph: topics, how they split and merge, what came up together, and
the hot buffer.
"""

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
Opening = Callable[..., Memory]
WORDS = {"one": "one n0", "two": "two n50", "close": "close n18", "far": "far n50"}


@pytest.fixture(params=["ram", "sqlite"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    opened: list[Memory] = []

    def open_memory(**knobs: Any) -> Memory:
        url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/{len(opened)}.db"
        usual = {
            "embedder": Compass(),
            "mint": seeded_mint(1, ManualClock()),
            "extract": "verbatim",
            "gate": False,
        }
        opened.append(Memory(url, **{**usual, **knobs}))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Opening) -> Memory:
    return open_memory()


def listed(memory: Memory, **ids: str) -> list[dict[str, Any]]:
    return memory.topics(**(ids or U))["results"]


def labels(memory: Memory, **ids: str) -> list[str]:
    return [row["label"] for row in listed(memory, **ids)]


def sizes(memory: Memory) -> list[int]:
    return sorted(row["members"] for row in listed(memory) if not row["super"])


def met(memory: Memory) -> dict[frozenset[str], int]:
    engine = memory.engine
    names = {row["id"]: row["label"] for row in listed(memory)}
    pairs = run(
        access_log.load_cooccurrence(engine.store, engine.hot_buffers, "default", list(names))
    )
    assert all(one < other for one, other in pairs), "each pair has one order, that of its ids"
    held = {pair: touch.count for pair, touch in pairs.items() if names.keys() >= set(pair)}
    return {frozenset(names[topic] for topic in pair): count for pair, count in held.items()}


def pairs_of(**counts: int) -> dict[frozenset[str], int]:
    """Counts by names: `one_two=1` is the pair of the topics that begin with these words."""
    return {
        frozenset(WORDS[name] for name in pair.split("_")): count for pair, count in counts.items()
    }


def found(memory: Memory, query: str, **options: Any) -> list[str]:
    return [row["memory"] for row in memory.search(query, **{**U, **options})["results"]]


def sources(memory: Memory, query: str, **options: Any) -> dict[str, list[str]]:
    rows = memory.explain(query, **{**U, "limit": 1, **options})["candidates"]
    return {row["memory"]: row["sources"] for row in rows}


def grown(memory: Memory) -> dict[str, bytes]:
    """What is noted of topics and exchanges, but for when it was."""
    notes = memory.engine.store.read_notes("default", "topics")
    return {key: bytes(note) for key, note in notes.items() if not key.startswith("epoch")}


# Numbers


def test_the_numbers_are_those_of_the_seed_where_no_embedder_says_otherwise() -> None:
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


# -------------------------------------------------------------- "If any centroid has cosine >=
# 0.70 the turn joins"


def test_an_exchange_near_enough_joins_a_topic_and_another_begins_one(memory: Memory) -> None:
    for text in ("redis n0", "sessions n40", "mongo n100"):
        exchange(memory, text)
    assert memory.file_topics() == {"filed": 3, "made": 2, "split": 0, "warnings": []}
    assert [(row["label"], row["members"]) for row in listed(memory)] == [
        ("redis n0", 2),
        ("mongo n100", 1),
    ]


@pytest.mark.parametrize(("degrees", "topics"), [(44, 1), (47, 2)])
def test_the_threshold_is_a_cosine_of_seven_tenths(
    memory: Memory, degrees: int, topics: int
) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.70) == (topics == 1)
    exchange(memory, "one n0")
    exchange(memory, f"other n{degrees}")
    memory.file_topics()
    assert len(listed(memory)) == topics


def test_the_centroid_is_the_mean_of_all_members(memory: Memory) -> None:
    """What joins at 40 degrees moves the mean to 20, so that 60 joins and what lay at -30 no longer
    would.
    """
    for text in ("a n0", "b n40", "c n60", "d n330"):
        exchange(memory, text)
    memory.file_topics()
    assert [(row["label"], row["members"]) for row in listed(memory)] == [
        ("a n0", 3),
        ("d n330", 1),
    ]


def test_what_user_and_agent_said_is_embedded_together(open_memory: Opening) -> None:
    embedder = Compass()
    memory = open_memory(embedder=embedder)
    exchange(memory, "when do we use it n0", "for sessions n10")
    embedder.asked.clear()
    memory.file_topics()
    assert embedder.asked == ["User: when do we use it n0\nAgent: for sessions n10"]


def test_a_label_is_the_first_eighty_characters_of_what_the_user_said(memory: Memory) -> None:
    text = (
        "we  use\nredis for session caching because it is quick and because everybody here "
        "knows it well n0"
    )
    exchange(memory, text)
    memory.file_topics()
    [label] = labels(memory)
    assert label == " ".join(text.split())[:80].rstrip()


def test_each_exchange_is_filed_once_however_often_it_is_asked_for(memory: Memory) -> None:
    exchange(memory, "a n0")
    assert memory.file_topics()["filed"] == 1
    assert memory.file_topics()["filed"] == 0
    exchange(memory, "b n10")
    assert memory.file_topics() == {"filed": 1, "made": 0, "split": 0, "warnings": []}
    assert sizes(memory) == [2]


def test_filing_a_page_at_a_time_comes_to_the_same(open_memory: Opening) -> None:
    whole, pages = open_memory(), open_memory(consumer_batch=3)
    for memory in (whole, pages):
        for number in range(12):
            exchange(memory, f"turn {number} n{number * 23 % 180}")
        memory.file_topics()
    assert [(row["label"], row["members"]) for row in listed(whole)] == [
        (row["label"], row["members"]) for row in listed(pages)
    ]


def test_without_an_embedder_nothing_is_done_and_it_says_so(open_memory: Opening) -> None:
    memory = open_memory(embedder="none")
    memory.add("nothing to file", **U)
    assert memory.file_topics() == {"filed": 0, "made": 0, "split": 0, "warnings": []}
    before = memory.engine.store.get_cursor("default", "topics")
    exchange(memory, "a n0")
    done = memory.file_topics()
    assert done["filed"] == 0
    assert "No embedder" in done["warnings"][0]
    assert listed(memory) == []
    assert memory.engine.store.get_cursor("default", "topics") == before


def test_an_embedder_that_fails_loses_nothing(open_memory: Opening) -> None:
    flaky = FlakyEmbedder(0, Compass(), local=True)
    memory = open_memory(embedder=flaky)
    exchange(memory, "a n0")
    flaky.failures = flaky.calls + 1
    done = memory.file_topics()
    assert done["filed"] == 0
    assert "failed as it was told to" in done["warnings"][0]
    assert memory.file_topics()["filed"] == 1


def test_topics_are_of_one_scope_and_nobody_elses_is_joined(memory: Memory) -> None:
    exchange(memory, "mine n0")
    exchange(memory, "theirs n0", user_id="v")
    exchange(memory, "at work n0", user_id="u", run_id="r")
    memory.file_topics()
    assert labels(memory, user_id="v") == ["theirs n0"]
    assert labels(memory, user_id="u", run_id="r") == ["at work n0"]
    assert labels(memory) == ["mine n0", "at work n0"]
    assert all(row["members"] == 1 for row in listed(memory))


def test_no_search_and_no_listing_shows_a_topic(memory: Memory) -> None:
    exchange(memory, "redis n0", "yes n0")
    memory.file_topics()
    assert {row["memory"] for row in memory.get_all(**U)["results"]} == {"redis n0", "yes n0"}
    assert set(found(memory, "redis n0")) == {"redis n0", "yes n0"}
    assert memory.stats()["memories"] == 2
    assert memory.verify()["ok"]


# -------------------------------------------------- "Nodes split when member_count > 20 (re-
# clustered at + 0.05)"


def test_a_topic_of_twenty_stays_and_one_of_more_is_split(memory: Memory) -> None:
    for number in range(20):
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}")
    memory.file_topics()
    assert sizes(memory) == [20]
    [old] = listed(memory)
    exchange(memory, "turn 20 n0")
    done = memory.file_topics()
    assert (done["filed"], done["split"]) == (1, 1)
    assert sizes(memory) == [10, 11]
    assert old["id"] not in {row["id"] for row in listed(memory)}
    with pytest.raises(NotFoundError):
        memory.topic(old["id"])


def test_a_split_keeps_every_member_and_the_latest_link_counts(memory: Memory) -> None:
    threads = [
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}") for number in range(21)
    ]
    memory.file_topics()
    inside = [turn for row in listed(memory) for turns in row["turns"] for turn in turns]
    assert sorted(inside) == sorted(thread for pair in threads for thread in pair)


def test_a_topic_that_does_not_fall_apart_is_kept_whole(memory: Memory) -> None:
    for number in range(50):
        exchange(memory, f"turn {number} n{number % 10}")
    assert memory.file_topics()["split"] == 0
    assert sizes(memory) == [50]


def test_the_past_keeps_the_topics_it_had(memory: Memory) -> None:
    for number in range(20):
        exchange(memory, f"turn {number} n{0 if number % 2 else 44}")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    exchange(memory, "turn 20 n0")
    memory.file_topics()
    [before] = memory.topics(**U, as_of=then)["results"]
    assert before["members"] == 20
    assert len(listed(memory)) == 2


def test_the_past_knows_nothing_of_what_came_up_together_since(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    found(memory, "n25")
    assert [len(row["neighbours"]) for row in listed(memory)] == [1, 1]
    assert [row["neighbours"] for row in memory.topics(**U, as_of=then)["results"]] == [[], []]


def test_a_topic_that_may_not_be_seen_is_not_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/guarded.db"
    with Memory(url, embedder=Compass(), extract="verbatim", gate=False) as memory:
        exchange(memory, "one n0")
        memory.file_topics()
        [topic] = listed(memory)
    with Memory(url, embedder=Compass(), subscribes=["memory"]) as memory:
        assert listed(memory) == []
        with pytest.raises(NotFoundError):
            memory.topic(topic["id"])


# ------------------------------------------------------------------------------- Only what is
# held is in a topic


def test_what_is_deleted_is_neither_counted_nor_named(memory: Memory) -> None:
    threads = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    memory.file_topics()
    then = f"#{memory.engine.store.get_head('default').seq}"
    memory.delete(threads[0])
    assert [(row["label"], row["members"]) for row in listed(memory)] == [("fine n0", 2)]
    memory.delete(threads[1])
    [row] = listed(memory)
    assert (row["label"], row["members"]) == ("one n10", 1)
    assert "one n10" in {turn["memory"] for turn in memory.topic(row["id"])["results"]}
    [before] = memory.topics(**U, as_of=then)["results"]
    assert (before["label"], before["members"]) == ("secret n0", 2), "the past keeps it"


def test_a_topic_in_which_nothing_is_held_is_not_listed(memory: Memory) -> None:
    threads = exchange(memory, "secret n0")
    exchange(memory, "keep q0")
    memory.file_topics()
    [gone, _] = listed(memory)
    for thread in threads:
        memory.delete(thread)
    assert labels(memory) == ["keep q0"]
    with pytest.raises(NotFoundError):
        memory.topic(gone["id"])
    memory.file_topics()
    assert "secret" not in memory.get(gone["id"])["memory"]
    assert labels(memory) == ["keep q0"]


@pytest.mark.parametrize("change", ["delete", "update"])
def test_a_topic_gets_another_name_when_the_words_it_had_are_no_longer_held(
    memory: Memory, change: str
) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    memory.file_topics()
    [old] = listed(memory)
    if change == "delete":
        memory.delete(user)
    else:
        memory.update(user, "open n0")
    wanted = "fine n0" if change == "delete" else "open n0"
    assert labels(memory) == [wanted]
    assert memory.get(old["id"])["memory"] == "secret n0", "it is shown so, but not written yet"
    memory.file_topics()
    assert memory.get(old["id"])["memory"] == wanted
    assert labels(memory) == [wanted]
    head = memory.engine.store.get_head("default")
    memory.file_topics()
    assert memory.engine.store.get_head("default") == head, "one name is enough"
    assert [row["members"] for row in listed(memory)] == [2]


def test_a_name_that_somebody_gave_a_topic_stays(memory: Memory) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    memory.file_topics()
    [topic] = listed(memory)
    memory.update(topic["id"], "Things of mine")
    memory.delete(user)
    memory.file_topics()
    assert labels(memory) == ["Things of mine"]


def test_a_topic_of_topics_has_no_name_of_what_is_no_longer_held(memory: Memory) -> None:
    user, _ = exchange(memory, "secret cache n0", "fine place n0")
    exchange(memory, "secret place n48")
    memory.file_topics()
    [made] = memory.abstract_topics(**U)["results"]
    assert made["label"] == "secret"
    memory.delete(user)
    assert [row["label"] for row in listed(memory) if row["super"]] == ["place"]
    memory.file_topics()
    [again] = memory.abstract_topics(**U)["results"]
    assert (again["id"], again["label"]) == (made["id"], "place")
    assert memory.get(made["id"])["memory"] == "place"


@pytest.fixture
def bicycle(open_memory: Opening) -> tuple[Memory, list[str]]:
    """A memory that was told of a bicycle, with the claims taken from that; the turn is filed, and
    in no topic yet.
    """
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


def test_a_turn_of_which_everything_was_given_up_is_in_no_topic(
    bicycle: tuple[Memory, list[str]],
) -> None:
    memory, claims = bicycle
    memory.file_topics()
    [topic] = listed(memory)
    assert topic["members"] == 1
    for claim in claims:
        memory.forget(claim)
    assert listed(memory) == []
    memory.file_topics()
    assert "bicycle" not in memory.get(topic["id"])["memory"]
    exchange(memory, "another n10")
    memory.file_topics()
    assert [(row["label"], row["members"]) for row in listed(memory)] == [("another n10", 1)]


def test_a_turn_of_which_everything_was_given_up_is_put_into_none(
    bicycle: tuple[Memory, list[str]],
) -> None:
    memory, claims = bicycle
    for claim in claims:
        memory.forget(claim)
    assert memory.file_topics()["filed"] == 0
    assert "bicycle" not in str(memory.get_all(**U, filters={"kind": "topic"}))


# ------------------------------------------------------------------- "Merge near-duplicate nodes
# (cosine >= 0.93)"


def test_topics_that_are_nearly_the_same_become_one(open_memory: Opening) -> None:
    memory = open_memory(topic_join=0.98)
    for text in ("one n0", "two n18", "far n60"):
        exchange(memory, text)
    memory.file_topics()
    one, two, far = listed(memory)
    done = memory.merge_topics(**U)
    assert done == {"merged": [{"id": two["id"], "into": one["id"]}], "warnings": []}
    assert [(row["id"], row["members"]) for row in listed(memory)] == [
        (one["id"], 2),
        (far["id"], 1),
    ]
    assert memory.merge_topics(**U)["merged"] == []


@pytest.mark.parametrize(("degrees", "merged"), [(20, 1), (23, 0)])
def test_the_threshold_of_merging_is_ninety_three_hundredths(
    open_memory: Opening, degrees: int, merged: int
) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.93) == bool(merged)
    memory = open_memory(topic_join=0.98)
    exchange(memory, "one n0")
    exchange(memory, f"two n{degrees}")
    memory.file_topics()
    assert len(memory.merge_topics(**U)["merged"]) == merged


def test_what_came_up_with_a_topic_came_up_with_the_one_that_took_its_place(
    open_memory: Opening,
) -> None:
    memory = open_memory(topic_join=0.98)
    for text in ("one n0", "close n18", "far n50"):
        exchange(memory, text)
    memory.file_topics()
    found(memory, "n30")
    run(memory.engine.flush_accesses())
    assert met(memory) == pairs_of(one_close=1, one_far=1, close_far=1)
    memory.merge_topics(**U)
    assert met(memory) == pairs_of(one_far=2)


# --------------------------------------------------- "Super-cluster KG nodes -> concept nodes",
# abstracted_from


def test_topics_of_topics_point_to_what_they_are_made_of(memory: Memory) -> None:
    for text in ("cache in redis n0", "cache in memory n48", "the garden q0"):
        exchange(memory, text)
    memory.file_topics()
    one, two, garden = listed(memory)
    [made] = memory.abstract_topics(**U)["results"]
    assert made["super"] is True
    assert made["parts"] == [one["id"], two["id"]]
    assert made["label"].startswith("cach")
    rows = {row["id"]: row for row in listed(memory)}
    assert rows[one["id"]]["supers"] == rows[two["id"]]["supers"] == [made["id"]]
    assert rows[garden["id"]]["supers"] == []
    assert {link.rel for link in memory.engine.store.find_links("default", [made["id"]])} >= {
        "abstracted_from"
    }
    assert memory.file_topics()["filed"] == 0
    again = memory.abstract_topics(**U)["results"]
    assert [row["id"] for row in again] == [made["id"]]


def test_a_model_names_them_if_there_is_one(open_memory: Opening) -> None:
    llm = ScriptedLLM(["Caching"])
    memory = open_memory(llm=llm)
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    [made] = memory.abstract_topics(**U)["results"]
    assert made["label"] == "Caching"
    [(_, said)] = llm.asked
    assert said == fence_as_data("topics", ["- cache in redis n0", "- cache in memory n48"])


def test_a_model_is_asked_once_however_often_others_come_between(
    open_memory: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = ScriptedLLM(["Caching"])
    memory = open_memory(llm=llm)
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    commit, tries = memory.engine.store.commit, iter(range(2))

    def busy(batch: Any, *rest: Any) -> Any:
        if next(tries, None) is not None:
            raise Conflict
        return commit(batch, *rest)

    monkeypatch.setattr(type(memory.engine.store), "commit", lambda _, *rest: busy(*rest))
    assert [row["label"] for row in memory.abstract_topics(**U)["results"]] == ["Caching"]
    assert len(llm.asked) == 1


@pytest.mark.parametrize(
    "reply", ["", "...", "Sure! Here is a name:\nCaching", "word " * 30, "x" * 200]
)
def test_an_answer_that_is_no_name_leaves_the_words_they_share(
    open_memory: Opening, reply: str
) -> None:
    memory = open_memory(llm=ScriptedLLM([reply]))
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    done = memory.abstract_topics(**U)
    assert done["results"][0]["label"] == "cache"
    assert "Named without the model" in done["warnings"][0]


def test_topics_that_share_no_word_are_named_after_the_first(memory: Memory) -> None:
    for text in ("we decided it n0", "the zanzibar service n48"):
        exchange(memory, text)
    memory.file_topics()
    assert memory.abstract_topics(**U)["results"][0]["label"] == "we decided it n0"


def test_a_model_that_fails_leaves_the_words_they_share(open_memory: Opening) -> None:
    memory = open_memory(llm=ScriptedLLM([]))
    for text in ("cache in redis n0", "cache in memory n48"):
        exchange(memory, text)
    memory.file_topics()
    done = memory.abstract_topics(**U)
    assert done["results"][0]["label"].startswith("cach")
    assert "Named without the model" in done["warnings"][0]


# ------------------------------------------------------ "co_occurs: both >= 0.6 to the same
# query, selected or not"


def test_topics_near_to_one_query_come_up_together_selected_or_not(open_memory: Opening) -> None:
    memory = open_memory(centre=0.0, newest_among=0)
    for text in ("one n0", "two n50", "three n100"):
        exchange(memory, text)
    memory.file_topics()
    assert found(memory, "n30", limit=1) == ["two n50"]
    assert met(memory) == pairs_of(one_two=1)


@pytest.mark.parametrize(("degrees", "counted"), [(52, True), (55, False)])
def test_they_are_near_at_a_cosine_of_six_tenths(
    memory: Memory, degrees: int, counted: bool
) -> None:
    assert (math.cos(math.radians(degrees)) >= 0.60) == counted
    exchange(memory, "one n0")
    exchange(memory, "two n60")
    memory.file_topics()
    found(memory, f"n{degrees}")
    assert bool(met(memory)) == counted


def test_a_pair_counts_more_with_every_query_and_has_no_direction(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    for _ in range(3):
        found(memory, "n25")
    memory.context("n25", **U)
    assert met(memory) == pairs_of(one_two=4)
    one, two = listed(memory)
    assert [(each["label"], each["count"], each["weight"]) for each in one["neighbours"]] == [
        ("two n50", 4, 0.8)
    ]
    assert [(each["label"], each["count"]) for each in two["neighbours"]] == [("one n0", 4)]


def test_they_are_flushed_with_recalls_and_the_ledger_knows_nothing_of_them(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    head = memory.engine.store.get_head("default")
    found(memory, "n25")
    ids = [row["id"] for row in listed(memory)]
    assert memory.engine.store.cooccurrence("default", ids) == {}
    run(memory.engine.flush_accesses())
    assert [touch.count for touch in memory.engine.store.cooccurrence("default", ids).values()] == [
        1
    ]
    found(memory, "n25")
    assert met(memory) == pairs_of(one_two=2)
    assert memory.engine.store.get_head("default") == head


def test_a_read_of_the_past_or_an_explanation_counts_nothing(memory: Memory) -> None:
    exchange(memory, "one n0")
    exchange(memory, "two n50")
    memory.file_topics()
    found(memory, "n25", as_of=f"#{memory.engine.store.get_head('default').seq}")
    memory.explain("n25", **U)
    assert met(memory) == {}


# ------------------------------------- "a query hitting one will pull in the other"; two members
# of each topic


@pytest.fixture
def narrow(open_memory: Opening) -> Memory:
    """A memory whose searches find little by themselves, so that it shows what topics bring."""
    return open_memory(depth=1, beside=0, hot_size=0, expand_hot=0.0, centre=0.0)


def test_a_hit_brings_two_members_of_its_topic(narrow: Memory) -> None:
    for number in range(6):
        exchange(narrow, f"turn {number} n{number * 2}", f"ok {number} n{number * 2}")
    narrow.file_topics()
    came = sources(narrow, "n0")
    assert sorted(by for by in map(tuple, came.values())).count(("topic",)) == 2


def test_a_read_looks_up_the_links_of_a_memory_once(
    narrow: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        exchange(narrow, f"turn {number} n{number * 2}", f"ok {number} n{number * 2}")
    narrow.file_topics()
    store, asked = narrow.engine.store, list[str]()
    links = store.find_links
    monkeypatch.setattr(
        store,
        "find_links",
        lambda account, nodes, seq: asked.extend(nodes) or links(account, nodes, seq),
    )
    assert len(found(narrow, "n0", limit=3)) == 3
    assert len(asked) > 3
    assert len(asked) == len(set(asked))


def test_members_are_ranked_by_nearness_recency_and_importance(narrow: Memory) -> None:
    first = exchange(narrow, "first n0", "yes one n1")
    for text in ("near n2", "far n30", "further n34"):
        exchange(narrow, text, f"yes {text}")
    narrow.file_topics()
    brought = [text for text, by in sources(narrow, "n0").items() if by == ["topic"]]
    assert [text.split()[-1] for text in sorted(brought, key=len)] == ["n1", "n2"]
    [further] = [
        row["id"] for row in narrow.get_all(**U)["results"] if row["memory"] == "further n34"
    ]
    narrow.link(first[0], "importance", further, weight=1.0, **U)
    assert "further n34" in {text for text, by in sources(narrow, "n0").items() if by == ["topic"]}


def test_topics_that_came_up_together_bring_each_others_members(narrow: Memory) -> None:
    exchange(narrow, "redis n0", "yes n0")
    exchange(narrow, "sessions n50", "right n50")
    narrow.file_topics()
    assert "sessions n50" not in sources(narrow, "n0 redis")
    one, two = (row["id"] for row in listed(narrow))
    narrow.engine.hot_buffers.record_cooccurrence("default", [one, two], 1)
    assert sources(narrow, "n0 redis")["sessions n50"] == ["topic"]


def test_a_neighbour_that_does_not_bear_on_the_query_stays_away(narrow: Memory) -> None:
    exchange(narrow, "redis n0", "yes n0")
    exchange(narrow, "sessions n70", "right n70")
    narrow.file_topics()
    narrow.engine.hot_buffers.record_cooccurrence(
        "default", [row["id"] for row in listed(narrow)], 1
    )
    assert "sessions n70" not in sources(narrow, "n0 redis")


def test_a_read_of_the_past_does_not_follow_what_came_up_later(narrow: Memory) -> None:
    exchange(narrow, "redis n0", "yes n0")
    exchange(narrow, "sessions n50", "right n50")
    narrow.file_topics()
    narrow.engine.hot_buffers.record_cooccurrence(
        "default", [row["id"] for row in listed(narrow)], 1
    )
    then = f"#{narrow.engine.store.get_head('default').seq}"
    assert "sessions n50" not in sources(narrow, "n0 redis", as_of=then)


def test_a_topic_that_was_given_up_brings_nothing(narrow: Memory) -> None:
    for number in range(3):
        exchange(narrow, f"turn {number} n{number}")
    narrow.file_topics()
    [topic] = listed(narrow)
    narrow.delete(topic["id"])
    assert ["topic"] not in sources(narrow, "n0").values()


def test_where_there_are_no_topics_nothing_changes(open_memory: Opening) -> None:
    def rows(sources: str) -> list[Any]:
        memory = open_memory(sources=sources)
        for number in range(10):
            exchange(memory, f"turn {number} n{number * 7}", f"reply {number}")
        return [(row["memory"], row["score"]) for row in memory.search("n12", **U)["results"]]

    assert rows("hot time tree graph topics keys") == rows("hot time tree graph keys")


# ----------------------------------------------- "Hot buffer: LRU of 20, hit threshold cosine >=
# 0.6", hot_nodes


def test_what_is_hot_answers_again_from_a_cosine_of_six_tenths(
    narrow: Memory, open_memory: Opening
) -> None:
    memory = open_memory(depth=1, beside=0, centre=0.0)
    for text in ("warm n0", "other n90"):
        memory.add(text, **U)
    assert found(memory, "n0", limit=1) == ["warm n0"]
    assert sources(memory, "n52")["warm n0"][-1] == "hot"
    assert sources(memory, "n56")["warm n0"][-1] == "warm", "at hand, but no answer"
    assert narrow.engine.hot_buffers.get_hot_seqs(SCOPE) == ()


def test_it_holds_twenty_with_their_vectors(open_memory: Opening) -> None:
    memory = open_memory(newest_among=0)
    for number in range(25):
        memory.add(f"note{number} n{number * 7}", **U)
    for number in range(25):
        found(memory, f"note{number} n{number * 7}", limit=1)
    overlay = memory.engine.hot_buffers
    assert len(overlay.get_hot_seqs(SCOPE)) == 20
    assert all(hot.code for hot in overlay._buffers[SCOPE].items.values())


def test_it_remembers_the_topics_that_were_fetched_and_skips_those_it_holds_whole(
    open_memory: Opening,
) -> None:
    memory = open_memory(depth=1, beside=0, expand_hot=0.0, centre=0.0)
    exchange(memory, "redis n0", "yes n40")
    memory.file_topics()
    assert sources(memory, "n0")["yes n40"] == ["topic"]
    for _ in range(2):
        assert set(found(memory, "n0")) == {"redis n0", "yes n40"}
    [topic] = listed(memory)
    members = [turn for turns in topic["turns"] for turn in turns]
    assert memory.engine.hot_buffers.find_hot_topics(SCOPE, {topic["id"]: members}) == {topic["id"]}
    assert sources(memory, "n0")["yes n40"] == ["hot"]
    exchange(memory, "sessions n10", "right n10")
    memory.file_topics()
    [topic] = listed(memory)
    members = [turn for turns in topic["turns"] for turn in turns]
    assert memory.engine.hot_buffers.find_hot_topics(SCOPE, {topic["id"]: members}) == set()


def test_a_topic_whose_members_left_the_buffer_leaves_it_too(open_memory: Opening) -> None:
    memory = open_memory(depth=1, beside=0, expand_hot=0.0, centre=0.0, hot_size=2)
    exchange(memory, "redis n0", "yes n40")
    exchange(memory, "garden q0", "right q40")
    memory.file_topics()
    redis, garden = (row["id"] for row in listed(memory))
    buffer = memory.engine.hot_buffers._buffers
    for query, topic in (("n0", redis), ("q0", garden)):
        for _ in range(2):
            found(memory, query)
        assert set(buffer[SCOPE].topics) == {topic}


# The laws it keeps


def test_a_topic_view_rebuilt_equals_the_one_grown(open_memory: Opening) -> None:
    embedder = Compass()
    memory = open_memory(embedder=embedder)
    for number in range(60):
        exchange(memory, f"turn {number} n{number * 37 % 120}", f"ok {number} n{number * 11 % 40}")
        if number % 7 == 0:
            memory.file_topics()
    memory.file_topics()
    memory.merge_topics(**U)
    memory.abstract_topics(**U)
    before, rows = grown(memory), listed(memory)
    embedder.asked.clear()
    memory.rebuild()
    assert grown(memory) == before
    assert listed(memory) == rows
    assert embedder.asked == [], "no model is asked"


def means(memory: Memory) -> dict[str, int]:
    """How many exchanges each topic's mean is of, by label."""
    notes = memory.engine.store.read_notes("default", "topics")
    found = {row["label"]: unpack_mean(notes.get(row["id"]), "compass") for row in listed(memory)}
    return {label: 0 if mean is None else mean.count for label, mean in found.items()}


def test_what_is_erased_is_taken_out_of_its_topic_before_erase_returns(memory: Memory) -> None:
    exchange(memory, "one n0", "fine n0")
    user, agent = exchange(memory, "two n20", "secret n30")
    memory.file_topics()
    [number] = {
        link.dst
        for link in memory.engine.store.find_links("default", [user])
        if link.rel == "in_exchange"
    }
    before = grown(memory)
    memory.erase(agent)
    after = grown(memory)
    assert after[number] != before[number], "the vector of both together is gone"
    assert not set(after.values()) & {
        before[number],
        *(before[row["id"]] for row in listed(memory)),
    }
    assert means(memory) == {"one n0": 2}
    memory.erase(user)
    assert number not in grown(memory)
    assert means(memory) == {"one n0": 1}
    [topic] = listed(memory)
    mean = unpack_mean(grown(memory)[topic["id"]], "compass")
    assert mean is not None
    assert mean == compute_mean([quantise(Compass().embed(["User: one n0\nAgent: fine n0"])[0])])


def test_a_topic_named_after_what_is_erased_goes_and_its_members_find_another(
    memory: Memory,
) -> None:
    user, _ = exchange(memory, "secret n0", "fine n0")
    exchange(memory, "one n10")
    exchange(memory, "two n20")
    memory.file_topics()
    assert labels(memory) == ["secret n0"]
    memory.erase(user)
    assert labels(memory) == ["fine n0"]
    [topic] = listed(memory)
    assert topic["members"] == 3, "the answer is still there"
    assert "secret" not in str(memory.topics(**U))
    before = grown(memory)
    memory.rebuild()
    assert grown(memory) == before
    assert memory.file_topics()["filed"] == 0


def test_a_topic_with_nothing_left_is_no_more(memory: Memory) -> None:
    exchange(memory, "keep q0")
    threads = exchange(memory, "gone n0")
    memory.file_topics()
    for thread in threads:
        memory.erase(thread)
    assert labels(memory) == ["keep q0"]


def test_erasing_a_user_leaves_no_note(memory: Memory) -> None:
    exchange(memory, "mine n0")
    exchange(memory, "theirs n0", user_id="v")
    memory.file_topics()
    memory.erase(user_id="u")
    left = grown(memory)
    assert len(left) == 2, "one exchange and one topic, of the other"
    assert listed(memory) == []
    assert labels(memory, user_id="v") == ["theirs n0"]


def test_every_link_and_topic_stands_in_the_ledger(memory: Memory) -> None:
    exchange(memory, "one n0")
    memory.file_topics()
    entries = memory.engine.store.scan_entries("default", 0, 1000)
    rels = [entry.verb.rel for entry in entries if isinstance(entry.verb, Linked)]
    assert rels == ["in_exchange", "in_exchange", "derived_from", "in_topic", "in_topic"]
    assert memory.verify()["ok"]


def test_topics_move_with_the_ledger_and_an_erasure_reaches_their_copy(
    open_memory: Opening,
) -> None:
    here, there = open_memory(), open_memory()

    def carry() -> None:
        ledger = BytesIO()
        here.export(ledger)
        there.import_(ledger.getvalue())

    exchange(here, "one n0", "fine n0")
    user, _ = exchange(here, "two n20", "secret n30")
    here.file_topics()
    carry()
    there.file_topics()
    assert [(row["label"], row["members"]) for row in listed(there)] == [("one n0", 2)]
    there.rebuild()
    assert means(there) == {"one n0": 2}
    before = grown(there)
    here.erase(user)
    carry()
    assert not set(grown(there).values()) & set(before.values())
    there.rebuild()
    assert grown(there) == grown(here)


def test_no_byte_of_an_erased_exchange_is_left_in_any_file(tmp_path: Path) -> None:
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
        code = unpack_code(grown(memory)[number], "compass")
        assert code is not None

        def traces() -> list[str]:
            return [
                path.name
                for path in tmp_path.iterdir()
                if path.is_file() and code in path.read_bytes()
            ]

        assert traces(), "its own, and that of the topic it is alone in"
        memory.erase(agent)
        assert traces() == []
    assert traces() == []
