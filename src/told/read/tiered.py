"""The fused score of the tiers: 0.6 similarity + 0.3 recency + 0.1 importance, of everything that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from told.core.fact import Fact, Link
from told.core.importance import importance, stated
from told.core.tiers import fused_score, recency
from told.core.topics import IN_EXCHANGE
from told.flow import Flow
from told.read.fuse import SCALE
from told.read.gather import Eye
from told.read.leads import links_of
from told.read.rank import Scored, ordered, seqs_of
from told.read.recall import Recall, fetch
from told.settings import Settings

IMPORTANCE = "importance"


def weighed(eye: Eye, recall: Recall) -> Flow[None]:
    """Add to what was found how recent and important it is, of all of it, and put it into that order."""
    yield from fetch(eye, recall, seqs_of(recall.scored))
    threads = sorted({fact.id for fact in recall.facts.values()})
    links = (yield from links_of(eye, recall.want.find, threads, recall.web)) if recall.found.linked else ()
    now, settings = recall.probe.find.as_of.at, eye.settings
    filed = {link.src for link in links if link.rel == IN_EXCHANGE}
    judged = judgements(links)
    more = {seq: _more(fact, now, settings, fact.id in filed, judged) for seq, fact in recall.facts.items()}
    recall.scored = ordered(_with(one, more.get(one.mark.seq, {})) for one in recall.scored)


def judgements(links: Sequence[Link]) -> dict[str, float]:
    """What threads were last said to be worth."""
    told = sorted((link for link in links if link.rel == IMPORTANCE), key=lambda link: link.seq)
    return {link.dst: link.weight for link in told}


def _more(fact: Fact, now: int, settings: Settings, filed: bool, judged: Mapping[str, float]) -> dict[str, float]:
    """What recency and importance bring; what is filed under an exchange ages as the registry does."""
    said = fact.updated_at if fact.said_at is None else fact.said_at
    fresh = recency(now - said, settings.registry_days if filed else settings.index_days)
    given = stated(fact.meta)
    worth = judged.get(fact.id, importance(fact.text, fact.role or "user")) if given is None else given
    return {"recency": SCALE * fused_score(recency=fresh), "importance": SCALE * fused_score(importance=worth)}


def _with(one: Scored, more: Mapping[str, float]) -> Scored:
    """The same with these parts, in the place of those of the same names."""
    before = sum(one.parts.get(name, 0.0) for name in more)
    return Scored(one.mark, one.score - before + sum(more.values()), {**one.parts, **more}) if more else one
