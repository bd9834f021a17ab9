"""Verify a ledger while the account is reset concurrently."""

import pytest

from histories import stage


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@pytest.mark.parametrize("verb", ["scan_entries", "get_head", "check_integrity"])
@pytest.mark.parametrize("again", [True, False], ids=["with new entries", "without"])
def test_verify_passes_when_the_account_is_reset_meanwhile(kind, verb, again, monkeypatch):
    with stage(kind, embedder=None) as here:
        here.memory.add(["one", "two", "three"], user_id="u", infer=False)
        store = here.memory.engine.store
        original, calls = getattr(type(store), verb), []

        def reset_after_call(self, *args, **options):
            found = original(self, *args, **options)
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

        monkeypatch.setattr(type(store), verb, reset_after_call)
        verdict = here.memory.verify()
        assert calls
        assert verdict["ok"], verdict
