"""The network guard refuses every attempt to leave this machine, also in child processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

BEYOND = ("192.0.2.1", 9)  # reserved for documentation


def refuse() -> type[Exception]:
    return sys.modules["network_guard"].NetworkRefused


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_connecting_beyond_loopback_is_refused(kind, refusals):
    with (
        socket.socket(socket.AF_INET, kind) as sock,
        pytest.raises(refuse(), match=r"192\.0\.2\.1"),
    ):
        sock.connect(BEYOND)
    assert len(refusals.take()) == 1


def test_datagram_beyond_loopback_is_refused(refusals):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(refuse()):
        sock.sendto(b"telemetry", BEYOND)
    assert refusals.take()


@pytest.mark.parametrize(
    "name", ["example.org", "localhost.example.org", "10.0.0.1", "127.example.org"]
)
def test_resolving_a_foreign_name_is_refused(name, refusals):
    with pytest.raises(refuse()):
        socket.getaddrinfo(name, 443)
    with pytest.raises(refuse()):
        socket.gethostbyname(name)
    assert len(refusals.take()) == 2


def test_loopback_and_unix_sockets_work(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        server.accept()[0].close()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        path = os.path.relpath(tmp_path / "s")  # a socket's path is at most 107 bytes long
        server.bind(path)
        server.listen()
        client.connect(path)
    assert socket.getaddrinfo("localhost", 80)


def test_child_process_is_guarded(refusals):
    child = python("import socket; socket.create_connection(('example.org', 80))")
    assert child.returncode != 0
    assert "NetworkRefused" in child.stderr
    assert refusals.take()


def test_swallowed_refusal_is_still_detected(refusals):
    child = python(
        "import socket\ntry:\n    socket.getaddrinfo('example.org', 80)\nexcept Exception:\n    "
        "print('carried on')"
    )
    assert child.stdout == "carried on\n"
    assert len(refusals.take()) == 1


def test_home_is_empty_and_private(home):
    assert Path.home() == home
    assert list(home.iterdir()) == []
    assert os.environ["XDG_DATA_HOME"].startswith(str(home))


def test_machine_settings_do_not_reach_a_test():
    foreign = [name for name in os.environ if name.startswith(("TOLD_", "OPENAI_", "ANTHROPIC_"))]
    assert set(foreign) <= {"TOLD_KILLS"}
