"""How strong memories are at a point in time, and which of them have faded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from told.core.fact import Fact
from told.core.fading import ClockReadings, FactMention, Strength, compute_strength, list_mentions
from told.core.query import FactQuery
from told.flow import Flow
from told.ledger.clocks import has_earlier_versions, load_mentions, read_fact_clocks
from told.read.gather import ReadContext
from told.read.settle import get_link_seq


def measure_strengths(
    ctx: ReadContext, facts: Sequence[Fact], query: FactQuery, *, with_pace: bool = False
) -> Flow[Mapping[int, Strength]]:
    """How strong each of these facts is at the point in time of a read, by its position in the ledger.

    When one that fades by turns will have faded is known if the pace of turns is asked for.
    """
    sayings_by_seq = yield from load_mentions(
        ctx.store, query.scope.account, facts, get_link_seq(query)
    )
    return (yield from _measure(ctx, facts, sayings_by_seq, query, with_pace=with_pace))


def find_faded(ctx: ReadContext, facts: Sequence[Fact], query: FactQuery) -> Flow[frozenset[int]]:
    """The positions of those facts that have faded at the point in time of a read.

    What was not changed and has not faded since it was written is no weaker for being said again, so only the others
    are looked up.
    """
    mortal_facts = [
        fact
        for fact in facts
        if (kind := ctx.kinds.get(fact.kind)) and not kind.build_curve().is_permanent
    ]
    unchanged = [fact for fact in mortal_facts if not has_earlier_versions(fact)]
    initial_strengths = yield from _measure(
        ctx, unchanged, {fact.seq: list_mentions(fact) for fact in unchanged}, query
    )
    weak_facts = [
        fact
        for fact in mortal_facts
        if has_earlier_versions(fact) or initial_strengths[fact.seq].is_faded
    ]
    strength_by_seq = (yield from measure_strengths(ctx, weak_facts, query)) if weak_facts else {}
    return frozenset(seq for seq, measured in strength_by_seq.items() if measured.is_faded)


def take_unfaded(
    ctx: ReadContext, facts: Iterable[Fact], query: FactQuery, count: int
) -> Flow[tuple[list[Fact], list[Fact]]]:
    """The first of some facts that have not faded, at most so many, and those before them that have."""
    remaining = iter(facts)
    kept: list[Fact] = []
    faded_facts: list[Fact] = []
    while len(kept) < count and (batch := list(islice(remaining, count))):
        faded_seqs = yield from find_faded(ctx, batch, query)
        faded_facts += [fact for fact in batch if fact.seq in faded_seqs]
        kept += [fact for fact in batch if fact.seq not in faded_seqs]
    return kept[:count], faded_facts


def _measure(
    ctx: ReadContext,
    facts: Sequence[Fact],
    sayings_by_seq: Mapping[int, Sequence[FactMention]],
    query: FactQuery,
    *,
    with_pace: bool = False,
) -> Flow[Mapping[int, Strength]]:
    """How strong facts are that were said where it says."""
    clocks_by_home: Mapping[str, ClockReadings] = yield from read_fact_clocks(
        ctx.store, facts, sayings_by_seq, ctx.kinds, query.as_of, ctx.settings, with_pace=with_pace
    )
    floor = ctx.settings.prune_threshold
    return {
        fact.seq: compute_strength(
            fact,
            ctx.kinds.get(fact.kind),
            clocks_by_home[fact.scope.partition_key()],
            sayings_by_seq[fact.seq],
            floor,
        )
        for fact in facts
    }
