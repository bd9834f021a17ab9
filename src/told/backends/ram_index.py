"""What a read sees and how well it matches, in naive loops over one account: what other indexes are held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from told.backends.ram_account import Account
from told.core.fact import UNLISTED, Fact, Passage
from told.core.filter import matches, record
from told.core.ids import text_hash
from told.core.match import Matches, Turns, Voice, places, summed
from told.core.query import Find, Offers, Probe, Ranked, counting
from told.core.question import question
from told.core.score import Corpus, centre, fine, frequencies
from told.core.text import terms


def visible(account: Account, find: Find) -> Sequence[Fact]:
    """The facts a scope can see at a point in time, oldest first, before any filter on what they say."""
    threads: dict[str, list[Fact]] = {}
    for fact in account.facts.values():
        if find.scope.covers(fact.scope):
            threads.setdefault(fact.id, []).append(fact)
    held = [held for versions in threads.values() if (held := counting(versions, find.as_of)) is not None]
    fresh = [fact for fact in held if find.show_expired or fact.expires > find.as_of.at]
    return sorted(fresh, key=lambda fact: fact.seq)


def filtered(facts: Sequence[Fact], find: Find) -> Sequence[Fact]:
    """Those of the facts that the find's filter lets through."""
    return [fact for fact in facts if matches(find.filter, record(fact))]


def search(account: Account, vectors: Mapping[bytes, bytes], probe: Probe) -> Ranked:
    """The best `depth` of each retriever among what the find lets through; its limit plays no part.

    The statistics are those of every memory the find sees before its filter, so that a filter moves no score.
    """
    held = {fact.seq: fact for fact in visible(account, probe.find)}
    seen = {key: passage for key, passage in sorted(account.passages.items()) if key[0] in held}
    wanted = {fact.seq for fact in filtered(list(held.values()), probe.find)}
    said = {key: terms(passage.text) for key, passage in seen.items()}
    counts = {key: frequencies(words) for key, words in said.items()}
    vector = {key: vectors.get(text_hash(account.embedded(passage)), b"") for key, passage in seen.items()}
    codes = {key: code for key, code in vector.items() if any(code)}
    before = {key: (p.seq, p.slot) for key, passage in seen.items() if (p := account.before(passage)) is not None}
    counted = [key for key in seen if held[key[0]].kind not in UNLISTED]
    centred = probe.centre and probe.vector is not None
    total = summed(codes[key] for key in counted if key in codes) if centred else ((), 0)
    asked = question(
        probe, b"" if probe.vector is None else fine(probe.vector),
        Corpus(len(counted), sum(len(said[key]) for key in counted)),
        [sum(term in counts[key] for key in counted) for term in dict.fromkeys(probe.terms)],
        [fact.actor for fact in held.values() if fact.actor],
        centre(*total), total[1],
    )  # fmt: skip
    turns = Turns.of({key: earlier for key, earlier in before.items() if earlier in seen})
    matches = Matches(asked, {key: len(words) for key, words in said.items()}, counts, codes, turns)
    chosen = {key: _voice(held[key[0]], passage, account) for key, passage in seen.items() if key[0] in wanted}
    return replace(_ranked(matches, chosen), linked=bool(account.links))


def _voice(fact: Fact, passage: Passage, account: Account) -> Voice:
    said = fact.updated_at if fact.said_at is None else fact.said_at
    first = passage
    while (earlier := account.before(first)) is not None:
        first = earlier
    return Voice(fact.seq, passage.slot, said, first.seq, fact.role, fact.actor)


def _ranked(matches: Matches[tuple[int, int]], chosen: Mapping[tuple[int, int], Voice]) -> Ranked:
    near = matches.best(matches.near, chosen)
    words = matches.best({key: score for key, score in matches.words.items() if score > 0.0}, chosen)
    by_vector, by_words = ({key: place for place, (_, key) in enumerate(found, 1)} for found in (near, words))
    offered = matches.offered(places(by_vector, by_words), chosen)
    marks = [matches.mark(key, chosen[key], by_vector.get(key), by_words.get(key)) for key in offered]
    asked = matches.question
    return Ranked(
        Offers(bool(near), lambda: ((key[0], matches.cosines[key]) for _, key in near)),
        Offers(bool(words), lambda: ((key[0], score) for score, key in words)),
        marks, asked.named, asked.mass, asked.middle.length, asked.visible,
    )  # fmt: skip
