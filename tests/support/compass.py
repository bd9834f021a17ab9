"""An embedder with directions chosen by the test, and exchanges filed for topics."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

from told import Memory
from told.ledger.views import fold_all
from told.model.entry import Draft, Linked
from told.model.scope import Scope
from told.ports import Batch, Purpose, Vector

_SAID = re.compile(r"\b([a-z])(\d+)\b")
_COUNT = itertools.count()
DIM = 32


class Compass:
    """Embed texts in the directions they name; `n30` is 30 degrees from `n`.

    Different letters are orthogonal. A text that names no direction gets its own.
    """

    model = "compass"
    dim = DIM
    local = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return one unit vector per text: the mean of the directions it names."""
        self.asked += texts
        return [_pointing(text) for text in texts]


def _pointing(text: str) -> Vector:
    sums = [0.0] * DIM
    for letter, degrees in _SAID.findall(text.casefold()):
        place = 2 * ((ord(letter) - ord("a")) % (DIM // 2 - 1))
        sums[place] += math.cos(math.radians(int(degrees)))
        sums[place + 1] += math.sin(math.radians(int(degrees)))
    length = math.sqrt(sum(value * value for value in sums))
    return [value / length for value in sums] if length else [*[0.0] * (DIM - 1), 1.0]


def exchange(memory: Memory, user: str, agent: str = "", **ids: str) -> list[str]:
    """Add a user turn and a reply, file both as an exchange, and return their threads."""
    whose: dict[str, Any] = ids or {"user_id": "u"}
    reply = agent or f"noted {next(_COUNT)}"
    said = [{"role": "user", "content": user}, {"role": "assistant", "content": reply}]
    threads = [row["id"] for row in memory.add(said, extract="verbatim", **whose)["results"]]
    pair(memory, threads, Scope("default", **whose))
    return threads


def pair(memory: Memory, threads: Sequence[str], scope: Scope) -> str:
    """File turns as one exchange, as the sweep does."""
    store = memory.engine.store
    number = store.mint.new_id()
    drafts = [
        Draft(Linked(thread, "in_exchange", number, 0.5), scope, "told") for thread in threads
    ]
    store.commit(Batch(scope.account, drafts), fold_all)
    return number
