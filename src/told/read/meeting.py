"""Topics that come up together: both near enough to what was asked, whether or not anything of them was selected."""

from __future__ import annotations

from told.core.query import LATEST
from told.core.score import quantise
from told.flow import Flow, call
from told.read.gather import Eye
from told.read.leads import links_of
from told.read.limits import thresholds
from told.read.rank import seqs_of
from told.read.recall import Recall, fetch, first
from told.read.topics import CONSUMER, latest, nearness


def came_up(eye: Eye, recall: Recall) -> Flow[None]:
    """Count that the topics of the best memories came up together, as far as they are near enough to the query.

    A read of the past counts nothing, nor does one without a vector, or in an account where no topics were made.
    """
    probe, account = recall.probe, recall.probe.find.scope.account
    embedder, past = eye.embedder, probe.find.as_of.seq < LATEST
    if past or embedder is None or probe.vector is None or not recall.found.linked or "topics" not in eye.sources:
        return
    if not (yield from call(eye.store.cursor, account, CONSUMER)):
        return
    best = first(recall.all, eye.settings.topic_reach)
    yield from fetch(eye, recall, seqs_of(best))
    facts = {one.mark.seq: recall.facts[one.mark.seq].id for one in best if one.mark.seq in recall.facts}
    threads = list(dict.fromkeys(facts.values()))
    links = latest((yield from links_of(eye, probe.find, threads, recall.web)))
    topics = sorted({link.dst for thread, link in links.items() if thread in set(threads)})
    if len(topics) > 1:
        near = yield from nearness(eye.store, account, topics, quantise(probe.vector), embedder.model)
        least = thresholds(eye.settings, embedder).near
        eye.overlay.meet(account, (topic for topic, cosine in near.items() if cosine >= least), probe.find.as_of.at)
