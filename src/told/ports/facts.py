"""The facts port: read facts, links, evidence and turns from the views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from told.model.fact import NEVER, EvidenceRow, Fact, Link, Tick
from told.model.query import AsOf, FactQuery
from told.model.scope import Scope
from told.ports.ledger import IdempotencyRecord


class StoredTurn(NamedTuple):
    """The current version of a turn and the position where it was said."""

    said_seq: int
    fact: Fact


class ScopeTally(NamedTuple):
    """The number of memories in one exact scope, and when it was first and last written."""

    scope: Scope
    memories: int
    first: int
    last: int


class TickTotals(NamedTuple):
    """The turns and tokens counted up to each position, and the most recent ticks."""

    totals: Mapping[int, tuple[int, int]]
    recent: Sequence[Tick] = ()


@dataclass(frozen=True, slots=True)
class ExistingState:
    """The existing rows a writer checks before it decides.

    `facts` are current facts by md5, `evidence` maps digests to ids. `last_turn` is the last turn
    of the scope's partition, if it is in exactly this scope, current and unchanged. `vectors` are
    the text hashes that have a vector under `model`, the store's model. Rows may be newer than
    `read_seq`; the commit checks the guards drawn from them.
    """

    read_seq: int
    facts: Mapping[str, Fact]
    evidence: Mapping[bytes, str]
    idempotency: IdempotencyRecord | None = None
    last_turn: Fact | None = None
    vectors: frozenset[bytes] = frozenset()
    model: tuple[str, int] | None = None


class Facts(Protocol):
    """Reads of the views folded from the ledger."""

    def lookup_existing(
        self,
        scope: Scope,
        md5s: Sequence[str],
        digests: Sequence[bytes],
        key: str | None,
        text_hashes: Sequence[bytes] = (),
        *,
        include_last_turn: bool = False,
    ) -> ExistingState:
        """Return what exactly this scope already has of these texts and evidence.

        Also return the record of an idempotency key, which text hashes have a vector under the
        store's model (in any account), and the last turn if it is asked for.
        """

    def find_facts(self, query: FactQuery) -> Sequence[Fact]:
        """Return the facts visible to a scope at a point in time, oldest first."""

    def get_fact(self, account: str, thread: str, as_of: AsOf | None = None) -> Fact | None:
        """Return the version of a thread at a point in time, by default the latest, or None.

        Expired versions count.
        """

    def find_versions(
        self,
        account: str,
        *,
        seqs: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        evidence: Sequence[str] | None = None,
        scope: Scope | None = None,
    ) -> Sequence[Fact]:
        """Return fact versions in ledger order, ended and retracted ones too.

        Give exactly one selector: the entries that asserted them, their threads, evidence that
        any version of their thread was taken from, or a scope that covers them.
        """

    def current_facts(
        self,
        scope: Scope,
        now: int,
        *,
        slots: Sequence[tuple[str, str]] = (),
        kinds: Sequence[str] = (),
    ) -> Sequence[Fact]:
        """Return current, unexpired facts of exactly this scope, in ledger order.

        `slots` are pairs of subject and predicate; a fact in one of them or of one of the kinds
        is returned once. The kind `memory` is not indexed and matches nothing.
        """

    def find_links(
        self, account: str, nodes: Sequence[str], seq: int | None = None
    ) -> Sequence[Link]:
        """Return the links that touch any of these nodes, at a position or now."""

    def evidence_rows(
        self,
        account: str,
        *,
        scope: Scope | None = None,
        source: str | None = None,
        ids: Sequence[str] = (),
    ) -> Sequence[EvidenceRow]:
        """Return the evidence that meets all given conditions; without any, nothing."""

    def list_turns(
        self,
        scope: Scope,
        after: int = 0,
        before: int = NEVER,
        limit: int = 1000,
        *,
        newest: bool = False,
    ) -> Sequence[StoredTurn]:
        """Return the first or the newest turns of exactly this scope between two positions.

        A turn is a current fact said by a user or an assistant; of the facts that share its
        evidence only the first thread counts. A corrected turn keeps its position, a restated or
        restored one moves to where that happened.
        """

    def tick_totals(self, scope: Scope, seqs: Sequence[int], recent: int = 0) -> TickTotals:
        """Return the turns and tokens counted up to each position in the scope's partition.

        Also return up to `recent` ticks, the newest at or before the highest position.
        """

    def list_scopes(self, account: str) -> Sequence[Scope]:
        """Return every exact scope that has facts, evidence or links, in a stable order."""

    def scope_tallies(self, account: str) -> Sequence[ScopeTally]:
        """Return a tally of each scope; expired facts count, unlisted kinds do not."""
