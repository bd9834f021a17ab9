"""Kinds that a call names though nobody knows them: neither declared, nor had by a memory that it could see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from told.core.filter import AllOf, AnyOf, Comparison, Filter
from told.core.query import MAX_LIMIT, AsOf, FactQuery
from told.core.reading import suggest_option
from told.core.scope import Scope
from told.core.text import format_value
from told.flow import Flow, call
from told.read.gather import ReadContext
from told.read.guard import find_denials

UNKNOWN_KIND_READ_WARNING = "No kind is called {}: it is not declared, and no memory here has it.{}"
UNKNOWN_KIND_WRITE_WARNING = (
    "No kind is called {}: what was said is kept under that name, by no rules of its own.{}"
)


def extract_kind_names(condition: Filter) -> tuple[str, ...]:
    """The kinds that a filter asks for by their names."""
    match condition:
        case Comparison("kind", "eq", str(name)):
            return (name,)
        case Comparison("kind", "in", tuple(names)):
            return tuple([str(name) for name in names])
        case AllOf(parts) | AnyOf(parts):
            return tuple([name for part in parts for name in extract_kind_names(part)])
        case _:
            return ()


def warn_unknown_kinds(ctx: ReadContext, query: FactQuery) -> Flow[tuple[str, ...]]:
    """A warning for every unknown kind a read asks for, as of the moment it asks about."""
    return (
        yield from _build_warnings(
            ctx,
            query.scope,
            query.as_of,
            extract_kind_names(query.filter),
            UNKNOWN_KIND_READ_WARNING,
        )
    )


def warn_new_kind(ctx: ReadContext, scope: Scope, now: AsOf, kind: str) -> Flow[tuple[str, ...]]:
    """A warning if something is about to be kept under an unknown kind."""
    return (yield from _build_warnings(ctx, scope, now, (kind,), UNKNOWN_KIND_WRITE_WARNING))


def _build_warnings(
    ctx: ReadContext, scope: Scope, as_of: AsOf, names: Iterable[str], template: str
) -> Flow[tuple[str, ...]]:
    undeclared = [name for name in dict.fromkeys(names) if name not in ctx.kinds]
    if not undeclared:
        return ()
    query = FactQuery(scope, replace(as_of, valid_at=None), show_expired=True)
    existing: frozenset[str] = frozenset()
    for name in undeclared:
        existing |= yield from _find_existing_kinds(
            ctx, query, Comparison("kind", "eq", name), MAX_LIMIT if ctx.guards else 1
        )
    if existing.issuperset(undeclared):
        return ()
    undeclared_existing = yield from _find_existing_kinds(
        ctx, query, Comparison("kind", "nin", ctx.kinds.names), MAX_LIMIT
    )
    known = (*ctx.kinds, *undeclared_existing)
    unknown = [name for name in undeclared if name not in existing]
    return tuple(
        [
            template.format(format_value(name), f" {suggest_option(name, known)}".rstrip())
            for name in unknown
        ]
    )


def _find_existing_kinds(
    ctx: ReadContext, query: FactQuery, condition: Filter, limit: int
) -> Flow[frozenset[str]]:
    """The kinds of memories that a read finds and no guard stops."""
    facts = yield from call(ctx.store.find_facts, replace(query, filter=condition, limit=limit))
    denied = find_denials(facts, ctx.guards)
    return frozenset(fact.kind for fact in facts if fact.seq not in denied)
