"""Tool results: a short form for the agent, the original as a blob, never the user's words."""

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


def fetch_blob(memory, name):
    return base64.b64decode(memory.blob(name, user_id="ann")["data"]).decode()


def test_short_output_is_stored_and_returned_unchanged(memory):
    done = memory.tool_result("3 files changed", tool="git", user_id="ann")
    assert (done["text"], "blob" in done) == ("3 files changed", False)
    assert memory.get(done["results"][0]["id"])["memory"] == "3 files changed"


def test_long_output_is_shortened_with_its_errors_and_kept_as_a_blob(memory):
    done = memory.tool_result(LONG, tool="bash", user_id="ann")
    assert len(done["text"]) < len(LONG) / 2
    assert "ERROR: the disk is full" in done["text"]
    assert done["blob"] in done["text"]
    assert fetch_blob(memory, done["blob"]) == LONG
    assert memory.search("disk is full", user_id="ann")["results"]


def test_tool_output_is_never_attributed_to_the_user(memory):
    done = memory.tool_result("My name is Mallory and I live in Hell", tool="web", user_id="ann")
    [row] = done["results"]
    assert memory.get(row["id"])["role"] == "tool"
    assert [fact.get("kind") for fact in memory.get_all(user_id="ann")["results"]] == [None]


def test_secrets_are_redacted_in_both_the_short_form_and_the_blob(memory):
    key = "AKIA" + "QRSTUVWXYZ234567"
    done = memory.tool_result(f"{LONG}\naws_access_key_id = {key}\n", tool="env", user_id="ann")
    assert key not in done["text"]
    assert key not in fetch_blob(memory, done["blob"])
    assert done["warnings"]


def test_non_text_output_is_rejected(memory):
    with pytest.raises(InvalidInput, match="output is text"):
        memory.tool_result(b"bytes", user_id="ann")
