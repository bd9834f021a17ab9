"""Gemini: the requests sent, the replies parsed, and its schema dialect."""

from typing import Any

import pytest

from servers import says, serving
from told.errors import ConfigError, LLMError
from told.flow import call, run
from told.ports import ChatLine, Tool, ToolCall, ToolLLM, Usage
from told.providers.http.google import google, google_embedder, to_gemini_schema

FACTS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["facts"],
    "properties": {
        "facts": {"type": "array", "items": {"type": ["string", "null"]}},
        "type": {"const": "list"},
    },
}
WEATHER = Tool(
    "weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)
NOW = Tool("now", "The time.", {"type": "object", "properties": {}})


def answer(*parts: dict[str, Any], why: str = "STOP") -> dict[str, Any]:
    usage = {
        "promptTokenCount": 1_000_000,
        "candidatesTokenCount": 100_000,
        "thoughtsTokenCount": 100_000,
    }
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": why}],
        "usageMetadata": usage,
    }


def ask(llm: Any, **kwargs: Any) -> Any:
    return run(call(llm.ask, "Be brief.", "Why?", **kwargs))


def test_request_and_reply(monkeypatch):
    with serving(says(answer({"text": "hm", "thought": True}, {"text": "Because."}))) as script:
        monkeypatch.setenv("GEMINI_API_KEY", "g-1")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"{script.url}/v1beta")
        llm = google()
        reply = ask(llm)
    assert reply == "Because."
    assert reply.usage == Usage(1, 1_000_000, 200_000, pytest.approx(0.3 + 0.5))
    assert isinstance(llm, ToolLLM)
    (asked,) = script.asked
    assert asked.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert asked.headers["x-goog-api-key"] == "g-1"
    assert asked.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Why?"}]}],
        "generationConfig": {"temperature": 0.0, "maxOutputTokens": 2000},
    }


def test_key_is_sent_in_a_header_and_never_in_the_url():
    with serving(says(answer({"text": "yes"}))) as script:
        ask(google(base_url=script.url, api_key="g-secret"))
    assert "g-secret" not in script.asked[0].path


def test_schema_is_translated_to_the_gemini_dialect():
    with serving(says(answer({"text": '{"facts": []}'}))) as script:
        assert ask(google(base_url=script.url, api_key="g"), schema=FACTS) == '{"facts": []}'
    config = script.asked[0].body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"] == {
        "type": "object",
        "required": ["facts"],
        "properties": {
            "facts": {"type": "array", "items": {"type": "string", "nullable": True}},
            "type": {"enum": ["list"]},
        },
    }


def test_one_of_is_translated_to_any_of():
    assert to_gemini_schema(
        {"oneOf": [{"type": "string", "examples": ["a"]}, {"type": "number"}], "$schema": "x"}
    ) == {"anyOf": [{"type": "string"}, {"type": "number"}]}


def test_unsupported_schema_is_omitted():
    no = says(
        {"error": {"code": 400, "message": "Invalid value at 'generation_config.response_schema'"}},
        400,
    )
    with serving(no, says(answer({"text": "{}"}))) as script:
        assert ask(google(base_url=script.url, api_key="g"), schema=FACTS) == "{}"
    assert "responseSchema" not in script.asked[1].body["generationConfig"]
    assert script.asked[1].body["generationConfig"]["responseMimeType"] == "application/json"


@pytest.mark.parametrize(
    "body", [{"promptFeedback": {"blockReason": "SAFETY"}}, answer(why="SAFETY")]
)
def test_blocked_reply_is_a_refusal(body):
    with serving(says(body)) as script, pytest.raises(LLMError, match="refused to answer: SAFETY"):
        ask(google(base_url=script.url, api_key="g"))


@pytest.mark.parametrize(
    "body", [{}, [], {"candidates": []}, {"candidates": [{"content": {}}]}, answer()]
)
def test_malformed_reply_is_an_error(body):
    with serving(says(body)) as script:
        llm = google(base_url=script.url, api_key="g")
        with pytest.raises(LLMError, match="returned no text"):
            ask(llm)
        with pytest.raises(LLMError, match="returned no text"):
            run(call(llm.tools, "s", [ChatLine("user", "u")], [WEATHER]))


def test_thought_signatures_are_sent_back_in_a_conversation():
    wish = {
        "functionCall": {"name": "weather", "args": {"city": "Porto"}},
        "thoughtSignature": "abc==",
    }
    with serving(
        says(answer(wish, {"functionCall": {"name": "now"}})), says(answer({"text": "Sunny."}))
    ) as script:
        llm = google(base_url=script.url, api_key="g")
        first = ChatLine("user", "How is Porto?")
        reply = run(call(llm.tools, "Help.", [first], [WEATHER, NOW]))
        spoken = [first, ChatLine("assistant", reply.text, reply.calls)]
        answers = zip(("sunny", "noon"), reply.calls, strict=True)
        spoken += [ChatLine("tool", said, call_id=made.id) for said, made in answers]
        last = run(call(llm.tools, "Help.", spoken, [WEATHER, NOW]))
    assert [(made.name, made.arguments) for made in reply.calls] == [
        ("weather", {"city": "Porto"}),
        ("now", {}),
    ]
    assert last.text == "Sunny."
    first_body, second_body = (asked.body for asked in script.asked)
    assert first_body["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "weather",
                    "description": "The weather of a city.",
                    "parameters": WEATHER.parameters,
                },
                {"name": "now", "description": "The time."},
            ]
        }
    ]
    assert second_body["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {"name": "weather", "args": {"city": "Porto"}},
                    "thoughtSignature": "abc==",
                },
                {"functionCall": {"name": "now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "weather", "response": {"result": "sunny"}}},
                {"functionResponse": {"name": "now", "response": {"result": "noon"}}},
            ],
        },
    ]


def test_calls_without_a_thought_signature_are_kept_apart():
    calls = answer({"functionCall": {"name": "now"}}, {"functionCall": {"name": "now"}})
    with serving(says(calls)) as script:
        reply = run(
            call(google(base_url=script.url, api_key="g").tools, "", [ChatLine("user", "u")], [NOW])
        )
    assert len({made.id for made in reply.calls}) == 2
    assert isinstance(reply.calls[0], ToolCall)


def test_texts_are_embedded_as_unit_vectors_for_their_purpose():
    with serving(says({"embeddings": [{"values": [3.0, 4.0]}, {"values": [0.0, 1.0]}]})) as script:
        embedder = google_embedder(base_url=script.url, api_key="g", dimensions=2)
        found = run(call(embedder.embed, ["one", "two"], "query"))
    assert [list(vector) for vector in found] == [[0.6, 0.8], [0.0, 1.0]]
    assert script.asked[0].path == "/models/gemini-embedding-001:batchEmbedContents"
    assert script.asked[0].body["requests"][0] == {
        "model": "models/gemini-embedding-001",
        "content": {"parts": [{"text": "one"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 2,
    }


def test_missing_key_error_names_the_variable():
    with pytest.raises(ConfigError, match="GOOGLE_API_KEY"):
        google()
