"""Fetching what a URL names, without being led into the network this machine stands in.

A URL in a message is an order from a stranger. Every address a name resolves to must be public, the connection goes to
the very address that was checked, and each redirect is checked anew. Off unless the setting `fetch_urls` says so.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from told.core.errors import Denied, FetchError, InvalidInput
from told.core.lazy import regex
from told.core.text import snippet

URL_LIMIT: Final = 2048
PORTS: Final = {"http": 80, "https": 443}
REDIRECTS: Final = 3
MOVED: Final = frozenset({301, 302, 303, 307, 308})
CHUNK: Final = 65_536

_HOST: Final = regex(r"(?!-)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?")
_NUMERIC: Final = regex(r"(?:\d+|0[xX][0-9a-fA-F]*)")
_UNSAFE: Final = regex(r"[\x00-\x20\x7f-\U0010ffff\\]")

# is_private and is_global of the standard library call some of these public: carrier networks, translated addresses.
CLOSED_4: Final = tuple(map(IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "168.63.129.16/32",  # a cloud's own services, on an address that looks public
)))  # fmt: skip
OPEN_6: Final = IPv6Network("2000::/3")
CLOSED_6: Final = tuple(map(IPv6Network, (
    "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)))  # fmt: skip


def is_public(address: str) -> bool:
    """Whether an address is one that anybody on the internet could reach, and not a way back into this network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        return found in OPEN_6 and not any(found in network for network in CLOSED_6)
    return isinstance(found, IPv4Address) and not any(found in network for network in CLOSED_4)


def resolve(host: str, port: int) -> Sequence[str]:
    """Every address of a name."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def dial(address: str, port: int, timeout: float) -> socket.socket:
    """A connection to an address."""
    return socket.create_connection((address, port), timeout)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a URL gave, and what its server says it is."""

    data: bytes
    media_type: str
    url: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches public URLs, each in so many seconds and bytes at most."""

    timeout: float = 10.0
    limit: int = 20 * 2**20
    resolve: Callable[[str, int], Sequence[str]] = resolve
    dial: Callable[[str, int, float], socket.socket] = dial
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __call__(self, url: str, accept: Sequence[str] = ()) -> Fetched:
        """The bytes at a URL whose type begins like one of those accepted; every redirect is checked like the first."""
        secure = False
        for _ in range(REDIRECTS + 1):
            target = check_url(url)
            if secure and target.scheme != "https":
                raise Denied(f"{_brief(url)} would leave an encrypted connection.")
            secure = target.scheme == "https"
            address = self.check_host(target)
            done = self._get(target, address, accept)
            if isinstance(done, Fetched):
                return done
            url = urljoin(url, done)
        raise FetchError(f"{_brief(url)} is one redirect too many.")

    def check_host(self, target: SplitResult) -> str:
        """An address of a URL's host, once it is known that all of them are public."""
        host, port = _host(target), PORTS[target.scheme]
        try:
            addresses = list(self.resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise FetchError(f"{_brief(host)} cannot be found: {error}.") from error
        hidden = [address for address in addresses if not is_public(address)]
        if hidden or not addresses:
            raise Denied(f"{_brief(host)} is not on the public internet; nothing was fetched.")
        return addresses[0]

    def _get(self, target: SplitResult, address: str, accept: Sequence[str]) -> Fetched | str:
        """What a checked address answers: the content, or where it has moved to."""
        host = _host(target)
        connection = _Pinned(host, PORTS[target.scheme], self, address, secure=target.scheme == "https")
        watch = threading.Timer(self.timeout, connection.cut)
        watch.daemon = True
        watch.start()
        try:
            path = (target.path or "/") + (f"?{target.query}" if target.query else "")
            headers = {"Accept": ", ".join(accept) or "*/*", "Accept-Encoding": "identity", "User-Agent": "told"}
            connection.request("GET", path, headers=headers)
            return self._read(connection, target, accept)
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = connection.late or isinstance(error, TimeoutError)
            why = f"it took longer than {self.timeout:g} seconds" if late else type(error).__name__
            raise FetchError(f"{_brief(target.geturl())} cannot be fetched: {why}.") from error
        finally:
            watch.cancel()
            connection.close()

    def _read(self, connection: _Pinned, target: SplitResult, accept: Sequence[str]) -> Fetched | str:
        """What the server says, if it is what was asked for."""
        reply, url = connection.getresponse(), target.geturl()
        if reply.status in MOVED and (place := reply.getheader("Location")):
            return place
        if reply.status != http.client.OK:
            raise FetchError(f"{_brief(url)} answers with status {reply.status}.")
        kind = (reply.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if accept and not kind.startswith(tuple(accept)):
            raise FetchError(f"{_brief(url)} is {kind or 'of no stated type'}; {' or '.join(accept)} is accepted.")
        if (reply.getheader("Content-Encoding") or "identity").lower() != "identity":
            raise FetchError(f"{_brief(url)} is compressed, though nobody asked for that.")
        parts, size = [], 0
        while part := reply.read1(CHUNK):
            size += len(part)
            if size > self.limit:
                raise FetchError(f"{_brief(url)} has more than {self.limit:,} bytes.", hint="Fetch it yourself.")
            parts.append(part)
        if connection.late or reply.length:
            raise http.client.IncompleteRead(b"")  # cut off, which looks like an end
        return Fetched(b"".join(parts), kind, url)


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was checked, whatever its name resolves to by now; it can be cut in time."""

    def __init__(self, host: str, port: int, fetcher: Fetcher, address: str, *, secure: bool) -> None:
        super().__init__(host, port, timeout=fetcher.timeout)
        self.default_port = port
        self.fetcher, self.address, self.secure, self.late = fetcher, address, secure, False

    def connect(self) -> None:
        """Dial the pinned address; the certificate must be that of the name."""
        self.sock = self.fetcher.dial(self.address, self.port, self.fetcher.timeout)
        if self.secure:
            context = self.fetcher.tls or ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)

    def cut(self) -> None:
        """End the connection, however slowly the other side drips."""
        self.late = True
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


def check_url(url: str) -> SplitResult:
    """A URL that names a public place in the plainest way there is; anything cleverer is refused."""
    if len(url) > URL_LIMIT or _UNSAFE.search(url):
        raise InvalidInput(f"{_brief(url)} is not a plain URL.", hint="Percent-encode what is not ASCII.")
    try:
        target = urlsplit(url)._replace(fragment="")
        port = target.port
    except ValueError as error:
        raise InvalidInput(f"{_brief(url)} is not a URL: {error}.") from error
    if target.scheme not in PORTS:
        raise Denied(f"{_brief(url)} is not fetched: only http and https are.")
    if "@" in target.netloc:
        raise Denied(f"{_brief(url)} is not fetched: it carries a name or password.")
    if port not in (None, PORTS[target.scheme]):
        raise Denied(f"{_brief(url)} is not fetched: it names the port {port}.")
    _host(target)
    return target


def _host(target: SplitResult) -> str:
    """The host of a URL: a plain name, or an address written in the one usual way."""
    host = target.hostname or ""
    if "[" in target.netloc:
        if not is_public(host):
            raise Denied(f"{_brief(host)} is not on the public internet; nothing was fetched.")
        return host
    if not _HOST.fullmatch(host):
        raise InvalidInput(f"{_brief(target.geturl())} names no host.")
    if _NUMERIC.fullmatch(host.rstrip(".").rpartition(".")[2]) and not is_public(host):
        raise Denied(f"{_brief(host)} is not on the public internet; nothing was fetched.")
    return host


def _brief(text: str) -> str:
    return snippet(text, 120)
