"""What the store in memory checks before it keeps something, and how it hands out what it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TypeVar

from told.backends.ram_account import InMemoryAccount
from told.core.errors import Conflict, InvalidInput, ModelMismatch
from told.core.fact import Fact, Link
from told.core.ids import hash_text
from told.core.score import quantise
from told.ports import Batch

Row = TypeVar("Row", Fact, Link)


def check_guards(account: InMemoryAccount, batch: Batch) -> None:
    """Raise if somebody else wrote what this batch relies on being absent or unchanged."""
    if batch.idempotency is not None and batch.idempotency.key in account.tickets:
        raise Conflict(
            "The idempotency key was handed in meanwhile.",
            hint="Read what is known and decide again.",
        )
    if batch.step is not None and account.cursors.get(batch.step.consumer, 0) != batch.step.before:
        raise Conflict(
            "Another worker of this consumer was quicker.",
            hint="Read its cursor and go on from there.",
        )
    if batch.read_seq == account.head.seq:
        return
    for guard in batch.guards:
        if not account.is_satisfied(guard):
            raise Conflict(guard=type(guard).__name__)


def require_encodable(*texts: str) -> None:
    """Raise unless these are texts that a store on disk could keep."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                "A value holds half of a surrogate pair, which is not text."
            ) from error


def copy_row(row: Row) -> Row:
    """A row whose metadata is the caller's own."""
    return replace(row, meta=deepcopy(row.meta))


def hash_embedded_texts(account: InMemoryAccount) -> set[bytes]:
    """The hashes of everything an account has embedded."""
    return {
        hash_text(account.build_embedded_text(passage)) for passage in account.passages.values()
    }


def quantise_vectors(
    vectors: Mapping[bytes, Sequence[float]], model: tuple[str, int] | None
) -> dict[bytes, bytes]:
    """The vectors as they are kept, once they are known to fit the model."""
    if model is not None:
        for vector in vectors.values():
            require_dimension(vector, *model)
    return {key: quantise(vector) for key, vector in vectors.items()}


def require_dimension(vector: Sequence[float], name: str, dim: int) -> None:
    """Raise unless a vector has the length of its model's."""
    if len(vector) != dim:
        raise ModelMismatch(f"The vector has {len(vector)} dimensions; {name} has {dim}.")
