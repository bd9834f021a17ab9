"""The blobs a scope may ask for: those that its own evidence names, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.blob import Blob
from told.core.fact import Witness
from told.core.scope import Scope
from told.flow import Flow, call
from told.ports import Store


@dataclass(frozen=True, slots=True)
class Kept:
    """A blob and the evidence of a scope that names it."""

    blob: Blob
    witnesses: tuple[Witness, ...]

    def as_dict(self) -> dict[str, Any]:
        """The blob as JSON, without its bytes."""
        sources = dict.fromkeys(witness.source for witness in self.witnesses if witness.source is not None)
        row: dict[str, Any] = {"hash": self.blob.hash, "media_type": self.blob.media_type, "size": self.blob.size}
        return {**row, "sources": list(sources)}


def named(store: Store, scope: Scope) -> Flow[Mapping[str, tuple[Witness, ...]]]:
    """Which evidence of a scope names which blob, oldest first."""
    found: dict[str, tuple[Witness, ...]] = {}
    for witness in (yield from call(store.witnesses, scope.account, scope=scope)):
        for name in witness.blobs:
            found[name] = (*found.get(name, ()), witness)
    return found


def kept(store: Store, scope: Scope) -> Flow[Sequence[Kept]]:
    """Every blob the scope's evidence names, in the order it came."""
    there = {blob.hash: blob for blob in (yield from call(store.blobs, scope.account))}
    holders = yield from named(store, scope)
    return [Kept(there[name], witnesses) for name, witnesses in holders.items() if name in there]
