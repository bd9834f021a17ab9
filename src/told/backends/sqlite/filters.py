"""Compile filters to SQL: a WHERE fragment, bound parameters and a residual filter.

Only the fixed fragments in this module become SQL text. Column names come from the table below;
metadata keys and values are bound parameters. Keys are compared with those of `json_each`, so no
JSON path can be injected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from told.ids import JSON
from told.model.filter import (
    MATCH_ALL,
    METADATA_PREFIX,
    SCOPE_FIELDS,
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    Not,
    combine_all,
)

CompiledFilter: TypeAlias = tuple[str, list[Any], Filter]

COLUMNS: Final = {
    "id": "f.thread",
    "memory": "f.text",
    "hash": "f.md5",
    "kind": "f.kind",
    "role": "f.role",
    "actor_id": "f.actor",
    "source": "f.source",
    "created_at": "f.created_at",
    "updated_at": "f.updated_at",
    "said_at": "f.said_at",
    "user_id": "s.user_id",
    "agent_id": "s.agent_id",
    "run_id": "s.run_id",
}
ORDERINGS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
NEGATIONS: Final = {"ne": "eq", "nin": "in"}

IN_SPACE: Final = "f.space IN (SELECT s.id FROM space AS s WHERE {})"
METADATA_KEY: Final = "EXISTS (SELECT 1 FROM json_each(f.meta) AS m WHERE m.key = ? AND {})"
# Without CASE, SQLite may parse a string as JSON before checking its type, and fail.
ANY_MEMBER: Final = (
    "EXISTS (SELECT 1 FROM json_each(CASE m.type WHEN 'array' THEN m.value ELSE "
    "'[]' END) AS e WHERE {})"
)
# Redundant with the fragment, but lets SQLite use the index for kinds other than the default.
DEFAULT_KIND: Final = "memory"
NOT_DEFAULT_KIND: Final = "({} AND f.kind <> 'memory')"
IN_LIST: Final = "{} IN (SELECT value FROM json_each(?))"
NUMERIC: Final = "{}.type IN ('integer', 'real')"

# SQLite guarantees 15 significant digits, and doubles for integers beyond 64 bits.
SLACK: Final = 1e-9
MIN_SLACK: Final = 1e-290


@dataclass(frozen=True, slots=True)
class SqlFragment:
    """A condition, its parameters, and whether it is exact or wider than the test."""

    sql: str
    params: tuple[Any, ...] = ()
    exact: bool = True

    def wrap_in(self, template: str, *params: Any) -> SqlFragment:
        """Insert this condition into a template, after the template's parameters."""
        return SqlFragment(template.format(self.sql), (*params, *self.params), self.exact)


SQL_TRUE: Final = SqlFragment("1")
SQL_FALSE: Final = SqlFragment("0")
SQL_UNKNOWN: Final = SqlFragment("1", exact=False)


def compile_filter(filter_: Filter) -> CompiledFilter:
    """Compile a filter to a WHERE fragment, parameters and a residual filter."""
    fragment = _build_fragment(filter_)
    return fragment.sql, list(fragment.params), _build_residual(filter_, fragment)


def _build_residual(filter_: Filter, fragment: SqlFragment) -> Filter:
    if fragment.exact:
        return MATCH_ALL
    if isinstance(filter_, AllOf):
        return combine_all(_build_residual(part, _build_fragment(part)) for part in filter_.parts)
    return filter_


def _build_fragment(filter_: Filter) -> SqlFragment:
    match filter_:
        case Comparison():
            return _compile_test(filter_)
        case AllOf(parts):
            return _join_and(map(_build_fragment, parts))
        case AnyOf(parts):
            return _join_or(map(_build_fragment, parts))
        case Not(part):
            return _negate(_build_fragment(part))
        case _:
            assert_never(filter_)


def _join_and(parts: Iterable[SqlFragment]) -> SqlFragment:
    return _join_fragments(" AND ", SQL_TRUE, list(parts))


def _join_or(parts: Iterable[SqlFragment]) -> SqlFragment:
    fragments = list(parts)
    return (
        SQL_UNKNOWN if SQL_UNKNOWN in fragments else _join_fragments(" OR ", SQL_FALSE, fragments)
    )


def _join_fragments(
    operator: str, neutral: SqlFragment, parts: Sequence[SqlFragment]
) -> SqlFragment:
    exact = all(part.exact for part in parts)
    kept = [part for part in parts if part.sql != neutral.sql]
    if not kept:
        return SqlFragment(neutral.sql, exact=exact)
    sql = kept[0].sql if len(kept) == 1 else f"({operator.join(part.sql for part in kept)})"
    return SqlFragment(sql, tuple(param for part in kept for param in part.params), exact)


def _negate(fragment: SqlFragment) -> SqlFragment:
    return fragment.wrap_in("NOT ({})") if fragment.exact else SQL_UNKNOWN


def _compile_test(test: Comparison) -> SqlFragment:
    if test.op in NEGATIONS:
        return _negate(_compile_test(Comparison(test.field, NEGATIONS[test.op], test.value)))
    if test.field.startswith(METADATA_PREFIX):
        return _compile_metadata(test.op, test.value).wrap_in(
            METADATA_KEY, test.field.removeprefix(METADATA_PREFIX)
        )
    column = COLUMNS.get(test.field)
    if column is None:
        return SQL_UNKNOWN
    fragment = _compile_column(column, test.op, test.value)
    if (
        test.field == "kind"
        and test.op in ("eq", "in")
        and DEFAULT_KIND not in _get_test_values(test)
    ):
        return fragment.wrap_in(NOT_DEFAULT_KIND)
    return fragment.wrap_in(IN_SPACE) if test.field in SCOPE_FIELDS else fragment


def _get_test_values(test: Comparison) -> Sequence[Any]:
    return test.value if test.op == "in" and isinstance(test.value, list | tuple) else (test.value,)


def _encode_list(values: Iterable[JSON]) -> str:
    return json.dumps(list(values))


# Columns: strings and instants, or NULL


def _compile_column(column: str, op: str, value: Any) -> SqlFragment:
    match op:
        case "eq":
            return SqlFragment(f"{column} IS ?", (value,))
        case "in":
            return _compile_in(column, value)
        case "contains":
            return _require_not_null(column, SqlFragment(f"instr({column}, ?) > 0", (value,)))
        case "icontains":
            return _require_not_null(column, _compile_icontains(column, value))
        case _:
            return _require_not_null(column, SqlFragment(f"{column} {ORDERINGS[op]} ?", (value,)))


def _require_not_null(column: str, fragment: SqlFragment) -> SqlFragment:
    return fragment.wrap_in(f"({column} IS NOT NULL AND {{}})")


def _compile_in(column: str, values: Sequence[Any]) -> SqlFragment:
    non_null = [value for value in values if value is not None]
    membership = (
        _require_not_null(column, SqlFragment(IN_LIST.format(column), (_encode_list(non_null),)))
        if non_null
        else SQL_FALSE
    )
    return (
        _join_or((membership, SqlFragment(f"{column} IS NULL"))) if None in values else membership
    )


def _compile_icontains(expression: str, value: str) -> SqlFragment:
    """Compile a case-insensitive substring test; non-ASCII cases stay residual."""
    folded = value.casefold()
    beyond_ascii = f"octet_length({expression}) <> length({expression})"
    if not folded.isascii():
        return SqlFragment(beyond_ascii, exact=False)
    return SqlFragment(
        f"(instr(lower({expression}), ?) > 0 OR {beyond_ascii})", (folded,), exact=False
    )


# Metadata: row `m` of json_each holds a key's value; list members are rows `e`


def _compile_metadata(op: str, value: Any) -> SqlFragment:
    match op:
        case "eq":
            return _compile_equality("m", (value,))
        case "in":
            return _compile_equality("m", value)
        case "contains":
            member = _compile_equality("e", (value,)).wrap_in(ANY_MEMBER)
            return (
                _join_or((_compile_substring(value), member)) if isinstance(value, str) else member
            )
        case "icontains":
            text = _join_and((SqlFragment("m.type = 'text'"), _compile_icontains("m.value", value)))
            return _join_or((text, SqlFragment("m.type = 'array'", exact=False)))
        case _:
            return _compile_comparison(op, value)


def _compile_substring(value: str) -> SqlFragment:
    return SqlFragment("(m.type = 'text' AND instr(m.value, ?) > 0)", (value,))


def _compile_comparison(op: str, value: Any) -> SqlFragment:
    if isinstance(value, str):
        return SqlFragment(f"(m.type = 'text' AND m.value {ORDERINGS[op]} ?)", (value,))
    low, high = _widen_bounds(value, value)
    bound = low if op in ("gt", "gte") else high
    return SqlFragment(
        f"({NUMERIC.format('m')} AND m.value {ORDERINGS[op]} ?)", (bound,), exact=False
    )


def _compile_equality(row: str, values: Sequence[Any]) -> SqlFragment:
    """Compile equality with any of these values, by type."""
    types = {_get_json_type(value) for value in values}
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if _get_json_type(value) == "number"]
    type_names = sorted(types - {"text", "number"})
    exact = types.isdisjoint({"array", "object"})
    parts = [
        SqlFragment(IN_LIST.format(f"{row}.type"), (_encode_list(type_names),), exact)
        if type_names
        else SQL_FALSE,
        SqlFragment(
            f"({row}.type = 'text' AND {IN_LIST.format(f'{row}.value')})", (_encode_list(texts),)
        )
        if texts
        else SQL_FALSE,
        _compile_range(row, _widen_bounds(min(numbers), max(numbers))) if numbers else SQL_FALSE,
    ]
    return _join_or(parts)


def _compile_range(row: str, bounds: tuple[float, float]) -> SqlFragment:
    return SqlFragment(
        f"({NUMERIC.format(row)} AND {row}.value BETWEEN ? AND ?)", bounds, exact=False
    )


def _widen_bounds(low: float, high: float) -> tuple[float, float]:
    """Return bounds wide enough for SQLite's number parsing."""
    return float(low) - abs(float(low)) * SLACK - MIN_SLACK, float(high) + abs(
        float(high)
    ) * SLACK + MIN_SLACK


def _get_json_type(value: Any) -> str:
    """Return SQLite's name of a JSON value's type, with one name for numbers."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | tuple():
            return "array"
        case _:
            return "object"
