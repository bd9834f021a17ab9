"""The same script on every store gives the same receipts, answers, scores, rows, proofs and bytes.

The ram store is the specification. The sqlite store is compared with it with NumPy, without it, and
with partitions so small that every search uses the sketch.
"""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import answers, any_step, questions, scopes, scripts, stage, tried
from stores import STORES, opened
from told.backends.sqlite.partition_python import PythonPartition
from told.model.fact import EvidenceRow, Fact, Link, Passage, Tick
from told.model.query import AsOf, FactQuery, IndexQuery
from told.model.scope import Scope
from told.ports import VIEWS
from told.testing import HashingEmbedder

WHERE = ("user_id", "agent_id", "run_id")
COLUMNS = {
    "evidence": ("seq", "id", *WHERE, "digest", "source", "blobs"),
    "facts": (
        "seq",
        "id",
        "tx",
        *WHERE,
        "until",
        "gone",
        "text",
        "md5",
        "kind",
        "created_at",
        "updated_at",
        "valid_from",
        "valid_to",
        "precision",
        "expires",
        "said_at",
        "role",
        "actor",
        "author",
        "evidence",
        "source",
        "subject",
        "predicate",
        "object",
        "polarity",
        "modality",
        "confidence",
        "after",
        "meta",
    ),
    "links": ("seq", "src", "rel", "dst", *WHERE, "weight", "until", "meta"),
    "passages": ("seq", *WHERE, "text", "slot", "until", "expires"),  # and more of its own
    "ticks": ("seq", *WHERE, "at", "turns", "tokens"),
}
VALUES = {"evidence": EvidenceRow, "facts": Fact, "links": Link, "passages": Passage, "ticks": Tick}


def dump_views(here):
    """Return the rows of every view in a form both stores share."""
    return {
        view: [_row(view, row) for row in rows if len(row) > 4]
        for view, rows in here.rows().items()
    }


def _row(view, row):
    names = [field.name for field in fields(VALUES[view])]
    if len(row) == len(names):
        found = dict(zip(names, row, strict=True))
        scope = found.pop("scope")
        found |= dict(zip(WHERE, scope, strict=True))
    else:
        found = dict(zip(COLUMNS[view], row, strict=view != "passages"))
    if "meta" in found:
        found["meta"] = json.loads(found["meta"])
    return {
        name: value
        for name, value in found.items()
        if name not in ("thread", "after") or view != "passages"
    }


def strip_index_counts(result):
    """Return a step's result without the index counts of an erasure, which have their own test."""
    if isinstance(result, dict) and "destroyed" in result:
        kept = ("entries", "facts", "links", "evidence", "tickets")
        return {**result, "destroyed": {name: result["destroyed"][name] for name in kept}}
    return result


@pytest.mark.parametrize("store", STORES)
@given(
    script=scripts(any_step, 14), asked=st.lists(questions, min_size=1, max_size=3), data=st.data()
)
@tried(30)
def test_script_gives_the_same_results_on_every_store(store, script, asked, data):
    with stage("ram") as ram, opened(store) as disk:
        for number, step in enumerate(script):
            expected, found = (
                strip_index_counts(ram.player.step(step)),
                strip_index_counts(disk.player.step(step)),
            )
            assert found == expected, f"step {number}: {step}"
        ids, boundaries = ram.player.ids, ram.boundaries()
        moments = [None, *(f"#{seq}" for seq in boundaries[-3:])]
        for question in asked:
            for moment in moments:
                expected = answers(ram.player.call, question, ids, moment)
                assert answers(disk.player.call, question, ids, moment) == expected
        assert disk.exported() == ram.exported()
        assert disk.memory.verify() == ram.memory.verify()
        assert dump_views(disk) == dump_views(ram)
        for memory_id in ids:
            assert disk.memory.history(memory_id) == ram.memory.history(memory_id)
        scope = data.draw(scopes)
        assert disk.memory.timeline(**scope) == ram.memory.timeline(**scope)
        if boundaries:
            before, after = f"#{boundaries[0]}", f"#{boundaries[-1]}"
            assert disk.memory.diff(before, after, **scope) == ram.memory.diff(
                before, after, **scope
            )


@pytest.mark.parametrize("store", STORES)
@given(script=scripts(any_step, 8), question=questions)
@tried(15)
def test_exported_ledger_gives_the_same_answers_in_another_store(store, script, question):
    with (
        stage("ram") as ram,
        opened(store, seed="other") as disk,
        stage("ram", seed="third") as back,
    ):
        ram.player.play(script)
        exported = ram.exported()
        disk.memory.import_(exported)
        assert disk.exported() == exported
        back.memory.import_(disk.exported())
        for here in (disk, back):
            here.clock.now = ram.clock.now
        expected = answers(ram.player.call, question, ram.player.ids)
        assert answers(disk.player.call, question, ram.player.ids) == expected
        assert answers(back.player.call, question, ram.player.ids) == expected
        assert dump_views(disk) == dump_views(ram) == dump_views(back)


@pytest.mark.parametrize("store", STORES)
@given(script=scripts(any_step, 8), later=scripts(any_step, 5), question=questions)
@tried(15)
def test_importing_a_later_export_updates_a_copy_including_erasures(store, script, later, question):
    with stage("ram") as ram, stage("ram", seed="copy") as copy, opened(store, seed="copy") as disk:
        ram.player.play(script)
        for here in (copy, disk):
            here.memory.import_(ram.exported())
        ram.player.play(later)
        counted = [here.memory.import_(ram.exported()) for here in (copy, disk)]
        assert counted[0] == counted[1]
        assert disk.exported() == copy.exported() == ram.exported()
        for here in (copy, disk):
            here.clock.now = ram.clock.now
        expected = answers(ram.player.call, question, ram.player.ids)
        assert answers(copy.player.call, question, ram.player.ids) == expected
        assert answers(disk.player.call, question, ram.player.ids) == expected
        assert dump_views(disk) == dump_views(ram)


@pytest.mark.parametrize("store", STORES)
@given(script=scripts(any_step, 8), question=questions)
@tried(10)
def test_reindexing_with_another_embedder_is_the_same_on_every_store(store, script, question):
    other = HashingEmbedder(32, "hash-32")
    with stage("ram") as ram, opened(store) as disk:
        for here in (ram, disk):
            here.player.play(script)
        assert disk.memory.reindex(other) == ram.memory.reindex(other)
        assert answers(disk.player.call, question) == answers(ram.player.call, question)


@pytest.mark.parametrize("store", [name for name in STORES if name != "sqlite by sketch"])
def test_large_scope_ranks_bit_identically(store):
    """Cover several vector blocks, versions, gaps and an erasure; a sketch only approximates."""
    with stage("ram") as ram, opened(store) as disk:
        words = "tea coffee Berlin Tokyo sister brother garden violin river bridge".split()
        found = []
        for here in (ram, disk):
            memory = here.memory
            said = [
                f"{words[n % 10]} {words[n * 7 % 10]} number {n} {words[n // 31 % 10]}"
                for n in range(600)
            ]
            made = [row["id"] for row in memory.add(said, user_id="u")["results"]]
            for n in range(0, 600, 17):
                memory.update(made[n], f"{words[n % 10]} changed {n}", metadata={"n": n})
            for n in range(5, 600, 23):
                if n % 17:
                    memory.delete(made[n])
            memory.erase(made[301])
            middle = here.boundaries()[10]
            found.append(
                [
                    memory.search(
                        query, user_id="u", limit=limit, as_of=as_of, filters=wanted, explain=True
                    )["results"]
                    for query in ("tea in Berlin", "violin number 42", "changed")
                    for limit in (5, 100, 400)
                    for as_of in (None, f"#{middle}")
                    for wanted in (None, {"n": {"gte": 100}})
                ]
            )
        for expected, answer in zip(*found, strict=True):
            assert answer == expected


def test_sketch_finds_98_percent_of_the_nearest():
    """At least 98% of the ten nearest are found, and their scores are exact."""
    with stage("ram") as ram, opened("sqlite by sketch") as disk:
        words = "tea coffee Berlin Tokyo sister brother garden violin river bridge".split()
        said = [
            f"{words[n % 10]} {words[n * 7 % 10]} number {n} {words[n // 31 % 10]}"
            for n in range(900)
        ]
        vectors = HashingEmbedder().embed(said)
        for here in (ram, disk):
            here.memory.add(said, user_id="u")
        found = wanted = 0
        for vector in vectors[::45]:
            near = [
                dict(
                    here.memory.engine.store.index.search(
                        IndexQuery(
                            FactQuery(Scope(user_id="u"), AsOf(10_000, here.clock.now)),
                            (),
                            vector,
                            10,
                        )
                    ).by_vector
                )
                for here in (ram, disk)
            ]
            found, wanted = found + len(near[0].keys() & near[1].keys()), wanted + len(near[0])
            assert all(near[0][seq] == near[1][seq] for seq in near[0].keys() & near[1].keys())
        assert found >= 0.98 * wanted


class Signs:
    """Vectors of ±1, so long that sums of products exceed single precision."""

    model, dim, local = "signs", 1601, True

    def embed(self, texts, purpose="passage"):
        return [
            [1.0 if (hash_of(text) >> n % 61) & 1 else -1.0 for n in range(self.dim)]
            for text in texts
        ]


def hash_of(text):
    return int.from_bytes(text.encode()[:8].ljust(8, b"!")) ^ len(text)


@pytest.mark.parametrize("store", STORES)
def test_long_vectors_score_bit_identically(store):
    found = []
    for stores in (stage("ram", embedder=Signs()), opened(store, embedder=Signs())):
        with stores as here:
            here.memory.add([f"{n} fact" for n in range(40)], user_id="u")
            rows = here.memory.search("7 fact", user_id="u", explain=True)["results"]
            found.append([(row["memory"], row["score_details"]["cosine"]) for row in rows])
    assert found[0] == found[1]


class Blank(HashingEmbedder):
    """Return zero vectors for some texts."""

    def embed(self, texts, purpose="passage"):
        known = super().embed(texts, purpose)
        return [
            [0.0] * self.dim if "blank" in text else vector
            for text, vector in zip(texts, known, strict=True)
        ]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("query", ["tea", "blank"])
def test_zero_vector_matches_nothing_on_every_store(store, query):
    found = []
    for stores in (stage("ram", embedder=Blank()), opened(store, embedder=Blank())):
        with stores as here:
            here.memory.add(["a blank page", "green tea", "soup"], user_id="u")
            found.append(here.memory.search(query, user_id="u", explain=True)["results"])
    assert found[0] == found[1]


@pytest.mark.parametrize("store", STORES)
def test_erase_counts_are_the_same_on_every_store(store):
    found = []
    for stores in (stage("ram"), opened(store)):
        with stores as here:
            one = here.memory.add("tea", user_id="u", idempotency_key="k")["results"][0]["id"]
            here.memory.update(one, "coffee")
            here.memory.update(one, "tea", metadata={"n": 1})
            other = here.memory.add("tea", user_id="v")["results"][0]["id"]
            here.memory.link(one, "relates_to", one, user_id="u")
            found.append(
                [here.memory.erase(one), here.memory.erase(other), here.memory.stats()["entries"]]
            )
    assert found[0] == found[1]


def test_plain_partition_is_really_used():
    with opened("sqlite without NumPy") as here:
        here.memory.add("tea", user_id="u")
        here.memory.search("tea", user_id="u")
        parts = list(here.memory.engine.store.index.cache._parts.values())
        assert parts
        assert all(type(part) is PythonPartition for part in parts)
    assert set(VALUES) == set(VIEWS)
