"""Access control: actions, policies, grants and the pure function `decide_access`.

Everything is denied unless one of these rules allows it, in this order:

1. An action a policy *forbids* is denied to everybody, including the owner and every grant. Among
the defaults only `sealed` forbids anything. Reading metadata, deleting a memory and changing its
policy cannot be forbidden, so the owner can always unseal or destroy a memory; both leave an entry.
2. The owner of the account may do everything else.
3. `read_metadata` is open to every caller of the account.
4. An active policy allows its own actions; an active grant under it adds the actions it names.

Expiry and revocation only take permissions away. A policy that expired, was revoked or superseded
allows nothing and carries no grant, but still forbids what it forbade: only a new policy lifts an
embargo, never the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeVar

from told.errors import InvalidInput
from told.model.validation import suggest_option

EnumT = TypeVar("EnumT", bound=StrEnum)


class Action(StrEnum):
    """An action a caller may request; every engine verb names one."""

    READ_METADATA = "read_metadata"
    READ_CONTENT = "read_content"
    QUOTE = "quote"
    VIEW_ANCHOR_LOCATION = "view_anchor_location"
    DERIVE_CLAIMS = "derive_claims"
    DERIVE_EMBEDDINGS = "derive_embeddings"
    TRANSLATE = "translate"
    SUMMARIZE = "summarize"
    EXPORT_CLAIMS = "export_claims"
    TRAIN_MODEL = "train_model"
    PUBLISH_RELEASE = "publish_release"
    SHARE_WITH_THIRD_PARTY = "share_with_third_party"
    FEDERATED_QUERY = "federated_query"
    REQUEST_DELETION = "request_deletion"
    WRITE = "write"
    """Add or change memories."""
    ADMINISTER = "administer"
    """Change kinds, policies and grants; rebuild, verify, back up."""


class PolicyKind(StrEnum):
    """The categories of policy, most open first."""

    PUBLIC = "public"
    OPEN_METADATA = "open_metadata_restricted_content"
    LICENSED = "licensed"
    COMMUNITY = "community_restricted"
    PRIVATE = "private"
    EMBARGOED = "embargoed"
    REGULATED = "regulated"
    UNKNOWN = "unknown_restricted"
    SEALED = "sealed"


class Inheritance(StrEnum):
    """The policy that applies to derived memories."""

    SOURCE_POLICY = "source_policy"
    """That of the first source, if every source says so."""
    MAX_RESTRICTION = "max_restriction"
    """The strictest of all sources."""
    AUTHORITY_OVERRIDE_ONLY = "authority_override_only"
    """The strictest of all sources; changing a policy always requires `administer`."""


class PolicyState(StrEnum):
    """The state of a policy; only an active one allows anything."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class GrantPurpose(StrEnum):
    """The purpose of a grant."""

    REVIEW = "review"
    COMMUNITY_CURATION = "community_curation"
    PRIVATE_RESEARCH = "private_research"
    PUBLICATION = "publication"
    MODEL_TRAINING = "model_training"
    AUDIT = "audit"
    EXTRACTION = "extraction"
    FEDERATION = "federation"
    INSPECTION = "inspection"


ALL_ACTIONS = frozenset(Action)
NO_ACTIONS: frozenset[Action] = frozenset()
METADATA_ACTIONS = frozenset({Action.READ_METADATA})
MUTATING_ACTIONS = frozenset({Action.REQUEST_DELETION, Action.WRITE, Action.ADMINISTER})
"""Actions that change the store; no policy allows them without a grant."""
USE_ACTIONS = ALL_ACTIONS - MUTATING_ACTIONS
GRANTABLE_ACTIONS = USE_ACTIONS | {Action.REQUEST_DELETION}
"""The meaning of "all" in a grant; `write` and `administer` must be granted by name."""
EXPORTING_ACTIONS = frozenset(
    {
        Action.EXPORT_CLAIMS,
        Action.TRAIN_MODEL,
        Action.PUBLISH_RELEASE,
        Action.SHARE_WITH_THIRD_PARTY,
        Action.FEDERATED_QUERY,
    }
)
"""Actions that carry content out of the account."""
UNDENIABLE_ACTIONS = frozenset({Action.READ_METADATA, Action.REQUEST_DELETION, Action.ADMINISTER})


def parse_enum(enum_type: type[EnumT], value: Any, name: str) -> EnumT:
    """Return the enum member with this value, or raise an error that lists them."""
    try:
        return enum_type(value)
    except ValueError:
        allowed = [str(choice) for choice in enum_type]
        raise InvalidInput(
            f"{name} is {value!r}; allowed: {', '.join(allowed)}.",
            hint=suggest_option(value, allowed),
        ) from None


def parse_actions(names: str | Iterable[str]) -> frozenset[Action]:
    """Parse action names; "all" is every grantable action."""
    if not isinstance(names, Iterable):
        raise InvalidInput(
            f"Actions are a list of names, not {names!r}.", hint='Name them, or give "all".'
        )
    name_list = [names] if isinstance(names, str) else list(names)
    parsed = {parse_enum(Action, name, "An action") for name in name_list if name != "all"}
    return GRANTABLE_ACTIONS | parsed if "all" in name_list else frozenset(parsed)


def _check_expiry(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidInput(
            f"expires is {value!r}.",
            hint="Give microseconds since 1970 as a whole number, or null.",
        )
    return value


@dataclass(frozen=True, slots=True)
class Policy:
    """The actions allowed without a grant and the actions forbidden to everybody.

    `parts` are the policies that this one combines; it is empty for a single policy.
    """

    name: str
    kind: PolicyKind
    allows: frozenset[Action] = METADATA_ACTIONS
    forbids: frozenset[Action] = NO_ACTIONS
    inheritance: Inheritance = Inheritance.MAX_RESTRICTION
    expires: int | None = None
    state: PolicyState = PolicyState.ACTIVE
    parts: tuple[Policy, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip() or ("+" in self.name and not self.parts):
            raise InvalidInput(
                f"{self.name!r} is not a valid policy name.", hint="Use a name without '+'."
            )
        if not_forbiddable := self.forbids & UNDENIABLE_ACTIONS:
            listed = ", ".join(sorted(not_forbiddable))
            raise InvalidInput(
                f"Policy {self.name!r} may not forbid {listed}: that would lock the owner out."
            )

    def is_in_force(self, now: int) -> bool:
        """Return True if the policy's permissions and grants apply."""
        return self.state is PolicyState.ACTIVE and (self.expires is None or now < self.expires)

    def as_json(self) -> dict[str, Any]:
        """Return the policy as a ledger rule; a combination is stored by name only."""
        return {
            "kind": self.kind.value,
            "allows": sorted(self.allows),
            "forbids": sorted(self.forbids),
            "inheritance": self.inheritance.value,
            "expires": self.expires,
            "state": self.state.value,
        }

    @classmethod
    def from_json(cls, name: str, rule: Mapping[str, Any]) -> Policy:
        """Parse a ledger rule; missing parts default to the most restrictive value."""
        return cls(
            name,
            parse_enum(PolicyKind, rule.get("kind", PolicyKind.UNKNOWN), "kind"),
            parse_actions(rule.get("allows", METADATA_ACTIONS)),
            parse_actions(rule.get("forbids", NO_ACTIONS)),
            parse_enum(
                Inheritance, rule.get("inheritance", Inheritance.MAX_RESTRICTION), "inheritance"
            ),
            _check_expiry(rule.get("expires")),
            parse_enum(PolicyState, rule.get("state", PolicyState.ACTIVE), "state"),
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission for a holder to perform actions under one policy, with issuer and reason."""

    holder: str
    issuer: str
    policy: str
    actions: frozenset[Action]
    purpose: GrantPurpose
    rationale: str
    expires: int | None = None
    revoked: bool = False

    def __post_init__(self) -> None:
        for name in ("holder", "issuer", "policy", "rationale"):
            if not getattr(self, name).strip():
                raise InvalidInput(
                    f"A grant needs a {name}.", hint="Give holder, issuer, policy and rationale."
                )
        if not self.actions:
            raise InvalidInput(
                "A grant needs at least one action.", hint='Name them, or give "all".'
            )

    def is_in_force(self, now: int) -> bool:
        """Return True if the grant applies."""
        return not self.revoked and (self.expires is None or now < self.expires)

    def covers(self, policy: Policy, holder: str, action: Action) -> bool:
        """Return True if the grant names this policy, holder and action."""
        return self.policy == policy.name and self.holder == holder and action in self.actions

    def as_json(self) -> dict[str, Any]:
        """Return the grant as a ledger rule."""
        return {
            "holder": self.holder,
            "issuer": self.issuer,
            "policy": self.policy,
            "actions": sorted(self.actions),
            "purpose": self.purpose.value,
            "rationale": self.rationale,
            "expires": self.expires,
            "revoked": self.revoked,
        }

    @classmethod
    def from_json(cls, rule: Mapping[str, Any]) -> Grant:
        """Parse the grant of a ledger rule."""
        return cls(
            str(rule.get("holder", "")),
            str(rule.get("issuer", "")),
            str(rule.get("policy", "")),
            parse_actions(rule.get("actions", ())),
            parse_enum(GrantPurpose, rule.get("purpose"), "purpose"),
            str(rule.get("rationale", "")),
            _check_expiry(rule.get("expires")),
            bool(rule.get("revoked", False)),
        )


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """A decision and its reason; truthy if allowed."""

    allowed: bool
    reason: str

    def __bool__(self) -> bool:
        return self.allowed


def decide_access(
    policy: Policy, grants: Sequence[Grant], holder: str, action: Action, *, owner: bool, now: int
) -> PolicyDecision:
    """Decide whether a holder may perform an action; see the module for the order of rules."""
    if not policy.parts:
        return _decide_single(policy, grants, holder, action, owner=owner, now=now)
    decisions = [
        _decide_single(part, grants, holder, action, owner=owner, now=now) for part in policy.parts
    ]
    for decision in decisions:
        if not decision:
            return decision
    return PolicyDecision(True, " ".join(dict.fromkeys(decision.reason for decision in decisions)))


def _decide_single(
    policy: Policy, grants: Sequence[Grant], holder: str, action: Action, *, owner: bool, now: int
) -> PolicyDecision:
    if action in policy.forbids:
        return PolicyDecision(False, f"Policy {policy.name!r} forbids {action} to everybody.")
    if owner:
        return PolicyDecision(True, "The owner of the account may.")
    if action is Action.READ_METADATA:
        return PolicyDecision(True, "Metadata is open inside the account.")
    if not policy.is_in_force(now):
        return PolicyDecision(False, f"Policy {policy.name!r} is not in force.")
    if action in policy.allows:
        return PolicyDecision(True, f"Policy {policy.name!r} allows {action}.")
    matching = [grant for grant in grants if grant.covers(policy, holder, action)]
    if active := next((grant for grant in matching if grant.is_in_force(now)), None):
        return PolicyDecision(True, f"Granted by {active.issuer} for {active.purpose}.")
    reason = "the grant is no longer in force" if matching else f"{holder} has no grant"
    return PolicyDecision(False, f"Policy {policy.name!r} does not allow {action} and {reason}.")


def combine_strictest(a: Policy, b: Policy) -> Policy:
    """Return the policy that allows an action only if both do."""
    parts = sorted(
        dict.fromkeys((*(a.parts or (a,)), *(b.parts or (b,)))), key=lambda part: part.name
    )
    if len(parts) == 1:
        return parts[0]
    return Policy(
        "+".join(part.name for part in parts),
        max((part.kind for part in parts), key=list(PolicyKind).index),
        frozenset.intersection(*(part.allows for part in parts)),
        frozenset.union(*(part.forbids for part in parts)),
        max((part.inheritance for part in parts), key=list(Inheritance).index),
        min((part.expires for part in parts if part.expires is not None), default=None),
        next(
            (part.state for part in parts if part.state is not PolicyState.ACTIVE),
            PolicyState.ACTIVE,
        ),
        tuple(parts),
    )


def inherit_policy(source: Policy, *others: Policy) -> Policy:
    """Return the policy of a memory derived from these sources."""
    if all(policy.inheritance is Inheritance.SOURCE_POLICY for policy in (source, *others)):
        return source
    return reduce(combine_strictest, others, source)


METADATA_ONLY_KINDS = (
    PolicyKind.OPEN_METADATA,
    PolicyKind.LICENSED,
    PolicyKind.COMMUNITY,
    PolicyKind.PRIVATE,
    PolicyKind.EMBARGOED,
    PolicyKind.REGULATED,
    PolicyKind.UNKNOWN,
)

DEFAULT_POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            Policy("public", PolicyKind.PUBLIC, USE_ACTIONS - {Action.TRAIN_MODEL}),
            *(Policy(kind.value, kind) for kind in METADATA_ONLY_KINDS),
            Policy(
                "sealed",
                PolicyKind.SEALED,
                forbids=ALL_ACTIONS - UNDENIABLE_ACTIONS,
                inheritance=Inheritance.AUTHORITY_OVERRIDE_ONLY,
            ),
            Policy("private_research", PolicyKind.PRIVATE, USE_ACTIONS - EXPORTING_ACTIONS),
            Policy("restricted_pending_review", PolicyKind.UNKNOWN),
        )
    }
)
"""The policies of every new account: one per kind, and two with names of their own.

`public` allows every use but training. `private_research` allows every use inside the account.
`sealed` excludes even the owner. All others allow only metadata and differ in the meaning of their
grants: a licence, consent of the community, an embargo, a legal basis, a review. `private` is one
of them: other callers of the account cannot read what a user said in confidence.
"""


def resolve_policy(name: str, policies: Mapping[str, Policy] = DEFAULT_POLICIES) -> Policy:
    """Return the policy named by an entry, combinations included; unknown names are restricted."""
    return reduce(
        combine_strictest,
        (policies.get(part, DEFAULT_POLICIES["unknown_restricted"]) for part in name.split("+")),
    )
