"""Memory URIs: one path segment per value, one folder per owner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.errors import UriError
from told.model.kind import SLUG_LIMIT, escape_segment, load_builtin_ontology, load_kind, slugify
from told.model.scope import Scope, Uri

ALICE = Scope.create(user_id="alice", agent_id="coder", run_id="r1")
VALUES = {
    "slug": "Code Style",
    "name": "Met Bob",
    "skill_name": "release",
    "tool_name": "bash",
    "ts": "20260301",
    "id": "x1",
}


@each_row(
    ("text", "expected"),
    [
        ("Code Style", "code_style"),
        ("../../etc", "etc"),
        ("a/b", "a_b"),
        ("C++", "c++"),
        ("  x ", "x"),
        ("茶", "茶"),
    ],
)
def test_a_slug_is_one_segment(text, expected):
    assert slugify(text) == expected


def test_long_values_that_differ_late_have_different_slugs():
    assert slugify("x" * 300 + "a") != slugify("x" * 300 + "b")
    assert len(slugify("x" * 300)) == SLUG_LIMIT


@given(st.text())
def test_no_value_escapes_the_folder_of_its_kind(text):
    kind = load_builtin_ontology()["preference"]
    try:
        uri = kind.build_uri(ALICE, {"slug": text})
    except UriError:
        assert not slugify(text).strip(".")
    else:
        assert uri.path[:-1] == ("users", "alice", "memories", "preferences")
        assert Uri.parse(str(uri)) == uri


@given(st.text())
def test_slugify_is_idempotent(text):
    assert slugify(slugify(text)) == slugify(text)


visible = st.characters(exclude_categories=("C", "Z"), exclude_characters="*%?")
tricky = st.sampled_from(["a/b", "a_b", "A_b", "..", ".", "~x", escape_segment("a/b"), "℀"])
ids = st.text(visible, min_size=1, max_size=9) | tricky


@given(ids, ids)
def test_two_owners_never_share_an_address(one, other):
    one, other = Scope.create(user_id=one), Scope.create(user_id=other)
    named = [kind for kind in load_builtin_ontology().values() if "run_id" not in kind.template]
    assert {kind.build_uri(one, VALUES) == kind.build_uri(other, VALUES) for kind in named} == {
        one == other
    }


@pytest.mark.parametrize(
    ("ids", "name", "space"),
    [
        ({"user_id": "u", "agent_id": "a"}, "preference", ("users", "u")),
        ({"user_id": "u", "agent_id": "a"}, "pattern", ("agents", "a")),
        ({"agent_id": "a"}, "preference", ("agents", "a")),
        ({"user_id": "u"}, "pattern", ("users", "u")),
        ({"run_id": "r"}, "pattern", ("runs", "r")),
    ],
)
def test_a_memory_is_stored_under_its_owner_or_the_nearest_existing_scope(ids, name, space):
    assert load_builtin_ontology()[name].build_uri(Scope.create(**ids), VALUES).path[:2] == space


def test_a_missing_value_is_named_in_the_error():
    with pytest.raises(UriError, match="needs slug"):
        load_builtin_ontology()["preference"].build_uri(ALICE, {"slug": " "})


def test_a_value_cannot_replace_a_scope_id():
    kind = load_kind({"name": "x", "directory": "ctx://{{account_id}}/users/{{user_id}}"})
    with pytest.raises(UriError, match="needs user_id"):
        kind.build_uri(Scope.create(agent_id="a"), {"id": "1", "user_id": "bob"})
