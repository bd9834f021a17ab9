"""Topics that are one, and topics of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from told.core.entry import Asserted, Claim, Linked, Retracted
from told.core.errors import LLMError
from told.core.fact import TOPIC, Fact
from told.core.query import LATEST, AccessCount, AsOf, FactQuery
from told.core.scope import Scope
from told.core.text import format_value
from told.core.topics import (
    ABSTRACTED_FROM,
    DERIVED_FROM,
    LABEL_LENGTH,
    SUPER,
    VectorMean,
    cluster_codes,
    find_merges,
    make_label,
    unpack_centroid,
)
from told.flow import Flow, call
from told.ledger.consume import Failure, catch_failure
from told.ports import LLM
from told.read.topics import CONSUMER, PAGE_SIZE, build_shared_name, is_name_current, list_topics
from told.tend.filing import (
    TopicChanges,
    TopicContext,
    begin_changes,
    load_codes,
    load_members,
    load_topics,
)
from told.tend.topics import change_topics
from told.write.extract.brief import ask_llm, fence_as_data, load_prompt

MAX_NAME_WORDS: Final = 10
"""What a model calls topics in more words than this is a sentence and no name."""


@dataclass(frozen=True, slots=True)
class TopicMergeResult:
    """What became of topics: which are one with which, which topics of topics there are, and what went wrong."""

    merged: tuple[tuple[str, str], ...] = ()
    supertopics: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def merge_topics(ctx: TopicContext, scope: Scope) -> Flow[TopicMergeResult]:
    """Make one of topics that are nearly the same: the older takes the members of the younger."""
    merged_into: dict[str, str] = {}

    def change(changes: TopicChanges) -> Flow[None]:
        merged_into.clear()
        merged_into.update(find_merges((yield from _load_centres(changes)), ctx.thresholds.merge))
        for younger, older in merged_into.items():
            yield from _merge_topic(changes, younger, older)

    yield from change_topics(ctx, scope, change)
    yield from _merge_cooccurrence(ctx, scope.account, merged_into)
    return TopicMergeResult(tuple(merged_into.items()))


def _load_centres(changes: TopicChanges) -> Flow[dict[str, bytes]]:
    """Where every topic of a scope points to."""
    ctx, account = changes.ctx, changes.scope.account
    topics = [fact.id for fact in (yield from load_topics(ctx, changes.scope))]
    centres_by_topic: dict[str, bytes] = {}
    for start in range(0, len(topics), PAGE_SIZE):
        page = topics[start : start + PAGE_SIZE]
        notes = {
            **(yield from call(ctx.store.read_notes, account, CONSUMER, page)),
            **changes.notes,
        }
        centres = ((topic, unpack_centroid(notes.get(topic), ctx.model)) for topic in page)
        centres_by_topic |= {topic: centre for topic, centre in centres if centre is not None}
    return centres_by_topic


def _merge_topic(changes: TopicChanges, younger: str, older: str) -> Flow[None]:
    joining = yield from load_members(changes, younger)
    codes = yield from load_codes(changes, [*(yield from load_members(changes, older)), *joining])
    mean = VectorMean()
    for code in codes.values():
        mean = mean.add(code)
    changes.retract_topic(younger, "merged")
    changes.add_members(older, joining)
    changes.set_mean(older, mean)


def _merge_cooccurrence(ctx: TopicContext, account: str, merged_into: dict[str, str]) -> Flow[None]:
    """Whom a topic came up with, the one that took its place has come up with too."""
    cooccurrence = (
        (yield from call(ctx.store.cooccurrence, account, list(merged_into))) if merged_into else {}
    )
    pairs: dict[tuple[str, str], AccessCount] = {}
    for (first, second), count in cooccurrence.items():
        a, b = sorted((merged_into.get(first, first), merged_into.get(second, second)))
        if a != b:
            pairs[a, b] = pairs[a, b] + count if (a, b) in pairs else count
    if pairs:
        yield from call(ctx.store.record_cooccurrence, account, pairs)


# Topics of topics -----------------------------------------------------------------------------------------------------


SupertopicNames: TypeAlias = dict[frozenset[str], str]
"""What topics of topics are to be called, by what they are made of."""


def build_supertopics(ctx: TopicContext, scope: Scope, llm: LLM | None) -> Flow[TopicMergeResult]:
    """Make topics of topics, named by a model if there is one; those that no longer hold give way.

    The model is asked before anything is decided, once for each; what changed since then is named without it.
    """
    names, warnings = ({}, []) if llm is None else (yield from _ask_for_names(ctx, scope, llm))
    supertopic_ids: dict[str, None] = {}

    def change(changes: TopicChanges) -> Flow[None]:
        supertopic_ids.clear()
        for supertopic_id in (yield from _draft_supertopics(changes, names)):
            supertopic_ids[supertopic_id] = None

    yield from change_topics(ctx, scope, change)
    return TopicMergeResult(
        supertopics=tuple(supertopic_ids), warnings=tuple(dict.fromkeys(warnings))
    )


@dataclass(frozen=True, slots=True)
class _SupertopicGroup:
    """Topics that make a topic of topics, the one there is of just these, and whether that has their name."""

    parts: tuple[Fact, ...]
    supertopic: Fact | None
    is_named: bool

    @property
    def labels(self) -> list[str]:
        return [part.text for part in self.parts]

    @property
    def key(self) -> frozenset[str]:
        return frozenset(part.id for part in self.parts)


def _draft_supertopics(changes: TopicChanges, names: SupertopicNames) -> Flow[list[str]]:
    """Draft the topics of topics as they are to be; those that there are then."""
    groups, stale = yield from _load_groups(changes)
    supertopic_ids: list[str] = []
    for group in groups:
        supertopic_id = (
            changes.ctx.id_generator.new_id() if group.supertopic is None else group.supertopic.id
        )
        if not group.is_named:
            name = names.get(group.key) or build_shared_name(group.labels)
            since = None if group.supertopic is None else group.supertopic.created_at
            changes.add_drafts(
                Asserted(supertopic_id, Claim(name, TOPIC, meta={SUPER: True}), since)
            )
        if group.supertopic is None:
            rels = (ABSTRACTED_FROM, DERIVED_FROM)
            changes.add_drafts(
                *(Linked(supertopic_id, rel, part.id) for part in group.parts for rel in rels)
            )
        supertopic_ids.append(supertopic_id)
    changes.add_drafts(*(Retracted(stale_id, "abstracted anew") for stale_id in stale))
    return supertopic_ids


def _load_groups(changes: TopicChanges) -> Flow[tuple[list[_SupertopicGroup], list[str]]]:
    """The topics of a scope in which anything is held, as they belong together; topics of topics that no longer do."""
    ctx, scope = changes.ctx, changes.scope
    listed = yield from list_topics(
        ctx.store, FactQuery(scope, AsOf(LATEST, ctx.id_generator.now()))
    )
    visible = {entry.fact.id: entry.fact for entry in listed if entry.fact.scope == scope}
    centres = {
        topic: centre
        for topic, centre in (yield from _load_centres(changes)).items()
        if topic in visible
    }
    topics = {fact.id: fact for fact in (yield from load_topics(ctx, scope))}
    existing = yield from _load_supertopics(ctx, scope)
    groups: list[_SupertopicGroup] = []
    for topic_ids in cluster_codes(centres, ctx.thresholds.group):
        if len(topic_ids) > 1:
            supertopic, parts = (
                existing.pop(frozenset(topic_ids), None),
                [visible[topic_id] for topic_id in topic_ids],
            )
            is_named = supertopic is not None and is_name_current(
                supertopic, (topics[topic_id] for topic_id in topic_ids), parts
            )
            groups.append(_SupertopicGroup(tuple(parts), supertopic, is_named))
    return groups, [supertopic.id for supertopic in existing.values()]


def _load_supertopics(ctx: TopicContext, scope: Scope) -> Flow[dict[frozenset[str], Fact]]:
    """The topics of topics there are, by what they are made of."""
    facts = yield from call(ctx.store.current_facts, scope, ctx.id_generator.now(), kinds=[TOPIC])
    parts_by_supertopic = {fact.id: (fact, set[str]()) for fact in facts if fact.meta.get(SUPER)}
    for link in (
        (yield from call(ctx.store.find_links, scope.account, list(parts_by_supertopic)))
        if parts_by_supertopic
        else ()
    ):
        if link.rel == ABSTRACTED_FROM and link.src in parts_by_supertopic:
            parts_by_supertopic[link.src][1].add(link.dst)
    return {frozenset(parts): fact for fact, parts in parts_by_supertopic.values()}


# What a model calls them ----------------------------------------------------------------------------------------------


def _ask_for_names(
    ctx: TopicContext, scope: Scope, llm: LLM
) -> Flow[tuple[SupertopicNames, list[str]]]:
    """What a model calls the topics of topics that want a name, as things are now, and what it could not name."""
    groups, _ = yield from _load_groups((yield from begin_changes(ctx, scope)))
    names: SupertopicNames = {}
    warnings: list[str] = []
    for group in groups:
        if not group.is_named:
            name = yield from catch_failure(_ask_for_name(llm, group.labels))
            if isinstance(name, Failure):
                warnings.append(f"Named without the model: {name}")
            else:
                names[group.key] = name
    return names, warnings


def _ask_for_name(llm: LLM, labels: Sequence[str]) -> Flow[str]:
    """What a model says topics have in common, if that can be a name."""
    reply, _ = yield from ask_llm(
        llm, load_prompt("topic"), fence_as_data("topics", (f"- {name}" for name in labels))
    )
    text = str(reply).strip().strip("\"'`*.").strip()
    if (
        not any(map(str.isalnum, text))
        or "\n" in text
        or len(text) > LABEL_LENGTH
        or len(text.split()) > MAX_NAME_WORDS
    ):
        raise LLMError(
            f"{llm.model} gave no name for topics, but {format_value(reply)}.", raw=str(reply)
        )
    return make_label(text)
