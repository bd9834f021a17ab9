"""Reranking by a language model: its scores decide, and invalid replies change nothing."""

import pytest

from tables import each_row
from told import Memory
from told.testing import ScriptedLLM

SAID = ["I like green tea", "I like black tea", "My tea pot is blue"]


def search_texts(reply):
    llm = ScriptedLLM([reply])
    with Memory("ram://", embedder="hash:64", reranker=llm) as memory:
        memory.add(SAID, user_id="u")
        plain = [row["memory"] for row in memory.search("tea", user_id="u")["results"]]
        judged = memory.search("tea", user_id="u", rerank=True)
    return plain, judged


def scores_reply(numbers):
    return '{"scores": [' + ", ".join(map(str, numbers)) + "]}"


@pytest.mark.parametrize("frame", ["{}", "Sure!\n```json\n{}\n```", "<think>hm, [1, 2]</think>{}"])
def test_the_models_scores_decide_the_order(frame):
    plain, judged = search_texts(frame.replace("{}", scores_reply([0, 1, 9])))
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
        scores_reply([1, 2]),
        scores_reply([1, 2, 3, 4]),
        '{"scores": ["a", "b", "c"]}',
        '{"scores": 3}',
        scores_reply([1, 2, "NaN"]),
        RuntimeError("no network"),
    ],
)
def test_an_invalid_reply_keeps_the_order_and_warns(reply):
    plain, judged = search_texts(reply)
    assert [row["memory"] for row in judged["results"]] == plain
    assert any("rerank" in warning for warning in judged["warnings"])
