"""Turns in short: by the language model where it is asked for, else their most telling sentences.

What a model writes is an entry, a link from the evidence to the turn that holds the text, so nobody pays twice and an
erasure takes it along. What needs no model is made when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from told.core.condense import extract_summary
from told.core.entry import Draft, Linked
from told.core.errors import Conflict, LLMError
from told.core.fact import Fact
from told.core.scope import Scope
from told.core.text import make_snippet
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import LLM, CursorStep, EntryIntact, Fault, Guard, Store, ThreadAt
from told.tend.silence import find_retracted_turns
from told.tend.tail import STAGE as TAIL
from told.tend.tail import get_cursor_name
from told.write.desk import WriteContext, WritePlan, commit_plan
from told.write.extract.brief import ask_llm, fence_as_data, load_prompt
from told.write.understand import run_exclusive

STAGE: Final = "summaries"
SUMMARY: Final = "summary"
"""The relation from evidence to the thread of its turn whose metadata holds what a model made of it in short."""

NO_TURN: Final = (0, None)


def load_summaries(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """What a model last wrote of these turns, by thread; not what it wrote of words that were corrected since."""
    evidence_by_thread = {turn.id: turn.evidence or turn.id for turn in turns}
    links = yield from call(store.find_links, account, list(evidence_by_thread))
    summary_links = (
        link
        for link in links
        if link.rel == SUMMARY and link.src == evidence_by_thread.get(link.dst)
    )
    ordered_links = sorted(summary_links, key=lambda link: link.seq)
    return {link.dst: str(link.meta.get("text", "")) for link in ordered_links}


def get_summary(turn: Fact, summaries_by_thread: Mapping[str, str], max_chars: int) -> str:
    """A turn in short: what a model wrote of it, else its most telling sentences."""
    return summaries_by_thread.get(turn.id) or extract_summary(turn.text, max_chars)


def summarise_turns(ctx: WriteContext, scope: Scope) -> Flow[tuple[int, tuple[str, ...]]]:
    """Ask the model about every long turn that has left the tail; how many it wrote of, and what went wrong.

    A turn it cannot be asked about is a fault; where it is down altogether the rest waits for the next time.
    """
    llm = ctx.extraction.background_llm
    if llm is None or not ctx.settings.summarise:
        return 0, ()
    return (yield from run_exclusive(ctx.extraction.mutex, _summarise_pending(ctx, llm, scope)))


def _summarise_pending(
    ctx: WriteContext, llm: LLM, scope: Scope
) -> Flow[tuple[int, tuple[str, ...]]]:
    store, account, name = ctx.store, scope.account, get_cursor_name(STAGE, scope)
    end = yield from call(store.get_cursor, account, get_cursor_name(TAIL, scope))
    count = 0
    while True:
        before = yield from call(store.get_cursor, account, name)
        turns = yield from call(
            store.list_turns, scope, before, end + 1, ctx.settings.consumer_batch
        )
        if not turns:
            return count, ()
        retracted = yield from find_retracted_turns(store, account, [turn.fact for turn in turns])
        active = (turn for turn in turns if turn.fact.id not in retracted)
        position, long_turn = next(
            (turn for turn in active if len(turn.fact.text) > ctx.settings.summary_chars), NO_TURN
        )
        step = CursorStep(name, before, turns[-1].said_seq if long_turn is None else position)
        outcome = yield from catch_failure(_process_next(ctx, llm, scope, long_turn, step))
        if isinstance(outcome, Failure):
            assert long_turn is not None
            if (
                yield from _record_failure(ctx, account, long_turn, outcome)
            ) < ctx.settings.consumer_attempts:
                return count, (f"Not summarised yet: {outcome}",)
            yield from call(store.advance_cursor, account, name, step.after)
        else:
            count += outcome


def _process_next(
    ctx: WriteContext, llm: LLM, scope: Scope, turn: Fact | None, step: CursorStep
) -> Flow[int]:
    """Go past some turns, the last of which is long and not yet summarised."""
    summaries: Mapping[str, str] = (
        {} if turn is None else (yield from load_summaries(ctx.store, scope.account, [turn]))
    )
    if turn is None or turn.id in summaries:
        yield from call(ctx.store.advance_cursor, scope.account, step.consumer, step.after)
        return 0
    yield from _write_summary(ctx, llm, turn, step)
    return 1


def _write_summary(ctx: WriteContext, llm: LLM, turn: Fact, step: CursorStep | None) -> Flow[None]:
    """Ask about one turn and keep the answer; what was erased or changed meanwhile is left alone."""
    text = yield from _ask_for_summary(llm, turn, ctx.settings.summary_chars)
    link = Linked(turn.evidence or turn.id, SUMMARY, turn.id, meta={"text": text})
    guards: list[Guard] = [ThreadAt(turn.id, turn.seq), EntryIntact(turn.seq)]
    try:
        yield from commit_plan(
            ctx, turn.scope, WritePlan([Draft(link, turn.scope, llm.model)], guards, []), step=step
        )
    except Conflict:
        if (
            step is not None
            and (yield from call(ctx.store.get_cursor, turn.scope.account, step.consumer))
            == step.before
        ):
            yield from call(ctx.store.advance_cursor, turn.scope.account, step.consumer, step.after)
    yield from _resolve_faults(ctx.store, turn.scope.account, turn.seq)


def _ask_for_summary(llm: LLM, turn: Fact, max_chars: int) -> Flow[str]:
    reply, _ = yield from ask_llm(
        llm, load_prompt("summarise").format(most=max_chars), fence_as_data("turn", [turn.text])
    )
    text = " ".join(str(reply).split()).strip("\"' ")
    if not text:
        raise LLMError(f"{llm.model} wrote no summary.", raw=str(reply))
    return text if len(text) <= max_chars else make_snippet(text, max_chars)


# Looking after what failed --------------------------------------------------------------------------------------------


def _record_failure(ctx: WriteContext, account: str, turn: Fact, failure: Failure) -> Flow[int]:
    """Keep a failure; how often the turn has failed by now."""
    yield from call(ctx.store.record_fault, account, STAGE, turn.seq, str(failure))
    return max(
        (fault.attempts for fault in (yield from load_faults(ctx.store, account, [turn.seq]))),
        default=1,
    )


def _resolve_faults(store: Store, account: str, seq: int) -> Flow[None]:
    faults = yield from load_faults(store, account, [seq])
    if faults:
        yield from call(store.clear_faults, account, [fault.id for fault in faults])


def load_faults(store: Store, account: str, seqs: Iterable[int]) -> Flow[list[Fault]]:
    """The failures about these turns."""
    wanted_seqs = set(seqs)
    faults = yield from call(store.list_faults, account)
    return [fault for fault in faults if fault.consumer == STAGE and fault.seq in wanted_seqs]


def retry_faults(
    ctx: WriteContext, account: str, fault_ids: Sequence[int]
) -> Flow[tuple[int, int]]:
    """Ask again about what failed; how many of these faults are mended, and how many are not."""
    faults = yield from call(ctx.store.list_faults, account)
    selected = [
        fault
        for fault in faults
        if fault.consumer == STAGE and (not fault_ids or fault.id in fault_ids)
    ]
    llm, unresolved = ctx.extraction.background_llm, 0
    for fault in selected:
        turns = yield from call(ctx.store.facts_by_seq, account, [fault.seq])
        turn = turns.get(fault.seq)
        outcome = (
            None
            if turn is None or llm is None
            else (yield from catch_failure(_write_summary(ctx, llm, turn, None)))
        )
        if turn is None:
            yield from call(ctx.store.clear_faults, account, [fault.id])
        elif llm is None or isinstance(outcome, Failure):
            unresolved += 1
    return len(selected) - unresolved, unresolved
