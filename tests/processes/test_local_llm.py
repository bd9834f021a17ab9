"""A real language model on this machine behind a real server: test the shape of its answers, not
their quality.

`make test` fetches the model and its runtime; without them these tests are skipped.
"""

import asyncio
import json
import os
import platform
import subprocess
import sys
from importlib.util import find_spec

import pytest

from told import Memory, Settings
from told.errors import ConfigError, ModelMissing
from told.flow import call, run
from told.plugins import open_llm
from told.plugins.adapters import UsageMeter, wrap_with_meter
from told.ports import ChatLine, Tool, ToolLLM
from told.providers.local import registry

MACHINE = registry.home()
"""The model folder of this machine; every test has an empty home."""

HERE = (
    find_spec("xllamacpp") is not None
    and (MACHINE / "smollm2" / registry.MANIFEST_FILENAME).is_file()
)
needed = pytest.mark.skipif(
    not HERE, reason="run `make llm`: xllamacpp or the model smollm2 is not here"
)
alone = pytest.mark.xdist_group("local llm")

WORD = {"type": "string", "maxLength": 8}
FACTS = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": WORD, "minItems": 1, "maxItems": 3}},
    "required": ["facts"],
    "additionalProperties": False,
}
SETTINGS = Settings(llm_max_tokens=200, llm_cache=0)
BRIEF = Settings(llm_max_tokens=32, llm_cache=0)


@pytest.fixture
def llm(monkeypatch):
    """Return the model behind its server, shared by every test here."""
    monkeypatch.setenv("TOLD_MODELS", str(MACHINE))
    return open_llm("local:smollm2", SETTINGS)


@pytest.fixture
def brief(monkeypatch):
    """Return the model with a smaller output limit."""
    monkeypatch.setenv("TOLD_MODELS", str(MACHINE))
    return open_llm("local:smollm2", BRIEF)


@needed
@alone
def test_grammar_makes_a_small_model_answer_in_the_schema(llm):
    meter = UsageMeter()
    reply = run(
        call(
            wrap_with_meter(llm, meter, "extract").ask,
            "List facts.",
            "I'm Mara and I work at Acme.",
            schema=FACTS,
        )
    )
    facts = json.loads(reply)["facts"]
    assert 1 <= len(facts) <= 3
    assert all(isinstance(fact, str) and len(fact) <= 8 for fact in facts)
    spent = meter.by_operation["extract"]
    assert spent.calls == 1
    assert spent.prompt_tokens > 0
    assert spent.completion_tokens > 0
    assert spent.cost == 0.0


@needed
@alone
def test_model_answers_on_an_event_loop(llm):
    async def both() -> list[str]:
        return await asyncio.gather(
            *(llm.ask("One word.", f"What is {n}?", schema=FACTS) for n in range(2))
        )

    assert all(json.loads(reply)["facts"] for reply in asyncio.run(both()))


@needed
@alone
def test_model_uses_tools_in_a_conversation(brief):
    weather = Tool(
        "weather",
        "The weather.",
        {"type": "object", "properties": {"city": WORD}, "required": ["city"]},
    )
    assert isinstance(brief, ToolLLM)
    reply = run(
        call(brief.tools, "Help.", [ChatLine("user", "How is the weather in Porto?")], [weather])
    )
    assert reply.text or reply.calls
    assert all(made.name == "weather" for made in reply.calls)


@needed
@alone
def test_reranking_with_the_model_loses_no_result(brief):
    with Memory("ram://", embedder="hash", reranker=brief) as memory:
        for text in ("I moved to Lisbon", "I have two cats", "I work at Acme"):
            memory.add(text, user_id="mara")
        plain = memory.search("where do I live?", user_id="mara")["results"]
        judged = memory.search("where do I live?", user_id="mara", rerank=True)["results"]
    assert {row["id"] for row in judged} == {row["id"] for row in plain}


@needed
@alone
def test_model_is_named_and_counts_as_remote(llm):
    assert (llm.model, llm.local) == ("local:smollm2", False)


def test_missing_model_error_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("TOLD_MODELS", str(tmp_path))
    monkeypatch.setattr("told.providers.local.llm.find_spec", lambda name: object())
    with pytest.raises(ModelMissing, match="told models install smollm2"):
        open_llm("local", SETTINGS)


def test_missing_runtime_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("told.providers.local.llm.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"told\[llm-local\]"):
        open_llm("local:smollm2", SETTINGS)


def test_each_model_has_its_task(monkeypatch):
    from told.providers.local import open_embedder

    monkeypatch.setattr("told.providers.local.llm.find_spec", lambda name: object())
    with pytest.raises(ConfigError, match="minilm is an embedder, not a language model"):
        open_llm("local:minilm", SETTINGS)
    with pytest.raises(ConfigError, match="smollm2 is a language model, not an embedder"):
        open_embedder("smollm2")


FORKED = """
import atexit, os, signal, sys
from told.providers.local.llm import get_server
get_server("smollm2")
number = os.fork()
if not number:
    signal.alarm(30)
    atexit.register(print, "the child said goodbye")
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
"""


@needed
@alone
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="elsewhere it must end with os._exit")
def test_child_forked_with_a_loaded_model_exits_normally():
    env = {**os.environ, "TOLD_MODELS": str(MACHINE)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["the child said goodbye", "7"]), (
        done.stderr[-2000:]
    )
