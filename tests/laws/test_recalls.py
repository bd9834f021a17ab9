"""Recalls are only logged: they never change the ledger or its views."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import any_step, scripts, stage, tried
from told.flow import run
from told.model.query import AccessCount
from told.model.scope import Scope


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@given(
    script=scripts(any_step, 8),
    reads=st.lists(st.tuples(st.sets(st.integers(0, 7)), st.integers(0, 2**53)), max_size=6),
)
@tried(20)
def test_recalls_change_no_ledger_export_or_view(kind, script, reads):
    with stage(kind, access_flush=2) as here:
        here.player.play(script)
        engine = here.memory.engine
        facts = engine.store.find_versions(engine.account, seqs=range(1, here.head + 1))
        before = (engine.store.get_head(engine.account), here.exported(), here.rows())
        counted: dict[str, AccessCount] = {}
        for chosen, at in reads:
            hits = [facts[number % len(facts)] for number in sorted(chosen)] if facts else []
            engine.hot_buffers.record_hits(
                engine.account, Scope(engine.account, user_id="x"), hits, at
            )
            for thread in {fact.id for fact in hits}:
                counted[thread] = (
                    counted[thread] + AccessCount(1, at)
                    if thread in counted
                    else AccessCount(1, at)
                )
            assert run(engine.flush_accesses()) == ()
        assert (engine.store.get_head(engine.account), here.exported(), here.rows()) == before
        assert (
            dict(engine.store.access_counts(engine.account, [fact.id for fact in facts])) == counted
        )
        assert here.memory.stats()["recalls"] == sum(touch.count for touch in counted.values())
        assert here.memory.verify()["ok"]
        here.memory.rebuild()
        assert here.rows() == before[2]
        assert (
            dict(engine.store.access_counts(engine.account, [fact.id for fact in facts])) == counted
        )
