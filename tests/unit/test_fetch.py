"""SSRF protection: no message leads to an internal address by URL, name or redirect."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from tables import each_row
from told.errors import Denied, FetchError, InvalidInput, ToldError
from told.ingest.fetch import Fetcher, check_url, is_public

PUBLIC = "93.184.216.34"


class Canary:
    """Record every attempt to dial."""

    def __init__(self):
        self.dialled = []

    def __call__(self, address, port, timeout):
        self.dialled.append((address, port))
        raise AssertionError(f"dialled {address}:{port}")


INTERNAL_URLS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254./",
    "http://168.63.129.16/",
    "http://192.0.0.8/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://[::127.0.0.1]/",
    "http://[2001:db8::1]/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://x.org\\@127.0.0.1/",
    "http://x.org@127.0.0.1/",
    "http://user:pass@x.org/",
    "http://x.org:8080/",
    "http://x.org:22/",
    "https://x.org:80/",
    "http://x.org:99999/",
    "file:///etc/passwd",
    "ftp://x.org/",
    "gopher://x.org/",
    "dict://x.org/",
    "http:///a",
    "http://",
    "//x.org/",
    "http://x.org/\r\nHost: inside",
    "http://x .org/",
    "http://-x.org/",
    "javascript:alert(1)",
    "http://x.org/\tb",
    "http://" + "a" * 3000,
    "http://ex\u00e4mple.org/",
    "http://[::1",
    "http://1.2.3/",
    "http://1.2.3.4.5/",
]


@each_row("url", INTERNAL_URLS)
def test_no_spelling_of_an_internal_address_is_dialled(url):
    """Resolve names as the system does, which reads 127.1 and 0x7f.1 as loopback."""
    canary = Canary()

    def resolve(host, port):
        if host.rstrip(".").lower() == "localhost":
            return ["127.0.0.1", "::1"]
        return [
            str(info[4][0]) for info in socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
        ]

    with pytest.raises((Denied, InvalidInput, FetchError)):
        Fetcher(resolve=resolve, connect=canary)(url)
    assert canary.dialled == []


@each_row(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.1", "junk"],
)
def test_a_name_with_any_internal_address_is_rejected(address):
    canary = Canary()
    for addresses in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(Denied, match="public internet"):
            Fetcher(resolve=lambda host, port, found=addresses: found, connect=canary)(
                "https://rebind.example/"
            )
    assert canary.dialled == []


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001::1"]
)
def test_a_public_address_is_public(address):
    assert is_public(address)


def test_an_unresolvable_name_does_not_crash():
    def nowhere(host, port):
        raise socket.gaierror("no such name")

    with pytest.raises(FetchError, match="cannot be resolved"):
        Fetcher(resolve=nowhere)("http://nowhere.example/")
    with pytest.raises(Denied):
        Fetcher(resolve=lambda host, port: [])("http://nowhere.example/")


# A loopback server that the fetcher takes for a public one


@contextmanager
def serve_replies(*replies: bytes, hold: threading.Event | None = None):
    """Serve one reply per connection; yield the fetcher's dialler and the requests."""
    listener = socket.create_server(("127.0.0.1", 0))
    requests, dialled = [], []

    def serve():
        for reply in replies:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                requests.append(connection.recv(65536))
                try:
                    connection.sendall(reply)
                    if hold is not None:
                        hold.wait(30)
                except OSError:
                    pass

    def dial(address, port, timeout):
        dialled.append((address, port))
        return socket.create_connection(listener.getsockname(), timeout)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield dial, requests, dialled
    finally:
        if hold is not None:
            hold.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # close() alone would leave the server waiting
        listener.close()
        thread.join(10)


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    named = {"Content-Type": "image/png", "Content-Length": str(len(body)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def fetcher(dial, names=None, **more):
    known = {"x.org": PUBLIC, **(names or {})}
    return Fetcher(resolve=lambda host, port: [known[host]], connect=dial, **more)


def test_a_public_url_is_fetched_from_the_address_that_was_checked():
    asked = []

    def resolve(host, port):
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]  # a name whose address changes

    with serve_replies(reply(b"pixels")) as (dial, requests, dialled):
        got = Fetcher(resolve=resolve, connect=dial)("http://x.org/a.png?size=2#top", ["image/"])
    assert (got.data, got.media_type, got.url) == (
        b"pixels",
        "image/png",
        "http://x.org/a.png?size=2",
    )
    assert dialled == [(PUBLIC, 80)]
    assert requests[0].startswith(b"GET /a.png?size=2 HTTP/1.1\r\nHost: x.org\r\n")
    assert asked == ["x.org"]


@each_row(
    "place",
    [
        "http://127.0.0.1/",
        "http://inside.example/",
        "//169.254.169.254/latest/",
        "file:///etc/passwd",
        "http://[::1]/",
        "http://x.org:8080/",
        "gopher://x.org/",
        "http://2130706433/",
    ],
)
@each_row("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_checked_like_a_url(place, status):
    moved = reply(status=status, Location=place)
    with (
        serve_replies(moved, reply(b"secret")) as (dial, _, dialled),
        pytest.raises((Denied, InvalidInput)),
    ):
        fetcher(dial, {"inside.example": "10.0.0.7", "127.0.0.1": "127.0.0.1"})("http://x.org/")
    assert dialled == [(PUBLIC, 80)]


def test_public_redirects_are_followed_up_to_a_limit():
    moved = reply(b"over there", "302 Found", Location="/b.png")
    with serve_replies(moved, reply(b"pixels")) as (dial, requests, _):
        assert fetcher(dial)("http://x.org/a.png").data == b"pixels"
        assert requests[1].startswith(b"GET /b.png ")
    with (
        serve_replies(*[moved] * 9) as (dial, _, dialled),
        pytest.raises(FetchError, match="Too many redirects"),
    ):
        fetcher(dial)("http://x.org/a.png")
    assert len(dialled) == 4


@each_row(
    ("answer", "why"),
    [
        (reply(b"x" * 2000), "more than 1,000 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + b"x" * 5000,
            "more than 1,000 bytes",
        ),
        (reply(b"<html>", Content_Type="text/html"), "text/html"),
        (reply(b"x", Content_Encoding="gzip"), "compressed"),
        (reply(status="404 Not Found"), "status 404"),
        (reply(status="302 Found"), "status 302"),
        (b"no http at all\r\n\r\n", "cannot be fetched"),
        (b"", "cannot be fetched"),
        (reply(b"pixels", Content_Length="900"), "cannot be fetched"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500, "cannot be fetched"),
    ],
)
def test_an_unexpected_response_is_rejected(answer, why):
    with serve_replies(answer) as (dial, *_), pytest.raises(FetchError, match=why):
        fetcher(dial, limit=1000)("http://x.org/a.png", ["image/"])


def test_a_slow_dripping_server_is_cut_off():
    begun = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
    late = pytest.raises(FetchError, match=r"longer than 0\.3 seconds")
    with serve_replies(begun, hold=threading.Event()) as (dial, *_), late:
        fetcher(dial, timeout=0.3)("http://x.org/a.png")


def test_a_silent_server_times_out_whichever_timeout_fires_first(monkeypatch):
    monkeypatch.setattr("told.ingest.fetch._PinnedConnection.abort", lambda _: None)
    late = pytest.raises(FetchError, match=r"longer than 0\.3 seconds")
    with serve_replies(b"HTTP/1.1 200 OK\r\n", hold=threading.Event()) as (dial, *_), late:
        fetcher(dial, timeout=0.3)("http://x.org/a.png")


def test_an_error_reveals_only_the_url():
    with pytest.raises(ToldError) as refused:
        check_url("ftp://x.org/" + "a" * 1000)
    assert len(str(refused.value)) < 300
