"""The public data sets by file name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from told.tools.evaluate import data
from told.tools.evaluate.data import EvalConversation

FILES = {
    "locomo": "locomo.json",
    "beam": "beam_100k.json",
    "longmemeval": "longmemeval_pooled.json",
}


def load(
    folder: Path, name: str, most: int | None = None, *, captions: bool = True
) -> list[EvalConversation] | None:
    """Load the conversations of a data set, or None if its file is missing."""
    path = folder / FILES[name]
    if not path.is_file():
        return None
    found = data.load_conversations(path, max_count=most)
    return found if captions else [_without_captions(one) for one in found]


def _without_captions(conversation: EvalConversation) -> EvalConversation:
    return replace(
        conversation, turns=tuple(replace(turn, caption="") for turn in conversation.turns)
    )
