"""The passages view: what the index sees of each fact version, a few lines of it at a time."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.entry import Asserted, Claim, Entry
from told.core.fact import LEVEL_SLOTS, NEVER, PASSAGE_CHARS, UNINDEXED_KINDS, Passage
from told.core.scope import Scope
from told.core.text import split_pieces
from told.ports import RowOp


def fold_passages(entry: Entry) -> Sequence[RowOp]:
    """An assertion becomes a passage for each piece of its text, and for each shorter form of it there is."""
    draft = entry.draft
    if draft is None or draft.scope is None or not isinstance(draft.verb, Asserted):
        return ()
    assertion, scope, seq = draft.verb, draft.scope, entry.seq
    return [
        _build_passage(seq, scope, assertion, slot, text)
        for slot, text in list_indexed_texts(assertion.claim)
    ]


def _build_passage(seq: int, scope: Scope, assertion: Asserted, slot: int, text: str) -> Passage:
    """One piece of an assertion; only the first of a thread's first version is part of a conversation."""
    claim = assertion.claim
    expires = NEVER if claim.expires is None else claim.expires
    if slot:
        return Passage(seq, scope, text, slot, None, None, NEVER, expires)
    thread = assertion.thread if claim.actor and assertion.since is None else None
    return Passage(seq, scope, text, slot, thread, claim.after, NEVER, expires)


def list_indexed_texts(claim: Claim) -> list[tuple[int, str]]:
    """The slots and texts of what is indexed of a claim.

    What is in quarantine, and a topic, has no passage, so that nothing finds it.
    """
    if claim.kind in UNINDEXED_KINDS:
        return []
    speaker = claim.actor or claim.role
    if len(claim.text) <= PASSAGE_CHARS:
        texts = [(0, format_indexed_text(speaker, claim.text))]
    else:
        texts = [
            (slot, format_indexed_text(speaker, piece))
            for slot, piece in enumerate(split_pieces(claim.text, PASSAGE_CHARS))
        ]
    for slot, name in LEVEL_SLOTS.items() if claim.meta else ():
        if isinstance(level_text := claim.meta.get(name), str) and level_text.strip():
            texts.append((slot, level_text))
    return texts


def format_indexed_text(speaker: str | None, text: str) -> str:
    """What is embedded and indexed of a text: who said it, by name or else by role, and the text."""
    return f"{speaker}: {text}" if speaker else text
