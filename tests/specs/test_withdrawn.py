"""What is given up before a model far away was asked about it is not asked about any more."""

import pytest

from told import Memory


class Far:
    """A model over a network, out of reach until it is let in."""

    model, local = "far", False

    def __init__(self):
        self.up = False
        self.asked = []
        self.meanwhile = None
        self.answer = ""

    def ask(self, system, user, *, schema=None):
        if not self.up:
            raise ConnectionError("out of reach")
        self.asked.append(user)
        if self.meanwhile:
            self.meanwhile()
        if self.answer:
            return self.answer
        return (
            '{"facts": ["User plays the cello"]}'
            if "cello" in user
            else '{"facts": ["User has a code"]}'
        )


@pytest.fixture(params=["ram", "sqlite"])
def opened(request, tmp_path):
    far = Far()
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    with Memory(url, embedder="none", llm=far, llm_retries=0, curate="rules") as memory:
        yield memory, far


def texts(memory):
    return [row["memory"] for row in memory.get_all(user_id="u")["results"]]


def understood(memory, far):
    """What is held once the model was within reach."""
    far.up = True
    memory.wait()
    return texts(memory)


def test_what_was_deleted_does_not_come_back_when_a_model_is_within_reach_again(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("I play the cello", user_id="u")
    assert understood(memory, far) == ["User plays cello"]


def test_one_message_may_be_given_up_and_the_next_is_understood(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.add("I play the cello", user_id="u")
    [turn] = [
        row for row in memory.search("code", user_id="u")["results"] if "4711" in row["memory"]
    ]
    memory.delete(turn["id"])
    assert understood(memory, far) == ["User plays cello"]


def test_what_is_said_again_after_that_is_understood(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("My code is 4711", user_id="u")
    assert understood(memory, far) == ["User has a code"]


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


def test_what_is_said_again_and_again_after_that_is_understood_once(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    for _ in range(4):
        memory.add("My code is 4711", user_id="u")
    far.up = True
    memory.wait()
    for _ in range(3):
        memory.add("My code is 4711", user_id="u")
        memory.wait()
    assert (len(far.asked), memory.stats()["evidence"]) == (1, 2)
    assert texts(memory) == ["User has a code"]


def test_a_message_is_given_up_with_the_last_of_its_facts(opened):
    memory, far = opened
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    for row in memory.get_all(user_id="u")["results"]:
        memory.delete(row["id"])
    assert (understood(memory, far), far.asked) == ([], [])


def test_a_fault_of_what_was_given_up_is_settled_without_a_question(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.delete_all(user_id="u")
    far.up = True
    memory.retry_faults()
    assert (texts(memory), far.asked, memory.faults()["results"]) == ([], [], [])


def test_what_is_given_up_while_a_model_is_asked_about_it_does_not_come_back(opened):
    memory, far = opened
    memory.add("My code is 4711", user_id="u")
    far.meanwhile = lambda: memory.delete_all(user_id="u")
    assert understood(memory, far) == []


def test_what_a_later_message_took_back_is_still_asked_about(opened):
    memory, far = opened
    memory.add("I play the cello", user_id="u")
    memory.add("I no longer play the cello", user_id="u")
    far.up = True
    memory.wait()
    assert len("".join(far.asked).split("I play the cello")) > 1


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": ["User lives in Lisbon", "User works at Acme"]}',
        '{"facts": ["User lives in Lisbon", "User works at Acme as a cook"]}',
        '{"facts": ["User lives in Lisbon", "User works for Acme"]}',
    ],
)
def test_one_fact_of_a_message_that_was_deleted_stays_so_and_the_other_is_held(answer, opened):
    memory, far = opened
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    [work] = [
        row["id"] for row in memory.get_all(user_id="u")["results"] if "Acme" in row["memory"]
    ]
    memory.delete(work)
    far.answer = answer
    assert understood(memory, far) == ["User lives in Lisbon"]
    assert far.asked
    assert memory.faults()["results"] == []
    assert memory.verify()["ok"]


def test_what_was_deleted_of_a_message_and_is_said_in_another_is_held_again(opened):
    memory, far = opened
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    [work] = [
        row["id"] for row in memory.get_all(user_id="u")["results"] if "Acme" in row["memory"]
    ]
    memory.delete(work)
    memory.add("I work at Acme", user_id="u")
    far.answer = '{"facts": ["User works at Acme"]}'
    assert sorted(understood(memory, far)) == ["User lives in Lisbon", "User works at Acme"]


def test_what_rules_held_is_not_taken_back_by_a_later_message(opened):
    memory, far = opened
    memory.add("I live in Lisbon and play the cello", user_id="u")
    memory.add("I moved to Porto", user_id="u")
    far.answer = '{"facts": []}'
    assert sorted(understood(memory, far)) == ["User lives in Porto", "User plays cello"]
