"""A language model as the judge of the first hits: its numbers decide, and whatever else it says
changes nothing.
"""

import pytest

from tables import each_row
from told import Memory
from told.testing import ScriptedLLM

SAID = ["I like green tea", "I like black tea", "My tea pot is blue"]


def found(reply):
    llm = ScriptedLLM([reply])
    with Memory("ram://", embedder="hash:64", reranker=llm) as memory:
        memory.add(SAID, user_id="u")
        plain = [row["memory"] for row in memory.search("tea", user_id="u")["results"]]
        judged = memory.search("tea", user_id="u", rerank=True)
    return plain, judged


def order(numbers):
    return '{"scores": [' + ", ".join(map(str, numbers)) + "]}"


@pytest.mark.parametrize("frame", ["{}", "Sure!\n```json\n{}\n```", "<think>hm, [1, 2]</think>{}"])
def test_the_model_decides_the_order(frame):
    plain, judged = found(frame.replace("{}", order([0, 1, 9])))
    rows = judged["results"]
    assert [row["memory"] for row in rows] == plain[::-1]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert "warnings" not in judged


@each_row(
    "reply",
    [
        "",
        "no idea",
        "[]",
        order([1, 2]),
        order([1, 2, 3, 4]),
        '{"scores": ["a", "b", "c"]}',
        '{"scores": 3}',
        order([1, 2, "NaN"]),
        RuntimeError("no network"),
    ],
)
def test_a_reply_that_is_no_judgement_leaves_the_order_and_says_so(reply):
    plain, judged = found(reply)
    assert [row["memory"] for row in judged["results"]] == plain
    assert any("rerank" in warning for warning in judged["warnings"])
