"""Refuse every connection and name lookup beyond this machine.

`tests/conftest.py` loads this file into the test process and puts its folder on PYTHONPATH, so that
Python also runs it at the start of every child process. It uses audit events, which CPython raises
below every Python library; it does not see the sockets of C libraries. Each refusal is also written
to the file named by NETWORK_GUARD_LOG, so that swallowed errors are detected.
"""

import ipaddress
import os
import socket
import sys
from pathlib import Path

_INTERNET = {socket.AF_INET, socket.AF_INET6}
_REACHES = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_RESOLVES = {
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
    "socket.getnameinfo",
}


class NetworkRefused(RuntimeError):
    """A test or its child process tried to reach beyond loopback."""


def is_local(host: object) -> bool:
    """Check whether a host, as given to the socket module, is this machine."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def is_allowed(event: str, args: tuple[object, ...]) -> bool:
    """Check whether an audit event stays on this machine."""
    if event in _REACHES:
        sock, address = args
        if address is None or getattr(sock, "family", None) not in _INTERNET:
            return True
        return isinstance(address, tuple) and is_local(address[0])
    host = args[0][0] if isinstance(args[0], tuple) else args[0]
    return is_local(host)


def watch(event: str, args: tuple[object, ...]) -> None:
    """Audit hook: raise on a refused event and log it."""
    if event not in _REACHES and event not in _RESOLVES:
        return
    if is_allowed(event, args):
        return
    target = args[1] if event in _REACHES else args[0]
    line = f"{event} {target!r}"
    log = os.environ.get("NETWORK_GUARD_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as lines:
            lines.write(f"{line} by {' '.join(sys.argv[:3])}\n")
    raise NetworkRefused(
        f"{line}: tests stay on this machine. Use a fake from told.testing or a server on "
        "127.0.0.1."
    )


sys.modules["network_guard"] = sys.modules[
    __name__
]  # the name under which tests/conftest.py looks for it
sys.addaudithook(watch)
