"""From the best hits to what belongs to them: parts of a whole, linked memories, one topic, one piece of evidence.

A hit is a signpost. What it points to is scored like everything else, and then meets its parent half-way, so that a
weak match below a strong one comes up. It goes on from what it finds until three rounds in a row change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from told.core.fact import NODE, Fact, Link
from told.core.identity import DISTINCT, SAME_AS, Lens, seen_through
from told.core.query import LATEST, Probe, Ranked, Touch
from told.core.topics import ABSTRACTED_FROM, DERIVED_FROM, IN_EXCHANGE, IN_TOPIC
from told.flow import Flow
from told.read import cache
from told.read.gather import Eye, ask, by_id
from told.read.leads import Lead, Leads, Web, links_of, offer
from told.read.members import CO_OCCURS, TOPIC, Walk, members
from told.read.rank import Scored, best_of_facts, heat, ordered, unmeasured
from told.read.recall import first
from told.read.topics import latest

PART_OF, MENTIONS = "part_of", "mentions"
APART = frozenset({PART_OF, IN_TOPIC, CO_OCCURS, "supports", "supersedes", "contradicts", DERIVED_FROM, DISTINCT,
                   IN_EXCHANGE, ABSTRACTED_FROM, "importance"})  # fmt: skip
"""Relations that are no mere neighbourhood."""

SCALE = 10.0


Ranking: TypeAlias = Callable[[Ranked], Sequence[Scored]]


def expanded(
    eye: Eye, probe: Probe, rank: Ranking, scored: Sequence[Scored], facts: Mapping[int, Fact],
    web: Web, lens: Lens | None = None,
) -> Flow[tuple[list[Scored], dict[int, str]]]:
    """The candidates with what the best of them point to, and by which source each of those came.

    With a lens, names that are surely enough one are followed as one, and no others.
    """
    tops = _tops(scored, facts, eye.settings.expand_from)
    scores = {facts[one.mark.seq].id: one.score for one in tops}
    labels: dict[int, str] = {}
    led: set[str] = set()
    current, frontier, unchanged, walk = list(scored), list(scores), 0, Walk(web)
    for _ in range(eye.settings.expand_rounds):
        walk.known = current
        leads = yield from _leads(eye, probe, frontier, scores, lens, walk)
        fresh = {thread: lead for thread, lead in leads.items() if thread not in led and lead.parent in scores}
        found = yield from _followed(eye, probe, rank, fresh, scores, current)
        if not found:
            break
        led |= {thread for _, thread, _ in found}
        labels |= {one.mark.seq: lead.source for one, _, lead in found}
        frontier = [thread for _, thread, _ in found if thread not in scores]
        scores |= {thread: max(one.score, scores.get(thread, one.score)) for one, thread, _ in found}
        before = _head(current, eye.settings.expand_top)
        current = _merged(current, [one for one, _, _ in found])
        unchanged = unchanged + 1 if _head(current, eye.settings.expand_top) == before else 0
        if unchanged >= eye.settings.expand_patience:
            break
    return current, labels


def _tops(scored: Sequence[Scored], facts: Mapping[int, Fact], most: int) -> list[Scored]:
    """The best memories, and the best nodes of the graph that the query names by a word."""
    best = best_of_facts([one for one in scored if one.mark.seq in facts])
    memories = [one for one in best if facts[one.mark.seq].kind != NODE]
    nodes = [one for one in best if facts[one.mark.seq].kind == NODE and one.mark.words]
    return ordered((*memories[:most], *nodes[:most]))


def _head(scored: Sequence[Scored], size: int) -> list[int]:
    return [one.mark.seq for one in best_of_facts(first(scored, size))]


def _merged(scored: Sequence[Scored], found: Iterable[Scored]) -> list[Scored]:
    """All of them, the better of two where a passage is in both."""
    best = {(one.mark.seq, one.mark.slot): one for one in scored}
    for one in found:
        known = best.get((one.mark.seq, one.mark.slot))
        if known is None or one.score > known.score:
            best[one.mark.seq, one.mark.slot] = one
    return ordered(best.values())


# Where hits point to --------------------------------------------------------------------------------------------------


def _leads(
    eye: Eye, probe: Probe, threads: Sequence[str], scores: Mapping[str, float], lens: Lens | None, walk: Walk
) -> Flow[Leads]:
    """Where these threads point to; of several that point to one, the strongest leads there.

    A node leads to the memories that mention it, and no memory to a node: everything mentions somebody.
    """
    links = yield from links_of(eye, probe.find, threads, walk.web)
    leads: Leads = {}
    own, sources = set(threads) - _hubs(links, eye.settings.expand_width), eye.sources
    one = None if lens is None else seen_through(lens, links)
    for link in links:
        if link.rel == PART_OF:
            if link.dst in own and "tree" in sources:
                offer(leads, link.src, Lead(link.dst, link.weight, "child"), scores)
        elif link.rel not in APART and "graph" in sources:
            for here, there, weight in _ways(link, one):
                if here in own:
                    offer(leads, there, Lead(here, weight, "graph", link.rel == MENTIONS), scores)
    topics = {thread: link for thread, link in latest(links).items() if thread in own and "topics" in sources}
    return (yield from members(eye, probe, topics, scores, walk)) | leads if topics else leads


def _hubs(links: Sequence[Link], most: int) -> set[str]:
    """Nodes that so many memories mention that it tells nothing of them."""
    mentioned = Counter(link.dst for link in links if link.rel == MENTIONS)
    return {node for node, count in mentioned.items() if count > most}


def _ways(link: Link, one: Mapping[str, str] | None) -> Iterator[tuple[str, str, float]]:
    """The ways a link of the graph can be followed, and how firmly; `one` tells which names are taken for one."""
    weight = link.weight
    if link.rel == SAME_AS and one is not None:
        if link.src not in one or one[link.src] != one.get(link.dst):
            return
        weight = 1.0
    if link.rel != MENTIONS:
        yield link.src, link.dst, weight
    yield link.dst, link.src, weight


# Following them -------------------------------------------------------------------------------------------------------


def _visible(eye: Eye, probe: Probe, leads: Sequence[str], most: int) -> Flow[dict[int, Fact]]:
    """The first so many of these threads that the read can see, by position."""
    found: dict[int, Fact] = {}
    for start in range(0, len(leads), most):
        several = leads[start : start + most]
        seen = {fact.id: fact for fact in (yield from by_id(eye, probe.find, several))}
        found |= {seen[thread].seq: seen[thread] for thread in several if thread in seen}
        if len(found) >= most:
            break
    return dict(list(found.items())[:most])


def _measured(
    eye: Eye, probe: Probe, rank: Ranking, facts: Mapping[int, Fact], leads: Leads, known: Sequence[Scored]
) -> Flow[list[Scored]]:
    """Each of these facts as it is known, or else by the index; what the graph only names is taken as it is."""
    there = {one.mark.seq for one in known}
    unseen = [fact for seq, fact in facts.items() if seq not in there]
    named = [fact for fact in unseen if fact.kind == NODE or leads[fact.id].mentioned]
    found = Ranked()
    if others := sorted({fact.seq for fact in unseen} - {fact.seq for fact in named}):
        found, _ = yield from ask(eye, replace(probe, also=tuple(others), spans=(), depth=1))
    plain = (Scored(unmeasured(fact), 0.0, {}) for fact in named)
    return best_of_facts(one for one in (*known, *rank(found), *plain) if one.mark.seq in facts)


def _followed(
    eye: Eye, probe: Probe, rank: Ranking, leads: Leads, scores: Mapping[str, float], known: Sequence[Scored]
) -> Flow[list[tuple[Scored, str, Lead]]]:
    """What is led to and can be seen, each with a score that lies between its own and that of where it was led from."""
    account, as_of = probe.find.scope.account, probe.find.as_of
    facts = yield from _visible(eye, probe, list(leads), eye.settings.expand_width)
    if not facts:
        return []
    found = yield from _measured(eye, probe, rank, facts, leads, known)
    touches: Mapping[str, Touch] = {}
    if eye.settings.expand_hot and as_of.seq >= LATEST:
        touches = yield from cache.touched(eye.store, eye.overlay, account, [fact.id for fact in facts.values()])
    followed: list[tuple[Scored, str, Lead]] = []
    for one in found:
        thread = facts[one.mark.seq].id
        lead = leads[thread]
        alpha, warm = _shares(eye, lead, one)
        blended = alpha * one.score + (1.0 - alpha) * lead.weight * scores[lead.parent]
        hot = SCALE * heat(touches[thread], as_of.at, eye.settings) if thread in touches else 0.0
        blended = (1.0 - warm) * blended + warm * hot
        followed.append((one.plus(parent=blended - one.score), thread, lead))
    return followed


def _shares(eye: Eye, lead: Lead, one: Scored) -> tuple[float, float]:
    """How much of a lead's score is its own, and how much being in use counts for the rest.

    A member of a topic that has a vector speaks for itself: the topic only says where to look.
    """
    if lead.source == TOPIC and one.mark.cosine is not None:
        return eye.settings.topic_own, 0.0
    return eye.settings.expand_own, eye.settings.expand_hot
