"""The commonest things people say of themselves in German, French, Spanish, Italian and Portuguese.

Values stay as they were said; the sentence that says them is English, like every other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.core.lazy import regex
from told.write.local.attributes import favourite
from told.write.local.people import related
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
    "learning": "be learning {}", "nickname": "go by {}", "relationship_status": "be {}", "studies": "study {}",
    "studies_at": "study at {}", "has_condition": "have {}", "avoids": "avoid {}", "has_sibling": "have {}",
    "has_partner": "be with {}", "plays": "play {}", "uses": "use {}", "drives": "drive {}", "bought": "=bought {}",
    "born_in": "=was born in {}", "is": "be {}", "prefers": "prefer {}", "birthday": "'s birthday is {}",
    "reply_style": "want the assistant to {}", "born_on": "=was born on {}", "manager": "'s manager is {}",
    "married_to": "be married to {}", "takes": "take {}", "budget": "'s budget is {}",
    "habit": "have the habit of {}", "goal": "want {}", "plans": "plan {}",
}  # fmt: skip
_NAMED: Final = {
    "has_sibling": "have a sibling named {}", "has_child": "have a child named {}", "has_pet": "have a pet named {}",
}  # fmt: skip
_AM: Final = regex(r"\b(?:soy|sono|sou) ", re.IGNORECASE)
"""What may stand before a name, but before much else too."""
_CONFIDENCE = 0.85
_LONGEST = 5
_FARTHEST: Final = 800
"""How much of a sentence is read; a longer one is no sentence."""
_MOST_ENGLISH = 1
"""How many English words a sentence in another language may hold."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A way of saying something: its predicate, whether it denies it, and the pattern."""

    predicate: str
    denied: bool
    pattern: re.Pattern[str]


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """The languages each telling word belongs to."""
    table: dict[str, tuple[str, ...]] = {}
    for language, rows in sections("tongues.txt").items():
        for word in rows[0].removeprefix("telling: ").split():
            table[word] = (*table.get(word, ()), language)
    return table


@cache
def _kin(language: str) -> Mapping[str, str]:
    """What people of the speaker's are called in a language, and in English."""
    rows = (row.removeprefix("kin: ") for row in sections("tongues.txt")[language] if row.startswith("kin: "))
    pairs = (pair.partition("=") for row in rows for pair in row.split())
    return {word: relation for word, _, relation in pairs}


@cache
def _forms(language: str) -> tuple[_Form, ...]:
    """The ways of saying things in a language."""
    rows = (row.partition(": ") for row in sections("tongues.txt")[language])
    return tuple(
        _Form(head.rpartition(" ")[2], head.startswith("NOT "), _compiled(form, language))
        for head, _, forms in rows if head not in ("telling", "kin")
        for form in forms.split("; ")
    )  # fmt: skip


def _compiled(form: str, language: str) -> re.Pattern[str]:
    name = r"(?P<name>[^\W\d_][\w'-]*(?: (?-i:[A-ZÀ-Þ])[\w'-]*)?)"
    kin = rf"<tongues.mine> ?(?:[\w-]+ )?(?P<kin>{'|'.join(_kin(language))})"
    kin = rf"{kin}(?: (?P<called>(?-i:[A-ZÀ-Þ])[\w-]+))?<tongues.same>"
    filled = form.replace("{name}", name).replace("{n}", r"(?P<n>\d{1,3})").replace("{kin}", kin)
    filled = re.sub(r"\{(v|l)\}", r"(?P<\1>\\S.*?)", filled)
    end = "$" if form.endswith(("{v}", "{l}")) else r"(?!\w)"
    return re.compile(spelled(f"<tongues.open>(?:{filled})") + end, re.IGNORECASE)


def is_foreign(text: str) -> bool:
    """Whether a text is in one of the other languages, as far as its words tell."""
    return bool(_spoken(text))


def _spoken(text: str) -> list[str]:
    """The languages a text may be in, none if it is English."""
    telling = _languages()
    if not text.isascii() and (script := pattern("tongues.script").search(text)):
        return ["ja" if pattern("tongues.kana").search(text) else script.lastgroup or ""]
    spoken = [name for word in pattern("tongues.words").findall(text.lower()) for name in telling.get(word, ())]
    return spoken if spoken and len(pattern("tongues.english").findall(text)) <= _MOST_ENGLISH else []


def foreign(talk: Talk, sentence: Sentence) -> list[Said]:
    """What a sentence in another language says, nothing if it is none of those."""
    sentence = replace(sentence, end=min(sentence.end, sentence.start + _FARTHEST))
    text = talk.text[sentence.start : sentence.end].lstrip()
    spoken = dict.fromkeys(_spoken(text))
    named = [said for language in spoken for said in _named(talk, sentence, language)]
    if sentence.asks:
        return named
    found = [
        said
        for language in spoken
        for form in _forms(language)
        for match in form.pattern.finditer(text)
        for said in _said(form, _subject(talk, match, language), match, sentence.end - len(text))
    ]
    return named + [said for said in found if not any(_says_more(other, said) for other in found)]


def _says_more(one: Said, other: Said) -> bool:
    """Whether one says all that another says and more: a teacher of history is a teacher."""
    same = (one.subject, one.predicate, one.polarity) == (other.subject, other.predicate, other.polarity)
    within = one.end - len(one.object) <= other.end - len(other.object) and other.end <= one.end
    return same and within and len(one.object) > len(other.object) and other.object in one.object


@cache
def _beside(language: str) -> re.Pattern[str] | None:
    """Somebody of the speaker's with their name: mi novio Iker."""
    kin = "|".join(_kin(language))
    form = rf"(?<!\w)<tongues.mine> (?P<kin>{kin}),? (?P<name>(?-i:[A-ZÀ-Þ])[\w-]+)"
    return re.compile(spelled(form), re.IGNORECASE) if kin else None


def _named(talk: Talk, sentence: Sentence, language: str) -> Iterator[Said]:
    """Everybody of the speaker's whom a sentence names, even in passing."""
    beside = _beside(language)
    for found in beside.finditer(talk.text, sentence.start, sentence.end) if beside else ():
        if is_name(found["name"], known=True):
            relation = _kin(language)[found["kin"].lower()]
            yield related(talk.speaker, relation, found["name"], *found.span())


def _subject(talk: Talk, match: re.Match[str], language: str) -> str:
    """Whom a form speaks of: the speaker, or somebody of theirs, by name where there is one."""
    relation = match.groupdict().get("kin")
    if relation is None:
        return talk.speaker
    return match["called"] or f"{talk.speaker}'s {_kin(language)[relation.lower()]}"


def _said(form: _Form, subject: str, match: re.Match[str], offset: int) -> Iterator[Said]:
    if form.predicate == "lives_in" and pattern("tongues.today").search(match.string, match.start()):
        return
    polarity = NEGATED if form.denied else ASSERTED
    start = offset + match.end() - len(match[0].lstrip(" ,.;:!\u00a1\u3001\uff0c"))
    for value in _values(match):
        shown = titled(value.text) if match.groupdict().get("name") else value.text
        end = offset + value.end
        if form.predicate == "favourite":
            yield favourite(subject, match["topic"].lower(), replace(value, end=end), start, end)
            continue
        phrases = _NAMED if shown[:1].isupper() and "w" not in match.re.groupindex else _PHRASES
        phrase = phrases.get(form.predicate, _PHRASES[form.predicate]).format(shown)
        ended = pattern("tongues.no_longer").search(match[0]) is not None
        text = sentence_of(subject, phrase, polarity, ended=ended)
        yield Said(subject, form.predicate, shown, text, start, end, polarity, confidence=_CONFIDENCE)


def _values(match: re.Match[str]) -> list[Value]:
    group = next(name for name in ("name", "n", "w", "v", "l") if match.groupdict().get(name))
    text, (start, end) = match.string, match.span(group)
    if group in ("n", "w") or (group == "name" and is_name(match[group], known=_AM.search(match[0]) is not None)):
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
    good = (0 < len(value.text.split()) <= _LONGEST and not _is_yours(value) for value in values)
    bad = next((number for number, fits in enumerate(good) if not fits), len(values))
    return values[:bad]


def _is_yours(value: Value) -> bool:
    """Whether a value is something of the one spoken to: I like your answer."""
    return pattern("tongues.yours").match(value.text) is not None


def _bare(text: str, start: int, end: int) -> Value:
    """A value without the article before it and the marks around it."""
    while start < end and text[start] in " '\"":
        start += 1
    if found := pattern("tongues.article").match(text, start, end):
        start = found.end()
    while end > start and text[end - 1] in " '\"!.,":
        end -= 1
    return Value(text[start:end], start, end)
