"""Topics as values: means that no order changes, a shelf that finds the nearest, and what joins, divides and unites."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from told.core import topics
from told.core.score import cosine, quantise
from told.core.topics import (
    Mean,
    Near,
    Shelf,
    centre_in,
    clusters,
    code_in,
    common,
    is_mean,
    join,
    label,
    mean_in,
    mean_of,
    overfull,
    pack_code,
    unions,
)
from told.tend import dots

DIM = 8
vectors = st.lists(st.integers(-127, 127), min_size=DIM, max_size=DIM).filter(any)
codes = st.lists(vectors.map(quantise), min_size=1, max_size=12)


def cloud(count: int, seed: int = 1, dim: int = 24, around: int = 12) -> dict[str, bytes]:
    """Vectors around some middles, by names in order."""
    chance = random.Random(seed)
    middles = [[chance.gauss(0, 1) for _ in range(dim)] for _ in range(around)]
    return {
        f"{number:05}": quantise([value + chance.gauss(0, 0.7) for value in chance.choice(middles)])
        for number in range(count)
    }


# Means ----------------------------------------------------------------------------------------------------------------


@given(codes, st.randoms())
def test_the_same_members_make_the_same_mean_in_any_order(members: list[bytes], chance: random.Random) -> None:
    shuffled = list(members)
    chance.shuffle(shuffled)
    assert mean_of(shuffled) == mean_of(members)


@given(codes)
def test_what_is_taken_out_leaves_no_trace(members: list[bytes]) -> None:
    *rest, last = members
    assert mean_of(members).minus(last).total == mean_of([*rest, bytes(DIM)]).total
    assert mean_of(members).minus(last).count == len(rest)


@given(codes)
def test_a_mean_is_noted_and_read_again_for_its_own_model_only(members: list[bytes]) -> None:
    mean = mean_of(members)
    note = mean.pack("local:e5")
    assert mean_in(note, "local:e5") == mean
    assert centre_in(note, "local:e5") == mean.code
    assert is_mean(note)
    assert mean_in(note, "local:e") is None
    assert centre_in(note, "other") is None
    assert mean_in(None, "local:e5") is None


def test_a_code_is_no_mean() -> None:
    note = pack_code(b"\x01\x02", "m")
    assert code_in(note, "m") == b"\x01\x02"
    assert code_in(note, "n") is None
    assert not is_mean(note)
    assert mean_in(note, "m") is None


def test_the_mean_of_one_points_where_it_does() -> None:
    code = quantise([1.0, -0.5, 0.25])
    assert mean_of([code]).code == code
    assert mean_of([code, code, code]).code == code


def test_members_count_alike_however_long_their_codes_are() -> None:
    long, short = quantise([1.0, 1.0, 1.0, 1.0]), quantise([1.0, 0.0, 0.0, 0.0])
    mean = mean_of([long, short])
    assert cosine(mean.code, long) == pytest.approx(cosine(mean.code, short), abs=0.01)


# The shelf ------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(0, 10))
@settings(max_examples=25)
def test_among_few_the_nearest_is_found_exactly(count: int, seed: int) -> None:
    known = cloud(count, seed)
    shelf = Shelf(known)
    asked = next(iter(cloud(1, seed + 100).values()))
    best = min(known, key=lambda name: (-cosine(asked, known[name]), name))
    assert shelf.nearest(asked) == Near(best, cosine(asked, known[best]))
    wanted = sorted((-cosine(asked, code), name) for name, code in known.items() if cosine(asked, code) >= 0.3)
    assert [near.topic for near in shelf.near(asked, 0.3)] == [name for _, name in wanted]


def test_among_many_nearly_all_are_found_and_few_are_compared() -> None:
    known = cloud(1500, around=40)
    compared = 0

    def counting(code: bytes, others: object) -> object:
        nonlocal compared
        compared += len(others)  # type: ignore[arg-type]
        return dots.dots(code, others)  # type: ignore[arg-type]

    shelf, exact = Shelf(known, counting), Shelf(known, dots.dots, exact=10_000)  # type: ignore[arg-type]
    asked = list(cloud(200, seed=1, around=40).values())
    compared = 0
    right = sum(shelf.nearest(code) == exact.nearest(code) for code in asked)
    assert right >= 190
    assert compared / len(asked) < 600, "less than half of them"


def test_what_is_gone_is_found_no_more() -> None:
    known = cloud(100)
    shelf = Shelf(known)
    for name in list(known)[:99]:
        shelf.drop(name)
    shelf.drop("nobody")
    assert len(shelf) == 1
    assert "00099" in shelf
    assert "00000" not in shelf
    found = shelf.nearest(known["00000"])
    assert found is not None
    assert found.topic == "00099"
    shelf.drop("00099")
    assert shelf.nearest(known["00000"]) is None


def test_a_topic_that_moved_is_found_where_it_is_now() -> None:
    here, there = quantise([1.0, 0.0]), quantise([0.0, 1.0])
    shelf = Shelf({"a": here})
    shelf.put("a", there)
    assert shelf.near(here, 0.5) == []
    assert [near.topic for near in shelf.near(there, 0.99)] == ["a"]


def test_many_that_are_the_same_cannot_be_divided_and_are_kept() -> None:
    code = quantise([1.0, 2.0])
    shelf = Shelf({f"{number:03}": code for number in range(200)})
    assert shelf.nearest(code) == Near("000", pytest.approx(1.0))


@pytest.mark.parametrize("dim", [3, 384, 2000])
def test_products_are_the_same_with_arrays_and_without(dim: int) -> None:
    chance = random.Random(dim)
    made = [array("b", [chance.choice((-127, 127)) for _ in range(dim)]).tobytes() for _ in range(20)]
    assert list(dots.dots(made[0], made)) == list(topics.dots(made[0], made))
    assert list(dots.dots(made[0], made[:1])) == [127 * 127 * dim]


def test_a_shelf_decides_the_same_with_arrays_and_without() -> None:
    known = cloud(400, around=30)
    plain, fast = Shelf(known), Shelf(known, dots.dots)
    for code in cloud(50, seed=9).values():
        assert plain.nearest(code) == fast.nearest(code)


# Joining, dividing, uniting -------------------------------------------------------------------------------------------


def test_what_is_near_enough_joins_the_nearest() -> None:
    shelf = Shelf({"a": quantise([1.0, 0.0]), "b": quantise([0.6, 0.8])})
    assert join(quantise([0.8, 0.6]), shelf, 0.7) == "b"
    assert join(quantise([-1.0, 0.0]), shelf, 0.7) is None
    assert join(quantise([1.0, 0.0]), Shelf(), 0.7) is None


def test_clusters_hold_each_vector_once() -> None:
    known = cloud(80)
    groups = clusters(known, 0.6)
    assert sorted(name for group in groups for name in group) == list(known)
    assert len(clusters(known, 1.0)) > len(groups) > len(clusters(known, -1.0)) == 1


def test_a_topic_is_asked_to_divide_above_the_most_and_then_whenever_it_doubled() -> None:
    asked = [count for count in range(1, 200) if overfull(count - 1, count, 20)]
    assert asked == [21, 41, 81, 161]
    assert overfull(15, 300, 20)
    assert not overfull(5, 20, 20)


def test_later_topics_become_one_with_earlier_ones() -> None:
    means = {"z": quantise([1.0, 0.0]), "a": quantise([0.99, 0.1]), "m": quantise([0.0, 1.0])}
    assert unions(means, 0.93) == {"a": "z"}


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_label_is_the_beginning_in_one_line() -> None:
    assert label("  we use\n\tRedis ") == "we use Redis"
    assert len(label("x" * 200)) == 80


def test_what_texts_share_names_them() -> None:
    assert common(["The Cache in redis.", "caches in memory", "a dog"]) == "Cache"
    assert common(["we decided it", "it was decided by zanzibar"]) == "decided"
    assert common(["listening services", "a garden"]) == common([]) == "", "what only some say, or half of them"
    assert common(["redis-cache", "cache", "redis"]) == "redis, cache"


def test_the_empty_mean_points_nowhere() -> None:
    assert Mean().code == b""
    assert Mean().plus(bytes(3)) == Mean((0, 0, 0), 1)
