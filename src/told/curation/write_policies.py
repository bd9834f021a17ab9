"""Write policies of kinds: find the thread of a document and enforce cardinality.

A claim with a predicate is one statement, and its slot identifies its thread. A claim without one
is a document of its kind, such as a profile, a topic or a skill. A claim with only a subject is an
unparsed sentence, identified by its text. Documents share one thread per owner (merge) or per
routing key (aggregate, cumulative), or get their own (append). A kind over its cardinality evicts
its oldest or weakest memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from told.curation.decisions import (
    EVICTED,
    NEGATED,
    decide_add,
    decide_delete,
    decide_none,
    decide_quarantine,
    decide_update,
    get_said_time,
    is_ended,
    is_late,
    is_trusted_over,
    make_historical,
    merge_meta,
)
from told.curation.lookup import CurationState
from told.errors import InvalidInput
from told.ids import uuid7_created_at
from told.ingest.types import Decision
from told.model.beliefs import TRUST_KEY, trust_of_channel, trust_of_source
from told.model.decay import compute_strength
from told.model.entry import Claim
from told.model.fact import Fact
from told.model.kind import Eviction, Field, Kind, Semantics, WriteMode, slugify
from told.runtime import lazy_regex
from told.text.similarity import are_similar_slugs, is_same_text
from told.text.tokens import format_value, split_sentences

ABSTRACT_LIMIT: Final = 200
VALUE: Final = "value"
USAGE_COUNT: Final = "usage_count"
STEPS_FIELD: Final = "steps"
_LIST_ITEM: Final = lazy_regex(r"(?:[-*\u2022]|\d+[.)])\s")


def decide_document(state: CurationState, claim: Claim) -> list[Decision]:
    """Decide about a document; return [] if its kind has no thread for it."""
    kind = state.get_kind(claim.kind)
    if (
        kind is None
        or kind.write is WriteMode.APPEND
        or (kind.write is WriteMode.MERGE and claim.subject is not None)
    ):
        return []
    key = get_routing_key(kind, claim)
    if key is None and kind.is_keyed:
        return []
    current = _find_thread_fact(state, kind, key)
    if claim.polarity == NEGATED:
        return [_decide_denied(state, claim, current)]
    if current is None:
        return [decide_add(claim, f"the first {kind.name} of its thread")]
    if is_late(claim, current, state.now):
        return [
            decide_add(
                make_historical(claim, current, state.now),
                "said before the memory, so it replaces nothing",
            )
        ]
    if not is_trusted_over(claim, current):
        return [decide_quarantine(claim, current)]
    return [_decide_existing(kind, claim, current)]


def get_routing_key(kind: Kind, claim: Claim) -> str | None:
    """Return the routing key of a document as a slug, or None."""
    if kind.key is None:
        return None
    value = claim.meta.get(kind.key, claim.object if kind.key == VALUE else None)
    return slugify(str(value)) or None if value is not None else None


def _find_thread_fact(state: CurationState, kind: Kind, key: str | None) -> Fact | None:
    """Return the fact a document continues: the owner's latest, or one with a similar key."""
    documents = [
        fact
        for fact in reversed(state.facts)
        if fact.kind == kind.name
        and fact.predicate is None
        and not is_ended(fact, state.now)
        and (kind.write is not WriteMode.MERGE or fact.subject is None)
    ]
    if key is None or _is_single_valued(kind):
        return next(iter(documents), None)
    keyed_facts = [
        (fact, fact_key)
        for fact in documents
        if (fact_key := _get_fact_key(kind, fact)) is not None
    ]
    exact = (fact for fact, fact_key in keyed_facts if fact_key == key)
    similar = (fact for fact, fact_key in keyed_facts if are_similar_slugs(fact_key, key))
    return next(exact, None) or next(similar, None)


def _is_single_valued(kind: Kind) -> bool:
    """Return True if a concept holds one value at a time."""
    return kind.key == VALUE and kind.semantics is Semantics.FUNCTIONAL


def _get_fact_key(kind: Kind, fact: Fact) -> str | None:
    value = fact.meta.get(kind.key or "", fact.object if kind.key == VALUE else None)
    return None if value is None else slugify(str(value))


def _decide_denied(state: CurationState, claim: Claim, current: Fact | None) -> Decision:
    if current is None or is_late(claim, current, state.now):
        return decide_none(claim, current, "nothing is held that it could end")
    return (
        decide_delete(claim, current, NEGATED)
        if is_trusted_over(claim, current)
        else decide_quarantine(claim, current)
    )


def _decide_existing(kind: Kind, claim: Claim, current: Fact) -> Decision:
    """Merge a document with the current one of its thread, as its kind says."""
    if kind.write is WriteMode.CUMULATIVE:
        return decide_update(_accumulate_uses(kind, claim, current), current, "adds a use")
    is_repeat = kind.key == VALUE and are_similar_slugs(
        _get_fact_key(kind, current) or "", get_routing_key(kind, claim) or ""
    )
    meta = _merge_fields(kind, current, claim)
    if is_repeat or (is_same_text(claim.text, current.text) and meta == current.meta):
        return decide_none(claim, current, "already known")
    if kind.semantics is not Semantics.MULTI:
        return decide_update(replace(claim, meta=meta), current, "replaced by a newer version")
    text = merge_texts(current.text, claim.text)
    return decide_update(
        replace(claim, text=text, meta=meta | _build_source_stamp(current, claim)),
        current,
        "adds to the document",
    )


def _merge_fields(kind: Kind, current: Fact, claim: Claim) -> dict[str, Any]:
    """Merge the fields, preferring newer values but keeping the thread's key."""
    key, old_meta = kind.key or "", current.meta
    kept_key = {key: old_meta[key]} if key in old_meta and not _is_single_valued(kind) else {}
    return merge_meta(current, claim) | kept_key


def _build_source_stamp(current: Fact, claim: Claim) -> dict[str, str]:
    """Return the lower trust of two sources as a stamp, if below the claim's channel."""
    lowest = min(trust_of_source(current), trust_of_source(claim))
    return {TRUST_KEY: lowest.label} if lowest < trust_of_channel(claim.role) else {}


def _accumulate_uses(kind: Kind, claim: Claim, current: Fact) -> Claim:
    """Merge a use into a cumulative document and add up the usage counts."""
    old, new = current.meta, claim.meta
    merged = {
        name: merge_texts(str(old[name]), str(new[name]))
        for name in (STEPS_FIELD, "content")
        if name in old and name in new
    }
    meta = {
        **_merge_fields(kind, current, claim),
        **merged,
        USAGE_COUNT: _get_use_count(old) + _get_use_count(new),
        **_build_source_stamp(current, claim),
    }
    return replace(claim, text=merge_texts(current.text, claim.text), meta=meta)


def _get_use_count(meta: Mapping[str, Any]) -> int:
    value = meta.get(USAGE_COUNT, 1)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def merge_texts(old: str, new: str) -> str:
    """Append the statements of a text that an older text lacks."""
    old_statements = _split_statements(old)
    new_statements = [
        statement
        for statement in _split_statements(new)
        if not any(is_same_text(statement, earlier) for earlier in old_statements)
    ]
    return "\n".join((old, *new_statements))


def _split_statements(text: str) -> list[str]:
    """Split a text into sentences, keeping list items whole."""
    lines = (line.strip() for line in text.splitlines())
    return [
        statement
        for line in lines
        for statement in ([line] if _LIST_ITEM.match(line) else split_sentences(line))
    ]


# Eviction


def evict_overflow(state: CurationState, decision: Decision) -> list[Decision]:
    """Return the retractions needed to keep a kind within its cardinality.

    The new memory is evicted only if all others are more trusted.
    """
    claim = decision.claim
    kind = state.get_kind(claim.kind) if claim is not None and decision.event == "ADD" else None
    if claim is None or kind is None or kind.cardinality is None or claim.polarity != "asserted":
        return []
    members = [
        fact
        for fact in state.facts
        if fact.kind == kind.name and fact.polarity == "asserted" and not is_ended(fact, state.now)
    ]
    *others, newcomer = members
    leaving = _sort_by_strength(
        state, kind, [fact for fact in others if is_trusted_over(claim, fact)]
    )
    return [
        decide_delete(claim, fact, EVICTED)
        for fact in [*leaving, newcomer][: max(0, len(members) - kind.cardinality)]
    ]


def _sort_by_strength(state: CurationState, kind: Kind, facts: Sequence[Fact]) -> list[Fact]:
    score = _get_last_said_time if kind.eviction is Eviction.RECENCY else _compute_salience
    return sorted(facts, key=lambda fact: (score(state, kind, fact), fact.seq))


def _get_last_said_time(state: CurationState, _: Kind, fact: Fact) -> float:
    """Return when a memory was last said."""
    return max(
        get_said_time(fact, state.now),
        *(uuid7_created_at(link.src) or 0 for link in state.repeats.get(fact.id, ())),
        0,
    )


def _compute_salience(state: CurationState, kind: Kind, fact: Fact) -> float:
    """Return the current salience of a memory."""
    return compute_strength(fact, kind, state.clocks, state.list_fact_mentions(fact)).weight


# Fields


def validate_fields(kind: Kind, values: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the fields with defaults; raise `InvalidInput` listing every invalid field."""
    if problems := [*find_field_errors(kind, values), *_find_missing_fields(kind, values, text)]:
        raise InvalidInput(
            f"Invalid {kind.name}: {'; '.join(problems)}.",
            hint=f"See `told kinds show {kind.name}`.",
        )
    defaults = {field.name: field.default for field in kind.fields if field.default is not None}
    return {**defaults, **values}


def check_given_fields(kind: Kind, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Check the fields given for a kind and return warnings; raise if one is invalid."""
    if problems := list(find_field_errors(kind, values)):
        raise InvalidInput(
            f"Invalid {kind.name}: {'; '.join(problems)}.",
            hint=f"See `told kinds show {kind.name}`.",
        )
    if kind.is_keyed and not slugify(str(values.get(kind.key or "") or "")):
        warning = (
            f"This {kind.name} has no {kind.key} in its metadata, so it cannot be updated by key; "
            "only an identical text is recognised."
        )
        return (warning,)
    return ()


def find_field_errors(kind: Kind, values: Mapping[str, Any]) -> Iterable[str]:
    """Yield the errors in the given fields."""
    for field in kind.fields:
        if field.name in values and (problem := _describe_field_error(field, values[field.name])):
            yield problem


def _describe_field_error(field: Field, value: Any) -> str:
    if not field.type.accepts(value):
        return f"{field.name} is {format_value(value)}, not a {field.type}"
    if field.enum and value not in field.enum:
        return (
            f"{field.name} is {format_value(value)}, not one of {', '.join(map(str, field.enum))}"
        )
    return ""


def _find_missing_fields(kind: Kind, values: Mapping[str, Any], text: str) -> Iterable[str]:
    """Yield missing required fields; the text counts as content, and as abstract if short."""
    covered_by_text = {"content"} | ({"abstract"} if len(text) <= ABSTRACT_LIMIT else set())
    for field in kind.fields:
        if (
            field.required
            and not str(values.get(field.name) or "").strip()
            and field.name not in covered_by_text
        ):
            yield f"{field.name} is missing"
