"""Every store ranks the same candidates in the same order, up to ties within 1e-6."""

import gc
import tracemalloc
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import stage, tried
from stores import STORES, opened
from told.backends.sqlite.numpy_scan import NumpyPartitionResult
from told.backends.sqlite.partition_numpy import NumpyPartition
from told.model.filter import parse_filter
from told.model.query import LATEST, AsOf, FactQuery, IndexQuery, QueryWord
from told.model.scope import Scope
from told.testing import HashingEmbedder
from told.text.tokens import extract_query_terms

WORDS = "tea coffee Berlin Tokyo sister brother garden violin river bridge".split()
LONG = ". ".join(f"{word} and {other} by the water" for word in WORDS for other in WORDS)
DAY = 86_400_000_000
SEEN = NumpyPartition._compute_visible_rows

lines = st.builds(
    lambda picked, who, day, minute, extra: (
        {
            "role": "assistant" if who == "assistant" else "user",
            "content": " ".join(picked),
            "timestamp": f"2023-05-{day:02}T10:{minute:02}:00Z",
            "metadata": {"n": len(picked), **extra},
        }
        | ({} if who == "assistant" else {"name": who})
    ),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.sampled_from(("Ann", "Bob", "Annabel Lee", "assistant")),
    st.integers(1, 3),
    st.integers(0, 59),
    st.sampled_from(({}, {}, {"abstract": "water"}, {"overview": "a river, tea"})),
)
talks = st.lists(lines, min_size=1, max_size=12)


@st.composite
def probes(draw):
    """Draw any search: some words, perhaps a vector, and any other options of a query."""
    asked = " ".join(
        draw(st.lists(st.sampled_from([*WORDS, "Ann", "bob", "Anna", "zebra"]), max_size=4))
    )
    return {
        "terms": tuple(extract_query_terms(asked)),
        "vector": (draw(st.booleans()) and HashingEmbedder().embed([asked or "tea"])[0]) or None,
        "depth": draw(st.sampled_from((1, 3, 100))),
        "centre": draw(st.sampled_from((0.0, 0.5))),
        "words": tuple(QueryWord(w.casefold(), w, w[0].isupper()) for w in asked.split()),
        "time_spans": draw(
            st.sampled_from(((), ((1682899200_000000, 1682899200_000000 + 2 * DAY),)))
        ),
        "neighbour_depth": draw(st.sampled_from((0, 1, 100))),
        "extra_seqs": draw(st.sampled_from(((), (2, 5)))),
    }


TOLERANCE = 1e-6
SCORES = ("cosine", "dense", "hub", "bm25", "cover")


def assert_same_ranking(one, other):
    """Check that both results list the same candidates in the same order; ties may swap."""
    for ranked, expected in ((one.by_vector, other.by_vector), (one.by_terms, other.by_terms)):
        assert [score for _, score in ranked] == approximate([score for _, score in expected])
        scores = dict(expected)
        assert {seq for seq, _ in ranked} == scores.keys()
        assert [scores[seq] for seq, _ in ranked] == approximate([score for _, score in ranked])
    known = {(candidate.seq, candidate.slot): candidate for candidate in other.candidates}
    assert {(candidate.seq, candidate.slot) for candidate in one.candidates} == known.keys()
    for candidate in one.candidates:
        twin = known[candidate.seq, candidate.slot]
        for name in SCORES:
            assert getattr(candidate, name) == approximate(getattr(twin, name)), name
        assert candidate[:6] == twin[:6]
    assert one.named_speakers == other.named_speakers
    assert one.passage_count == other.passage_count
    assert one.has_links == other.has_links


def approximate(scores):
    return None if scores is None else pytest.approx(scores, abs=TOLERANCE, rel=0)


@pytest.mark.parametrize("store", STORES)
@given(
    talk=st.lists(talks, min_size=1, max_size=3),
    asked=st.lists(probes(), min_size=1, max_size=4),
    data=st.data(),
)
@tried(40)
def test_every_ranking_is_the_same_on_every_store(store, talk, asked, data):
    with stage("ram") as ram, opened(store) as disk:
        stages = (ram, disk)
        for number, turns in enumerate(talk):
            for here in stages:
                here.memory.add(turns, user_id="u", **({"run_id": "r"} if number == 2 else {}))
        if data.draw(st.booleans()):
            for here in stages:
                here.memory.add(LONG, user_id="u", metadata={"abstract": "all the words", "n": 1})
        ids = [row["id"] for row in ram.memory.get_all(user_id="u")["results"]]
        for act in data.draw(st.lists(st.sampled_from(("delete", "erase", "update")), max_size=2)):
            chosen = data.draw(st.sampled_from(ids))
            for here in stages:
                _act(here.memory, act, chosen)
        head = ram.memory.engine.store.get_head("default")
        for probe in asked:
            for as_of in (AsOf(LATEST, head.at), AsOf(max(head.seq - 3, 0), head.at)):
                for where in (None, {"n": {"gte": 2}}):
                    find = FactQuery(Scope(user_id="u"), as_of, parse_filter(where))
                    found = [
                        here.memory.engine.store.index.search(IndexQuery(find, **probe))
                        for here in stages
                    ]
                    assert_same_ranking(*found)


@pytest.mark.parametrize("store", STORES)
def test_expired_or_changed_memories_are_no_longer_returned(store):
    with stage("ram") as ram, opened(store) as disk:
        for here in (ram, disk):
            here.memory.add("tea in the garden", user_id="u", infer=False)
            here.memory.add(
                "tea by the river", user_id="u", infer=False, expiration_date="2030-01-01"
            )
        _assert_same_searches(ram, disk)
        for here in (ram, disk):
            first, _ = here.memory.get_all(user_id="u")["results"]
            here.memory.update(first["id"], "coffee in the garden")
            here.memory.add("tea on the bridge", user_id="u", infer=False, run_id="r")
        _assert_same_searches(ram, disk)


def _assert_same_searches(*stages):
    """Compare searches before and after an expiry, in a scope and in a part of it."""
    early, late = AsOf(LATEST, 1_800_000_000_000_000), AsOf(LATEST, 1_900_000_000_000_000)
    vector = HashingEmbedder().embed(["tea"])[0]
    for as_of in (early, late, early, AsOf(2, early.at), late):
        for scope in (Scope(user_id="u"), Scope(user_id="u", run_id="r")):
            for centre in (0.5, 0.0):
                probe = IndexQuery(
                    FactQuery(scope, as_of), ("tea", "garden"), vector, centre=centre
                )
                one, other = (here.memory.engine.store.index.search(probe) for here in stages)
                assert_same_ranking(one, other)


def test_visible_rows_are_cached_until_the_next_write():
    with (
        stage("sqlite") as here,
        mock.patch.object(NumpyPartition, "_compute_visible_rows", autospec=True) as worked_out,
    ):
        worked_out.side_effect = SEEN
        here.memory.add("tea in the garden", user_id="u", infer=False)
        for _ in range(3):
            assert here.memory.search("tea", user_id="u")["results"]
        assert worked_out.call_count == 1
        here.memory.add("tea by the river", user_id="u", infer=False)
        assert len(here.memory.search("tea", user_id="u")["results"]) == 2
        assert worked_out.call_count == 2


def test_search_builds_candidates_lazily():
    with (
        stage("sqlite") as here,
        mock.patch.object(NumpyPartitionResult, "build_candidates", autospec=True) as made,
    ):
        here.memory.add("tea in the garden", user_id="u", infer=False)
        made.reset_mock()
        find = FactQuery(Scope(user_id="u"), AsOf(LATEST, LATEST))
        found = here.memory.engine.store.index.search(IndexQuery(find, ("tea",)))
        assert len(found.by_terms) == 1
        assert made.call_count == 0
        assert list(found.candidates) == []
        assert made.call_count == 1


@pytest.mark.parametrize("knobs", [{}, {"exact_rows": 1}], ids=["exactly", "by sketch"])
def test_index_cache_size_is_close_to_its_memory_use(knobs):
    talk = [
        {"role": "user", "content": f"{word} {other} {n}", "name": "Ann"}
        for word in WORDS
        for other in WORDS
        for n in range(6)
    ]
    with stage("sqlite", **knobs) as here:
        here.memory.add(talk, user_id="u", infer=False)
        index, head = here.memory.engine.store.index, here.memory.engine.store.get_head("default")
        probes = [
            IndexQuery(
                FactQuery(Scope(user_id="u"), AsOf(seq, head.at)), (word,), vector, centre=centre
            )
            for word, vector in zip(WORDS, HashingEmbedder().embed(WORDS), strict=True)
            for seq in (LATEST, head.seq)
            for centre in (0.5, 0.0)
        ]
        for probe in probes:
            assert list(index.search(probe).candidates)
        index.cache.clear()
        gc.collect()
        tracemalloc.start()
        for probe in probes:
            list(index.search(probe).candidates)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken < 1.05 * sum(index.cache._sizes.values())


def _act(memory, act, chosen):
    if memory.get(chosen) is None:
        return
    if act == "update":
        memory.update(chosen, metadata={"n": 9})
    else:
        getattr(memory, act)(chosen)
