"""Values as people say them: where one ends, what it may be, and the items of a list, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from told.write.local import words

MOST_ITEMS = 8


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the stretch of the text it stands in."""

    text: str
    start: int
    end: int


_TIME = (
    r"the day (?:after|before)|for\s+(?:the\s+(?:past|last|next)\s+|about\s+|almost\s+|over\s+|around\s+|nearly\s+|more than\s+|at least\s+|like\s+)*"
    r"(?:(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twenty|several|many|some|a few|few|a couple(?: of)?|the)\s+(?:\w+\s+)?"
    r"(?:years?|months?|weeks?|days?|hours?|minutes?|decades?|while|time)\b|years|ages|decades|months|weeks|life|ever|now|good\b|long\b|work\b|fun\b|me\b|my\b)"
    r"|(?:since|until|till|starting|effective|as of|from)\s+(?:the\s+)?(?:about\s+|almost\s+|over\s+|around\s+|nearly\s+|more than\s+|"
    r"at least\s+|last\s+|next\s+|this\s+|past\s+|early\s+|late\s+|mid-?\s*)*(?:\d{1,4}\b|a\b|an\b|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"twenty|several|many|some|few|years|ages|decades|monday|tuesday|wednesday|thursday|friday|saturday|sunday|week|month|year|summer|"
    r"winter|spring|fall|autumn|january|february|march|april|may|june|july|august|september|october|november|december|birth|childhood|college|"
    r"then|forever|now|today|yesterday|tomorrow|ever|high school|university|my\b)"
    r"|(?:last|next|this|this past|this coming)\s+(?:week|month|year|weekend|night|summer|winter|spring|fall|autumn|monday|tuesday|wednesday|thursday|"
    r"friday|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december|morning|evening|afternoon|semester|quarter)"
    r"|yesterday|today|tonight|tomorrow|(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|a few|a couple of|several|couple of|\d+)\s+"
    r"(?:days?|weeks?|months?|years?|hours?|yrs?)\s+(?:ago|back|now)|\d+\s+(?:years?|months?|weeks?|days?)\s+(?:now|already)"
    r"|(?:in|on|around|during|by|at the (?:end|start|beginning) of|back in)\s+(?:the\s+)?(?:early\s+|late\s+|mid-?\s*)?"
    r"(?:(?:19|20)\d\d\b|january|february|march|april|may|june|july|august|september|october|november|"
    r"december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|next\b|last\b|this\s+(?:summer|winter|year|month|week)|(?:spring|summer|autumn|fall|winter)\b"
    r"|(?:a|two|three|four|five|six|\d+)\s+(?:days|weeks|months|years)\b)"
    r"|\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"|at\s+\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m)?\b|when\s+i\s+was"
)
_END = (
    r"[.;:!?\n()\[\]{}|\u2022]|\s[-\u2013\u2014]+\s|\u2014|[\U0001f000-\U0001faff\u2600-\u27bf]|"
    r"\b(?:because|cuz|cos|bc|but|although|though|while|when|whenever|which|who|whom|whose|one day|some ?day|fyi|twice|three times|itself|if|unless|until|after|before|except|however|since|"
    r"whereas|than|then|even|despite|where|once|instead|lol|haha|tbh|imo|imho|btw|by the way|thanks|thank you|anyway|please|"
    r"too|as well(?!\s+as)|either|though|anymore|any more|any longer|again|now|nowadays|currently|these days|lately|already|right now|at the moment|at present|"
    r"a lot(?! of)|so much|very much|the most|a bit(?! of)|a little(?= *$)|somewhat|sometimes|usually|always|often|mostly|mainly|actually|really|obviously|of course|"
    r"for sure|as you know|you know|though|all the time|on a daily basis|and (?:i|i'm|we|he|she|it|they|my|am|that|this|you|so|now|also|then|have|has|would|"
    r"was|were|want|need|trying|looking|could|can|do|don't|just|it's|wondering|thinking|there|what|how)|so (?:i|we|that|it|my|much|far|the|if|please|he|she|they|what|can)|"
    r"to (?:be|help|get|make|keep|do|the point|say|avoid|build|create|handle|manage|read|write|run|store|track|pay|support|improve|"
    r"generate|process|parse|train|try|test|send|serve|deploy|see|find|show|fix)|as (?:i|a|an|my|it|he|she|they|we|the|part|soon|long|of|opposed)|"
    r"with (?:my|our|his|her|their|a friend|friends|the)|for (?:my|our|his|her|their|this|that|everything|most|some|all|now|work|years|the)|"
    r"that|together|in case|in my|on my|at my|in our|of mine|on weekends|on the weekends?|"
    r"every (?:day|week|morning|night|evening|year|month|weekend|single|other|\w+day)|each (?:day|week|morning|year)|"
    r"(?:once|twice|three times|\d+ times) (?:a|per) \w+|what|how|can you|could you|do you|any (?:recommendations|suggestions|ideas|tips|advice)|"
    r"which|especially|particularly|due to|thanks to|rather than|instead of|over the|without|like (?:a|my|i|you|that|it|how)|not)\b|"
    rf"\b(?:{_TIME})"
)


@cache
def _end() -> re.Pattern[str]:
    return re.compile(_END, re.IGNORECASE)


@cache
def _harmless_stop() -> re.Pattern[str]:
    """A stop inside a name: Node.js, St. Louis, 3.12, U.S."""
    return re.compile(r"(?<=\b[A-Z])\.(?=\s?[A-Z]\b)|\.(?=\w)|(?<=\bSt)\.(?=\s[A-Z])|(?<=\bDr)\.|(?<=\bMr)\.|(?<=\bMrs)\.|(?<=\bMs)\.|:(?=\d\d)")


def until(text: str, start: int, end: int) -> int:
    """Where the value that begins at a place ends."""
    for found in _end().finditer(text, start, end):
        if found.start() == start and not found[0].strip():
            continue
        if found[0] in ".:" and _harmless_stop().match(text, found.start(), end):
            continue
        return found.start()
    return end


_FILLER = r"(?:and|or|the|a|an|with|for|in|at|on|of|to|from|as|by|so|is|are|my|very|just|also|both|all|like|that|about|into|out|yet|is|was|&)"


@cache
def _edges() -> tuple[re.Pattern[str], re.Pattern[str]]:
    behind = re.compile(rf"(?:[\s,\"'*_/&~-]+|(?<=\s){_FILLER})+$", re.IGNORECASE)
    before = re.compile(
        r"(?:[\s,\"'*_]+|(?:a (?:little )?bit of|a little|fluent|basic|native|conversational|broken|some basic|a|an|the(?!\s+(?-i:[A-Z]))|some|any|both|all kinds of|all sorts of|all|lots of|a lot of|really|very|quite|just|only|mostly|mainly|especially|also|either|"
        r"things like|stuff like|playing around with)\b\s+)+",
        re.IGNORECASE,
    )
    return before, behind


def trimmed(text: str, start: int, end: int, *, article: bool = True) -> Value:
    """The stretch without what does not belong to the value at either side; articles go too unless they are wanted."""
    if article and (before := _edges()[0].match(text, start, end)):
        start = before.end()
    while start < end and text[start] in " \n,\"'*_":
        start += 1
    if behind := _edges()[1].search(text[start:end]):
        end = start + behind.start()
    return Value(text[start:end], start, end)


# --------------------------------------------------------------------------------------------------------------- items


@cache
def _comma() -> re.Pattern[str]:
    return re.compile(rf"(?P<whole>\b(?:{words.COMPOUNDS})\b)|\s*,\s*(?:and\s+|or\s+|as well as\s+|but also\s+)?|\s+(?:and|&|or|plus|as well as|nor)\s+|\s*/\s+|\s+/\s*",
                      re.IGNORECASE)  # fmt: skip


@cache
def _no_item() -> re.Pattern[str]:
    """How something begins that is no item of a list."""
    return re.compile(
        r"\s*(?:i|i'm|im|i've|we|my|our|he|she|it|it's|they|you|your|this|that|these|those|there|here|to|so|but|what|how|can|could|would|do|does|"
        r"please|any|not|no|if|for|with|then|also|now|the same|etc|everything|anything|nothing|something|stuff|things|things like that|"
        r"more|others?|one|them|him|her|me|us|just|because|since|is|are|was|in|at|on|from|as|of|by|about|having|being|some|most|lol|right|"
        r"yes|yeah|ok|well|both|living|working|currently|originally|born|based|moved|including|such|among|let|need|want|thanks?|help|"
        r"turns|works|lives|hates|likes|loves|wants|goes|still|never|always|hope|looking|trying|going|got|get|think|feel|did|had|has|have)\b(?!-)",
        re.IGNORECASE,
    )


def items(text: str, start: int, end: int) -> Iterator[Value]:
    """The items of a list such as "hiking, chess and sushi"; it stops at the first that is none."""
    at, number = start, 0
    for comma in (*_comma().finditer(text, start, end), None):
        if comma is not None and comma["whole"]:
            continue
        stop = end if comma is None else comma.start()
        if number and _no_item().match(text, at, stop):
            return
        item = trimmed(text, at, stop)
        if item.text:
            yield item
            number += 1
        if comma is None or number >= MOST_ITEMS:
            return
        at = comma.end()


# ---------------------------------------------------------------------------------------------------------- what it may be

_EMPTY = frozenset(
    """it this that these those them him her me you us everything anything nothing something someone anyone everyone one
    ones all most some none both either neither here there what how why who which more less much many stuff things thing
    way lot bit idea point same other others another yours mine myself yourself itself too well so yes no not okay ok good
    great nice bad better best fun cool person people guy know think say see sure fine kind sort part fact case example
    answer question questions answers help idea ideas problem issue error bug code text file following above below
    first second last next new old time times day today now then when where if else is are was be to do did done
    i my your his their our its and or but a an the of in on at for with by from as really very just also having being
    together outside alone along huge big strong likewise response suggestion suggestions advice results result solution look looks sound sounds feel""".split()
)


@cache
def _weak_start() -> re.Pattern[str]:
    return re.compile(
        r"(?:it|this|that|these|those|them|him|her|me|you|your|us|how|what|where|when|why|who|to|if|being|having|i|he|she|they|there|"
        r"nothing|anything|everything|something|one|both|neither|none|not|no|any|such|more|less|too|so|same|each|every|few|little|my|our|his|their|its|"
        r"another|other|seeing you|talking to you|working with you|hearing|the idea|the way|the fact|the feeling|knowing|myself)\b(?!-)",
        re.IGNORECASE,
    )


@cache
def _vague() -> re.Pattern[str]:
    return re.compile(r"\b(?:something|anything|everything|someone|these|those|this|that|it|you|your|them|him|each other)\b", re.IGNORECASE)


def is_thing(value: str, most: int = 6) -> bool:
    """Whether a value says something by itself."""
    low = value.lower()
    if not value or len(value) > 80 or _vague().search(value) or low in _EMPTY or _weak_start().match(value) or not re.search(r"\w\w|[A-Z]|\d", value):
        return False
    return len(value.split()) <= most


@cache
def _name() -> re.Pattern[str]:
    return re.compile(r"[^\W\d_](?:[^\W\d_]|['.\u2019-](?=[^\W\d_])){0,24}\.?(?:\s+(?:(?:van|von|de|da|del|di|la|le|der|den|bin|al|el|dos|Mc)\s+)*"
                      r"[^\W\d_](?:[^\W\d_]|['.\u2019-](?=[^\W\d_])){0,24}\.?){0,3}")  # fmt: skip


_NOT_NAMES = frozenset(
    """sorry not so very really just also here there from the a an my your in on at with and but or not going glad happy
    sad tired sick hungry bored fine good great okay ok well back home done ready sure busy late early new old curious
    wondering looking trying having using working thinking planning doing getting making writing building learning
    interested excited worried afraid confused stuck lost lazy single married vegan vegetarian allergic pregnant retired
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december english american christian muslim jewish catholic hindu buddhist atheist gay straight bi
    python java javascript linux windows google microsoft apple amazon i me you he she it we they this that these those
    what who how why when where which yes no hi hello hey thanks thank please ok lol wow oh well maybe perhaps dude bro
    sir madam mr mrs ms dr only all both none one two three it's fan into about out up down off over now then than
    currently still already never always usually sometimes often actually basically honestly finally almost anyone
    everyone someone nobody everything nothing something guys team folks everybody weekend today tomorrow yesterday user
    assistant system god jesus internet covid christmas easter mom mum dad mother father brother sister wife husband son
    daughter named called known getting""".split()
)


def is_name(value: str, *, known: bool = False) -> bool:
    """Whether a value can be somebody's name; `known` asks for a capital or a name everybody knows."""
    if not _name().fullmatch(value):
        return False
    parts = value.split()
    low = [part.lower().strip(".") for part in parts]
    if len(parts) > 4 or low[0] in _NOT_NAMES or low[0] in words.NATIONS or low[0] in words.DIETS:
        return False
    if any(part in _NOT_NAMES for part in low[1:]):
        return False
    if not known:
        return True
    if low[0] in words.first_names() and (len(parts) == 1 or parts[1][0].isupper() or value.islower()):
        return len(parts) <= 3
    return all(part[0].isupper() or part in ("van", "von", "de", "da", "del", "di", "la", "der") for part in parts) and len(value) > 1


def is_place(value: str) -> bool:
    """Whether a value can be the name of a place."""
    low = value.lower()
    parts = low.split()
    if not value or len(parts) > 6 or low in words.PLACE_STOPS or parts[0] in words.PLACE_STOPS or parts[0] in _EMPTY:
        return False
    if parts[0] in _MONTHS or re.search(r"\d{4,}", value) or not re.match(r"[^\W\d_]", value):
        return False
    if value[0].isupper():
        return not (len(parts) > 3 and sum(part[0].isupper() for part in value.split()) < 2)
    return len(parts) <= 3 and not any(part in _EMPTY for part in parts) and parts[-1] not in _DWELLINGS


_MONTHS = frozenset("january february march april may june july august september october november december spring summer winter autumn".split())
_DWELLINGS = frozenset(
    """apartment flat house home condo studio dorm place city town village area neighborhood neighbourhood suburbs suburb
    countryside country street building floor basement van tent hotel hostel mansion world complex region state county cabin
    bedroom room woods mountains forest desert coast beach north south east west middle center centre downtown family parents
    roommates roommate environment bubble box farm""".split()
)


def is_organization(value: str) -> bool:
    """Whether a value can be the name of an employer, a school or the like."""
    low = value.lower()
    parts = low.split()
    if not value or len(parts) > 6 or low in _EMPTY or low in words.PLACE_STOPS or parts[0] in _EMPTY - {"the", "next", "first", "new"}:
        return False
    if low in _WORKPLACES or parts[0] in ("night", "nights", "least", "times", "first", "once", "home", "noon", "all"):
        return False
    return value[0].isupper() or value[0].isdigit() or any(c.isupper() for c in value) or len(parts) <= 3


_WORKPLACES = frozenset("home work school night nights day days weekends least times once noon lunch night-time remote".split())


def is_job(value: str) -> bool:
    """Whether a value names something one is for a living."""
    low = re.sub(r"[^\w' &/-]", "", value.lower())
    base = re.split(r"\s+(?:of|at|for|in|on|and|with|to)\s+", low)[0]
    parts = base.replace("/", " ").split()
    if not parts or len(low.split()) > 8:
        return False
    last = parts[-1].removesuffix("s") if parts[-1] not in words.OCCUPATIONS else parts[-1]
    if len(parts) == 1 and last in words.NOT_JOBS:
        return False
    return last in words.OCCUPATIONS or " ".join(parts[-2:]) in words.OCCUPATIONS or _craft().fullmatch(last) is not None


@cache
def _craft() -> re.Pattern[str]:
    return re.compile(r"\w{3,}(?:ologist|ographer|ician|wright|smith|keeper|monger|iatrist|therapist|scientist)")


def is_doing(value: str) -> bool:
    """Whether a value can be something to do."""
    low = value.lower()
    return 0 < len(low.split()) <= 12 and low.split()[0] not in _EMPTY - {"do", "know", "see", "feel", "look"} and not _vague().search(low)


CHECKS: dict[str, Callable[[str], bool]] = {
    "thing": is_thing,
    "long": lambda value: is_thing(value, 10),
    "name": is_name,
    "known": lambda value: is_name(value, known=True),
    "place": is_place,
    "org": is_organization,
    "job": is_job,
    "vp": is_doing,
}
