"""Filters as SQL: a WHERE fragment over `fact AS f`, its bound parameters, and what is left to evaluate above.

Composing SQL is what this module is for, and it composes only the fixed pieces written here: column names come from the
table below; metadata keys and values are bound parameters and never part of the text. A key is compared with the keys
that `json_each` gives, so there is no path for it to break out of.

A fragment never loses a row that matches: it is the filter itself or something wider. Where it is wider, the residual
says what is left to check, and is `EVERYTHING` where nothing is. Every fragment is 0 or 1 and never NULL, so NOT may be
put before an exact one; a wider one cannot be negated, and is left to the residual.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from told.core.filter import EVERYTHING, METADATA, SCOPE_FIELDS, All, Filter, Not, Some, Test, every
from told.core.ids import JSON

Compiled: TypeAlias = tuple[str, list[Any], Filter]

COLUMNS: Final = {
    "id": "f.thread", "memory": "f.text", "hash": "f.md5", "kind": "f.kind", "role": "f.role", "actor_id": "f.actor",
    "source": "f.source", "created_at": "f.created_at", "updated_at": "f.updated_at", "said_at": "f.said_at",
    "user_id": "s.user_id", "agent_id": "s.agent_id", "run_id": "s.run_id",
}  # fmt: skip
ORDERINGS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
NEGATIONS: Final = {"ne": "eq", "nin": "in"}

IN_SPACE: Final = "f.space IN (SELECT s.id FROM space AS s WHERE {})"
AT_KEY: Final = "EXISTS (SELECT 1 FROM json_each(f.meta) AS m WHERE m.key = ? AND {})"
# Without the CASE, SQLite would be free to read a string as JSON before it has looked at its type, and fail.
AMONG_MEMBERS: Final = (
    "EXISTS (SELECT 1 FROM json_each(CASE m.type WHEN 'array' THEN m.value ELSE '[]' END) AS e WHERE {})"
)
# Most memories are of one kind; this says no more than the fragment, but lets SQLite use the index of all others.
PLAIN: Final = "memory"
OF_KINDS: Final = "({} AND f.kind <> 'memory')"
LISTED: Final = "{} IN (SELECT value FROM json_each(?))"
NUMERIC: Final = "{}.type IN ('integer', 'real')"

# SQLite promises 15 digits of a decimal fraction, and no more than a double for an integer beyond 64 bits.
SLACK: Final = 1e-9
TINY: Final = 1e-290


@dataclass(frozen=True, slots=True)
class Fragment:
    """A condition, its parameters, and whether it is the test itself or something wider."""

    sql: str
    params: tuple[Any, ...] = ()
    exact: bool = True

    def inside(self, frame: str, *params: Any) -> Fragment:
        """This condition in the place a frame leaves for it, after the frame's own parameters."""
        return Fragment(frame.format(self.sql), (*params, *self.params), self.exact)


ALWAYS: Final = Fragment("1")
NOTHING: Final = Fragment("0")
UNKNOWN: Final = Fragment("1", exact=False)


def compile(wanted: Filter) -> Compiled:  # noqa: A001 - filters.compile(…) reads like re.compile(…)
    """The filter as a WHERE fragment, its parameters and the residual filter."""
    fragment = _fragment(wanted)
    return fragment.sql, list(fragment.params), _residual(wanted, fragment)


def _residual(wanted: Filter, fragment: Fragment) -> Filter:
    if fragment.exact:
        return EVERYTHING
    if isinstance(wanted, All):
        return every(_residual(part, _fragment(part)) for part in wanted.parts)
    return wanted


def _fragment(wanted: Filter) -> Fragment:
    match wanted:
        case Test():
            return _test(wanted)
        case All(parts):
            return _both(map(_fragment, parts))
        case Some(parts):
            return _either(map(_fragment, parts))
        case Not(part):
            return _negated(_fragment(part))
        case _:
            assert_never(wanted)


def _both(parts: Iterable[Fragment]) -> Fragment:
    return _joined(" AND ", ALWAYS, list(parts))


def _either(parts: Iterable[Fragment]) -> Fragment:
    given = list(parts)
    return UNKNOWN if UNKNOWN in given else _joined(" OR ", NOTHING, given)


def _joined(word: str, neutral: Fragment, parts: Sequence[Fragment]) -> Fragment:
    exact = all(part.exact for part in parts)
    kept = [part for part in parts if part.sql != neutral.sql]
    if not kept:
        return Fragment(neutral.sql, exact=exact)
    sql = kept[0].sql if len(kept) == 1 else f"({word.join(part.sql for part in kept)})"
    return Fragment(sql, tuple(param for part in kept for param in part.params), exact)


def _negated(part: Fragment) -> Fragment:
    return part.inside("NOT ({})") if part.exact else UNKNOWN


def _test(test: Test) -> Fragment:
    if test.op in NEGATIONS:
        return _negated(_test(Test(test.field, NEGATIONS[test.op], test.value)))
    if test.field.startswith(METADATA):
        return _key(test.op, test.value).inside(AT_KEY, test.field.removeprefix(METADATA))
    column = COLUMNS.get(test.field)
    if column is None:
        return UNKNOWN
    found = _column(column, test.op, test.value)
    if test.field == "kind" and test.op in ("eq", "in") and PLAIN not in _listed_values(test):
        return found.inside(OF_KINDS)
    return found.inside(IN_SPACE) if test.field in SCOPE_FIELDS else found


def _listed_values(test: Test) -> Sequence[Any]:
    return test.value if test.op == "in" and isinstance(test.value, list | tuple) else (test.value,)


def _list(values: Iterable[JSON]) -> str:
    return json.dumps(list(values))


# Columns: strings and instants, or NULL -------------------------------------------------------------------------------


def _column(column: str, op: str, value: Any) -> Fragment:
    match op:
        case "eq":
            return Fragment(f"{column} IS ?", (value,))
        case "in":
            return _listed(column, value)
        case "contains":
            return _present(column, Fragment(f"instr({column}, ?) > 0", (value,)))
        case "icontains":
            return _present(column, _folded(column, value))
        case _:
            return _present(column, Fragment(f"{column} {ORDERINGS[op]} ?", (value,)))


def _present(column: str, found: Fragment) -> Fragment:
    return found.inside(f"({column} IS NOT NULL AND {{}})")


def _listed(column: str, values: Sequence[Any]) -> Fragment:
    given = [value for value in values if value is not None]
    among = _present(column, Fragment(LISTED.format(column), (_list(given),))) if given else NOTHING
    return _either((among, Fragment(f"{column} IS NULL"))) if None in values else among


def _folded(text: str, value: str) -> Fragment:
    """Where a text may hold a value with case folded: SQLite folds ASCII, and any other text is worth a look."""
    folded = value.casefold()
    beyond_ascii = f"octet_length({text}) <> length({text})"
    if not folded.isascii():
        return Fragment(beyond_ascii, exact=False)
    return Fragment(f"(instr(lower({text}), ?) > 0 OR {beyond_ascii})", (folded,), exact=False)


# Metadata: the value of one key, a row `m` of json_each; a list's members are rows `e` --------------------------------


def _key(op: str, value: Any) -> Fragment:
    match op:
        case "eq":
            return _equal("m", (value,))
        case "in":
            return _equal("m", value)
        case "contains":
            member = _equal("e", (value,)).inside(AMONG_MEMBERS)
            return _either((_part(value), member)) if isinstance(value, str) else member
        case "icontains":
            text = _both((Fragment("m.type = 'text'"), _folded("m.value", value)))
            return _either((text, Fragment("m.type = 'array'", exact=False)))
        case _:
            return _ordered(op, value)


def _part(value: str) -> Fragment:
    return Fragment("(m.type = 'text' AND instr(m.value, ?) > 0)", (value,))


def _ordered(op: str, value: Any) -> Fragment:
    if isinstance(value, str):
        return Fragment(f"(m.type = 'text' AND m.value {ORDERINGS[op]} ?)", (value,))
    low, high = _around(value, value)
    bound = low if op in ("gt", "gte") else high
    return Fragment(f"({NUMERIC.format('m')} AND m.value {ORDERINGS[op]} ?)", (bound,), exact=False)


def _equal(row: str, values: Sequence[Any]) -> Fragment:
    """Where the value in a row may equal one of these, by the type of each."""
    types = {_type(value) for value in values}
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if _type(value) == "number"]
    words = sorted(types - {"text", "number"})
    exact = types.isdisjoint({"array", "object"})
    parts = [
        Fragment(LISTED.format(f"{row}.type"), (_list(words),), exact) if words else NOTHING,
        Fragment(f"({row}.type = 'text' AND {LISTED.format(f'{row}.value')})", (_list(texts),)) if texts else NOTHING,
        _between(row, _around(min(numbers), max(numbers))) if numbers else NOTHING,
    ]
    return _either(parts)


def _between(row: str, bounds: tuple[float, float]) -> Fragment:
    return Fragment(f"({NUMERIC.format(row)} AND {row}.value BETWEEN ? AND ?)", bounds, exact=False)


def _around(low: float, high: float) -> tuple[float, float]:
    """Bounds wide enough for whatever SQLite makes of the digits of a number between these."""
    return float(low) - abs(float(low)) * SLACK - TINY, float(high) + abs(float(high)) * SLACK + TINY


def _type(value: Any) -> str:
    """The type of a JSON value as SQLite calls it, but for numbers, of which it has two."""
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
