"""Wrappers of a model: the usage meter, the reply cache, recordings and the scripted model."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from told.errors import InvalidInput, LLMError
from told.flow import call, run
from told.plugins.adapters import UsageMeter, wrap_with_cache, wrap_with_meter
from told.ports import LLM, ChatLine, Reply, Tool, ToolCall, ToolLLM, ToolReply, Usage, get_usage
from told.testing import Recorder, Replayer, ScriptedLLM

FACTS = {"type": "object", "properties": {"facts": {"type": "array"}}}
NOW = Tool("now", "The time.", {"type": "object"})
LINES = (ChatLine("user", "What time is it?"),)
WISH = ToolReply("", (ToolCall("c1", "now", {"zone": "UTC"}),), Usage(1, 5, 2))


class AsyncModel:
    """A model with async methods, like those behind HTTP."""

    model, local = "later", False

    def __init__(self, *replies: Any) -> None:
        self.inner = ScriptedLLM(replies)

    async def ask(self, system: str, user: str, *, schema: Any = None) -> str:
        await asyncio.sleep(0)
        return self.inner.ask(system, user, schema=schema)

    async def tools(self, system: str, lines: Any, tools: Any) -> ToolReply:
        await asyncio.sleep(0)
        return self.inner.tools(system, lines, tools)


class PlainModel:
    """A model without tools."""

    model = "plain"

    def ask(self, system: str, user: str, *, schema: Any = None) -> str:
        return "yes"


def ask(llm: Any, user: str = "Why?", **kwargs: Any) -> Any:
    return run(call(llm.ask, "Be brief.", user, **kwargs))


# Scripted model


def test_scripted_model_plays_a_conversation_with_tools():
    llm = ScriptedLLM([WISH, "It is noon.", LLMError("down")])
    assert isinstance(llm, ToolLLM)
    assert llm.tools("Help.", LINES, [NOW]) is WISH
    assert llm.tools("Help.", LINES, []) == ToolReply("It is noon.", usage=Usage(calls=1))
    with pytest.raises(LLMError, match="down"):
        llm.tools("Help.", LINES, [])
    with pytest.raises(LLMError, match="no reply to question 4"):
        llm.tools("Help.", LINES, [])
    assert llm.conversations[0] == ("Help.", LINES, (NOW,))


def test_scripted_model_is_local_by_default():
    assert ScriptedLLM([]).local is True
    assert ScriptedLLM([], local=False).local is False


# Usage meter


@pytest.mark.parametrize(
    "make", [ScriptedLLM, lambda replies: AsyncModel(*replies)], ids=["plain", "later"]
)
def test_usage_is_counted_by_operation(make):
    llm, meter = make([Reply("a", Usage(1, 10, 5, 0.5)), "b", WISH]), UsageMeter()
    extracting, curating = (
        wrap_with_meter(llm, meter, "extract"),
        wrap_with_meter(llm, meter, "curate"),
    )
    assert (ask(extracting), ask(extracting)) == ("a", "b")
    assert run(call(curating.tools, "s", LINES, [NOW])) == WISH
    assert meter.by_operation == {"extract": Usage(2, 10, 5, 0.5), "curate": Usage(1, 5, 2)}
    assert meter.total == Usage(3, 15, 7, 0.5)
    assert (extracting.model, extracting.local) == (llm.model, llm.local)


def test_meter_is_thread_safe():
    meter = UsageMeter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: meter.add("x", Usage(1, 1)), range(500)))
    assert meter.total == Usage(500, 500)


def test_failed_calls_are_not_counted():
    meter = UsageMeter()
    with pytest.raises(LLMError):
        ask(wrap_with_meter(ScriptedLLM([LLMError("down")]), meter, "extract"))
    assert meter.total == Usage()


def test_wrapping_adds_no_tools_to_a_model_without_them():
    for around in (
        wrap_with_meter(PlainModel(), UsageMeter(), "x"),
        wrap_with_cache(PlainModel(), 4),
    ):
        assert isinstance(around, LLM)
        assert not isinstance(around, ToolLLM)
        assert around.local is True


# Reply cache


@pytest.mark.parametrize(
    "make", [ScriptedLLM, lambda replies: AsyncModel(*replies)], ids=["plain", "later"]
)
def test_repeated_question_is_cached_at_no_cost(make):
    llm = wrap_with_cache(make([Reply("one", Usage(1, 9, 9, 1.0)), "two"]), 8)
    first, again, other = ask(llm), ask(llm), ask(llm, "And why?")
    assert (first, again, other) == ("one", "one", "two")
    assert (get_usage(first), get_usage(again)) == (Usage(1, 9, 9, 1.0), Usage())


def test_cache_key_includes_the_schema():
    llm = wrap_with_cache(ScriptedLLM(["1", "2"]), 8)
    assert (ask(llm), ask(llm, schema=FACTS)) == ("1", "2")


def test_invalid_json_is_not_cached():
    llm = wrap_with_cache(ScriptedLLM(["I think so", '{"facts": []}', "never asked"]), 8)
    assert ask(llm, schema=FACTS) == "I think so"
    assert ask(llm, schema=FACTS) == '{"facts": []}'
    assert ask(llm, schema=FACTS) == '{"facts": []}'


def test_errors_are_not_cached():
    llm = wrap_with_cache(ScriptedLLM([LLMError("down"), "up"]), 8)
    with pytest.raises(LLMError):
        ask(llm)
    assert ask(llm) == "up"


def test_least_recently_used_answer_is_evicted():
    llm = wrap_with_cache(ScriptedLLM(["a", "b", "c", "a again"]), 2)
    assert [ask(llm, user) for user in ("1", "2", "1", "3", "1")] == ["a", "b", "a", "c", "a"]
    assert ask(llm, "2") == "a again"


def test_conversations_are_cached():
    llm = wrap_with_cache(ScriptedLLM([WISH, "other"]), 8)
    assert llm.tools("s", LINES, [NOW]) == WISH
    assert llm.tools("s", LINES, [NOW]) == ToolReply("", WISH.calls, Usage())
    assert llm.tools("s", LINES, []).text == "other"


def test_cache_of_size_zero_is_disabled():
    llm = ScriptedLLM([])
    assert wrap_with_cache(llm, 0) is llm


# Recordings


@pytest.mark.parametrize(
    "make", [ScriptedLLM, lambda replies: AsyncModel(*replies)], ids=["plain", "later"]
)
def test_recording_is_replayed_exactly(make, tmp_path):
    path = tmp_path / "talk.jsonl"
    recorder = Recorder(make([Reply("São João 東京", Usage(1, 3, 2, 0.1)), "second", WISH]), path)
    said = [ask(recorder), ask(recorder), run(call(recorder.tools, "s", LINES, [NOW]))]
    replayer = Replayer(path)
    again = [ask(replayer), ask(replayer), run(call(replayer.tools, "s", LINES, [NOW]))]
    assert again == said
    assert get_usage(again[0]) == Usage(1, 3, 2, 0.1)
    assert again[2].usage == WISH.usage
    assert replayer.model == recorder.model
    assert ask(replayer) == "second"


def test_unrecorded_question_is_named_in_the_error(tmp_path):
    path = tmp_path / "talk.jsonl"
    ask(Recorder(ScriptedLLM(["one"]), path))
    replayer = Replayer(path)
    with pytest.raises(LLMError, match=r"talk.jsonl holds no answer to this question: What else"):
        ask(replayer, "What else?")
    with pytest.raises(LLMError, match="no answer"):
        ask(replayer, schema=FACTS)
    with pytest.raises(LLMError, match="What time is it"):
        replayer.tools("s", LINES, [])


@pytest.mark.parametrize(
    "line", ["nonsense", "{}", "[]", '{"model": "m", "asked": {}, "answer": 7}']
)
def test_invalid_recording_line_is_rejected_with_its_number(line, tmp_path):
    path = tmp_path / "talk.jsonl"
    ask(Recorder(ScriptedLLM(["one"]), path))
    path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"talk.jsonl:2 is no line of a recording"):
        Replayer(path)


def test_recording_is_readable_json(tmp_path):
    path = tmp_path / "talk.jsonl"
    ask(Recorder(ScriptedLLM(["one"]), path), schema=FACTS)
    (line,) = path.read_text("utf-8").splitlines()
    assert json.loads(line) == {
        "model": "scripted",
        "asked": {"system": "Be brief.", "user": "Why?", "schema": FACTS},
        "answer": {
            "text": "one",
            "calls": [],
            "usage": {"calls": 1, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0},
        },
    }


def test_recorder_adds_no_tools_to_a_model_without_them(tmp_path):
    with pytest.raises(LLMError, match="plain uses no tools"):
        Recorder(PlainModel(), tmp_path / "talk.jsonl").tools("s", LINES, [NOW])
