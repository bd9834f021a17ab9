"""One way to ask a server on the web: with patience for what passes, without it for what stays, and never endlessly.

What passes is a server that cannot be reached, breaks off, is busy (429) or broken (5xx): it is asked again, after
waiting as long as it wishes or a little longer each time. What stays is an answer: a wrong key, an unknown model, a
page that is no JSON. An answer that is too large or takes too long to its last byte is given up, however it drips.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from told.backends.http import keys
from told.backends.http.breaker import Breaker
from told.backends.http.home import Home, home
from told.core.errors import ConfigError, LLMError, ToldError

if TYPE_CHECKING:
    import httpx2

BUSY = (408, 425, 429)
EXHAUSTED = ("insufficient_quota", "billing_hard_limit_reached", "credit balance is too low")
"""What providers say with a 429 or a 400 when waiting will not help."""
EXCERPT = 300


@dataclass(frozen=True, slots=True)
class Patience:
    """How long, how often and how much at once."""

    timeout: float = 60.0
    """Seconds one attempt may take, from the first byte sent to the last byte read."""
    connect: float = 10.0
    """Seconds to reach the server."""
    retries: int = 3
    """How often a request is sent again after a fault that may pass."""
    backoff: float = 0.5
    """Seconds of the first wait, at most; each later one may be twice as long."""
    longest: float = 60.0
    """The longest wait; a server that asks for a longer one is not waited for."""
    concurrency: int = 4
    """How many requests may be under way at once."""
    largest: int = 32 * 2**20
    """Bytes of the largest answer."""
    failures: int = 5
    """Failures in a row after which the server is left alone."""
    rest: float = 30.0
    """Seconds for which it is."""


@dataclass(frozen=True, slots=True)
class Means:
    """What the wire takes from the world, so that a test can give it another one."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class Passing(Exception):
    """A fault that may pass: what it was, whether to try again, how long the server wishes to be left alone."""

    def __init__(
        self, what: str, *, status: int | None = None, after: float | None = None, again: bool = True, hint: str = ""
    ) -> None:
        super().__init__(what)
        self.status, self.after, self.again, self.hint = status, after, again, hint


class Wire:
    """A server, the headers it wants and the patience it is given."""

    def __init__(
        self, name: str, base_url: str, headers: Mapping[str, str], *, secret: str | None = None, hint: str = "",
        error: type[ToldError] = LLMError, patience: Patience | None = None, means: Means | None = None,
    ) -> None:  # fmt: skip
        self.name, self.base_url, self.error = name, address(base_url, name), error
        self.patience, self.means = patience or Patience(), means or Means()
        self.breaker = Breaker(self.patience.failures, self.patience.rest, self.means.clock)
        self._headers, self._secrets, self._hint = dict(headers), (secret,) if secret else (), hint
        self._open: tuple[Home, httpx2.AsyncClient, asyncio.Semaphore] | None = None

    def __repr__(self) -> str:
        return f"<wire to {self.name} at {urlsplit(self.base_url).hostname}>"

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the server answers, as JSON."""
        return await home().do(self._persist(path, json.dumps(body).encode()))

    async def _persist(self, path: str, body: bytes) -> Any:
        tried = 0
        while True:
            tried += 1
            if not self.breaker.admits():
                wait = self.breaker.rest_left
                raise self._failure(f"{self.name} has failed too often and is left alone for {wait:.0f} s.")
            try:
                reply = await self._attempt(path, body)
            except Passing as fault:
                await self._settle(fault, tried)
            except ToldError:
                self.breaker.worked()
                raise
            except BaseException:
                self.breaker.abandoned()
                raise
            else:
                self.breaker.worked()
                return reply

    async def _settle(self, fault: Passing, tried: int) -> None:
        """Wait before the next attempt, or give up; who is merely busy has not failed."""
        if fault.status in BUSY:
            self.breaker.worked()
        else:
            self.breaker.failed()
        wait = self._wait(fault.after, tried)
        too_long = wait > self.patience.longest
        if tried > self.patience.retries or too_long or not fault.again:
            longer = f" It asks to be left alone for {wait:.0f} s." if too_long else ""
            times = f" after {tried} attempts" if tried > 1 else ""
            what = f"{self.name} failed{times}: {fault}{longer}"
            raise self._failure(what, hint=fault.hint, status=fault.status) from fault
        await self.means.sleep(wait)

    def _wait(self, after: float | None, tried: int) -> float:
        slot = self.patience.backoff * 2 ** (tried - 1)
        spread = self.means.jitter()
        return min(slot, self.patience.longest) * spread if after is None else after + self.patience.backoff * spread

    # One attempt

    async def _attempt(self, path: str, body: bytes) -> Any:
        httpx2 = require()
        client, slots = self._opened()
        async with slots:
            try:
                async with asyncio.timeout(self.patience.timeout):
                    async with client.stream("POST", self.base_url + path, content=body) as response:
                        content = await self._read(response)
            except TimeoutError as error:
                what = f"the answer was not there after {self.patience.timeout:g} s."
                raise Passing(what, again=False, hint="Raise llm_timeout, or ask for less.") from error
            except httpx2.DecodingError as error:
                raise self._failure(f"{self.name} sent what cannot be unpacked: {error}") from error
            except httpx2.TransportError as error:
                raise Passing(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from error
        return self._judge(response, content)

    async def _read(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > self.patience.largest:
                raise self._failure(f"{self.name} answered with more than {self.patience.largest:,} bytes.")
        return bytes(content)

    def _judge(self, response: httpx2.Response, content: bytes) -> Any:
        status, kind = response.status_code, response.headers.get("content-type", "no content type")
        said = self._quote(content)
        hopeless = any(word in said for word in EXHAUSTED) or response.headers.get("x-should-retry") == "false"
        if (status in BUSY or status >= 500) and not hopeless:
            raise Passing(f"HTTP {status}: {said}", status=status, after=self._after(response.headers))
        if status >= 300:
            what = f"{self.name} refused (HTTP {status}): {said}"
            raise self._failure(what, hint=self._advice(status), status=status, said=said)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            what = f"{self.name} answered with {kind} that is no JSON: {said}"
            raise self._failure(what, hint="Is base_url right?", status=status) from error

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            return self._hint
        if status == 404:
            return "Check the model's name and base_url."
        return "It points elsewhere: set base_url to where it leads." if status < 400 else ""

    def _after(self, headers: Mapping[str, str]) -> float | None:
        """How long the server wishes to be left alone: milliseconds, seconds or a date."""
        try:
            if (given := headers.get("retry-after-ms")) is not None:
                return max(0.0, float(given) / 1000)
            if (given := headers.get("retry-after")) is None:
                return None
            if given.strip().replace(".", "", 1).isdigit():
                return float(given)
            return max(0.0, parsedate_to_datetime(given).timestamp() - self.means.wall())
        except ValueError:
            return None

    # Words

    def _quote(self, content: bytes) -> str:
        """What a server said, short and without keys."""
        text = content.decode("utf-8", "replace")
        try:
            found = complaint(json.loads(text))
        except (ValueError, RecursionError):
            found = text
        quoted = " ".join(keys.hidden(found, self._secrets).split())
        return quoted if len(quoted) <= EXCERPT else f"{quoted[:EXCERPT]}…"

    def _failure(self, what: str, *, hint: str = "", **detail: Any) -> ToldError:
        known = {name: value for name, value in detail.items() if value is not None}
        return self.error(keys.hidden(what, self._secrets), hint=hint, **known)

    # The client

    def _opened(self) -> tuple[httpx2.AsyncClient, asyncio.Semaphore]:
        """The client of this process, closed when nobody holds the wire any longer, and the places in its queue."""
        here = home()
        if self._open is None or self._open[0] is not here:
            httpx2, patience = require(), self.patience
            client = httpx2.AsyncClient(
                headers={"content-type": "application/json", "user-agent": "told", **self._headers},
                timeout=httpx2.Timeout(None, connect=patience.connect),  # the rest is the deadline's
                limits=httpx2.Limits(max_connections=patience.concurrency, keepalive_expiry=30.0),
            )
            self._open = (here, client, asyncio.Semaphore(patience.concurrency))
            weakref.finalize(self, _close, here, client).atexit = False
        return self._open[1:]


def _close(here: Home, client: httpx2.AsyncClient) -> None:
    here.leave(client.aclose())


def require() -> Any:
    """httpx2, or what to do without it."""
    if find_spec("httpx2") is None:
        raise ConfigError("Models on the web need httpx2.", hint="Run `pip install 'told[models]'`.")
    import httpx2

    return httpx2


def address(url: str, name: str) -> str:
    """A base URL without its last slash."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"The base_url of {name} must look like https://host/v1.")
    return url.rstrip("/")


def complaint(body: Any) -> str:
    """What an error says, in any of the shapes that servers give it; the whole of it where none is found."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        told = [error.get("message") or error.get("detail"), error.get("code"), error.get("param")]
        if isinstance(told[0], str):
            extras = [str(extra) for extra in told[1:] if isinstance(extra, str) and extra not in told[0]]
            return " ".join([told[0], *(f"({extra})" for extra in extras)])
    return error if isinstance(error, str) else json.dumps(body)
