"""From hits to the members of their topics, and of the topics that came up together with those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.core.fact import Fact, Link
from told.core.filter import EVERYTHING
from told.core.kind import builtin
from told.core.query import LATEST, Probe
from told.core.score import quantise
from told.core.tiers import member_score, recency
from told.flow import Flow, call
from told.read import cache
from told.read.gather import Eye, ask, by_id
from told.read.leads import Lead, Leads, Web, links_of, offer
from told.read.limits import thresholds
from told.read.rank import Scored, importance
from told.read.topics import firmness, latest, nearness

CO_OCCURS, IMPORTANCE, TOPIC = "co_occurs", "importance", "topic"
NEWEST: Final = 40
"""How many members of a topic are looked at, the newest of them."""

PLENTY: Final = 4
"""How many times as many as are wanted are looked at twice."""


@dataclass(slots=True)
class Walk:
    """What a read that follows leads knows on its way: links, what was measured, and whether it has been to topics."""

    web: Web
    known: Sequence[Scored] = ()
    been: bool = False


def members(
    eye: Eye, probe: Probe, topics: Mapping[str, Link], scores: Mapping[str, float], walk: Walk
) -> Flow[Leads]:
    """The best members of the topics that hits are in, and of those that came up with them; what they lead to, no more.

    So a read goes to topics once, from its hits.
    """
    near: Leads = {}
    if walk.been:
        return near
    walk.been = True
    for thread, link in topics.items():
        offer(near, link.dst, Lead(thread, link.weight, TOPIC), scores)
    around = yield from links_of(eye, probe.find, list(near), walk.web)
    own = set(near)
    yield from _neighbours(eye, probe, near, around, scores)
    further = yield from links_of(eye, probe.find, sorted(near.keys() - own), walk.web)
    inside: dict[str, list[Link]] = {}
    for link in latest((*around, *further)).values():
        if link.dst in near:
            inside.setdefault(link.dst, []).append(link)
    yield from _without_given_up(eye, probe, inside)
    _without_at_hand(eye, probe, inside)
    best = yield from _best(eye, probe, inside, scores, walk)
    leads: Leads = {}
    for link in best:
        offer(leads, link.src, replace(near[link.dst], weight=near[link.dst].weight * link.weight), scores)
    return leads


def _neighbours(
    eye: Eye, probe: Probe, near: Leads, around: Sequence[Link], scores: Mapping[str, float]
) -> Flow[None]:
    """Add the topics that were said to belong to these, and those that came up with them and bear on the query."""
    own = dict(near)
    pairs = [((link.src, link.dst), link.weight) for link in around if link.rel == CO_OCCURS]
    if probe.find.as_of.seq >= LATEST and probe.vector is not None and eye.embedder is not None:
        account = probe.find.scope.account
        met = yield from cache.met(eye.store, eye.overlay, account, list(own))
        others = sorted({topic for pair in met for topic in pair} - own.keys())
        sure = yield from nearness(eye.store, account, others, quantise(probe.vector), eye.embedder.model)
        least = thresholds(eye.settings, eye.embedder).near
        often = sorted(met.items(), key=lambda item: (-item[1].count, item[0]))
        firm = [(pair, firmness(touch)) for pair, touch in often if any(sure.get(end, 0.0) >= least for end in pair)]
        pairs += firm[: eye.settings.topic_neighbours]
    for (one, other), weight in pairs:
        for here, there in ((one, other), (other, one)):
            if here in own:
                offer(near, there, replace(own[here], weight=own[here].weight * weight), scores)


def _without_given_up(eye: Eye, probe: Probe, inside: dict[str, list[Link]]) -> Flow[None]:
    """Leave out topics that were given up; one that nothing was ever said of is just a name."""
    seen = {fact.id for fact in (yield from by_id(eye, replace(probe.find, filter=EVERYTHING), list(inside)))}
    for topic in [topic for topic in inside if topic not in seen]:
        entries = yield from call(eye.store.thread, probe.find.scope.account, topic)
        if any(entry.sort != "linked" for entry in entries):
            del inside[topic]


def _without_at_hand(eye: Eye, probe: Probe, inside: dict[str, list[Link]]) -> None:
    """Leave out topics whose members are all in the hot buffer already, and near enough to the query."""
    if probe.find.as_of.seq < LATEST:
        return
    asked = b"" if probe.vector is None else quantise(probe.vector)
    least = thresholds(eye.settings, eye.embedder).hot
    threads = {topic: [link.src for link in links] for topic, links in inside.items()}
    for topic in eye.overlay.at_hand(probe.find.scope, threads, asked, least):
        del inside[topic]
    for topic in inside:
        eye.overlay.fetched(probe.find.scope, topic, threads[topic])


def _best(
    eye: Eye, probe: Probe, inside: Mapping[str, Sequence[Link]], scores: Mapping[str, float], walk: Walk
) -> Flow[list[Link]]:
    """Of each topic the members that are nearest, most recent and most important, but for those that led here."""
    most = eye.settings.topic_members
    fresh = {topic: [link for link in links if link.src not in scores][-NEWEST:] for topic, links in inside.items()}
    threads = sorted({link.src for links in fresh.values() for link in links})
    facts = {fact.id: fact for fact in (yield from by_id(eye, probe.find, threads))} if threads and most else {}
    if not facts:
        return []
    near = yield from _cosines(eye, probe, facts.values(), walk.known)
    value = {thread: _value(eye, probe, fact, near.get(fact.seq, 0.0)) for thread, fact in facts.items()}
    short = [link for links in fresh.values() for link in _first(links, value, most * PLENTY)]
    again = yield from links_of(eye, probe.find, sorted({link.src for link in short}), walk.web)
    counts = latest(again)
    stated = {link.dst: link.weight for link in again if link.rel == IMPORTANCE and link.dst in facts}
    for thread, weight in stated.items():
        value[thread] = _value(eye, probe, facts[thread], near.get(facts[thread].seq, 0.0), weight)
    still = [link for link in short if counts[link.src].dst == link.dst]
    of_topic = {topic: [link for link in still if link.dst == topic] for topic in fresh}
    return [link for links in of_topic.values() for link in _first(links, value, most)]


def _first(links: Iterable[Link], value: Mapping[str, float], most: int) -> list[Link]:
    seen = [link for link in links if link.src in value]
    return sorted(seen, key=lambda link: (-value[link.src], -link.seq))[:most]


def _value(eye: Eye, probe: Probe, fact: Fact, near: float, stated: float | None = None) -> float:
    """How a member ranks in its topic."""
    said = fact.updated_at if fact.said_at is None else fact.said_at
    fresh = recency(probe.find.as_of.at - said, eye.settings.registry_days)
    return member_score(near, fresh, importance(fact, builtin()) if stated is None else stated)


def _cosines(eye: Eye, probe: Probe, facts: Iterable[Fact], known: Sequence[Scored]) -> Flow[dict[int, float]]:
    """How near facts are to the query, by position: as far as that is known, and else by the index."""
    near: dict[int, float] = {}
    measured = {one.mark.seq for one in known}
    wanted = {fact.seq for fact in facts}
    marks = [one.mark for one in known if one.mark.seq in wanted]
    if others := sorted(wanted - measured):
        found, _ = yield from ask(eye, replace(probe, also=tuple(others), spans=(), depth=1))
        marks += [mark for mark in found.marks if mark.seq in wanted]
    for mark in marks:
        near[mark.seq] = max(near.get(mark.seq, 0.0), mark.cosine or 0.0)
    return near
