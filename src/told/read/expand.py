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
from told.core.identity import DISTINCT_REFERENT, SAME_AS, Lens, resolve_identities
from told.core.query import LATEST, AccessCount, IndexQuery, IndexResult
from told.core.topics import ABSTRACTED_FROM, DERIVED_FROM, IN_EXCHANGE, IN_TOPIC
from told.flow import Flow
from told.read import cache
from told.read.gather import ReadContext, load_facts_by_id, search_index
from told.read.leads import (
    ExpansionEdge,
    ExpansionEdges,
    LinkCache,
    keep_strongest_edge,
    load_links,
)
from told.read.members import CO_OCCURS, TOPIC_SOURCE, ExpansionState, find_member_edges
from told.read.rank import (
    ScoredCandidate,
    build_unscored,
    keep_best_per_fact,
    score_hotness,
    sort_by_score,
)
from told.read.recall import take_first_facts
from told.read.topics import find_current_topic_links

PART_OF, MENTIONS = "part_of", "mentions"
NON_NEIGHBOUR_RELATIONS = frozenset({PART_OF, IN_TOPIC, CO_OCCURS, "supports", "supersedes", "contradicts", DERIVED_FROM, DISTINCT_REFERENT,
                   IN_EXCHANGE, ABSTRACTED_FROM, "importance"})  # fmt: skip
"""Relations that are no mere neighbourhood."""

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
    """The candidates with what the best of them point to, and by which source each of those came.

    With a lens, names that are surely enough one are followed as one, and no others.
    """
    seeds = _pick_seeds(scored, facts, ctx.settings.expand_from)
    scores = {facts[item.candidate.seq].id: item.score for item in seeds}
    expansion_labels: dict[int, str] = {}
    reached: set[str] = set()
    current, frontier, unchanged, expansion = (
        list(scored),
        list(scores),
        0,
        ExpansionState(link_cache),
    )
    for _ in range(ctx.settings.expand_rounds):
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
        previous_top = _get_top_seqs(current, ctx.settings.expand_top)
        current = _merge_best(current, [item for item, _, _ in followed])
        unchanged = (
            unchanged + 1 if _get_top_seqs(current, ctx.settings.expand_top) == previous_top else 0
        )
        if unchanged >= ctx.settings.expand_patience:
            break
    return current, expansion_labels


def _pick_seeds(
    scored: Sequence[ScoredCandidate], facts: Mapping[int, Fact], limit: int
) -> list[ScoredCandidate]:
    """The best memories, and the best nodes of the graph that the query names by a word."""
    best = keep_best_per_fact([item for item in scored if item.candidate.seq in facts])
    memories = [item for item in best if facts[item.candidate.seq].kind != NODE]
    nodes = [
        item for item in best if facts[item.candidate.seq].kind == NODE and item.candidate.words
    ]
    return sort_by_score((*memories[:limit], *nodes[:limit]))


def _get_top_seqs(scored: Sequence[ScoredCandidate], size: int) -> list[int]:
    return [item.candidate.seq for item in keep_best_per_fact(take_first_facts(scored, size))]


def _merge_best(
    scored: Sequence[ScoredCandidate], found: Iterable[ScoredCandidate]
) -> list[ScoredCandidate]:
    """All of them, the better of two where a passage is in both."""
    best = {(item.candidate.seq, item.candidate.slot): item for item in scored}
    for item in found:
        existing = best.get((item.candidate.seq, item.candidate.slot))
        if existing is None or item.score > existing.score:
            best[item.candidate.seq, item.candidate.slot] = item
    return sort_by_score(best.values())


# Where hits point to --------------------------------------------------------------------------------------------------


def _find_edges(
    ctx: ReadContext,
    index_query: IndexQuery,
    threads: Sequence[str],
    scores: Mapping[str, float],
    lens: Lens | None,
    expansion: ExpansionState,
) -> Flow[ExpansionEdges]:
    """Where these threads point to; of several that point to one, the strongest leads there.

    A node leads to the memories that mention it, and no memory to a node: everything mentions somebody.
    """
    links = yield from load_links(ctx, index_query.query, threads, expansion.link_cache)
    edges: ExpansionEdges = {}
    own_threads, sources = set(threads) - _find_hubs(links, ctx.settings.expand_width), ctx.sources
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
    """Nodes that so many memories mention that it tells nothing of them."""
    mention_counts = Counter(link.dst for link in links if link.rel == MENTIONS)
    return {node for node, count in mention_counts.items() if count > max_mentions}


def _iter_directions(
    link: Link, aliases: Mapping[str, str] | None
) -> Iterator[tuple[str, str, float]]:
    """The ways a link of the graph can be followed, and how firmly; `one` tells which names are taken for one."""
    weight = link.weight
    if link.rel == SAME_AS and aliases is not None:
        if link.src not in aliases or aliases[link.src] != aliases.get(link.dst):
            return
        weight = 1.0
    if link.rel != MENTIONS:
        yield link.src, link.dst, weight
    yield link.dst, link.src, weight


# Following them -------------------------------------------------------------------------------------------------------


def _load_visible(
    ctx: ReadContext, index_query: IndexQuery, threads: Sequence[str], limit: int
) -> Flow[dict[int, Fact]]:
    """The first so many of these threads that the read can see, by position."""
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
    """Each of these facts as it is known, or else by the index; what the graph only names is taken as it is."""
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
    """What is led to and can be seen, each with a score that lies between its own and that of where it was led from."""
    account, as_of = index_query.query.scope.account, index_query.query.as_of
    facts = yield from _load_visible(ctx, index_query, list(edges), ctx.settings.expand_width)
    if not facts:
        return []
    scored = yield from _score_facts(ctx, index_query, ranker, facts, edges, known)
    access_counts: Mapping[str, AccessCount] = {}
    if ctx.settings.expand_hot and as_of.seq >= LATEST:
        access_counts = yield from cache.load_access_counts(
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
    """How much of a lead's score is its own, and how much being in use counts for the rest.

    A member of a topic that has a vector speaks for itself: the topic only says where to look.
    """
    if edge.source == TOPIC_SOURCE and item.candidate.cosine is not None:
        return ctx.settings.topic_own, 0.0
    return ctx.settings.expand_own, ctx.settings.expand_hot
