"""What a model makes of what was said: nothing said is lost, whatever the model does, and every
failure can be seen.
"""

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


def opened(llm, store="ram://", **more):
    return Memory(store, embedder=more.pop("embedder", "none"), llm=llm, **more)


def texts(memory, user="ann"):
    return [row["memory"] for row in memory.get_all(user_id=user)["results"]]


class Slow:
    """A model far away that answers when it is let."""

    model, local = "slow", False

    def __init__(self, *replies):
        self.inner = ScriptedLLM(replies)
        self.go = threading.Event()

    def ask(self, system, user, *, schema=None):
        assert self.go.wait(20)
        return self.inner.ask(system, user, schema=schema)


# Later


def test_a_model_far_away_is_asked_after_the_write_has_returned():
    llm = Slow(FACTS)
    with opened(llm) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["extraction"] == "pending"
        assert memory.search("stamps from Peru", user_id="ann")["results"]
        assert memory.stats()["pending"] == 1
        llm.go.set()
        assert memory.wait()["pending"] == 0
        assert "User collects stamps from Peru" in texts(memory)


def test_a_model_far_away_is_asked_without_anybody_waiting_for_it():
    class Tells:
        model, local = "tells", False

        def __init__(self):
            self.asked = threading.Semaphore(0)

        def ask(self, system, user, *, schema=None):
            self.asked.release()
            return FACTS

    llm = Tells()
    with opened(llm) as memory:
        for number in range(3):
            memory.add(f"{SAID}, {number} in all", user_id="ann")
            assert llm.asked.acquire(timeout=20)


def test_who_waits_does_not_ask_what_is_being_asked():
    llm = Slow(FACTS, FACTS)
    with opened(llm) as memory:
        memory.add(SAID, user_id="ann")
        waiting = threading.Thread(target=memory.wait)
        waiting.start()
        llm.go.set()
        waiting.join()
        assert memory.stats()["pending"] == 0
        assert len(llm.inner.asked) == 1


def test_little_is_not_worth_a_question_until_it_adds_up():
    llm = ScriptedLLM([FACTS], local=False)
    with opened(llm, extract_threshold=40) as memory:
        memory.add(SAID, user_id="ann")
        assert memory.stats()["pending"] == 1
        assert llm.asked == []
        memory.wait()
        assert len(llm.asked) == 1


def test_what_rules_find_is_there_at_once_and_what_the_model_finds_joins_it():
    llm = Slow(json.dumps(["User lives in Lima", "User is fond of llamas"]), ADD)
    with opened(llm) as memory:
        done = memory.add("I live in Lima and quite fond of llamas I am", user_id="ann")
        assert [row["memory"] for row in done["results"]] == ["User lives in Lima"]
        llm.go.set()
        memory.wait()
        assert sorted(texts(memory)) == ["User is fond of llamas", "User lives in Lima"]


def test_what_was_not_asked_before_the_end_is_asked_by_the_next_who_opens(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    stuck = Slow()
    with opened(stuck, url, close_wait=0.01) as memory:
        memory.add(SAID, user_id="ann")
    stuck.go.set()
    with opened(ScriptedLLM([FACTS]), url) as memory:
        assert memory.wait()["understood"] == 1
        assert "User collects stamps from Peru" in texts(memory)


def test_deferred_and_at_once_can_be_chosen_for_each_write():
    with opened(ScriptedLLM([FACTS])) as memory:
        assert memory.add(SAID, user_id="ann", deferred=True)["extraction"] == "pending"
        assert memory.wait()["understood"] == 1
    far = ScriptedLLM([FACTS], local=False)
    with opened(far) as memory:
        assert memory.add(SAID, user_id="ann", deferred=False)["extraction"] == "done"


def test_two_memories_over_one_store_ask_once(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    first, second = ScriptedLLM([FACTS]), ScriptedLLM([FACTS])
    with opened(first, url) as one, opened(second, url) as other:
        one.add(SAID, user_id="ann", deferred=True)
        other.wait()
        one.wait()
        assert len(first.asked) + len(second.asked) == 1


def test_a_rebuild_asks_no_model():
    llm = ScriptedLLM([FACTS])
    with opened(llm) as memory:
        memory.add(SAID, user_id="ann")
        asked = len(llm.asked)
        before = texts(memory)
        memory.rebuild()
        assert (texts(memory), len(llm.asked)) == (before, asked)


# What it costs


def test_a_receipt_and_the_figures_say_what_a_model_cost():
    with opened(ScriptedLLM([FACTS])) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["usage"]["calls"] == 1
        assert memory.stats()["usage"]["extract"]["calls"] == 1


def test_the_same_words_again_cost_nothing():
    llm = ScriptedLLM([FACTS])
    with opened(llm) as memory:
        [first] = memory.add(SAID, user_id="ann")["results"]
        [again] = memory.add(SAID, user_id="ann")["results"]
        assert (again["event"], again["id"]) == ("NONE", first["id"])
        assert len(llm.asked) == 1


# Failure


def test_a_model_that_comes_back_catches_up():
    replies = [LLMError("down"), LLMError("down"), FACTS, json.dumps(["User likes tea"]), ADD]
    with opened(ScriptedLLM(replies)) as memory:
        first = memory.add(SAID, user_id="ann")
        assert first["extraction"] == "pending"
        assert memory.faults()["results"][0]["error"].startswith("down")
        memory.add("I like tea", user_id="ann")
        memory.wait()
        assert {"User collects stamps from Peru", "User likes tea"} <= set(texts(memory))
        assert memory.faults()["results"] == []


def test_what_fails_time_and_again_is_passed_over_and_can_be_retried_or_dropped():
    replies = [
        *(LLMError("down") for _ in range(3)),
        json.dumps(["User likes tea"]),
        LLMError("still down"),
        FACTS,
    ]
    with opened(ScriptedLLM(replies), consumer_attempts=3) as memory:
        memory.add(SAID, user_id="ann")
        memory.wait()
        memory.add("I like tea", user_id="ann")
        assert "User likes tea" in texts(memory)
        [fault] = memory.faults()["results"]
        assert fault["attempts"] == 3
        assert memory.retry_faults([fault["id"]]) == {"mended": 0, "left": 1}
        assert memory.retry_faults() == {"mended": 1, "left": 0}
        assert "User collects stamps from Peru" in texts(memory)
        assert memory.drop_faults() == {"dropped": 0}


def test_what_the_provider_refuses_for_good_does_not_hold_up_the_rest():
    replies = [LLMError("too long", status=400), json.dumps(["User likes tea"])]
    with opened(ScriptedLLM(replies)) as memory:
        assert memory.add(SAID, user_id="ann")["extraction"] == "failed"
        assert memory.add("I like tea", user_id="ann")["extraction"] == "done"
        assert len(memory.faults()["results"]) == 1


def test_a_garbled_answer_is_kept_whole_where_it_can_be_seen():
    with opened(ScriptedLLM(["I am afraid I cannot do that, Dave."])) as memory:
        done = memory.add(SAID, user_id="ann")
        assert done["results"] == []
        [fault] = memory.faults()["results"]
        assert "Dave" in fault["raw"]
        assert memory.search("stamps", user_id="ann")["results"]


# Every answer once, the extractors in turn: test_extraction_chaos tries all pairs without a store.
CHAOS = list(zip(cycle(EXTRACTORS), everything(), strict=False))


@each_row(("name", "chaos"), CHAOS, ids=[f"{name} {chaos.id}" for name, chaos in CHAOS])
def test_no_answer_loses_a_word_or_reaches_the_caller(name, chaos):
    with opened(ChaosLLM(chaos)) as memory:
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


def test_tools_are_used_to_look_before_something_is_written():
    nothing = ToolReply("Nothing new here.")
    with opened(ScriptedLLM([nothing]), embedder=HashingEmbedder()) as memory:
        done = memory.add(SAID, user_id="ann", extract="react")
        assert (done["results"], done["extraction"]) == ([], "done")
