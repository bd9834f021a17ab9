"""Long input in parts that an extractor can take: where to cut, how to find the way back, and what is still to be done.

Parts do not overlap, so nothing is extracted twice. They are cut between topics where they can be, else between turns,
and inside a turn that is too long between paragraphs, sentences or words. Every part is a slice, so a span in a part is
a span in the turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

from told.core.entry import Entry, Observed
from told.core.lazy import regex
from told.core.scope import Scope
from told.core.size import tokens, weight
from told.core.text import pieces, terms
from told.core.when import ALWAYS, Interval
from told.flow import Flow
from told.ports import Usage
from told.settings import Settings
from told.write.messages import SILENT_ROLES, Turn
from told.write.shape import Dropped, Extracted, Extractor, Found, Heard, Relation
from told.write.talk import MINUTE

WINDOW = 3
"""How many turns on each side of a cut are compared."""


# -------------------------------------------------------------------------------------------------------------- cutting


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a turn, or all of it, and about how many tokens it has."""

    turn: int
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Slices that are heard together, in order."""

    slices: tuple[Slice, ...]

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return sum(part.tokens for part in self.slices)


def chunks(turns: Sequence[Turn], settings: Settings) -> tuple[Chunk, ...]:
    """Turns in chunks of at most about `chunk_tokens`, together everything that was said and nothing twice."""
    most = settings.chunk_tokens
    parts = [list(_slices(number, turn, most)) for number, turn in enumerate(turns)]
    fits = sum(part.tokens for each in parts for part in each) <= most
    bounds = pairwise((*((0,) if fits else topics(turns, settings)), len(turns)))
    talks = ([part for each in parts[first:last] for part in each] for first, last in bounds)
    return tuple(Chunk(tuple(pack)) for pack in _packed(talks, most))


def _packed(talks: Iterable[Sequence[Slice]], most: int) -> Iterator[Sequence[Slice]]:
    """As many talks together as fit; one that fits nowhere is packed slice by slice."""
    pack: list[Slice] = []
    room = most
    for talk in talks:
        cost = sum(part.tokens for part in talk)
        for part in talk:
            if pack and (part.tokens > room or (part is talk[0] and room < cost <= most)):
                yield pack
                pack, room = [], most
            pack.append(part)
            room -= part.tokens
    if pack:
        yield pack


_PARAGRAPH = regex(r"\n[^\S\n]*(?:\n\s*)+")


def _slices(number: int, turn: Turn, most: int) -> Iterator[Slice]:
    """A turn as it is, or cut between paragraphs, then sentences, then words, each part as full as it can be."""
    text = turn.evidence.content
    if (whole := tokens(text)) <= most:
        yield Slice(number, 0, len(text), whole)
        return
    start = end = 0
    cost = 0.0
    for first, last in _atoms(text, most):
        cost += weight(text[end:last])
        if end > start and cost > most:
            yield Slice(number, start, end, tokens(text[start:end]))
            start, cost = first, weight(text[first:last])
        end = last
    if end > start:
        yield Slice(number, start, end, tokens(text[start:end]))


def _atoms(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Paragraphs, and the pieces of those that are too long; white space between them belongs to none."""
    start = 0
    for gap in (*_PARAGRAPH.finditer(text), None):
        end = gap.start() if gap else len(text)
        yield from _sentences(text, start, end, most)
        start = gap.end() if gap else end


def _sentences(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    cost = tokens(part)
    if not part.strip():
        return
    if cost <= most:
        yield start, end
        return
    at = start
    for piece in pieces(part, max(len(part) * most * 2 // (cost * 3), 1)):
        at = text.index(piece, at)
        yield at, at + len(piece)
        at += len(piece)


# --------------------------------------------------------------------------------------------------------------- topics


def topics(turns: Sequence[Turn], settings: Settings) -> tuple[int, ...]:
    """Where topics begin: at the first turn, after a long pause, and where the words before and after differ most."""
    if not turns:
        return ()
    bags = [Counter(terms(turn.evidence.content)) for turn in turns]
    alike = [_alike(bags, place) for place in range(len(turns))]
    shifts = (place for place in range(1, len(turns)) if _is_valley(alike, place, settings.topic_shift))
    pauses = (place for place, pair in enumerate(pairwise(turns), 1) if _paused(*pair, settings.pause_minutes))
    return tuple(sorted({0, *shifts, *pauses}))


def _paused(before: Turn, turn: Turn, minutes: float) -> bool:
    then, now = before.evidence.said_at, turn.evidence.said_at
    return then is not None and now is not None and abs(now - then) > minutes * MINUTE


def _alike(bags: Sequence[Counter[str]], place: int) -> float:
    """How much the turns before a place and those after it have in common, from 0 to 1; 1 where there is too little."""
    if place < 2 or place > len(bags) - 2:
        return 1.0
    before = sum(bags[max(place - WINDOW, 0) : place], Counter[str]())
    after = sum(bags[place : place + WINDOW], Counter[str]())
    length = sqrt(sum(n * n for n in before.values()) * sum(n * n for n in after.values()))
    return sum(n * after[word] for word, n in before.items()) / length if length else 1.0


def _is_valley(alike: Sequence[float], place: int, most: float) -> bool:
    """Whether less is in common here than on either side, and little at all; of equals the first."""
    here = alike[place]
    after = alike[place + 1] if place + 1 < len(alike) else 1.0
    return here < most and here < alike[place - 1] and here <= after


# ----------------------------------------------------------------------------------------------------------- extracting


def hearing(heard: Heard, chunk: Chunk) -> Heard:
    """What an extractor is given of one chunk."""
    return replace(heard, turns=tuple(_cut(heard.turns[part.turn], part) for part in chunk.slices))


def _cut(turn: Turn, part: Slice) -> Turn:
    said = turn.evidence
    if (part.start, part.end) == (0, len(said.content)):
        return turn
    return replace(turn, evidence=replace(said, content=said.content[part.start : part.end]))


def placed(chunk: Chunk, found: Extracted) -> Extracted:
    """What was found in a chunk, with turns and spans of the whole."""
    return replace(
        found,
        claims=tuple(_found(chunk, one) for one in found.claims),
        relations=tuple(_relation(chunk, one) for one in found.relations),
        dropped=tuple(_dropped(chunk, one) for one in found.dropped),
    )


def _found(chunk: Chunk, found: Found) -> Found:
    part = chunk.slices[found.turn]
    span = found.claim.span
    moved = None if span is None else (span[0] + part.start, span[1] + part.start)
    return Found(replace(found.claim, span=moved), part.turn)


def _relation(chunk: Chunk, relation: Relation) -> Relation:
    return replace(relation, turn=chunk.slices[relation.turn].turn)


def _dropped(chunk: Chunk, dropped: Dropped) -> Dropped:
    return dropped if dropped.turn is None else replace(dropped, turn=chunk.slices[dropped.turn].turn)


def merged(parts: Iterable[Extracted]) -> Extracted:
    """What was found in several chunks, as if in one; an entity that is met again is the same."""
    all_ = list(parts)
    return Extracted(
        tuple(claim for part in all_ for claim in part.claims),
        tuple(dict.fromkeys(entity for part in all_ for entity in part.entities)),
        tuple(dict.fromkeys(relation for part in all_ for relation in part.relations)),
        tuple(dropped for part in all_ for dropped in part.dropped),
        tuple(dict.fromkeys(warning for part in all_ for warning in part.warnings)),
        tuple(fault for part in all_ for fault in part.faults),
        sum((part.usage for part in all_), Usage()),
    )


def extract(extractor: Extractor, heard: Heard, settings: Settings) -> Flow[Extracted]:
    """What an extractor finds in turns of any length; one that asks a model hears them chunk by chunk.

    Rules hear a turn whole: only so can they see that something in it is quoted; facts that were given are read once.
    Where nobody says anything of their own, nobody is asked.
    """
    if not heard.facts and not any(turn.evidence.content for turn in heard.turns):
        return Extracted()
    if heard.facts or extractor.local:
        return (yield from extractor.extract(heard))
    parts: list[Extracted] = []
    for chunk in chunks(heard.turns, settings):
        found = yield from extractor.extract(hearing(heard, chunk))
        parts.append(placed(chunk, found))
    return parts[0] if len(parts) == 1 else merged(parts)


# -------------------------------------------------------------------------------------------------------------- pending


@dataclass(frozen=True, slots=True)
class Pending:
    """What was said in a session since claims were last extracted from it, and whether that is enough to do it again.

    `cursor` is where extraction stands once these turns are done. Whoever extracts moves it after it succeeded: what
    failed is pending still.
    """

    evidence: tuple[str, ...]
    turns: tuple[Turn, ...]
    tokens: int
    cursor: int
    ready: bool


def pending(entries: Iterable[Entry], scope: Scope, cursor: int, threshold: int, *, flush: bool = False) -> Pending:
    """What entries after the cursor were said in exactly this scope; with `flush`, any of it is enough."""
    said = [
        (entry.seq, verb)
        for entry in entries
        if entry.seq > cursor
        and entry.draft is not None
        and entry.draft.scope == scope
        and isinstance(verb := entry.draft.verb, Observed)
        and verb.evidence.role not in SILENT_ROLES
    ]
    size = sum(tokens(verb.evidence.content) for _, verb in said)
    return Pending(
        tuple(verb.id for _, verb in said),
        tuple(Turn(verb.evidence, {}, _since(verb.evidence.said_at)) for _, verb in said),
        size,
        max((seq for seq, _ in said), default=cursor),
        bool(said) and (flush or size >= threshold),
    )


def _since(said_at: int | None) -> Interval:
    return ALWAYS if said_at is None else Interval(said_at, None, "instant")
