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
DISTINCT: Final = "distinct_referent"


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
_ALIAS: Final = "_identity_v1"


def lens_named(name: str) -> Lens:
    """The lens of a name, in the short spelling or the long one (`likely_identity_v1`)."""
    found = LENSES.get(name.removesuffix(_ALIAS))
    if found is None:
        raise InvalidInput(f"There is no lens {name!r}.", hint=f"Use one of {', '.join(LENSES)}.")
    return found


def seen_through(lens: Lens, links: Iterable[Link]) -> Mapping[str, str]:
    """For every reference that is one with another, the one that stands for all of them: the first made.

    Surer edges join first; none joins two groups that hold a pair known to be distinct.
    """
    held = [link for link in links if link.until == NEVER]
    apart = {frozenset((link.src, link.dst)): link.weight for link in held if _parts(lens, link)}
    groups: dict[str, frozenset[str]] = {}
    same = [link for link in held if link.rel == SAME_AS and link.weight >= lens.same]
    for link in sorted(same, key=lambda link: (-link.weight, link.seq)):
        one, other = (groups.get(node, frozenset((node,))) for node in (link.src, link.dst))
        pair = frozenset((link.src, link.dst))
        surer = lens.overrides and link.weight > apart.get(pair, 1.0)
        between = [known for known in apart if known & one and known & other and not (surer and known == pair)]
        if one is not other and not between:
            joined = one | other
            groups.update(dict.fromkeys(joined, joined))
    return {node: min(group) for node, group in groups.items() if len(group) > 1}


def _parts(lens: Lens, link: Link) -> bool:
    return link.rel == DISTINCT and link.src != link.dst and link.weight >= 1.0 - lens.distinct - 1e-9
