"""What of a turn extractors hear: its speaker's own words, and apart from them what stood in its images.

Neither what told itself had put into the prompt nor what an image says was said by whoever sent the turn. Evidence that
is understood later says which of its words are its speaker's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.core.echo import OwnText
from told.core.entry import Evidence
from told.core.hearsay import OWN_CHARS_KEY
from told.core.value import fast_frozen_init
from told.write.messages import DOCUMENT, InputTurn

OWN_SPANS_KEY: Final = "heard"
"""The metadata of evidence that says where its speaker's own words stand, where they are not all of it."""


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class TurnSegment:
    """A part of a turn as extractors hear it, which turn it is of, and where its words stand there."""

    turn_index: int
    turn: InputTurn
    own_text: OwnText


def segment_turns(turns: Iterable[tuple[int, InputTurn, OwnText]]) -> list[TurnSegment]:
    """What is heard of turns, each with its place and its speaker's own words: nothing, one piece, or two."""
    segments: list[TurnSegment] = []
    for turn_index, turn, own_text in turns:
        if own_text.text.strip():
            segments.append(TurnSegment(turn_index, _keep_own_text(turn, own_text.text), own_text))
        if (image_text := _find_image_text(turn.evidence)) is not None:
            segments.append(
                TurnSegment(turn_index, _to_document_turn(turn, image_text.text), image_text)
            )
    return segments


def _keep_own_text(turn: InputTurn, text: str) -> InputTurn:
    """A turn with its speaker's own words only."""
    evidence = turn.evidence
    return (
        turn
        if evidence.content == text
        else replace(turn, evidence=replace(evidence, content=text))
    )


def _find_image_text(evidence: Evidence) -> OwnText | None:
    """What stands in the images of a turn."""
    start = evidence.meta.get(OWN_CHARS_KEY)
    if not isinstance(start, int) or not evidence.content[start:].strip():
        return None
    return OwnText(evidence.content[start:], ((start, len(evidence.content)),))


def _to_document_turn(turn: InputTurn, text: str) -> InputTurn:
    """What a turn shows as what it is: something nobody here said, and nothing vouches for."""
    return replace(
        turn, evidence=replace(turn.evidence, content=text, role=DOCUMENT, sort=DOCUMENT, name=None)
    )


def build_span_meta(own_text: OwnText, content: str) -> Mapping[str, Any]:
    """The metadata that lets somebody hear the same later; none where everything is the speaker's own."""
    return (
        {} if own_text.text == content else {OWN_SPANS_KEY: [list(part) for part in own_text.spans]}
    )


def restore_own_text(evidence: Evidence) -> OwnText:
    """The speaker's own words of kept evidence."""
    parts: Sequence[Sequence[int]] | None = evidence.meta.get(OWN_SPANS_KEY)
    if parts is None:
        return OwnText.from_text(evidence.content)
    spans = tuple((start, end) for start, end in parts)
    return OwnText("\n".join(evidence.content[start:end] for start, end in spans), spans)
