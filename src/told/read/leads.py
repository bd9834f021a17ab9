"""Where hits point to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from told.core.fact import Link
from told.core.query import LATEST, Probe
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


def links_of(eye: Eye, probe: Probe, nodes: Sequence[str]) -> Flow[Sequence[Link]]:
    """The links that touch any of these nodes at the position that is read."""
    at = probe.find.as_of.seq
    if not nodes:
        return ()
    return (yield from call(eye.store.links, probe.find.scope.account, nodes, None if at >= LATEST else at))
