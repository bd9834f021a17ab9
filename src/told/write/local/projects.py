"""What a project is made of: "our backend runs on Kubernetes", "the project needs a login page"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from told.write.local.render import article
from told.write.local.said import BARE, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.tables import pattern
from told.write.local.value import Value, is_thing, items, trimmed, until

_KNOWN: Final = frozenset("project app codebase stack backend frontend".split())
"""Parts that are the speaker's own even if they say "the"."""
_NAMED_BY_PRODUCT: Final = ("stack", "database", "infra", "backend", "frontend")
"""Parts that simply are what they use: our database is Postgres."""
_LONGEST = 10
_NEAR = 200
"""How far back what a name is given to may stand."""


def project(talk: Talk, clause: Clause) -> Iterator[Said]:
    """What a clause says of the speaker's project."""
    text = talk.text
    if whole := pattern("projects.all").match(text, clause.start, clause.end):
        for item in _things(text, whole.start("value"), clause.end):
            said = f"{talk.speaker}'s project uses {item.text}"
            yield Said(talk.speaker, "project_uses", item.text, said, clause.start, item.end)
        return
    found = pattern("projects.frame").match(text, clause.start, clause.end)
    if found is None or (found["own"] or "").lower() + found["part"].lower()[-5:] == "mystack":
        return  # one's own stack is what one uses
    if found["the"] and found["part"].lower() not in _KNOWN:
        return
    value = trimmed(text, found.start("value"), until(text, found.start("value"), clause.end))
    if not is_thing(value.text.partition(",")[0], _LONGEST):
        return
    if (found["uses"] or "").lower() == "is" and not _is_product(found["part"], value):
        return
    part = f"{talk.speaker}'s {(found['adjective'] + found['part']).lower()}"
    if found["needs"]:
        shown = article(value.text) if text[value.start - 2 : value.start] in ("a ", "n ") else value.text
        yield Said(talk.speaker, "project_needs", value.text, f"{part} needs {shown}", clause.start, value.end)
        return
    for item in _things(text, value.start, value.end):
        yield Said(talk.speaker, "project_uses", item.text, f"{part} uses {item.text}", clause.start, item.end)


def parts(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """What the parts of a project are made of, told one behind the other: "Backend in Go, front end is Svelte"."""
    found = [*pattern("projects.part").finditer(talk.text, start, end)]
    mine = found or pattern("projects.mine").search(talk.text, start, end)
    hosts = pattern("projects.hosted").finditer(talk.text, start, end) if mine else ()
    for one in (*found, *hosts):
        for item in _things(talk.text, *one.span("value")):
            text = f"{talk.speaker}'s project uses {item.text}"
            yield Said(talk.speaker, "project_uses", item.text, text, one.start(), item.end, confidence=BARE)


def called(talk: Talk, start: int, end: int) -> Iterator[Said]:
    """The name of what was just spoken of: "… a reminder app. It's called Drip"."""
    found = pattern("projects.called").search(talk.text, start, end)
    if found and (found["own"] or pattern("projects.mine").search(talk.text, max(0, start - _NEAR), found.start())):
        name = found["own"] or found["name"]
        text = f"{talk.speaker} works on {name}"
        yield Said(talk.speaker, "works_on", name, text, found.start(), found.end(), confidence=BARE)


def _things(text: str, start: int, end: int) -> Iterator[Value]:
    """What something is made of; what a thing is used with is one of them too."""
    stop = until(text, start, end)
    for item in items(text, start, stop):
        parts = pattern("projects.with").split(item.text, maxsplit=1)
        at = item.start
        for part in parts:
            first = text.index(part, at)
            at = first + len(part)
            if is_thing(part, _LONGEST):
                yield Value(part, first, at)


def _is_product(part: str, value: Value) -> bool:
    return part.lower().endswith(_NAMED_BY_PRODUCT) and value.text[:1].isupper()
