"""What is said by naming the thing itself: "my name is Bob", "my wife's birthday is 3 March", "Favourite food: sushi"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.write.local import dates, people, words
from told.write.local.render import article, sentence, theirs, when
from told.write.local.said import Said
from told.write.local.speaker import NAME, USER, Who, relation_words, titled
from told.write.local.value import CHECKS, Value, is_job, is_name, is_place, is_thing, items, trimmed, until

# noun: predicate, what the value must be, how it is said ("" = "'s <noun> is …").
_ROWS: Final = """
name|full name|first name|real name|actual name|given name: name name
last name|surname|family name|middle name: has name
nickname|nick name|preferred name: nickname name
age: age number be {} years old
birthday|bday|date of birth|dob|birth date|birthdate: birthday date
email|e-mail|email address|e-mail address|mail address|mail: email email
phone|phone number|cell|cell number|mobile|mobile number|telephone|telephone number|number: phone phone
timezone|time zone|tz: timezone long
pronouns|pronoun: pronouns pronouns
job|occupation|profession|day job|job title|title|position|current role|role|current job: works_as job work as {a}
employer|workplace|current employer: works_at org work at {}
company: works_at proper work at {}
team: team long
hometown|home town|birthplace|place of birth: comes_from place
home|city|location|current city|home base|current location|residence: lives_in place live in {}
native language|mother tongue|first language|native tongue: native_language long
hobby|hobbies|interests|passions|passion|main hobby|biggest passion|pastime|pastimes|main hobbies|biggest hobby|biggest passions: likes things like {}
goal|dream|ambition|aim|target|resolution|new year's resolution|main goal|big goal|goal this year|goal for this year|dream job|long-term goal|life goal|biggest goal|current goal: goal vp
diet: diet long
height: height long
weight: weight long
budget|monthly budget|max budget: budget long
major|degree|field of study|college major: studies long study {}
school|university|college|alma mater: studies_at org study at {}
car|ride: drives model drive {a}
editor|ide|os|operating system|text editor|main language|language of choice|primary language|main editor|browser|stack|tech stack|main tool|main programming language|shell|terminal|distro|framework: uses things use {}
laptop|computer|phone model|camera|desktop|work laptop|guitar|bike: owns model have {a}
blood type: has long
pet peeve|biggest pet peeve: dislikes long dislike {}
weakness|guilty pleasure: likes long like {}
skills|expertise|specialty|speciality|specialization|area of expertise: skilled_in long specialize in {}
doctor|therapist|dentist: has name
star sign|zodiac sign: is long
nationality: is long be {}
religion: believes long
deadline|due date|submission deadline|project deadline: deadline date
project|current project|side project|pet project|main project: works_on long be working on {a}
"""


@dataclass(frozen=True, slots=True)
class _Attribute:
    predicate: str
    sort: str
    phrase: str


@cache
def _attributes() -> dict[str, _Attribute]:
    table: dict[str, _Attribute] = {}
    for row in _ROWS.strip().splitlines():
        nouns, _, said = row.partition(": ")
        predicate, sort, *phrase = said.split(" ", 2)
        table |= dict.fromkeys(nouns.split("|"), _Attribute(predicate, sort, phrase[0] if phrase else ""))
    return table


_OWNER: Final = (
    r"(?:(?P<my>my|our)|(?P<user>(?:the\s+)?user's)|(?P<kin>(?:my|our)\s+(?:[\w-]+\s+)?(?:%s))'s|(?P<named>%s)'s|(?P<last>his|her)|"
    r"(?P<the>the))\s+(?:(?:own|current|new|only|biggest|main|personal|work|best|actual|next|big)\s+)*?"
)
_IS: Final = (
    r"(?:(?:\s+(?:is|are|would\s+be|has\s+always\s+been|has\s+to\s+be|include|includes|(?:got|has\s+been|was)\s+(?:moved|pushed|changed)(?:\s+back)?\s+to)|'s)\b(?P<no>\s+not\b|n't\b)?|\s*[:=])"
    r"\s*(?:(?:actually|now|still|currently|just|definitely|probably|always|either|by\s+far|spelled|officially|on|at|in|to|due|coming\s+up(?:\s+on)?)\s+)*"
)
_FAVOURITE: Final = r"(?:all[- ]time\s+|absolute\s+|current\s+)?(?:favou?rite|fav|fave|favou?rit|favorate|go-to)\s+(?P<topic>[\w-]+(?:\s+(?!is\b|are\b|was\b)[\w-]+){0,2}?)"


@cache
def _nouns() -> str:
    return "|".join(sorted((re.escape(noun) for noun in _attributes()), key=lambda noun: (-len(noun), noun)))


@cache
def _frame() -> re.Pattern[str]:
    owner = _OWNER % (relation_words(), NAME)
    return re.compile(rf"{owner}(?:{_FAVOURITE}|(?P<noun>{_nouns()})(?:(?<=deadline)\s+for\s+(?:the|my|our)\s+[\w ]{{1,30}}?)?){_IS}", re.IGNORECASE)


@cache
def _listed() -> re.Pattern[str]:
    return re.compile(rf"(?:{_FAVOURITE}|(?P<noun>{_nouns()}))\s*[:=]\s*", re.IGNORECASE)


@cache
def _turned() -> re.Pattern[str]:
    """The value first: sushi is my favourite food."""
    return re.compile(rf"(?P<value>\S.{{0,60}}?)\s+(?:is|are|was|has\s+always\s+been)\s+(?:still\s+|definitely\s+|probably\s+)?(?:my|our)\s+{_FAVOURITE}$",
                      re.IGNORECASE)  # fmt: skip


def attribute(text: str, start: int, end: int, speaker: str, last: Who | None, clock: dates.Clock) -> list[Said]:
    """What a clause says of an attribute it names, nothing if it names none."""
    if found := _frame().match(text, start, end):
        owner = _owner(found, speaker, last)
        return [] if owner is None else list(_values(text, found, end, owner, start, clock))
    if found := _listed().match(text, start, end):
        return list(_values(text, found, end, speaker, start, clock))
    if found := _turned().match(text, start, end):
        value = trimmed(text, *found.span("value"))
        topic = found["topic"].lower()
        if is_thing(value.text) and topic not in _VAGUE:
            return [_favourite(speaker, topic, value, start, found.end())]
    return []


def _owner(found: re.Match[str], speaker: str, last: Who | None) -> str | None:
    if found["my"]:
        return speaker
    if found["user"]:
        return USER
    if found["kin"]:
        return f"{speaker}'s {found['kin'].split(None, 1)[1].lower()}"
    if found["named"]:
        return titled(found["named"]) if is_name(found["named"], known=True) else None
    if found["the"]:
        return speaker if (found["noun"] or "").endswith(("deadline", "due date", "project")) else None
    return last.name if last is not None else None


_VAGUE: Final = frozenset("thing things part one way of person is".split())


def _favourite(owner: str, topic: str, value: Value, start: int, end: int) -> Said:
    slug = re.sub(r"[^a-z0-9]+", "_", topic.removesuffix("s") if topic.endswith("s") and not topic.endswith("ss") else topic)
    return Said(owner, f"favourite_{slug}", value.text, f"{owner}'s favourite {topic} is {theirs(value.text)}", start, end)


def _values(text: str, found: re.Match[str], end: int, owner: str, start: int, clock: dates.Clock) -> Iterator[Said]:
    at = found.end()
    if found["topic"]:
        topic = found["topic"].lower()
        value = _single(text, at, end, "thing")
        if value and topic not in _VAGUE and not found.groupdict().get("no"):
            yield _favourite(owner, topic, value, start, value.end)
        return
    noun = found["noun"].lower()
    if noun == "name" and found.groupdict().get("kin"):
        value = _single(text, at, end, "name")
        if value:
            yield people.related(owner.rpartition("'s ")[0], owner.split()[-1], titled(value.text), start, value.end)
        return
    row = _attributes()[noun]
    denied = bool(found.groupdict().get("no"))
    values = list(_several(text, at, end)) if row.sort == "things" else [_single(text, at, end, row.sort)]
    for value in values:
        if value is not None and not (denied and row.predicate == "goal"):
            yield _said(owner, noun, row, value, start, denied, clock)


def _said(owner: str, noun: str, row: _Attribute, value: Value, start: int, denied: bool, clock: dates.Clock) -> Said:
    shown = titled(value.text) if row.sort == "name" else value.text
    phrase = row.phrase.replace("{a}", article(shown)).replace("{}", theirs(shown))
    if not phrase:
        text = f"{owner}'s {noun} {'are' if noun.endswith('s') else 'is'} {'not ' if denied else ''}{'to ' if row.sort == 'vp' and not shown.split()[0].endswith('ing') else ''}{theirs(shown)}"
    else:
        text = sentence(owner, phrase, "negated" if denied else "asserted")
    said = Said(owner, row.predicate, shown, text, start, value.end, "negated" if denied else "asserted")
    time = dates.named(value.text, 0, len(value.text), clock, ahead=True) if row.predicate == "deadline" else None
    return said if time is None else replace(said, text=f"{owner}'s deadline is {time.interval}", valid=time.interval)


def _several(text: str, at: int, end: int) -> Iterator[Value]:
    for item in items(text, at, until(text, at, end)):
        if is_thing(item.text):
            yield item


_PATTERNS: Final = {
    "pronouns": r"(?P<value>\w+(?:\s?/\s?\w+){1,2})",
    "number": r"(?P<value>\d{1,3})\b",
    "email": r"(?P<value>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
    "phone": r"(?P<value>\+?\(?\d[\d\s().-]{5,18}\d)",
}


def _single(text: str, at: int, end: int, sort: str) -> Value | None:
    """The one value that stands here, if it is of the right sort."""
    if pattern := _PATTERNS.get(sort):
        found = re.compile(rf"\s*{pattern}").match(text, at, end)
        return Value(found["value"], *found.span("value")) if found else None
    if sort == "date":
        return dates.day_at(text, at, end)
    stop = until(text, at, end)
    stop = _first_comma(text, at, stop, keep=sort == "place")
    value = trimmed(text, at, stop)
    if sort == "name":
        value = _name(text, value)
        return value if is_name(value.text) else None
    if sort == "proper":
        return value if value.text[:1].isupper() and len(value.text.split()) <= 4 else None
    if sort == "model":
        return value if value.text[:1].isupper() or re.match(r"an?\s", text[at:stop], re.IGNORECASE) and is_thing(value.text, 4) else None
    if sort == "vp":
        return value if len(value.text.split()) >= 2 and CHECKS["vp"](value.text) else None
    check = {"job": is_job, "place": is_place, "org": CHECKS["org"], "long": CHECKS["long"]}.get(sort, is_thing)
    return value if value.text and check(value.text) else None


def _name(text: str, value: Value) -> Value:
    """A name ends before what is no part of one."""
    cut = re.search(r"\s+(?:and|from|but|i|with|by|here|or|in|at|is|so|aka|the)\b", value.text, re.IGNORECASE)
    return value if cut is None else Value(value.text[: cut.start()], value.start, value.start + cut.start())


def _first_comma(text: str, at: int, end: int, *, keep: bool) -> int:
    comma = text.find(",", at, end)
    if comma < 0 or (keep and re.match(r",\s*[A-Z][\w.]+(?:\s[A-Z]\w+)?\s*$", text[comma:end])):
        return end
    return comma


# ----------------------------------------------------------------------------------------------------- appointments, plans


@cache
def _appointment() -> re.Pattern[str]:
    nouns = "|".join(sorted((re.escape(noun) for noun in words.APPOINTMENTS - {"deadline", "due date", "call", "move", "test", "game", "show", "bus", "train"}), key=lambda noun: (-len(noun), noun)))
    return re.compile(
        rf"(?P<own>my|our|the)\s+(?P<noun>(?:[\w'-]+\s+){{0,3}}?(?:{nouns})(?:\s+(?:with|to|at|for|in)\s+(?:[\w']+\s?){{1,3}}?)?)(?:\s+(?:is|are|starts|begins|takes place|leaves|will be|has been|was|got|is\s+now)|'s)\s+"
        r"(?:(?:on|at|in|for|set|scheduled|booked|planned|moved|coming|up|now|rescheduled|to|by|due)\s+)*",
        re.IGNORECASE,
    )


def appointment(text: str, start: int, end: int, speaker: str, clock: dates.Clock) -> Said | None:
    """What "my flight is on 3 March" says: something with its day."""
    found = _appointment().match(text, start, end)
    if found is None or not dates.day_at(text, found.end(), end) and not dates.named(text, found.end(), min(end, found.end() + 12), clock):
        return None
    time = dates.named(text, max(start, found.end() - 4), end, clock, ahead=True)
    if time is None:
        return None
    noun = found["noun"].strip()
    text_of = f"{speaker} has {article(theirs(noun))}{when(time.interval)}"
    return Said(speaker, "plans", noun, text_of, start, time.end, modality="planned", valid=time.interval)
