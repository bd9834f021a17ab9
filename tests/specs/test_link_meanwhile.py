"""A link is said while somebody else erases or deletes what it is about."""

import pytest

from histories import stage
from told import NotFoundError


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@pytest.mark.parametrize("verb", ["erase", "delete"])
def test_no_link_is_tied_to_what_is_gone_by_the_time_it_is_written(kind, verb, monkeypatch):
    with stage(kind, embedder=None) as here:
        one, other = (here.memory.add(said, user_id="u", infer=False)["results"][0]["id"] for said in ("one", "two"))
        store = type(here.memory.engine.store)
        commit, seen = store.commit, []

        def meanwhile(self, *args, **options):
            if not seen:
                seen.append(verb)
                getattr(here.memory, verb)(other)
            return commit(self, *args, **options)

        monkeypatch.setattr(store, "commit", meanwhile)
        with pytest.raises(NotFoundError):
            here.memory.link(one, "relates_to", other, metadata={"note": "between us"}, user_id="u")
        assert seen
        assert b"between us" not in here.exported()


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_a_link_to_what_is_corrected_meanwhile_is_tied_all_the_same(kind, monkeypatch):
    with stage(kind, embedder=None) as here:
        one, other = (here.memory.add(said, user_id="u", infer=False)["results"][0]["id"] for said in ("one", "two"))
        store = type(here.memory.engine.store)
        commit, seen = store.commit, []

        def meanwhile(self, *args, **options):
            if not seen:
                seen.append("update")
                here.memory.update(other, "three")
            return commit(self, *args, **options)

        monkeypatch.setattr(store, "commit", meanwhile)
        assert here.memory.link(one, "relates_to", other, user_id="u")["message"] == "Linked."


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@pytest.mark.parametrize("call", ["held", "commit"])
def test_names_that_are_erased_while_they_are_compared_are_tied_to_nothing(kind, call, monkeypatch):
    with stage(kind, embedder=None) as here:
        for said in ("My colleague Robert Smith works at Globex", "Bob Smith works at Globex Corp"):
            here.memory.add(said, user_id="u")
        store = type(here.memory.engine.store)
        slow, seen = getattr(store, call), []

        def meanwhile(self, *args, **options):
            found = slow(self, *args, **options) if call == "held" else None
            if not seen:
                seen.append(call)
                here.memory.erase(user_id="u")
            return found if call == "held" else slow(self, *args, **options)

        monkeypatch.setattr(store, call, meanwhile)
        assert here.memory.identify(user_id="u")["results"] == []
        assert seen
        assert here.memory.stats()["links"] == 0
