"""A link is said while somebody else erases or deletes what it is about."""

from functools import partial

import pytest

from histories import stage
from told import NotFoundError


@pytest.fixture(params=["ram", "sqlite"])
def here(request):
    with stage(request.param, embedder=None) as here:
        yield here


def two(memory):
    """Two memories that a link may be about."""
    return (
        memory.add(said, user_id="u", infer=False)["results"][0]["id"] for said in ("one", "two")
    )


def before(monkeypatch, store, call, happens):
    """Let something happen just before the first of some calls; what says that it did."""
    slow, seen = getattr(store, call), []

    def meanwhile(self, *args, **options):
        if not seen:
            seen.append(call)
            happens()
        return slow(self, *args, **options)

    monkeypatch.setattr(store, call, meanwhile)
    return seen


@pytest.mark.parametrize("verb", ["erase", "delete"])
def test_no_link_is_tied_to_what_is_gone_by_the_time_it_is_written(here, verb, monkeypatch):
    one, other = two(here.memory)
    happens = partial(getattr(here.memory, verb), other)
    seen = before(monkeypatch, type(here.memory.engine.store), "commit", happens)
    with pytest.raises(NotFoundError):
        here.memory.link(one, "relates_to", other, metadata={"note": "between us"}, user_id="u")
    assert seen
    assert b"between us" not in here.exported()


def test_a_link_to_what_is_corrected_meanwhile_is_tied_all_the_same(here, monkeypatch):
    one, other = two(here.memory)
    happens = partial(here.memory.update, other, "three")
    seen = before(monkeypatch, type(here.memory.engine.store), "commit", happens)
    assert here.memory.link(one, "relates_to", other, user_id="u")["message"] == "Linked."
    assert seen


@pytest.mark.parametrize("call", ["held", "links", "commit"])
def test_names_that_are_erased_while_they_are_compared_are_tied_to_nothing(here, call, monkeypatch):
    for said in ("My colleague Robert Smith works at Globex", "Bob Smith works at Globex Corp"):
        here.memory.add(said, user_id="u")
    seen = before(
        monkeypatch, type(here.memory.engine.store), call, partial(here.memory.erase, user_id="u")
    )
    assert here.memory.identify(user_id="u")["results"] == []
    assert seen
    assert here.memory.stats()["links"] == 0
