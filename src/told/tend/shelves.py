"""The topics of the scopes this process works on, kept from one time to the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from told.core.fork import reset_on_fork
from told.core.ids import canonical_json, sha256
from told.core.scope import Scope
from told.core.topics import TopicIndex

MAX_CACHED_SCOPES: Final = 16
"""How many scopes are kept; the one idle longest leaves."""


def epoch_key(scope: Scope) -> str:
    """The note that changes whenever the topics of a scope do."""
    return f"epoch {sha256(canonical_json(scope.as_json())).hex()}"


class TopicCache:
    """Shelves by scope, each good as long as nobody else changed its topics."""

    def __init__(self) -> None:
        self._lock = reset_on_fork(threading.Lock())
        self._entries: OrderedDict[Scope, tuple[bytes, TopicIndex]] = OrderedDict()

    def pop(self, scope: Scope, epoch: bytes | None) -> TopicIndex | None:
        """The shelf of a scope, for one who gives it back; none if it is not of this epoch."""
        with self._lock:
            cached_epoch, topic_index = self._entries.pop(scope, (None, None))
        return topic_index if cached_epoch == epoch else None

    def put(self, scope: Scope, epoch: bytes, topic_index: TopicIndex) -> None:
        """The shelf of a scope as it is from this epoch on."""
        with self._lock:
            self._entries[scope] = epoch, topic_index
            if len(self._entries) > MAX_CACHED_SCOPES:
                self._entries.popitem(last=False)
