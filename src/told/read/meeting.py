"""Topics that come up together: both near enough to what was asked, whether or not anything of them was selected."""

from __future__ import annotations

from told.core.query import LATEST
from told.core.score import quantise
from told.flow import Flow, call
from told.read.gather import ReadContext
from told.read.leads import load_links
from told.read.limits import resolve_thresholds
from told.read.rank import list_seqs
from told.read.recall import SearchState, fetch_facts, take_first_facts
from told.read.topics import CONSUMER, find_current_topic_links, load_topic_cosines


def record_topic_cooccurrence(ctx: ReadContext, state: SearchState) -> Flow[None]:
    """Count that the topics of the best memories came up together, as far as they are near enough to the query.

    A read of the past counts nothing, nor does one without a vector, or in an account where no topics were made.
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
    top_items = take_first_facts(state.all_scored, ctx.settings.topic_reach)
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
