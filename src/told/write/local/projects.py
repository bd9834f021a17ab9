"""What a project is made of: "our backend runs on Kubernetes", "the project needs a login page"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from told.write.local.render import article
from told.write.local.said import Said
from told.write.local.value import is_thing, items, trimmed, until

_PARTS = (
    r"project|app|application|backend|back-end|frontend|front-end|codebase|code base|service|services|team|company|startup|stack|tech stack|website|site|product|api|"
    r"pipeline|repo|repository|system|infrastructure|infra|database|server|servers|monorepo|platform|microservices|ci|ci pipeline|data pipeline|web app|mobile app"
)
_USES = (
    r"(?:uses|use|is\s+using|are\s+using|runs?\s+on|is\s+running\s+on|is\s+(?:built|written|implemented|coded|made|developed|based)\s+(?:with|in|on|using)|is\s+hosted\s+on|are\s+hosted\s+on|"
    r"is\s+deployed\s+(?:on|to)|relies\s+on|depends\s+on|is\s+all\s+in|is)"
)
_NEEDS = r"(?:needs?|requires?|must\s+(?:have|support|be)|has\s+to\s+(?:have|support|be))"


@cache
def _frame() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?P<own>my|our)|(?P<the>the|this))\s+(?P<adjective>(?:[\w-]+\s+){{0,2}}?)(?P<part>{_PARTS})\s+(?:(?:currently|now|mostly|mainly|also|already|still)\s+)*(?:(?P<uses>{_USES})|(?P<needs>{_NEEDS}))\s+(?P<value>\S.*)",
        re.IGNORECASE,
    )


def project(text: str, start: int, end: int, speaker: str) -> Iterator[Said]:
    """What a clause says of the speaker's project, nothing if it speaks of none."""
    found = _frame().match(text, start, end)
    if found is None or (found["the"] and found["part"].lower() not in ("project", "app", "codebase", "stack", "backend", "frontend")):
        return
    part = f"{found['adjective']}{found['part']}".lower()
    if (found["uses"] or "").lower() == "is" and not found["part"].lower().endswith(("stack", "database", "infra", "backend", "frontend")):
        return
    value = trimmed(text, found.start("value"), until(text, found.start("value"), end))
    if (found["uses"] or "").lower() == "is" and not value.text[:1].isupper():
        return
    listed = list(items(text, value.start, value.end))
    if not listed or not is_thing(value.text, 10) or value.text.lower().startswith(("down", "slow", "broken")):
        return
    predicate, verb = ("project_needs", "needs") if found["needs"] else ("project_uses", "uses")
    for item in listed if predicate == "project_uses" else [value]:
        shown = article(item.text) if found["needs"] and text[item.start - 2 : item.start] in ("a ", "n ") else item.text
        yield Said(speaker, predicate, item.text, f"{speaker}'s {part} {verb} {shown}", start, item.end)
