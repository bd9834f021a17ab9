"""The port to a conversation as it was said: whose it is, how much, and its turns in ledger order, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from told.core.fact import NEVER, Fact
from told.core.scope import Scope


class StoredTurn(NamedTuple):
    """What somebody said, as it is held now, and the ledger position it was said at, wherever its version stands."""

    said_seq: int
    fact: Fact


class ScopeTally(NamedTuple):
    """How many memories exactly one scope holds, and when what is left of it was first and last written."""

    scope: Scope
    memories: int
    first: int
    last: int


class TurnStore(Protocol):
    """What a scope said, found without reading everything."""

    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Every exact scope that something was written to and not destroyed, in a stable order."""

    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """How much is in each of these scopes; what only stands behind memories counts as none, expired ones do."""

    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """What exactly this scope holds of what users and assistants said, between two positions, as it was said.

        The first `limit` of them, or the newest. A turn stands for all that was taken from its words: of everything
        in the scope that has the same evidence only the thread that was there first is a turn. A version that corrects
        one stands in its place; what is said anew, or held again as it was said, stands where that happened.
        """
