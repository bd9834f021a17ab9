"""The accounts of the ram store behind one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from told.backends.ram_account import InMemoryAccount
from told.core.errors import StoreClosed
from told.core.fork import acquire_on_fork

P = ParamSpec("P")
T = TypeVar("T")


class InMemoryAccounts:
    """Accounts by name, one caller at a time."""

    def __init__(self) -> None:
        self._lock = acquire_on_fork(threading.RLock())
        self._closed = False
        self._accounts: dict[str, InMemoryAccount] = {}

    def _get_account(self, name: str) -> InMemoryAccount:
        """An account to read from: one that was never written to is empty, and not on the shelf."""
        return self._accounts.get(name) or InMemoryAccount(name)

    def _get_or_create_account(self, name: str) -> InMemoryAccount:
        """An account to leave something in."""
        return self._accounts.setdefault(name, InMemoryAccount(name))


S = TypeVar("S", bound=InMemoryAccounts)


def with_lock(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """One caller at a time, and none once the store is closed."""

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            if self._closed:
                raise StoreClosed()
            return method(self, *args, **kwargs)

    return wrapper
