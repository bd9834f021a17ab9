"""The passages view: what the index sees of each fact version, a few lines of it at a time."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Claim, Entry
from told.core.fact import LEVELS, NEVER, PIECE, SILENT, Passage
from told.core.scope import Scope
from told.core.text import pieces
from told.ports import RowOp


def fold(entry: Entry) -> Sequence[RowOp]:
    """An assertion becomes a passage for each piece of its text, and for each shorter form of it there is."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Asserted):
        return ()
    said, scope, seq = draft.verb, draft.scope, entry.seq
    return [_passage(seq, scope, said, slot, text) for slot, text in indexed(said.claim)]


def _passage(seq: int, scope: Scope, said: Asserted, slot: int, text: str) -> Passage:
    """One piece of an assertion; only the first of a thread's first version is part of a conversation."""
    claim = said.claim
    expires = NEVER if claim.expires is None else claim.expires
    if slot:
        return Passage(seq, scope, text, slot, None, None, NEVER, expires)
    thread = said.thread if claim.actor and said.since is None else None
    return Passage(seq, scope, text, slot, thread, claim.after, NEVER, expires)


def indexed(claim: Claim) -> list[tuple[int, str]]:
    """The slots and texts of what is indexed of a claim.

    What is in quarantine, and a topic, has no passage, so that nothing finds it.
    """
    if claim.kind in SILENT:
        return []
    speaker = claim.actor or claim.role
    if len(claim.text) <= PIECE:
        found = [(0, wording(speaker, claim.text))]
    else:
        found = [(slot, wording(speaker, piece)) for slot, piece in enumerate(pieces(claim.text, PIECE))]
    for slot, name in LEVELS.items() if claim.meta else ():
        if isinstance(shorter := claim.meta.get(name), str) and shorter.strip():
            found.append((slot, shorter))
    return found


def wording(speaker: str | None, text: str) -> str:
    """What is embedded and indexed of a text: who said it, by name or else by role, and the text."""
    return f"{speaker}: {text}" if speaker else text
