"""A client keeps its old embedder after another client switched the store to a new one."""

import pytest

from told import Memory
from told.testing import HashingEmbedder


class AxisEmbedder:
    """An 8-dimensional embedder that maps every text to one axis."""

    dim = 8

    def __init__(self, model, axis, *, local):
        self.model, self.axis, self.local = model, axis, local

    def embed(self, texts, purpose="passage"):
        return [[float(place == self.axis) for place in range(self.dim)] for _ in texts]


@pytest.fixture(params=[True, False], ids=["local", "remote"])
def memories(request, tmp_path):
    """A memory that switched models and one opened before that; the dimensions are equal."""
    url, old = f"sqlite:///{tmp_path}/m.db", AxisEmbedder("old", 0, local=request.param)
    options = {"durability": "normal", "extract": "verbatim"}
    with (
        Memory(url, embedder=old, **options) as switched,
        Memory(url, embedder=old, **options) as late,
    ):
        switched.add("one apple", user_id="u")
        switched.reindex(AxisEmbedder("new", 1, local=request.param))
        yield switched, late


def test_vectors_of_different_models_are_never_compared(memories):
    switched, late = memories
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


def test_writing_without_a_vector_returns_a_warning(memories):
    _, late = memories
    [warning] = late.add("two pears", user_id="u")["warnings"]
    assert (
        "found by keywords only: The store is indexed with new (8 dimensions), not old (8)."
        in warning
    )


class RemoteEmbedder(HashingEmbedder):
    """A remote embedder that runs a callback during its first call."""

    local = False
    on_embed = None

    def embed(self, texts, purpose="passage"):
        if self.on_embed:
            callback, self.on_embed = self.on_embed, None
            callback()
        return super().embed(texts, purpose)


def test_writes_after_a_reset_during_a_remote_embed_call_get_vectors(tmp_path):
    remote, url = RemoteEmbedder(dim=16), f"sqlite:///{tmp_path}/m.db"
    with (
        Memory(url, embedder=remote) as memory,
        Memory(url, embedder=HashingEmbedder(dim=16)) as other,
    ):
        memory.add([f"tea {number}" for number in range(10)], user_id="u", infer=False)
        remote.on_embed = other.reset
        memory.add("bread", user_id="u", infer=False)
        memory.add("soup", user_id="u", infer=False)
        assert memory.verify()["ok"]
        assert memory.stats()["pending_vectors"] == 0
