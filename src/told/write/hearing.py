"""What of a turn extractors hear: its speaker's own words, and apart from them what stood in its images.

Neither what told itself had put into the prompt nor what an image says was said by whoever sent the turn. Evidence that
is understood later says which of its words are its speaker's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from told.core.echo import Own
from told.core.entry import Evidence
from told.core.hearsay import OWN
from told.core.value import quick
from told.write.messages import DOCUMENT, Turn

HEARD: Final = "heard"
"""The metadata of evidence that says where its speaker's own words stand, where they are not all of it."""


@quick
@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a turn as extractors hear it, which turn it is of, and where its words stand there."""

    place: int
    turn: Turn
    own: Own


def pieces(turns: Iterable[tuple[int, Turn, Own]]) -> list[Piece]:
    """What is heard of turns, each with its place and its speaker's own words: nothing, one piece, or two."""
    found: list[Piece] = []
    for place, turn, own in turns:
        if own.text.strip():
            found.append(Piece(place, _spoken(turn, own.text), own))
        if (seen := _seen(turn.evidence)) is not None:
            found.append(Piece(place, _document(turn, seen.text), seen))
    return found


def _spoken(turn: Turn, text: str) -> Turn:
    """A turn with its speaker's own words only."""
    said = turn.evidence
    return turn if said.content == text else replace(turn, evidence=replace(said, content=text))


def _seen(said: Evidence) -> Own | None:
    """What stands in the images of a turn."""
    start = said.meta.get(OWN)
    if not isinstance(start, int) or not said.content[start:].strip():
        return None
    return Own(said.content[start:], ((start, len(said.content)),))


def _document(turn: Turn, text: str) -> Turn:
    """What a turn shows as what it is: something nobody here said, and nothing vouches for."""
    return replace(turn, evidence=replace(turn.evidence, content=text, role=DOCUMENT, sort=DOCUMENT, name=None))


def marked(own: Own, content: str) -> Mapping[str, Any]:
    """The metadata that lets somebody hear the same later; none where everything is the speaker's own."""
    return {} if own.text == content else {HEARD: [list(part) for part in own.parts]}


def recalled(said: Evidence) -> Own:
    """The speaker's own words of kept evidence."""
    parts: Sequence[Sequence[int]] | None = said.meta.get(HEARD)
    if parts is None:
        return Own.whole(said.content)
    spans = tuple((start, end) for start, end in parts)
    return Own("\n".join(said.content[start:end] for start, end in spans), spans)
