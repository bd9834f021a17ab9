"""From hits to the members of their topics, and of the topics that came up together with those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.core.fact import Fact, Link
from told.core.filter import MATCH_ALL
from told.core.kind import load_builtin_ontology
from told.core.query import LATEST, IndexQuery
from told.core.score import quantise
from told.core.tiers import compute_recency, score_member
from told.flow import Flow, call
from told.read import cache
from told.read.gather import ReadContext, load_facts_by_id, search_index
from told.read.leads import (
    ExpansionEdge,
    ExpansionEdges,
    LinkCache,
    keep_strongest_edge,
    load_links,
)
from told.read.limits import resolve_thresholds
from told.read.rank import ScoredCandidate, score_importance
from told.read.topics import find_current_topic_links, load_topic_cosines, score_cooccurrence

CO_OCCURS, IMPORTANCE, TOPIC_SOURCE = "co_occurs", "importance", "topic"
MAX_NEWEST_MEMBERS: Final = 40
"""How many members of a topic are looked at, the newest of them."""

OVERFETCH: Final = 4
"""How many times as many as are wanted are looked at twice."""


@dataclass(slots=True)
class ExpansionState:
    """What a read that follows leads knows on its way: links, what was measured, and whether it has been to topics."""

    link_cache: LinkCache
    scored: Sequence[ScoredCandidate] = ()
    has_visited_topics: bool = False


def find_member_edges(
    ctx: ReadContext,
    index_query: IndexQuery,
    topics: Mapping[str, Link],
    scores: Mapping[str, float],
    expansion: ExpansionState,
) -> Flow[ExpansionEdges]:
    """The best members of the topics that hits are in, and of those that came up with them; what they lead to, no more.

    So a read goes to topics once, from its hits.
    """
    topic_edges: ExpansionEdges = {}
    if expansion.has_visited_topics:
        return topic_edges
    expansion.has_visited_topics = True
    for thread, link in topics.items():
        keep_strongest_edge(
            topic_edges, link.dst, ExpansionEdge(thread, link.weight, TOPIC_SOURCE), scores
        )
    topic_links = yield from load_links(
        ctx, index_query.query, list(topic_edges), expansion.link_cache
    )
    own_topics = set(topic_edges)
    yield from _add_neighbour_topics(ctx, index_query, topic_edges, topic_links, scores)
    neighbour_links = yield from load_links(
        ctx, index_query.query, sorted(topic_edges.keys() - own_topics), expansion.link_cache
    )
    links_by_topic: dict[str, list[Link]] = {}
    for link in find_current_topic_links((*topic_links, *neighbour_links)).values():
        if link.dst in topic_edges:
            links_by_topic.setdefault(link.dst, []).append(link)
    yield from _drop_retracted_topics(ctx, index_query, links_by_topic)
    _drop_hot_topics(ctx, index_query, links_by_topic)
    best_links = yield from _pick_best_members(ctx, index_query, links_by_topic, scores, expansion)
    edges: ExpansionEdges = {}
    for link in best_links:
        keep_strongest_edge(
            edges,
            link.src,
            replace(topic_edges[link.dst], weight=topic_edges[link.dst].weight * link.weight),
            scores,
        )
    return edges


def _add_neighbour_topics(
    ctx: ReadContext,
    index_query: IndexQuery,
    topic_edges: ExpansionEdges,
    topic_links: Sequence[Link],
    scores: Mapping[str, float],
) -> Flow[None]:
    """Add the topics that were said to belong to these, and those that came up with them and bear on the query."""
    own_edges = dict(topic_edges)
    pairs = [((link.src, link.dst), link.weight) for link in topic_links if link.rel == CO_OCCURS]
    if (
        index_query.query.as_of.seq >= LATEST
        and index_query.vector is not None
        and ctx.embedder is not None
    ):
        account = index_query.query.scope.account
        cooccurrence = yield from cache.load_cooccurrence(
            ctx.store, ctx.hot_buffers, account, list(own_edges)
        )
        other_topics = sorted({topic for pair in cooccurrence for topic in pair} - own_edges.keys())
        cosines = yield from load_topic_cosines(
            ctx.store, account, other_topics, quantise(index_query.vector), ctx.embedder.model
        )
        min_cosine = resolve_thresholds(ctx.settings, ctx.embedder).near
        by_count = sorted(cooccurrence.items(), key=lambda item: (-item[1].count, item[0]))
        strong_pairs = [
            (pair, score_cooccurrence(access_count))
            for pair, access_count in by_count
            if any(cosines.get(end, 0.0) >= min_cosine for end in pair)
        ]
        pairs += strong_pairs[: ctx.settings.topic_neighbours]
    for (first, second), weight in pairs:
        for source, target in ((first, second), (second, first)):
            if source in own_edges:
                keep_strongest_edge(
                    topic_edges,
                    target,
                    replace(own_edges[source], weight=own_edges[source].weight * weight),
                    scores,
                )


def _drop_retracted_topics(
    ctx: ReadContext, index_query: IndexQuery, links_by_topic: dict[str, list[Link]]
) -> Flow[None]:
    """Leave out topics that were given up; one that nothing was ever said of is just a name."""
    visible_ids = {
        fact.id
        for fact in (
            yield from load_facts_by_id(
                ctx, replace(index_query.query, filter=MATCH_ALL), list(links_by_topic)
            )
        )
    }
    for topic in [topic for topic in links_by_topic if topic not in visible_ids]:
        entries = yield from call(ctx.store.thread_entries, index_query.query.scope.account, topic)
        if any(entry.sort != "linked" for entry in entries):
            del links_by_topic[topic]


def _drop_hot_topics(
    ctx: ReadContext, index_query: IndexQuery, links_by_topic: dict[str, list[Link]]
) -> None:
    """Leave out topics whose members are all in the hot buffer already, and near enough to the query."""
    if index_query.query.as_of.seq < LATEST:
        return
    query_code = b"" if index_query.vector is None else quantise(index_query.vector)
    min_cosine = resolve_thresholds(ctx.settings, ctx.embedder).hot
    threads = {topic: [link.src for link in links] for topic, links in links_by_topic.items()}
    for topic in ctx.hot_buffers.find_hot_topics(
        index_query.query.scope, threads, query_code, min_cosine
    ):
        del links_by_topic[topic]
    for topic in links_by_topic:
        ctx.hot_buffers.record_topic_fetch(index_query.query.scope, topic, threads[topic])


def _pick_best_members(
    ctx: ReadContext,
    index_query: IndexQuery,
    links_by_topic: Mapping[str, Sequence[Link]],
    scores: Mapping[str, float],
    expansion: ExpansionState,
) -> Flow[list[Link]]:
    """Of each topic the members that are nearest, most recent and most important, but for those that led here."""
    limit = ctx.settings.topic_members
    new_links = {
        topic: [link for link in links if link.src not in scores][-MAX_NEWEST_MEMBERS:]
        for topic, links in links_by_topic.items()
    }
    threads = sorted({link.src for links in new_links.values() for link in links})
    facts = (
        {fact.id: fact for fact in (yield from load_facts_by_id(ctx, index_query.query, threads))}
        if threads and limit
        else {}
    )
    if not facts:
        return []
    cosines = yield from _load_cosines(ctx, index_query, facts.values(), expansion.scored)
    values = {
        thread: _score_member(ctx, index_query, fact, cosines.get(fact.seq, 0.0))
        for thread, fact in facts.items()
    }
    shortlist = [
        link
        for links in new_links.values()
        for link in _take_best(links, values, limit * OVERFETCH)
    ]
    member_links = yield from load_links(
        ctx, index_query.query, sorted({link.src for link in shortlist}), expansion.link_cache
    )
    current_links = find_current_topic_links(member_links)
    stated_weights = {
        link.dst: link.weight
        for link in member_links
        if link.rel == IMPORTANCE and link.dst in facts
    }
    for thread, weight in stated_weights.items():
        values[thread] = _score_member(
            ctx, index_query, facts[thread], cosines.get(facts[thread].seq, 0.0), weight
        )
    current = [link for link in shortlist if current_links[link.src].dst == link.dst]
    links_by_current_topic = {
        topic: [link for link in current if link.dst == topic] for topic in new_links
    }
    return [
        link
        for links in links_by_current_topic.values()
        for link in _take_best(links, values, limit)
    ]


def _take_best(links: Iterable[Link], values: Mapping[str, float], limit: int) -> list[Link]:
    known_links = [link for link in links if link.src in values]
    return sorted(known_links, key=lambda link: (-values[link.src], -link.seq))[:limit]


def _score_member(
    ctx: ReadContext,
    index_query: IndexQuery,
    fact: Fact,
    cosine: float,
    stated_importance: float | None = None,
) -> float:
    """How a member ranks in its topic."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    recency_score = compute_recency(
        index_query.query.as_of.at - said_at, ctx.settings.registry_days
    )
    return score_member(
        cosine,
        recency_score,
        score_importance(fact, load_builtin_ontology())
        if stated_importance is None
        else stated_importance,
    )


def _load_cosines(
    ctx: ReadContext,
    index_query: IndexQuery,
    facts: Iterable[Fact],
    known: Sequence[ScoredCandidate],
) -> Flow[dict[int, float]]:
    """How near facts are to the query, by position: as far as that is known, and else by the index."""
    cosines: dict[int, float] = {}
    known_seqs = {item.candidate.seq for item in known}
    wanted_seqs = {fact.seq for fact in facts}
    candidates = [item.candidate for item in known if item.candidate.seq in wanted_seqs]
    if other_seqs := sorted(wanted_seqs - known_seqs):
        index_result, _ = yield from search_index(
            ctx, replace(index_query, extra_seqs=tuple(other_seqs), time_spans=(), depth=1)
        )
        candidates += [
            candidate for candidate in index_result.candidates if candidate.seq in wanted_seqs
        ]
    for candidate in candidates:
        cosines[candidate.seq] = max(cosines.get(candidate.seq, 0.0), candidate.cosine or 0.0)
    return cosines
