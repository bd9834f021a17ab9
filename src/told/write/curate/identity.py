"""Which names may mean the same: edges with a weight and the method that found them, for lenses to look through."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from told.core.alike import likeness
from told.core.entry import Draft, Linked
from told.core.fact import NODE, Fact
from told.core.identity import DISTINCT, LENSES, SAME_AS
from told.core.scope import Scope
from told.core.score import cosine, quantise
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ledger.consume import Failure, attempt
from told.ports import Batch, Embedder, Store, ThreadAt, sound
from told.write.desk import Desk

LEAST: Final = min(lens.same for lens in LENSES.values())
"""An edge that no lens would see is not worth keeping."""
_LEGAL: Final = frozenset("inc incorporated corp corporation ltd limited llc gmbh ag sa plc co company bv the".split())
_EXACT, _PART, _INITIAL, _FIRST, _ACRONYM, _SPELLING = 0.99, 0.90, 0.75, 0.65, 0.70, 0.88
_SPELT_ALIKE: Final = 0.85
_SHORTEST: Final = 5
_NEAR: Final = 0.8
_BY_MEANING: Final = 0.9
"""What a cosine counts at most: what is near in meaning is often only related."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in the graph: its thread, how it is written and what it is said to be."""

    thread: str
    name: str
    type: str = "thing"


def alike_names(one: str, other: str) -> float:
    """How likely two names are one, by how they are written; names whose figures differ are never one."""
    left, right = _parts(one), _parts(other)
    if not left or not right or _figures(left) != _figures(right):
        return 0.0
    if "".join(left) == "".join(right):
        return _EXACT
    few, many = sorted((left, right), key=len)
    if _acronym(few, many):
        return _ACRONYM
    if set(few) < set(many):
        return _PART if len(few) > 1 else _FIRST
    if len(few) == len(many) > 1 and few[-1] == many[-1] and _abbreviated(few, many):
        return _INITIAL
    spelt = likeness(" ".join(left), " ".join(right))
    return spelt * _SPELLING if spelt >= _SPELT_ALIKE and len("".join(few)) >= _SHORTEST else 0.0


def _parts(name: str) -> tuple[str, ...]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    found = re.findall(r"[^\W_]+", re.sub(r"(?<=\b\w)\.(?=\w\b)|'s\b", "", plain))
    return tuple(part for part in found if part not in _LEGAL) or tuple(found)


def _figures(parts: Sequence[str]) -> list[str]:
    return [part for part in parts if any(char.isdigit() for char in part)]


def _acronym(few: Sequence[str], many: Sequence[str]) -> bool:
    return len(few) == 1 and len(many) > 2 and few[0] == "".join(part[0] for part in many)


def _abbreviated(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether all given names agree, one of them as an initial."""
    pairs = [(a, b) for a, b in zip(one[:-1], other[:-1], strict=True) if a != b]
    return bool(pairs) and all(min(len(a), len(b)) == 1 and a[0] == b[0] for a, b in pairs)


def edges(references: Sequence[Reference], vectors: Mapping[str, Sequence[float]] | None = None) -> list[Linked]:
    """The edges among references of one type: by spelling, and by meaning where vectors are given."""
    codes = {thread: quantise(vector) for thread, vector in (vectors or {}).items()}
    found: list[Linked] = []
    for one, other in combinations(references, 2):
        if not _one_type(one, other):
            continue
        written = alike_names(one.name, other.name)
        meant = 0.0
        if one.thread in codes and other.thread in codes and _figures(_parts(one.name)) == _figures(_parts(other.name)):
            near = cosine(codes[one.thread], codes[other.thread])
            meant = near * _BY_MEANING if near >= _NEAR else 0.0
        weight, method = max((written, "fuzzy"), (meant, "embedding"))
        if weight >= LEAST:
            found.append(Linked(other.thread, SAME_AS, one.thread, round(weight, 4), {"method": method}))
    return found


def _one_type(one: Reference, other: Reference) -> bool:
    return one.thread != other.thread and (one.type == other.type or "thing" in (one.type, other.type))


def identify(store: Store, scope: Scope, now: int, embedder: Embedder | None = None) -> Flow[list[Linked]]:
    """The edges among the nodes a scope holds that nobody has drawn yet, in either direction."""
    nodes = yield from call(store.held, scope, now, kinds=[NODE])
    references = [reference(node) for node in nodes]
    vectors = yield from _meanings(embedder, references)
    links = yield from call(store.links, scope.account, [node.id for node in nodes])
    known = {frozenset((link.src, link.dst)) for link in links if link.rel in (SAME_AS, DISTINCT)}
    return [edge for edge in edges(references, vectors) if frozenset((edge.src, edge.dst)) not in known]


@dataclass(frozen=True, slots=True)
class Likely:
    """Two names that may mean the same, how surely, and by which method that was found."""

    one: Reference
    other: Reference
    weight: float
    method: str

    def as_dict(self) -> dict[str, Any]:
        """The pair as JSON."""
        pair = {"source": self.one.name, "relation": SAME_AS, "target": self.other.name}
        return {**pair, "weight": self.weight, "method": self.method, "ids": [self.one.thread, self.other.thread]}


def recognise(desk: Desk, scope: Scope) -> Flow[list[Likely]]:
    """Draw the edges nobody has drawn yet between names that may mean the same; no name is merged or changed."""

    def decide() -> Flow[list[Likely]]:
        now = desk.mint.now()
        edges_now = yield from identify(desk.store, scope, now, desk.embedder)
        nodes = {node.id: node for node in (yield from call(desk.store.held, scope, now, kinds=[NODE]))}
        found = [edge for edge in edges_now if edge.src in nodes and edge.dst in nodes]
        if not found:
            return []
        drafts = [Draft(edge, scope, desk.author) for edge in found]
        ends = dict.fromkeys(end for edge in found for end in (edge.src, edge.dst))
        guards = [ThreadAt(end, nodes[end].seq) for end in ends]
        yield from commit(desk.store, Batch(scope.account, drafts, guards))
        named = {end: reference(nodes[end]) for end in ends}
        return [Likely(named[edge.src], named[edge.dst], edge.weight, str(edge.meta["method"])) for edge in found]

    return (yield from decided(desk.settings.conflict_retries, decide))


def _meanings(embedder: Embedder | None, references: Sequence[Reference]) -> Flow[Mapping[str, Sequence[float]]]:
    if embedder is None or not references:
        return {}
    given = yield from attempt(call(embedder.embed, [each.name for each in references], "passage"))
    if isinstance(given, Failure):
        return {}
    return dict(zip((each.thread for each in references), sound(embedder, given, len(references)), strict=True))


def reference(node: Fact) -> Reference:
    """A node as a reference."""
    return Reference(node.id, str(node.meta.get("name", node.text)), str(node.meta.get("type", "thing")))
