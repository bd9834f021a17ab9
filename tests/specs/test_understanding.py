"""Model extraction: no turn is lost whatever the model does, and every failure is reported."""

import json
import threading
from itertools import cycle

from chaos import ChaosLLM, everything
from tables import each_row
from told import LLMError, Memory
from told.ports import ToolReply
from told.testing import HashingEmbedder, ScriptedLLM

SAID = "I collect stamps from Peru, and my sister Ana collects coins from Chile"
ADD = '[{"fact": 1, "event": "ADD"}]'
FACTS = json.dumps(["User collects stamps from Peru"])
EXTRACTORS = ("facts", "closed", "apertures", "exhaustive", "deep", "react", "graph")


def open_memory(llm, store="ram://", **more):
    return Memory(store, embedder=more.pop("embedder", "none"), llm=llm, **more)


def list_texts(memory, user="ann"):
    return [row["memory"] for row in memory.get_all(user_id=user)["results"]]


class BlockedModel:
    """A remote model that answers once it is released."""

    model, local = "slow", False

    def __init__(self, *replies):
        self.inner = ScriptedLLM(replies)
        self.release = threading.Event()

    def ask(self, system, user, *, schema=None):
        assert self.release.wait(20)
        return self.inner.ask(system, user, schema=schema)


# Deferred extraction


def test_remote_model_is_asked_after_the_write_returns():
    llm = BlockedModel(FACTS)
    with open_memory(llm) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["extraction"] == "pending"
        assert memory.search("stamps from Peru", user_id="ann")["results"]
        assert memory.stats()["pending"] == 1
        llm.release.set()
        assert memory.wait()["pending"] == 0
        assert "User collects stamps from Peru" in list_texts(memory)


def test_remote_model_is_asked_in_the_background():
    class SignallingModel:
        model, local = "tells", False

        def __init__(self):
            self.asked = threading.Semaphore(0)

        def ask(self, system, user, *, schema=None):
            self.asked.release()
            return FACTS

    llm = SignallingModel()
    with open_memory(llm) as memory:
        for number in range(3):
            memory.add(f"{SAID}, {number} in all", user_id="ann")
            assert llm.asked.acquire(timeout=20)


def test_wait_does_not_repeat_a_model_call_in_progress():
    llm = BlockedModel(FACTS, FACTS)
    with open_memory(llm) as memory:
        memory.add(SAID, user_id="ann")
        waiting = threading.Thread(target=memory.wait)
        waiting.start()
        llm.release.set()
        waiting.join()
        assert memory.stats()["pending"] == 0
        assert len(llm.inner.asked) == 1


def test_turns_below_the_extract_threshold_stay_pending():
    llm = ScriptedLLM([FACTS], local=False)
    with open_memory(llm, extract_threshold=40) as memory:
        memory.add(SAID, user_id="ann")
        assert memory.stats()["pending"] == 1
        assert llm.asked == []
        memory.wait()
        assert len(llm.asked) == 1


def test_rule_facts_are_returned_at_once_and_model_facts_follow():
    llm = BlockedModel(json.dumps(["User lives in Lima", "User is fond of llamas"]), ADD)
    with open_memory(llm) as memory:
        done = memory.add("I live in Lima and quite fond of llamas I am", user_id="ann")
        assert [row["memory"] for row in done["results"]] == ["User lives in Lima"]
        llm.release.set()
        memory.wait()
        assert sorted(list_texts(memory)) == ["User is fond of llamas", "User lives in Lima"]


def test_pending_extraction_resumes_when_the_store_is_reopened(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    stuck = BlockedModel()
    with open_memory(stuck, url, close_wait=0.01) as memory:
        memory.add(SAID, user_id="ann")
    stuck.release.set()
    with open_memory(ScriptedLLM([FACTS]), url) as memory:
        assert memory.wait()["understood"] == 1
        assert "User collects stamps from Peru" in list_texts(memory)


def test_deferred_can_be_set_for_each_write():
    with open_memory(ScriptedLLM([FACTS])) as memory:
        assert memory.add(SAID, user_id="ann", deferred=True)["extraction"] == "pending"
        assert memory.wait()["understood"] == 1
    far = ScriptedLLM([FACTS], local=False)
    with open_memory(far) as memory:
        assert memory.add(SAID, user_id="ann", deferred=False)["extraction"] == "done"


def test_two_clients_of_one_store_ask_the_model_once(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    first, second = ScriptedLLM([FACTS]), ScriptedLLM([FACTS])
    with open_memory(first, url) as one, open_memory(second, url) as other:
        one.add(SAID, user_id="ann", deferred=True)
        other.wait()
        one.wait()
        assert len(first.asked) + len(second.asked) == 1


def test_rebuild_makes_no_model_call():
    llm = ScriptedLLM([FACTS])
    with open_memory(llm) as memory:
        memory.add(SAID, user_id="ann")
        asked = len(llm.asked)
        before = list_texts(memory)
        memory.rebuild()
        assert (list_texts(memory), len(llm.asked)) == (before, asked)


# Usage


def test_receipt_and_stats_report_model_usage():
    with open_memory(ScriptedLLM([FACTS])) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["usage"]["calls"] == 1
        assert memory.stats()["usage"]["extract"]["calls"] == 1


def test_repeated_text_costs_no_model_call():
    llm = ScriptedLLM([FACTS])
    with open_memory(llm) as memory:
        [first] = memory.add(SAID, user_id="ann")["results"]
        [again] = memory.add(SAID, user_id="ann")["results"]
        assert (again["event"], again["id"]) == ("NONE", first["id"])
        assert len(llm.asked) == 1


# Failures


def test_pending_turns_are_extracted_when_the_model_recovers():
    replies = [LLMError("down"), LLMError("down"), FACTS, json.dumps(["User likes tea"]), ADD]
    with open_memory(ScriptedLLM(replies)) as memory:
        first = memory.add(SAID, user_id="ann")
        assert first["extraction"] == "pending"
        assert memory.faults()["results"][0]["error"].startswith("down")
        memory.add("I like tea", user_id="ann")
        memory.wait()
        assert {"User collects stamps from Peru", "User likes tea"} <= set(list_texts(memory))
        assert memory.faults()["results"] == []


def test_repeatedly_failing_turn_is_skipped_and_can_be_retried_or_dropped():
    replies = [
        *(LLMError("down") for _ in range(3)),
        json.dumps(["User likes tea"]),
        LLMError("still down"),
        FACTS,
    ]
    with open_memory(ScriptedLLM(replies), consumer_attempts=3) as memory:
        memory.add(SAID, user_id="ann")
        memory.wait()
        memory.add("I like tea", user_id="ann")
        assert "User likes tea" in list_texts(memory)
        [fault] = memory.faults()["results"]
        assert fault["attempts"] == 3
        assert memory.retry_faults([fault["id"]]) == {"mended": 0, "left": 1}
        assert memory.retry_faults() == {"mended": 1, "left": 0}
        assert "User collects stamps from Peru" in list_texts(memory)
        assert memory.drop_faults() == {"dropped": 0}


def test_permanent_provider_error_does_not_block_later_turns():
    replies = [LLMError("too long", status=400), json.dumps(["User likes tea"])]
    with open_memory(ScriptedLLM(replies)) as memory:
        assert memory.add(SAID, user_id="ann")["extraction"] == "failed"
        assert memory.add("I like tea", user_id="ann")["extraction"] == "done"
        assert len(memory.faults()["results"]) == 1


def test_unparseable_reply_is_kept_in_the_fault():
    with open_memory(ScriptedLLM(["I am afraid I cannot do that, Dave."])) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["results"] == []
        [fault] = memory.faults()["results"]
        assert "Dave" in fault["raw"]
        assert memory.search("stamps", user_id="ann")["results"]


# Each reply once, rotating extractors; test_extraction_chaos covers all pairs without a store.
CHAOS = list(zip(cycle(EXTRACTORS), everything(), strict=False))


@each_row(("name", "chaos"), CHAOS, ids=[f"{name} {chaos.id}" for name, chaos in CHAOS])
def test_no_model_reply_loses_the_turn_or_raises(name, chaos):
    with open_memory(ChaosLLM(chaos)) as memory:
        done = memory.add(SAID, user_id="ann", extract=name, deferred=False)
        found = memory.search("stamps from Peru", user_id="ann", kinds=["turn"])["results"]
        assert any(SAID in row["memory"] for row in found)
        assert memory.verify()["ok"]
        if chaos.raises:
            assert done["warnings"] or done["extraction"] in ("failed", "pending")
            assert memory.faults()["results"] or name in ("exhaustive", "apertures", "deep")
        else:
            seen = (
                done["results"]
                or memory.faults()["results"]
                or done.get("warnings")
                or done.get("skipped")
            )
            assert seen or done["extraction"] == "done"


def test_react_extraction_may_write_nothing():
    nothing = ToolReply("Nothing new here.")
    with open_memory(ScriptedLLM([nothing]), embedder=HashingEmbedder()) as memory:
        done = memory.add(SAID, user_id="ann", extract="react")
        assert (done["results"], done["extraction"]) == ([], "done")
