"""Ollama's own API, on new and old servers, and the forms of OLLAMA_HOST."""

from typing import Any

import pytest

from servers import says, serving
from told.errors import EmbeddingError, LLMError
from told.flow import call, run
from told.ports import ChatLine, Tool, ToolCall, ToolLLM
from told.providers.http.ollama import ollama, ollama_embedder, resolve_base_url
from told.providers.http.provider import ModelOptions

FACTS = {"type": "object", "properties": {"facts": {"type": "array"}}, "required": ["facts"]}
WEATHER = Tool(
    "weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


def answer(content: str, **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    return {
        "message": said,
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 12,
        "eval_count": 5,
    }


def ask(llm: Any, **kwargs: Any) -> Any:
    return run(call(llm.ask, "Be brief.", "Why?", **kwargs))


def test_request_and_reply(monkeypatch):
    with serving(says(answer("Because."))) as script:
        monkeypatch.setenv("OLLAMA_HOST", script.url.removeprefix("http://"))
        llm = ollama("llama3.2:3b")
        reply = ask(llm)
    assert reply == "Because."
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost) == (
        12,
        5,
        0.0,
    )
    assert (llm.model, llm.local) == ("ollama:llama3.2:3b", False)
    assert isinstance(llm, ToolLLM)
    assert script.asked[0].path == "/api/chat"
    assert script.asked[0].body == {
        "model": "llama3.2:3b",
        "stream": False,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
        ],
        "options": {"temperature": 0.0, "num_predict": 2000, "num_ctx": 8192},
    }


@pytest.mark.parametrize(("schema", "form"), [(FACTS, FACTS), ({"type": "object"}, "json")])
def test_schema_is_sent_as_the_format(schema, form):
    with serving(says(answer("{}"))) as script:
        ask(ollama(base_url=script.url), schema=schema)
    assert script.asked[0].body["format"] == form


def test_extra_options_are_merged_with_the_defaults():
    with serving(says(answer("yes"))) as script:
        ask(ollama(base_url=script.url, extra={"keep_alive": "1h", "options": {"num_ctx": 32768}}))
    body = script.asked[0].body
    assert body["keep_alive"] == "1h"
    assert body["options"] == {"temperature": 0.0, "num_predict": 2000, "num_ctx": 32768}


def test_conversation_with_tools():
    lines = [
        ChatLine("user", "How is Porto?"),
        ChatLine("assistant", "", (ToolCall("call-0", "weather", {"city": "Porto"}),)),
        ChatLine("tool", "sunny", call_id="call-0"),
    ]
    wish = {"function": {"name": "weather", "arguments": {"city": "Faro"}}}
    with serving(says(answer("", tool_calls=[wish]))) as script:
        reply = run(call(ollama(base_url=script.url).tools, "Help.", lines, [WEATHER]))
    assert reply.calls == (ToolCall("call-0", "weather", {"city": "Faro"}),)
    assert script.asked[0].body["messages"][2:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Porto"}}}],
        },
        {"role": "tool", "tool_name": "weather", "content": "sunny"},
    ]


def test_missing_model_error_quotes_the_server():
    with (
        serving(says({"error": "model 'llama9' not found"}, 404)) as script,
        pytest.raises(LLMError, match="model 'llama9' not found"),
    ):
        ask(ollama("llama9", base_url=script.url))


@pytest.mark.parametrize("body", [{}, [], {"message": "text"}, {"message": {"content": 7}}])
def test_malformed_reply_is_an_error(body):
    with serving(says(body)) as script, pytest.raises(LLMError, match="returned no text"):
        ask(ollama(base_url=script.url))


def test_texts_are_embedded_as_unit_vectors():
    with serving(says({"embeddings": [[3.0, 4.0], [0.0, 5.0]], "prompt_eval_count": 6})) as script:
        embedder = ollama_embedder("own", base_url=script.url)
        found = run(call(embedder.embed, ["one", "two"]))
    assert [list(vector) for vector in found] == [[0.6, 0.8], [0.0, 1.0]]
    assert script.asked[0].path == "/api/embed"
    assert script.asked[0].body == {"model": "own", "input": ["one", "two"]}
    assert embedder.dim == 2


def test_old_server_embeds_one_text_per_request_and_this_is_cached():
    with serving(
        says("404 page not found", 404, content_type="text/plain"), says({"embedding": [1.0, 0.0]})
    ) as script:
        embedder = ollama_embedder("own", base_url=script.url)
        assert len(run(call(embedder.embed, ["one", "two"]))) == 2
        assert len(run(call(embedder.embed, ["three"]))) == 1
    paths = [asked.path for asked in script.asked]
    assert paths == ["/api/embed", *["/api/embeddings"] * 3]
    assert script.asked[1].body == {"model": "own", "prompt": "one"}


def test_missing_embedding_model_is_not_mistaken_for_an_old_server():
    with (
        serving(says({"error": 'model "own" not found, try pulling it first'}, 404)) as script,
        pytest.raises(EmbeddingError, match="try pulling it first"),
    ):
        run(call(ollama_embedder("own", base_url=script.url).embed, ["one"]))
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8080", "http://box:8080"),
        ("http://box:8080/", "http://box:8080"),
        ("https://ollama.example", "https://ollama.example:443"),
        ("[::1]:7000", "http://[::1]:7000"),
    ],
)
def test_host_may_be_written_in_many_ways(host, url, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert resolve_base_url(ModelOptions("m")).base_url == url
