"""The commonest things people say of themselves in German, French, Spanish, Italian and Portuguese.

Values stay as they were said; the sentence that says them is English, like every other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from told.write.local.render import sentence as sentence_of
from told.write.local.said import ASSERTED, NEGATED, Said, Talk
from told.write.local.sentence import Sentence
from told.write.local.speaker import titled
from told.write.local.tables import pattern, sections, spelled
from told.write.local.value import Value, is_name

_PHRASES: Final = {
    "name": "'s name is {}", "lives_in": "live in {}", "works_at": "work at {}", "works_as": "work as {}",
    "likes": "like {}", "dislikes": "dislike {}", "allergic_to": "be allergic to {}", "comes_from": "come from {}",
    "age": "be {} years old", "diet": "be {}", "speaks": "speak {}", "has_pet": "have {}", "has_child": "have {}",
    "learning": "be learning {}", "nickname": "go by {}", "relationship_status": "be {}",
}  # fmt: skip
_AM: Final = re.compile(r"\b(?:soy|sono|sou) ", re.IGNORECASE)
"""What may stand before a name, but before much else too."""
_CONFIDENCE = 0.85
_LONGEST = 5
_MOST_ENGLISH = 1
"""How many English words a sentence in another language may hold."""


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """The languages each telling word belongs to."""
    table: dict[str, tuple[str, ...]] = {}
    for language, rows in sections("tongues.txt").items():
        for word in rows[0].removeprefix("telling: ").split():
            table[word] = (*table.get(word, ()), language)
    return table


@cache
def _forms(language: str) -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    """The ways of saying things in a language: the predicate, whether it is denied, and the pattern."""
    rows = (row.partition(": ") for row in sections("tongues.txt")[language][1:])
    return tuple(
        (head.removeprefix("NOT "), head.startswith("NOT "), _compiled(form))
        for head, _, forms in rows
        for form in forms.split("; ")
    )


def _compiled(form: str) -> re.Pattern[str]:
    name = r"(?P<name>[^\W\d_][\w'-]*(?: (?-i:[A-ZÀ-Þ])[\w'-]*)?)"
    filled = form.replace("{name}", name).replace("{n}", r"(?P<n>\d{1,3})")
    filled = re.sub(r"\{(v|l)\}", r"(?P<\1>\\S.*?)", filled)
    end = "$" if form.endswith(("{v}", "{l}")) else r"(?!\w)"
    return re.compile(spelled(f"<tongues.open>{filled}") + end, re.IGNORECASE)


def foreign(talk: Talk, sentence: Sentence) -> list[Said]:
    """What a sentence in another language says, nothing if it is none of those."""
    text = talk.text[sentence.start : sentence.end]
    telling = _languages()
    spoken = [name for word in pattern("tongues.words").findall(text.lower()) for name in telling.get(word, ())]
    if not spoken or sentence.asks or len(pattern("tongues.english").findall(text)) > _MOST_ENGLISH:
        return []
    return [
        said
        for language in dict.fromkeys(spoken)
        for predicate, denied, form in _forms(language)
        for match in form.finditer(text)
        for said in _said(talk, predicate, denied, match, sentence.start)
    ]


def _said(talk: Talk, predicate: str, denied: bool, match: re.Match[str], offset: int) -> Iterator[Said]:
    polarity = NEGATED if denied else ASSERTED
    start = offset + match.end() - len(match[0].lstrip(" ,.;:!\u00a1"))
    for value in _values(match):
        shown = titled(value.text) if match.groupdict().get("name") else value.text
        text = sentence_of(talk.speaker, _PHRASES[predicate].format(shown), polarity, ended=denied)
        end = offset + value.end
        yield Said(talk.speaker, predicate, shown, text, start, end, polarity, confidence=_CONFIDENCE)


def _values(match: re.Match[str]) -> list[Value]:
    group = next(name for name in ("name", "n", "v", "l") if match.groupdict().get(name))
    text, (start, end) = match.string, match.span(group)
    if group == "n" or (group == "name" and is_name(match[group], known=_AM.search(match[0]) is not None)):
        return [Value(match[group], start, end)]
    if group == "name":
        return []
    stop = next((stop.start() for stop in pattern("tongues.stop").finditer(text, start, end)
                 if stop.start() > start and not (group == "l" and stop[0] == ",")), end)  # fmt: skip
    return _listed(text, start, stop) if group == "l" else _short([_bare(text, start, stop)])


def _listed(text: str, start: int, end: int) -> list[Value]:
    commas = list(pattern("tongues.list").finditer(text, start, end))
    starts = [start, *(comma.end() for comma in commas)]
    ends = [*(comma.start() for comma in commas), end]
    return _short([_bare(text, first, last) for first, last in zip(starts, ends, strict=True)])


def _short(values: list[Value]) -> list[Value]:
    """The values up to the first that is empty or too long to be one."""
    bad = next((i for i, value in enumerate(values) if not 0 < len(value.text.split()) <= _LONGEST), len(values))
    return values[:bad]


def _bare(text: str, start: int, end: int) -> Value:
    """A value without the article before it and the marks around it."""
    while start < end and text[start] in " '\"":
        start += 1
    if found := pattern("tongues.article").match(text, start, end):
        start = found.end()
    while end > start and text[end - 1] in " '\"!.,":
        end -= 1
    return Value(text[start:end], start, end)
