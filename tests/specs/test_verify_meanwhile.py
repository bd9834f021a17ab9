"""A ledger is verified while somebody resets the account: nothing is wrong with either."""

import pytest

from histories import stage


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@pytest.mark.parametrize("verb", ["scan_entries", "get_head", "check_integrity"])
@pytest.mark.parametrize("again", [True, False], ids=["with new entries", "without"])
def test_a_reset_meanwhile_is_no_damage(kind, verb, again, monkeypatch):
    with stage(kind, embedder=None) as here:
        here.memory.add(["one", "two", "three"], user_id="u", infer=False)
        store = here.memory.engine.store
        slow, calls = getattr(type(store), verb), []

        def meanwhile(self, *args, **options):
            found = slow(self, *args, **options)
            if (
                self is store
                and not calls
                and (verb != "scan_entries" or (args[1:2] == (0,) and len(found) > 1))
            ):
                calls.append(verb)
                here.memory.reset()
                if again:
                    here.memory.add(["four", "five", "six", "seven"], user_id="u", infer=False)
            return found

        monkeypatch.setattr(type(store), verb, meanwhile)
        verdict = here.memory.verify()
        assert calls
        assert verdict["ok"], verdict
