"""What reads know of topics: which counts, how near they are, who came up with whom, and how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from told.core.fact import TOPIC, Fact, Link
from told.core.filter import Test, every
from told.core.query import LATEST, Find, Touch
from told.core.score import cosine
from told.core.topics import ABSTRACTED_FROM, EXCHANGE, IN_TOPIC, SUPER, centre_in
from told.flow import Flow, call
from told.ports import Store

CONSUMER: Final = "topics"
Met: TypeAlias = Callable[[Store, str, Sequence[str]], Flow[Mapping[tuple[str, str], Touch]]]
"""What tells how often topics came up together, with what is not written down yet."""


def latest(links: Iterable[Link]) -> dict[str, Link]:
    """The link that puts each thread into its topic: of several the latest counts."""
    found: dict[str, Link] = {}
    for link in links:
        if link.rel == IN_TOPIC and (link.src not in found or link.seq > found[link.src].seq):
            found[link.src] = link
    return found


def nearness(
    store: Store, account: str, topics: Sequence[str], code: bytes, model: str
) -> Flow[dict[str, float]]:
    """How near topics are to a vector, as far as their means are noted under its model."""
    noted = (yield from call(store.notes, account, CONSUMER, topics)) if topics else {}
    centres = {topic: centre_in(note, model) for topic, note in noted.items()}
    return {topic: cosine(code, centre) for topic, centre in centres.items() if centre and len(centre) == len(code)}


def firmness(touch: Touch) -> float:
    """How firmly topics that came up together so often belong together: a half after once, and ever nearer to 1."""
    return touch.count / (touch.count + 1.0)


# Listing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """A topic with the exchanges in it, whom it came up with, what it is made of and what it is part of."""

    fact: Fact
    exchanges: tuple[tuple[str, ...], ...]
    neighbours: tuple[tuple[Fact, Touch], ...]
    parts: tuple[str, ...]
    supers: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The topic as JSON."""
        met = [
            {"id": fact.id, "label": fact.text, "count": touch.count, "weight": round(firmness(touch), 4)}
            for fact, touch in self.neighbours
        ]
        return {
            "id": self.fact.id, "label": self.fact.text, **self.fact.scope.ids(),
            "super": bool(self.fact.meta.get(SUPER)), "members": len(self.exchanges),
            "turns": [list(turns) for turns in self.exchanges], "neighbours": met,
            "parts": list(self.parts), "supers": list(self.supers),
        }  # fmt: skip


def listing(store: Store, find: Find, met: Met) -> Flow[list[Listed]]:
    """The topics a read can see, oldest first."""
    wanted = replace(find, filter=every((find.filter, Test("kind", "eq", TOPIC))))
    facts = {fact.id: fact for fact in (yield from call(store.facts, wanted))}
    account, at = find.scope.account, find.as_of.seq
    links = yield from call(store.links, account, list(facts), None if at >= LATEST else at)
    inside: dict[str, dict[str, list[str]]] = {}
    for link in latest(links).values():
        exchange = str(link.meta.get(EXCHANGE, link.src))
        inside.setdefault(link.dst, {}).setdefault(exchange, []).append(link.src)
    above = [(link.src, link.dst) for link in links if link.rel == ABSTRACTED_FROM]
    above = [(whole, part) for whole, part in above if whole in facts and part in facts]
    pairs = yield from met(store, account, list(facts))
    return [
        Listed(
            fact, tuple(map(tuple, inside.get(topic, {}).values())), tuple(_neighbours(topic, pairs, facts)),
            tuple(part for whole, part in above if whole == topic),
            tuple(whole for whole, part in above if part == topic),
        )
        for topic, fact in facts.items()
    ]  # fmt: skip


def _neighbours(
    topic: str, pairs: Mapping[tuple[str, str], Touch], facts: Mapping[str, Fact]
) -> list[tuple[Fact, Touch]]:
    """Whom a topic came up with, the most often first."""
    others = [(b if a == topic else a, touch) for (a, b), touch in pairs.items() if topic in (a, b)]
    seen = [(facts[other], touch) for other, touch in others if other in facts]
    return sorted(seen, key=lambda pair: (-pair[1].count, pair[0].seq))
