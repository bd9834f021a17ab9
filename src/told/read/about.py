"""What is remembered of somebody: every memory with the sentence it comes from, how strong it is and when it fades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from told.core.entry import Asserted, Observed, Verb
from told.core.fact import TURN, Fact
from told.core.fading import Strength
from told.core.kind import Kind
from told.core.query import Find, listed
from told.core.text import sentences
from told.flow import Flow, call
from told.ports import Store
from told.read.fading import strengths
from told.read.gather import Eye
from told.read.guard import denials

PAGE: Final = 1000
"""How many memories are looked at together."""
WHOLE: Final = 200
"""What was said is quoted whole up to so many characters; of more, the sentences that matter."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A memory, the rules of its kind, how strong it is, and the words it was taken from, as far as they are there."""

    fact: Fact
    kind: Kind | None
    strength: Strength
    words: str | None = None


def remembered(eye: Eye, find: Find) -> Flow[list[Remembered]]:
    """Every memory of a scope, those of a kind together, the strongest first; the kinds by their strongest."""
    found: list[Remembered] = []
    page = replace(listed(find), limit=PAGE, offset=0)
    while facts := (yield from call(eye.store.facts, page)):
        denied = denials(facts, eye.guards)
        found += yield from _looked_up(eye, [fact for fact in facts if fact.seq not in denied], find)
        page = replace(page, offset=page.offset + PAGE)
    return _grouped(found)


def _grouped(found: Sequence[Remembered]) -> list[Remembered]:
    best: dict[str, float] = {}
    for each in found:
        best[each.fact.kind] = max(best.get(each.fact.kind, 0.0), each.strength.weight)
    return sorted(found, key=lambda e: (-best[e.fact.kind], e.fact.kind, -e.strength.weight, e.fact.seq))


def _looked_up(eye: Eye, facts: Sequence[Fact], find: Find) -> Flow[list[Remembered]]:
    strong = yield from strengths(eye, facts, find, paced=True)
    words = yield from _words(eye, find.scope.account, facts)
    return [Remembered(fact, eye.kinds.get(fact.kind), strong[fact.seq], words.get(fact.seq)) for fact in facts]


# The words ------------------------------------------------------------------------------------------------------------


def _words(eye: Eye, account: str, facts: Sequence[Fact]) -> Flow[Mapping[int, str]]:
    """What each fact was taken from, by its position, as far as no guard stops the turn that says it."""
    store, named = eye.store, {fact.evidence for fact in facts if fact.evidence is not None}
    if named and eye.guards:
        turns = [fact for fact in (yield from call(store.taken, account, sorted(named))) if fact.kind == TURN]
        denied = denials(turns, eye.guards)
        named -= {turn.evidence for turn in turns if turn.seq in denied}
    witnesses = (yield from call(store.witnesses, account, ids=sorted(named))) if named else ()
    said: dict[str, str] = {}
    for witness in witnesses:
        heard = yield from _verb(store, account, witness.seq)
        if isinstance(heard, Observed):
            said[heard.id] = heard.evidence.content
    found: dict[int, str] = {}
    for fact in facts:
        content = said.get(fact.evidence or "")
        if content is not None:
            held = (yield from _verb(store, account, fact.seq)) if len(content) > WHOLE else None
            span = held.claim.span if isinstance(held, Asserted) else None
            found[fact.seq] = quoted(content, span)
    return found


def _verb(store: Store, account: str, seq: int) -> Flow[Verb | None]:
    entries = yield from call(store.scan, account, seq - 1, 1)
    return entries[0].verb if entries else None


def quoted(content: str, span: tuple[int, int] | None) -> str:
    """The sentences of what was said that a span touches; all of it where it is short or nothing is known."""
    if len(content) <= WHOLE or span is None:
        return content
    touched = [text for start, text in _placed(content) if start < span[1] and span[0] < start + len(text)]
    return " ".join(touched) or content


def _placed(content: str) -> Iterator[tuple[int, str]]:
    """Each sentence of a text and where it begins."""
    end = 0
    for text in sentences(content):
        start = content.index(text, end)
        end = start + len(text)
        yield start, text
