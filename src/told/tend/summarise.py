"""Turns in short: by the language model where it is asked for, else their most telling sentences.

What a model writes is an entry, a link from the evidence to the turn that holds the text, so nobody pays twice and an
erasure takes it along. What needs no model is made when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from told.core.condense import condense
from told.core.entry import Draft, Linked
from told.core.errors import Conflict, LLMError
from told.core.fact import Fact
from told.core.scope import Scope
from told.core.text import snippet
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Fault, Guard, Intact, Step, Store, ThreadAt
from told.tend.silence import given_up
from told.tend.tail import STAGE as TAIL
from told.tend.tail import consumer
from told.write.desk import Desk, Plan, settle
from told.write.extract.brief import asked, fenced, page
from told.write.understand import one_at_a_time

STAGE: Final = "summaries"
SUMMARY: Final = "summary"
"""The relation from evidence to the thread of its turn whose metadata holds what a model made of it in short."""

NONE: Final = (0, None)


def summaries(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """What a model last wrote of these turns, by thread; not what it wrote of words that were corrected since."""
    words = {turn.id: turn.evidence or turn.id for turn in turns}
    links = yield from call(store.links, account, list(words))
    about = (link for link in links if link.rel == SUMMARY and link.src == words.get(link.dst))
    said = sorted(about, key=lambda link: link.seq)
    return {link.dst: str(link.meta.get("text", "")) for link in said}


def summary(turn: Fact, written: Mapping[str, str], most: int) -> str:
    """A turn in short: what a model wrote of it, else its most telling sentences."""
    return written.get(turn.id) or condense(turn.text, most)


def summarise(desk: Desk, scope: Scope) -> Flow[tuple[int, tuple[str, ...]]]:
    """Ask the model about every long turn that has left the tail; how many it wrote of, and what went wrong.

    A turn it cannot be asked about is a fault; where it is down altogether the rest waits for the next time.
    """
    llm = desk.mind.thinking
    if llm is None or not desk.settings.summarise:
        return 0, ()
    return (yield from one_at_a_time(desk.mind.alone, _drained(desk, llm, scope)))


def _drained(desk: Desk, llm: LLM, scope: Scope) -> Flow[tuple[int, tuple[str, ...]]]:
    store, account, name = desk.store, scope.account, consumer(STAGE, scope)
    end = yield from call(store.cursor, account, consumer(TAIL, scope))
    written = 0
    while True:
        before = yield from call(store.cursor, account, name)
        turns = yield from call(store.turns, scope, before, end + 1, desk.settings.consumer_batch)
        if not turns:
            return written, ()
        silent = yield from given_up(store, account, [turn.fact for turn in turns])
        open_ = (turn for turn in turns if turn.fact.id not in silent)
        place, long = next((turn for turn in open_ if len(turn.fact.text) > desk.settings.summary_chars), NONE)
        step = Step(name, before, turns[-1].place if long is None else place)
        done = yield from attempt(_next(desk, llm, scope, long, step))
        if isinstance(done, Failure):
            assert long is not None
            if (yield from _failed(desk, account, long, done)) < desk.settings.consumer_attempts:
                return written, (f"Not summarised yet: {done}",)
            yield from call(store.advance, account, name, step.after)
        else:
            written += done


def _next(desk: Desk, llm: LLM, scope: Scope, turn: Fact | None, step: Step) -> Flow[int]:
    """Go past some turns, the last of which is long and not yet summarised."""
    known: Mapping[str, str] = {} if turn is None else (yield from summaries(desk.store, scope.account, [turn]))
    if turn is None or turn.id in known:
        yield from call(desk.store.advance, scope.account, step.consumer, step.after)
        return 0
    yield from _write(desk, llm, turn, step)
    return 1


def _write(desk: Desk, llm: LLM, turn: Fact, step: Step | None) -> Flow[None]:
    """Ask about one turn and keep the answer; what was erased or changed meanwhile is left alone."""
    text = yield from _asked(llm, turn, desk.settings.summary_chars)
    link = Linked(turn.evidence or turn.id, SUMMARY, turn.id, meta={"text": text})
    guards: list[Guard] = [ThreadAt(turn.id, turn.seq), Intact(turn.seq)]
    try:
        yield from settle(desk, turn.scope, Plan([Draft(link, turn.scope, llm.model)], guards, []), step=step)
    except Conflict:
        if step is not None and (yield from call(desk.store.cursor, turn.scope.account, step.consumer)) == step.before:
            yield from call(desk.store.advance, turn.scope.account, step.consumer, step.after)
    yield from _settled(desk.store, turn.scope.account, turn.seq)


def _asked(llm: LLM, turn: Fact, most: int) -> Flow[str]:
    reply, _ = yield from asked(llm, page("summarise").format(most=most), fenced("turn", [turn.text]))
    text = " ".join(str(reply).split()).strip("\"' ")
    if not text:
        raise LLMError(f"{llm.model} wrote no summary.", raw=str(reply))
    return text if len(text) <= most else snippet(text, most)


# Looking after what failed --------------------------------------------------------------------------------------------


def _failed(desk: Desk, account: str, turn: Fact, failure: Failure) -> Flow[int]:
    """Keep a failure; how often the turn has failed by now."""
    yield from call(desk.store.fault, account, STAGE, turn.seq, str(failure))
    return max((fault.attempts for fault in (yield from faults(desk.store, account, [turn.seq]))), default=1)


def _settled(store: Store, account: str, seq: int) -> Flow[None]:
    done = yield from faults(store, account, [seq])
    if done:
        yield from call(store.settle, account, [fault.id for fault in done])


def faults(store: Store, account: str, seqs: Iterable[int]) -> Flow[list[Fault]]:
    """The failures about these turns."""
    wanted = set(seqs)
    known = yield from call(store.faults, account)
    return [fault for fault in known if fault.consumer == STAGE and fault.seq in wanted]


def retry(desk: Desk, account: str, chosen: Sequence[int]) -> Flow[tuple[int, int]]:
    """Ask again about what failed; how many of these faults are mended, and how many are not."""
    known = yield from call(desk.store.faults, account)
    wanted = [fault for fault in known if fault.consumer == STAGE and (not chosen or fault.id in chosen)]
    llm, left = desk.mind.thinking, 0
    for fault in wanted:
        turns = yield from call(desk.store.versions, account, [fault.seq])
        turn = turns.get(fault.seq)
        done = None if turn is None or llm is None else (yield from attempt(_write(desk, llm, turn, None)))
        if turn is None:
            yield from call(desk.store.settle, account, [fault.id])
        elif llm is None or isinstance(done, Failure):
            left += 1
    return len(wanted) - left, left
