"""Sentences and clauses of a turn, as stretches of it, and what each is worth: a statement, a question, a joke, a what-if."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

MOST_SENTENCES = 60


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a text in which one thing is said.

    `goes_on` tells that it has no subject of its own and speaks on of the one before. `sure` is how sure the words
    before it leave it; `asked` that it is part of a question; `lead` is where those words begin.
    """

    start: int
    end: int
    goes_on: bool = False
    sure: float = 1.0
    asked: bool = False
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch of a text up to a full stop, and whether it asks."""

    start: int
    end: int
    asks: bool


# -------------------------------------------------------------------------------------------------------------- sentences


@cache
def _boundary() -> re.Pattern[str]:
    return re.compile(r"(?P<stop>[.!?\u2026]+[\"')\]]*)(?=\s|$)|\n+|(?P<wide>[\u3002\uff01\uff1f])|\s(?=\u2022 )|[.!?](?=[A-Z][a-z' ])")


@cache
def _short_form() -> re.Pattern[str]:
    return re.compile(r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|e\.g|i\.e|approx|dept|ltd|co|no|ca|z\.b|sra|u\.s|p\.m|a\.m)|\b[b-hj-z])$",
                      re.IGNORECASE)  # fmt: skip


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, the first few dozen of a long one."""
    start = count = 0
    for boundary in _boundary().finditer(text):
        mark = boundary[0]
        if mark == "." and _short_form().search(text, max(start, boundary.start() - 8), boundary.start()):
            continue
        if text[start : boundary.start()].strip():
            count += 1
            yield Sentence(start, boundary.start(), "?" in mark or "\uff1f" in mark)
        start = boundary.end()
        if count >= MOST_SENTENCES:
            return
    if text[start:].strip():
        yield Sentence(start, len(text), False)


# ------------------------------------------------------------------------------------------------------------ what to skip

_SARCASM = (
    r"\b(?:oh|ah|wow),? (?:great|joy|wonderful|fantastic|perfect|lovely|brilliant|goody|yay|sure)\b",
    r"\byeah,? (?:right|sure|because)",
    r"\b(?:right|sure|totally),? because\b",
    r"\bjust love love\b",
    r"\bas if (?:i|we)\b",
    r"\bwho doesn't (?:love|like|enjoy)\b",
    r"(?:^|\s)/s\b",
    r"[\U0001f644\U0001f643]",
    r"\bsaid (?:no one|nobody)\b",
    r"\bbecause (?:obviously|clearly),? (?:i|we)\b",
    r"\bnothing (?:like|beats|says)\b",
    r"\bthanks for nothing\b",
    r"\bjust what (?:i|we) (?:needed|wanted|always)\b",
    r"\bhow i (?:just )?(?:love|adore|enjoy)\b",
    r"\b(?:simply|just|absolutely|so|really|totally|do) (?:love|adore|enjoy)(?:s|ing)? (?:it )?(?:when|how)\b",
    r"\bnot!+\s*$",
    r"#sarcas\w+",
    r"\b(?:just kidding|jk|kidding|i'm joking|just joking)\b",
    r"\b(?:what could (?:possibly )?(?:be better|go wrong)|living the dream|lucky me|just my luck|how (?:fun|lovely|nice))\b",
    r"\b(?:love|adore|enjoy|like|favou?rite)\b.*\b(?:mondays|traffic(?: jams?)?|taxes|paperwork|being ignored|waiting (?:in|on|for)|"
    r"getting (?:paged|yelled|woken|stuck|rejected|ghosted)|merge conflicts|more meetings|another meeting|another (?:outage|bug|crash|deadline)|"
    r"root canals?|being (?:paged|yelled|woken|late|lied|on hold|on call|stuck|ignored)|on hold|at [1-5] ?am|flaky tests|hold music|"
    r"back-to-back meetings|debugging at|losing my|missing my|stepping (?:on|in))\b",
)
_LOUD = r"\b(?:just|really|so|absolutely|totally|simply) (?:LOVE|ADORE|ENJOY)\b"


@cache
def _sarcastic() -> re.Pattern[str]:
    return re.compile(f"(?i:{'|'.join(_SARCASM)})|{_LOUD}")


def is_sarcastic(text: str, sentence: Sentence) -> bool:
    """Whether a sentence says the opposite of its words, by the signs people give."""
    return _sarcastic().search(text, sentence.start, sentence.end) is not None


@cache
def _unreal() -> re.Pattern[str]:
    """A clause that says what would be, what was said by others, or what is wished."""
    return re.compile(
        r"\s*(?:and |but |so |well,? |then |or |even |only )*(?:(?:if|unless|whether|what if|in case|as if|as though|imagine|suppose|supposing|"
        r"pretend|assume|assuming|let's say|say (?:i|we|my)|had (?:i|we)|were (?:i|we)|i wish|we wish|wish|if only|i dreamt|"
        r"i dreamed|i had a dream|i'd rather|once i|when i(?:'m| am| was| were| get| grow| grew)|before i|after i|until i|by the time|whenever|every time|"
        r"back when|the more i)\b)",
        re.IGNORECASE,
    )


@cache
def _reported() -> re.Pattern[str]:
    """Somebody who says, thinks or asks something: what follows is theirs, not the speaker's."""
    return re.compile(
        r"\b(?!(?:i|we)\b)(?P<who>[\w']+)\s+(?:just |also |always |often |once |never |recently |keeps? |kept )?"
        r"(?P<verb>said|says|say|saying|told|tells|telling|asked|asks|asking|thinks|thought|claims|claimed|believes|believed|mentioned|"
        r"mentions|wrote|writes|insists|insisted|announced|admitted|complained|complains|swears|swore|reckons|wondered|"
        r"wonders|joked|explained|heard|suggested|suggests|hopes|wishes|assumes|assumed|pretends|pretended)\b",
        re.IGNORECASE,
    )


def reported_from(text: str, start: int, end: int) -> int:
    """Where somebody else's words begin inside a stretch, its end if nowhere; a doctor is believed."""
    found = _reported().search(text, start, end)
    if found is None or found["who"].lower() in _BELIEVED:
        return end
    return found.start()


_BELIEVED = frozenset("doctor dr doc dentist allergist therapist gp psychiatrist dermatologist cardiologist".split())


def is_unreal(text: str, start: int, end: int) -> bool:
    """Whether a clause begins as a condition, a wish or a supposition."""
    return _unreal().match(text, start, end) is not None


@cache
def _question() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:(?:and|but|so|or|ok(?:ay)?|well|hey|hi|hello|please|also|then|now|btw|quick question)[,:]?\s+)*"
        r"(?:what|which|who|whom|whose|where|why|how|when (?:do|did|is|are|was|will|should|can)|do (?:i|we|you|they)|does|did|is|are|"
        r"am i|was|were|can|could|should|would|will|shall|may i|have (?:i|you|we|they)|has|any (?:idea|tips|advice|suggestion|"
        r"recommendation|chance|good|way)|isn't|aren't|don't (?:i|you|we)|doesn't|won't|wouldn't|couldn't|ain't|anyone|"
        r"anybody|got any)\b",
        re.IGNORECASE,
    )


def asks(text: str, start: int, end: int) -> bool:
    """Whether a clause is put as a question."""
    return _question().match(text, start, end) is not None


# ---------------------------------------------------------------------------------------------------------------- clauses

_SUBJECT = (
    r"(?:i|i'm|im|i've|ive|i'd|i'll|we|we're|we've|we'll|he|she|they|it|it's|he's|she's|they're|you|there|this|that's|user|"
    r"(?:my|our|his|her|their|the)\s+(?:[\w-]+\s+){1,3}?(?:is|are|was|were|has|have|'s|lives?|works?|likes?|loves?|hates?|plays?|"
    r"speaks?|moved|died|got|just|started|uses?|studies|prefers?|wants?|can|does|will|runs?|teaches|drives|named)"
    r"|my\s+[\w-]+'s)\b"
)
_THIRD = r"(?-i:[A-Z][a-z]+)\s+(?:is|was|has|lives|works|likes|loves|hates|plays|speaks|moved|prefers|uses|studies|wants|can|got)\b"
_ASKING = (
    r"(?:what|which|who|where|why|how|when|can|could|should|would|will|do|does|did|is|are|any|please|so what|if|help|"
    r"recommend|suggest|give|tell|show)\b"
)
_VERBS = (
    r"(?:live|lives|lived|work(?=\s+(?:at|for|as|in|from|on|with|remote))|works|worked|love|loves|like|likes|hate|hates|have|has|am|'m|"
    r"is|was|speak|speaks|play|plays|drive|drives|own|owns|prefer|prefers|use|uses|study|studies|moved|started|quit|"
    r"enjoy|enjoys|dislike|dislikes|can't|cannot|don't|do not|doesn't|never|got|bought|adopted|take(?=\s+\w+\s+(?:for|daily|every))|"
    r"collect|teach|teaches|run|runs|specialize|specialise|grew up|graduated|switched|joined|left|just|recently|currently|now|also|used to|am trying|eat)\b"
)
_JOINT = (
    rf"\s*;\s*|\s+[-\u2013\u2014]{{1,2}}\s+|\u2014|\s*\.{{2,}}\s*|\s*\u2026\s*|:\s+(?={_SUBJECT})|\s*\((?={_SUBJECT})|\)\s*|"
    rf",?\s+(?:and|but|so|because|cuz|cos|bc|although|though|while|plus|however|yet|whereas|or)\s+"
    rf"(?:(?:also|now|then|that|since|because|yes|no),?\s+)*(?={_SUBJECT}|{_THIRD})|"
    rf",\s*(?:and\s+|but\s+|so\s+|then\s+)?(?={_SUBJECT}|{_THIRD}|{_ASKING}|as\s+i\b|since\s+i|because\s+i|which\s+is\b|and\s+yes)|"
    rf"\s+(?:and|so|but)\s+(?={_ASKING})(?!\s*(?:so|and)\s+(?:is|are|does|do)\b)|"
    rf"\s+(?=(?:since|because|given\s+that|now\s+that|considering(?:\s+that)?)\s+{_SUBJECT})|\s+(?=if\s+(?:i|we|you|my|it|that|there)\b)|"
    rf"\s+(?=(?:that\s+|which\s+)?(?:i|my)\s+(?:said|think|thought|guess)\b)"
)
_GOING_ON = rf"(?:,?\s+(?:and|but|then)|,)\s+(?:also\s+|then\s+|currently\s+|now\s+|just\s+)?(?={_VERBS})"


@cache
def _joints() -> re.Pattern[str]:
    return re.compile(f"(?P<on>{_GOING_ON})|(?:{_JOINT})", re.IGNORECASE)


@cache
def _of_another_mind() -> re.Pattern[str]:
    """An infinitive or a modal: verbs that follow it by "and" depend on it too."""
    return re.compile(
        r"\b(?:want|wants|plan|plans|planning|going|hope|hoping|like|love|likes|loves|enjoy|used|trying|try|need|needs|have|has|decided|wish|prefer|"
        r"learning|how|able|about|where|when|hard|easy|fun|time|way|started|start|me|you|him|her|us|them)\s+to\s+\w+|\b(?:would|could|might|may|"
        r"should|will|'ll|'d|can|can't|don't|doesn't|didn't|gonna|wanna|let's|to be)\b",
        re.IGNORECASE,
    )


@cache
def _together() -> re.Pattern[str]:
    """Whoever stands before "and I"."""
    return re.compile(r"\s*(?:(?:so|hey|hi|well|yesterday|last \w+),?\s+)?(?:me|my\s+[\w-]+(?:\s+[A-Z]\w+)?|[A-Z]\w+)", re.IGNORECASE)


def clauses(text: str, sentence: Sentence) -> Iterator[Clause]:
    """The clauses of a sentence; in a question only what is stated beside it is not asked."""
    cuts = list(_cuts(text, sentence))
    for number, (start, end, goes_on) in enumerate(cuts):
        begin, sure = opened(text, start, end)
        last = number == len(cuts) - 1
        asked = asks(text, start, end) or (sentence.asks and last and not _stated(text, start, end))
        if begin < end:
            yield Clause(begin, end, goes_on, sure, asked, start)


def _cuts(text: str, sentence: Sentence) -> Iterator[tuple[int, int, bool]]:
    start, goes_on = sentence.start, False
    for joint in _joints().finditer(text, sentence.start, sentence.end):
        if joint["on"] is not None and _of_another_mind().search(text, start, joint.start()):
            continue
        if _together().fullmatch(text, start, joint.start()):
            continue
        if joint.start() > start:
            yield start, joint.start(), goes_on
        start, goes_on = joint.end(), joint["on"] is not None
    if start < sentence.end:
        yield start, sentence.end, goes_on


@cache
def _reason() -> re.Pattern[str]:
    return re.compile(r"\s*(?:,\s*)?(?:since|because|cuz|cos|bc|as|given(?:\s+that)?|now\s+that|considering(?:\s+that)?|seeing\s+as)\s+"
                      r"(?:i|i'm|im|i've|we|we're|my)\b", re.IGNORECASE)  # fmt: skip


def _stated(text: str, start: int, end: int) -> bool:
    """Whether a clause gives a reason, which is stated even inside a question."""
    return _reason().match(text, start, end) is not None


# --------------------------------------------------------------------------------------------------------- opening words

_OPENERS = (
    r"hi(?: there| all| everyone| team)?|hello(?: there| everyone)?|hey(?: there| guys| all)?|hiya|yo|good (?:morning|afternoon|evening)|"
    r"greetings|howdy|well|so|oh|ah|ok(?:ay)?|yeah|yep|yup|yes|no|nope|nah|sure|right|alright|actually|btw|by the way|fyi|also|plus|and|but|anyway|"
    r"anyways|honestly|tbh|to be honest|to be fair|frankly|sadly|unfortunately|luckily|fortunately|thankfully|apparently|basically|"
    r"obviously|clearly|of course|for the record|just so you know|just fyi|jsyk|as you (?:may )?know|as (?:i )?(?:said|mentioned)"
    r"(?: before| earlier| already)?|like i (?:said|mentioned)(?: before| earlier)?|in case you(?:'re| are) wondering|"
    r"(?:please |pls |plz )?(?:remember|note|keep in mind|be aware|don't forget|make a note|know|save|store)(?: this| that)?|"
    r"(?:just )?(?:to )?let(?:ting)? you know(?: that)?|"
    r"i(?:'d| would| should|'ll| also)? (?:just |also )?(?:like to |want to |wanted to |need to |have to |must |should |gotta )?"
    r"(?:mention|say|add|clarify|admit|confess|point out|note|tell you|let you know|share)(?: is)?(?: that)?|"
    r"i (?:forgot|should have|meant) to (?:mention|say|tell you|add)(?: that)?|you should know(?: that)?|"
    r"i want you to know(?: that)?|fun fact|quick (?:update|context|intro|background)|update|news|big news|good news|bad news|great news|ps|p\.s\.|correction|edit|context|"
    r"background|about me|a bit about me|some background|intro|(?:let me|to) introduce myself|"
    r"(?:it )?turns out(?: that)?|nice to meet you|pleased to meet you|long story short|the thing is(?: that)?|the truth is|"
    r"the fact is|my point is|since|because|cuz|bc|cos|given(?: that)?|now that|considering(?: that)?|seeing as|although|though|even though|while|"
    r"however|then|first(?:ly)?|second(?:ly)?|finally|lastly|besides|moreover|furthermore|in addition|additionally|meanwhile|"
    r"these days|nowadays|currently|at the moment|right now|as of (?:now|today|last \w+|this \w+)|lately|recently|"
    r"in general|generally|usually|personally|for me|in my (?:free|spare) time|on (?:the )?weekends|at work|at home|outside of work|"
    r"thanks|thank you|sorry|lol|haha+|omg|ugh|wow|yay|phew|hmm+|um+|uh+|er|man|dude|guys|i mean|you know|like|"
    r"(?:my|the) (?:doctor|dr|doc|dentist|allergist|therapist|gp|dermatologist|psychiatrist)(?: just| recently)? (?:said|says|told me|thinks)(?: that)?|"
    r"every \w+|each \w+|on \w+days|on weekdays|funny enough|believe it or not|just|yes i|hooray|guess what|dear \w+|cheers|"
    r"[-*\u2022\u2013]|\d{1,2}[.)]|[\U0001f300-\U0001faff\u2600-\u27bf]+"
)
_TIMES = (
    r"(?:(?:last|next|this|this past|this coming) (?:week|month|year|weekend|night|summer|winter|spring|fall|autumn|morning|evening|\w+day)|yesterday(?: \w+)?|today|tonight|"
    r"tomorrow(?: \w+)?|(?:in|since|back in) (?:\d{4}|january|february|march|april|may|june|july|august|september|october|november|december)|"
    r"(?:a|an|one|two|three|four|five|six|a few|a couple of|\d+) (?:days?|weeks?|months?|years?) ago|on (?:\w+day)|the other day|"
    r"in (?:a|two|three|\d+) (?:days?|weeks?|months?|years?)|for (?:\w+ ){1,3}(?:years|months|weeks) now)"
)
_DOUBTS = (
    r"i (?:kind of |kinda |sort of )?(?:think|guess|suppose|assume|suspect|imagine|feel like)(?: that)?(?=\s+(?:i|i'm|my|we|it|he|she|(?-i:[A-Z][a-z])))|"
    r"i (?:believe)(?: that)?(?=\s+(?:i|i'm|my|we|it|he|she))|maybe|perhaps|possibly|probably|"
    r"i'?m not (?:entirely |really |quite |totally )?sure(?:,? but| if| whether)?|not sure(?:,? but| if| whether)?|i might be wrong,? but|"
    r"if i remember (?:correctly|right)|iirc|afaik|it (?:seems|looks like|appears)(?: that)?|i have a feeling(?: that)?|"
    r"i could be wrong,? but|there's a chance(?: that)?|chances are(?: that)?"
)
_SURE = r"i'?m (?:pretty |quite |fairly |almost )?(?:sure|certain|positive)(?: that)?|i know(?: that)?(?=\s+(?:i|i'm|my)\b)"
HEDGED = 0.5


@cache
def _opening() -> re.Pattern[str]:
    return re.compile(rf"[\s,:;!.\"'(*_]*(?:(?P<doubt>{_DOUBTS})|{_SURE}|{_TIMES}(?=,?\s+(?:i|i'm|i've|we|my|our)\b)|(?P<plain>{_OPENERS}))(?=[\s,:;!.)*_-]|$)[\s,:;!.)*_]*",
                      re.IGNORECASE)  # fmt: skip


def opened(text: str, start: int, end: int) -> tuple[int, float]:
    """Where a clause really begins behind greetings and the like, and how sure they leave it."""
    sure = 1.0
    while (found := _opening().match(text, start, end)) and found.end() > start:
        sure = min(sure, HEDGED if found["doubt"] else 1.0)
        start = found.end()
    while start < end and text[start] in " \n,;:-*_\"'(":
        start += 1
    return start, sure
