"""Filters on the fields of facts.

`parse_filter` parses an expression into a closed tree and `matches_filter` defines its meaning. A
backend may push down what it can evaluate exactly; the rest is evaluated here.

    {"tag": "work"}                                             a field equals a value
    {"priority": {"gte": 1, "lt": 5}, "tag": "work"}            operators; all fields must match
    {"field": "tag", "operator": "in", "value": ["a", "b"]}     the long form
    {"AND": […]}   {"OR": […]}   {"NOT": {…}}   {"NOT": […]}    connectives; also `$and`, `$eq`, …

Fields. `id memory hash kind role actor_id user_id agent_id run_id source created_at updated_at
said_at expiration_date` are built in (`data` and `text` are aliases of `memory`) and null where a
fact has no value. Any other name is a literal top-level metadata key: dots and brackets have no
meaning. `metadata.<key>` reaches a key named like a built-in field.

Semantics. Types are never coerced, and no value is a pattern.

- eq, in: JSON equality: 1 equals 1.0, true equals no number, lists and objects compare by member.
- gt gte lt lte: numbers with numbers, strings with strings by code point; otherwise false.
- contains: a string contains the value, or a list has an equal member.
- icontains: the same ignoring case; a list member must match as a whole.
- ne, nin: the negations of eq and in.
- A missing key equals nothing, not even null: every operator but ne and nin is false.
- created_at, updated_at, said_at and expiration_date are instants, parsed by `parse_instant`.
"""

from __future__ import annotations

import difflib
import math
import operator
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NoReturn, TypeAlias, assert_never

from told.errors import FilterError, ScopeError, TimeError
from told.ids import JSON
from told.model.fact import NEVER, Fact
from told.model.scope import validate_identifier
from told.text.dates import parse_instant

MAX_DEPTH: Final = 16
MAX_NODES: Final = 128
MAX_VALUES: Final = 1000
MAX_FIELD: Final = 128

SCOPE_FIELDS: Final = frozenset({"user_id", "agent_id", "run_id"})
TIME_FIELDS: Final = frozenset({"created_at", "updated_at", "said_at", "expiration_date"})
TEXT_FIELDS: Final = frozenset({"id", "memory", "hash", "kind", "role", "actor_id", "source"})
BUILT_IN_FIELDS: Final = SCOPE_FIELDS | TIME_FIELDS | TEXT_FIELDS
METADATA_PREFIX: Final = "metadata."

_ALIASES: Final = {"data": "memory", "text": "memory"}
_CONNECTIVES: Final = {
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "$and": "AND",
    "$or": "OR",
    "$not": "NOT",
}
_ORDERINGS: Final = frozenset({"gt", "gte", "lt", "lte"})
_LONG_FORM: Final = {"field", "operator", "value"}
_EXAMPLE: Final = 'Write {"tag": "work"}, {"priority": {"gte": 3}} or {"OR": [{…}, {…}]}.'

# Tree


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a field, either built in or `metadata.<key>`, with a value."""

    field: str
    op: str
    value: JSON


@dataclass(frozen=True, slots=True)
class AllOf:
    """Matches if every part matches."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Matches if any part matches."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Matches if the part does not."""

    part: Filter


Filter: TypeAlias = AllOf | AnyOf | Not | Comparison
FilterExpression: TypeAlias = Mapping[str, Any] | Filter | None
MATCH_ALL: Final = AllOf(())


def combine_all(parts: Iterable[Filter]) -> Filter:
    """Return the flattened conjunction of filters."""
    flat = tuple(leaf for part in parts for leaf in split_conjuncts(part))
    return flat[0] if len(flat) == 1 else AllOf(flat)


def combine_any(parts: Iterable[Filter]) -> Filter:
    """Return the disjunction of filters."""
    members = tuple(parts)
    return members[0] if len(members) == 1 else AnyOf(members)


def has_field(condition: Filter, field: str) -> bool:
    """Return True if a filter tests a field."""
    match condition:
        case Comparison(field=name):
            return name == field
        case Not(part):
            return has_field(part, field)
        case AllOf(parts) | AnyOf(parts):
            return any(has_field(part, field) for part in parts)
        case _:
            assert_never(condition)


def split_conjuncts(condition: Filter) -> tuple[Filter, ...]:
    """Return the parts that must all match."""
    return condition.parts if isinstance(condition, AllOf) else (condition,)


# Evaluation

_MISSING: Final = object()


def matches_filter(condition: Filter, record: Mapping[str, JSON]) -> bool:
    """Return True if a record made by `to_record` matches the filter."""
    match condition:
        case Comparison(field, op, value):
            return _OPERATOR_TESTS[op](record.get(field, _MISSING), value)
        case AllOf(parts):
            return all(matches_filter(part, record) for part in parts)
        case AnyOf(parts):
            return any(matches_filter(part, record) for part in parts)
        case Not(part):
            return not matches_filter(part, record)
        case _:
            assert_never(condition)


def to_record(fact: Fact) -> dict[str, JSON]:
    """Return a fact as the record that filters are evaluated on."""
    return {
        "id": fact.id,
        "memory": fact.text,
        "hash": fact.md5,
        "kind": fact.kind,
        "role": fact.role,
        "actor_id": fact.actor,
        "source": fact.source,
        "user_id": fact.scope.user_id,
        "agent_id": fact.scope.agent_id,
        "run_id": fact.scope.run_id,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "said_at": fact.said_at,
        "expiration_date": None if fact.expires == NEVER else fact.expires,
        **{METADATA_PREFIX + key: value for key, value in fact.meta.items()},
    }


def _is_equal(actual: Any, value: Any) -> bool:
    if isinstance(actual, bool) or isinstance(value, bool):
        return actual is value
    if isinstance(actual, Mapping) and isinstance(value, Mapping):
        return actual.keys() == value.keys() and all(
            _is_equal(actual[key], value[key]) for key in value
        )
    if isinstance(actual, list | tuple) and isinstance(value, list | tuple):
        return len(actual) == len(value) and all(map(_is_equal, actual, value))
    return bool(actual == value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordering_test(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def is_in_order(actual: Any, value: Any) -> bool:
        comparable = (isinstance(actual, str) and isinstance(value, str)) or (
            _is_number(actual) and _is_number(value)
        )
        return comparable and compare(actual, value)

    return is_in_order


def _is_member(actual: Any, values: Any) -> bool:
    return any(_is_equal(actual, value) for value in values)


def _contains_value(actual: Any, value: Any) -> bool:
    if isinstance(actual, str):
        return isinstance(value, str) and value in actual
    return isinstance(actual, list | tuple) and any(_is_equal(member, value) for member in actual)


def _contains_ignoring_case(actual: Any, value: Any) -> bool:
    folded = value.casefold()
    if isinstance(actual, str):
        return folded in actual.casefold()
    members = actual if isinstance(actual, list | tuple) else ()
    return any(isinstance(member, str) and member.casefold() == folded for member in members)


_OPERATOR_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _is_equal,
    "ne": lambda actual, value: not _is_equal(actual, value),
    "gt": _ordering_test(operator.gt),
    "gte": _ordering_test(operator.ge),
    "lt": _ordering_test(operator.lt),
    "lte": _ordering_test(operator.le),
    "in": _is_member,
    "nin": lambda actual, values: not _is_member(actual, values),
    "contains": _contains_value,
    "icontains": _contains_ignoring_case,
}
OPERATORS: Final = tuple(_OPERATOR_TESTS)

# Parsing


def parse_filter(expression: FilterExpression) -> Filter:
    """Parse a filter expression, or raise FilterError; a parsed filter is returned as it is."""
    if isinstance(expression, AllOf | AnyOf | Not | Comparison):
        return expression
    return MATCH_ALL if expression is None else _FilterParser().parse_expression(expression, 1)


def split_scope(expression: FilterExpression) -> tuple[dict[str, str], Filter]:
    """Split an expression into the scope ids it requires and the remaining filter."""
    if expression is None:
        return {}, MATCH_ALL
    ids: dict[str, str] = {}
    remaining: list[Filter] = []
    for part in split_conjuncts(parse_filter(expression)):
        match part:
            # A second, different id for the same field stays a filter, which matches
            # nothing.
            case Comparison(field, "eq", str(value)) if (
                field in SCOPE_FIELDS and ids.setdefault(field, value) == value
            ):
                continue
            case _:
                remaining.append(part)
    return ids, combine_all(remaining)


@dataclass(slots=True)
class _FilterParser:
    """Parses one expression and limits its number of nodes."""

    nodes: int = 0

    def parse_expression(self, raw: Any, depth: int) -> Filter:
        if not isinstance(raw, Mapping):
            raise FilterError(f"A filter is an object, not {_type_name(raw)}.", hint=_EXAMPLE)
        if depth > MAX_DEPTH:
            raise FilterError(
                f"The filter is nested more than {MAX_DEPTH} levels deep.", hint="Flatten it."
            )
        if raw.keys() >= {"field", "operator"}:
            return self.parse_condition(raw)
        return combine_all([self.parse_member(key, value, depth) for key, value in raw.items()])

    def parse_condition(self, raw: Mapping[str, Any]) -> Filter:
        if raw.keys() != _LONG_FORM:
            hint = 'Combine conditions with {"AND": […]}.'
            raise FilterError(
                "A condition has exactly the keys field, operator and value.", hint=hint
            )
        return self.parse_comparison(_parse_field_name(raw["field"]), raw["operator"], raw["value"])

    def parse_member(self, key: Any, value: Any, depth: int) -> Filter:
        if connective := _parse_connective(key):
            return self.parse_combination(connective, value, depth)
        field = _parse_field_name(key)
        if not isinstance(value, Mapping):
            return self.parse_comparison(field, "eq", value)
        if not value:
            raise FilterError(f"The field {field!r} has an empty condition.", hint=_EXAMPLE)
        return combine_all(
            [self.parse_comparison(field, op, operand) for op, operand in value.items()]
        )

    def parse_combination(self, connective: str, raw: Any, depth: int) -> Filter:
        self.count_node()
        items = [raw] if connective == "NOT" and isinstance(raw, Mapping) else raw
        if not isinstance(items, list | tuple):
            raise FilterError(
                f"{connective} takes a list of filters, not {_type_name(raw)}.", hint=_EXAMPLE
            )
        parts = [self.parse_expression(part, depth + 1) for part in items]
        match connective:
            case "AND":
                return combine_all(parts)
            case "OR":
                return combine_any(parts)
            case _:
                return Not(combine_any(parts))

    def parse_comparison(self, field: str, op: Any, value: Any) -> Filter:
        self.count_node()
        name = _parse_operator(op)
        return Comparison(
            field,
            name,
            _parse_operands(field, value)
            if name in ("in", "nin")
            else _parse_operand(field, name, value),
        )

    def count_node(self) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise FilterError(
                f"The filter has more than {MAX_NODES} conditions.",
                hint='Use "in" for many values.',
            )


def _type_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _parse_connective(key: Any) -> str | None:
    if not isinstance(key, str) or key in _CONNECTIVES:
        return _CONNECTIVES.get(key)
    if key.startswith("$") or key.upper() in _CONNECTIVES:
        nearest = difflib.get_close_matches(key.lower(), ["$and", "$or", "$not"], n=1, cutoff=0)[0]
        hint = (
            f"Did you mean {_CONNECTIVES[nearest]!r}? A metadata key of that name is "
            f"{METADATA_PREFIX + key!r}."
        )
        raise FilterError(f"{key!r} is not a connective.", hint=hint)
    return None


def _parse_operator(name: Any) -> str:
    bare_name = name.removeprefix("$") if isinstance(name, str) else ""
    if bare_name in _OPERATOR_TESTS:
        return bare_name
    near = difflib.get_close_matches(bare_name.lower(), OPERATORS, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    raise FilterError(
        f"{name!r} is not an operator.", hint=f"{guess}The operators are {', '.join(OPERATORS)}."
    )


def _parse_field_name(name: Any) -> str:
    """Return the canonical name of a field: built in, or `metadata.<key>`."""
    if not isinstance(name, str):
        raise FilterError(f"A field name is a string, not {_type_name(name)}.")
    field = _ALIASES.get(name, name)
    if field in BUILT_IN_FIELDS:
        return field
    key = name.removeprefix(METADATA_PREFIX)
    if not 1 <= len(key) <= MAX_FIELD:
        raise FilterError(f"A field name has 1 to {MAX_FIELD} characters, not {len(key)}.")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in key):
        raise FilterError(f"The field name {name!r} contains a control character.")
    return METADATA_PREFIX + key


# Values


def _parse_operands(field: str, raw: Any) -> JSON:
    if not isinstance(raw, list | tuple | set | frozenset):
        _reject_operand(field, "in", "a list of values", raw)
    if len(raw) > MAX_VALUES:
        raise FilterError(
            f"The list for {field!r} has {len(raw)} values; {MAX_VALUES} are allowed."
        )
    return tuple(_parse_operand(field, "eq", value) for value in raw)


def _parse_operand(field: str, op: str, raw: Any) -> JSON:
    if field in TIME_FIELDS and isinstance(raw, date):
        return _parse_time(field, op, raw)
    value = _copy_literal(raw, iter(range(MAX_VALUES)))
    if field in BUILT_IN_FIELDS and value is None and op in ("eq", "ne"):
        return None
    if field in TIME_FIELDS:
        return _parse_time(field, op, raw)
    if op == "icontains" or field in BUILT_IN_FIELDS:
        if not isinstance(value, str):
            _reject_operand(field, op, "a string", raw)
        return _parse_scope_id(field, op, value) if field in SCOPE_FIELDS else value
    if op in _ORDERINGS and not (_is_number(value) or isinstance(value, str)):
        _reject_operand(field, op, "a number or a string", raw)
    return value


def _reject_operand(field: str, op: str, expected: str, raw: Any) -> NoReturn:
    raise FilterError(
        f"{field} {op} compares with {expected}, not {_type_name(raw)}.", field=field, operator=op
    )


def _parse_time(field: str, op: str, raw: Any) -> int:
    if op in ("contains", "icontains"):
        raise FilterError(
            f"{field} is an instant; {op} does not apply.", hint="Use gte and lt for a time range."
        )
    if isinstance(raw, bool) or not isinstance(raw, str | int | float | date):
        _reject_operand(field, op, "a time, such as 2026-03-01", raw)
    try:
        return parse_instant(raw)
    except TimeError as error:
        raise FilterError(f"{field} {op}: {error.message}", hint=error.hint) from error


def _parse_scope_id(field: str, op: str, raw: str) -> str:
    if raw.strip() == "*":
        hint = "Values are compared literally; omit the field and filter by another id."
        raise FilterError(f"{field} cannot be a wildcard.", hint=hint)
    if op not in ("eq", "ne"):
        return raw
    try:
        return validate_identifier(raw, field)
    except ScopeError as error:
        raise FilterError(error.message, hint=error.hint) from error


def _copy_literal(raw: Any, budget: Iterator[int], depth: int = 1) -> JSON:
    """Copy a JSON value so that later changes by the caller have no effect."""
    if depth > MAX_DEPTH or next(budget, None) is None:
        raise FilterError(f"A value has more than {MAX_VALUES} parts, or {MAX_DEPTH} levels.")
    match raw:
        case None | bool():
            return raw
        case str():
            return _check_text(raw)
        case int() | float():
            return _check_number(raw)
        case list() | tuple():
            return tuple(_copy_literal(member, budget, depth + 1) for member in raw)
        case Mapping():
            if not all(isinstance(key, str) for key in raw):
                raise FilterError("The keys of an object are strings.")
            return {
                _check_text(key): _copy_literal(value, budget, depth + 1)
                for key, value in raw.items()
            }
        case _:
            raise FilterError(
                f"A value is a string, number, boolean, null, list or object, not "
                f"{_type_name(raw)}."
            )


def _check_text(raw: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise FilterError("A value contains a lone surrogate.")
    return raw


def _check_number(raw: float) -> float:
    # Integers beyond the float range cannot be compared with floats; no stored number is
    # infinite.
    if not abs(raw) <= sys.float_info.max:
        problem = "not a number" if isinstance(raw, float) and math.isnan(raw) else "too large"
        raise FilterError(f"A value is {problem}.", hint="Use finite numbers.")
    return raw
