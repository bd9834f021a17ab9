"""Expand the best hits to parts, linked memories, and members of the same topic.

A linked memory is scored like any candidate, then its score is blended with that of its parent, so
that a weak match next to a strong one rises. Expansion continues from new finds until the top
results stop changing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from told.flow import Flow, call
from told.model.beliefs import DISTINCT_REFERENT, SAME_AS, Lens, resolve_identities
from told.model.fact import NODE, Fact, Link
from told.model.filter import MATCH_ALL
from told.model.kind import load_builtin_ontology
from told.model.query import LATEST, AccessCount, IndexQuery, IndexResult
from told.model.salience import compute_recency, score_member
from told.model.scoring import quantise
from told.model.topics import ABSTRACTED_FROM, DERIVED_FROM, IN_EXCHANGE, IN_TOPIC
from told.retrieval import access_log
from told.retrieval.candidates import (
    ExpansionEdge,
    ExpansionEdges,
    LinkCache,
    ReadContext,
    keep_strongest_edge,
    load_facts_by_id,
    load_links,
    resolve_thresholds,
    search_index,
)
from told.retrieval.ranking import (
    ScoredCandidate,
    build_unscored,
    keep_best_per_fact,
    list_seqs,
    score_hotness,
    score_importance,
    sort_by_score,
)
from told.retrieval.state import SearchState, fetch_facts, take_first_facts
from told.retrieval.topics import (
    CONSUMER,
    find_current_topic_links,
    load_topic_cosines,
    score_cooccurrence,
)


def record_topic_cooccurrence(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Record that the topics of the best memories near the query occurred together.

    Nothing is recorded for reads of the past, without a vector, or in accounts without topics.
    """
    index_query, account = state.index_query, state.index_query.query.scope.account
    embedder, is_past = ctx.embedder, index_query.query.as_of.seq < LATEST
    if (
        is_past
        or embedder is None
        or index_query.vector is None
        or not state.index_result.has_links
        or "topics" not in ctx.sources
    ):
        return
    if not (yield from call(ctx.store.get_cursor, account, CONSUMER)):
        return
    top_items = take_first_facts(state.all_scored, ctx.settings.ranking.topic_reach)
    yield from fetch_facts(ctx, state, list_seqs(top_items))
    thread_by_seq = {
        item.candidate.seq: state.facts[item.candidate.seq].id
        for item in top_items
        if item.candidate.seq in state.facts
    }
    threads = list(dict.fromkeys(thread_by_seq.values()))
    links = find_current_topic_links(
        (yield from load_links(ctx, index_query.query, threads, state.link_cache))
    )
    topics = sorted({link.dst for thread, link in links.items() if thread in set(threads)})
    if len(topics) > 1:
        cosines = yield from load_topic_cosines(
            ctx.store, account, topics, quantise(index_query.vector), embedder.model
        )
        min_cosine = resolve_thresholds(ctx.settings, embedder).near
        ctx.hot_buffers.record_cooccurrence(
            account,
            (topic for topic, cosine in cosines.items() if cosine >= min_cosine),
            index_query.query.as_of.at,
        )


CO_OCCURS, IMPORTANCE, TOPIC_SOURCE = "co_occurs", "importance", "topic"
MAX_NEWEST_MEMBERS: Final = 40
"""Number of newest members to consider per topic."""

OVERFETCH: Final = 4
"""Load links for this many times the wanted members."""


@dataclass(slots=True)
class ExpansionState:
    """The links and scores of an expansion, and whether topics were visited."""

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
    """Return edges to the best members of the hits' topics and of co-occurring topics.

    Topics are visited once per read, from its hits; edges from their members are not followed to
    further topics.
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
    """Add linked topics, and co-occurring topics that are near the query."""
    own_edges = dict(topic_edges)
    pairs = [((link.src, link.dst), link.weight) for link in topic_links if link.rel == CO_OCCURS]
    if (
        index_query.query.as_of.seq >= LATEST
        and index_query.vector is not None
        and ctx.embedder is not None
    ):
        account = index_query.query.scope.account
        cooccurrence = yield from access_log.load_cooccurrence(
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
        pairs += strong_pairs[: ctx.settings.ranking.topic_neighbours]
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
    """Drop topics that were retracted; keep ids that only ever occurred in links."""
    visible_ids = {
        fact.id
        for fact in (
            yield from load_facts_by_id(
                ctx, replace(index_query.query, filter=MATCH_ALL), list(links_by_topic)
            )
        )
    }
    for topic in [topic for topic in links_by_topic if topic not in visible_ids]:
        entries = yield from call(
            ctx.store.scan_entries, index_query.query.scope.account, thread=topic
        )
        if any(entry.sort != "linked" for entry in entries):
            del links_by_topic[topic]


def _drop_hot_topics(
    ctx: ReadContext, index_query: IndexQuery, links_by_topic: dict[str, list[Link]]
) -> None:
    """Drop topics whose members are all in the hot buffer and near the query."""
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
    """Return the nearest, newest and most important members of each topic, without the seeds."""
    limit = ctx.settings.ranking.topic_members
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
    for link in member_links:
        if link.rel == IMPORTANCE and (fact := facts.get(link.dst)) is not None:
            cosine = cosines.get(fact.seq, 0.0)
            values[fact.id] = _score_member(ctx, index_query, fact, cosine, link.weight)
    current_links = find_current_topic_links(member_links)
    current = [link for link in shortlist if current_links[link.src].dst == link.dst]
    return [
        link
        for topic in new_links
        for link in _take_best([link for link in current if link.dst == topic], values, limit)
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
    """Return the score of a member within its topic."""
    said_at = fact.updated_at if fact.said_at is None else fact.said_at
    recency_score = compute_recency(
        index_query.query.as_of.at - said_at, ctx.settings.maintenance.registry_days
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
    """Return the cosine of facts with the query by seq, querying the index where unknown."""
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


PART_OF, MENTIONS = "part_of", "mentions"
NON_NEIGHBOUR_RELATIONS = frozenset(
    {
        PART_OF,
        IN_TOPIC,
        CO_OCCURS,
        "supports",
        "supersedes",
        "contradicts",
        DERIVED_FROM,
        DISTINCT_REFERENT,
        IN_EXCHANGE,
        ABSTRACTED_FROM,
        "importance",
    }
)
"""Relations that are not followed as graph neighbours."""

SCORE_SCALE = 10.0


RankFunction: TypeAlias = Callable[[IndexResult], Sequence[ScoredCandidate]]


def expand_candidates(
    ctx: ReadContext,
    index_query: IndexQuery,
    ranker: RankFunction,
    scored: Sequence[ScoredCandidate],
    facts: Mapping[int, Fact],
    link_cache: LinkCache,
    lens: Lens | None = None,
) -> Flow[tuple[list[ScoredCandidate], dict[int, str]]]:
    """Return the candidates with linked facts added, and the source label of each addition.

    With a lens, names identified by it are followed as one.
    """
    seeds = _pick_seeds(scored, facts, ctx.settings.ranking.expand_from)
    scores = {facts[item.candidate.seq].id: item.score for item in seeds}
    expansion_labels: dict[int, str] = {}
    reached: set[str] = set()
    current = list(scored)
    frontier = list(scores)
    unchanged = 0
    expansion = ExpansionState(link_cache)
    for _ in range(ctx.settings.ranking.expand_rounds):
        expansion.scored = current
        edges = yield from _find_edges(ctx, index_query, frontier, scores, lens, expansion)
        new_edges = {
            thread: edge
            for thread, edge in edges.items()
            if thread not in reached and edge.parent in scores
        }
        followed = yield from _follow_edges(ctx, index_query, ranker, new_edges, scores, current)
        if not followed:
            break
        reached |= {thread for _, thread, _ in followed}
        expansion_labels |= {item.candidate.seq: edge.source for item, _, edge in followed}
        frontier = [thread for _, thread, _ in followed if thread not in scores]
        scores |= {
            thread: max(item.score, scores.get(thread, item.score)) for item, thread, _ in followed
        }
        previous_top = _get_top_seqs(current, ctx.settings.ranking.expand_top)
        current = _merge_best(current, [item for item, _, _ in followed])
        unchanged = (
            unchanged + 1
            if _get_top_seqs(current, ctx.settings.ranking.expand_top) == previous_top
            else 0
        )
        if unchanged >= ctx.settings.ranking.expand_patience:
            break
    return current, expansion_labels


def _pick_seeds(
    scored: Sequence[ScoredCandidate], facts: Mapping[int, Fact], limit: int
) -> list[ScoredCandidate]:
    """Return the best memories, and the best graph nodes that match a query word."""
    best = keep_best_per_fact([item for item in scored if item.candidate.seq in facts])
    memories = [item for item in best if facts[item.candidate.seq].kind != NODE]
    nodes = [
        item for item in best if facts[item.candidate.seq].kind == NODE and item.candidate.words
    ]
    return sort_by_score((*memories[:limit], *nodes[:limit]))


def _get_top_seqs(scored: Sequence[ScoredCandidate], size: int) -> list[int]:
    return [item.candidate.seq for item in keep_best_per_fact(take_first_facts(scored, size))]


def _merge_best(
    scored: Sequence[ScoredCandidate], additions: Iterable[ScoredCandidate]
) -> list[ScoredCandidate]:
    """Merge two lists, keeping the better score of a passage."""
    best = {(item.candidate.seq, item.candidate.slot): item for item in scored}
    for item in additions:
        existing = best.get((item.candidate.seq, item.candidate.slot))
        if existing is None or item.score > existing.score:
            best[item.candidate.seq, item.candidate.slot] = item
    return sort_by_score(best.values())


# Finding edges


def _find_edges(
    ctx: ReadContext,
    index_query: IndexQuery,
    threads: Sequence[str],
    scores: Mapping[str, float],
    lens: Lens | None,
    expansion: ExpansionState,
) -> Flow[ExpansionEdges]:
    """Return the strongest edge to each thread linked from these threads.

    A node leads to the memories that mention it, but a memory does not lead to nodes.
    """
    links = yield from load_links(ctx, index_query.query, threads, expansion.link_cache)
    edges: ExpansionEdges = {}
    own_threads = set(threads) - _find_hubs(links, ctx.settings.ranking.expand_width)
    sources = ctx.sources
    aliases = None if lens is None else resolve_identities(lens, links)
    for link in links:
        if link.rel == PART_OF:
            if link.dst in own_threads and "tree" in sources:
                keep_strongest_edge(
                    edges, link.src, ExpansionEdge(link.dst, link.weight, "child"), scores
                )
        elif link.rel not in NON_NEIGHBOUR_RELATIONS and "graph" in sources:
            for source, target, weight in _iter_directions(link, aliases):
                if source in own_threads:
                    keep_strongest_edge(
                        edges,
                        target,
                        ExpansionEdge(source, weight, "graph", link.rel == MENTIONS),
                        scores,
                    )
    topics = {
        thread: link
        for thread, link in find_current_topic_links(links).items()
        if thread in own_threads and "topics" in sources
    }
    return (
        (yield from find_member_edges(ctx, index_query, topics, scores, expansion)) | edges
        if topics
        else edges
    )


def _find_hubs(links: Sequence[Link], max_mentions: int) -> set[str]:
    """Return nodes with so many mentions that they say nothing about a memory."""
    mention_counts = Counter(link.dst for link in links if link.rel == MENTIONS)
    return {node for node, count in mention_counts.items() if count > max_mentions}


def _iter_directions(
    link: Link, aliases: Mapping[str, str] | None
) -> Iterator[tuple[str, str, float]]:
    """Iterate over the directions to follow a link in; `aliases` maps names to identities."""
    weight = link.weight
    if link.rel == SAME_AS and aliases is not None:
        if link.src not in aliases or aliases[link.src] != aliases.get(link.dst):
            return
        weight = 1.0
    if link.rel != MENTIONS:
        yield link.src, link.dst, weight
    yield link.dst, link.src, weight


# Following edges


def _load_visible(
    ctx: ReadContext, index_query: IndexQuery, threads: Sequence[str], limit: int
) -> Flow[dict[int, Fact]]:
    """Return the first `limit` of these threads that the read can see, by seq."""
    facts_by_seq: dict[int, Fact] = {}
    for start in range(0, len(threads), limit):
        batch = threads[start : start + limit]
        visible = {
            fact.id: fact for fact in (yield from load_facts_by_id(ctx, index_query.query, batch))
        }
        facts_by_seq |= {
            visible[thread].seq: visible[thread] for thread in batch if thread in visible
        }
        if len(facts_by_seq) >= limit:
            break
    return dict(list(facts_by_seq.items())[:limit])


def _score_facts(
    ctx: ReadContext,
    index_query: IndexQuery,
    ranker: RankFunction,
    facts: Mapping[int, Fact],
    edges: ExpansionEdges,
    known: Sequence[ScoredCandidate],
) -> Flow[list[ScoredCandidate]]:
    """Score facts from known items or the index; facts that are only mentioned get no score."""
    known_seqs = {item.candidate.seq for item in known}
    unknown = [fact for seq, fact in facts.items() if seq not in known_seqs]
    mentioned = [fact for fact in unknown if fact.kind == NODE or edges[fact.id].is_mention]
    index_result = IndexResult()
    if other_seqs := sorted({fact.seq for fact in unknown} - {fact.seq for fact in mentioned}):
        index_result, _ = yield from search_index(
            ctx, replace(index_query, extra_seqs=tuple(other_seqs), time_spans=(), depth=1)
        )
    unscored = (ScoredCandidate(build_unscored(fact), 0.0, {}) for fact in mentioned)
    return keep_best_per_fact(
        item for item in (*known, *ranker(index_result), *unscored) if item.candidate.seq in facts
    )


def _follow_edges(
    ctx: ReadContext,
    index_query: IndexQuery,
    ranker: RankFunction,
    edges: ExpansionEdges,
    scores: Mapping[str, float],
    known: Sequence[ScoredCandidate],
) -> Flow[list[tuple[ScoredCandidate, str, ExpansionEdge]]]:
    """Return the visible targets of edges, each scored by itself, its parent and its hotness."""
    account, as_of = index_query.query.scope.account, index_query.query.as_of
    facts = yield from _load_visible(
        ctx, index_query, list(edges), ctx.settings.ranking.expand_width
    )
    if not facts:
        return []
    scored = yield from _score_facts(ctx, index_query, ranker, facts, edges, known)
    access_counts: Mapping[str, AccessCount] = {}
    if ctx.settings.ranking.expand_hot and as_of.seq >= LATEST:
        access_counts = yield from access_log.load_access_counts(
            ctx.store, ctx.hot_buffers, account, [fact.id for fact in facts.values()]
        )
    followed: list[tuple[ScoredCandidate, str, ExpansionEdge]] = []
    for item in scored:
        thread = facts[item.candidate.seq].id
        edge = edges[thread]
        alpha, hot_share = _get_blend_weights(ctx, edge, item)
        blended = alpha * item.score + (1.0 - alpha) * edge.weight * scores[edge.parent]
        hot_score = (
            SCORE_SCALE * score_hotness(access_counts[thread], as_of.at, ctx.settings)
            if thread in access_counts
            else 0.0
        )
        blended = (1.0 - hot_share) * blended + hot_share * hot_score
        followed.append((item.add_parts(parent=blended - item.score), thread, edge))
    return followed


def _get_blend_weights(
    ctx: ReadContext, edge: ExpansionEdge, item: ScoredCandidate
) -> tuple[float, float]:
    """Return the weights of the item's own score and of its hotness.

    A topic only says where to look, so a member with a vector keeps most of its own score.
    """
    if edge.source == TOPIC_SOURCE and item.candidate.cosine is not None:
        return ctx.settings.ranking.topic_own, 0.0
    return ctx.settings.ranking.expand_own, ctx.settings.ranking.expand_hot
