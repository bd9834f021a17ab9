"""Links written while another caller erases, deletes or updates their targets."""

from functools import partial

import pytest

from histories import stage
from told import NotFoundError


@pytest.fixture(params=["ram", "sqlite"])
def here(request):
    with stage(request.param, embedder=None) as here:
        yield here


def add_two(memory):
    """Add two memories and return their ids."""
    return (
        memory.add(said, user_id="u", infer=False)["results"][0]["id"] for said in ("one", "two")
    )


def run_before(monkeypatch, store, call, action):
    """Run an action before the first call of a method; return the list of intercepted calls."""
    original, seen = getattr(store, call), []

    def intercepted(self, *args, **options):
        if not seen:
            seen.append(call)
            action()
        return original(self, *args, **options)

    monkeypatch.setattr(store, call, intercepted)
    return seen


@pytest.mark.parametrize("verb", ["erase", "delete"])
def test_link_to_concurrently_removed_memory_is_rejected(here, verb, monkeypatch):
    first, second = add_two(here.memory)
    action = partial(getattr(here.memory, verb), second)
    seen = run_before(monkeypatch, type(here.memory.engine.store), "commit", action)
    with pytest.raises(NotFoundError):
        here.memory.link(first, "relates_to", second, metadata={"note": "between us"}, user_id="u")
    assert seen
    assert b"between us" not in here.exported()


def test_link_to_concurrently_updated_memory_is_created(here, monkeypatch):
    first, second = add_two(here.memory)
    action = partial(here.memory.update, second, "three")
    seen = run_before(monkeypatch, type(here.memory.engine.store), "commit", action)
    assert here.memory.link(first, "relates_to", second, user_id="u")["message"] == "Linked."
    assert seen


@pytest.mark.parametrize("call", ["current_facts", "find_links", "commit"])
def test_entities_erased_during_identify_are_not_linked(here, call, monkeypatch):
    for said in ("My colleague Robert Smith works at Globex", "Bob Smith works at Globex Corp"):
        here.memory.add(said, user_id="u")
    seen = run_before(
        monkeypatch, type(here.memory.engine.store), call, partial(here.memory.erase, user_id="u")
    )
    assert here.memory.identify(user_id="u")["results"] == []
    assert seen
    assert here.memory.stats()["links"] == 0
