"""Build a context of pinned facts, query answers and recent turns within a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from told.flow import Flow, call
from told.model.fact import LEVEL_SLOTS, OVERVIEW_SLOT, PASSAGE_CHARS, TURN, UNLISTED_KINDS, Fact
from told.model.filter import AllOf, parse_filter
from told.model.kind import SAFETY_PREDICATES, Semantics, lookup_predicate
from told.model.query import (
    MAX_LIMIT,
    Bundle,
    FactQuery,
    Hit,
    Trace,
    TracedCandidate,
    exclude_unlisted,
)
from told.retrieval import pipeline, ranking
from told.retrieval.candidates import ReadContext, find_denials
from told.retrieval.listing import take_unfaded
from told.retrieval.render import AssembledContext, ContextItem, ContextRequest, assemble
from told.retrieval.state import SearchRequest, SearchState, StageTimer, intent_to_json
from told.text.tokens import get_piece, normalise_text

CHARS_PER_TOKEN = 4
"""Rough number of characters per token."""

OVERFETCH = 3
"""Offer this many times the text that fits into the budget."""

CHANGED_SUFFIX = " [changed since]"
"""Suffix of a text whose claims were partly superseded."""

USER_SUBJECT = "user"
"""Subject of claims about the user when no name is known."""

FADED_NOTE = "only what is asked for is shown once it has faded"
MIN_LINE_TOKENS = 12
"""Lower bound for the tokens of a rendered line; limits how many items are loaded."""


def estimate_max_items(budget: int) -> int:
    """Return an upper bound for the number of memories that fit into a budget."""
    return min(max(budget // MIN_LINE_TOKENS, 1), MAX_LIMIT)


def build_context(
    ctx: ReadContext,
    request: SearchRequest | None,
    fact_query: FactQuery,
    context_request: ContextRequest,
) -> Flow[Bundle]:
    """Build a prompt block from a search, or from the newest facts if there is no query."""
    pinned, faded = yield from _load_pinned(
        ctx, fact_query, request.belief if request else "latest"
    )
    recent = (
        yield from _load_recent_turns(ctx, fact_query, context_request.tail)
        if context_request.tail
        else _load_nothing()
    )
    state = (
        None
        if request is None
        else (yield from pipeline.retrieve(ctx, replace(request, verbatim=True)))
    )
    answers, more_faded = (
        (_build_answer_items(state, ctx, context_request), [])
        if state
        else (yield from _load_newest_items(ctx, fact_query, context_request))
    )
    faded = [*faded, *more_faded]
    timer = StageTimer(list(state.timer.stages) if state else [])
    if faded:
        timer.record_stage("fade", len(pinned) + len(answers), len(faded), lambda: FADED_NOTE)
    items = [*_build_items(pinned, "pinned"), *_build_items(recent, "recent"), *answers]
    assembled = _assemble_items(ctx, items, context_request, timer)
    hits = tuple({item.hit.fact.seq: item.hit for item in reversed(assembled.items)}.values())[::-1]
    warnings = list(state.warnings) if state else []
    warnings += yield from pipeline.record_access(ctx, fact_query, hits, state)
    if items and not assembled.items:
        warnings.append(f"No memory fits a budget of {context_request.budget} tokens.")
    if assembled.text:
        ctx.on_render(fact_query.scope.account, assembled.text)
    context_trace = Trace(
        request.query if request else "",
        fact_query.as_of,
        timer.build_steps(),
        (*_trace_items(items, assembled), *map(_trace_faded, faded)),
        intent_to_json(state.intent) if state else {},
    )
    return _build_bundle(assembled, context_request.budget, hits, context_trace, warnings)


def _assemble_items(
    ctx: ReadContext,
    items: Sequence[ContextItem],
    context_request: ContextRequest,
    timer: StageTimer,
) -> AssembledContext:
    """Render the items within the budget and record the stage."""
    assembled = assemble(
        items,
        context_request.budget,
        ctx.settings.encoding,
        format=context_request.format,
        pinned_share=ctx.settings.pinned_share,
        zone=ctx.settings.zone or None,
    )
    usage = f"{assembled.tokens} of {context_request.budget} tokens"
    timer.record_stage(
        "assemble", len(assembled.items), len(items) - len(assembled.items), lambda: usage
    )
    return assembled


def _build_bundle(
    assembled: AssembledContext,
    budget: int,
    hits: tuple[Hit, ...],
    context_trace: Trace,
    warnings: Sequence[str],
) -> Bundle:
    return Bundle(
        assembled.text,
        assembled.tokens,
        budget,
        hits,
        context_trace,
        tuple(warnings),
        assembled.messages,
    )


def _build_answer_items(
    state: SearchState, ctx: ReadContext, context_request: ContextRequest
) -> list[ContextItem]:
    """Build an item per matching passage; memories matched by a summary may be shown in full.

    Stop once several times the budget is on offer; texts too long for the budget do not count.
    """
    room = context_request.budget * CHARS_PER_TOKEN * OVERFETCH
    scale = ranking.build_calibration(state.index_result, ctx.settings)
    complete_seqs: set[int] = set()
    included_seqs: set[int] = set()
    items: list[ContextItem] = []
    for scored_item in state.scored:
        fact, slot = state.facts[scored_item.candidate.seq], scored_item.candidate.slot
        if fact.seq in complete_seqs or (slot in LEVEL_SLOTS and fact.seq in included_seqs):
            continue
        is_repeat = fact.seq in included_seqs
        included_seqs.add(fact.seq)
        if slot in LEVEL_SLOTS:
            complete_seqs.add(fact.seq)
        hit = pipeline.build_hit(scored_item, state, scale(scored_item.score))
        variants = _build_variants(fact, slot)
        if hit.superseded:
            variants = tuple([f"{variant}{CHANGED_SUFFIX}" for variant in variants])
        items.append(
            ContextItem(
                replace(hit, slot=0) if slot in LEVEL_SLOTS else hit,
                variants[:1] if is_repeat else variants,
            )
        )
        shortest = min(map(len, variants))
        room -= shortest if shortest <= context_request.budget * CHARS_PER_TOKEN else 0
        if room < 0:
            break
    return items


def _build_variants(fact: Fact, slot: int) -> tuple[str, ...]:
    """Return the texts that may represent a passage, longest first."""
    is_whole = slot in LEVEL_SLOTS or len(fact.text) <= PASSAGE_CHARS
    return (
        fact.text if is_whole else get_piece(fact.text, PASSAGE_CHARS, slot),
        *(text for _, text in _list_shorter_forms(fact)),
    )


def _list_shorter_forms(fact: Fact) -> list[tuple[str, str]]:
    """Return the (level name, text) pairs of a fact's summaries."""
    meta = fact.meta
    return (
        [(name, text) for name in LEVEL_SLOTS.values() if isinstance(text := meta.get(name), str)]
        if meta
        else []
    )


def _build_items(facts: Sequence[Fact], section: str) -> list[ContextItem]:
    return [
        ContextItem(Hit(fact, 1.0), _build_variants(fact, OVERVIEW_SLOT), section) for fact in facts
    ]


def _load_nothing() -> Flow[Sequence[Fact]]:
    """Return no facts, as a flow."""
    return ()
    yield


def _load_newest_items(
    ctx: ReadContext, fact_query: FactQuery, context_request: ContextRequest
) -> Flow[tuple[list[ContextItem], list[Fact]]]:
    """Return items for the newest facts, and the facts that have faded."""
    facts = yield from _load_newest(ctx, exclude_unlisted(fact_query))
    kept, faded = yield from take_unfaded(
        ctx,
        facts,
        fact_query,
        min(estimate_max_items(context_request.budget), fact_query.limit or MAX_LIMIT),
    )
    return _build_items(kept, "recalled"), faded


def _load_recent_turns(ctx: ReadContext, fact_query: FactQuery, count: int) -> Flow[Sequence[Fact]]:
    """Return the newest turns verbatim; skip claims extracted from one of them."""
    facts = yield from _load_newest(ctx, fact_query)
    turn_evidence = {fact.evidence for fact in facts if fact.kind == TURN}
    visible = (
        fact
        for fact in facts
        if fact.kind == TURN
        or (fact.kind not in UNLISTED_KINDS and fact.evidence not in turn_evidence)
    )
    return list(islice(visible, count))


def _load_newest(ctx: ReadContext, fact_query: FactQuery) -> Flow[Sequence[Fact]]:
    """Return the visible facts, newest first."""
    facts = yield from call(ctx.store.find_facts, replace(fact_query, limit=None, offset=0))
    denied = find_denials(facts, ctx.guards)
    return [fact for fact in reversed(facts) if fact.seq not in denied]


def _load_pinned(
    ctx: ReadContext, fact_query: FactQuery, belief: str
) -> Flow[tuple[list[Fact], list[Fact]]]:
    """Return believed facts of the pinned kinds, and the faded ones.

    They are sorted oldest first so that the start of a context stays the same.
    """
    kinds = ctx.settings.pinned_kinds.replace(",", " ").split()
    if not kinds:
        return [], []
    pinned_query = replace(
        fact_query,
        filter=AllOf((fact_query.filter, parse_filter({"kind": {"in": kinds}}))),
        limit=MAX_LIMIT,
        offset=0,
    )
    facts, conflicts = yield from pipeline.list_facts(ctx, pinned_query, belief)
    believed = [
        fact for fact in facts if fact.id not in conflicts.replaced_by and _is_lasting(fact)
    ]
    return (yield from take_unfaded(ctx, believed, fact_query, MAX_LIMIT))


def _is_lasting(fact: Fact) -> bool:
    """Return True if a fact belongs in every context.

    It must be about the user and either single-valued or safety-relevant: the user's home and every
    allergy qualify, the things the user owns and other people's homes do not.
    """
    definition = None if fact.predicate is None else lookup_predicate(fact.predicate)
    is_lasting = (
        definition is None
        or definition.semantics is not Semantics.MULTI
        or definition.name in SAFETY_PREDICATES
    )
    is_about_user = fact.subject is None or normalise_text(fact.subject) in (
        USER_SUBJECT,
        normalise_text(fact.scope.user_id or ""),
    )
    return is_lasting and is_about_user


def _trace_faded(fact: Fact) -> TracedCandidate:
    """Return the trace entry of a faded fact."""
    return TracedCandidate(fact.id, fact.seq, fact.text, 0.0, {}, "fade", False, "has faded")


def _trace_items(
    items: Sequence[ContextItem], assembled: AssembledContext
) -> Iterator[TracedCandidate]:
    for item in items:
        hit = item.hit
        level = assembled.levels.get((hit.fact.seq, hit.slot))
        level_name = "content" if not level else _list_shorter_forms(hit.fact)[level - 1][0]
        reason = "" if level is not None else "does not fit the budget"
        yield TracedCandidate(
            hit.fact.id,
            hit.fact.seq,
            hit.fact.text,
            hit.score,
            hit.parts,
            "assemble",
            level is not None,
            reason,
            (item.section,),
            level_name,
        )
