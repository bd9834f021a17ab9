"""The held memories nearest to a claim, by meaning where there is an embedder and by words in any case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from told.core.fact import UNLISTED, Fact
from told.core.query import LATEST, AsOf, Find, Probe, Ranked
from told.core.text import query_terms
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import Embedder, Store, Vector, sound
from told.write.shape import Heard

FLAT: Final = 60
DEPTH: Final = 4
"""How many times more candidates are asked for than wanted: some belong to narrower scopes or are no memories."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Where to look and how many to bring."""

    store: Store
    embedder: Embedder | None
    count: int

    def of(self, heard: Heard, texts: Sequence[str]) -> Flow[list[list[Fact]]]:
        """For each text the nearest memories of exactly this scope, best first."""
        vectors = yield from self._vectors(texts)
        find = Find(heard.scope, AsOf(LATEST, heard.now))
        depth = self.count * DEPTH
        found: list[list[Fact]] = []
        for text, vector in zip(texts, vectors, strict=True):
            model = self.embedder.model if self.embedder and vector is not None else None
            probe = Probe(find, tuple(dict.fromkeys(query_terms(text))), vector, depth, model)
            seqs = _fused((yield from call(self.store.index.search, probe)))
            facts = yield from call(self.store.versions, heard.scope.account, seqs)
            mine = (facts[seq] for seq in seqs if seq in facts and facts[seq].scope == heard.scope)
            found.append([fact for fact in mine if fact.kind not in UNLISTED][: self.count])
        return found

    def _vectors(self, texts: Sequence[str]) -> Flow[Sequence[Vector | None]]:
        """The vectors to look with; words alone will do where the embedder fails or is not the store's."""
        bound = yield from call(self.store.model)
        if self.embedder is None or bound is None or bound[0] != self.embedder.model or not texts:
            return [None] * len(texts)
        given = yield from attempt(_embedded(self.embedder, texts))
        return [None] * len(texts) if isinstance(given, Failure) else given


def _embedded(embedder: Embedder, texts: Sequence[str]) -> Flow[Sequence[Vector]]:
    vectors = yield from call(embedder.embed, list(texts), "query")
    return sound(embedder, vectors, len(texts))


def _fused(ranked: Ranked) -> list[int]:
    """The positions both lists offer, best first by the sum of their reciprocal ranks."""
    scores: dict[int, float] = {}
    for offered in (ranked.near, ranked.words):
        for place, (seq, _) in enumerate(offered):
            scores[seq] = scores.get(seq, 0.0) + 1.0 / (FLAT + place + 1)
    return sorted(scores, key=lambda seq: (-scores[seq], -seq))
