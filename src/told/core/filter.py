"""Filters: which facts are meant, said by what their fields hold.

An expression is read once by `parse` into a closed tree, and `matches` is what that tree means. A backend may push down
as much of it as it can do exactly; the rest is evaluated here.

    {"tag": "work"}                                             a field equals a value
    {"priority": {"gte": 1, "lt": 5}, "tag": "work"}            operators, and several fields: all of them hold
    {"field": "tag", "operator": "in", "value": ["a", "b"]}     the long form
    {"AND": […]}   {"OR": […]}   {"NOT": {…}}   {"NOT": […]}    all, some, not, none; `$and`, `$eq`, … say the same

Fields. `id memory hash kind role actor_id user_id agent_id run_id source created_at updated_at said_at expiration_date`
are built in (`data` and `text` are `memory`), and null where a fact has no value. Any other name is a top-level key of
the metadata, taken literally: dots and brackets mean nothing. `metadata.<key>` reaches one that is called like a field.

Meaning. Types are never coerced, and no value is a pattern.
- eq, in: JSON equality: 1 equals 1.0, true equals no number, lists and objects are equal member by member.
- gt gte lt lte: numbers with numbers, strings with strings by code point; anything else is not ordered, so false.
- contains: a string holds the value as a part, or a list has an equal member.
- icontains: the same with case folded: a part of a string, or a list's string member as a whole.
- ne, nin: exactly where eq and in are false.
- A missing key equals nothing, not even null: every operator is false of it but ne and nin.
- created_at, updated_at, said_at and expiration_date are instants: their values are read by `when.instant`.
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

from told.core.errors import FilterError, ScopeError, TimeError
from told.core.fact import NEVER, Fact
from told.core.ids import JSON
from told.core.scope import identifier
from told.core.when import instant

MAX_DEPTH: Final = 16
MAX_NODES: Final = 128
MAX_VALUES: Final = 1000
MAX_FIELD: Final = 128

SCOPE_FIELDS: Final = frozenset({"user_id", "agent_id", "run_id"})
TIME_FIELDS: Final = frozenset({"created_at", "updated_at", "said_at", "expiration_date"})
TEXT_FIELDS: Final = frozenset({"id", "memory", "hash", "kind", "role", "actor_id", "source"})
BUILT_IN: Final = SCOPE_FIELDS | TIME_FIELDS | TEXT_FIELDS
METADATA: Final = "metadata."

_ALIASES: Final = {"data": "memory", "text": "memory"}
_CONNECTIVES: Final = {"AND": "AND", "OR": "OR", "NOT": "NOT", "$and": "AND", "$or": "OR", "$not": "NOT"}
_ORDERINGS: Final = frozenset({"gt", "gte", "lt", "lte"})
_LONG_FORM: Final = {"field", "operator", "value"}
_EXAMPLE: Final = 'Write {"tag": "work"}, {"priority": {"gte": 3}} or {"OR": [{…}, {…}]}.'

# The tree -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Test:
    """One field compared with one value; `field` is a built-in name, or `metadata.` and a key."""

    field: str
    op: str
    value: JSON


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Filter: TypeAlias = All | Some | Not | Test
Expression: TypeAlias = Mapping[str, Any] | Filter | None
EVERYTHING: Final = All(())


def every(parts: Iterable[Filter]) -> Filter:
    """The filter that asks for all of these, laid flat."""
    flat = tuple(leaf for part in parts for leaf in conjuncts(part))
    return flat[0] if len(flat) == 1 else All(flat)


def some(parts: Iterable[Filter]) -> Filter:
    """The filter that asks for at least one of these."""
    given = tuple(parts)
    return given[0] if len(given) == 1 else Some(given)


def speaks_of(wanted: Filter, field: str) -> bool:
    """Whether a filter says anything of a field."""
    match wanted:
        case Test(field=name):
            return name == field
        case Not(part):
            return speaks_of(part, field)
        case All(parts) | Some(parts):
            return any(speaks_of(part, field) for part in parts)
        case _:
            assert_never(wanted)


def conjuncts(wanted: Filter) -> tuple[Filter, ...]:
    """The parts that must all hold."""
    return wanted.parts if isinstance(wanted, All) else (wanted,)


# Meaning --------------------------------------------------------------------------------------------------------------

_MISSING: Final = object()


def matches(wanted: Filter, record: Mapping[str, JSON]) -> bool:
    """Whether the filter holds of a record as `record` makes it."""
    match wanted:
        case Test(field, op, value):
            return _HOLDS[op](record.get(field, _MISSING), value)
        case All(parts):
            return all(matches(part, record) for part in parts)
        case Some(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case _:
            assert_never(wanted)


def record(fact: Fact) -> dict[str, JSON]:
    """A fact as filters see it."""
    return {
        "id": fact.id, "memory": fact.text, "hash": fact.md5, "kind": fact.kind, "role": fact.role,
        "actor_id": fact.actor, "source": fact.source,
        "user_id": fact.scope.user_id, "agent_id": fact.scope.agent_id, "run_id": fact.scope.run_id,
        "created_at": fact.created_at, "updated_at": fact.updated_at, "said_at": fact.said_at,
        "expiration_date": None if fact.expires == NEVER else fact.expires,
        **{METADATA + key: value for key, value in fact.meta.items()},
    }  # fmt: skip


def _equal(found: Any, value: Any) -> bool:
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, Mapping) and isinstance(value, Mapping):
        return found.keys() == value.keys() and all(_equal(found[key], value[key]) for key in value)
    if isinstance(found, list | tuple) and isinstance(value, list | tuple):
        return len(found) == len(value) and all(map(_equal, found, value))
    return bool(found == value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(found: Any, value: Any) -> bool:
        comparable = (isinstance(found, str) and isinstance(value, str)) or (_is_number(found) and _is_number(value))
        return comparable and compare(found, value)

    return holds


def _among(found: Any, values: Any) -> bool:
    return any(_equal(found, value) for value in values)


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, list | tuple) and any(_equal(member, value) for member in found)


def _icontains(found: Any, value: Any) -> bool:
    folded = value.casefold()
    if isinstance(found, str):
        return folded in found.casefold()
    members = found if isinstance(found, list | tuple) else ()
    return any(isinstance(member, str) and member.casefold() == folded for member in members)


_HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _equal,
    "ne": lambda found, value: not _equal(found, value),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": _among,
    "nin": lambda found, values: not _among(found, values),
    "contains": _contains,
    "icontains": _icontains,
}
OPERATORS: Final = tuple(_HOLDS)

# Reading an expression ------------------------------------------------------------------------------------------------


def parse(expression: Expression) -> Filter:
    """Read a filter expression, or say what is wrong with it; a filter that was read before is returned as it is."""
    if isinstance(expression, All | Some | Not | Test):
        return expression
    return EVERYTHING if expression is None else _Reader().expression(expression, 1)


def split_scope(expression: Expression) -> tuple[dict[str, str], Filter]:
    """The scope ids an expression asks for, taken out of it, and what is left to filter by."""
    if expression is None:
        return {}, EVERYTHING
    ids: dict[str, str] = {}
    rest: list[Filter] = []
    for part in conjuncts(parse(expression)):
        match part:
            # A second, different id for the same field stays behind as a filter, which nothing can match.
            case Test(field, "eq", str(value)) if field in SCOPE_FIELDS and ids.setdefault(field, value) == value:
                continue
            case _:
                rest.append(part)
    return ids, every(rest)


@dataclass(slots=True)
class _Reader:
    """Reads one expression, counting the nodes it has built."""

    nodes: int = 0

    def expression(self, given: Any, depth: int) -> Filter:
        if not isinstance(given, Mapping):
            raise FilterError(f"A filter is an object, not {_sort(given)}.", hint=_EXAMPLE)
        if depth > MAX_DEPTH:
            raise FilterError(f"The filter is nested more than {MAX_DEPTH} levels deep.", hint="Flatten it.")
        if given.keys() >= {"field", "operator"}:
            return self.condition(given)
        return every([self.member(key, value, depth) for key, value in given.items()])

    def condition(self, given: Mapping[str, Any]) -> Filter:
        if given.keys() != _LONG_FORM:
            hint = 'Combine conditions with {"AND": […]}.'
            raise FilterError("A condition has exactly the keys field, operator and value.", hint=hint)
        return self.test(_field(given["field"]), given["operator"], given["value"])

    def member(self, key: Any, value: Any, depth: int) -> Filter:
        if connective := _connective(key):
            return self.combine(connective, value, depth)
        field = _field(key)
        if not isinstance(value, Mapping):
            return self.test(field, "eq", value)
        if not value:
            raise FilterError(f"The field {field!r} has an empty object for its test.", hint=_EXAMPLE)
        return every([self.test(field, op, operand) for op, operand in value.items()])

    def combine(self, connective: str, given: Any, depth: int) -> Filter:
        self.count()
        listed = [given] if connective == "NOT" and isinstance(given, Mapping) else given
        if not isinstance(listed, list | tuple):
            raise FilterError(f"{connective} takes a list of filters, not {_sort(given)}.", hint=_EXAMPLE)
        parts = [self.expression(part, depth + 1) for part in listed]
        match connective:
            case "AND":
                return every(parts)
            case "OR":
                return some(parts)
            case _:
                return Not(some(parts))

    def test(self, field: str, op: Any, value: Any) -> Filter:
        self.count()
        name = _operator(op)
        return Test(field, name, _operands(field, value) if name in ("in", "nin") else _operand(field, name, value))

    def count(self) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise FilterError(f"The filter has more than {MAX_NODES} conditions.", hint='Use "in" for many values.')


def _sort(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _connective(key: Any) -> str | None:
    if not isinstance(key, str) or key in _CONNECTIVES:
        return _CONNECTIVES.get(key)
    if key.startswith("$") or key.upper() in _CONNECTIVES:
        nearest = difflib.get_close_matches(key.lower(), ["$and", "$or", "$not"], n=1, cutoff=0)[0]
        hint = f"Did you mean {_CONNECTIVES[nearest]!r}? A metadata key of that name is {METADATA + key!r}."
        raise FilterError(f"{key!r} is not a connective.", hint=hint)
    return None


def _operator(name: Any) -> str:
    plain = name.removeprefix("$") if isinstance(name, str) else ""
    if plain in _HOLDS:
        return plain
    near = difflib.get_close_matches(plain.lower(), OPERATORS, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    raise FilterError(f"{name!r} is not an operator.", hint=f"{guess}The operators are {', '.join(OPERATORS)}.")


def _field(name: Any) -> str:
    """The one name of a field: a built-in one, or `metadata.` and a key."""
    if not isinstance(name, str):
        raise FilterError(f"A field name is a string, not {_sort(name)}.")
    field = _ALIASES.get(name, name)
    if field in BUILT_IN:
        return field
    key = name.removeprefix(METADATA)
    if not 1 <= len(key) <= MAX_FIELD:
        raise FilterError(f"A field name has 1 to {MAX_FIELD} characters, not {len(key)}.")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in key):
        raise FilterError(f"The field name {name!r} holds a control character.")
    return METADATA + key


# Reading a value ------------------------------------------------------------------------------------------------------


def _operands(field: str, given: Any) -> JSON:
    if not isinstance(given, list | tuple | set | frozenset):
        _expect(field, "in", "a list of values", given)
    if len(given) > MAX_VALUES:
        raise FilterError(f"The list for {field!r} has {len(given)} values; {MAX_VALUES} are allowed.")
    return tuple(_operand(field, "eq", value) for value in given)


def _operand(field: str, op: str, given: Any) -> JSON:
    if field in TIME_FIELDS and isinstance(given, date):
        return _time(field, op, given)
    value = _literal(given, iter(range(MAX_VALUES)))
    if field in BUILT_IN and value is None and op in ("eq", "ne"):
        return None
    if field in TIME_FIELDS:
        return _time(field, op, given)
    if op == "icontains" or field in BUILT_IN:
        if not isinstance(value, str):
            _expect(field, op, "a string", given)
        return _scope_id(field, op, value) if field in SCOPE_FIELDS else value
    if op in _ORDERINGS and not (_is_number(value) or isinstance(value, str)):
        _expect(field, op, "a number or a string", given)
    return value


def _expect(field: str, op: str, wanted: str, given: Any) -> NoReturn:
    raise FilterError(f"{field} {op} compares with {wanted}, not {_sort(given)}.", field=field, operator=op)


def _time(field: str, op: str, given: Any) -> int:
    if op in ("contains", "icontains"):
        raise FilterError(f"{field} is an instant and cannot {op}.", hint="Use gte and lt for a stretch of time.")
    if isinstance(given, bool) or not isinstance(given, str | int | float | date):
        _expect(field, op, "a time, such as 2026-03-01", given)
    try:
        return instant(given)
    except TimeError as error:
        raise FilterError(f"{field} {op}: {error.message}", hint=error.hint) from error


def _scope_id(field: str, op: str, given: str) -> str:
    if given.strip() == "*":
        hint = "Values are compared literally; leave the field out, and name another id, to read every one."
        raise FilterError(f"{field} cannot be a wildcard.", hint=hint)
    if op not in ("eq", "ne"):
        return given
    try:
        return identifier(given, field)
    except ScopeError as error:
        raise FilterError(error.message, hint=error.hint) from error


def _literal(given: Any, budget: Iterator[int], depth: int = 1) -> JSON:
    """A private copy of a JSON value, which the caller's own can no longer change."""
    if depth > MAX_DEPTH or next(budget, None) is None:
        raise FilterError(f"A value has more than {MAX_VALUES} parts, or {MAX_DEPTH} levels.")
    match given:
        case None | bool():
            return given
        case str():
            return _text(given)
        case int() | float():
            return _number(given)
        case list() | tuple():
            return tuple(_literal(member, budget, depth + 1) for member in given)
        case Mapping():
            if not all(isinstance(key, str) for key in given):
                raise FilterError("The keys of an object are strings.")
            return {_text(key): _literal(value, budget, depth + 1) for key, value in given.items()}
        case _:
            raise FilterError(f"A value is a string, number, boolean, null, list or object, not {_sort(given)}.")


def _text(given: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in given):
        raise FilterError("A value holds half of a surrogate pair, which is not text.")
    return given


def _number(given: float) -> float:
    # An integer beyond the floats could not be compared with one; no stored number is infinite.
    if not abs(given) <= sys.float_info.max:
        problem = "not a number" if isinstance(given, float) and math.isnan(given) else "too large"
        raise FilterError(f"A value is {problem}.", hint="Use finite numbers.")
    return given
