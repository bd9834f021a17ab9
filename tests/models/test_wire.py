"""The wire: what is tried again and what is not, how long, how much at once, and what never
shows.
"""

import asyncio
import gzip
import json
import logging
import threading
from email.utils import formatdate
from typing import Any

import pytest

from servers import Script, drips, resets, says, serving, truncates
from tables import each_row
from told.errors import ConfigError, EmbeddingError, LLMError
from told.flow import call, run
from told.providers.http import client
from told.providers.http.client import ClientLimits, ClientTiming, HttpClient

KEY = "sk-proj-3kd9Xq7LmZ2aVw8R"
NOON = 1_800_000_000.0


class World:
    """A clock that stands still, waits that are only noted, and no chance."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def means(self, jitter: float = 1.0) -> ClientTiming:
        return ClientTiming(lambda: self.now, lambda: NOON, self.sleep, lambda: jitter)


@pytest.fixture
def world() -> World:
    return World()


def wire(script: Script, world: World, jitter: float = 1.0, **patience: Any) -> HttpClient:
    headers = {"authorization": f"Bearer {KEY}"}
    return HttpClient(
        "Acme",
        script.url,
        headers,
        secret=KEY,
        hint="Set ACME_KEY.",
        timing=world.means(jitter),
        limits=ClientLimits(**patience),
    )


def ask(line: HttpClient, body: Any = None) -> Any:
    return run(call(line.post, "/ask", body or {"question": "why?"}))


# What passes


def test_an_answer_comes_back_as_json(world):
    with serving(says({"answer": "because"})) as script:
        assert ask(wire(script, world)) == {"answer": "because"}
    assert script.asked[0].path == "/ask"
    assert script.asked[0].body == {"question": "why?"}
    assert script.asked[0].headers["content-type"] == "application/json"
    assert world.waits == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_fault_that_may_pass_is_tried_again(world, status):
    with serving(says({"error": {"message": "overloaded"}}, status), says({"ok": True})) as script:
        assert ask(wire(script, world)) == {"ok": True}
    assert len(script.asked) == 2
    assert world.waits == [0.5]


@pytest.mark.parametrize(
    "breaks", [resets, truncates(b'{"half": ', 400)], ids=["reset", "truncated"]
)
def test_a_connection_that_breaks_is_tried_again(world, breaks):
    with serving(breaks, says({"ok": True})) as script:
        assert ask(wire(script, world)) == {"ok": True}
    assert len(script.asked) == 2


def test_waits_grow_and_chance_spreads_them(world):
    with serving(says({}, 503)) as script:
        with pytest.raises(LLMError, match="after 4 attempts: HTTP 503"):
            ask(wire(script, world))
        assert world.waits == [0.5, 1.0, 2.0]
        world.waits.clear()
        with pytest.raises(LLMError):
            ask(wire(script, world, jitter=0.25))
        assert world.waits == [0.125, 0.25, 0.5]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after": formatdate(NOON + 9, usegmt=True)}, 9.0),
        ({"retry_after": formatdate(NOON - 9, usegmt=True)}, 0.0),
        ({"retry_after": "soon"}, 0.0),
    ],
)
def test_a_server_says_how_long_to_wait(world, headers, wait):
    with serving(says({"error": "slow down"}, 429, **headers), says({"ok": True})) as script:
        assert ask(wire(script, world, jitter=0.0)) == {"ok": True}
    assert world.waits == [pytest.approx(wait)]


def test_a_server_that_asks_for_too_much_is_not_waited_for(world):
    with (
        serving(says({"error": "later"}, 429, retry_after="3600")) as script,
        pytest.raises(LLMError, match="wait 36"),
    ):
        ask(wire(script, world))
    assert world.waits == []
    assert len(script.asked) == 1


def test_a_server_that_is_not_there_is_tried_and_then_given_up(world):
    with serving(says({})) as script:
        pass
    with pytest.raises(LLMError, match="Acme failed after 4 attempts: ConnectError") as caught:
        ask(wire(script, world))
    assert caught.value.status == 502


# What stays


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            400,
            {"error": {"message": "bad request", "code": "nope"}},
            r"HTTP 400\): bad request \(nope\)",
        ),
        (401, {"error": {"message": "wrong key"}}, "wrong key Set ACME_KEY"),
        (403, {"error": "not yours"}, "not yours Set ACME_KEY"),
        (404, {"detail": "no such model"}, "no such model Check the model's name"),
        (413, {"message": "too long"}, "too long"),
        (307, "", "set base_url"),
        (
            429,
            {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}},
            "exceeded your quota",
        ),
    ],
)
def test_an_answer_is_taken_for_an_answer(world, status, body, said):
    with serving(says(body, status)) as script, pytest.raises(LLMError, match=said) as caught:
        ask(wire(script, world))
    assert len(script.asked) == 1
    assert caught.value.detail["status"] == status


def test_a_server_may_say_that_trying_again_is_no_use(world):
    with (
        serving(says({"error": "broken for good"}, 500, x_should_retry="false")) as script,
        pytest.raises(LLMError, match="broken for good"),
    ):
        ask(wire(script, world))
    assert len(script.asked) == 1


def test_a_redirect_is_not_followed_with_the_key(world):
    with (
        serving(says({"stolen": True})) as elsewhere,
        serving(says("", 302, location=elsewhere.url)) as script,
        pytest.raises(LLMError, match="HTTP 302"),
    ):
        ask(wire(script, world))
    assert elsewhere.asked == []


def test_a_page_is_no_answer(world):
    with (
        serving(says("<html>Welcome to nginx!</html>", content_type="text/html")) as script,
        pytest.raises(LLMError, match=r"text/html that is not JSON: <html>Welcome.*Check base_url"),
    ):
        ask(wire(script, world))


def test_json_under_another_name_is_taken(world):
    with serving(says({"ok": True}, content_type="text/plain")) as script:
        assert ask(wire(script, world)) == {"ok": True}


@pytest.mark.parametrize("body", ["", "[" * 100_000, '{"answer": "torn o'])
def test_what_is_no_json_is_an_error_and_never_a_crash(world, body):
    with serving(says(body)) as script, pytest.raises(LLMError, match="not JSON"):
        ask(wire(script, world))


def test_a_huge_answer_is_given_up(world):
    with (
        serving(says({"answer": "x" * 100_000})) as script,
        pytest.raises(LLMError, match="more than 10,000 bytes"),
    ):
        ask(wire(script, world, max_response_bytes=10_000))


def test_an_answer_that_swells_when_it_is_unpacked_is_given_up(world):
    def bomb(handler: Any) -> None:
        content = gzip.compress(b"0" * 5_000_000)
        handler.send_response(200)
        handler.send_header("content-encoding", "gzip")
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    with serving(bomb) as script, pytest.raises(LLMError, match="more than 1,000,000 bytes"):
        ask(wire(script, world, max_response_bytes=1_000_000))


def test_an_answer_that_only_drips_is_given_up_and_not_asked_for_again(world):
    enough = threading.Event()
    with serving(drips(b" ", enough)) as script:
        try:
            with pytest.raises(LLMError, match=r"no complete reply after 0.5 s. Raise llm_timeout"):
                ask(wire(script, world, timeout=0.5))
        finally:
            enough.set()
    assert world.waits == []


def test_the_kind_of_error_is_the_callers(world):
    with serving(says({"error": "no"}, 400)) as script:
        line = HttpClient("Acme", script.url, {}, error_type=EmbeddingError)
        with pytest.raises(EmbeddingError, match="no"):
            ask(line)


# Many at once


def test_no_more_are_under_way_than_allowed_whoever_asks(world):
    meet = threading.Barrier(3)

    def together(handler: Any) -> None:
        meet.wait(30)
        says({"ok": True})(handler)

    async def many() -> list[Any]:
        return await asyncio.gather(*(line.post("/ask", {"n": n}) for n in range(6)))

    with serving(together) as script:
        line = wire(script, world, concurrency=3)
        threads = [threading.Thread(target=ask, args=(line,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert asyncio.run(many()) == [{"ok": True}] * 6
        for thread in threads:
            thread.join()
    assert len(script.asked) == 9
    assert script.most_at_once == 3


def test_one_connection_serves_every_loop_and_thread(world):
    seen: set[Any] = set()

    def note(handler: Any) -> None:
        seen.add(handler.client_address)
        says({"ok": True})(handler)

    with serving(note) as script:
        line = wire(script, world)
        ask(line)
        asyncio.run(line.post("/ask", {}))
        asyncio.run(line.post("/ask", {}))
    assert len(seen) == 1


# What never shows


@pytest.mark.parametrize(
    "act",
    [
        says({"error": {"message": f"Incorrect API key provided: {KEY}."}}, 401),
        says({"error": {"message": "Incorrect API key provided: sk-proj-3k*****8R."}}, 401),
        says(f"<html>{KEY}</html>"),
        says({"error": KEY}, 503),
        resets,
    ],
)
def test_no_key_is_ever_shown(world, act, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(act) as script:
        line = wire(script, world, retries=1)
        with pytest.raises(LLMError) as caught:
            ask(line)
    shown = [
        str(caught.value),
        repr(caught.value),
        json.dumps(caught.value.as_dict()),
        repr(line),
        caplog.text,
    ]
    assert KEY in script.asked[0].headers["authorization"]
    assert not any(KEY in text or "3kd9Xq" in text or "sk-proj" in text for text in shown)


@each_row("url", ["", "localhost:8000", "ftp://host", "https://", "https://host/v1?key=1", None, 7])
def test_an_address_that_cannot_be_is_refused(url):
    with pytest.raises(ConfigError, match="https://host/v1"):
        HttpClient("Acme", url, {})


# Placeholders


@each_row(
    "key",
    [
        "sk-...",
        "your-api-key",
        "YOUR_API_KEY",
        "your_openai_api_key_here",
        "changeme",
        "change-me",
        "xxx",
        "sk-xxx",
        "sk-xxxxxxxxxxxxxxxx",
        "sk-proj-xxxxx",
        "<your key>",
        "${OPENAI_API_KEY}",
        "$OPENAI_API_KEY",
        "{{ key }}",
        "placeholder",
        "insert-key-here",
        "api_key",
        "sk-…",
        "***",
        "todo",
        "None",
        "my-api-key",
        "sk-your-key-here",
    ],
)
def test_a_placeholder_is_known_for_what_it_is(key):
    assert client.is_placeholder(key)


@each_row(
    "key",
    [
        KEY,
        "sk-ant-api03-Zk3",
        "AIzaSyD-9tSrke72PouQMnMX",
        "0f1e2d3c4b5a",
        "gsk_yourself9x",
        "EMPTY",
        "lm-studio",
        "k",
    ],
)
def test_what_may_be_a_key_is_taken_for_one(key):
    assert not client.is_placeholder(key)
