"""Access policies: what each allows, what a grant adds, and what expiry and revocation remove."""

import json
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.errors import InvalidInput
from told.ids import canonical_json
from told.model.policy import (
    ALL_ACTIONS,
    DEFAULT_POLICIES,
    GRANTABLE_ACTIONS,
    MUTATING_ACTIONS,
    UNDENIABLE_ACTIONS,
    Action,
    Grant,
    GrantPurpose,
    Inheritance,
    Policy,
    PolicyKind,
    PolicyState,
    combine_strictest,
    decide_access,
    inherit_policy,
    parse_actions,
    resolve_policy,
)

NOW = 1_000
INSIDE = {
    "read_metadata", "read_content", "quote", "view_anchor_location",
    "derive_claims", "derive_embeddings", "translate", "summarize",
}  # fmt: skip
OUTSIDE = {"export_claims", "publish_release", "share_with_third_party", "federated_query"}

# Actions each default policy allows another account member without a grant, written by hand.
OPEN = {
    "public": INSIDE | OUTSIDE,
    "open_metadata_restricted_content": {"read_metadata"},
    "licensed": {"read_metadata"},
    "community_restricted": {"read_metadata"},
    "private": {"read_metadata"},
    "embargoed": {"read_metadata"},
    "regulated": {"read_metadata"},
    "unknown_restricted": {"read_metadata"},
    "sealed": {"read_metadata"},
    "private_research": INSIDE,
    "restricted_pending_review": {"read_metadata"},
}


def grant(policy="private", allowed=ALL_ACTIONS, **changes):
    given = Grant(
        "bob", "root", policy, frozenset(allowed), GrantPurpose.REVIEW, "asked by the board"
    )
    return replace(given, **changes)


def allowed_actions(policy, grants=(), holder="bob", owner=False, now=NOW):
    return {
        action
        for action in Action
        if decide_access(policy, grants, holder, action, owner=owner, now=now)
    }


# The table: 16 actions × every default policy × the states of a grant


def test_there_are_sixteen_actions():
    assert len(Action) == 16


def test_every_policy_kind_has_a_default_of_its_name():
    assert set(OPEN) == set(DEFAULT_POLICIES)
    assert {DEFAULT_POLICIES[kind].kind for kind in PolicyKind} == set(PolicyKind)


GRANTS = {
    "none": ((), False),
    "in force": ((grant(),), True),
    "until later": ((grant(expires=NOW + 1),), True),
    "expired now": ((grant(expires=NOW),), False),
    "expired before": ((grant(expires=NOW - 1),), False),
    "revoked": ((grant(revoked=True),), False),
    "of another holder": ((grant(holder="eve"),), False),
    "under another policy": ((grant(policy="another"),), False),
    "one dead, one alive": ((grant(revoked=True), grant()), True),
}


@each_row(("name", "state"), list(product(OPEN, GRANTS)))
def test_others_may_do_what_the_policy_and_active_grants_allow(name, state):
    grants, counts = GRANTS[state]
    under = tuple(
        replace(given, policy=name) if given.policy == "private" else given for given in grants
    )
    sealed = DEFAULT_POLICIES[name].forbids
    expected = OPEN[name] | (ALL_ACTIONS - sealed if counts else set())
    assert allowed_actions(DEFAULT_POLICIES[name], under) == expected


@each_row("name", OPEN)
def test_a_grant_allows_only_the_actions_it_names(name):
    for action in ALL_ACTIONS - DEFAULT_POLICIES[name].forbids:
        assert allowed_actions(DEFAULT_POLICIES[name], [grant(name, {action})]) == OPEN[name] | {
            action
        }


@each_row("name", [name for name in OPEN if name != "sealed"])
def test_the_owner_may_do_everything(name):
    assert allowed_actions(DEFAULT_POLICIES[name], owner=True) == ALL_ACTIONS


@pytest.mark.parametrize("grants", [(), (grant("sealed"),)], ids=["no grant", "grant"])
def test_a_sealed_policy_restricts_the_owner_except_for_administration(grants):
    assert allowed_actions(DEFAULT_POLICIES["sealed"], grants, owner=True) == {
        "read_metadata",
        "request_deletion",
        "administer",
    }


@each_row("policy", DEFAULT_POLICIES.values(), ids=DEFAULT_POLICIES)
def test_no_policy_allows_changes_without_a_grant(policy):
    assert not allowed_actions(policy) & MUTATING_ACTIONS


@each_row("state", PolicyState)
@each_row("name", OPEN)
def test_an_inactive_policy_allows_others_only_metadata(name, state):
    policy, grants = replace(DEFAULT_POLICIES[name], state=state), [grant(name)]
    if state is PolicyState.ACTIVE:
        assert allowed_actions(policy, grants) == OPEN[name] | (ALL_ACTIONS - policy.forbids)
    else:
        assert allowed_actions(policy, grants) == {"read_metadata"}
    assert allowed_actions(policy, grants, owner=True) == ALL_ACTIONS - policy.forbids


@pytest.mark.parametrize(("now", "ended"), [(NOW - 1, False), (NOW, True), (NOW + 1, True)])
def test_a_policy_ends_at_its_expiry(now, ended):
    open_to = {"read_metadata"} if ended else OPEN["public"]
    assert allowed_actions(replace(DEFAULT_POLICIES["public"], expires=NOW), now=now) == open_to


def test_an_embargo_does_not_expire():
    assert allowed_actions(replace(DEFAULT_POLICIES["embargoed"], expires=NOW), now=NOW + 1) == {
        "read_metadata"
    }


# Reasons


@each_row(
    ("policy", "grants", "owner", "says"),
    [
        ("sealed", (), True, "Policy 'sealed' forbids read_content to everybody."),
        ("private", (), True, "The owner of the account may."),
        ("public", (), False, "Policy 'public' allows read_content."),
        ("private", (grant(),), False, "Granted by root for review."),
        ("private", (grant(revoked=True),), False, "no longer in force"),
        ("private", (), False, "bob has no grant"),
    ],
)
def test_a_decision_gives_its_reason(policy, grants, owner, says):
    assert (
        says
        in decide_access(
            DEFAULT_POLICIES[policy], grants, "bob", Action.READ_CONTENT, owner=owner, now=NOW
        ).reason
    )


# Invariants

some_actions = st.frozensets(st.sampled_from(Action))
policies = st.sampled_from(list(DEFAULT_POLICIES.values())) | st.builds(
    Policy,
    name=st.sampled_from(["p", "q", "r"]),
    kind=st.sampled_from(PolicyKind),
    allows=some_actions,
    forbids=some_actions.map(lambda forbidden: forbidden - UNDENIABLE_ACTIONS),
    inheritance=st.sampled_from(Inheritance),
    expires=st.none() | st.integers(NOW - 2, NOW + 2),
    state=st.sampled_from(PolicyState),
)
grants = st.builds(
    Grant,
    holder=st.sampled_from(["bob", "eve"]),
    issuer=st.just("root"),
    policy=st.sampled_from(["p", "q", "r", *DEFAULT_POLICIES]),
    actions=st.frozensets(st.sampled_from(Action), min_size=1),
    purpose=st.sampled_from(GrantPurpose),
    rationale=st.just("because"),
    expires=st.none() | st.integers(NOW - 2, NOW + 2),
    revoked=st.booleans(),
)
many_grants = st.lists(grants, max_size=4)


@given(policies, many_grants, grants, st.booleans())
def test_another_grant_never_removes_a_permission(policy, held, more, owner):
    assert allowed_actions(policy, held, owner=owner) <= allowed_actions(
        policy, [*held, more], owner=owner
    )


@given(policies, many_grants, st.booleans(), st.data())
def test_revoking_or_ending_a_grant_never_adds_a_permission(policy, held, owner, data):
    before = allowed_actions(policy, held, owner=owner)
    for place, lost in enumerate(held):
        ended = data.draw(
            st.sampled_from([replace(lost, revoked=True), replace(lost, expires=NOW)])
        )
        assert (
            allowed_actions(policy, [*held[:place], ended, *held[place + 1 :]], owner=owner)
            <= before
        )


@given(policies, many_grants, st.booleans())
def test_time_never_adds_a_permission(policy, held, owner):
    through = [
        allowed_actions(policy, held, owner=owner, now=now) for now in range(NOW - 3, NOW + 4)
    ]
    assert all(later <= earlier for earlier, later in pairwise(through))


@given(policies, many_grants, st.booleans(), st.sampled_from(PolicyState))
def test_an_inactive_policy_never_allows_more(policy, held, owner, state):
    active = replace(policy, state=PolicyState.ACTIVE)
    assert allowed_actions(replace(policy, state=state), held, owner=owner) <= allowed_actions(
        active, held, owner=owner
    )


@given(policies, many_grants)
def test_the_owner_may_do_everything_others_may(policy, held):
    assert allowed_actions(policy, held) <= allowed_actions(policy, held, owner=True)


@given(policies, many_grants, st.booleans())
def test_the_order_of_grants_does_not_matter(policy, held, owner):
    assert allowed_actions(policy, held, owner=owner) == allowed_actions(
        policy, held[::-1], owner=owner
    )


# Combining


@given(policies, policies, many_grants, st.booleans())
def test_combining_two_policies_allows_exactly_what_both_allow(a, b, held, owner):
    both = allowed_actions(a, held, owner=owner) & allowed_actions(b, held, owner=owner)
    assert allowed_actions(combine_strictest(a, b), held, owner=owner) == both


by_name = st.sampled_from(list(DEFAULT_POLICIES.values()))


@given(by_name, by_name, by_name)
def test_combining_is_idempotent_commutative_and_associative(a, b, c):
    assert combine_strictest(a, a) == a
    assert combine_strictest(a, b) == combine_strictest(b, a)
    assert combine_strictest(combine_strictest(a, b), c) == combine_strictest(
        a, combine_strictest(b, c)
    )


def test_a_grant_under_one_policy_does_not_bypass_another():
    both = combine_strictest(DEFAULT_POLICIES["private"], DEFAULT_POLICIES["regulated"])
    assert not decide_access(
        both, [grant("private")], "bob", Action.READ_CONTENT, owner=False, now=NOW
    )
    assert decide_access(
        both,
        [grant("private"), grant("regulated")],
        "bob",
        Action.READ_CONTENT,
        owner=False,
        now=NOW,
    )


def test_a_combination_has_the_kind_and_expiry_of_its_strictest_part():
    both = combine_strictest(
        replace(DEFAULT_POLICIES["public"], expires=NOW), DEFAULT_POLICIES["sealed"]
    )
    assert (both.name, both.kind, both.expires) == ("public+sealed", PolicyKind.SEALED, NOW)
    assert both.forbids == DEFAULT_POLICIES["sealed"].forbids


@given(by_name, by_name)
def test_a_combination_is_resolved_by_its_name(a, b):
    assert resolve_policy(combine_strictest(a, b).name) == combine_strictest(a, b)


def test_an_unknown_policy_name_is_restricted():
    assert resolve_policy("policy:nobody").kind is PolicyKind.UNKNOWN
    assert allowed_actions(resolve_policy("public+policy:nobody"), [grant("policy:nobody")]) == {
        "read_metadata"
    }


def test_derived_data_is_as_restricted_as_all_its_sources():
    assert inherit_policy(
        DEFAULT_POLICIES["public"], DEFAULT_POLICIES["private"]
    ) == combine_strictest(DEFAULT_POLICIES["public"], DEFAULT_POLICIES["private"])


def test_the_first_source_policy_applies_only_if_all_sources_allow_it():
    loose, tight = (
        replace(DEFAULT_POLICIES[name], inheritance=Inheritance.SOURCE_POLICY)
        for name in ("public", "private")
    )
    assert inherit_policy(loose, tight) == loose
    assert (
        inherit_policy(loose, tight, DEFAULT_POLICIES["licensed"]).name == "licensed+private+public"
    )


# Serialisation


def test_all_means_every_grantable_action():
    assert (
        parse_actions("all")
        == parse_actions(["all"])
        == GRANTABLE_ACTIONS
        == ALL_ACTIONS - {"write", "administer"}
    )
    assert parse_actions(["all", "write"]) == GRANTABLE_ACTIONS | {"write"}


@pytest.mark.parametrize("given", [5, None])
def test_actions_that_are_not_a_list_are_rejected(given):
    with pytest.raises(InvalidInput, match="list of names"):
        parse_actions(given)


@pytest.mark.parametrize("given", ["2026-01-01", 1.5, True])
def test_an_invalid_expiry_is_rejected(given):
    with pytest.raises(InvalidInput, match="expires"):
        Grant.from_json(grant().as_json() | {"expires": given})
    with pytest.raises(InvalidInput, match="expires"):
        Policy.from_json("mine", {"expires": given})


def test_an_unknown_action_error_suggests_the_nearest():
    with pytest.raises(InvalidInput, match="Did you mean 'read_content'"):
        parse_actions(["read_contents"])


@given(grants)
def test_a_grant_round_trips_through_the_ledger(given_once):
    assert Grant.from_json(json.loads(canonical_json(given_once.as_json()))) == given_once


@given(policies)
def test_a_policy_round_trips_through_the_ledger(policy):
    assert Policy.from_json(policy.name, json.loads(canonical_json(policy.as_json()))) == policy


def test_an_empty_policy_allows_only_metadata():
    assert allowed_actions(Policy.from_json("mine", {})) == {"read_metadata"}


@pytest.mark.parametrize("part", ["holder", "issuer", "policy", "rationale"])
def test_a_grant_without_a_reason_or_a_party_is_rejected(part):
    with pytest.raises(InvalidInput, match=part):
        grant(**{part: "  "})
    with pytest.raises(InvalidInput, match=part):
        Grant.from_json({name: value for name, value in grant().as_json().items() if name != part})


def test_a_grant_without_actions_is_rejected():
    with pytest.raises(InvalidInput, match="at least one action"):
        grant(allowed=())


def test_a_purpose_must_be_known():
    with pytest.raises(InvalidInput, match="Did you mean 'audit'"):
        Grant.from_json(grant().as_json() | {"purpose": "audits"})


@pytest.mark.parametrize("name", ["", " ", "a+b"])
def test_an_invalid_policy_name_is_rejected(name):
    with pytest.raises(InvalidInput, match="is not a valid policy name"):
        Policy(name, PolicyKind.PRIVATE)


@pytest.mark.parametrize("action", sorted(UNDENIABLE_ACTIONS))
def test_a_policy_cannot_lock_its_owner_out(action):
    with pytest.raises(InvalidInput, match="lock the owner out"):
        Policy("trap", PolicyKind.SEALED, forbids=frozenset({action}))
