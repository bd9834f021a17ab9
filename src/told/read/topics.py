"""What reads know of topics: which counts, how near they are, who came up with whom, and how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from told.core.fact import TOPIC, TURN, Fact, Link
from told.core.filter import Test, every
from told.core.query import LATEST, AsOf, Find, Touch
from told.core.scope import Scope
from told.core.score import cosine
from told.core.topics import ABSTRACTED_FROM, DERIVED_FROM, EXCHANGE, IN_TOPIC, SUPER, centre_in, common, label
from told.flow import Flow, call
from told.ports import Store
from told.read.fold import kindred

CONSUMER: Final = "topics"
AUTHOR: Final = "told"
"""Who names topics, unless somebody else does."""

PAGE: Final = 256
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


# Turns that count -----------------------------------------------------------------------------------------------------


def held_turns(store: Store, scope: Scope, at: AsOf, threads: Iterable[str]) -> Flow[dict[str, Fact]]:
    """What a scope holds of some turns at a point in time, but for those of which all that was taken was given up."""
    found: dict[str, Fact] = {}
    for thread in threads:
        fact = yield from call(store.fact, scope.account, thread, at)
        if fact is not None and fact.expires > at.at and scope.covers(fact.scope):
            found[thread] = fact
    names = sorted({fact.evidence for fact in found.values() if fact.kind == TURN and fact.evidence})
    gone: set[str] = set()
    for start in range(0, len(names), PAGE):
        lives = yield from call(store.taken, scope.account, names[start : start + PAGE])
        gone |= {kin.turn.id for kin in kindred(lives, at, {}).values() if kin.turn is not None and kin.emptied}
    return {thread: fact for thread, fact in found.items() if thread not in gone}


def opening(turns: Sequence[Fact]) -> Fact:
    """The turn of an exchange that a topic is named after: the user's, if there is one."""
    return next((turn for turn in turns if turn.role == "user"), turns[0])


def named_after(links: Iterable[Link]) -> dict[str, str]:
    """The turn that each topic was named after last."""
    ordered = sorted((link for link in links if link.rel == DERIVED_FROM), key=lambda link: link.seq)
    return {link.src: link.dst for link in ordered}


def is_named_by(topic: Fact, turn: Fact | None) -> bool:
    """Whether a topic has the name that its turn gives it; one that somebody else named keeps that name."""
    return topic.author != AUTHOR or (turn is not None and label(turn.text) == topic.text)


# Listing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """A topic with the exchanges in it, whom it came up with, what it is made of and what it is part of.

    Its fact has the label that is shown, which is that of a turn still held.
    """

    fact: Fact
    exchanges: tuple[tuple[Fact, ...], ...]
    neighbours: tuple[tuple[Fact, Touch], ...] = ()
    parts: tuple[str, ...] = ()
    supers: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The topic as JSON."""
        met = [
            {"id": fact.id, "label": fact.text, "count": touch.count, "weight": round(firmness(touch), 4)}
            for fact, touch in self.neighbours
        ]
        return {
            "id": self.fact.id, "label": self.fact.text, **self.fact.scope.ids(),
            "super": bool(self.fact.meta.get(SUPER)), "members": len(self.exchanges),
            "turns": [[turn.id for turn in turns] for turns in self.exchanges], "neighbours": met,
            "parts": list(self.parts), "supers": list(self.supers),
        }  # fmt: skip


def listing(store: Store, find: Find, met: Met | None = None) -> Flow[list[Listed]]:
    """The topics a read can see in which anything is held, oldest first; a read of the past knows no meetings."""
    wanted = replace(find, filter=every((find.filter, Test("kind", "eq", TOPIC))))
    told = {fact.id: fact for fact in (yield from call(store.facts, wanted))}
    account, at = find.scope.account, find.as_of.seq
    links = yield from call(store.links, account, list(told), None if at >= LATEST else at)
    inside, facts = yield from _filled(store, find, told, links)
    above = [(link.src, link.dst) for link in links if link.rel == ABSTRACTED_FROM and link.src in told]
    _name_supers(told, facts, above)
    order = {topic: facts[topic] for topic in told if topic in facts}
    shown = [(whole, part) for whole, part in above if whole in order and part in order]
    pairs = (yield from met(store, account, list(order))) if met is not None and at >= LATEST else {}
    return [
        Listed(
            fact, inside.get(topic, ()), tuple(_neighbours(topic, pairs, order)),
            tuple(part for whole, part in shown if whole == topic),
            tuple(whole for whole, part in shown if part == topic),
        )
        for topic, fact in order.items()
    ]  # fmt: skip


def _filled(
    store: Store, find: Find, told: Mapping[str, Fact], links: Sequence[Link]
) -> Flow[tuple[dict[str, tuple[tuple[Fact, ...], ...]], dict[str, Fact]]]:
    """The exchanges of each topic as far as they are held, and the topics that have any, with the names they go by."""
    names = {topic: turn for topic, turn in named_after(links).items() if topic in told}
    counted = latest(links).values()
    turns = yield from held_turns(store, find.scope, find.as_of, {*names.values(), *(link.src for link in counted)})
    found: dict[str, dict[str, list[Fact]]] = {}
    for link in counted:
        if link.src in turns and link.dst in told:
            exchange = str(link.meta.get(EXCHANGE, link.src))
            found.setdefault(link.dst, {}).setdefault(exchange, []).append(turns[link.src])
    inside = {topic: tuple(map(tuple, exchanges.values())) for topic, exchanges in found.items()}
    facts: dict[str, Fact] = {}
    for topic, exchanges in inside.items():
        fact = told[topic]
        kept = is_named_by(fact, turns.get(names.get(topic, "")))
        facts[topic] = fact if kept else replace(fact, text=label(opening(exchanges[0]).text))
    return inside, facts


def _name_supers(told: Mapping[str, Fact], facts: dict[str, Fact], above: Iterable[tuple[str, str]]) -> None:
    """Add the topics of topics of which any part is left; one whose parts have other names by now goes by those."""
    parts: dict[str, list[str]] = {}
    for whole, part in above:
        if part in told:
            parts.setdefault(whole, []).append(part)
    for whole, topics in parts.items():
        fact, left = told[whole], [facts[topic] for topic in topics if topic in facts]
        if left and not is_current(fact, (told[topic] for topic in topics), left):
            fact = replace(fact, text=shared_name([part.text for part in left]))
        if left:
            facts[whole] = fact


def is_current(whole: Fact, parts: Iterable[Fact], left: Sequence[Fact]) -> bool:
    """Whether a topic of topics was named after its parts as they are shown now."""
    shown = {part.id: part.text for part in left}
    named = all(part.seq < whole.seq and shown.get(part.id) == part.text for part in parts)
    return named or whole.author != AUTHOR


def shared_name(labels: Sequence[str]) -> str:
    """The words that labels share, and else the first label."""
    return common(labels) or label(labels[0])


def _neighbours(
    topic: str, pairs: Mapping[tuple[str, str], Touch], facts: Mapping[str, Fact]
) -> list[tuple[Fact, Touch]]:
    """Whom a topic came up with, the most often first."""
    others = [(b if a == topic else a, touch) for (a, b), touch in pairs.items() if topic in (a, b)]
    seen = [(facts[other], touch) for other, touch in others if other in facts]
    return sorted(seen, key=lambda pair: (-pair[1].count, pair[0].seq))
