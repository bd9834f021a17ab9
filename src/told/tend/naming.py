"""Topics whose names were taken from turns that say something else by now, or are no longer held, get other names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from told.core.entry import Asserted, Draft, Entry, Retracted
from told.core.fact import TOPIC, TURN, Fact
from told.core.query import LATEST, AsOf
from told.core.topics import DERIVED_FROM, SUPER
from told.flow import Flow, call
from told.ledger.commit import commit_batch
from told.ports import Batch, EntryIntact, Guard, ThreadAt
from told.read.topics import (
    DEFAULT_AUTHOR,
    PAGE_SIZE,
    find_current_topic_links,
    find_naming_turns,
    is_named_by,
    load_current_turns,
)
from told.tend.filing import (
    UNNAMED_LABEL,
    TopicContext,
    collect_members,
    draft_topic_name,
    find_naming_turn,
)


def rename_topics(
    ctx: TopicContext, account: str, entries: Iterable[Entry], head_seq: int
) -> Flow[int]:
    """Name anew, in one commit, the topics whose names some entries took away; how many there were."""
    turns = yield from _find_changed_threads(ctx, account, entries)
    drafts: list[Draft] = []
    guards: list[Guard] = []
    for topic in (yield from _find_topics_named_by(ctx, account, turns)):
        turn = yield from _choose_naming_turn(ctx, topic)
        if turn is topic:
            continue
        drafts += [
            Draft(verb, topic.scope, DEFAULT_AUTHOR)
            for verb in draft_topic_name(topic.id, turn, topic.created_at)
        ]
        guards += [
            ThreadAt(topic.id, topic.seq),
            *([] if turn is None else [EntryIntact(turn.seq)]),
        ]
    if drafts:
        yield from commit_batch(ctx.store, Batch(account, drafts, guards, head_seq))
    return sum(isinstance(draft.verb, Asserted) for draft in drafts)


def _find_changed_threads(
    ctx: TopicContext, account: str, entries: Iterable[Entry]
) -> Flow[list[str]]:
    """The threads that entries changed, and the turns behind those that were given up."""
    verbs = [entry.verb for entry in entries if isinstance(entry.verb, Asserted | Retracted)]
    threads = dict.fromkeys(verb.thread for verb in verbs)
    evidence: dict[str, None] = {}
    for thread in dict.fromkeys(verb.thread for verb in verbs if isinstance(verb, Retracted)):
        history = (
            entry.verb for entry in (yield from call(ctx.store.thread_entries, account, thread))
        )
        evidence |= {
            v.claim.evidence: None for v in history if isinstance(v, Asserted) and v.claim.evidence
        }
    evidence_ids = list(evidence)
    for start in range(0, len(evidence_ids), PAGE_SIZE):
        versions = yield from call(
            ctx.store.facts_from_evidence, account, evidence_ids[start : start + PAGE_SIZE]
        )
        threads |= {fact.id: None for fact in versions if fact.kind == TURN}
    return list(threads)


def _find_topics_named_by(
    ctx: TopicContext, account: str, turns: Sequence[str]
) -> Flow[list[Fact]]:
    """The topics that are named after any of some turns; topics of topics are none."""
    topics: dict[str, Fact] = {}
    for start in range(0, len(turns), PAGE_SIZE):
        page = turns[start : start + PAGE_SIZE]
        links = yield from call(ctx.store.find_links, account, page)
        for topic in {
            link.src: None for link in links if link.rel == DERIVED_FROM and link.dst in set(page)
        }:
            fact = yield from call(ctx.store.get_fact, account, topic)
            if fact is not None and fact.kind == TOPIC and not fact.meta.get(SUPER):
                topics[topic] = fact
    return list(topics.values())


def _choose_naming_turn(ctx: TopicContext, topic: Fact) -> Flow[Fact | None]:
    """The turn a topic is to be named after from now on, none if none is held; itself, if it keeps its name."""
    links = yield from call(ctx.store.find_links, topic.scope.account, [topic.id])
    now = AsOf(LATEST, ctx.id_generator.now())
    naming_thread = find_naming_turns(links).get(topic.id)
    turns = yield from load_current_turns(
        ctx.store, topic.scope, now, [] if naming_thread is None else [naming_thread]
    )
    if is_named_by(topic, turns.get(naming_thread or "")):
        return topic
    latest_links = sorted(find_current_topic_links(links).values(), key=lambda link: link.seq)
    turn = yield from find_naming_turn(ctx, topic.scope, collect_members(latest_links, topic.id))
    return topic if turn is None and topic.text == UNNAMED_LABEL else turn
