"""Read topics: current membership, distance to a query, co-occurrence and listing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from told.flow import Flow, call
from told.model.fact import TOPIC, TURN, Fact, Link
from told.model.filter import Comparison, combine_all
from told.model.query import LATEST, AccessCount, AsOf, FactQuery
from told.model.scope import Scope
from told.model.scoring import cosine
from told.model.topics import (
    ABSTRACTED_FROM,
    DERIVED_FROM,
    EXCHANGE,
    IN_TOPIC,
    SUPER,
    extract_common_words,
    make_label,
    unpack_centroid,
)
from told.ports import Store
from told.retrieval.grouping import group_by_evidence

CONSUMER: Final = "topics"
DEFAULT_AUTHOR: Final = "told"
"""Author of topic names that told derived from turns."""

PAGE_SIZE: Final = 256
CooccurrenceLoader: TypeAlias = Callable[
    [Store, str, Sequence[str]], Flow[Mapping[tuple[str, str], AccessCount]]
]
"""Load co-occurrence counts, including those not flushed yet."""


def find_current_topic_links(links: Iterable[Link]) -> dict[str, Link]:
    """Return the latest topic link of each thread."""
    link_by_thread: dict[str, Link] = {}
    for link in links:
        if link.rel == IN_TOPIC and (
            link.src not in link_by_thread or link.seq > link_by_thread[link.src].seq
        ):
            link_by_thread[link.src] = link
    return link_by_thread


def load_topic_cosines(
    store: Store, account: str, topics: Sequence[str], code: bytes, model: str
) -> Flow[dict[str, float]]:
    """Return the cosine of topics with a vector, for topics with a centroid of that model."""
    notes = (yield from call(store.read_notes, account, CONSUMER, topics)) if topics else {}
    centres = {topic: unpack_centroid(note, model) for topic, note in notes.items()}
    return {
        topic: cosine(code, centre)
        for topic, centre in centres.items()
        if centre and len(centre) == len(code)
    }


def score_cooccurrence(access_count: AccessCount) -> float:
    """Map a co-occurrence count to a weight: 0.5 for one, approaching 1."""
    return access_count.count / (access_count.count + 1.0)


# Current turns


def load_current_turns(
    store: Store, scope: Scope, at: AsOf, threads: Iterable[str]
) -> Flow[dict[str, Fact]]:
    """Return the current facts of some turns, without turns whose claims were all retracted."""
    facts: dict[str, Fact] = {}
    for thread in threads:
        fact = yield from call(store.get_fact, scope.account, thread, at)
        if fact is not None and fact.expires > at.at and scope.covers(fact.scope):
            facts[thread] = fact
    evidence_ids = sorted(
        {fact.evidence for fact in facts.values() if fact.kind == TURN and fact.evidence}
    )
    retracted: set[str] = set()
    for start in range(0, len(evidence_ids), PAGE_SIZE):
        versions = yield from call(
            store.find_versions, scope.account, evidence=evidence_ids[start : start + PAGE_SIZE]
        )
        retracted |= {
            group.turn.id
            for group in group_by_evidence(versions, at, {}).values()
            if group.turn is not None and group.is_fully_retracted
        }
    return {thread: fact for thread, fact in facts.items() if thread not in retracted}


def pick_opening_turn(turns: Sequence[Fact]) -> Fact:
    """Return the turn an exchange's topic is named after: the user's first, if any."""
    return next((turn for turn in turns if turn.role == "user"), turns[0])


def find_naming_turns(links: Iterable[Link]) -> dict[str, str]:
    """Return the latest naming turn of each topic."""
    ordered = sorted(
        (link for link in links if link.rel == DERIVED_FROM), key=lambda link: link.seq
    )
    return {link.src: link.dst for link in ordered}


def is_named_by(topic: Fact, turn: Fact | None) -> bool:
    """Return True if a topic still has the label of its turn, or somebody else named it."""
    return topic.author != DEFAULT_AUTHOR or (
        turn is not None and make_label(turn.text) == topic.text
    )


# Listing


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic with its exchanges, co-occurring topics, parts and super-topics.

    The label of `fact` is the one to show; it comes from a turn that is still current.
    """

    fact: Fact
    exchanges: tuple[tuple[Fact, ...], ...]
    neighbours: tuple[tuple[Fact, AccessCount], ...] = ()
    parts: tuple[str, ...] = ()
    super_topics: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the topic as JSON."""
        neighbours = [
            {
                "id": fact.id,
                "label": fact.text,
                "count": access_count.count,
                "weight": round(score_cooccurrence(access_count), 4),
            }
            for fact, access_count in self.neighbours
        ]
        return {
            "id": self.fact.id,
            "label": self.fact.text,
            **self.fact.scope.ids(),
            "super": bool(self.fact.meta.get(SUPER)),
            "members": len(self.exchanges),
            "turns": [[turn.id for turn in turns] for turns in self.exchanges],
            "neighbours": neighbours,
            "parts": list(self.parts),
            "supers": list(self.super_topics),
        }


def list_topics(
    store: Store, query: FactQuery, load_cooccurrence: CooccurrenceLoader | None = None
) -> Flow[list[TopicListing]]:
    """Return the visible topics with current turns, oldest first.

    Reads of the past have no co-occurrence data.
    """
    topic_query = replace(
        query, filter=combine_all((query.filter, Comparison("kind", "eq", TOPIC)))
    )
    topics_by_id = {fact.id: fact for fact in (yield from call(store.find_facts, topic_query))}
    account, at = query.scope.account, query.as_of.seq
    links = yield from call(
        store.find_links, account, list(topics_by_id), None if at >= LATEST else at
    )
    exchanges_by_topic, facts = yield from _load_exchanges(store, query, topics_by_id, links)
    part_pairs = [
        (link.src, link.dst)
        for link in links
        if link.rel == ABSTRACTED_FROM and link.src in topics_by_id
    ]
    _name_super_topics(topics_by_id, facts, part_pairs)
    visible_topics = {topic: facts[topic] for topic in topics_by_id if topic in facts}
    visible_pairs = [
        (super_topic, part)
        for super_topic, part in part_pairs
        if super_topic in visible_topics and part in visible_topics
    ]
    pairs = (
        (yield from load_cooccurrence(store, account, list(visible_topics)))
        if load_cooccurrence is not None and at >= LATEST
        else {}
    )
    return [
        TopicListing(
            fact,
            exchanges_by_topic.get(topic, ()),
            tuple(_list_neighbours(topic, pairs, visible_topics)),
            tuple(part for super_topic, part in visible_pairs if super_topic == topic),
            tuple(super_topic for super_topic, part in visible_pairs if part == topic),
        )
        for topic, fact in visible_topics.items()
    ]


def _load_exchanges(
    store: Store, query: FactQuery, topics_by_id: Mapping[str, Fact], links: Sequence[Link]
) -> Flow[tuple[dict[str, tuple[tuple[Fact, ...], ...]], dict[str, Fact]]]:
    """Return the current exchanges of each topic, and the topics that have any, relabelled."""
    naming_turns = {
        topic: turn for topic, turn in find_naming_turns(links).items() if topic in topics_by_id
    }
    current_links = find_current_topic_links(links).values()
    turns = yield from load_current_turns(
        store,
        query.scope,
        query.as_of,
        {*naming_turns.values(), *(link.src for link in current_links)},
    )
    turns_by_exchange: dict[str, dict[str, list[Fact]]] = {}
    for link in current_links:
        if link.src in turns and link.dst in topics_by_id:
            exchange = str(link.meta.get(EXCHANGE, link.src))
            turns_by_exchange.setdefault(link.dst, {}).setdefault(exchange, []).append(
                turns[link.src]
            )
    exchanges_by_topic = {
        topic: tuple(map(tuple, exchanges.values()))
        for topic, exchanges in turns_by_exchange.items()
    }
    facts: dict[str, Fact] = {}
    for topic, exchanges in exchanges_by_topic.items():
        fact = topics_by_id[topic]
        keeps_name = is_named_by(fact, turns.get(naming_turns.get(topic, "")))
        facts[topic] = (
            fact
            if keeps_name
            else replace(fact, text=make_label(pick_opening_turn(exchanges[0]).text))
        )
    return exchanges_by_topic, facts


def _name_super_topics(
    topics_by_id: Mapping[str, Fact], facts: dict[str, Fact], part_pairs: Iterable[tuple[str, str]]
) -> None:
    """Add super-topics with remaining parts; rename those whose parts were renamed."""
    parts: dict[str, list[str]] = {}
    for super_topic, part in part_pairs:
        if part in topics_by_id:
            parts.setdefault(super_topic, []).append(part)
    for super_topic, topics in parts.items():
        fact = topics_by_id[super_topic]
        remaining = [facts[topic] for topic in topics if topic in facts]
        if remaining and not is_name_current(
            fact, (topics_by_id[topic] for topic in topics), remaining
        ):
            fact = replace(fact, text=build_shared_name([part.text for part in remaining]))
        if remaining:
            facts[super_topic] = fact


def is_name_current(super_topic: Fact, parts: Iterable[Fact], remaining: Sequence[Fact]) -> bool:
    """Return True if a super-topic's label matches its parts as shown now."""
    text_by_id = {part.id: part.text for part in remaining}
    is_same_name = all(
        part.seq < super_topic.seq and text_by_id.get(part.id) == part.text for part in parts
    )
    return is_same_name or super_topic.author != DEFAULT_AUTHOR


def build_shared_name(labels: Sequence[str]) -> str:
    """Return the words the labels share, else the first label."""
    return extract_common_words(labels) or make_label(labels[0])


def _list_neighbours(
    topic: str, pairs: Mapping[tuple[str, str], AccessCount], facts: Mapping[str, Fact]
) -> list[tuple[Fact, AccessCount]]:
    """Return the topics that co-occur with a topic, most frequent first."""
    others = [
        (b if a == topic else a, access_count)
        for (a, b), access_count in pairs.items()
        if topic in (a, b)
    ]
    visible = [(facts[other], access_count) for other, access_count in others if other in facts]
    return sorted(visible, key=lambda pair: (-pair[1].count, pair[0].seq))
