"""What has to be done by a day: "the application closes on Friday", "I have to hand in my thesis by May"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from told.write.local import dates
from told.write.local.render import theirs, when
from told.write.local.said import Said, Talk
from told.write.local.sentence import Clause
from told.write.local.tables import pattern
from told.write.local.value import trimmed

_LONGEST: Final = 10


def due(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What a clause says has an end or must be ready by a time."""
    found = pattern("due.frame").match(talk.text, clause.start, clause.end)
    time = dates.named(talk.text, found.end(), clause.end, talk.clock, ahead=True) if found else None
    if found is None or not (time or found["feast"]):
        return
    group = next(name for name in ("thing", "todo", "asked") if found[name])
    what = trimmed(talk.text, *found.span(group), article=group != "todo")
    end = time.end if time else found.end("feast")
    if not 0 < len(what.text.split()) <= _LONGEST or pattern("due.pointing").search(what.text):
        return
    day = when(time.interval) if time else f" {found['feast']}"
    ends = (found["ends"] or "is due").replace("'s ", "is ")
    text = f"{talk.speaker}'s {theirs(what.text)} {ends}{day}"
    if group == "todo":
        text = f"{talk.speaker} has to {theirs(what.text)}{day}"
    valid = time.interval if time else talk.default
    value = talk.text[what.start : end]
    yield Said(talk.speaker, "plans", value, text, clause.start, end, modality="planned", valid=valid)
