"""An HTTP client with retries, deadlines and size limits.

Unreachable servers, dropped connections, 429 and 5xx are retried with backoff or after the server's
Retry-After. Other errors, such as a wrong key, an unknown model or a reply that is not JSON, are
raised at once. A reply that is too large or too slow is cut off.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from told.errors import ConfigError, LLMError, ToldError
from told.runtime import lazy_regex, reset_on_fork

if TYPE_CHECKING:
    import httpx2


T = TypeVar("T")


class LoopThread:
    """An event loop in a background thread that lives as long as the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="told-http", daemon=True).start()

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine on this loop from any loop; cancelling the wait cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def run_blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this loop and block; never call it from this loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def run_detached(self, work: Coroutine[Any, Any, Any]) -> None:
        """Schedule a coroutine without waiting, unless a fork abandoned the loop."""
        if self.pid == os.getpid():
            asyncio.run_coroutine_threadsafe(work, self.loop)
        else:
            work.close()


_loop_lock = reset_on_fork(threading.Lock())
_loop_threads: list[LoopThread] = []


def get_loop_thread() -> LoopThread:
    """Return this process's loop thread; a forked child gets its own."""
    with _loop_lock:
        if not _loop_threads or _loop_threads[-1].pid != os.getpid():
            _loop_threads[:] = [LoopThread()]
        return _loop_threads[-1]


MASK = "[key]"
PLACEHOLDER_PATTERN = lazy_regex(
    r"""
    .*\b(?:your|my|insert|replace|paste|enter|put)\b.*\b(?:key|token|secret|here)\b.* |
    .*\b(?:placeholder|change\ ?me)\b.* | (?:api\ )?key(?:\ here)? | todo | none | null | example |
    (?:[a-z]{2,4}\ )?(?:proj\ |ant\ )?(?:x{3,}|\*{3,}|\.{3,}|…+|0{6,}) |
    <.*> | \$\{?[\w\ ]+\}? | \{\{?.*\}\}?
    """,
    re.VERBOSE,
)
"""Template placeholders for keys, lower-cased, with spaces for dashes and underscores."""


def read_environment(names: Iterable[str]) -> str | None:
    """Return the first of these variables that is set."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)


def is_placeholder(key: str) -> bool:
    """Return whether a key is a template placeholder."""
    return PLACEHOLDER_PATTERN.fullmatch(re.sub(r"[-_\s]+", " ", key.strip().lower())) is not None


def validate_key(
    key: str | None, *, provider: str, variables: Sequence[str], url: str
) -> str | None:
    """Return a key that can be sent; servers on this machine accept any."""
    if key is None:
        return None
    hint = f"Set {variables[0]}, or give api_key." if variables else "Give api_key."
    if (
        not isinstance(key, str)
        or not (key := key.strip())
        or not key.isascii()
        or not key.isprintable()
    ):
        raise ConfigError(f"The key for {provider} is not valid.", hint=hint)
    if is_placeholder(key) and not is_loopback(url):
        raise ConfigError(f"The key for {provider} is a placeholder, not a key.", hint=hint)
    return key


def is_loopback(url: str) -> bool:
    """Return whether a URL points to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


KEY_PATTERN = lazy_regex(r"\b(?:sk|pk|gsk|xai|AIza)[-_]?[\w*-]{6,}")
"""A key, or the masked key in a provider's error."""


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Mask secrets in a text."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return KEY_PATTERN.sub(MASK, text)


def find_set_variable(names: Iterable[str], variables: Mapping[str, str]) -> str | None:
    """Return the name of the first variable that is not empty."""
    return next((name for name in names if variables.get(name, "").strip()), None)


BUSY_STATUSES = (408, 425, 429)
QUOTA_ERRORS = ("insufficient_quota", "billing_hard_limit_reached", "credit balance is too low")
"""Error codes of 429 and 400 replies that retrying will not fix."""
MAX_EXCERPT_CHARS = 300


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Timeouts, retries and size limits of a client."""

    timeout: float = 60.0
    """Seconds per attempt, from the first byte sent to the last byte read."""
    connect_timeout: float = 10.0
    """Seconds to connect."""
    retries: int = 3
    """Retries after a transient error."""
    backoff: float = 0.5
    """Maximum seconds of the first wait; each later one may double."""
    max_delay: float = 60.0
    """Longest wait; a longer Retry-After is not honoured."""
    concurrency: int = 4
    """Concurrent requests."""
    max_response_bytes: int = 32 * 2**20
    """Maximum reply size in bytes."""


@dataclass(frozen=True, slots=True)
class ClientTiming:
    """Clock, sleep and randomness, replaceable in tests."""

    monotonic: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class TransientError(Exception):
    """A transient error: its message, whether to retry, and the requested delay."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        can_retry: bool = True,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.can_retry = can_retry
        self.hint = hint


class HttpClient:
    """A client of one server with its headers and limits."""

    def __init__(
        self,
        name: str,
        base_url: str,
        headers: Mapping[str, str],
        *,
        secret: str | None = None,
        hint: str = "",
        error_type: type[ToldError] = LLMError,
        limits: ClientLimits | None = None,
        timing: ClientTiming | None = None,
    ) -> None:
        self.name = name
        self.base_url = validate_base_url(base_url, name)
        self.error_type = error_type
        self.limits, self.timing = limits or ClientLimits(), timing or ClientTiming()
        self._headers, self._secrets, self._hint = dict(headers), (secret,) if secret else (), hint
        self._connection: tuple[LoopThread, httpx2.AsyncClient, asyncio.Semaphore] | None = None

    def __repr__(self) -> str:
        return f"<HttpClient {self.name} at {urlsplit(self.base_url).hostname}>"

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a request and return the reply as JSON."""
        return await get_loop_thread().run_async(
            self._post_with_retries(path, json.dumps(body).encode())
        )

    async def _post_with_retries(self, path: str, body: bytes) -> Any:
        attempts = 0
        while True:
            attempts += 1
            try:
                return await self._attempt_once(path, body)
            except TransientError as fault:
                await self._wait_or_fail(fault, attempts)

    async def _wait_or_fail(self, fault: TransientError, attempts: int) -> None:
        """Wait before the next attempt, or raise."""
        delay = self._compute_delay(fault.retry_after, attempts)
        too_long = delay > self.limits.max_delay
        if attempts > self.limits.retries or too_long or not fault.can_retry:
            delay_note = f" The server asks to wait {delay:.0f} s." if too_long else ""
            attempt_note = f" after {attempts} attempts" if attempts > 1 else ""
            message = f"{self.name} failed{attempt_note}: {fault}{delay_note}"
            raise self._build_error(message, hint=fault.hint, status=fault.status) from fault
        await self.timing.sleep(delay)

    def _compute_delay(self, retry_after: float | None, attempts: int) -> float:
        backoff = self.limits.backoff * 2 ** (attempts - 1)
        jitter = self.timing.jitter()
        return (
            min(backoff, self.limits.max_delay) * jitter
            if retry_after is None
            else retry_after + self.limits.backoff * jitter
        )

    # One attempt

    async def _attempt_once(self, path: str, body: bytes) -> Any:
        httpx2 = import_httpx()
        client, slots = self._get_client()
        async with slots:
            try:
                async with asyncio.timeout(self.limits.timeout):
                    async with client.stream(
                        "POST", self.base_url + path, content=body
                    ) as response:
                        content = await self._read_body(response)
            except TimeoutError as error:
                message = f"no complete reply after {self.limits.timeout:g} s."
                raise TransientError(
                    message, can_retry=False, hint="Raise llm_timeout, or ask for less."
                ) from error
            except httpx2.DecodingError as error:
                raise self._build_error(
                    f"{self.name} sent a reply that cannot be decompressed: {error}"
                ) from error
            except httpx2.TransportError as error:
                raise TransientError(
                    f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                ) from error
        return self._parse_response(response, content)

    async def _read_body(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > self.limits.max_response_bytes:
                raise self._build_error(
                    f"{self.name} returned more than {self.limits.max_response_bytes:,} bytes."
                )
        return bytes(content)

    def _parse_response(self, response: httpx2.Response, content: bytes) -> Any:
        """Return the JSON of a reply; raise `TransientError` if a retry may help."""
        status = response.status_code
        content_type = response.headers.get("content-type", "no content type")
        excerpt = self._quote_error(content)
        is_permanent = (
            any(word in excerpt for word in QUOTA_ERRORS)
            or response.headers.get("x-should-retry") == "false"
        )
        if (status in BUSY_STATUSES or status >= 500) and not is_permanent:
            raise TransientError(
                f"HTTP {status}: {excerpt}",
                status=status,
                retry_after=self._parse_retry_after(response.headers),
            )
        if status >= 300:
            message = f"{self.name} refused (HTTP {status}): {excerpt}"
            raise self._build_error(
                message, hint=self._hint_for_status(status), status=status, said=excerpt
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            message = f"{self.name} answered with {content_type} that is not JSON: {excerpt}"
            raise self._build_error(message, hint="Check base_url.", status=status) from error

    def _hint_for_status(self, status: int) -> str:
        if status in (401, 403):
            return self._hint
        if status == 404:
            return "Check the model's name and base_url."
        return "The server redirects: set base_url to the new address." if status < 400 else ""

    def _parse_retry_after(self, headers: Mapping[str, str]) -> float | None:
        """Parse the server's requested delay: milliseconds, seconds or a date."""
        try:
            if (value := headers.get("retry-after-ms")) is not None:
                return max(0.0, float(value) / 1000)
            if (value := headers.get("retry-after")) is None:
                return None
            if value.strip().replace(".", "", 1).isdigit():
                return float(value)
            return max(0.0, parsedate_to_datetime(value).timestamp() - self.timing.wall_clock())
        except ValueError:
            return None

    # Text

    def _quote_error(self, content: bytes) -> str:
        """Return a short, masked excerpt of an error reply."""
        text = content.decode("utf-8", "replace")
        try:
            error_text = extract_error_message(json.loads(text))
        except (ValueError, RecursionError):
            error_text = text
        quoted = " ".join(mask_secrets(error_text, self._secrets).split())
        return quoted if len(quoted) <= MAX_EXCERPT_CHARS else f"{quoted[:MAX_EXCERPT_CHARS]}…"

    def _build_error(self, message: str, *, hint: str = "", **detail: Any) -> ToldError:
        given_detail = {name: value for name, value in detail.items() if value is not None}
        return self.error_type(mask_secrets(message, self._secrets), hint=hint, **given_detail)

    # Client

    def _get_client(self) -> tuple[httpx2.AsyncClient, asyncio.Semaphore]:
        """Return this process's httpx client and its concurrency semaphore."""
        loop_thread = get_loop_thread()
        if self._connection is None or self._connection[0] is not loop_thread:
            httpx2, limits = import_httpx(), self.limits
            client = httpx2.AsyncClient(
                headers={"content-type": "application/json", "user-agent": "told", **self._headers},
                timeout=httpx2.Timeout(
                    None, connect=limits.connect_timeout
                ),  # the deadline covers the rest
                limits=httpx2.Limits(max_connections=limits.concurrency, keepalive_expiry=30.0),
            )
            self._connection = (loop_thread, client, asyncio.Semaphore(limits.concurrency))
            weakref.finalize(self, _close_client, loop_thread, client).atexit = False
        return self._connection[1:]


def _close_client(loop_thread: LoopThread, client: httpx2.AsyncClient) -> None:
    loop_thread.run_detached(client.aclose())


def import_httpx() -> Any:
    """Import httpx2 or raise with the install command."""
    if find_spec("httpx2") is None:
        raise ConfigError("HTTP providers need httpx2.", hint="Run `pip install 'told[models]'`.")
    import httpx2

    return httpx2


def validate_base_url(url: str, name: str) -> str:
    """Return a base URL without its trailing slash."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if (
        parts is None
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise ConfigError(f"The base_url of {name} must look like https://host/v1.")
    return url.rstrip("/")


def extract_error_message(body: Any) -> str:
    """Extract the message of an error reply in any known shape."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        fields = [
            error.get("message") or error.get("detail"),
            error.get("code"),
            error.get("param"),
        ]
        if isinstance(fields[0], str):
            extras = [
                str(extra)
                for extra in fields[1:]
                if isinstance(extra, str) and extra not in fields[0]
            ]
            return " ".join([fields[0], *(f"({extra})" for extra in extras)])
    return error if isinstance(error, str) else json.dumps(body)
