"""The verb of a clause: which one it is, and how it is said — now or once, denied, doubted, planned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.extraction.rules.lexicon import get_pattern, load_relatives, load_sections, load_words

MAX_SENTENCES: Final = 60
DOUBT_CONFIDENCE: Final = 0.5
_TRUSTED_REPORTERS: Final = frozenset(
    "hr recruiter hospital clinic vet midwife lawyer doctor dr doc dentist allergist therapist gp psychiatrist "
    "dermatologist".split()
)
_ABBREVIATION_LOOKBACK: Final = 8
"""How far back from a full stop "Prof" and its like may begin."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a text in which one thing is said.

    `goes_on` tells that it has no subject of its own and speaks on of the one before. `sure` is how sure the words
    before it leave it; `asked` that it is part of a question; `lead` is where those words begin.
    """

    start: int
    end: int
    is_continuation: bool = False
    confidence: float = 1.0
    is_question: bool = False
    lead: int = 0


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A stretch of a text up to a full stop, and whether it asks."""

    start: int
    end: int
    is_question: bool


# ------------------------------------------------------------------------------------------------------------ sentences


def split_sentences(text: str) -> Iterator[SentenceSpan]:
    """The sentences of a text, the first few dozen of a long one."""
    start = count = 0
    for boundary in get_pattern("sentence.boundary").finditer(text):
        mark = boundary[0]
        back = max(start, boundary.start() - _ABBREVIATION_LOOKBACK)
        if mark == "." and get_pattern("sentence.short_form").search(text, back, boundary.start()):
            continue
        if text[start : boundary.start()].strip():
            count += 1
            yield SentenceSpan(start, boundary.start(), "?" in mark or "\uff1f" in mark)
        start = boundary.end()
        if count >= MAX_SENTENCES:
            return
    if text[start:].strip():
        yield SentenceSpan(start, len(text), False)


# --------------------------------------------------------------------------------------------------------- what to skip


def is_sarcastic(text: str, sentence: SentenceSpan) -> bool:
    """Whether a sentence says the opposite of its words, by the signs people give."""
    signs = (get_pattern("sentence.sarcastic"), get_pattern("sentence.loud"))
    return any(sign.search(text, sentence.start, sentence.end) for sign in signs)


def find_reported_start(text: str, start: int, end: int) -> int:
    """Where somebody else's words begin inside a stretch, its end if nowhere; a doctor is believed."""
    match = get_pattern("sentence.reported").search(text, start, end)
    if match is None or match["who"].lower() in _TRUSTED_REPORTERS:
        return end
    return match.start()


def is_hypothetical(text: str, start: int, end: int) -> bool:
    """Whether a clause begins as a condition, a wish or a supposition."""
    return get_pattern("sentence.unreal").match(text, start, end) is not None


def is_question(text: str, start: int, end: int) -> bool:
    """Whether a clause is put as a question."""
    return get_pattern("sentence.question").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------------- clauses


def split_clauses(text: str, sentence: SentenceSpan) -> Iterator[Clause]:
    """The clauses of a sentence; in a question only what is stated beside it is not asked: "what fits, I'm tall?"."""
    spans = list(_find_clause_spans(text, sentence))
    question_seen = False
    for number, (start, end, continues) in enumerate(spans):
        begin, confidence = skip_opening(text, start, end)
        is_last = number == len(spans) - 1
        starts_question = is_question(text, start, end) and not continues
        is_asked = starts_question or (
            sentence.is_question
            and is_last
            and not question_seen
            and not _is_reason(text, start, end)
        )
        question_seen = question_seen or starts_question
        if begin < end:
            yield Clause(begin, end, continues, confidence, is_asked, start)


def _find_clause_spans(text: str, sentence: SentenceSpan) -> Iterator[tuple[int, int, bool]]:
    start, continues = sentence.start, False
    for joint in get_pattern("sentence.joints").finditer(text, sentence.start, sentence.end):
        if joint["on"] is not None and not _is_continuation(text, start, joint):
            continue
        if "and" in joint[0].lower() and get_pattern("sentence.together").fullmatch(
            text, start, joint.start()
        ):
            continue  # my wife and I
        if get_pattern("sentence.apposed").fullmatch(text, start, joint.start()):
            continue  # Sanne, my sister, …
        if get_pattern("sentence.time_only").fullmatch(text, start, joint.start()):
            continue  # In 2009, I …
        if joint.start() > start:
            yield start, joint.start(), continues
        start, continues = joint.end(), joint["on"] is not None
    if start < sentence.end:
        yield start, sentence.end, continues


def _is_continuation(text: str, start: int, joint: re.Match[str]) -> bool:
    """Whether what follows is said of the same subject, rather than what somebody would, could or wants to do."""
    if get_pattern("sentence.participle").match(text, joint.end()):
        return get_pattern("sentence.being").search(text, start, joint.start()) is not None
    if get_pattern("sentence.of_others").match(text, joint.end()) and get_pattern(
        "speaker.first"
    ).match(text, start):
        return False
    if get_pattern("sentence.finite").match(text, joint.end()):
        return True
    return get_pattern("sentence.of_another_mind").search(text, start, joint.start()) is None


def _is_reason(text: str, start: int, end: int) -> bool:
    """Whether a clause gives a reason, which is stated even inside a question."""
    return get_pattern("sentence.reason").match(text, start, end) is not None


# -------------------------------------------------------------------------------------------------------- opening words


def skip_opening(text: str, start: int, end: int) -> tuple[int, float]:
    """Where a clause really begins behind greetings and the like, and how sure they leave it."""
    confidence = 1.0
    while (
        match := get_pattern("sentence.opening").match(text, start, end)
    ) and match.end() > start:
        confidence = min(confidence, DOUBT_CONFIDENCE if match["doubt"] else 1.0)
        start = match.end()
    while start < end and text[start] in " \n,;:-*_\"'(":
        start += 1
    return start, confidence


MAX_ITEMS: Final = 8
_MAX_VALUE_CHARS: Final = 80
_MAX_TRADE_WORDS: Final = 3
_NON_JOB_ADJECTIVES: Final = frozenset(("such", "real", "regular", "proper", "right"))
"""What stands before a trade nobody means: such a great cook, a real athlete."""


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value and the stretch of the text it stands in."""

    text: str
    start: int
    end: int


def find_value_end(text: str, start: int, end: int) -> int:
    """Where the value that begins at a place ends."""
    for match in get_pattern("value.end").finditer(text, start, end):
        if match[0] not in (".", ":") or not get_pattern("value.harmless_stop").match(
            text, match.start(), end
        ):
            return match.start()
    return end


def trim_value(text: str, start: int, end: int, *, strip_article: bool = True) -> ValueSpan:
    """The stretch without what does not belong to the value at either side; articles go too unless they are wanted."""
    if strip_article and (lead_match := get_pattern("value.before").match(text, start, end)):
        start = lead_match.end()
    while start < end and text[start] in " \n,\"'*_":
        start += 1
    if tail_match := get_pattern("value.after").search(text, start, end):
        end = tail_match.start()
    return ValueSpan(text[start:end], start, end)


def split_items(text: str, start: int, end: int) -> Iterator[ValueSpan]:
    """The items of a list such as "hiking, chess and sushi"; it stops at the first that is none."""
    position, count = start, 0
    for comma in (*get_pattern("value.comma").finditer(text, start, end), None):
        if comma is not None and comma["whole"]:
            continue
        stop = end if comma is None else comma.start()
        if count and get_pattern("value.no_item").match(text, position, stop):
            return
        item = trim_value(text, position, stop)
        if item.text:
            yield item
            count += 1
        if comma is None or count >= MAX_ITEMS:
            return
        position = comma.end()


# ------------------------------------------------------------------------------------------------------- what it may be


def is_thing(value: str, max_words: int = 6) -> bool:
    """Whether a value says something by itself."""
    if (
        not 0 < len(value) <= _MAX_VALUE_CHARS
        or len(value.split()) > max_words
        or value.lower() in load_words("EMPTY")
    ):
        return False
    if get_pattern("value.vague").search(value) or get_pattern("value.weak_start").match(value):
        return False
    return re.search(r"\w\w|[A-Z]|\d", value) is not None


def is_name(value: str, *, require_known: bool = False) -> bool:
    """Whether a value can be somebody's name; `known` asks for a capital or a name everybody knows."""
    if not get_pattern("value.name").fullmatch(value):
        return False
    parts = value.split()
    lowered = [part.lower().strip(".") for part in parts]
    if lowered[0] in load_words("TITLES") and len(parts) > 1:
        return is_name(value.split(None, 1)[1], require_known=require_known)
    if lowered[0] in _load_qualities() or not load_words("NOT_NAMES").isdisjoint(lowered):
        return False
    if not require_known:
        return True
    if value in load_words("ALSO_WORDS"):
        return False
    if lowered[0] in load_words("FIRST_NAMES") and (
        len(parts) == 1 or parts[1][0].isupper() or value.islower()
    ):
        return len(parts) <= 3
    return len(value) > 1 and all(
        part[0].isupper() or part in load_words("PARTICLES") for part in parts
    )


@cache
def _load_qualities() -> frozenset[str]:
    """What people are rather than are called, even with a capital."""
    return (
        load_words("NATIONS")
        | load_words("DIETS")
        | load_words("STATES")
        | load_words("TRAIT_ADJECTIVES")
    )


def is_place(value: str) -> bool:
    """Whether a value can be the name of a place."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or parts[0] in load_words("PLACE_STOPS") | load_words("MONTHS"):
        return False
    if value.lower() in load_words("EMPTY") or (
        value[0].islower() and parts[0] in load_words("EMPTY")
    ):
        return False
    if re.search(r"\d{4,}", value) or not re.match(r"[^\W\d_]", value):
        return False
    if value[0].isupper():
        return len(parts) <= 3 or sum(part[0].isupper() for part in value.split()) >= 2
    return (
        len(parts) <= 3
        and load_words("EMPTY").isdisjoint(parts)
        and parts[-1] not in load_words("DWELLINGS")
    )


def is_organization(value: str) -> bool:
    """Whether a value can be the name of an employer, a school or the like."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or (value[0].islower() and parts[0] in load_words("NO_WORKPLACE")):
        return False
    if len(parts) == 1 and parts[0] in load_words("EMPTY") | load_words("PLACE_STOPS"):
        return False
    if get_pattern("value.duration").search(value):
        return False
    return value[0].isdigit() or any(c.isupper() for c in value) or len(parts) <= 3


def is_job(value: str) -> bool:
    """Whether a value names something one is for a living."""
    lowered = re.sub(r"[^\w' &/-]", "", value.lower())
    parts = re.split(r"\s+(?:of|at|for|in|on|and|with|to)\s+", lowered)[0].replace("/", " ").split()
    if not parts or parts[0] in _NON_JOB_ADJECTIVES or len(lowered.split()) > 8:
        return False
    if get_pattern("value.head_of").match(lowered):
        return True
    jobs, last = load_words("OCCUPATIONS"), parts[-1]
    last = last if last in jobs else last.removesuffix("s")
    if len(parts) == 1 and last in load_words("NOT_JOBS"):
        return False
    return (
        last in jobs
        or " ".join(parts[-2:]) in jobs
        or get_pattern("value.craft").fullmatch(last) is not None
    )


def is_trade(value: str) -> bool:
    """Whether a value sounds like something one is for a living, which an article before it must confirm."""
    parts = value.lower().split()
    last = parts[-1] if parts else ""
    return (
        len(parts) <= _MAX_TRADE_WORDS
        and last not in load_words("NO_TRADE")
        and get_pattern("value.trade").fullmatch(last) is not None
    )


def is_activity(value: str) -> bool:
    """Whether a value can be something to do."""
    parts = value.lower().split()
    if get_pattern("slots.empty_doing").fullmatch(value):
        return False
    is_valid_start = parts and (
        parts[0] not in load_words("NO_DOING")
        or get_pattern("slots.being").match(value) is not None
    )
    return (
        bool(is_valid_start) and len(parts) <= 12 and not get_pattern("value.vague").search(value)
    )


VALUE_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "thing": is_thing,
    "long": lambda value: is_thing(value, 10),
    "whole": lambda value: is_thing(value, 12),
    "name": is_name,
    "known": lambda value: is_name(value, require_known=True),
    "place": is_place,
    "org": is_organization,
    "job": is_job,
    "vp": is_activity,
}
"""What a value of each sort must be."""


PRESENT, PAST, ING = TENSES = ("present", "past", "ing")
_MIN_SWAP_LENGTH: Final = 5
_MAX_TOKENS: Final = 9
"""How many auxiliaries and adverbs may stand before a verb."""


@cache
def load_verb_forms() -> dict[str, tuple[str, str]]:
    """Every form of a verb the rules know, with the verb and the tense, and with two letters in the wrong order."""
    table: dict[str, tuple[str, str]] = {}
    for row in load_sections("verbs.txt")["verbs"]:
        for tense, tense_forms in zip(TENSES, row.split(" / "), strict=False):
            for form in tense_forms.split():
                table.setdefault(form, (row.split()[0], tense))
    return {
        swapped: form for word, form in table.items() for swapped in _swap_neighbours(word)
    } | table


def _swap_neighbours(word: str) -> list[str]:
    """The word with two neighbouring letters in the wrong order, for words long enough that nothing else is meant."""
    if len(word) < _MIN_SWAP_LENGTH:
        return []
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]


@dataclass(frozen=True, slots=True)
class VerbFeatures:
    """How a verb is said.

    `ended` is what holds no longer, `supposed` a duty or what nearly was, `wished` what would be, `able` what can be.
    """

    tense: str = PRESENT
    negated: bool = False
    ended: bool = False
    future: bool = False
    doubted: bool = False
    wished: bool = False
    able: bool = False
    perfect: bool = False
    habit: bool = False
    now: bool = False
    supposed: bool = False
    passive: bool = False


@dataclass(frozen=True, slots=True)
class ParsedVerb:
    """A verb with its stance, where its word begins, and where its complement does."""

    lemma: str
    features: VerbFeatures
    word_start: int
    complement_start: int


_BE: Final = frozenset("am is are was were be been being 'm 're 's m r".split())
_HAVE: Final = frozenset("have has had 've ve having hav".split())
_DO: Final = frozenset("do does did".split())
_AUXILIARY_FLAGS: Final = {
    **dict.fromkeys(_BE | _DO, "aux"),
    **dict.fromkeys(_HAVE, "perfect"),
    **dict.fromkeys("would could should must 'd shall ought".split(), "wished"),
    **dict.fromkeys("might may".split(), "doubted future"),
    **dict.fromkeys("will 'll gonna".split(), "future"),
    "can": "able",
}
_PASSIVE_VERBS: Final = frozenset(
    "bear diagnose raise employ hire promote name call retire engage divorce".split()
)
_PERFECT_VERBS: Final = frozenset(
    "buy move start join leave finish adopt quit lose break go become turn switch get win".split()
)
"""Verbs before which an 's is more likely a "has" than an "is"."""
_INVARIANT_PARTICIPLES: Final = frozenset(
    "run read quit become come set put cut hit split hurt".split()
)
"""Verbs whose participle looks like their present."""
_NEGATIONS: Final = frozenset("not n't nt never neither".split())
_ADVERB_FLAGS: Final = {
    **dict.fromkeys("barely hardly rarely seldom scarcely almost nearly".split(), "supposed"),
    **dict.fromkeys(
        "usually always often typically generally normally regularly sometimes frequently".split(),
        "habit",
    ),
    **dict.fromkeys("now currently presently".split(), "now"),
    **dict.fromkeys("probably possibly maybe perhaps apparently supposedly".split(), "doubted"),
}
_ADVERBS: Final = frozenset(
    """also really realy relly just still actually absolutely totally definitely truly deeply literally especially
    particularly recently finally already only even very pretty quite so too simply genuinely certainly honestly
    obviously basically both all kinda kind sort of officially originally mainly primarily largely personally
    strongly much secretly mostly fully completely seriously super happily proudly lately since long strictly
    newly once soon right then slowly gradually quickly constantly actively steadily""".split()
)
_CONTRACTED: Final = {
    **dict.fromkeys("don't dont".split(), "do"),
    **dict.fromkeys("doesn't doesnt".split(), "does"),
    **dict.fromkeys("didn't didnt".split(), "did"),
    **dict.fromkeys("isn't isnt".split(), "is"),
    **dict.fromkeys("aren't arent".split(), "are"),
    **dict.fromkeys("wasn't wasnt".split(), "was"),
    **dict.fromkeys("weren't".split(), "were"),
    **dict.fromkeys("haven't havent".split(), "have"),
    **dict.fromkeys("hasn't hasnt".split(), "has"),
    **dict.fromkeys("hadn't".split(), "had"),
    **dict.fromkeys("won't wont".split(), "will"),
    **dict.fromkeys("can't cant cannot".split(), "can"),
    **dict.fromkeys("couldn't".split(), "could"),
    **dict.fromkeys("wouldn't".split(), "would"),
    **dict.fromkeys("shouldn't".split(), "should"),
    **dict.fromkeys("ain't".split(), "am"),
}


def parse_verb(text: str, start: int, end: int) -> ParsedVerb | None:
    """The verb a stretch begins with, read through its auxiliaries, negations and adverbs."""
    return _VerbParser(text, end).parse_from(start)


class _VerbParser:
    """Reads auxiliaries one by one and keeps what they say."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.flags: dict[str, bool] = {}
        self.auxiliary = ""
        self.is_past = False
        self.auxiliary_start = 0

    def parse_from(self, position: int) -> ParsedVerb | None:
        """The verb from here on; `be` and `have` are the verb themselves where no other follows."""
        for _ in range(_MAX_TOKENS):
            token = get_pattern("verb.token").match(self.text, position, self.end)
            if token is None:
                break
            phrase, word = (token["phrase"] or "").lower(), (token["word"] or "").lower()
            if phrase == "going to" and not self._is_verb_next(token.end()):
                return self._build_verb("going", position, token.end() - len(" to"))
            if phrase == "used to" and self.auxiliary in _BE:
                return None
            if not (
                self._consume_phrase(phrase)
                if phrase
                else self._consume_word(word, token.end() - len(word))
            ):
                return self._build_verb(word, position, token.end())
            position = token.end()
        return self._build_auxiliary_verb(position)

    def _is_verb_next(self, position: int) -> bool:
        token = get_pattern("verb.token").match(self.text, position, self.end)
        word = (token["word"] or "").lower() if token else ""
        return word == "be" or load_verb_forms().get(word, ("", ""))[1] == PRESENT

    def _consume_phrase(self, phrase: str) -> bool:
        if phrase in ("used to", "no longer"):
            self.flags["ended"] = True
        elif phrase == "going to":
            self.flags["supposed" if self.is_past else "future"] = True
        elif phrase in ("tend to", "tends to"):
            self.flags["habit"] = True
        elif phrase in ("about to", "have to", "has to", "had to", "need to"):
            self.flags["supposed"] = True
        if phrase in ("used to", "going to", "tend to", "tends to"):
            self.auxiliary = "to"
        return True

    def _consume_word(self, word: str, start: int) -> bool:
        """Take in a word that is not yet the verb; false if it is."""
        if word in _CONTRACTED:
            word = _CONTRACTED[word]
            self.flags["negated"] = True
        if flag_names := _AUXILIARY_FLAGS.get(word):
            self.flags |= dict.fromkeys(flag_names.split(), True)
            is_double_had = word == "had" and self.auxiliary in _HAVE
            self.flags["had"] = is_double_had
            self.is_past = self.is_past or (
                word in ("was", "were", "did", "had") and not is_double_had
            )
            self.auxiliary, self.auxiliary_start = word, start
        elif word in _NEGATIONS:
            self.flags["negated"] = not self.flags.get("negated", False)
        elif word in _ADVERB_FLAGS:
            self.flags[_ADVERB_FLAGS[word]] = True
        else:
            return word in _ADVERBS
        return True

    def _build_verb(self, word: str, position: int, end: int) -> ParsedVerb | None:
        lemma, tense = load_verb_forms().get(word, ("", ""))
        start = end - len(word)
        if self.auxiliary == "'s" and (
            word == "got" or (lemma in _PERFECT_VERBS and tense == PAST)
        ):
            self.auxiliary = "has"
            self.flags["perfect"] = True
        if self.auxiliary in _BE:
            if tense == ING or (lemma in _PASSIVE_VERBS and tense == PAST):
                self.flags["passive"] = tense == PAST
                return ParsedVerb(lemma, self._build_features(tense), start, end)
            return self._build_auxiliary_verb(position)
        if self.auxiliary in _HAVE and word == "got":
            self.flags.pop("perfect", None)
            return ParsedVerb("have", self._build_features(PRESENT), start, end)
        if self.auxiliary in _HAVE:
            if tense == PAST or lemma in _INVARIANT_PARTICIPLES:
                return ParsedVerb(lemma, self._build_features(PAST), start, end)
            return self._build_auxiliary_verb(position)
        if self.auxiliary in _DO and tense != PRESENT:
            return self._build_auxiliary_verb(position)
        if not lemma:
            return None
        return ParsedVerb(lemma, self._build_features(PAST if self.is_past else tense), start, end)

    def _build_auxiliary_verb(self, position: int) -> ParsedVerb | None:
        """The auxiliary as the verb of the clause."""
        for lemma, auxiliaries in (("be", _BE), ("have", _HAVE), ("do", _DO)):
            if self.auxiliary in auxiliaries:
                is_double_had = self.flags.get("had", False)
                if lemma == "have" and not is_double_had:
                    self.flags.pop("perfect", None)
                tense = (
                    ING
                    if self.auxiliary == "having"
                    else PAST
                    if self.is_past or is_double_had
                    else PRESENT
                )
                return ParsedVerb(
                    lemma, self._build_features(tense), self.auxiliary_start, position
                )
        return None

    def _build_features(self, tense: str) -> VerbFeatures:
        return VerbFeatures(
            tense=tense,
            **{name: value for name, value in self.flags.items() if name not in ("aux", "had")},
        )


DEFAULT_SPEAKER: Final = "User"
_DISTINGUISHING_ADJECTIVES: Final = frozenset(
    "older younger little big best twin step ex ex- oldest youngest".split()
)
"""The adjectives that tell one relative from another."""


_KIN_TITLES: Final = frozenset("uncle aunt auntie cousin grandma grandpa granny nana".split())
"""What may stand before the name of a relative: Uncle Ray."""


@dataclass(frozen=True, slots=True)
class Referent:
    """A subject as claims name it.

    `first` is the speaker. `relation` is what a third person is to the speaker, `known` whether it surely is a person.
    """

    name: str
    is_speaker: bool = False
    relation: str = ""
    is_person: bool = True


@dataclass(frozen=True, slots=True)
class ClauseSubject:
    """Who a clause is about and where its verb begins; `called` is the name given beside a relation."""

    referent: Referent
    verb_start: int
    name: str = ""
    name_start: int = 0


def parse_subject(
    text: str, start: int, end: int, speaker: str, last_referent: Referent | None
) -> ClauseSubject | None:
    """Who the clause that begins here is about, if it says so at its beginning."""
    if match := get_pattern("speaker.first").match(text, start, end):
        return ClauseSubject(Referent(speaker, is_speaker=True), match.end())
    for name in ("twice", "mine", "apposed", "of_the_house", "kin"):
        if match := get_pattern(f"speaker.{name}").match(text, start, end):
            return (
                _parse_nested_relative(match, speaker)
                if name == "twice"
                else parse_relative(match, speaker)
            )
    if match := get_pattern("speaker.theirs").match(text, start, end):
        relation = match["relation"].lower()
        return ClauseSubject(
            Referent(f"{match['owner']}'s {relation}", relation=relation), match.end()
        )
    if match := get_pattern("speaker.pronoun").match(text, start, end):
        return ClauseSubject(last_referent, match.end()) if last_referent is not None else None
    if match := get_pattern("speaker.third").match(text, start, end):
        return _parse_named_subject(match)
    return None


def _parse_nested_relative(match: re.Match[str], speaker: str) -> ClauseSubject:
    """Somebody of somebody's of the speaker's: my girlfriend's parents."""
    relation = match["relation"].lower()
    return ClauseSubject(
        Referent(f"{speaker}'s {match['owner'].lower()}'s {relation}", relation=relation),
        match.end(),
    )


def find_mentioned_relative(text: str, start: int, end: int, speaker: str) -> Referent | None:
    """The one person of the speaker's a stretch mentions, whom a later "she" can mean; none if there are several."""
    mentions = get_pattern("speaker.anywhere").finditer(text, start, end)
    people = [match for match in mentions if match["relation"].lower() not in load_words("PETS")]
    return parse_relative(people[0], speaker).referent if len(people) == 1 else None


def parse_relative(match: re.Match[str], speaker: str) -> ClauseSubject:
    """Somebody of the speaker's, by name where one stands beside the relation."""
    groups = match.groupdict()
    relation = (match["relation"] or groups["kin"]).lower()
    adjective = (match["adjective"] or groups.get("adjective_") or "").lower()
    name = match["name"] or ""
    is_plural = relation.endswith("s") and relation.removesuffix("s") in load_relatives()
    if name and is_name(name, require_known=True) and not is_plural:
        return ClauseSubject(
            Referent(capitalise_name(name), relation=relation),
            match.end(),
            name,
            match.start("name"),
        )
    label = f"{adjective if adjective.strip() in _DISTINGUISHING_ADJECTIVES else ''}{relation}"
    return ClauseSubject(Referent(f"{speaker}'s {label}", relation=relation), match.end("relation"))


def _parse_named_subject(match: re.Match[str]) -> ClauseSubject | None:
    if match["user"]:
        return ClauseSubject(Referent(DEFAULT_SPEAKER, is_speaker=True), match.end())
    name = match["name"] or match["low"]
    first_word = name.split()[0].lower()
    if first_word in _KIN_TITLES and " " in name:
        return ClauseSubject(Referent(name, relation=first_word), match.end())
    is_first_name = first_word in load_words("FIRST_NAMES")
    if (
        first_word in load_words("NO_PERSON")
        or not is_name(name, require_known=True)
        or (first_word in load_verb_forms() and not is_first_name)
    ):
        return None
    return ClauseSubject(Referent(capitalise_name(name), is_person=is_first_name), match.end())


def capitalise_name(name: str) -> str:
    """A name with a capital where it was written without."""
    return (
        name
        if name != name.lower()
        else " ".join(part[:1].upper() + part[1:] for part in name.split())
    )
