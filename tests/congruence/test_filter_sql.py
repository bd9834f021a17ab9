"""Filters compiled to SQL, with their residual, find exactly what the reference matcher finds."""

import json
import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import apsw
import pytest

from told.backends.sqlite import filters as sql
from told.ids import JSON
from told.model.fact import Fact
from told.model.filter import MATCH_ALL, OPERATORS, Filter, matches_filter, parse_filter, to_record
from told.model.scope import Scope

SCHEMA = """
    CREATE TABLE space (id INTEGER PRIMARY KEY, account TEXT NOT NULL, user_id TEXT, agent_id TEXT, run_id TEXT);
    CREATE TABLE fact (
        seq INTEGER PRIMARY KEY, thread TEXT NOT NULL, space INTEGER NOT NULL, text TEXT NOT NULL, md5 TEXT NOT NULL,
        kind TEXT NOT NULL, role TEXT, actor TEXT, source TEXT, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, said_at INTEGER, meta TEXT NOT NULL);
    CREATE INDEX fact_kind ON fact (kind);
    CREATE INDEX fact_role ON fact (role);
    CREATE INDEX fact_said ON fact (said_at);
"""  # noqa: E501
SECOND = 1_000_000
NASTY = (
    "'",
    '"',
    "\\",
    "a.b",
    'a"b',
    "a'b",
    "a\\b",
    "$.a",
    "$[0]",
    "[0]",
    "#-1",
    "--",
    "'; DROP TABLE fact; --",
    "a AND",
    "%",
    "_",
    "*",
    "?",
    "?1",
    ":name",
    "@x",
    "x\0y",
    "\0",
    "NEAR(a b)",
    '"a" OR "b"',
    "{}",
    "{0}",
    "%s",
    "f.meta",
    ")",
)
TEXTS = (
    "",
    "a",
    "b",
    "B",
    "ab",
    "AB",
    "work",
    "Work",
    "1",
    "1.0",
    "true",
    "null",
    "é",
    "É",
    "e\u0301",
    "ß",
    "SS",
    "ss",
    "ſ",
    "\u212a",
    "k",
    "ﬁ",
    "fi",
    "İ",
    "i",
    "😀",
    "\uffff",
    "\u2028",
    "\x7f",
    "\x01",
    "[1]",
    '{"a":1}',
    "Straße",
    "STRASSE",
    *NASTY,
)
NUMBERS = (
    0,
    1,
    2,
    -1,
    5,
    5.0,
    4.999999999999999,
    5.000000000000001,
    0.1,
    0.30000000000000004,
    0.3,
    -0.0,
    1e-310,
    5e-324,
    2**53,
    2**53 + 1,
    float(2**53),
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    float(2**63),
    10**18 + 1,
    10**30,
    1e30,
    10**30 + 1,
    1e300,
    1.7976931348623157e308,
    -1e300,
    10**308,
    1.8446744073709551e19,
    1.8446744073709550592e25,
)
KEYS = (
    "tag",
    "n",
    "k",
    "list",
    "é",
    "😀",
    "kind",
    "a b",
    *(text for text in NASTY if "\0" not in text),
)
IDS = ("alice", "bob", "Bob", "éa", "a'b", 'a"b', "a\\b", "a--b")
BUILT_IN_TEXT = {
    "id": ("m1", "m2", "m3"),
    "memory": TEXTS,
    "text": TEXTS,
    "hash": TEXTS,
    "kind": TEXTS,
    "role": TEXTS,
    "actor_id": TEXTS,
    "source": TEXTS,
}
Records: TypeAlias = dict[str, dict[str, JSON]]
TIMES = ("created_at", "updated_at", "said_at", "expiration_date")


def random_json(rng: random.Random, depth: int = 0) -> Any:
    choice = rng.random()
    if choice < 0.4:
        return rng.choice(TEXTS)
    if choice < 0.7:
        return rng.choice(NUMBERS)
    if choice < 0.85 or depth > 2:
        return rng.choice((None, True, False))
    if choice < 0.95:
        return [random_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): random_json(rng, depth + 1) for _ in range(rng.randrange(3))}


def random_fact(rng: random.Random, seq: int) -> Fact:
    def maybe(values: Sequence[Any]) -> Any:
        return rng.choice(values) if rng.random() < 0.6 else None

    return Fact(
        id=f"m{seq}",
        seq=seq,
        tx=seq,
        scope=Scope("default", maybe(IDS), maybe(IDS), maybe(IDS)),
        text=rng.choice(TEXTS),
        md5=rng.choice(TEXTS),
        kind=rng.choice(TEXTS),
        role=maybe(TEXTS),
        actor=maybe(TEXTS),
        source=maybe(TEXTS),
        created_at=rng.randrange(9) * SECOND,
        updated_at=rng.randrange(9) * SECOND,
        said_at=maybe(range(0, 9 * SECOND, SECOND)),
        meta={rng.choice(KEYS): random_json(rng) for _ in range(rng.randrange(8))},
    )


def random_test(
    rng: random.Random, values: Sequence[Any], operators: Sequence[str]
) -> dict[str, Any]:
    op = rng.choice(operators)
    return {
        op: [rng.choice(values) for _ in range(rng.randrange(5))]
        if op in ("in", "nin")
        else rng.choice(values)
    }


def random_condition(rng: random.Random, facts: Sequence[Fact]) -> dict[str, Any]:
    choice = rng.random()
    if choice < 0.15:
        field = rng.choice(tuple(BUILT_IN_TEXT))
        return {field: random_test(rng, BUILT_IN_TEXT[field], OPERATORS)}
    if choice < 0.25:
        return {rng.choice(("user_id", "agent_id", "run_id")): random_test(rng, IDS, OPERATORS)}
    if choice < 0.35:
        return {rng.choice(TIMES): random_test(rng, range(9), OPERATORS[:8])}
    if choice < 0.42:
        field = rng.choice(
            ("role", "actor_id", "source", "user_id", "run_id", "said_at", "expiration_date")
        )
        return {field: rng.choice(({"eq": None}, {"ne": None}, {"in": [None]}, {"nin": [None]}))}
    return random_metadata_condition(rng, facts)


def random_metadata_condition(rng: random.Random, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return a condition on a key, often with the value some fact has there."""
    known = rng.choice(facts).meta
    key = rng.choice(tuple(known) or KEYS) if rng.random() < 0.7 else rng.choice(KEYS)
    value = known[key] if key in known and rng.random() < 0.6 else random_json(rng)
    if isinstance(value, list) and value and rng.random() < 0.6:
        value = rng.choice(value)
    op = rng.choice(OPERATORS)
    if op in ("in", "nin"):
        value = [value, *(random_json(rng) for _ in range(rng.randrange(4)))][: rng.randrange(5)]
    elif op == "icontains":
        value = rng.choice((str.upper, str.lower, str.swapcase))(
            value if isinstance(value, str) else rng.choice(TEXTS)
        )
    elif op in ("gt", "gte", "lt", "lte") and (
        isinstance(value, bool) or not isinstance(value, int | float | str)
    ):
        value = rng.choice(NUMBERS)
    return {f"metadata.{key}": {op: value}}


def random_expression(rng: random.Random, facts: Sequence[Fact], depth: int = 0) -> dict[str, Any]:
    choice = rng.random()
    if depth > 3 or choice < 0.45:
        return random_condition(rng, facts)
    parts = [
        random_expression(rng, facts, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3)))
    ]
    return {"AND" if choice < 0.65 else "OR" if choice < 0.85 else "NOT": parts}


def make_database(facts: Sequence[Fact]) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(SCHEMA)
    for fact in facts:
        scope = fact.scope
        db.execute(
            "INSERT INTO space VALUES (?, ?, ?, ?, ?)",
            (fact.seq, scope.account, scope.user_id, scope.agent_id, scope.run_id),
        )
        db.execute(
            "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                fact.seq,
                fact.id,
                fact.seq,
                fact.text,
                fact.md5,
                fact.kind,
                fact.role,
                fact.actor,
                fact.source,
                fact.created_at,
                fact.updated_at,
                fact.said_at,
                json.dumps(fact.meta, ensure_ascii=bool(fact.seq % 2)),
            ),
        )
    return db


def find_by_sql(db: apsw.Connection, wanted: Filter) -> tuple[set[str], Filter]:
    where, params, residual = sql.compile_filter(wanted)
    return {
        row[0] for row in db.execute(f"SELECT f.thread FROM fact AS f WHERE {where}", params)
    }, residual


def assert_sql_agrees(
    db: apsw.Connection, records: Records, wanted: Filter
) -> tuple[set[str], set[str], Filter]:
    """Return the true matches and the SQL result, exact once the residual is applied."""
    truth = {name for name, seen in records.items() if matches_filter(wanted, seen)}
    rows, residual = find_by_sql(db, wanted)
    assert rows >= truth, wanted
    assert {name for name in rows if matches_filter(residual, records[name])} == truth, wanted
    return truth, rows, residual


def make_world(metas: Sequence[tuple[str, dict[str, Any]]]) -> tuple[apsw.Connection, Records]:
    """Return a database of facts with these texts and metadata, and their records."""
    scope = Scope("default", "alice")
    facts = [
        Fact(f"m{seq}", seq, seq, scope, text, "", meta=meta)
        for seq, (text, meta) in enumerate(metas, 1)
    ]
    return make_database(facts), {fact.id: to_record(fact) for fact in facts}


@pytest.fixture(scope="module")
def texts() -> tuple[apsw.Connection, Records]:
    return make_world([(text, {"tag": text, "list": [text, 1, None]}) for text in TEXTS])


@pytest.fixture(scope="module")
def numbers() -> tuple[apsw.Connection, Records]:
    return make_world(
        [("", {"n": number, "list": [number]}) for number in (*NUMBERS, True, False, None, "5")]
    )


def test_sql_with_residual_finds_what_the_matcher_finds() -> None:
    rng = random.Random(20260301)
    filters = exact = found = strict = 0
    for _ in range(16):
        facts = [random_fact(rng, seq) for seq in range(1, 41)]
        db, records = make_database(facts), {fact.id: to_record(fact) for fact in facts}
        for _ in range(400):
            wanted = parse_filter(random_expression(rng, facts))
            truth, rows, residual = assert_sql_agrees(db, records, wanted)
            filters, exact, found = (
                filters + 1,
                exact + (residual == MATCH_ALL),
                found + (0 < len(truth) < 40),
            )
            strict += 0 < len(truth) <= len(rows) < 40
    assert filters >= 5000
    assert exact > filters / 3, "most filters must be done by the database alone"
    assert found > filters / 3, "most filters must tell facts apart, or this proves little"
    assert strict > filters / 4, "many filters must be narrowed by the database"


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("value", TEXTS)
def test_each_operator_agrees_on_each_text(
    op: str, value: str, texts: tuple[apsw.Connection, Records]
) -> None:
    db, records = texts
    operand = [value, "work"] if op in ("in", "nin") else value
    for field in ("memory", "tag", "list"):
        assert_sql_agrees(db, records, parse_filter({field: {op: operand}}))


@pytest.mark.parametrize("op", ["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains"])
@pytest.mark.parametrize("value", NUMBERS)
def test_each_operator_agrees_on_each_number(
    op: str, value: float, numbers: tuple[apsw.Connection, Records]
) -> None:
    db, records = numbers
    for field in ("n", "list"):
        assert_sql_agrees(
            db, records, parse_filter({field: {op: [value] if op == "in" else value}})
        )


@pytest.mark.parametrize(
    "expression",
    [
        {"tag": "a"},
        {"tag": {"ne": None}},
        {"tag": {"in": ["a", None, True]}, "kind": {"nin": ["x"]}},
        {"NOT": {"OR": [{"tag": {"gt": "a"}}, {"role": {"lt": "z"}}, {"said_at": {"lt": 5}}]}},
        {"OR": [{"user_id": "alice"}, {"agent_id": {"ne": "bob"}}, {"memory": {"contains": "x"}}]},
        {"list": {"contains": "a"}},
        {"list": {"contains": False}},
    ],
)
def test_ordinary_filters_have_no_residual(expression: Any) -> None:
    assert sql.compile_filter(parse_filter(expression))[2] == MATCH_ALL


def test_residual_of_a_conjunction_holds_only_the_unpushed_parts() -> None:
    tag, fold = {"tag": "a"}, {"memory": {"icontains": "é"}}
    assert sql.compile_filter(parse_filter({"AND": [tag, fold]}))[2] == parse_filter(fold)
    either = {"OR": [tag, fold]}
    assert sql.compile_filter(parse_filter({"AND": [tag, either, {"NOT": fold}]}))[
        2
    ] == parse_filter({"AND": [either, {"NOT": fold}]})


def test_filter_that_cannot_be_pushed_adds_no_sql_condition() -> None:
    assert sql.compile_filter(parse_filter({"NOT": {"n": 5}}))[:2] == ("1", [])
    assert sql.compile_filter(parse_filter({"OR": [{"tag": "a"}, {"expiration_date": None}]}))[
        :2
    ] == ("1", [])
    assert sql.compile_filter(MATCH_ALL) == ("1", [], MATCH_ALL)
    assert sql.compile_filter(parse_filter({"OR": []})) == ("0", [], MATCH_ALL)


def test_equality_on_a_column_uses_its_index() -> None:
    db, _ = make_world([])
    for expression, index in (
        ({"kind": "a"}, "fact_kind"),
        ({"role": {"in": ["a", "b"]}, "tag": "x"}, "fact_role"),
        ({"said_at": {"gte": 1, "lt": 5}}, "fact_said"),
    ):
        where, params, _ = sql.compile_filter(parse_filter(expression))
        plan = db.execute(
            f"EXPLAIN QUERY PLAN SELECT f.thread FROM fact AS f WHERE {where}", params
        ).fetchall()
        assert any(index in row[3] for row in plan), plan


def test_largest_filter_compiles_and_runs() -> None:
    values = [f"v{number}" for number in range(1000)]
    tests = [{f"k{number}": {"in": [*values[1:], None]}} for number in range(125)]
    db, _ = make_world([("", {"k0": "v0", "k1": "v1"})])
    assert find_by_sql(db, parse_filter({"AND": [{"k0": {"in": values}}, {"OR": tests}]})) == (
        {"m1"},
        MATCH_ALL,
    )
    deep: Any = {"k0": "v0"}
    for _ in range(14):
        deep = {"NOT": deep}
    assert find_by_sql(db, parse_filter(deep)) == ({"m1"}, MATCH_ALL)


MARK = "zq9"


@pytest.mark.parametrize("nasty", [MARK + text for text in NASTY] + [text + MARK for text in NASTY])
def test_names_and_values_are_never_part_of_the_sql(nasty: str) -> None:
    db, _ = make_world([(nasty, {"tag": nasty})])
    for op in OPERATORS:
        operand = [nasty] if op in ("in", "nin") else nasty
        expressions = [{"memory": {op: operand}}, {"kind": {op: operand}}, {"tag": {op: operand}}]
        if "\0" not in nasty:
            expressions.append({f"metadata.{nasty}": {op: operand}})
        if op == "contains":
            expressions.append({"user_id": {op: operand}})
        for expression in expressions:
            wanted = parse_filter(expression)
            assert MARK not in sql.compile_filter(wanted)[0]
            find_by_sql(db, wanted)
    assert find_by_sql(db, parse_filter({"memory": nasty, "tag": nasty})) == ({"m1"}, MATCH_ALL)
    assert db.execute("SELECT count(*) FROM fact").fetchall() == [(1,)]


def test_key_with_special_characters_matches_only_itself() -> None:
    keys = [
        key
        for key in (*KEYS, *TEXTS)
        if key and not any(char < " " or char == "\x7f" for char in key)
    ]
    names = list(dict.fromkeys(keys))
    db, _ = make_world([("", {key: "here"}) for key in names])
    for seq, key in enumerate(names, 1):
        assert find_by_sql(db, parse_filter({f"metadata.{key}": "here"})) == (
            {f"m{seq}"},
            MATCH_ALL,
        )
