"""Topic clustering: order-independent means, nearest-topic lookup, joining and merging."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from told.maintenance import topic_assignment
from told.model import topics
from told.model.scoring import cosine, quantise
from told.model.topics import (
    TopicIndex,
    TopicMatch,
    VectorMean,
    cluster_codes,
    compute_mean,
    extract_common_words,
    find_merges,
    find_topic_to_join,
    is_packed_mean,
    make_label,
    needs_split,
    pack_code,
    unpack_centroid,
    unpack_code,
    unpack_mean,
)

DIM = 8
vectors = st.lists(st.integers(-127, 127), min_size=DIM, max_size=DIM).filter(any)
codes = st.lists(vectors.map(quantise), min_size=1, max_size=12)


def cloud(count: int, seed: int = 1, dim: int = 24, around: int = 12) -> dict[str, bytes]:
    """Return named vectors around several centres, in order."""
    chance = random.Random(seed)
    middles = [[chance.gauss(0, 1) for _ in range(dim)] for _ in range(around)]
    return {
        f"{number:05}": quantise([value + chance.gauss(0, 0.7) for value in chance.choice(middles)])
        for number in range(count)
    }


# Means


@given(codes, st.randoms())
def test_a_mean_does_not_depend_on_member_order(
    members: list[bytes], chance: random.Random
) -> None:
    shuffled = list(members)
    chance.shuffle(shuffled)
    assert compute_mean(shuffled) == compute_mean(members)


@given(codes)
def test_subtracting_a_member_restores_the_mean(members: list[bytes]) -> None:
    *rest, last = members
    assert compute_mean(members).subtract(last).total == compute_mean([*rest, bytes(DIM)]).total
    assert compute_mean(members).subtract(last).count == len(rest)


@given(codes)
def test_a_packed_mean_is_unpacked_only_for_its_model(members: list[bytes]) -> None:
    mean = compute_mean(members)
    note = mean.pack("local:e5")
    assert unpack_mean(note, "local:e5") == mean
    assert unpack_centroid(note, "local:e5") == mean.code
    assert is_packed_mean(note)
    assert unpack_mean(note, "local:e") is None
    assert unpack_centroid(note, "other") is None
    assert unpack_mean(None, "local:e5") is None


def test_a_packed_code_is_not_a_mean() -> None:
    note = pack_code(b"\x01\x02", "m")
    assert unpack_code(note, "m") == b"\x01\x02"
    assert unpack_code(note, "n") is None
    assert not is_packed_mean(note)
    assert unpack_mean(note, "m") is None


def test_the_mean_of_one_member_has_its_direction() -> None:
    code = quantise([1.0, -0.5, 0.25])
    assert compute_mean([code]).code == code
    assert compute_mean([code, code, code]).code == code


def test_members_weigh_equally_regardless_of_norm() -> None:
    long, short = quantise([1.0, 1.0, 1.0, 1.0]), quantise([1.0, 0.0, 0.0, 0.0])
    mean = compute_mean([long, short])
    assert cosine(mean.code, long) == pytest.approx(cosine(mean.code, short), abs=0.01)


# The topic cache


@given(st.integers(1, 60), st.integers(0, 10))
@settings(max_examples=25)
def test_the_nearest_of_few_topics_is_exact(count: int, seed: int) -> None:
    known = cloud(count, seed)
    shelf = TopicIndex(known)
    asked = next(iter(cloud(1, seed + 100).values()))
    best = min(known, key=lambda name: (-cosine(asked, known[name]), name))
    assert shelf.find_nearest(asked) == TopicMatch(best, cosine(asked, known[best]))
    wanted = sorted(
        (-cosine(asked, code), name) for name, code in known.items() if cosine(asked, code) >= 0.3
    )
    assert [near.topic for near in shelf.find_near(asked, 0.3)] == [name for _, name in wanted]


def test_a_search_among_many_topics_has_high_recall_and_few_comparisons() -> None:
    known = cloud(1500, around=40)
    compared = 0

    def counting(code: bytes, others: object) -> object:
        nonlocal compared
        compared += len(others)  # type: ignore[arg-type]
        return topic_assignment.numpy_dot_products(code, others)  # type: ignore[arg-type]

    shelf, exact = (
        TopicIndex(known, counting),
        TopicIndex(known, topic_assignment.numpy_dot_products, exact_limit=10_000),
    )  # type: ignore[arg-type]
    asked = list(cloud(200, seed=1, around=40).values())
    compared = 0
    right = sum(shelf.find_nearest(code) == exact.find_nearest(code) for code in asked)
    assert right >= 190
    assert compared / len(asked) < 600, "less than half of them"


def test_a_removed_topic_is_not_found() -> None:
    known = cloud(100)
    shelf = TopicIndex(known)
    for name in list(known)[:99]:
        shelf.drop_topic(name)
    shelf.drop_topic("nobody")
    assert len(shelf) == 1
    assert "00099" in shelf
    assert "00000" not in shelf
    found = shelf.find_nearest(known["00000"])
    assert found is not None
    assert found.topic == "00099"
    shelf.drop_topic("00099")
    assert shelf.find_nearest(known["00000"]) is None


def test_a_moved_topic_is_found_at_its_new_position() -> None:
    here, there = quantise([1.0, 0.0]), quantise([0.0, 1.0])
    shelf = TopicIndex({"a": here})
    shelf.put_topic("a", there)
    assert shelf.find_near(here, 0.5) == []
    assert [near.topic for near in shelf.find_near(there, 0.99)] == ["a"]


def test_identical_topics_cannot_be_split_and_are_kept() -> None:
    code = quantise([1.0, 2.0])
    shelf = TopicIndex({f"{number:03}": code for number in range(200)})
    assert shelf.find_nearest(code) == TopicMatch("000", pytest.approx(1.0))


@pytest.mark.parametrize("dim", [3, 384, 2000])
def test_dot_products_are_the_same_with_and_without_numpy(dim: int) -> None:
    chance = random.Random(dim)
    made = [
        array("b", [chance.choice((-127, 127)) for _ in range(dim)]).tobytes() for _ in range(20)
    ]
    assert list(topic_assignment.numpy_dot_products(made[0], made)) == list(
        topics.dot_products(made[0], made)
    )
    assert list(topic_assignment.numpy_dot_products(made[0], made[:1])) == [127 * 127 * dim]


def test_the_topic_cache_gives_the_same_results_with_and_without_numpy() -> None:
    known = cloud(400, around=30)
    plain, fast = TopicIndex(known), TopicIndex(known, topic_assignment.numpy_dot_products)
    for code in cloud(50, seed=9).values():
        assert plain.find_nearest(code) == fast.find_nearest(code)


# Joining, splitting and merging


def test_a_vector_near_enough_joins_the_nearest_topic() -> None:
    shelf = TopicIndex({"a": quantise([1.0, 0.0]), "b": quantise([0.6, 0.8])})
    assert find_topic_to_join(quantise([0.8, 0.6]), shelf, 0.7) == "b"
    assert find_topic_to_join(quantise([-1.0, 0.0]), shelf, 0.7) is None
    assert find_topic_to_join(quantise([1.0, 0.0]), TopicIndex(), 0.7) is None


def test_clusters_contain_each_vector_once() -> None:
    known = cloud(80)
    groups = cluster_codes(known, 0.6)
    assert sorted(name for group in groups for name in group) == list(known)
    assert len(cluster_codes(known, 1.0)) > len(groups) > len(cluster_codes(known, -1.0)) == 1


def test_a_topic_is_split_above_the_limit_and_at_each_doubling() -> None:
    asked = [count for count in range(1, 200) if needs_split(count - 1, count, 20)]
    assert asked == [21, 41, 81, 161]
    assert needs_split(15, 300, 20)
    assert not needs_split(5, 20, 20)


def test_later_topics_are_merged_into_earlier_ones() -> None:
    means = {"z": quantise([1.0, 0.0]), "a": quantise([0.99, 0.1]), "m": quantise([0.0, 1.0])}
    assert find_merges(means, 0.93) == {"a": "z"}


# Names


def test_a_label_is_the_start_of_the_text_on_one_line() -> None:
    assert make_label("  we use\n\tRedis ") == "we use Redis"
    assert len(make_label("x" * 200)) == 80


def test_a_topic_is_named_by_words_its_texts_share() -> None:
    assert extract_common_words(["The Cache in redis.", "caches in memory", "a dog"]) == "Cache"
    assert extract_common_words(["we decided it", "it was decided by zanzibar"]) == "decided"
    assert (
        extract_common_words(["listening services", "a garden"]) == extract_common_words([]) == ""
    ), "what only some say, or half of them"
    assert extract_common_words(["redis-cache", "cache", "redis"]) == "redis, cache"


def test_the_empty_mean_has_no_direction() -> None:
    assert VectorMean().code == b""
    assert VectorMean().add(bytes(3)) == VectorMean((0, 0, 0), 1)
