"""What a read sees and how well it matches, in naive loops over one account: what other indexes are held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from told.backends.ram_account import Account
from told.core.fact import Fact, Passage
from told.core.filter import matches, record
from told.core.ids import text_hash
from told.core.query import AsOf, Find, Probe, Ranked
from told.core.score import Corpus, bm25, cosine, frequencies, idf, quantise, top
from told.core.text import terms


def believed(versions: Iterable[Fact], as_of: AsOf) -> Fact | None:
    """The version that counts at a point on both axes, of all there ever were of one thread; expired or not."""
    seq, when = as_of.seq, as_of.valid_at
    if when is None:
        held = [fact for fact in versions if fact.seq <= seq < fact.until]
    else:
        held = [fact for fact in versions if fact.seq <= seq < fact.gone and fact.valid_from <= when < fact.valid_to]
    return max(held, key=lambda fact: fact.seq, default=None)


def visible(account: Account, find: Find) -> Sequence[Fact]:
    """The facts a scope can see at a point in time, oldest first, before any filter on what they say."""
    threads: dict[str, list[Fact]] = {}
    for fact in account.facts.values():
        threads.setdefault(fact.id, []).append(fact)
    held = [held for versions in threads.values() if (held := believed(versions, find.as_of)) is not None]
    fresh = [fact for fact in held if find.show_expired or fact.expires > find.as_of.at]
    return sorted((fact for fact in fresh if find.scope.covers(fact.scope)), key=lambda fact: fact.seq)


def filtered(facts: Sequence[Fact], find: Find) -> Sequence[Fact]:
    """Those of the facts that the find's filter lets through."""
    return [fact for fact in facts if matches(find.filter, record(fact))]


def search(account: Account, vectors: Mapping[bytes, bytes], probe: Probe) -> Ranked:
    """The best `depth` of each retriever among what the find lets through; its limit plays no part.

    The statistics are those of everything the find sees before its filter, so that a filter moves no score.
    """
    seen = visible(account, probe.find)
    wanted = {fact.seq for fact in filtered(seen, probe.find)}
    passages = [account.passages[fact.seq] for fact in seen if fact.seq in account.passages]
    lexical = _best(_lexical(passages, probe.terms), wanted, probe.depth)
    near = _best(_near(passages, vectors, probe.vector), wanted, probe.depth)
    return Ranked(near, lexical)


def _best(scores: Mapping[int, float], wanted: set[int], depth: int) -> Sequence[tuple[int, float]]:
    return top({seq: score for seq, score in scores.items() if seq in wanted}, depth)


def _lexical(passages: Sequence[Passage], asked: Sequence[str]) -> Mapping[int, float]:
    """BM25 of every passage that has one of the terms; each term counts once, in the order it was asked in."""
    words = {passage.seq: terms(passage.text) for passage in passages}
    counts = {seq: frequencies(found) for seq, found in words.items()}
    corpus = Corpus(len(passages), sum(map(len, words.values())))
    scores: dict[int, float] = {}
    for term in dict.fromkeys(asked):
        containing = [seq for seq, count in counts.items() if term in count]
        weight = idf(corpus, len(containing))
        for seq in containing:
            part = bm25(weight, counts[seq][term], len(words[seq]), corpus.average)
            scores[seq] = scores.get(seq, 0.0) + part
    return scores


def _near(
    passages: Sequence[Passage], vectors: Mapping[bytes, bytes], vector: Sequence[float] | None
) -> Mapping[int, float]:
    """The cosine of every passage that has a vector, if one was asked for; a vector of zeros points nowhere."""
    asked = b"" if vector is None else quantise(vector)
    if not any(asked):
        return {}
    found = {passage.seq: vectors.get(text_hash(passage.text)) for passage in passages}
    return {seq: cosine(asked, known) for seq, known in found.items() if known is not None and any(known)}
