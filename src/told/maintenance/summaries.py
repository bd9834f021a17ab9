"""Summaries of long turns, and the registry that files cold turns as exchanges.

An exchange is a user turn with the agent's reply. It is stored as links from its turns to an
exchange id, the user's turn first. No text is copied, turns stay searchable, and erasing a turn
erases its link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, Final, TypeGuard

from told.errors import Conflict, LLMError
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ledger import consumer
from told.ledger.consumer import Consumer, Job, JobBatch, drain, get_cursor_name, skip_step
from told.maintenance.tail import (
    AUTHOR,
    find_retracted_turns,
    find_tail_start,
    load_importance,
)
from told.maintenance.tail import STAGE as TAIL
from told.model.entry import Draft, Linked, Verb
from told.model.fact import NEVER, Fact
from told.model.salience import MINUTE_US, is_cold
from told.model.scope import Scope
from told.ports import LLM, CursorStep, EntryIntact, Guard, Store, StoredTurn, ThreadAt
from told.text.dates import format_iso
from told.text.importance import INFORMATIVE_SCORE, extract_summary
from told.text.tokens import make_snippet

SUMMARY_STAGE: Final = "summaries"
SUMMARY: Final = "summary"
"""The relation from evidence to the thread of its turn; its metadata holds the summary."""


def load_summaries(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """Return the latest summaries by thread, except those of text that was corrected since."""
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
    """Return the model's summary of a turn, or else its most informative sentences."""
    return summaries_by_thread.get(turn.id) or extract_summary(turn.text, max_chars)


def summarise_turns(ctx: WriteContext, scope: Scope) -> Flow[tuple[int, tuple[str, ...]]]:
    """Summarise every long turn that has left the tail; return the count and warnings."""
    if ctx.extraction.background_llm is None or not ctx.settings.summarise:
        return 0, ()
    end = yield from call(ctx.store.get_cursor, scope.account, get_cursor_name(TAIL, scope))
    load_batch = partial(_load_long_turn, ctx, scope, end)
    run = yield from drain(ctx.store, scope.account, _make_summary_consumer(ctx, load_batch))
    warnings = () if run.failure is None else (f"Not summarised yet: {run.failure}",)
    return len(run.results), warnings


def _make_summary_consumer(
    ctx: WriteContext, load_batch: Callable[[], Flow[JobBatch[Fact] | None]]
) -> Consumer[Fact, None]:
    return Consumer(
        name=SUMMARY_STAGE,
        load_batch=load_batch,
        process=partial(_write_summary, ctx),
        attempts=ctx.settings.maintenance.consumer_attempts,
        skips_permanent=False,
        keeps_replies=False,
        mutex=ctx.extraction.mutex,
    )


def _load_long_turn(ctx: WriteContext, scope: Scope, end: int) -> Flow[JobBatch[Fact] | None]:
    """Return the next long turn without a summary before a position, if the next page has one."""
    store, account, name = ctx.store, scope.account, get_cursor_name(SUMMARY_STAGE, scope)
    before = yield from call(store.get_cursor, account, name)
    turns = yield from call(
        store.list_turns, scope, before, end + 1, ctx.settings.maintenance.consumer_batch
    )
    if not turns:
        return None
    facts = [turn.fact for turn in turns]
    retracted = yield from find_retracted_turns(store, account, facts)
    for seq, turn in turns:
        if turn.id not in retracted and len(turn.text) > ctx.settings.maintenance.summary_chars:
            if (yield from load_summaries(store, account, [turn])):
                return JobBatch(cursors={name: seq})
            return JobBatch([Job(turn, CursorStep(name, before, seq), (turn.seq,))])
    return JobBatch(cursors={name: turns[-1].said_seq})


def _write_summary(ctx: WriteContext, turn: Fact, step: CursorStep | None) -> Flow[None]:
    """Summarise one turn and commit the summary, unless the turn was changed or erased since."""
    llm = ctx.extraction.background_llm
    if llm is None:
        raise LLMError("No language model is configured.")
    text = yield from _ask_for_summary(llm, turn, ctx.settings.maintenance.summary_chars)
    link = Linked(turn.evidence or turn.id, SUMMARY, turn.id, meta={"text": text})
    guards: list[Guard] = [ThreadAt(turn.id, turn.seq), EntryIntact(turn.seq)]
    try:
        yield from commit_plan(
            ctx, turn.scope, WritePlan([Draft(link, turn.scope, llm.model)], guards, []), step=step
        )
    except Conflict:
        if step is not None:
            yield from skip_step(ctx.store, turn.scope.account, step)


def _ask_for_summary(llm: LLM, turn: Fact, max_chars: int) -> Flow[str]:
    reply, _ = yield from ask_llm(
        llm, load_prompt("summarise").format(most=max_chars), fence_as_data("turn", [turn.text])
    )
    text = " ".join(str(reply).split()).strip("\"' ")
    if not text:
        raise LLMError(f"{llm.model} wrote no summary.", raw=str(reply))
    return text if len(text) <= max_chars else make_snippet(text, max_chars)


def retry_faults(
    ctx: WriteContext, account: str, fault_ids: Sequence[int]
) -> Flow[tuple[int, int]]:
    """Summarise again the turns of faults; return how many faults are resolved and remain."""

    def load_nothing() -> Flow[JobBatch[Fact] | None]:
        yield from ()
        return None

    def load_job(seq: int) -> Flow[Job[Fact] | None]:
        turns = yield from call(ctx.store.find_versions, account, seqs=[seq])
        return Job(turns[0], seqs=(seq,)) if turns else None

    summariser = _make_summary_consumer(ctx, load_nothing)
    return (yield from consumer.retry_faults(ctx.store, account, summariser, fault_ids, load_job))


# Exchanges

STAGE, CAP = "registry", "cap"
IN_EXCHANGE = "in_exchange"
"""The relation from a turn to its exchange; the weight is the importance when it was filed."""

Exchange = tuple[Fact, ...]


def pair_turns(turns: Iterable[Fact], minutes: float) -> list[Exchange]:
    """Pair each user turn with the agent turn right after it, if that came within `minutes`.

    All other turns are exchanges of one turn.
    """
    exchanges: list[Exchange] = []
    for turn in turns:
        previous = exchanges[-1] if exchanges else ()
        is_reply = turn.role == "assistant" and len(previous) == 1 and previous[0].role == "user"
        if is_reply and abs(get_said_at(turn) - get_said_at(previous[0])) <= minutes * MINUTE_US:
            exchanges[-1] = (previous[0], turn)
        else:
            exchanges.append((turn,))
    return exchanges


def get_said_at(turn: Fact) -> int:
    """Return when a turn was said, or else when it was stored."""
    return turn.created_at if turn.said_at is None else turn.said_at


def file_exchanges(ctx: WriteContext, scope: Scope, *, force: bool = False) -> Flow[int]:
    """File every cold exchange outside the tail, or all of them with `force`; return the count."""
    settings, now = ctx.settings, ctx.id_generator.now()
    end = (
        NEVER
        if force
        else (yield from find_tail_start(ctx.store, scope, settings.maintenance.tail_size))
    )

    def is_ready(turn: StoredTurn) -> bool:
        age = now - turn.fact.created_at
        is_aged = force or is_cold(
            age,
            settings.maintenance.index_days,
            settings.maintenance.cold_recency,
            settings.maintenance.cold_minutes,
        )
        return turn.said_seq < end and is_aged

    filing: Consumer[Sequence[Exchange], int] = Consumer(
        name=STAGE,
        load_batch=partial(_load_ready_exchanges, ctx, scope, is_ready),
        process=partial(_commit_exchanges, ctx, scope),
        conflict_attempts=settings.ingestion.conflict_retries,
    )
    run = yield from drain(ctx.store, scope.account, filing)
    run.raise_failure()
    return sum(run.results)


def _load_ready_exchanges(
    ctx: WriteContext, scope: Scope, is_ready: Callable[[StoredTurn], bool]
) -> Flow[JobBatch[Sequence[Exchange]] | None]:
    """Return the exchanges of the next page of turns that are ready to file.

    A user turn at the end of a full page is left for the next page, which may start with the reply.
    """
    store, account, name = ctx.store, scope.account, get_cursor_name(STAGE, scope)
    page_size = max(ctx.settings.maintenance.consumer_batch, 2)
    before = yield from call(store.get_cursor, account, name)
    turns = yield from call(store.list_turns, scope, before, NEVER, page_size)
    unfiled = yield from _load_unfiled(store, account, turns)
    exchanges = pair_turns(unfiled, ctx.settings.maintenance.pair_minutes)
    if (
        len(turns) == page_size
        and exchanges
        and exchanges[-1] == (turns[-1].fact,)
        and turns[-1].fact.role == "user"
    ):
        del exchanges[-1]
    ready_ids = {turn.fact.id for turn in turns if is_ready(turn)}
    chosen = list(
        takewhile(lambda exchange: all(turn.id in ready_ids for turn in exchange), exchanges)
    )
    unfiled_ids = {turn.id for turn in unfiled} - {
        turn.id for exchange in chosen for turn in exchange
    }
    completed = list(takewhile(lambda turn: turn.fact.id in ready_ids - unfiled_ids, turns))
    if not completed:
        return None
    return JobBatch([Job(chosen, CursorStep(name, before, completed[-1].said_seq))])


def _commit_exchanges(
    ctx: WriteContext, scope: Scope, chosen: Sequence[Exchange], step: CursorStep | None
) -> Flow[int]:
    """Commit the links of some exchanges with the cursor step; return how many there are."""
    turns = [turn for exchange in chosen for turn in exchange]
    importance_by_id = yield from load_importance(ctx.store, scope.account, turns)
    drafts: list[Draft] = []
    for exchange in chosen:
        id_ = ctx.id_generator.new_id()
        drafts += [
            Draft(Linked(turn.id, IN_EXCHANGE, id_, importance_by_id[turn.id]), scope, AUTHOR)
            for turn in exchange
        ]
    guards: list[Guard] = [ThreadAt(turn.id, turn.seq) for turn in turns]
    yield from commit_plan(ctx, scope, WritePlan(drafts, guards, []), step=step)
    return len(chosen)


def _load_unfiled(store: Store, account: str, turns: Sequence[StoredTurn]) -> Flow[list[Fact]]:
    """Return the turns that are in no exchange and not fully retracted."""
    facts = [turn.fact for turn in turns]
    exchange_ids = yield from load_exchange_ids(store, account, facts)
    retracted = yield from find_retracted_turns(store, account, facts)
    return [fact for fact in facts if fact.id not in exchange_ids and fact.id not in retracted]


def load_exchange_ids(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """Return the exchange id of each turn that has one."""
    threads = {turn.id for turn in turns}
    links = yield from call(store.find_links, account, list(threads))
    return {link.src: link.dst for link in links if link.rel == IN_EXCHANGE and link.src in threads}


# Index size


def enforce_index_cap(ctx: WriteContext, scope: Scope) -> Flow[int]:
    """File the oldest, least important exchanges early while the index is over its cap."""
    max_turns = ctx.settings.maintenance.index_most
    if not max_turns:
        return 0
    end = yield from find_tail_start(ctx.store, scope, ctx.settings.maintenance.tail_size)
    total = 0
    for max_importance in (INFORMATIVE_SCORE, 2.0):
        excess = (yield from count_unfiled(ctx, scope, end))[0] - max_turns
        total += yield from _file_oldest(ctx, scope, end, excess, max_importance)
    return total


def _file_oldest(
    ctx: WriteContext, scope: Scope, end: int, excess: int, max_importance: float
) -> Flow[int]:
    """File the oldest exchanges below an importance until `excess` turns are out of the index."""
    store = ctx.store
    account = scope.account
    page_size = max(ctx.settings.maintenance.consumer_batch, 2)
    after, total = (yield from call(store.get_cursor, account, get_cursor_name(STAGE, scope))), 0
    while excess > 0 and (
        turns := (yield from call(store.list_turns, scope, after, end, page_size))
    ):
        exchanges = pair_turns(
            (yield from _load_unfiled(store, account, turns)), ctx.settings.maintenance.pair_minutes
        )
        if len(turns) == page_size and exchanges and exchanges[-1] == (turns[-1].fact,):
            turns = turns[:-1]
            del exchanges[-1]
        importance_by_id = yield from load_importance(
            store, account, [turn for exchange in exchanges for turn in exchange]
        )
        unimportant = [
            exchange
            for exchange in exchanges
            if max(importance_by_id[turn.id] for turn in exchange) < max_importance
        ]
        chosen: list[Exchange] = []
        while unimportant and excess > 0:
            chosen.append(unimportant.pop(0))
            excess -= len(chosen[-1])
        yield from _commit_exchanges(ctx, scope, chosen, None)
        total, after = total + len(chosen), turns[-1].said_seq
    return total


def count_unfiled(ctx: WriteContext, scope: Scope, end: int) -> Flow[tuple[int, int]]:
    """Count the unfiled turns before a position, and how many of them are cold."""
    settings, now, name = ctx.settings, ctx.id_generator.now(), get_cursor_name(STAGE, scope)
    after = yield from call(ctx.store.get_cursor, scope.account, name)
    count = cold_count = 0
    while turns := (
        yield from call(
            ctx.store.list_turns, scope, after, end, settings.maintenance.consumer_batch
        )
    ):
        unfiled = yield from _load_unfiled(ctx.store, scope.account, turns)
        ages = (now - turn.created_at for turn in unfiled)
        cold_count += sum(
            is_cold(
                age,
                settings.maintenance.index_days,
                settings.maintenance.cold_recency,
                settings.maintenance.cold_minutes,
            )
            for age in ages
        )
        count, after = count + len(unfiled), turns[-1].said_seq
    return count, cold_count


# Reading


@dataclass(frozen=True, slots=True)
class FiledExchange:
    """An exchange: its current turns, the highest importance among them, and a summary."""

    id: str
    turns: Exchange
    importance: float
    summary: str

    def as_dict(self) -> dict[str, Any]:
        """Return the exchange as a JSON object."""
        text_by_role = {turn.role: turn.text for turn in reversed(self.turns)}
        return {
            "id": self.id,
            "user": text_by_role.get("user"),
            "agent": text_by_role.get("assistant"),
            "summary": self.summary,
            "importance": self.importance,
            "at": format_iso(get_said_at(self.turns[0])),
            "memories": [turn.id for turn in self.turns],
        }


def load_newest(
    ctx: WriteContext, scopes: Sequence[Scope], limit: int
) -> Flow[list[FiledExchange]]:
    """Return the newest exchanges of some scopes, newest first."""
    ids: dict[str, int] = {}
    for scope in scopes:
        ids.update((yield from _load_last_exchanges(ctx, scope, limit)))
    newest_ids = sorted(ids, key=lambda id_: -ids[id_])[:limit]
    return (yield from _load_exchanges(ctx, scopes[0].account, newest_ids)) if newest_ids else []


def count_exchanges(ctx: WriteContext, scope: Scope) -> Flow[int]:
    """Count the exchanges of exactly this scope that have a current turn."""
    return len((yield from _load_last_exchanges(ctx, scope, NEVER)))


def _load_last_exchanges(ctx: WriteContext, scope: Scope, limit: int) -> Flow[Mapping[str, int]]:
    """Return the newest exchanges of a scope, each with the position of its newest turn."""
    ids: dict[str, int] = {}
    before, page_size = NEVER, ctx.settings.maintenance.consumer_batch
    while len(ids) < limit and (
        turns := (yield from call(ctx.store.list_turns, scope, 0, before, page_size, newest=True))
    ):
        facts = [turn.fact for turn in turns]
        exchange_ids = yield from load_exchange_ids(ctx.store, scope.account, facts)
        retracted = yield from find_retracted_turns(ctx.store, scope.account, facts)
        for place, fact in reversed(turns):
            if fact.id in exchange_ids and fact.id not in retracted:
                ids.setdefault(exchange_ids[fact.id], place)
        before = turns[0].said_seq
    return dict(list(ids.items())[:limit])


def _load_exchanges(
    ctx: WriteContext, account: str, ids: Sequence[str]
) -> Flow[list[FiledExchange]]:
    """Load exchanges from their links, without turns that are no longer current."""
    members: dict[str, list[Fact]] = {}
    for id_ in ids:
        for entry in (yield from call(ctx.store.scan_entries, account, thread=id_)):
            fact = (
                (yield from call(ctx.store.get_fact, account, entry.verb.src))
                if _is_exchange_link(entry.verb)
                else None
            )
            members.setdefault(id_, []).extend([] if fact is None else [fact])
    turns = [turn for exchange in members.values() for turn in exchange]
    retracted = yield from find_retracted_turns(ctx.store, account, turns)
    members = {
        id_: [turn for turn in exchange if turn.id not in retracted]
        for id_, exchange in members.items()
    }
    importance_by_id = yield from load_importance(ctx.store, account, turns)
    summaries_by_thread = yield from load_summaries(ctx.store, account, turns)
    max_chars = ctx.settings.maintenance.summary_chars
    return [
        _build_exchange(
            id_,
            exchange,
            importance_by_id,
            {turn.id: get_summary(turn, summaries_by_thread, max_chars) for turn in exchange},
        )
        for id_, exchange in members.items()
        if exchange
    ]


def _is_exchange_link(verb: Verb | None) -> TypeGuard[Linked]:
    """Return whether an entry links a turn to its exchange."""
    return isinstance(verb, Linked) and verb.rel == IN_EXCHANGE


def _build_exchange(
    id_: str,
    turns: Sequence[Fact],
    importance_by_id: Mapping[str, float],
    summaries: Mapping[str, str],
) -> FiledExchange:
    text = " → ".join(f"{_get_speaker_label(turn)}: {summaries[turn.id]}" for turn in turns)
    return FiledExchange(id_, tuple(turns), max(importance_by_id[turn.id] for turn in turns), text)


def _get_speaker_label(turn: Fact) -> str:
    return "Agent" if turn.role == "assistant" else "User"
