"""Somebody goes on with the embedder of yesterday after another has switched the store to a new
one.
"""

import pytest

from told import Memory
from told.testing import HashingEmbedder


class Counting:
    """An embedder of eight dimensions, whose vectors are those of no other model."""

    dim = 8

    def __init__(self, model, axis, *, local):
        self.model, self.axis, self.local = model, axis, local

    def embed(self, texts, purpose="passage"):
        return [[float(place == self.axis) for place in range(self.dim)] for _ in texts]


@pytest.fixture(params=[True, False], ids=["local", "remote"])
def both(request, tmp_path):
    """A memory that has switched to a model, and one that was opened before that; both models are
    of one size.
    """
    url, old = f"sqlite:///{tmp_path}/m.db", Counting("old", 0, local=request.param)
    options = {"durability": "normal", "extract": "verbatim"}
    with (
        Memory(url, embedder=old, **options) as switched,
        Memory(url, embedder=old, **options) as late,
    ):
        switched.add("one apple", user_id="u")
        switched.reindex(Counting("new", 1, local=request.param))
        yield switched, late


def test_vectors_of_one_model_never_stand_for_those_of_another(both):
    switched, late = both
    late.add("two pears", user_id="u")
    late.erase(late.add("three plums", user_id="u")["results"][0]["id"])
    cosines = {
        row["memory"]: row["parts"]["cosine"]
        for row in switched.explain("fruit", user_id="u")["candidates"]
    }
    assert cosines["one apple"] == 1.0
    assert cosines.get("two pears") is None
    switched.reindex()
    cosines = {
        row["memory"]: row["parts"]["cosine"]
        for row in switched.explain("fruit", user_id="u")["candidates"]
    }
    assert cosines == {"one apple": 1.0, "two pears": 1.0}


def test_what_is_written_without_a_vector_says_so(both):
    _, late = both
    [warning] = late.add("two pears", user_id="u")["warnings"]
    assert (
        "found by words only: The store is indexed with new (8 dimensions), not old (8)." in warning
    )


class Far(HashingEmbedder):
    """An embedder over a network, during whose first answer something else happens."""

    local = False
    meanwhile = None

    def embed(self, texts, purpose="passage"):
        if self.meanwhile:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return super().embed(texts, purpose)


def test_what_is_written_after_a_reset_while_a_far_embedder_was_asked_gets_its_vectors(tmp_path):
    far, url = Far(dim=16), f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=far) as memory,
        Memory(url, embedder=HashingEmbedder(dim=16)) as other,
    ):
        memory.add([f"tea {number}" for number in range(10)], user_id="u", infer=False)
        far.meanwhile = other.reset
        memory.add("bread", user_id="u", infer=False)
        memory.add("soup", user_id="u", infer=False)
        assert memory.verify()["ok"]
        assert memory.stats()["pending_vectors"] == 0
