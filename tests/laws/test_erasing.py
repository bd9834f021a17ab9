"""Properties of erasure: erased text is gone from the ledger, and everything else is unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import answers, any_step, questions, scripts, stage, tried

KINDS = ["ram", "sqlite"]
CANARY = "the canary is called 4711"


@pytest.mark.parametrize("kind", KINDS)
@given(
    before=scripts(any_step, 4),
    changes=st.lists(st.sampled_from(("update", "back", "again", "retell")), max_size=4),
    after=scripts(any_step, 4),
)
@tried(25)
def test_erased_text_is_nowhere_in_the_ledger(kind, before, changes, after):
    with stage(kind) as here:
        memory = here.memory
        here.player.play(before)
        made = memory.add(CANARY, user_id="keeper", metadata={"note": CANARY}, source=CANARY)[
            "results"
        ][0]["id"]
        for change in changes:
            match change:
                case "update":
                    memory.update(made, f"{CANARY} or so")
                case "back":
                    memory.update(made, CANARY)
                case "again":
                    memory.add(CANARY, user_id="keeper")
                case "retell":
                    memory.add(
                        {"role": "assistant", "content": CANARY},
                        user_id="keeper",
                        idempotency_key="c",
                    )
        others = [memory_id for memory_id in here.player.ids if memory.get(memory_id)]
        kept = [(memory.get(memory_id), memory.history(memory_id)) for memory_id in others]
        for row in memory.get_all(user_id="keeper", filters={"memory": {"contains": "canary"}})[
            "results"
        ]:
            # A copy with the same evidence may already be erased.
            if memory.get(row["id"]):
                memory.erase(row["id"])
        assert CANARY not in here.exported().decode()
        assert memory.history(made)[-1]["event"] == "ERASE"
        assert [(memory.get(memory_id), memory.history(memory_id)) for memory_id in others] == kept
        here.player.play(after)
        memory.rebuild()
        assert CANARY not in str(here.rows())
        assert CANARY not in here.exported().decode()
        assert memory.search("canary", user_id="keeper")["results"] == []
        assert memory.verify()["ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_erasing_a_text_also_erases_its_deleted_earlier_copy(kind):
    with stage(kind) as here:
        first = here.memory.add(CANARY, user_id="u")["results"][0]["id"]
        here.memory.delete(first)
        second = here.memory.add(CANARY, user_id="u")["results"][0]["id"]
        here.memory.erase(second)
        assert CANARY not in here.exported().decode()


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(any_step, 8), question=questions)
@tried(20)
def test_erasing_one_scope_does_not_change_another(kind, script, question):
    with stage(kind, hot_size=0) as here:
        here.player.play(script)
        before = answers(here.player.call, question, here.player.ids)
        here.memory.add(["green tea in Berlin", "gardening"], user_id="stranger")
        here.memory.erase(user_id="stranger")
        assert answers(here.player.call, question, here.player.ids) == before


@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts(any_step, 8))
@tried(15)
def test_importing_an_older_export_does_not_restore_erased_text(kind, script):
    with stage(kind) as here:
        made = here.memory.add(CANARY, user_id="keeper")["results"][0]["id"]
        older = here.exported()
        here.player.play(script)
        here.memory.erase(made)
        now = here.exported()
        assert here.memory.import_(older)["entries"] == 0
        assert here.exported() == now
        with stage(kind, seed="elsewhere") as there:
            there.memory.import_(older)
            assert there.memory.get(made)["memory"] == CANARY
            there.memory.import_(now)
            assert there.memory.get(made) is None
            assert there.exported() == now
            assert CANARY not in str(there.rows())
