"""What the store in memory checks before it keeps something, and how it hands out what it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TypeVar

from told.backends.ram_account import Account
from told.core.errors import Conflict, InvalidInput, ModelMismatch
from told.core.fact import Fact, Link
from told.core.ids import text_hash
from told.core.score import quantise
from told.ports import Batch

Row = TypeVar("Row", Fact, Link)


def expected(account: Account, batch: Batch) -> None:
    """Raise if somebody else wrote what this batch relies on being absent or unchanged."""
    if batch.ticket is not None and batch.ticket.key in account.tickets:
        raise Conflict("The idempotency key was handed in meanwhile.", hint="Read what is known and decide again.")
    if batch.step is not None and account.cursors.get(batch.step.consumer, 0) != batch.step.before:
        raise Conflict("Another worker of this consumer was quicker.", hint="Read its cursor and go on from there.")
    if batch.seen == account.head.seq:
        return
    for guard in batch.guards:
        if not account.holds(guard):
            raise Conflict(guard=type(guard).__name__)


def storable(*texts: str) -> None:
    """Raise unless these are texts that a store on disk could keep."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput("A value holds half of a surrogate pair, which is not text.") from error


def owned(row: Row) -> Row:
    """A row whose metadata is the caller's own."""
    return replace(row, meta=deepcopy(row.meta))


def texts_of(account: Account) -> set[bytes]:
    """The hashes of everything an account has embedded."""
    return {text_hash(account.embedded(passage)) for passage in account.passages.values()}


def quantised(vectors: Mapping[bytes, Sequence[float]], model: tuple[str, int] | None) -> dict[bytes, bytes]:
    """The vectors as they are kept, once they are known to fit the model."""
    if model is not None:
        for vector in vectors.values():
            fits(vector, *model)
    return {key: quantise(vector) for key, vector in vectors.items()}


def fits(vector: Sequence[float], name: str, dim: int) -> None:
    """Raise unless a vector has the length of its model's."""
    if len(vector) != dim:
        raise ModelMismatch(f"The vector has {len(vector)} dimensions; {name} has {dim}.")
