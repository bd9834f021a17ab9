"""Who is who: references stay as they were written, and a read may take two of them for one.

An edge says how likely two references mean the same (`same_as`) or cannot (`distinct_referent`), and how that was
found. A lens says how sure is sure enough. Nothing is ever merged in storage, so a wrong edge does no lasting harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from told.core.errors import InvalidInput
from told.core.fact import NEVER, Link

SAME_AS: Final = "same_as"
DISTINCT_REFERENT: Final = "distinct_referent"


@dataclass(frozen=True, slots=True)
class Lens:
    """How sure one must be that two references are the same, or that they are not.

    Two references are kept apart by an edge that leaves them less than `distinct` likely to be one; through a lens that
    `overrides`, a still surer edge between the two joins them all the same.
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
    """The lens of a name, in the short spelling or the long one (`likely_identity_v1`)."""
    lens = LENSES.get(name.removesuffix(_LENS_SUFFIX))
    if lens is None:
        raise InvalidInput(f"There is no lens {name!r}.", hint=f"Use one of {', '.join(LENSES)}.")
    return lens


def resolve_identities(lens: Lens, links: Iterable[Link]) -> Mapping[str, str]:
    """For every reference that is one with another, the one that stands for all of them: the first made.

    Surer edges join first; none joins two groups that hold a pair known to be distinct.
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
