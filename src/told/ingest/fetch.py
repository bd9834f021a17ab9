"""Fetch public URLs without reaching into the local network.

URLs in messages are untrusted. All resolved addresses must be public, the connection goes to the
address that was checked, and every redirect is checked again. Fetching is off unless `fetch_urls`
is set.
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

from told.errors import Denied, FetchError, InvalidInput
from told.runtime import lazy_regex
from told.text.tokens import make_snippet

URL_LIMIT: Final = 2048
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_REDIRECTS: Final = 3
REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
CHUNK_BYTES: Final = 65_536

_HOST: Final = lazy_regex(r"(?!-)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?")
_NUMERIC: Final = lazy_regex(r"(?:\d+|0[xX][0-9a-fA-F]*)")
_UNSAFE: Final = lazy_regex(r"[\x00-\x20\x7f-\U0010ffff\\]")

# The standard library's is_private misses some of these, such as carrier-grade NAT.
BLOCKED_IPV4_NETWORKS: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "168.63.129.16/32",  # Azure platform services
        ),
    )
)
PUBLIC_IPV6_NETWORK: Final = IPv6Network("2000::/3")
BLOCKED_IPV6_NETWORKS: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)


def is_public(address: str) -> bool:
    """Return True if an address is reachable from the public internet."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        return ip in PUBLIC_IPV6_NETWORK and not any(
            ip in network for network in BLOCKED_IPV6_NETWORKS
        )
    return isinstance(ip, IPv4Address) and not any(
        ip in network for network in BLOCKED_IPV4_NETWORKS
    )


def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return all addresses of a host name."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def open_connection(address: str, port: int, timeout: float) -> socket.socket:
    """Open a connection to an address."""
    return socket.create_connection((address, port), timeout)


@dataclass(frozen=True, slots=True)
class FetchedContent:
    """The response body of a URL and its media type."""

    data: bytes
    media_type: str
    url: str


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches public URLs, with limits on time and size."""

    timeout: float = 10.0
    limit: int = 20 * 2**20
    resolve: Callable[[str, int], Sequence[str]] = resolve_host
    connect: Callable[[str, int, float], socket.socket] = open_connection
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __call__(self, url: str, accept: Sequence[str] = ()) -> FetchedContent:
        """Return the content of a URL if its media type starts with an accepted one."""
        secure = False
        for _ in range(MAX_REDIRECTS + 1):
            target = check_url(url)
            if secure and target.scheme != "https":
                raise Denied(f"{_shorten(url)} redirects from https to http.")
            secure = target.scheme == "https"
            address = self.resolve_public_address(target)
            result = self._request(target, address, accept)
            if isinstance(result, FetchedContent):
                return result
            url = urljoin(url, result)
        raise FetchError(f"Too many redirects; the last one leads to {_shorten(url)}.")

    def resolve_public_address(self, target: SplitResult) -> str:
        """Return an address of the URL's host; raise Denied unless all are public."""
        host, port = _parse_host(target), DEFAULT_PORTS[target.scheme]
        try:
            addresses = list(self.resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise FetchError(f"{_shorten(host)} cannot be resolved: {error}.") from error
        private = [address for address in addresses if not is_public(address)]
        if private or not addresses:
            raise Denied(f"{_shorten(host)} is not on the public internet; nothing was fetched.")
        return addresses[0]

    def _request(
        self, target: SplitResult, address: str, accept: Sequence[str]
    ) -> FetchedContent | str:
        """Send the request to a checked address; return the content, or a redirect location."""
        host = _parse_host(target)
        connection = _PinnedConnection(
            host, DEFAULT_PORTS[target.scheme], self, address, secure=target.scheme == "https"
        )
        timer = threading.Timer(self.timeout, connection.abort)
        timer.daemon = True
        timer.start()
        try:
            path = (target.path or "/") + (f"?{target.query}" if target.query else "")
            headers = {
                "Accept": ", ".join(accept) or "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": "told",
            }
            connection.request("GET", path, headers=headers)
            return self._read_response(connection, target, accept)
        except (OSError, http.client.HTTPException, ValueError) as error:
            timed_out = connection.timed_out or isinstance(error, TimeoutError)
            reason = (
                f"it took longer than {self.timeout:g} seconds"
                if timed_out
                else type(error).__name__
            )
            raise FetchError(f"{_shorten(target.geturl())} cannot be fetched: {reason}.") from error
        finally:
            timer.cancel()
            connection.close()

    def _read_response(
        self, connection: _PinnedConnection, target: SplitResult, accept: Sequence[str]
    ) -> FetchedContent | str:
        """Return the response if its status, type, encoding and size are acceptable."""
        reply, url = connection.getresponse(), target.geturl()
        if reply.status in REDIRECT_STATUSES and (location := reply.getheader("Location")):
            return location
        if reply.status != http.client.OK:
            raise FetchError(f"{_shorten(url)} returned status {reply.status}.")
        media_type = (reply.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if accept and not media_type.startswith(tuple(accept)):
            raise FetchError(
                f"{_shorten(url)} has the media type {media_type or 'unknown'}; "
                f"accepted: {', '.join(accept)}."
            )
        if (reply.getheader("Content-Encoding") or "identity").lower() != "identity":
            raise FetchError(f"{_shorten(url)} sent a compressed response that was not requested.")
        parts, size = [], 0
        while part := reply.read1(CHUNK_BYTES):
            size += len(part)
            if size > self.limit:
                raise FetchError(
                    f"{_shorten(url)} has more than {self.limit:,} bytes.",
                    hint="Download it and pass the bytes.",
                )
            parts.append(part)
        if connection.timed_out or reply.length:
            raise http.client.IncompleteRead(b"")  # truncated without an error
        return FetchedContent(b"".join(parts), media_type, url)


class _PinnedConnection(http.client.HTTPConnection):
    """A connection to a checked address, regardless of DNS changes, with a hard deadline."""

    def __init__(
        self, host: str, port: int, fetcher: Fetcher, address: str, *, secure: bool
    ) -> None:
        super().__init__(host, port, timeout=fetcher.timeout)
        self.default_port = port
        self.fetcher, self.address, self.secure, self.timed_out = fetcher, address, secure, False

    def connect(self) -> None:
        """Connect to the pinned address; verify the certificate against the host name."""
        self.sock = self.fetcher.connect(self.address, self.port, self.fetcher.timeout)
        if self.secure:
            context = self.fetcher.tls or ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)

    def abort(self) -> None:
        """Shut the connection down."""
        self.timed_out = True
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


def check_url(url: str) -> SplitResult:
    """Return the parsed URL, or raise if it is anything but a plain http(s) URL."""
    if len(url) > URL_LIMIT or _UNSAFE.search(url):
        raise InvalidInput(
            f"{_shorten(url)} is not a plain URL.", hint="Percent-encode non-ASCII characters."
        )
    try:
        target = urlsplit(url)._replace(fragment="")
        port = target.port
    except ValueError as error:
        raise InvalidInput(f"{_shorten(url)} is not a URL: {error}.") from error
    if target.scheme not in DEFAULT_PORTS:
        raise Denied(f"{_shorten(url)} is not fetched: only http and https are allowed.")
    if "@" in target.netloc:
        raise Denied(f"{_shorten(url)} is not fetched: it contains credentials.")
    if port not in (None, DEFAULT_PORTS[target.scheme]):
        raise Denied(f"{_shorten(url)} is not fetched: port {port} is not allowed.")
    _parse_host(target)
    return target


def _parse_host(target: SplitResult) -> str:
    """Return the host of a URL: a plain name or a canonical public address."""
    host = target.hostname or ""
    if "[" in target.netloc:
        if not is_public(host):
            raise Denied(f"{_shorten(host)} is not on the public internet; nothing was fetched.")
        return host
    if not _HOST.fullmatch(host):
        raise InvalidInput(f"{_shorten(target.geturl())} has no valid host.")
    if _NUMERIC.fullmatch(host.rstrip(".").rpartition(".")[2]) and not is_public(host):
        raise Denied(f"{_shorten(host)} is not on the public internet; nothing was fetched.")
    return host


def _shorten(text: str) -> str:
    return make_snippet(text, 120)
