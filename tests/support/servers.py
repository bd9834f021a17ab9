"""A real HTTP server on loopback that plays a script and records the requests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import IPPROTO_TCP, SHUT_RDWR, SO_LINGER, SOL_SOCKET, TCP_NODELAY
from struct import pack
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server received it."""

    path: str
    headers: dict[str, str]
    body: Any


Act = Callable[[BaseHTTPRequestHandler], None]


@dataclass(slots=True)
class Script:
    """The replies of a server, in order; the last one repeats."""

    acts: list[Act]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    under_way: int = 0
    most_at_once: int = 0

    def next(self, request: Asked) -> Act:
        with self.lock:
            self.asked.append(request)
            return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]


def says(body: Any, status: int = 200, **headers: str) -> Act:
    """Reply with JSON, or with a text verbatim."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        handler.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **given,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return act


def truncates(content: bytes, promised: int) -> Act:
    """Send less than the announced length."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(promised))
        handler.end_headers()
        handler.wfile.write(content)
        handler.wfile.flush()
        handler.connection.shutdown(SHUT_RDWR)
        handler.close_connection = True

    return act


def resets(handler: BaseHTTPRequestHandler) -> None:
    """Reset the connection."""
    handler.connection.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def drips(piece: bytes, until: threading.Event) -> Act:
    """Send one piece after another until the test stops it."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.end_headers()
        handler.close_connection = True
        try:
            while not until.wait(0.02):
                handler.wfile.write(piece)
                handler.wfile.flush()
        except OSError:
            return

    return act


@contextmanager
def serving(*acts: Act) -> Iterator[Script]:
    """Run a server with a script while the block runs."""
    script = Script(list(acts))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            raw = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            act = script.next(Asked(self.path, headers, json.loads(raw) if raw else None))
            with script.lock:
                script.under_way += 1
                script.most_at_once = max(script.most_at_once, script.under_way)
            try:
                act(self)
            finally:
                with script.lock:
                    script.under_way -= 1

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
