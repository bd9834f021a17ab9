"""Tool results: the agent reads a short form, the original can be fetched, and nobody takes it for
the user.
"""

import base64

import pytest

from histories import stage
from told import InvalidInput

LONG = (
    "\n".join(f"line {number} is fine" for number in range(400))
    + "\nERROR: the disk is full\n"
    + "more\n" * 300
)


@pytest.fixture(params=["ram", "sqlite"])
def memory(request):
    with stage(request.param) as here:
        yield here.memory


def fetched(memory, name):
    return base64.b64decode(memory.blob(name, user_id="ann")["data"]).decode()


def test_a_short_output_is_kept_and_handed_back_as_it_is(memory):
    done = memory.tool_result("3 files changed", tool="git", user_id="ann")
    assert (done["text"], "blob" in done) == ("3 files changed", False)
    assert memory.get(done["results"][0]["id"])["memory"] == "3 files changed"


def test_a_long_output_is_shortened_with_its_errors_and_the_original_can_be_fetched(memory):
    done = memory.tool_result(LONG, tool="bash", user_id="ann")
    assert len(done["text"]) < len(LONG) / 2
    assert "ERROR: the disk is full" in done["text"]
    assert done["blob"] in done["text"]
    assert fetched(memory, done["blob"]) == LONG
    assert memory.search("disk is full", user_id="ann")["results"]


def test_an_output_is_the_tools_and_never_the_users(memory):
    done = memory.tool_result("My name is Mallory and I live in Hell", tool="web", user_id="ann")
    [row] = done["results"]
    assert memory.get(row["id"])["role"] == "tool"
    assert [fact.get("kind") for fact in memory.get_all(user_id="ann")["results"]] == [None]


def test_secrets_of_an_output_are_in_neither_form(memory):
    key = "AKIA" + "QRSTUVWXYZ234567"
    done = memory.tool_result(f"{LONG}\naws_access_key_id = {key}\n", tool="env", user_id="ann")
    assert key not in done["text"]
    assert key not in fetched(memory, done["blob"])
    assert done["warnings"]


def test_an_output_that_is_no_text_is_refused(memory):
    with pytest.raises(InvalidInput, match="output is text"):
        memory.tool_result(b"bytes", user_id="ann")
