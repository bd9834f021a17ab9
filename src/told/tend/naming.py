"""Topics whose names were taken from turns that say something else by now, or are no longer held, get other names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import TOPIC, TURN, Fact
from told.core.query import LATEST, AsOf
from told.core.topics import DERIVED_FROM, SUPER
from told.flow import Flow, call
from told.ledger.commit import commit
from told.ports import Batch, Guard, Intact, ThreadAt
from told.read.topics import AUTHOR, PAGE, held_turns, is_named_by, latest, named_after
from told.tend.filing import NAMELESS, Files, first_held, members, naming


def rename(files: Files, account: str, entries: Iterable[Entry], seen: int) -> Flow[int]:
    """Name anew, in one commit, the topics whose names some entries took away; how many there were."""
    turns = yield from _changed(files, account, entries)
    drafts: list[Draft] = []
    guards: list[Guard] = []
    for topic in (yield from _topics_of(files, account, turns)):
        turn = yield from _namesake(files, topic)
        if turn is topic:
            continue
        drafts += [Draft(verb, topic.scope, AUTHOR) for verb in naming(topic.id, turn, topic.created_at)]
        guards += [ThreadAt(topic.id, topic.seq), *([] if turn is None else [Intact(turn.seq)])]
    if drafts:
        yield from commit(files.store, Batch(account, drafts, guards, seen))
    return sum(isinstance(draft.verb, Asserted) for draft in drafts)


def _changed(files: Files, account: str, entries: Iterable[Entry]) -> Flow[list[str]]:
    """The threads that entries changed, and the turns behind those that were given up."""
    verbs = [entry.verb for entry in entries if isinstance(entry.verb, Asserted | Retracted)]
    threads = dict.fromkeys(verb.thread for verb in verbs)
    evidence: dict[str, None] = {}
    for thread in dict.fromkeys(verb.thread for verb in verbs if isinstance(verb, Retracted)):
        told = (entry.verb for entry in (yield from call(files.store.thread, account, thread)))
        evidence |= {v.claim.evidence: None for v in told if isinstance(v, Asserted) and v.claim.evidence}
    names = list(evidence)
    for start in range(0, len(names), PAGE):
        lives = yield from call(files.store.taken, account, names[start : start + PAGE])
        threads |= {fact.id: None for fact in lives if fact.kind == TURN}
    return list(threads)


def _topics_of(files: Files, account: str, turns: Sequence[str]) -> Flow[list[Fact]]:
    """The topics that are named after any of some turns; topics of topics are none."""
    found: dict[str, Fact] = {}
    for start in range(0, len(turns), PAGE):
        page = turns[start : start + PAGE]
        links = yield from call(files.store.links, account, page)
        for topic in {link.src: None for link in links if link.rel == DERIVED_FROM and link.dst in set(page)}:
            fact = yield from call(files.store.fact, account, topic)
            if fact is not None and fact.kind == TOPIC and not fact.meta.get(SUPER):
                found[topic] = fact
    return list(found.values())


def _namesake(files: Files, topic: Fact) -> Flow[Fact | None]:
    """The turn a topic is to be named after from now on, none if none is held; itself, if it keeps its name."""
    links = yield from call(files.store.links, topic.scope.account, [topic.id])
    now = AsOf(LATEST, files.mint.now())
    known = named_after(links).get(topic.id)
    turns = yield from held_turns(files.store, topic.scope, now, [] if known is None else [known])
    if is_named_by(topic, turns.get(known or "")):
        return topic
    counted = sorted(latest(links).values(), key=lambda link: link.seq)
    turn = yield from first_held(files, topic.scope, members(counted, topic.id))
    return topic if turn is None and topic.text == NAMELESS else turn
