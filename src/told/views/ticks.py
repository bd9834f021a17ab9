"""The ticks view: the turns of a conversation, by which memories fade.

What a user says is a turn. An agent that runs its own loop says that one passed, with evidence of the sort `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.core.entry import Entry, Observed
from told.core.fact import Tick
from told.core.size import tokens
from told.ports import RowOp

TICK, TURNS, TOKENS = "tick", "turns", "tokens"


def fold(entry: Entry) -> Sequence[RowOp]:
    """A user's turn, or the word that some passed, moves the clock."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Observed):
        return ()
    said = draft.verb.evidence
    if said.sort == TICK:
        turns, size = _count(said.meta, TURNS, 1), _count(said.meta, TOKENS, 0)
        return (Tick(entry.seq, draft.scope, entry.at, turns, size),)
    if said.sort == "turn" and said.role == "user":
        return (Tick(entry.seq, draft.scope, entry.at, 1, tokens(said.content)),)
    return ()


def _count(meta: Mapping[str, Any], name: str, unsaid: int) -> int:
    value = meta.get(name, unsaid)
    return value if type(value) is int and value >= 0 else unsaid
