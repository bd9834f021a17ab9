"""The index port: full-text and vector search, and the vectors it searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from told.model.query import IndexQuery, IndexResult


class Index(Protocol):
    """Search by terms and vectors inside a scope.

    `told.model.scoring` defines every score. A backend may compute them in another way or another
    precision as long as it ranks the same candidates in the same order, up to ties: scores agree
    within 1e-6, and candidates whose scores differ by less may swap places.
    """

    def search(self, index_query: IndexQuery) -> IndexResult:
        """Return the best `depth` candidates of each retriever with their scores.

        Statistics cover all memories the query's scope can see, whatever its filter; `UNLISTED`
        kinds are not counted, and the query's limit is ignored. The candidates are all ranked
        passages, the turns around the first of them, and what the query asks for besides. Raise
        `ModelMismatch` for a vector of another model than the store's.
        """


class Vectors(Protocol):
    """The store's embedding model and the vectors of its passages, shared by all accounts."""

    def current_model(self) -> tuple[str, int] | None:
        """Return the name and dimension of the model the store is indexed with, if any."""

    def bind_model(self, name: str, dim: int, *, switch: bool = False) -> None:
        """Bind the store to its first model, or raise `ModelMismatch` if it has another.

        With `switch`, search with this model from now on and drop the vectors of all others;
        raise `Conflict` while passages have no vector under it.
        """

    def pending_texts(
        self,
        limit: int | None = 1000,
        model: str | None = None,
        *,
        account: str | None = None,
        seqs: Sequence[int] | None = None,
    ) -> Mapping[bytes, str]:
        """Return texts of passages without a vector under a model, by hash.

        `account` and `seqs` together restrict them to the passages of some entries.
        """

    def put_vectors(
        self, vectors: Mapping[bytes, Sequence[float]], model: str | None = None
    ) -> None:
        """Store vectors by text hash and index the passages that waited for them.

        Vectors of texts that no passage has are ignored.
        """
