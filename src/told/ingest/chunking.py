"""Split long input into chunks for extraction and map the results back.

Chunks do not overlap, so nothing is extracted twice. They are cut between topics if possible, else
between turns, and long turns between paragraphs, sentences or words. Every part is a slice, so
spans map back to the turn by an offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

from told.flow import Flow
from told.ingest.messages import MINUTE_US, SILENT_ROLES, InputTurn
from told.ingest.types import (
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    Extractor,
    RejectedClaim,
    Relation,
)
from told.model.entry import Entry, Observed
from told.model.scope import Scope
from told.ports import Usage
from told.runtime import lazy_regex
from told.settings import Settings
from told.text.dates import ALWAYS, Interval
from told.text.tokens import (
    estimate_fractional_tokens,
    estimate_tokens,
    extract_terms,
    split_pieces,
)

WINDOW = 3
"""Number of turns compared on each side of a possible cut."""


# Splitting


@dataclass(frozen=True, slots=True)
class TurnSlice:
    """A slice of a turn with its estimated tokens."""

    turn: int
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Slices that are extracted together, in order."""

    slices: tuple[TurnSlice, ...]

    @property
    def tokens(self) -> int:
        """Return the estimated number of tokens."""
        return sum(part.tokens for part in self.slices)


def split_into_chunks(turns: Sequence[InputTurn], settings: Settings) -> tuple[Chunk, ...]:
    """Split turns into chunks of about `chunk_tokens`, covering everything once."""
    max_tokens = settings.chunk_tokens
    parts = [list(_slice_turn(number, turn, max_tokens)) for number, turn in enumerate(turns)]
    fits = sum(part.tokens for slices in parts for part in slices) <= max_tokens
    bounds = pairwise((*((0,) if fits else find_topic_starts(turns, settings)), len(turns)))
    topic_slices = (
        [part for slices in parts[first:last] for part in slices] for first, last in bounds
    )
    return tuple(Chunk(tuple(pack)) for pack in _pack_slices(topic_slices, max_tokens))


def _pack_slices(
    groups: Iterable[Sequence[TurnSlice]], max_tokens: int
) -> Iterator[Sequence[TurnSlice]]:
    """Pack as many groups together as fit; a group that never fits is packed by slices."""
    pack: list[TurnSlice] = []
    room = max_tokens
    for group in groups:
        cost = sum(part.tokens for part in group)
        for part in group:
            if pack and (part.tokens > room or (part is group[0] and room < cost <= max_tokens)):
                yield pack
                pack, room = [], max_tokens
            pack.append(part)
            room -= part.tokens
    if pack:
        yield pack


_PARAGRAPH = lazy_regex(r"\n[^\S\n]*(?:\n\s*)+")


def _slice_turn(number: int, turn: InputTurn, max_tokens: int) -> Iterator[TurnSlice]:
    """Iterate over slices of a turn, cut between paragraphs, then sentences, then words."""
    text = turn.evidence.content
    if (token_count := estimate_tokens(text)) <= max_tokens:
        yield TurnSlice(number, 0, len(text), token_count)
        return
    start = end = 0
    cost = 0.0
    for first, last in _split_paragraphs(text, max_tokens):
        cost += estimate_fractional_tokens(text[end:last])
        if end > start and cost > max_tokens:
            yield TurnSlice(number, start, end, estimate_tokens(text[start:end]))
            start, cost = first, estimate_fractional_tokens(text[first:last])
        end = last
    if end > start:
        yield TurnSlice(number, start, end, estimate_tokens(text[start:end]))


def _split_paragraphs(text: str, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Iterate over the spans of paragraphs, splitting long ones; skip whitespace between."""
    start = 0
    for gap in (*_PARAGRAPH.finditer(text), None):
        end = gap.start() if gap else len(text)
        yield from _split_sentences(text, start, end, max_tokens)
        start = gap.end() if gap else end


def _split_sentences(text: str, start: int, end: int, max_tokens: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    cost = estimate_tokens(part)
    if not part.strip():
        return
    if cost <= max_tokens:
        yield start, end
        return
    offset = start
    for piece in split_pieces(part, max(len(part) * max_tokens * 2 // (cost * 3), 1)):
        offset = text.index(piece, offset)
        yield offset, offset + len(piece)
        offset += len(piece)


# Topics


def find_topic_starts(turns: Sequence[InputTurn], settings: Settings) -> tuple[int, ...]:
    """Return where topics begin: at the start, after long pauses, and where vocabulary shifts."""
    if not turns:
        return ()
    bags = [Counter(extract_terms(turn.evidence.content)) for turn in turns]
    similarities = [_compute_similarity(bags, position) for position in range(len(turns))]
    shifts = (
        position
        for position in range(1, len(turns))
        if _is_valley(similarities, position, settings.ingestion.topic_shift)
    )
    pauses = (
        position
        for position, pair in enumerate(pairwise(turns), 1)
        if _is_pause(*pair, settings.ingestion.pause_minutes)
    )
    return tuple(sorted({0, *shifts, *pauses}))


def _is_pause(before: InputTurn, turn: InputTurn, minutes: float) -> bool:
    then, now = before.evidence.said_at, turn.evidence.said_at
    return then is not None and now is not None and abs(now - then) > minutes * MINUTE_US


def _compute_similarity(bags: Sequence[Counter[str]], position: int) -> float:
    """Return the word similarity of the turns before and after a position, from 0 to 1.

    It is 1 where there are too few turns to compare.
    """
    if position < 2 or position > len(bags) - 2:
        return 1.0
    before = sum(bags[max(position - WINDOW, 0) : position], Counter[str]())
    after = sum(bags[position : position + WINDOW], Counter[str]())
    length = sqrt(sum(n * n for n in before.values()) * sum(n * n for n in after.values()))
    return sum(n * after[word] for word, n in before.items()) / length if length else 1.0


def _is_valley(similarities: Sequence[float], position: int, threshold: float) -> bool:
    """Return True at a local minimum of similarity below the threshold."""
    similarity = similarities[position]
    after = similarities[position + 1] if position + 1 < len(similarities) else 1.0
    return (
        similarity < threshold and similarity < similarities[position - 1] and similarity <= after
    )


# Extraction


def select_chunk(inputs: ExtractionInput, chunk: Chunk) -> ExtractionInput:
    """Return the extraction input of one chunk."""
    return replace(
        inputs, turns=tuple(_cut_turn(inputs.turns[part.turn], part) for part in chunk.slices)
    )


def _cut_turn(turn: InputTurn, part: TurnSlice) -> InputTurn:
    evidence = turn.evidence
    if (part.start, part.end) == (0, len(evidence.content)):
        return turn
    return replace(
        turn, evidence=replace(evidence, content=evidence.content[part.start : part.end])
    )


def restore_positions(chunk: Chunk, result: ExtractionResult) -> ExtractionResult:
    """Return a chunk's result with positions in the whole input."""
    return replace(
        result,
        claims=tuple(_restore_claim(chunk, item) for item in result.claims),
        relations=tuple(_restore_relation(chunk, item) for item in result.relations),
        rejected=tuple(_restore_rejected(chunk, item) for item in result.rejected),
    )


def _restore_claim(chunk: Chunk, extracted: ExtractedClaim) -> ExtractedClaim:
    part = chunk.slices[extracted.turn]
    span = extracted.claim.span
    moved = None if span is None else (span[0] + part.start, span[1] + part.start)
    return ExtractedClaim(replace(extracted.claim, span=moved), part.turn)


def _restore_relation(chunk: Chunk, relation: Relation) -> Relation:
    return replace(relation, turn=chunk.slices[relation.turn].turn)


def _restore_rejected(chunk: Chunk, rejected: RejectedClaim) -> RejectedClaim:
    return (
        rejected
        if rejected.turn is None
        else replace(rejected, turn=chunk.slices[rejected.turn].turn)
    )


def merge_results(parts: Iterable[ExtractionResult]) -> ExtractionResult:
    """Merge the results of several chunks, without duplicate entities."""
    results = list(parts)
    return ExtractionResult(
        tuple(claim for part in results for claim in part.claims),
        tuple(dict.fromkeys(entity for part in results for entity in part.entities)),
        tuple(dict.fromkeys(relation for part in results for relation in part.relations)),
        tuple(rejected for part in results for rejected in part.rejected),
        tuple(dict.fromkeys(warning for part in results for warning in part.warnings)),
        tuple(fault for part in results for fault in part.unreadable_replies),
        sum((part.usage for part in results), Usage()),
    )


def extract_claims(
    extractor: Extractor, inputs: ExtractionInput, settings: Settings
) -> Flow[ExtractionResult]:
    """Run an extractor on turns of any length, chunk by chunk if it asks a model.

    Rules see whole turns, so that they can recognise quotations; given facts are read once. Nothing
    is extracted from empty turns.
    """
    if not inputs.facts and not any(turn.evidence.content for turn in inputs.turns):
        return ExtractionResult()
    if inputs.facts or extractor.local:
        return (yield from extractor.extract(inputs))
    results: list[ExtractionResult] = []
    for chunk in split_into_chunks(inputs.turns, settings):
        result = yield from extractor.extract(select_chunk(inputs, chunk))
        results.append(restore_positions(chunk, result))
    return results[0] if len(results) == 1 else merge_results(results)


# Pending turns


@dataclass(frozen=True, slots=True)
class PendingTurns:
    """Turns of a session not extracted yet, and whether they reach the threshold.

    Move the session's position to `cursor` only after extraction succeeded.
    """

    evidence_ids: tuple[str, ...]
    turns: tuple[InputTurn, ...]
    tokens: int
    cursor: int
    is_ready: bool


def collect_pending(
    entries: Iterable[Entry], scope: Scope, cursor: int, threshold: int, *, flush: bool = False
) -> PendingTurns:
    """Return the turns after the cursor in exactly this scope; `flush` ignores the threshold."""
    observed = [
        (entry.seq, verb)
        for entry in entries
        if entry.seq > cursor
        and entry.draft is not None
        and entry.draft.scope == scope
        and isinstance(verb := entry.draft.verb, Observed)
        and verb.evidence.role not in SILENT_ROLES
    ]
    size = sum(estimate_tokens(verb.evidence.content) for _, verb in observed)
    return PendingTurns(
        tuple(verb.id for _, verb in observed),
        tuple(
            InputTurn(verb.evidence, {}, _make_valid_since(verb.evidence.said_at))
            for _, verb in observed
        ),
        size,
        max((seq for seq, _ in observed), default=cursor),
        bool(observed) and (flush or size >= threshold),
    )


def _make_valid_since(said_at: int | None) -> Interval:
    return ALWAYS if said_at is None else Interval(said_at, None, "instant")
