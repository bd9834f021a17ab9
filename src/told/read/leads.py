"""Where hits point to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from told.core.fact import Link
from told.core.query import LATEST, FactQuery
from told.flow import Flow, call
from told.read.gather import ReadContext


@dataclass(frozen=True, slots=True)
class ExpansionEdge:
    """Where a hit points to: from which thread, how firmly, by which source, and whether only for naming it."""

    parent: str
    weight: float
    source: str
    is_mention: bool = False


ExpansionEdges: TypeAlias = dict[str, ExpansionEdge]


def keep_strongest_edge(
    edges: ExpansionEdges, thread: str, edge: ExpansionEdge, scores: Mapping[str, float]
) -> None:
    """Take a lead unless a stronger one leads there; nothing leads to itself."""
    existing = edges.get(thread)
    if edge.parent != thread and (
        existing is None
        or edge.weight * scores[edge.parent] > existing.weight * scores[existing.parent]
    ):
        edges[thread] = edge


@dataclass(slots=True)
class LinkCache:
    """The links that a read has looked up, by the nodes they touch: who led somewhere is met again on the way."""

    links_by_node: dict[str, list[Link]] = field(default_factory=dict)

    def add_links(self, nodes: Iterable[str], links: Iterable[Link]) -> None:
        """These are all the links of these nodes."""
        new_links: dict[str, list[Link]] = {node: [] for node in nodes}
        for link in links:
            for end in {link.src, link.dst} & new_links.keys():
                new_links[end].append(link)
        self.links_by_node |= new_links

    def get_links(self, nodes: Iterable[str]) -> list[Link]:
        """The links that touch any of these nodes, oldest first."""
        links_by_seq = {link.seq: link for node in nodes for link in self.links_by_node[node]}
        return [links_by_seq[seq] for seq in sorted(links_by_seq)]


def load_links(
    ctx: ReadContext, fact_query: FactQuery, nodes: Sequence[str], link_cache: LinkCache
) -> Flow[Sequence[Link]]:
    """The links that touch any of these nodes at the position that is read."""
    if missing := [node for node in nodes if node not in link_cache.links_by_node]:
        seq = None if fact_query.as_of.seq >= LATEST else fact_query.as_of.seq
        link_cache.add_links(
            missing, (yield from call(ctx.store.find_links, fact_query.scope.account, missing, seq))
        )
    return link_cache.get_links(nodes)
