"""A message deleted before a remote model extracted it is not sent to the model."""

import pytest

from told import Memory


class RemoteModel:
    """A remote model that is unreachable until `up` is set."""

    model, local = "far", False

    def __init__(self):
        self.up = False
        self.asked = []
        self.on_ask = None
        self.answer = ""

    def ask(self, system, user, *, schema=None):
        if not self.up:
            raise ConnectionError("out of reach")
        self.asked.append(user)
        if self.on_ask:
            self.on_ask()
        if self.answer:
            return self.answer
        return (
            '{"facts": ["User plays the cello"]}'
            if "cello" in user
            else '{"facts": ["User has a code"]}'
        )


@pytest.fixture(params=["ram", "sqlite"])
def memory_and_model(request, tmp_path):
    model = RemoteModel()
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    with Memory(url, embedder="none", llm=model, llm_retries=0, curate="rules") as memory:
        yield memory, model


def list_texts(memory):
    return [row["memory"] for row in memory.get_all(user_id="u")["results"]]


def extract_and_list(memory, model):
    """Make the model reachable, wait for extraction and list the memories."""
    model.up = True
    memory.wait()
    return list_texts(memory)


def test_deleted_turn_is_not_extracted_once_the_model_is_reachable(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("I play the cello", user_id="u")
    assert extract_and_list(memory, model) == ["User plays cello"]


def test_deleting_one_message_does_not_stop_the_next_from_being_extracted(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    memory.add("I play the cello", user_id="u")
    [turn] = [
        row for row in memory.search("code", user_id="u")["results"] if "4711" in row["memory"]
    ]
    memory.delete(turn["id"])
    assert extract_and_list(memory, model) == ["User plays cello"]


def test_message_added_again_after_deletion_is_extracted(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    memory.add("My code is 4711", user_id="u")
    assert extract_and_list(memory, model) == ["User has a code"]


def test_message_added_again_after_its_facts_were_deleted_is_extracted_again(memory_and_model):
    memory, model = memory_and_model
    model.up = True
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.delete_all(user_id="u")
    assert memory.add("My code is 4711", user_id="u")["extraction"] == "pending"
    memory.wait()
    assert list_texts(memory) == ["User has a code"]
    assert memory.verify()["ok"]
    memory.erase(user_id="u")
    assert memory.verify()["ok"]
    assert memory.stats()["evidence"] == 0


def test_message_added_again_while_its_facts_exist_costs_no_model_call(memory_and_model):
    memory, model = memory_and_model
    model.up = True
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    assert len(model.asked) == 1


def test_message_added_repeatedly_after_deletion_is_extracted_once(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    memory.delete_all(user_id="u")
    for _ in range(4):
        memory.add("My code is 4711", user_id="u")
    model.up = True
    memory.wait()
    for _ in range(3):
        memory.add("My code is 4711", user_id="u")
        memory.wait()
    assert (len(model.asked), memory.stats()["evidence"]) == (1, 2)
    assert list_texts(memory) == ["User has a code"]


def test_deleting_the_last_fact_of_a_message_cancels_its_extraction(memory_and_model):
    memory, model = memory_and_model
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    for row in memory.get_all(user_id="u")["results"]:
        memory.delete(row["id"])
    assert (extract_and_list(memory, model), model.asked) == ([], [])


def test_fault_of_a_deleted_message_is_cleared_without_a_model_call(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    memory.wait()
    memory.delete_all(user_id="u")
    model.up = True
    memory.retry_faults()
    assert (list_texts(memory), model.asked, memory.faults()["results"]) == ([], [], [])


def test_message_deleted_during_the_model_call_yields_no_facts(memory_and_model):
    memory, model = memory_and_model
    memory.add("My code is 4711", user_id="u")
    model.on_ask = lambda: memory.delete_all(user_id="u")
    assert extract_and_list(memory, model) == []


def test_message_negated_by_a_later_one_is_still_extracted(memory_and_model):
    memory, model = memory_and_model
    memory.add("I play the cello", user_id="u")
    memory.add("I no longer play the cello", user_id="u")
    model.up = True
    memory.wait()
    assert len("".join(model.asked).split("I play the cello")) > 1


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": ["User lives in Lisbon", "User works at Acme"]}',
        '{"facts": ["User lives in Lisbon", "User works at Acme as a cook"]}',
        '{"facts": ["User lives in Lisbon", "User works for Acme"]}',
    ],
)
def test_deleted_fact_stays_deleted_when_the_rest_of_its_message_is_extracted(
    answer, memory_and_model
):
    memory, model = memory_and_model
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    [work] = [
        row["id"] for row in memory.get_all(user_id="u")["results"] if "Acme" in row["memory"]
    ]
    memory.delete(work)
    model.answer = answer
    assert extract_and_list(memory, model) == ["User lives in Lisbon"]
    assert model.asked
    assert memory.faults()["results"] == []
    assert memory.verify()["ok"]


def test_deleted_fact_stated_in_another_message_is_added_again(memory_and_model):
    memory, model = memory_and_model
    memory.add("I live in Lisbon and work at Acme", user_id="u")
    [work] = [
        row["id"] for row in memory.get_all(user_id="u")["results"] if "Acme" in row["memory"]
    ]
    memory.delete(work)
    memory.add("I work at Acme", user_id="u")
    model.answer = '{"facts": ["User works at Acme"]}'
    assert sorted(extract_and_list(memory, model)) == ["User lives in Lisbon", "User works at Acme"]


def test_superseded_rule_fact_does_not_cancel_the_other_fact_of_its_message(memory_and_model):
    memory, model = memory_and_model
    memory.add("I live in Lisbon and play the cello", user_id="u")
    memory.add("I moved to Porto", user_id="u")
    model.answer = '{"facts": []}'
    assert sorted(extract_and_list(memory, model)) == ["User lives in Porto", "User plays cello"]
