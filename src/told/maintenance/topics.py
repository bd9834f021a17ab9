"""Assign exchanges to topics, merge and group topics, and repair them after an erasure.

Topic membership is stored as links in the ledger; the latest link counts. Means and vectors are
notes that commit with the cursor and can be rebuilt from the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from told.errors import LLMError
from told.extraction.prompting import ask_llm, fence_as_data, load_prompt
from told.flow import Flow, call
from told.ledger.commit import commit_batch, retry_on_conflict
from told.ledger.consumer import (
    Consumer,
    Failure,
    Job,
    JobBatch,
    catch_failure,
    drain,
    skip_step,
)
from told.maintenance.topic_assignment import (
    UNNAMED_LABEL,
    TopicChanges,
    TopicContext,
    TopicMember,
    assign_exchanges,
    begin_changes,
    collect_members,
    draft_topic_name,
    epoch_key,
    find_naming_turn,
    load_codes,
    load_members,
    load_topics,
)
from told.model.entry import Asserted, Claim, Draft, Entry, Linked, Retracted
from told.model.fact import TOPIC, TURN, Fact, Link
from told.model.query import LATEST, AccessBatch, AccessCount, AsOf, FactQuery
from told.model.scope import Scope
from told.model.topics import (
    ABSTRACTED_FROM,
    DERIVED_FROM,
    EXCHANGE,
    IN_EXCHANGE,
    IN_TOPIC,
    LABEL_LENGTH,
    SUPER,
    VectorMean,
    cluster_codes,
    find_merges,
    is_packed_mean,
    make_label,
    unpack_centroid,
)
from told.ports import LLM, Batch, CursorStep, EntryIntact, Guard, ThreadAt
from told.retrieval.topics import (
    CONSUMER,
    DEFAULT_AUTHOR,
    PAGE_SIZE,
    build_shared_name,
    find_current_topic_links,
    find_naming_turns,
    is_name_current,
    is_named_by,
    list_topics,
    load_current_turns,
)
from told.text.tokens import format_value


def rename_topics(
    ctx: TopicContext, account: str, entries: Iterable[Entry], head_seq: int
) -> Flow[int]:
    """Rename, in one commit, the topics whose naming turn changed; return the count."""
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
    """Return the threads that entries changed, and the turns of retracted threads."""
    verbs = [entry.verb for entry in entries if isinstance(entry.verb, Asserted | Retracted)]
    threads = dict.fromkeys(verb.thread for verb in verbs)
    evidence: dict[str, None] = {}
    for thread in dict.fromkeys(verb.thread for verb in verbs if isinstance(verb, Retracted)):
        history = (
            entry.verb
            for entry in (yield from call(ctx.store.scan_entries, account, thread=thread))
        )
        evidence |= {
            v.claim.evidence: None for v in history if isinstance(v, Asserted) and v.claim.evidence
        }
    evidence_ids = list(evidence)
    for start in range(0, len(evidence_ids), PAGE_SIZE):
        versions = yield from call(
            ctx.store.find_versions, account, evidence=evidence_ids[start : start + PAGE_SIZE]
        )
        threads |= {fact.id: None for fact in versions if fact.kind == TURN}
    return list(threads)


def _find_topics_named_by(
    ctx: TopicContext, account: str, turns: Sequence[str]
) -> Flow[list[Fact]]:
    """Return the topics named after any of some turns, without supertopics."""
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
    """Return the turn to name a topic after, or None; return the topic to keep its name."""
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


NO_EMBEDDER_WARNING = (
    "No embedder is in use, so no topics are created; `told models install` adds one."
)


@dataclass(frozen=True, slots=True)
class TopicAssignmentResult:
    """The number of exchanges assigned, topics created and topics split, with warnings."""

    exchanges: int = 0
    created: int = 0
    split: int = 0
    warnings: tuple[str, ...] = ()

    def __add__(self, other: TopicAssignmentResult) -> TopicAssignmentResult:
        return TopicAssignmentResult(
            self.exchanges + other.exchanges,
            self.created + other.created,
            self.split + other.split,
            (*self.warnings, *other.warnings),
        )


class _NoEmbedder(Exception):
    """Exchanges are pending, but no embedder is configured."""


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Entries of complete transactions, and the head of the ledger before they were read."""

    entries: Sequence[Entry]
    head_seq: int


def assign_pending_exchanges(ctx: TopicContext, account: str) -> Flow[TopicAssignmentResult]:
    """Assign every pending exchange to a topic, one page of the ledger at a time."""
    assigner: Consumer[LedgerPage, TopicAssignmentResult] = Consumer(
        name=CONSUMER,
        load_batch=partial(_load_page, ctx, account),
        process=partial(_process_page, ctx, account),
        conflict_attempts=ctx.settings.ingestion.conflict_retries,
    )
    run = yield from catch_failure(drain(ctx.store, account, assigner))
    failure = run if isinstance(run, Failure) else run.failure
    warnings: tuple[str, ...] = ()
    if failure is not None:
        no_embedder = isinstance(failure.error, _NoEmbedder)
        warnings = (
            NO_EMBEDDER_WARNING if no_embedder else f"Not assigned to topics yet: {failure}",
        )
    results = [] if isinstance(run, Failure) else run.results
    return sum(results, TopicAssignmentResult()) + TopicAssignmentResult(warnings=warnings)


def _load_page(ctx: TopicContext, account: str) -> Flow[JobBatch[LedgerPage] | None]:
    """Return the next page of the ledger, cut at the end of a transaction."""
    before = yield from call(ctx.store.get_cursor, account, CONSUMER)
    head = yield from call(ctx.store.get_head, account)
    limit = ctx.settings.maintenance.consumer_batch
    entries = yield from call(ctx.store.scan_entries, account, before, limit)
    while entries and len(entries) == limit and not _drop_last_transaction(entries):
        limit *= 2
        entries = yield from call(ctx.store.scan_entries, account, before, limit)
    if not entries:
        return None
    complete = _drop_last_transaction(entries) if len(entries) == limit else entries
    step = CursorStep(CONSUMER, before, complete[-1].seq)
    return JobBatch([Job(LedgerPage(complete, head.seq), step)])


def _process_page(
    ctx: TopicContext, account: str, page: LedgerPage, step: CursorStep | None
) -> Flow[TopicAssignmentResult]:
    """Rename the topics that a page affects and assign its exchanges."""
    assert step is not None
    head_seq = page.head_seq
    if (yield from rename_topics(ctx, account, page.entries, head_seq)):
        head_seq = (yield from call(ctx.store.get_head, account)).seq
    unassigned = yield from _filter_unassigned(ctx, account, _collect_exchanges(page.entries))
    if not unassigned:
        yield from skip_step(ctx.store, account, step)
        return TopicAssignmentResult()
    if ctx.embedder is None:
        raise _NoEmbedder
    changesets, count = [], 0
    for scope, exchanges in unassigned.items():
        changes = yield from begin_changes(ctx, scope)
        count += yield from assign_exchanges(changes, exchanges)
        changesets.append(changes)
    yield from commit_changes(ctx, changesets, step, head_seq)
    return TopicAssignmentResult(
        count, sum(f.created_count for f in changesets), sum(f.split_count for f in changesets)
    )


def _drop_last_transaction(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries without the last transaction, which may be incomplete."""
    return [entry for entry in entries if entry.tx != entries[-1].tx]


def _collect_exchanges(entries: Iterable[Entry]) -> dict[Scope, list[TopicMember]]:
    """Return the exchanges that entries create, by scope."""
    threads_by_exchange: dict[tuple[Scope, str], dict[str, None]] = {}
    for entry in entries:
        match entry.draft:
            case Draft(verb=Linked(src=src, rel=rel, dst=dst), scope=Scope() as scope) if (
                rel == IN_EXCHANGE
            ):
                threads_by_exchange.setdefault((scope, dst), {})[src] = None
            case _:
                pass
    members: dict[Scope, list[TopicMember]] = {}
    for (scope, exchange), threads in threads_by_exchange.items():
        members.setdefault(scope, []).append(TopicMember(exchange, tuple(threads)))
    return members


def _filter_unassigned(
    ctx: TopicContext, account: str, exchanges: dict[Scope, list[TopicMember]]
) -> Flow[dict[Scope, list[TopicMember]]]:
    """Return the exchanges without a topic; rereading a ledger assigns none twice."""
    threads = [
        thread for members in exchanges.values() for member in members for thread in member.threads
    ]
    links = yield from _load_links(ctx, account, threads)
    assigned = {link.meta.get(EXCHANGE) for link in links if link.rel == IN_TOPIC}
    remaining = {
        scope: [exchange for exchange in members if exchange.key not in assigned]
        for scope, members in exchanges.items()
    }
    return {scope: members for scope, members in remaining.items() if members}


def commit_changes(
    ctx: TopicContext, changesets: Sequence[TopicChanges], step: CursorStep, head_seq: int = -1
) -> Flow[None]:
    """Commit the topic changes of some scopes and cache their indexes."""
    epochs = [changes.renew_epoch() for changes in changesets]
    drafts: list[Draft] = []
    guards: list[Guard] = []
    notes: dict[str, bytes | None] = {}
    for changes in changesets:
        drafts += changes.drafts
        guards += changes.guards
        notes |= changes.notes
    account = changesets[0].scope.account
    yield from commit_batch(
        ctx.store, Batch(account, drafts, guards, head_seq, step=step, notes=notes)
    )
    for changes, epoch in zip(changesets, epochs, strict=True):
        ctx.cache.put(changes.scope, epoch, changes.topic_index)


def load_current_step(ctx: TopicContext, account: str) -> Flow[CursorStep]:
    """Return a step that keeps the cursor, to serialise with the topic consumer."""
    cursor = yield from call(ctx.store.get_cursor, account, CONSUMER)
    return CursorStep(CONSUMER, cursor, cursor)


def change_topics(
    ctx: TopicContext, scope: Scope, change: Callable[[TopicChanges], Flow[None]]
) -> Flow[TopicChanges]:
    """Change the topics of a scope in one commit; retry on conflict."""

    def decide() -> Flow[TopicChanges]:
        step = yield from load_current_step(ctx, scope.account)
        head = yield from call(ctx.store.get_head, scope.account)
        changes = yield from begin_changes(ctx, scope)
        yield from change(changes)
        yield from commit_changes(ctx, [changes], step, head.seq)
        return changes

    return (yield from retry_on_conflict(ctx.settings.ingestion.conflict_retries, decide))


# Erasure


@dataclass(slots=True)
class ErasureDamage:
    """The topics of a scope that lose members, and exchanges that lose their topic."""

    topics: dict[str, None] = field(default_factory=dict)
    exchange_keys: dict[str, None] = field(default_factory=dict)
    orphans: dict[str, dict[str, None]] = field(default_factory=dict)


def prepare_erasure(
    ctx: TopicContext, account: str, threads: Iterable[str]
) -> Flow[dict[Scope, ErasureDamage]]:
    """Delete every note that includes these threads; return what to repair afterwards."""
    erased = set(threads)
    damage_by_scope: dict[Scope, ErasureDamage] = {}
    links = yield from _load_links(ctx, account, sorted(erased))
    for link in (link for link in links if link.rel in (IN_TOPIC, IN_EXCHANGE)):
        damage = damage_by_scope.setdefault(link.scope, ErasureDamage())
        if link.rel == IN_TOPIC and link.dst in erased:
            damage.orphans.setdefault(str(link.meta.get(EXCHANGE, link.src)), {})[link.src] = None
        elif link.rel == IN_TOPIC:
            damage.topics[link.dst] = None
            damage.exchange_keys[str(link.meta.get(EXCHANGE, link.src))] = None
        else:
            damage.exchange_keys[link.dst] = None
    yield from _delete_notes(ctx, account, damage_by_scope)
    return damage_by_scope


def _load_links(ctx: TopicContext, account: str, nodes: Sequence[str]) -> Flow[list[Link]]:
    links: list[Link] = []
    for start in range(0, len(nodes), PAGE_SIZE):
        links += yield from call(ctx.store.find_links, account, nodes[start : start + PAGE_SIZE])
    return sorted({link.seq: link for link in links}.values(), key=lambda link: link.seq)


def _delete_notes(
    ctx: TopicContext, account: str, damage_by_scope: dict[Scope, ErasureDamage]
) -> Flow[None]:
    notes: dict[str, bytes | None] = {}
    for scope, damage in damage_by_scope.items():
        notes |= dict.fromkeys((*damage.topics, *damage.exchange_keys, epoch_key(scope)))
    if notes:
        yield from call(ctx.store.update_consumer, account, CONSUMER, notes=notes)


def repair_after_erasure(
    ctx: TopicContext,
    account: str,
    damage_by_scope: dict[Scope, ErasureDamage],
    threads: Iterable[str],
) -> Flow[None]:
    """Recompute topics that lost members and reassign exchanges that lost their topic."""
    erased = set(threads)
    yield from _delete_notes(ctx, account, damage_by_scope)
    for scope, damage in damage_by_scope.items():
        members = (
            TopicMember(exchange_key, tuple(t for t in threads if t not in erased))
            for exchange_key, threads in damage.orphans.items()
        )
        orphans = [member for member in members if member.threads]
        if orphans or (
            yield from call(ctx.store.current_facts, scope, ctx.id_generator.now(), kinds=[TOPIC])
        ):
            yield from change_topics(ctx, scope, partial(_assign_orphans, orphans))


def _assign_orphans(orphans: Sequence[TopicMember], changes: TopicChanges) -> Flow[None]:
    """Assign exchanges that lost their topic; loading the index recomputed the other means."""
    yield from assign_exchanges(changes, orphans)


def invalidate_after_import(ctx: TopicContext, account: str, after: int) -> Flow[None]:
    """Delete all notes if imported entries erased anything; they are rebuilt on demand."""
    while page := (yield from call(ctx.store.scan_entries, account, after, PAGE_SIZE * 4)):
        if any(entry.sort == "erased" for entry in page):
            notes = yield from call(ctx.store.read_notes, account, CONSUMER)
            yield from call(
                ctx.store.update_consumer, account, CONSUMER, notes=dict.fromkeys(notes)
            )
            return
        after = page[-1].seq


# Rebuilding


def rebuild_topics(ctx: TopicContext, account: str) -> Flow[int]:
    """Recompute every mean from links and noted vectors; return the number of topics."""
    topics = yield from _load_topic_scopes(ctx, account)
    scopes = dict.fromkeys(topics.values())
    notes = yield from call(ctx.store.read_notes, account, CONSUMER)
    stale: dict[str, bytes | None] = {
        key: None for key, note in notes.items() if is_packed_mean(note)
    }
    stale |= dict.fromkeys(map(epoch_key, scopes))
    if stale:
        yield from call(ctx.store.update_consumer, account, CONSUMER, notes=stale)
    for scope in scopes:
        yield from change_topics(ctx, scope, partial(_assign_orphans, ()))
    return len(topics)


def _load_topic_scopes(ctx: TopicContext, account: str) -> Flow[dict[str, Scope]]:
    """Return the scope of every current topic by id."""
    scopes: dict[str, Scope] = {}
    seq = 0
    while page := (yield from call(ctx.store.scan_entries, account, seq, PAGE_SIZE * 4)):
        for entry in page:
            if isinstance(entry.verb, Asserted) and entry.verb.claim.kind == TOPIC:
                fact = yield from call(ctx.store.get_fact, account, entry.verb.thread)
                if fact is not None and not fact.meta.get(SUPER):
                    scopes[fact.id] = fact.scope
        seq = page[-1].seq
    return scopes


MAX_NAME_WORDS: Final = 10
"""The maximum number of words in a topic name from a model."""


@dataclass(frozen=True, slots=True)
class TopicMergeResult:
    """The merged pairs of topics, the supertopics, and warnings."""

    merged: tuple[tuple[str, str], ...] = ()
    supertopics: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def merge_topics(ctx: TopicContext, scope: Scope) -> Flow[TopicMergeResult]:
    """Merge nearly identical topics; the older one takes the members of the younger."""
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
    """Return the centroid of every topic of a scope."""
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
    """Add the co-occurrence counts of merged topics to their replacement."""
    cooccurrence = (
        (yield from call(ctx.store.cooccurrence, account, list(merged_into))) if merged_into else {}
    )
    pairs: dict[tuple[str, str], AccessCount] = {}
    for (first, second), count in cooccurrence.items():
        a, b = sorted((merged_into.get(first, first), merged_into.get(second, second)))
        if a != b:
            pairs[a, b] = pairs[a, b] + count if (a, b) in pairs else count
    if pairs:
        yield from call(ctx.store.record_accesses, account, AccessBatch(cooccurrences=pairs))


# Supertopics


SupertopicNames: TypeAlias = dict[frozenset[str], str]
"""The names of supertopics by the ids of their parts."""


def build_supertopics(ctx: TopicContext, scope: Scope, llm: LLM | None) -> Flow[TopicMergeResult]:
    """Group topics into supertopics and retract those that no longer apply.

    The model names each group before the commit; groups that change meanwhile are named without
    it.
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
    """Topics of one group, its existing supertopic, and whether that is named."""

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
    """Draft the supertopics as they should be and return their ids."""
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
    """Return the groups of a scope's non-empty topics, and supertopics that no longer apply."""
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
            supertopic = existing.pop(frozenset(topic_ids), None)
            parts = [visible[topic_id] for topic_id in topic_ids]
            is_named = supertopic is not None and is_name_current(
                supertopic, (topics[topic_id] for topic_id in topic_ids), parts
            )
            groups.append(_SupertopicGroup(tuple(parts), supertopic, is_named))
    return groups, [supertopic.id for supertopic in existing.values()]


def _load_supertopics(ctx: TopicContext, scope: Scope) -> Flow[dict[frozenset[str], Fact]]:
    """Return the existing supertopics by the ids of their parts."""
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


# Names


def _ask_for_names(
    ctx: TopicContext, scope: Scope, llm: LLM
) -> Flow[tuple[SupertopicNames, list[str]]]:
    """Ask the model to name unnamed groups; return the names and warnings."""
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
    """Ask the model for a common name; raise `LLMError` if the reply is not a name."""
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
