"""The held memories nearest to a claim, by meaning where there is an embedder and by words in any case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from told.core.fact import UNLISTED_KINDS, Fact
from told.core.query import LATEST, AsOf, FactQuery, IndexQuery, IndexResult
from told.core.text import extract_query_terms
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import Embedder, Store, Vector, validate_vectors
from told.write.shape import ExtractionInput

RRF_K: Final = 60
OVERFETCH: Final = 4
"""How many times more candidates are asked for than wanted: some belong to narrower scopes or are no memories."""


@dataclass(frozen=True, slots=True)
class NearestMemories:
    """Where to look and how many to bring."""

    store: Store
    embedder: Embedder | None
    limit: int

    def find_nearest(self, inputs: ExtractionInput, texts: Sequence[str]) -> Flow[list[list[Fact]]]:
        """For each text the nearest memories of exactly this scope, best first."""
        vectors = yield from self._embed_or_skip(texts)
        query = FactQuery(inputs.scope, AsOf(LATEST, inputs.now))
        depth = self.limit * OVERFETCH
        nearest: list[list[Fact]] = []
        for text, vector in zip(texts, vectors, strict=True):
            model = self.embedder.model if self.embedder and vector is not None else None
            index_query = IndexQuery(
                query, tuple(dict.fromkeys(extract_query_terms(text))), vector, depth, model
            )
            seqs = _fuse_ranks((yield from call(self.store.index.search, index_query)))
            facts = yield from call(self.store.facts_by_seq, inputs.scope.account, seqs)
            scope_facts = (
                facts[seq] for seq in seqs if seq in facts and facts[seq].scope == inputs.scope
            )
            nearest.append(
                [fact for fact in scope_facts if fact.kind not in UNLISTED_KINDS][: self.limit]
            )
        return nearest

    def _embed_or_skip(self, texts: Sequence[str]) -> Flow[Sequence[Vector | None]]:
        """The vectors to look with; words alone will do where the embedder fails or is not the store's."""
        store_model = yield from call(self.store.current_model)
        if (
            self.embedder is None
            or store_model is None
            or store_model[0] != self.embedder.model
            or not texts
        ):
            return [None] * len(texts)
        outcome = yield from catch_failure(_embed_texts(self.embedder, texts))
        return [None] * len(texts) if isinstance(outcome, Failure) else outcome


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> Flow[Sequence[Vector]]:
    vectors = yield from call(embedder.embed, list(texts), "query")
    return validate_vectors(embedder, vectors, len(texts))


def _fuse_ranks(index_result: IndexResult) -> list[int]:
    """The positions both lists offer, best first by the sum of their reciprocal ranks."""
    scores: dict[int, float] = {}
    for ranking in (index_result.by_vector, index_result.by_terms):
        for rank, (seq, _) in enumerate(ranking):
            scores[seq] = scores.get(seq, 0.0) + 1.0 / (RRF_K + rank + 1)
    return sorted(scores, key=lambda seq: (-scores[seq], -seq))
