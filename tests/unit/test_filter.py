"""Filter expressions: syntax and semantics."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from tables import each_row
from told.errors import FilterError
from told.model import filter as filters
from told.model.fact import Fact
from told.model.filter import (
    MATCH_ALL,
    AllOf,
    AnyOf,
    Not,
    matches_filter,
    parse_filter,
    split_scope,
    to_record,
)
from told.model.scope import Scope

DAY = 86_400_000_000
MARCH = 1_772_323_200_000_000  # 2026-03-01T00:00:00Z


def fact(**given: Any) -> Fact:
    scope = given.pop("scope", Scope("default", "alice", "coder", None))
    return Fact(
        **{
            "id": "m1",
            "seq": 1,
            "tx": 1,
            "scope": scope,
            "text": "Likes Python",
            "md5": "abc",
            **given,
        }
    )


def make_record(**values: Any) -> dict[str, Any]:
    return to_record(fact(meta=values))


def matches(expression: Any, **values: Any) -> bool:
    return matches_filter(parse_filter(expression), make_record(**values))


# Renamed so that pytest does not collect the class.
Compared = filters.Comparison


# Parsing


@pytest.mark.parametrize("expression", [None, {}, {"AND": []}, {"AND": [{}, {}]}])
def test_an_empty_filter_matches_everything(expression: Any) -> None:
    assert parse_filter(expression) == MATCH_ALL
    assert matches_filter(parse_filter(expression), {})


@each_row(
    "expression",
    [
        {"tag": "a"},
        {"metadata.tag": "a"},
        {"tag": {"eq": "a"}},
        {"tag": {"$eq": "a"}},
        {"field": "tag", "operator": "eq", "value": "a"},
        {"field": "tag", "operator": "$eq", "value": "a"},
        {"AND": [{"tag": "a"}]},
        {"$or": [{"tag": "a"}]},
    ],
)
def test_every_spelling_of_one_condition_is_the_same_filter(expression: Any) -> None:
    assert parse_filter(expression) == Compared("metadata.tag", "eq", "a")


def test_conjunctions_are_flattened() -> None:
    low, high = Compared("metadata.n", "gte", 1), Compared("metadata.n", "lt", 5)
    wanted = AllOf((low, high, Compared("metadata.tag", "eq", "a")))
    assert parse_filter({"n": {"gte": 1, "lt": 5}, "tag": "a"}) == wanted
    assert (
        parse_filter({"AND": [{"n": {"gte": 1}}, {"$and": [{"n": {"$lt": 5}}]}], "tag": "a"})
        == wanted
    )


def test_not_of_a_list_means_none_of_them() -> None:
    one, two = Compared("metadata.a", "eq", 1), Compared("metadata.b", "eq", 2)
    assert parse_filter({"NOT": {"a": 1}}) == Not(one) == parse_filter({"$not": [{"a": 1}]})
    assert parse_filter({"NOT": [{"a": 1}, {"b": 2}]}) == Not(AnyOf((one, two)))
    assert matches({"NOT": [{"a": 1}, {"b": 2}]}, a=2, b=1)
    assert not matches({"NOT": [{"a": 1}, {"b": 2}]}, a=2, b=2)


def test_the_example_expression_is_parsed() -> None:
    expression = {
        "AND": [
            {"field": "user_id", "operator": "eq", "value": "alice"},
            {
                "OR": [
                    {"field": "memory", "operator": "icontains", "value": "python"},
                    {"field": "memory", "operator": "icontains", "value": "javascript"},
                ]
            },
        ]
    }
    assert matches_filter(parse_filter(expression), to_record(fact()))
    assert not matches_filter(parse_filter(expression), to_record(fact(text="Likes Rust")))
    assert not matches_filter(
        parse_filter(expression), to_record(fact(scope=Scope("default", "bob")))
    )


@pytest.mark.parametrize("alias", ["memory", "data", "text"])
def test_the_text_of_a_memory_has_three_names(alias: str) -> None:
    assert parse_filter({alias: {"contains": "x"}}) == Compared("memory", "contains", "x")


def test_a_metadata_key_named_like_a_field_needs_its_full_name() -> None:
    seen = to_record(
        fact(
            kind="memory",
            meta={"kind": "mine", "metadata.deep": 1, "metadata": 2, "field": 3, "or": 4},
        )
    )
    assert matches_filter(parse_filter({"kind": "memory", "metadata.kind": "mine"}), seen)
    assert matches_filter(
        parse_filter(
            {"metadata.metadata.deep": 1, "metadata": 2, "metadata.field": 3, "metadata.or": 4}
        ),
        seen,
    )


def test_names_are_literal_keys_not_paths() -> None:
    assert matches({"a.b": 1}, **{"a.b": 1})
    assert not matches({"a.b": 1}, a={"b": 1})
    assert not matches({"a[0]": 1}, a=[1])


def test_parsing_is_idempotent() -> None:
    wanted = parse_filter({"OR": [{"tag": "a"}, {"NOT": {"n": 1}}]})
    assert parse_filter(wanted) is wanted
    ids, rest = split_scope({"user_id": "alice", "tag": "a"})
    assert split_scope(rest) == ({}, parse_filter(rest))
    assert ids == {"user_id": "alice"}


def test_a_filter_copies_its_input() -> None:
    values, nested = ["a"], {"k": [1]}
    wanted = parse_filter({"tag": {"in": values}, "obj": {"eq": nested}})
    values.append("b")
    nested["k"].append(2)
    assert matches_filter(wanted, make_record(tag="a", obj={"k": [1]}))
    assert not matches_filter(wanted, make_record(tag="b", obj={"k": [1]}))


# Errors


@each_row(
    ("expression", "says"),
    [
        (["tag"], "is an object, not list"),
        ("tag", "is an object, not str"),
        ({"AND": {"tag": "a"}}, "AND takes a list"),
        ({"OR": "tag"}, "OR takes a list"),
        ({"NOT": 1}, "NOT takes a list"),
        ({"OR": [None]}, "is an object, not null"),
        ({"tag": {}}, "empty condition"),
        ({"tag": {"equals": 1}}, "not an operator"),
        ({"tag": {3: 1}}, "not an operator"),
        ({"tag": {"contain": 1}}, "Did you mean 'contains'"),
        ({"tag": {"GTE": 1}}, "Did you mean 'gte'"),
        ({"field": "tag", "operator": "eqq", "value": 1}, "Did you mean 'eq'"),
        ({"field": "tag", "operator": "eq"}, "exactly the keys"),
        ({"field": "tag", "operator": "eq", "value": 1, "tag": 2}, "exactly the keys"),
        ({"or": [{"tag": 1}]}, "Did you mean 'OR'.*'metadata.or'"),
        ({"$nor": [{"tag": 1}]}, "Did you mean 'OR'"),
        ({1: 2}, "field name is a string, not int"),
        ({"": 2}, "1 to 128 characters, not 0"),
        ({"metadata.": 2}, "1 to 128 characters, not 0"),
        ({"k" * 129: 2}, "1 to 128 characters, not 129"),
        ({"a\0b": 2}, "control character"),
        ({"a\nb": 2}, "control character"),
        ({"a\ud800": 2}, "control character"),
        ({"tag": {"in": "abc"}}, "a list of values, not str"),
        ({"tag": {"nin": None}}, "a list of values, not null"),
        ({"tag": {"in": list(range(1001))}}, "1001 values; 1000 are allowed"),
        ({"n": {"gt": True}}, "a number or a string, not bool"),
        ({"n": {"lte": None}}, "a number or a string, not null"),
        ({"n": {"lt": [1]}}, "a number or a string, not list"),
        ({"tag": {"icontains": 1}}, "a string, not int"),
        ({"memory": {"contains": 1}}, "a string, not int"),
        ({"kind": 5}, "a string, not int"),
        ({"role": {"gt": None}}, "a string, not null"),
        ({"id": {"in": ["a", 1]}}, "a string, not int"),
        ({"n": math.nan}, "not a number"),
        ({"n": {"gt": math.inf}}, "too large"),
        ({"n": {"eq": [1, {"a": -math.inf}]}}, "too large"),
        ({"n": 10**5000}, "too large"),
        ({"n": {1, 2}}, "not set"),
        ({"n": {"eq": {1: 2}}}, "keys of an object are strings"),
        ({"n": b"x"}, "not bytes"),
        ({"n": datetime(2026, 3, 1, tzinfo=UTC)}, "not datetime"),
        ({"n": "\ud800"}, "surrogate"),
        ({"n": [0] * 1000}, "more than 1000 parts"),
        ({"created_at": {"gt": "not a time at all"}}, "created_at gt: "),
        ({"created_at": {"gt": True}}, "a time, such as .*, not bool"),
        ({"created_at": {"gt": None}}, "a time, such as .*, not null"),
        ({"said_at": {"in": [["x"]]}}, "a time, such as .*, not list"),
        ({"updated_at": {"contains": "2026"}}, "contains does not apply"),
        ({"created_at": math.nan}, "not a number"),
        ({"created_at": 10**5000}, "too large"),
        ({"created_at": -(10**30)}, "created_at eq: "),
        ({"created_at": ""}, "created_at eq: "),
        ({"created_at": "2026-03-01T09:00:00"}, "created_at eq: .* offset"),
    ],
)
def test_an_invalid_expression_is_rejected_with_what_is_expected(
    expression: Any, says: str
) -> None:
    with pytest.raises(FilterError, match=says):
        parse_filter(expression)


@each_row("field", ["user_id", "agent_id", "run_id"])
@each_row("tested", ["*", " * ", {"in": ["alice", "*"]}, {"ne": "*"}, {"contains": "*"}])
def test_a_wildcard_id_is_rejected_with_an_explanation(field: str, tested: Any) -> None:
    with pytest.raises(FilterError, match="compared literally"):
        parse_filter({field: tested})


@each_row("value", ["*", "%", "?", "a*", "(?i)", "_", "NOT x", '"'])
def test_no_other_value_is_special(value: str) -> None:
    assert matches({"tag": value}, tag=value)
    assert not matches({"tag": value}, tag="anything")
    assert not matches({"tag": {"contains": value}}, tag="zzzz")


def test_an_invalid_id_is_rejected() -> None:
    with pytest.raises(FilterError, match="looks like a pattern"):
        parse_filter({"OR": [{"user_id": "al%"}, {"tag": 1}]})
    with pytest.raises(FilterError, match="user_id is empty"):
        parse_filter({"user_id": " "})
    assert parse_filter({"user_id": " alice "}) == Compared("user_id", "eq", "alice")


def nested(levels: int) -> Any:
    expression: Any = {"tag": "a"}
    for _ in range(levels - 1):
        expression = {"NOT": expression}
    return expression


def test_nesting_is_limited_to_sixteen_levels() -> None:
    assert matches_filter(parse_filter(nested(16)), make_record(tag="b"))
    with pytest.raises(FilterError, match="16 levels"):
        parse_filter(nested(17))


def test_an_expression_is_limited_to_128_nodes() -> None:
    tests = [{"n": number} for number in range(127)]
    assert matches_filter(parse_filter({"OR": tests}), make_record(n=126))
    with pytest.raises(FilterError, match="128 conditions"):
        parse_filter({"OR": [*tests, {"n": 127}]})


def test_shared_subexpressions_count_towards_the_node_limit() -> None:
    bomb: Any = {"tag": "a"}
    for _ in range(14):
        bomb = {"OR": [bomb] * 100}
    with pytest.raises(FilterError, match="128 conditions"):
        parse_filter(bomb)
    value: Any = "a"
    for _ in range(14):
        value = [value] * 100
    with pytest.raises(FilterError, match="1000 parts"):
        parse_filter({"tag": value})


def test_a_cyclic_expression_is_rejected() -> None:
    loop: dict[str, Any] = {}
    loop["NOT"] = loop
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(FilterError, match="levels"):
        parse_filter(loop)
    with pytest.raises(FilterError, match="levels"):
        parse_filter({"tag": ring})


# Matching


@each_row("op", ["eq", "gt", "gte", "lt", "lte", "contains", "icontains"])
def test_most_operators_are_false_for_a_missing_key(op: str) -> None:
    assert not matches({"tag": {op: "a"}})
    assert matches({"NOT": {"tag": {op: "a"}}})


def test_only_ne_and_nin_are_true_for_a_missing_key() -> None:
    assert not matches({"tag": {"eq": None}})
    assert not matches({"tag": {"in": [None]}})
    assert matches({"tag": {"ne": None}})
    assert matches({"tag": {"nin": ["a", None]}})
    assert matches({"tag": None}, tag=None)
    assert not matches({"tag": {"ne": None}}, tag=None)


@each_row(
    ("found", "value", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        (2**53 + 1, float(2**53), False),
        (10**30, 10**30, True),
        ([1, "a"], [1.0, "a"], True),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ([1], [1, 2], False),
        ([1, 2], [1], False),
        ([], {}, False),
        ({"a": [1], "b": None}, {"b": None, "a": [1.0]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": None}, {"b": None}, False),
        (None, 0, False),
        ("é", "e\u0301", False),
    ],
)
def test_equality_follows_json(found: Any, value: Any, equal: bool) -> None:
    assert matches({"tag": {"eq": value}}, tag=found) is equal
    assert matches({"tag": {"ne": value}}, tag=found) is not equal
    assert matches({"tag": {"in": ["no", value]}}, tag=found) is equal
    assert matches({"tag": {"nin": ["no", value]}}, tag=found) is not equal
    assert matches({"tag": {"contains": value}}, tag=["no", found]) is equal


@each_row(
    ("found", "op", "value", "true"),
    [
        (5, "gt", 4.5, True),
        (5, "gt", 5, False),
        (5, "gte", 5.0, True),
        (5, "lt", 6, True),
        (5, "lte", 5, True),
        (2**53 + 1, "gt", float(2**53), True),
        ("b", "gt", "a", True),
        ("Z", "lt", "a", True),
        ("\uffff", "lt", "\U0001f600", True),  # by code point, not by UTF-16 unit
        ("5", "gt", 4, False),
        (5, "lt", "6", False),
        (True, "gte", 0, False),
        (None, "lt", 1, False),
        ([9], "gt", 1, False),
    ],
)
def test_orderings_never_mix_types(found: Any, op: str, value: Any, true: bool) -> None:
    assert matches({"n": {op: value}}, n=found) is true


def test_contains_matches_a_substring_or_a_list_member() -> None:
    assert matches({"tag": {"contains": "yth"}}, tag="Python")
    assert matches({"tag": {"contains": ""}}, tag="")
    assert not matches({"tag": {"contains": "PYTH"}}, tag="Python")
    assert matches({"tag": {"contains": "Python"}}, tag=["Rust", "Python"])
    assert not matches({"tag": {"contains": "yth"}}, tag=["Python"])
    assert matches({"tag": {"contains": {"a": 1}}}, tag=[{"a": 1}])
    assert not matches({"tag": {"contains": 1}}, tag="1")
    assert not matches({"tag": {"contains": "a"}}, tag={"a": 1})


def test_icontains_folds_case_in_every_script() -> None:
    assert matches({"tag": {"icontains": "STRASSE"}}, tag="Hauptstraße 5")
    assert matches({"tag": {"icontains": "k"}}, tag="300 \u212a")  # the kelvin sign
    assert matches({"tag": {"icontains": "привет"}}, tag="ПРИВЕТ")
    assert matches({"tag": {"icontains": "PYTHON"}}, tag=["Rust", "Python", 3])
    assert not matches({"tag": {"icontains": "yth"}}, tag=["Python"])
    assert not matches({"tag": {"icontains": "1"}}, tag=1)


def test_an_empty_or_and_an_empty_in_match_nothing() -> None:
    assert not matches({"OR": []})
    assert not matches({"tag": {"in": []}}, tag="a")
    assert matches({"tag": {"nin": []}}, tag="a")
    assert matches({"NOT": []})
    assert not matches({"NOT": {}})


# The record


def test_a_built_in_field_without_a_value_is_null() -> None:
    seen = to_record(fact(actor="bob"))
    for field in ("role", "source", "said_at", "expiration_date", "run_id"):
        assert matches_filter(parse_filter({field: None}), seen)
        assert matches_filter(parse_filter({field: {"in": [None]}}), seen)
        assert not matches_filter(parse_filter({field: {"ne": None}}), seen)
    assert matches_filter(
        parse_filter({"role": {"ne": "user"}, "said_at": {"ne": "2026-03-01"}}), seen
    )
    assert matches_filter(
        parse_filter({"actor_id": {"ne": None}, "user_id": {"ne": None}, "agent_id": "coder"}), seen
    )


def test_every_built_in_field_is_in_the_record() -> None:
    assert to_record(fact()).keys() == filters.BUILT_IN_FIELDS


def test_times_compare_as_instants_however_they_are_written() -> None:
    seen = to_record(
        fact(created_at=MARCH, updated_at=MARCH + DAY, said_at=MARCH - DAY, expires=MARCH + 2 * DAY)
    )
    assert matches_filter(parse_filter({"created_at": "2026-03-01"}), seen)
    assert matches_filter(parse_filter({"created_at": "2026-03-01T01:00:00+01:00"}), seen)
    assert matches_filter(parse_filter({"created_at": {"in": [MARCH // 1_000_000]}}), seen)
    assert matches_filter(parse_filter({"created_at": datetime(2026, 3, 1, tzinfo=UTC)}), seen)
    assert matches_filter(
        parse_filter({"updated_at": {"gt": "2026-03-01", "lte": "2026-03-02"}}), seen
    )
    assert matches_filter(
        parse_filter({"said_at": {"lt": "2026-03-01"}, "expiration_date": {"gte": "2026-03-03"}}),
        seen,
    )
    assert not matches_filter(parse_filter({"created_at": {"gt": "2026-03-01"}}), seen)


# Scope


def test_scope_ids_are_split_from_a_filter() -> None:
    assert split_scope(None) == ({}, MATCH_ALL)
    assert split_scope({"user_id": "alice"}) == ({"user_id": "alice"}, MATCH_ALL)
    expression = {
        "AND": [{"user_id": " alice "}, {"run_id": {"eq": "r1"}, "tag": "x"}],
        "n": {"gt": 1},
    }
    assert split_scope(expression) == (
        {"user_id": "alice", "run_id": "r1"},
        parse_filter({"tag": "x", "n": {"gt": 1}}),
    )


@each_row(
    "expression",
    [
        {"OR": [{"user_id": "alice"}, {"tag": "x"}]},
        {"NOT": {"user_id": "alice"}},
        {"user_id": {"ne": "alice"}},
        {"user_id": {"in": ["alice", "bob"]}},
        {"user_id": None},
        {"metadata.user_id": "alice"},
    ],
)
def test_scope_ids_are_taken_only_from_plain_conjunctions(expression: Any) -> None:
    assert split_scope(expression) == ({}, parse_filter(expression))


def test_conflicting_ids_match_nothing_and_do_not_widen_the_scope() -> None:
    ids, rest = split_scope(
        {"AND": [{"user_id": "alice"}, {"user_id": "bob"}, {"user_id": "alice"}]}
    )
    assert ids == {"user_id": "alice"}
    assert rest == Compared("user_id", "eq", "bob")
