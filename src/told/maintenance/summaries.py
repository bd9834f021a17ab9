"""The registry: what a user said and what the agent answered, filed together once both are cold.

An exchange is no more than links from its turns to an id of its own, the user's turn first. No text is repeated and no
turn is lost to search; a turn that is erased takes its link along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, TypeGuard

from told.errors import Conflict, LLMError
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ingest.context import WriteContext, WritePlan, commit_plan
from told.ingest.queue import run_exclusive
from told.ledger.commit import retry_on_conflict
from told.ledger.consumer import Failure, catch_failure
from told.maintenance.tail import (
    AUTHOR,
    find_retracted_turns,
    find_tail_start,
    get_cursor_name,
    load_importance,
)
from told.maintenance.tail import STAGE as TAIL
from told.model.entry import Draft, Linked, Verb
from told.model.fact import NEVER, Fact
from told.model.salience import MINUTE_US, is_cold
from told.model.scope import Scope
from told.ports import LLM, CursorStep, EntryIntact, Fault, Guard, Store, StoredTurn, ThreadAt
from told.text.dates import format_iso
from told.text.importance import INFORMATIVE_SCORE, extract_summary
from told.text.tokens import make_snippet

SUMMARY_STAGE: Final = "summaries"
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
    store, account, name = ctx.store, scope.account, get_cursor_name(SUMMARY_STAGE, scope)
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
            yield from call(store.update_consumer, account, name, cursor=step.after)
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
        yield from call(ctx.store.update_consumer, scope.account, step.consumer, cursor=step.after)
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
            yield from call(
                ctx.store.update_consumer, turn.scope.account, step.consumer, cursor=step.after
            )
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
    yield from call(ctx.store.record_fault, account, SUMMARY_STAGE, turn.seq, str(failure))
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
    return [
        fault for fault in faults if fault.consumer == SUMMARY_STAGE and fault.seq in wanted_seqs
    ]


def retry_faults(
    ctx: WriteContext, account: str, fault_ids: Sequence[int]
) -> Flow[tuple[int, int]]:
    """Ask again about what failed; how many of these faults are mended, and how many are not."""
    faults = yield from call(ctx.store.list_faults, account)
    selected = [
        fault
        for fault in faults
        if fault.consumer == SUMMARY_STAGE and (not fault_ids or fault.id in fault_ids)
    ]
    llm, unresolved = ctx.extraction.background_llm, 0
    for fault in selected:
        turns = yield from call(ctx.store.find_versions, account, seqs=[fault.seq])
        turn = turns[0] if turns else None
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


STAGE, CAP = "registry", "cap"
IN_EXCHANGE = "in_exchange"
"""The relation from a turn to the exchange it is filed under; the weight is what the turn was worth then."""

Exchange = tuple[Fact, ...]


def pair_turns(turns: Iterable[Fact], minutes: float) -> list[Exchange]:
    """Turns in order as exchanges: each user's turn with the agent's next one, if that comes soon enough.

    Of several turns of the same side in a row, the two that stand next to each other are a pair and the others alone.
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
    """When a turn was said, as far as anybody knows."""
    return turn.created_at if turn.said_at is None else turn.said_at


# Filing ---------------------------------------------------------------------------------------------------------------


def file_exchanges(ctx: WriteContext, scope: Scope, *, force: bool = False) -> Flow[int]:
    """File every exchange that is cold and has left the tail, or with force all there are; how many were new."""
    settings, now = ctx.settings, ctx.id_generator.now()
    end = NEVER if force else (yield from find_tail_start(ctx.store, scope, settings.tail_size))

    def is_ready(turn: StoredTurn) -> bool:
        age = now - turn.fact.created_at
        is_aged = force or is_cold(
            age, settings.index_days, settings.cold_recency, settings.cold_minutes
        )
        return turn.said_seq < end and is_aged

    total = 0
    while (
        page_count := (
            yield from retry_on_conflict(
                settings.conflict_retries, lambda: _file_page(ctx, scope, is_ready)
            )
        )
    ) is not None:
        total += page_count
    return total


def _file_page(
    ctx: WriteContext, scope: Scope, is_ready: Callable[[StoredTurn], bool]
) -> Flow[int | None]:
    """File the exchanges of the next few turns that are ready; None where nothing is left to go past.

    A user's turn at the very end of a full page waits for the page after it, which may begin with the answer.
    """
    store, account, name = ctx.store, scope.account, get_cursor_name(STAGE, scope)
    page_size = max(ctx.settings.consumer_batch, 2)
    before = yield from call(store.get_cursor, account, name)
    turns = yield from call(store.list_turns, scope, before, NEVER, page_size)
    unfiled = yield from _load_unfiled(store, account, turns)
    exchanges = pair_turns(unfiled, ctx.settings.pair_minutes)
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
    step = CursorStep(name, before, completed[-1].said_seq)
    yield from _commit_exchanges(ctx, scope, chosen, step)
    return len(chosen)


def _commit_exchanges(
    ctx: WriteContext, scope: Scope, chosen: Sequence[Exchange], step: CursorStep | None
) -> Flow[None]:
    """Commit the links of some exchanges, together with the step that goes past them."""
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


def _load_unfiled(store: Store, account: str, turns: Sequence[StoredTurn]) -> Flow[list[Fact]]:
    """Those of these turns that wait to be filed: they are in no exchange, and not passed over in silence."""
    facts = [turn.fact for turn in turns]
    exchange_ids = yield from load_exchange_ids(store, account, facts)
    retracted = yield from find_retracted_turns(store, account, facts)
    return [fact for fact in facts if fact.id not in exchange_ids and fact.id not in retracted]


def load_exchange_ids(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """The exchange of each of these turns that has one."""
    threads = {turn.id for turn in turns}
    links = yield from call(store.find_links, account, list(threads))
    return {link.src: link.dst for link in links if link.rel == IN_EXCHANGE and link.src in threads}


# The cap of the index -------------------------------------------------------------------------------------------------


def enforce_index_cap(ctx: WriteContext, scope: Scope) -> Flow[int]:
    """File what the index holds beyond its cap before it is cold, the oldest unimportant exchanges first."""
    max_turns = ctx.settings.index_most
    if not max_turns:
        return 0
    end = yield from find_tail_start(ctx.store, scope, ctx.settings.tail_size)
    total = 0
    for max_importance in (INFORMATIVE_SCORE, 2.0):
        excess = (yield from count_unfiled(ctx, scope, end))[0] - max_turns
        total += yield from _file_oldest(ctx, scope, end, excess, max_importance)
    return total


def _file_oldest(
    ctx: WriteContext, scope: Scope, end: int, excess: int, max_importance: float
) -> Flow[int]:
    """File the oldest exchanges worth less than this until so many turns are out of the index."""
    store, account, page_size = ctx.store, scope.account, max(ctx.settings.consumer_batch, 2)
    after, total = (yield from call(store.get_cursor, account, get_cursor_name(STAGE, scope))), 0
    while excess > 0 and (
        turns := (yield from call(store.list_turns, scope, after, end, page_size))
    ):
        exchanges = pair_turns(
            (yield from _load_unfiled(store, account, turns)), ctx.settings.pair_minutes
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
    """How many turns before a position are in the index and not filed yet, and how many of them are cold."""
    settings, now, name = ctx.settings, ctx.id_generator.now(), get_cursor_name(STAGE, scope)
    after = yield from call(ctx.store.get_cursor, scope.account, name)
    count = cold_count = 0
    while turns := (
        yield from call(ctx.store.list_turns, scope, after, end, settings.consumer_batch)
    ):
        unfiled = yield from _load_unfiled(ctx.store, scope.account, turns)
        ages = (now - turn.created_at for turn in unfiled)
        cold_count += sum(
            is_cold(age, settings.index_days, settings.cold_recency, settings.cold_minutes)
            for age in ages
        )
        count, after = count + len(unfiled), turns[-1].said_seq
    return count, cold_count


# Reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FiledExchange:
    """An exchange as it is held now: its turns, the user's first, what the best of them is worth, and in short."""

    id: str
    turns: Exchange
    importance: float
    summary: str

    def as_dict(self) -> dict[str, Any]:
        """The exchange as JSON."""
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
    """The exchanges of these scopes that were said last, the newest first."""
    ids: dict[str, int] = {}
    for scope in scopes:
        ids.update((yield from _load_last_exchanges(ctx, scope, limit)))
    newest_ids = sorted(ids, key=lambda id_: -ids[id_])[:limit]
    return (yield from _load_exchanges(ctx, scopes[0].account, newest_ids)) if newest_ids else []


def count_exchanges(ctx: WriteContext, scope: Scope) -> Flow[int]:
    """How many exchanges exactly this scope has of which something is held."""
    return len((yield from _load_last_exchanges(ctx, scope, NEVER)))


def _load_last_exchanges(ctx: WriteContext, scope: Scope, limit: int) -> Flow[Mapping[str, int]]:
    """The exchanges of a scope that were said last, each with the position of its newest turn."""
    ids: dict[str, int] = {}
    before, page_size = NEVER, ctx.settings.consumer_batch
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
    """Exchanges as their links tell them; what is no longer held is left out."""
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
    max_chars = ctx.settings.summary_chars
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
    """Whether an entry says which exchange a turn belongs to."""
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
