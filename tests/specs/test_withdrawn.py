"""What is given up before a model far away was asked about it is not asked about any more."""

import pytest

from told import Memory


class Far:
    """A model over a network, out of reach until it is let in."""

    model, local = "far", False

    def __init__(self):
        self.up = False
        self.asked = []

    def ask(self, system, user, *, schema=None):
        if not self.up:
            raise ConnectionError("out of reach")
        self.asked.append(user)
        return '{"facts": ["User plays the cello"]}' if "cello" in user else '{"facts": ["User has a code"]}'


@pytest.fixture(params=["ram", "sqlite"])
def opened(request, tmp_path):
    far = Far()
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    with Memory(url, embedder="none", llm=far, llm_retries=0, curate="rules") as memory:
        yield memory, far


def texts(memory):
    return [row["memory"] for row in memory.get_all(user_id="u")["results"]]


def test_what_was_deleted_does_not_come_back_when_a_model_is_within_reach_again(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("I play the cello", user_id="u")
    far.up = True
    memory.wait()
    assert texts(memory) == ["User plays cello"]


def test_one_message_may_be_given_up_and_the_next_is_understood(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.add("I play the cello", user_id="u")
    [turn] = [row for row in memory.search("code", user_id="u")["results"] if "4711" in row["memory"]]
    memory.delete(turn["id"])
    far.up = True
    memory.wait()
    assert texts(memory) == ["User plays cello"]


def test_what_is_said_again_after_that_is_understood(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("My code is 4711", user_id="u")
    far.up = True
    memory.wait()
    assert texts(memory) == ["User has a code"]


def test_what_is_said_again_after_its_facts_were_deleted_is_understood_again(opened):
    memory, far = opened
    far.up = True
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.delete_all(user_id="u")
    assert memory.add("My code is 4711", user_id="u")["extraction"] == "pending"
    memory.wait()
    assert texts(memory) == ["User has a code"]
    assert memory.verify()["ok"]
    memory.erase(user_id="u")
    assert memory.verify()["ok"]
    assert memory.stats()["evidence"] == 0


def test_what_is_said_again_while_its_facts_are_held_costs_nothing(opened):
    memory, far = opened
    far.up = True
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    assert len(far.asked) == 1
