"""A read on its way: what is wanted, what was found so far, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from told.core.belief import Sides
from told.core.fact import NODE, Fact
from told.core.identity import Lens
from told.core.query import Find, Hit, Probe, Ranked
from told.core.value import quick
from told.flow import Flow, call
from told.read import trace
from told.read.asked import Asked
from told.read.fold import Kin, is_extracted
from told.read.gather import Eye
from told.read.guard import denials
from told.read.leads import Web
from told.read.rank import Scored, seqs_of


@quick
@dataclass(frozen=True, slots=True)
class Want:
    """What a read is asked for; a deep one looks at as many candidates as there can be results.

    A verbatim one wants the words that claims were taken from. `belief` says which side of a contradiction is shown,
    and `lens` which names are taken for one.
    """

    query: str
    find: Find
    limit: int
    least: float = 0.0
    rerank: bool = False
    now: datetime | None = None
    deep: bool = False
    verbatim: bool = False
    belief: str = "latest"
    lens: Lens | None = None


@quick
@dataclass(frozen=True, slots=True)
class Seen:
    """The hits of a search, what was not as it should be, and how sure it is."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    confidence: float = 0.0


@dataclass(slots=True)
class Recall:
    """A read on its way: what was understood, what was found, what is left of it, and what became of the rest.

    `shown` are the positions that may come to be shown; `sides` are the contradictions among them, `kins` the turns
    with what was taken from them, by evidence; `led` are words that only a claim led to; `heat` is what is at hand;
    `web` are the links that were looked up.
    """

    want: Want
    asked: Asked
    probe: Probe
    found: Ranked
    scored: Sequence[Scored]
    warnings: list[str]
    clock: trace.Clock
    facts: dict[int, Fact] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    fates: trace.Ledger = field(default_factory=trace.Ledger)
    also: dict[int, tuple[str, ...]] = field(default_factory=dict)
    denied: dict[int, str] = field(default_factory=dict)
    all: Sequence[Scored] = ()
    sides: Sides = field(default_factory=Sides)
    kins: dict[str, Kin] = field(default_factory=dict)
    superseded: dict[int, str] = field(default_factory=dict)
    led: list[Scored] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    heat: dict[int, str] = field(default_factory=dict)
    web: Web = field(default_factory=Web)

    def begin_again(self, scored: Sequence[Scored]) -> None:
        """Forget what became of these candidates: more of them are here now."""
        self.scored, self.fates, self.also, self.led = scored, trace.Ledger(), {}, []

    def keep(self, kept: Sequence[Scored], stage: str, reason: str) -> None:
        """Go on with these; the others end here."""
        if len(kept) < len(self.scored):
            self.fates.part(self.scored, kept, stage, reason)
        self.scored = kept

    def drop(self, reasons: Mapping[int, str], stage: str) -> None:
        """Some facts end here, each for its own reason."""
        if reasons:
            kept = [one for one in self.scored if one.mark.seq not in reasons]
            self.fates.part(self.scored, kept, stage, reasons)
            self.scored = kept

    def stand_for(self, seq: int, thread: str) -> None:
        """The fact at a position also stands for another memory."""
        if thread not in self.also.get(seq, ()):
            self.also[seq] = (*self.also.get(seq, ()), thread)

    def show(self, facts: Sequence[Fact]) -> None:
        """Facts that every guard lets through came in, and may come to be shown."""
        self.facts |= {fact.seq: fact for fact in facts}
        self.shown.update(fact.seq for fact in facts)


def first(scored: Sequence[Scored], facts: int) -> Sequence[Scored]:
    """The passages up to so many different facts."""
    count = len(first_seqs(scored, facts))
    return scored if count == len(scored) else scored[:count]


def first_seqs(scored: Sequence[Scored], facts: int) -> Sequence[int]:
    """The positions of the passages up to so many different facts."""
    seqs = seqs_of(scored)
    seen, end = set(seqs[:facts]), facts
    while end < len(seqs) and (len(seen) < facts or seqs[end] in seen):
        seen.add(seqs[end])
        end += 1
    return seqs[:end]


def fill(eye: Eye, recall: Recall, wanted: int) -> Flow[None]:
    """Fetch the facts of the best until as many as wanted may be seen that say different things, or no more."""
    reach = wanted
    while True:
        head = first_seqs(recall.scored, reach)
        yield from fetch(eye, recall, head)
        if different(recall.facts.values()) >= wanted or len(head) == len(recall.scored):
            return
        reach *= 2


def different(facts: Iterable[Fact]) -> int:
    """How many answers there are at least among facts: a turn and what was taken from it are one."""
    said = [fact for fact in facts if fact.kind != NODE]
    texts = {(fact.actor, fact.md5) for fact in said}
    sources = {fact.evidence if is_extracted(fact) else fact.id for fact in said}
    return min(len(texts), len(sources))


def fetch(eye: Eye, recall: Recall, seqs: Iterable[int]) -> Flow[None]:
    """Fetch the facts at these positions that are not here yet; only what every guard lets through comes in."""
    facts, denied = recall.facts, recall.denied
    if missing := [seq for seq in dict.fromkeys(seqs) if seq not in facts and seq not in denied]:
        fetched = yield from call(eye.store.versions, recall.want.find.scope.account, missing)
        stopped = denials(fetched.values(), eye.guards)
        denied |= stopped
        facts |= {seq: fact for seq, fact in fetched.items() if seq not in stopped} if stopped else fetched
