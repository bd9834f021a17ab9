"""The port to a conversation as it was said: whose it is, and its turns in ledger order, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from told.core.fact import NEVER, Fact
from told.core.scope import Scope


class Turns(Protocol):
    """What a scope said, found without reading everything."""

    def scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something was written to and not destroyed, in a stable order."""

    def turns(
        self, scope: Scope, after: int = 0, before: int = NEVER, limit: int = 1000, *, newest: bool = False
    ) -> Sequence[Fact]:
        """What exactly this scope holds of what users and assistants said, between two positions, in ledger order.

        The first `limit` of them, or the newest. A turn stands for all that was taken from its words: of everything
        that has the same evidence only the thread that was there first is a turn.
        """

    def gathered(self, scope: Scope, rel: str) -> int:
        """How many different things are at the far end of this relation, as exactly this scope drew it."""
