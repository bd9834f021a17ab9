"""The registry: what a user said and what the agent answered, filed together once both are cold.

An exchange is no more than links from its turns to an id of its own, the user's turn first. No text is repeated and no
turn is lost to search; a turn that is erased takes its link along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeGuard

from told.core.entry import Draft, Linked, Verb
from told.core.fact import NEVER, Fact
from told.core.importance import TELLING
from told.core.scope import Scope
from told.core.tiers import MINUTE_US, cold
from told.core.when import iso
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ports import Guard, Step, Store, ThreadAt, Turn
from told.tend.silence import given_up
from told.tend.summarise import summaries, summary
from told.tend.tail import AUTHOR, consumer, edge
from told.tend.worth import worths
from told.write.desk import Desk, Plan, settle

STAGE, CAP = "registry", "cap"
IN_EXCHANGE = "in_exchange"
"""The relation from a turn to the exchange it is filed under; the weight is what the turn was worth then."""

Exchange = tuple[Fact, ...]


def exchanges(turns: Iterable[Fact], minutes: float) -> list[Exchange]:
    """Turns in order as exchanges: each user's turn with the agent's next one, if that comes soon enough.

    Of several turns of the same side in a row, the two that stand next to each other are a pair and the others alone.
    """
    found: list[Exchange] = []
    for turn in turns:
        before = found[-1] if found else ()
        answers = turn.role == "assistant" and len(before) == 1 and before[0].role == "user"
        if answers and abs(when(turn) - when(before[0])) <= minutes * MINUTE_US:
            found[-1] = (before[0], turn)
        else:
            found.append((turn,))
    return found


def when(turn: Fact) -> int:
    """When a turn was said, as far as anybody knows."""
    return turn.created_at if turn.said_at is None else turn.said_at


# Filing ---------------------------------------------------------------------------------------------------------------


def file(desk: Desk, scope: Scope, *, force: bool = False) -> Flow[int]:
    """File every exchange that is cold and has left the tail, or with force all there are; how many were new."""
    settings, now = desk.settings, desk.mint.now()
    end = NEVER if force else (yield from edge(desk.store, scope, settings.tail_size))

    def ready(turn: Turn) -> bool:
        age = now - turn.fact.created_at
        aged = force or cold(age, settings.index_days, settings.cold_recency, settings.cold_minutes)
        return turn.place < end and aged

    total = 0
    while (done := (yield from decided(settings.conflict_retries, lambda: _page(desk, scope, ready)))) is not None:
        total += done
    return total


def _page(desk: Desk, scope: Scope, ready: Callable[[Turn], bool]) -> Flow[int | None]:
    """File the exchanges of the next few turns that are ready; None where nothing is left to go past.

    A user's turn at the very end of a full page waits for the page after it, which may begin with the answer.
    """
    store, account, name = desk.store, scope.account, consumer(STAGE, scope)
    size = max(desk.settings.consumer_batch, 2)
    before = yield from call(store.cursor, account, name)
    turns = yield from call(store.turns, scope, before, NEVER, size)
    open_ = yield from _unfiled(store, account, turns)
    found = exchanges(open_, desk.settings.pair_minutes)
    if len(turns) == size and found and found[-1] == (turns[-1].fact,) and turns[-1].fact.role == "user":
        del found[-1]
    may = {turn.fact.id for turn in turns if ready(turn)}
    chosen = list(takewhile(lambda exchange: all(turn.id in may for turn in exchange), found))
    left = {turn.id for turn in open_} - {turn.id for exchange in chosen for turn in exchange}
    passed = list(takewhile(lambda turn: turn.fact.id in may - left, turns))
    if not passed:
        return None
    step = Step(name, before, passed[-1].place)
    yield from _file(desk, scope, chosen, step)
    return len(chosen)


def _file(desk: Desk, scope: Scope, chosen: Sequence[Exchange], step: Step | None) -> Flow[None]:
    """Commit the links of some exchanges, together with the step that goes past them."""
    turns = [turn for exchange in chosen for turn in exchange]
    worth = yield from worths(desk.store, scope.account, turns)
    drafts: list[Draft] = []
    for exchange in chosen:
        id_ = desk.mint.id()
        drafts += [Draft(Linked(turn.id, IN_EXCHANGE, id_, worth[turn.id]), scope, AUTHOR) for turn in exchange]
    guards: list[Guard] = [ThreadAt(turn.id, turn.seq) for turn in turns]
    yield from settle(desk, scope, Plan(drafts, guards, []), step=step)


def _unfiled(store: Store, account: str, turns: Sequence[Turn]) -> Flow[list[Fact]]:
    """Those of these turns that wait to be filed: they are in no exchange, and not passed over in silence."""
    facts = [turn.fact for turn in turns]
    known = yield from filed(store, account, facts)
    silent = yield from given_up(store, account, facts)
    return [fact for fact in facts if fact.id not in known and fact.id not in silent]


def filed(store: Store, account: str, turns: Sequence[Fact]) -> Flow[Mapping[str, str]]:
    """The exchange of each of these turns that has one."""
    threads = {turn.id for turn in turns}
    links = yield from call(store.links, account, list(threads))
    return {link.src: link.dst for link in links if link.rel == IN_EXCHANGE and link.src in threads}


# The cap of the index -------------------------------------------------------------------------------------------------


def squeeze(desk: Desk, scope: Scope) -> Flow[int]:
    """File what the index holds beyond its cap before it is cold, the oldest unimportant exchanges first."""
    most = desk.settings.index_most
    if not most:
        return 0
    end = yield from edge(desk.store, scope, desk.settings.tail_size)
    total = 0
    for below in (TELLING, 2.0):
        over = (yield from waiting(desk, scope, end))[0] - most
        total += yield from _squeezed(desk, scope, end, over, below)
    return total


def _squeezed(desk: Desk, scope: Scope, end: int, over: int, below: float) -> Flow[int]:
    """File the oldest exchanges worth less than this until so many turns are out of the index."""
    store, account, size = desk.store, scope.account, max(desk.settings.consumer_batch, 2)
    after, total = (yield from call(store.cursor, account, consumer(STAGE, scope))), 0
    while over > 0 and (turns := (yield from call(store.turns, scope, after, end, size))):
        found = exchanges((yield from _unfiled(store, account, turns)), desk.settings.pair_minutes)
        if len(turns) == size and found and found[-1] == (turns[-1].fact,):
            turns = turns[:-1]
            del found[-1]
        worth = yield from worths(store, account, [turn for exchange in found for turn in exchange])
        low = [exchange for exchange in found if max(worth[turn.id] for turn in exchange) < below]
        chosen: list[Exchange] = []
        while low and over > 0:
            chosen.append(low.pop(0))
            over -= len(chosen[-1])
        yield from _file(desk, scope, chosen, None)
        total, after = total + len(chosen), turns[-1].place
    return total


def waiting(desk: Desk, scope: Scope, end: int) -> Flow[tuple[int, int]]:
    """How many turns before a position are in the index and not filed yet, and how many of them are cold."""
    settings, now, name = desk.settings, desk.mint.now(), consumer(STAGE, scope)
    after = yield from call(desk.store.cursor, scope.account, name)
    count = chilled = 0
    while turns := (yield from call(desk.store.turns, scope, after, end, settings.consumer_batch)):
        left = yield from _unfiled(desk.store, scope.account, turns)
        ages = (now - turn.created_at for turn in left)
        chilled += sum(cold(age, settings.index_days, settings.cold_recency, settings.cold_minutes) for age in ages)
        count, after = count + len(left), turns[-1].place
    return count, chilled


# Reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filed:
    """An exchange as it is held now: its turns, the user's first, what the best of them is worth, and in short."""

    id: str
    turns: Exchange
    importance: float
    summary: str

    def as_dict(self) -> dict[str, Any]:
        """The exchange as JSON."""
        said = {turn.role: turn.text for turn in reversed(self.turns)}
        return {
            "id": self.id, "user": said.get("user"), "agent": said.get("assistant"), "summary": self.summary,
            "importance": self.importance, "at": iso(when(self.turns[0])),
            "memories": [turn.id for turn in self.turns],
        }  # fmt: skip


def newest(desk: Desk, scopes: Sequence[Scope], limit: int) -> Flow[list[Filed]]:
    """The exchanges of these scopes that were said last, the newest first."""
    ids: dict[str, int] = {}
    for scope in scopes:
        ids.update((yield from _last(desk, scope, limit)))
    best = sorted(ids, key=lambda id_: -ids[id_])[:limit]
    return (yield from _read(desk, scopes[0].account, best)) if best else []


def count(desk: Desk, scope: Scope) -> Flow[int]:
    """How many exchanges exactly this scope has of which something is held."""
    return len((yield from _last(desk, scope, NEVER)))


def _last(desk: Desk, scope: Scope, limit: int) -> Flow[Mapping[str, int]]:
    """The exchanges of a scope that were said last, each with the position of its newest turn."""
    ids: dict[str, int] = {}
    before, size = NEVER, desk.settings.consumer_batch
    while len(ids) < limit and (turns := (yield from call(desk.store.turns, scope, 0, before, size, newest=True))):
        facts = [turn.fact for turn in turns]
        known = yield from filed(desk.store, scope.account, facts)
        silent = yield from given_up(desk.store, scope.account, facts)
        for place, fact in reversed(turns):
            if fact.id in known and fact.id not in silent:
                ids.setdefault(known[fact.id], place)
        before = turns[0].place
    return dict(list(ids.items())[:limit])


def _read(desk: Desk, account: str, ids: Sequence[str]) -> Flow[list[Filed]]:
    """Exchanges as their links tell them; what is no longer held is left out."""
    members: dict[str, list[Fact]] = {}
    for id_ in ids:
        for entry in (yield from call(desk.store.thread, account, id_)):
            fact = (yield from call(desk.store.fact, account, entry.verb.src)) if _files(entry.verb) else None
            members.setdefault(id_, []).extend([] if fact is None else [fact])
    turns = [turn for each in members.values() for turn in each]
    silent = yield from given_up(desk.store, account, turns)
    members = {id_: [turn for turn in each if turn.id not in silent] for id_, each in members.items()}
    worth = yield from worths(desk.store, account, turns)
    written = yield from summaries(desk.store, account, turns)
    most = desk.settings.summary_chars
    return [_filed(id_, each, worth, {turn.id: summary(turn, written, most) for turn in each})
            for id_, each in members.items() if each]  # fmt: skip


def _files(verb: Verb | None) -> TypeGuard[Linked]:
    """Whether an entry says which exchange a turn belongs to."""
    return isinstance(verb, Linked) and verb.rel == IN_EXCHANGE


def _filed(id_: str, turns: Sequence[Fact], worth: Mapping[str, float], short: Mapping[str, str]) -> Filed:
    said = " → ".join(f"{_side(turn)}: {short[turn.id]}" for turn in turns)
    return Filed(id_, tuple(turns), max(worth[turn.id] for turn in turns), said)


def _side(turn: Fact) -> str:
    return "Agent" if turn.role == "assistant" else "User"
