"""The ticks view: the turns of a conversation, by which memories fade.

What a user says is a turn. An agent that runs its own loop says that one passed, with evidence of the sort `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.core.entry import Entry, Observed
from told.core.fact import Tick
from told.core.size import estimate_tokens
from told.ports import RowOp

TICK_SORT, TURNS_KEY, TOKENS_KEY = "tick", "turns", "tokens"


def fold_ticks(entry: Entry) -> Sequence[RowOp]:
    """A user's turn, or the word that some passed, moves the clock."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    evidence = draft.verb.evidence
    if evidence.sort == TICK_SORT:
        turns, token_count = (
            _read_count(evidence.meta, TURNS_KEY, 1),
            _read_count(evidence.meta, TOKENS_KEY, 0),
        )
        return (Tick(entry.seq, draft.scope, entry.at, turns, token_count),)
    if evidence.sort == "turn" and evidence.role == "user":
        return (Tick(entry.seq, draft.scope, entry.at, 1, estimate_tokens(evidence.content)),)
    return ()


def _read_count(meta: Mapping[str, Any], name: str, default: int) -> int:
    value = meta.get(name, default)
    return value if type(value) is int and value >= 0 else default
