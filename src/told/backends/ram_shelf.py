"""The accounts of the ram store behind one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from told.backends.ram_account import Account
from told.core.errors import StoreClosed
from told.core.fork import awaited

P = ParamSpec("P")
T = TypeVar("T")


class Shelf:
    """Accounts by name, one caller at a time."""

    def __init__(self) -> None:
        self._lock = awaited(threading.RLock())
        self._closed = False
        self._accounts: dict[str, Account] = {}

    def _account(self, name: str) -> Account:
        """An account to read from: one that was never written to is empty, and not on the shelf."""
        return self._accounts.get(name) or Account(name)

    def _own(self, name: str) -> Account:
        """An account to leave something in."""
        return self._accounts.setdefault(name, Account(name))


S = TypeVar("S", bound=Shelf)


def locked(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """One caller at a time, and none once the store is closed."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            if self._closed:
                raise StoreClosed()
            return method(self, *args, **kwargs)

    return guarded
