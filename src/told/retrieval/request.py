"""Parse and validate read arguments: scope, as-of point, filters and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from told.errors import InvalidInput, TimeError
from told.flow import Flow, call
from told.ids import IdGenerator
from told.model.beliefs import BELIEFS, Lens, get_lens
from told.model.filter import AllOf, AnyOf, Comparison, Filter, parse_filter, split_scope
from told.model.query import LATEST, MAX_LIMIT, AsOf, FactQuery
from told.model.scope import Scope, validate_identifier
from told.model.validation import suggest_option
from told.ports import Store
from told.retrieval.candidates import ReadContext, find_denials
from told.retrieval.render import FORMATS, ContextRequest
from told.settings import Settings
from told.text.dates import from_us, parse_instant, parse_moment
from told.text.tokens import format_value, validate_label

UNKNOWN_KIND_READ_WARNING = "Unknown kind {}: it is not declared, and no memory here has it.{}"
UNKNOWN_KIND_WRITE_WARNING = (
    "Unknown kind {}: the memory is stored under that name, without rules of its own.{}"
)


def extract_kind_names(condition: Filter) -> tuple[str, ...]:
    """Return the kind names a filter asks for."""
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
    """Return a warning for each unknown kind a read filters by, as of the time it reads."""
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
    """Return a warning if a write uses an unknown kind."""
    return (yield from _build_warnings(ctx, scope, now, (kind,), UNKNOWN_KIND_WRITE_WARNING))


def _build_warnings(
    ctx: ReadContext, scope: Scope, as_of: AsOf, names: Iterable[str], template: str
) -> Flow[tuple[str, ...]]:
    """Return a warning for each name that is neither declared nor the kind of a visible fact."""
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
    """Return the kinds of the visible facts matching a condition."""
    facts = yield from call(ctx.store.find_facts, replace(query, filter=condition, limit=limit))
    denied = find_denials(facts, ctx.guards)
    return frozenset(fact.kind for fact in facts if fact.seq not in denied)


MAX_OFFSET = 10**9
MAX_BUDGET = 10**9
MAX_POSITION = 10**15
MAX_CHANGES = 10 * MAX_LIMIT


def resolve_scope_and_filter(
    ids: Mapping[str, Any], filters: Any, account: str
) -> tuple[Scope, Any]:
    """Return the scope from the arguments and the filters, and the remaining filters."""
    filter_ids, rest = split_scope(filters)
    if not filter_ids:
        return Scope.create(**ids, account=account), rest
    argument_ids = {
        name: validate_identifier(value, name) for name, value in ids.items() if value is not None
    }
    for name in filter_ids.keys() & argument_ids.keys():
        if filter_ids[name] != argument_ids[name]:
            raise InvalidInput(
                f"{name} is {argument_ids[name]!r} in the call, "
                f"but {filter_ids[name]!r} in its filters."
            )
    return Scope.create(
        **filter_ids,
        **{k: v for k, v in argument_ids.items() if k not in filter_ids},
        account=account,
    ), rest


def resolve_as_of(
    store: Store,
    id_generator: IdGenerator,
    account: str,
    settings: Settings,
    *,
    as_of: Any = None,
    valid_at: Any = None,
) -> Flow[AsOf]:
    """Resolve `as_of` (a time or a ledger position such as `#12`) and `valid_at`."""
    now = id_generator.now()
    valid_instant = None if valid_at is None else _parse_instant(valid_at, now, settings)
    if as_of is None:
        return AsOf(LATEST, now, valid_instant)
    if isinstance(as_of, str) and as_of.startswith("#"):
        seq = _parse_position(as_of)
        entries = yield from call(store.scan_entries, account, seq - 1, 1)
        return AsOf(seq, entries[0].at if entries else now, valid_instant)
    at = _parse_instant(as_of, now, settings)
    head = yield from call(store.get_head, account, at)
    return AsOf(head.seq, at, valid_instant)


def _parse_position(text: str) -> int:
    digits = text[1:] if len(text) <= len(str(MAX_POSITION)) else ""
    if not digits.isdecimal() or int(digits) < 1:
        raise TimeError(
            f"{format_value(text)} is not a ledger position.", hint="Positions look like #12."
        )
    return int(digits)


def _parse_instant(value: Any, now: int, settings: Settings) -> int:
    zone = settings.zone or None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str):
        return parse_moment(value, now=from_us(now), zone=zone)
    if isinstance(value, datetime) or not isinstance(value, bool):
        return parse_instant(value, zone=zone)
    raise TimeError(f"{format_value(value)} is not a time.")


def parse_limit(limit: Any, top_k: Any, settings: Settings) -> int:
    """Return the number of results from `limit` or its alias `top_k`."""
    given = {"limit": limit, "top_k": top_k}
    values = {
        parse_int(value, name, 1, MAX_LIMIT) for name, value in given.items() if value is not None
    }
    if len(values) > 1:
        raise InvalidInput("limit and top_k are the same option; pass only one of them.")
    return values.pop() if values else settings.limit


def parse_int(value: Any, name: str, minimum: int, maximum: int) -> int:
    """Return an integer within bounds, or raise InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidInput(
            f"{name} must be a whole number from {minimum} to {maximum}, not {format_value(value)}."
        )
    return value


def parse_flag(value: Any, name: str) -> bool:
    """Return a bool; reject merely truthy values, which may be mistakes."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {format_value(value)}.")
    return value


def build_fact_query(
    scope: Scope,
    as_of: AsOf,
    filters: Any,
    *,
    limit: int | None,
    offset: Any = 0,
    show_expired: Any = False,
) -> FactQuery:
    """Build a fact query from checked and unchecked arguments."""
    include_expired = parse_flag(show_expired, "show_expired")
    skip = parse_int(offset, "offset", 0, MAX_OFFSET)
    return FactQuery(scope, as_of, parse_filter(filters), include_expired, limit, skip)


def restrict_to_kinds(query: FactQuery, kinds: Any) -> FactQuery:
    """Return the query restricted to some kinds."""
    if kinds is None:
        return query
    names = [kinds] if isinstance(kinds, str) else kinds
    if (
        not isinstance(names, list | tuple)
        or not names
        or not all(isinstance(kind, str) and kind for kind in names)
    ):
        raise InvalidInput(
            f"kinds must be a list of names, not {format_value(kinds)}.",
            hint='Such as ["profile", "event"].',
        )
    return replace(query, filter=AllOf((query.filter, parse_filter({"kind": {"in": list(names)}}))))


def parse_min_score(threshold: Any, min_score: Any) -> float:
    """Return the minimum score from `threshold` or its alias `min_score`."""
    given = {"threshold": threshold, "min_score": min_score}
    values = {_parse_share(value, name) for name, value in given.items() if value is not None}
    if len(values) > 1:
        raise InvalidInput("threshold and min_score are the same option; pass only one of them.")
    return values.pop() if values else 0.0


def _parse_share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {format_value(value)}.")
    return float(value)


def parse_belief(value: Any) -> str:
    """Return which side of a contradiction to show; "latest" by default."""
    if value is not None and not (isinstance(value, str) and value in BELIEFS):
        raise InvalidInput(
            f"Unknown belief {format_value(value)}.", hint=f"Use one of {', '.join(BELIEFS)}."
        )
    return value or "latest"


def parse_lens(value: Any) -> Lens | None:
    """Return the identity lens with this name, if any."""
    return None if value is None else get_lens(validate_label(value, "lens", limit=64))


def parse_reference_date(value: Any, as_of: AsOf, settings: Settings) -> datetime | None:
    """Return the time relative dates such as "last week" refer to."""
    return None if value is None else from_us(_parse_instant(value, as_of.at, settings))


def parse_context_request(
    budget: Any, format: Any, tail: Any, settings: Settings
) -> ContextRequest:
    """Build a context request from raw arguments."""
    tokens = settings.budget if budget is None else parse_int(budget, "budget", 1, MAX_BUDGET)
    turns = settings.tail if tail is None else parse_int(tail, "tail", 0, MAX_LIMIT)
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        raise InvalidInput(
            f"Unknown format {format_value(format)}.", hint=f"Use one of {', '.join(FORMATS)}."
        )
    return ContextRequest(tokens, format or "text", turns)


def drop_query_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a context without a query; reject those that need one."""
    query_only = ("threshold", "min_score", "rerank", "reference_date", "belief", "lens")
    for name in query_only:
        if options.get(name) is not None and options[name] is not False:
            raise InvalidInput(f"{name} needs a query.", hint="Pass a query, or leave it out.")
    return {name: value for name, value in options.items() if name not in query_only}
