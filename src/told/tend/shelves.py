"""The topics of the scopes this process works on, kept from one time to the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from told.core.fork import freed
from told.core.ids import canonical, sha256
from told.core.scope import Scope
from told.core.topics import Shelf

MOST: Final = 16
"""How many scopes are kept; the one idle longest leaves."""


def epoch_key(scope: Scope) -> str:
    """The note that changes whenever the topics of a scope do."""
    return f"epoch {sha256(canonical(scope.as_json())).hex()}"


class Shelves:
    """Shelves by scope, each good as long as nobody else changed its topics."""

    def __init__(self) -> None:
        self._lock = freed(threading.Lock())
        self._kept: OrderedDict[Scope, tuple[bytes, Shelf]] = OrderedDict()

    def take(self, scope: Scope, epoch: bytes | None) -> Shelf | None:
        """The shelf of a scope, for one who gives it back; none if it is not of this epoch."""
        with self._lock:
            known, shelf = self._kept.pop(scope, (None, None))
        return shelf if known == epoch else None

    def keep(self, scope: Scope, epoch: bytes, shelf: Shelf) -> None:
        """The shelf of a scope as it is from this epoch on."""
        with self._lock:
            self._kept[scope] = epoch, shelf
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
