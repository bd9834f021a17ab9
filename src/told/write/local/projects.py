"""What a project is made of: "our backend runs on Kubernetes", "the project needs a login page"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from told.write.local.render import add_article
from told.write.local.said import FRAGMENT_CONFIDENCE, RuleClaim, TurnContext
from told.write.local.sentence import Clause
from told.write.local.tables import get_pattern
from told.write.local.value import ValueSpan, find_value_end, is_thing, split_items, trim_value

_OWN_PARTS: Final = frozenset("project app codebase stack backend frontend".split())
"""Parts that are the speaker's own even if they say "the"."""
_NAMED_BY_PRODUCT: Final = ("stack", "database", "infra", "backend", "frontend")
"""Parts that simply are what they use: our database is Postgres."""
_MAX_THING_WORDS = 10
_NAME_LOOKBACK = 200
"""How far back what a name is given to may stand."""


def parse_project(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """What a clause says of the speaker's project."""
    text = ctx.text
    if stack_match := get_pattern("projects.all").match(text, clause.start, clause.end):
        for item in _split_things(text, stack_match.start("value"), clause.end):
            sentence = f"{ctx.speaker}'s project uses {item.text}"
            yield RuleClaim(
                ctx.speaker, "project_uses", item.text, sentence, clause.start, item.end
            )
        return
    match = get_pattern("projects.frame").match(text, clause.start, clause.end)
    if match is None or (match["own"] or "").lower() + match["part"].lower()[-5:] == "mystack":
        return  # one's own stack is what one uses
    if match["the"] and match["part"].lower() not in _OWN_PARTS:
        return
    value = trim_value(
        text, match.start("value"), find_value_end(text, match.start("value"), clause.end)
    )
    if not is_thing(value.text.partition(",")[0], _MAX_THING_WORDS):
        return
    if (match["uses"] or "").lower() == "is" and not _is_product(match["part"], value):
        return
    part = f"{ctx.speaker}'s {(match['adjective'] + match['part']).lower()}"
    if match["needs"]:
        shown = (
            add_article(value.text)
            if text[value.start - 2 : value.start] in ("a ", "n ")
            else value.text
        )
        yield RuleClaim(
            ctx.speaker,
            "project_needs",
            value.text,
            f"{part} needs {shown}",
            clause.start,
            value.end,
        )
        return
    for item in _split_things(text, value.start, value.end):
        yield RuleClaim(
            ctx.speaker,
            "project_uses",
            item.text,
            f"{part} uses {item.text}",
            clause.start,
            item.end,
        )


def parse_project_parts(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """What the parts of a project are made of, told one behind the other: "Backend in Go, front end is Svelte"."""
    part_matches = [*get_pattern("projects.part").finditer(ctx.text, start, end)]
    is_own = part_matches or get_pattern("projects.mine").search(ctx.text, start, end)
    host_matches = get_pattern("projects.hosted").finditer(ctx.text, start, end) if is_own else ()
    for match in (*part_matches, *host_matches):
        for item in _split_things(ctx.text, *match.span("value")):
            text = f"{ctx.speaker}'s project uses {item.text}"
            yield RuleClaim(
                ctx.speaker,
                "project_uses",
                item.text,
                text,
                match.start(),
                item.end,
                confidence=FRAGMENT_CONFIDENCE,
            )


def parse_project_name(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """The name of what was just spoken of: "… a reminder app. It's called Drip"."""
    match = get_pattern("projects.called").search(ctx.text, start, end)
    if match and (
        match["own"]
        or get_pattern("projects.mine").search(
            ctx.text, max(0, start - _NAME_LOOKBACK), match.start()
        )
    ):
        name = match["own"] or match["name"]
        text = f"{ctx.speaker} works on {name}"
        yield RuleClaim(
            ctx.speaker,
            "works_on",
            name,
            text,
            match.start(),
            match.end(),
            confidence=FRAGMENT_CONFIDENCE,
        )


def _split_things(text: str, start: int, end: int) -> Iterator[ValueSpan]:
    """What something is made of; what a thing is used with is one of them too."""
    stop = find_value_end(text, start, end)
    for item in split_items(text, start, stop):
        parts = get_pattern("projects.with").split(item.text, maxsplit=1)
        position = item.start
        for part in parts:
            part_start = text.index(part, position)
            position = part_start + len(part)
            if is_thing(part, _MAX_THING_WORDS):
                yield ValueSpan(part, part_start, position)


def _is_product(part: str, value: ValueSpan) -> bool:
    return part.lower().endswith(_NAMED_BY_PRODUCT) and value.text[:1].isupper()
