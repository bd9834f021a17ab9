"""Where hits point to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from told.core.fact import Link
from told.core.query import LATEST, Find
from told.flow import Flow, call
from told.read.gather import Eye


@dataclass(frozen=True, slots=True)
class Lead:
    """Where a hit points to: from which thread, how firmly, by which source, and whether only for naming it."""

    parent: str
    weight: float
    source: str
    mentioned: bool = False


Leads: TypeAlias = dict[str, Lead]


def offer(leads: Leads, thread: str, lead: Lead, scores: Mapping[str, float]) -> None:
    """Take a lead unless a stronger one leads there; nothing leads to itself."""
    known = leads.get(thread)
    if lead.parent != thread and (
        known is None or lead.weight * scores[lead.parent] > known.weight * scores[known.parent]
    ):
        leads[thread] = lead


@dataclass(slots=True)
class Web:
    """The links that a read has looked up, by the nodes they touch: who led somewhere is met again on the way."""

    known: dict[str, list[Link]] = field(default_factory=dict)

    def add(self, nodes: Iterable[str], links: Iterable[Link]) -> None:
        """These are all the links of these nodes."""
        fresh: dict[str, list[Link]] = {node: [] for node in nodes}
        for link in links:
            for end in {link.src, link.dst} & fresh.keys():
                fresh[end].append(link)
        self.known |= fresh

    def links(self, nodes: Iterable[str]) -> list[Link]:
        """The links that touch any of these nodes, oldest first."""
        found = {link.seq: link for node in nodes for link in self.known[node]}
        return [found[seq] for seq in sorted(found)]


def links_of(eye: Eye, find: Find, nodes: Sequence[str], web: Web) -> Flow[Sequence[Link]]:
    """The links that touch any of these nodes at the position that is read."""
    if fresh := [node for node in nodes if node not in web.known]:
        at = None if find.as_of.seq >= LATEST else find.as_of.seq
        web.add(fresh, (yield from call(eye.store.links, find.scope.account, fresh, at)))
    return web.links(nodes)
