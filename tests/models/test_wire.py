"""The HTTP client: retries, waits, limits, and keys that are never shown."""

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


class FakeTiming:
    """A manual clock that records waits, with fixed jitter."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def means(self, jitter: float = 1.0) -> ClientTiming:
        return ClientTiming(lambda: self.now, lambda: NOON, self.sleep, lambda: jitter)


@pytest.fixture
def timing() -> FakeTiming:
    return FakeTiming()


def make_client(
    script: Script, timing: FakeTiming, jitter: float = 1.0, **patience: Any
) -> HttpClient:
    headers = {"authorization": f"Bearer {KEY}"}
    return HttpClient(
        "Acme",
        script.url,
        headers,
        secret=KEY,
        hint="Set ACME_KEY.",
        timing=timing.means(jitter),
        limits=ClientLimits(**patience),
    )


def ask(line: HttpClient, body: Any = None) -> Any:
    return run(call(line.post, "/ask", body or {"question": "why?"}))


# Retries


def test_reply_is_parsed_as_json(timing):
    with serving(says({"answer": "because"})) as script:
        assert ask(make_client(script, timing)) == {"answer": "because"}
    assert script.asked[0].path == "/ask"
    assert script.asked[0].body == {"question": "why?"}
    assert script.asked[0].headers["content-type"] == "application/json"
    assert timing.waits == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_transient_error_is_retried(timing, status):
    with serving(says({"error": {"message": "overloaded"}}, status), says({"ok": True})) as script:
        assert ask(make_client(script, timing)) == {"ok": True}
    assert len(script.asked) == 2
    assert timing.waits == [0.5]


@pytest.mark.parametrize(
    "breaks", [resets, truncates(b'{"half": ', 400)], ids=["reset", "truncated"]
)
def test_broken_connection_is_retried(timing, breaks):
    with serving(breaks, says({"ok": True})) as script:
        assert ask(make_client(script, timing)) == {"ok": True}
    assert len(script.asked) == 2


def test_retry_waits_grow_with_jitter(timing):
    with serving(says({}, 503)) as script:
        with pytest.raises(LLMError, match="after 4 attempts: HTTP 503"):
            ask(make_client(script, timing))
        assert timing.waits == [0.5, 1.0, 2.0]
        timing.waits.clear()
        with pytest.raises(LLMError):
            ask(make_client(script, timing, jitter=0.25))
        assert timing.waits == [0.125, 0.25, 0.5]


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
def test_retry_after_header_is_respected(timing, headers, wait):
    with serving(says({"error": "slow down"}, 429, **headers), says({"ok": True})) as script:
        assert ask(make_client(script, timing, jitter=0.0)) == {"ok": True}
    assert timing.waits == [pytest.approx(wait)]


def test_too_long_retry_after_is_not_waited_for(timing):
    with (
        serving(says({"error": "later"}, 429, retry_after="3600")) as script,
        pytest.raises(LLMError, match="wait 36"),
    ):
        ask(make_client(script, timing))
    assert timing.waits == []
    assert len(script.asked) == 1


def test_unreachable_server_fails_after_the_retries(timing):
    with serving(says({})) as script:
        pass
    with pytest.raises(LLMError, match="Acme failed after 4 attempts: ConnectError") as caught:
        ask(make_client(script, timing))
    assert caught.value.status == 502


# Permanent errors


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
def test_permanent_error_is_not_retried(timing, status, body, said):
    with serving(says(body, status)) as script, pytest.raises(LLMError, match=said) as caught:
        ask(make_client(script, timing))
    assert len(script.asked) == 1
    assert caught.value.detail["status"] == status


def test_should_retry_header_disables_the_retry(timing):
    with (
        serving(says({"error": "broken for good"}, 500, x_should_retry="false")) as script,
        pytest.raises(LLMError, match="broken for good"),
    ):
        ask(make_client(script, timing))
    assert len(script.asked) == 1


def test_redirect_is_not_followed(timing):
    with (
        serving(says({"stolen": True})) as elsewhere,
        serving(says("", 302, location=elsewhere.url)) as script,
        pytest.raises(LLMError, match="HTTP 302"),
    ):
        ask(make_client(script, timing))
    assert elsewhere.asked == []


def test_html_reply_is_an_error(timing):
    with (
        serving(says("<html>Welcome to nginx!</html>", content_type="text/html")) as script,
        pytest.raises(LLMError, match=r"text/html that is not JSON: <html>Welcome.*Check base_url"),
    ):
        ask(make_client(script, timing))


def test_json_with_another_content_type_is_accepted(timing):
    with serving(says({"ok": True}, content_type="text/plain")) as script:
        assert ask(make_client(script, timing)) == {"ok": True}


@pytest.mark.parametrize("body", ["", "[" * 100_000, '{"answer": "torn o'])
def test_invalid_json_is_an_error(timing, body):
    with serving(says(body)) as script, pytest.raises(LLMError, match="not JSON"):
        ask(make_client(script, timing))


def test_huge_reply_is_aborted(timing):
    with (
        serving(says({"answer": "x" * 100_000})) as script,
        pytest.raises(LLMError, match="more than 10,000 bytes"),
    ):
        ask(make_client(script, timing, max_response_bytes=10_000))


def test_decompression_bomb_is_aborted(timing):
    def bomb(handler: Any) -> None:
        content = gzip.compress(b"0" * 5_000_000)
        handler.send_response(200)
        handler.send_header("content-encoding", "gzip")
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    with serving(bomb) as script, pytest.raises(LLMError, match="more than 1,000,000 bytes"):
        ask(make_client(script, timing, max_response_bytes=1_000_000))


def test_slow_reply_is_aborted_and_not_retried(timing):
    enough = threading.Event()
    with serving(drips(b" ", enough)) as script:
        try:
            with pytest.raises(LLMError, match=r"no complete reply after 0.5 s. Raise llm_timeout"):
                ask(make_client(script, timing, timeout=0.5))
        finally:
            enough.set()
    assert timing.waits == []


def test_caller_chooses_the_error_class(timing):
    with serving(says({"error": "no"}, 400)) as script:
        line = HttpClient("Acme", script.url, {}, error_type=EmbeddingError)
        with pytest.raises(EmbeddingError, match="no"):
            ask(line)


# Concurrency


def test_concurrency_limit_holds_for_all_callers(timing):
    meet = threading.Barrier(3)

    def together(handler: Any) -> None:
        meet.wait(30)
        says({"ok": True})(handler)

    async def many() -> list[Any]:
        return await asyncio.gather(*(line.post("/ask", {"n": n}) for n in range(6)))

    with serving(together) as script:
        line = make_client(script, timing, concurrency=3)
        threads = [threading.Thread(target=ask, args=(line,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert asyncio.run(many()) == [{"ok": True}] * 6
        for thread in threads:
            thread.join()
    assert len(script.asked) == 9
    assert script.most_at_once == 3


def test_one_connection_serves_every_loop_and_thread(timing):
    seen: set[Any] = set()

    def note(handler: Any) -> None:
        seen.add(handler.client_address)
        says({"ok": True})(handler)

    with serving(note) as script:
        line = make_client(script, timing)
        ask(line)
        asyncio.run(line.post("/ask", {}))
        asyncio.run(line.post("/ask", {}))
    assert len(seen) == 1


# Secrets


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
def test_key_is_never_shown(timing, act, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(act) as script:
        line = make_client(script, timing, retries=1)
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
def test_invalid_url_is_rejected(url):
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
def test_placeholder_key_is_recognised(key):
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
def test_plausible_key_is_accepted(key):
    assert not client.is_placeholder(key)
