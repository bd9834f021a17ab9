"""Trust, identity lenses and the choice between contradicting facts; the ledger keeps them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from told.errors import InvalidInput
from told.model.entry import Claim
from told.model.fact import NEVER, QUARANTINE, Fact, Link

SAME_AS: Final = "same_as"
DISTINCT_REFERENT: Final = "distinct_referent"


@dataclass(frozen=True, slots=True)
class Lens:
    """The probability thresholds for treating two references as the same or as distinct.

    An edge with a probability below `distinct` keeps two references apart. With `overrides`, a
    stronger `same_as` edge between the same two still merges them.
    """

    name: str
    same: float
    distinct: float
    overrides: bool = False


LENSES: Final[Mapping[str, Lens]] = {
    lens.name: lens
    for lens in (
        Lens("strict", 0.98, 0.02),
        Lens("likely", 0.85, 0.05),
        Lens("exploratory", 0.60, 0.10, overrides=True),
    )
}
_LENS_SUFFIX: Final = "_identity_v1"


def get_lens(name: str) -> Lens:
    """Return a lens by its short or long name (`likely` or `likely_identity_v1`)."""
    lens = LENSES.get(name.removesuffix(_LENS_SUFFIX))
    if lens is None:
        raise InvalidInput(f"There is no lens {name!r}.", hint=f"Use one of {', '.join(LENSES)}.")
    return lens


def resolve_identities(lens: Lens, links: Iterable[Link]) -> Mapping[str, str]:
    """Map every merged reference to its representative, the one created first.

    Stronger edges merge first; no edge merges two groups that contain a pair known to be distinct.
    """
    active = [link for link in links if link.until == NEVER]
    distinct_pairs = {
        frozenset((link.src, link.dst)): link.weight
        for link in active
        if _is_distinct_edge(lens, link)
    }
    groups: dict[str, frozenset[str]] = {}
    same = [link for link in active if link.rel == SAME_AS and link.weight >= lens.same]
    for link in sorted(same, key=lambda link: (-link.weight, link.seq)):
        left_group, right_group = (
            groups.get(node, frozenset((node,))) for node in (link.src, link.dst)
        )
        pair = frozenset((link.src, link.dst))
        is_overriding = lens.overrides and link.weight > distinct_pairs.get(pair, 1.0)
        blocking_pairs = [
            distinct_pair
            for distinct_pair in distinct_pairs
            if distinct_pair & left_group
            and distinct_pair & right_group
            and not (is_overriding and distinct_pair == pair)
        ]
        if left_group is not right_group and not blocking_pairs:
            merged = left_group | right_group
            groups.update(dict.fromkeys(merged, merged))
    return {node: min(group) for node, group in groups.items() if len(group) > 1}


def _is_distinct_edge(lens: Lens, link: Link) -> bool:
    return (
        link.rel == DISTINCT_REFERENT
        and link.src != link.dst
        and link.weight >= 1.0 - lens.distinct - 1e-9
    )


TRUST_KEY = "trust"
"""The metadata key that lowers a memory's trust; it can never raise it."""

TURN_SORT = "turn"
INFERRED_MODALITIES = frozenset({"inferred", "hypothesis_only", "reconstructed", "model_output"})
"""Modalities of claims that were inferred rather than stated."""

USER_ONLY_KINDS = frozenset({"profile", "preference", "skill", "tool"})
"""Kinds that control an agent's behaviour; only the user's own words create them."""


class Trust(IntEnum):
    """The trust level of a source, lowest first."""

    DOCUMENT = 0
    INFERENCE = 1
    TOOL = 2
    USER = 3

    @property
    def label(self) -> str:
        """Return the name used in metadata."""
        return self.name.lower()


EXTERNAL_SOURCES = frozenset({Trust.TOOL, Trust.DOCUMENT})
"""Sources outside the conversation."""

_TRUST_BY_ROLE = {"user": Trust.USER, "tool": Trust.TOOL, "assistant": Trust.INFERENCE}
_TRUST_BY_LABEL = {trust.label: trust for trust in Trust}


def trust_of_channel(role: str | None, sort: str = TURN_SORT, author: str = "user") -> Trust:
    """Return the trust of an input channel.

    Anything but a turn is a document; a turn without a role has the trust of its author.
    """
    if sort != TURN_SORT:
        return Trust.DOCUMENT
    if role is None:
        return Trust.USER if author == "user" else Trust.INFERENCE
    return _TRUST_BY_ROLE.get(role, Trust.DOCUMENT)


def trust_of_source(claim: Claim | Fact, sort: str = TURN_SORT) -> Trust:
    """Return the trust of a claim's channel, or its stamped trust if that is lower."""
    author = claim.author if isinstance(claim, Fact) else "user"
    trust = trust_of_channel(claim.role, sort, author)
    stamped = claim.meta.get(TRUST_KEY) if claim.meta else None
    return min(trust, _TRUST_BY_LABEL.get(stamped, trust)) if isinstance(stamped, str) else trust


def trust_of_claim(claim: Claim | Fact, sort: str = TURN_SORT) -> Trust:
    """Return the trust of a claim: that of its source, capped if it is inferred."""
    trust = trust_of_source(claim, sort)
    return min(trust, Trust.INFERENCE) if claim.modality in INFERRED_MODALITIES else trust


def lowest_trust(sources: Iterable[Trust]) -> Trust:
    """Return the lowest trust of the sources, INFERENCE if there are none."""
    return min(sources, default=Trust.INFERENCE)


def may_replace(new: Trust, current: Trust) -> bool:
    """Return True if a claim may replace or retract an existing one."""
    return new >= current


def safe_kind(kind: str, source: Trust) -> str:
    """Return the kind a source may create: user-only kinds become plain memories."""
    return "memory" if kind in USER_ONLY_KINDS and source < Trust.USER else kind


CONTRADICTS: Final = "contradicts"
SUPPORTS: Final = "supports"
BELIEFS: Final = ("latest", "all", "majority", "trusted")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two contradicting facts, their slot, and the ledger position of the link."""

    slot: str
    facts: tuple[Fact, Fact]
    seq: int

    def as_dict(self) -> dict[str, Any]:
        """Return the contradiction as JSON, the later memory first."""
        rows = [
            {"id": fact.id, "memory": fact.text, "trust": trust_of_claim(fact).label}
            for fact in self.facts
        ]
        return {"slot": self.slot, "memories": rows, "seq": self.seq}


def select_believed(
    facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest"
) -> list[Fact]:
    """Return the facts that a belief mode keeps, in the order given.

    `links` are the links that touch the facts. `all` keeps everything. Every other mode keeps facts
    greedily, best first, and drops those that contradict a kept one: `latest` prefers the most
    recent, `majority` the most often repeated, `trusted` the most trusted. Facts in quarantine
    never contradict anything.
    """
    if belief not in BELIEFS:
        raise InvalidInput(
            f"Unknown belief mode {belief!r}.", hint=f"Use one of {', '.join(BELIEFS)}."
        )
    rivals = _map_rivals(facts, links)
    if belief == "all" or not rivals:
        return list(facts)
    ranking_key = _ranking_key(belief, links)
    standing: set[str] = set()
    for fact in sorted(
        (fact for fact in facts if fact.id in rivals), key=ranking_key, reverse=True
    ):
        if not rivals[fact.id] & standing:
            standing.add(fact.id)
    return [fact for fact in facts if fact.id not in rivals or fact.id in standing]


SUPERSEDES: Final = "supersedes"
DERIVED_FROM: Final = "derived_from"


@dataclass(frozen=True, slots=True)
class BeliefConflicts:
    """Contradictions by id, and the kept fact that replaces each dropped one."""

    rivals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replaced_by: Mapping[str, str] = field(default_factory=dict)


def find_belief_conflicts(
    facts: Sequence[Fact], links: Sequence[Link], belief: str = "latest"
) -> BeliefConflicts:
    """Return the contradictions among facts and which fact replaces which.

    In `latest` mode a superseding fact replaces the superseded one, unless it was derived from it:
    derived facts never hide their source.
    """
    rivals = _map_rivals(facts, links)
    standing = {fact.id: fact for fact in select_believed(facts, links, belief)}
    ranking_key = _ranking_key(belief, links)
    replaced_by: dict[str, str] = {}
    for thread, others in rivals.items():
        if thread not in standing:
            replaced_by[thread] = max(
                (standing[other] for other in others if other in standing), key=ranking_key
            ).id
    if belief == "latest":
        standing_ids = standing.keys()
        derived_pairs = {(link.dst, link.src) for link in links if link.rel == DERIVED_FROM}
        superseding_pairs = {
            (link.dst, link.src): None
            for link in links
            if link.rel == SUPERSEDES and link.until == NEVER
        }
        replaced_by |= {
            old: new
            for old, new in superseding_pairs
            if old != new and {old, new} <= standing_ids and (old, new) not in derived_pairs
        }
    return BeliefConflicts(
        {thread: tuple(sorted(others)) for thread, others in rivals.items()}, replaced_by
    )


def find_contradictions(facts: Sequence[Fact], links: Sequence[Link]) -> list[Contradiction]:
    """Return the contradictions among facts, in the order they were recorded."""
    facts_by_id = {fact.id: fact for fact in facts}
    by_pair: dict[frozenset[str], Contradiction] = {}
    for link in sorted(links, key=lambda link: link.seq):
        if (
            link.rel == CONTRADICTS
            and link.until == NEVER
            and link.src in facts_by_id
            and link.dst in facts_by_id
        ):
            pair = facts_by_id[link.src], facts_by_id[link.dst]
            later, earlier = sorted(pair, key=_recency_key, reverse=True)
            slot = str(link.meta.get("slot", ""))
            by_pair.setdefault(
                frozenset((link.src, link.dst)), Contradiction(slot, (later, earlier), link.seq)
            )
    return list(by_pair.values())


def _map_rivals(facts: Sequence[Fact], links: Sequence[Link]) -> dict[str, set[str]]:
    """Map each contested fact to the ids it contradicts."""
    contested = [fact for fact in facts if fact.kind != QUARANTINE]
    rivals: dict[str, set[str]] = {}
    for contradiction in find_contradictions(contested, links):
        first, second = contradiction.facts
        rivals.setdefault(first.id, set()).add(second.id)
        rivals.setdefault(second.id, set()).add(first.id)
    return rivals


def _ranking_key(belief: str, links: Sequence[Link]) -> Callable[[Fact], tuple[float, ...]]:
    """Return the sort key of a belief mode; ties go to the more recent fact."""
    if belief == "majority":
        vote_counts = count_votes(links)
        return lambda fact: (vote_counts.get(fact.id, 0), *_recency_key(fact))
    if belief == "trusted":
        return lambda fact: (trust_of_claim(fact), fact.confidence, *_recency_key(fact))
    return _recency_key


def count_votes(links: Sequence[Link]) -> Mapping[str, int]:
    """Count repetitions of each fact by users; other sources cannot add votes."""
    supports = {
        (link.src, link.dst)
        for link in links
        if link.rel == SUPPORTS and TRUST_KEY not in link.meta
    }
    return Counter(thread for _, thread in supports)


def _recency_key(fact: Fact) -> tuple[int, int]:
    return (fact.updated_at if fact.said_at is None else fact.said_at, fact.seq)
