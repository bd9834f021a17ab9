"""English grammar for the rules: sentences, clauses, values, verbs and subjects."""

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
    "hr recruiter hospital clinic vet midwife lawyer doctor dr doc dentist allergist therapist gp "
    "psychiatrist dermatologist".split()
)
_ABBREVIATION_LOOKBACK: Final = 8
"""Number of characters before a full stop searched for an abbreviation such as "Prof"."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause and its span.

    `is_continuation` is set if it has no subject of its own, `confidence` is lowered by opening
    words of doubt, and `lead` is the position of those words.
    """

    start: int
    end: int
    is_continuation: bool = False
    confidence: float = 1.0
    is_question: bool = False
    lead: int = 0


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """The span of a sentence."""

    start: int
    end: int
    is_question: bool


# Sentences


def split_sentences(text: str) -> Iterator[SentenceSpan]:
    """Split a text into at most `MAX_SENTENCES` sentences."""
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


# Skipped text


def is_sarcastic(text: str, sentence: SentenceSpan) -> bool:
    """Return True if a sentence has markers of sarcasm."""
    signs = (get_pattern("sentence.sarcastic"), get_pattern("sentence.loud"))
    return any(sign.search(text, sentence.start, sentence.end) for sign in signs)


def find_reported_start(text: str, start: int, end: int) -> int:
    """Return where reported speech begins, else `end`; trusted reporters are not cut off."""
    match = get_pattern("sentence.reported").search(text, start, end)
    if match is None or match["who"].lower() in _TRUSTED_REPORTERS:
        return end
    return match.start()


def is_hypothetical(text: str, start: int, end: int) -> bool:
    """Return True if a clause begins as a condition, wish or supposition."""
    return get_pattern("sentence.hypothetical").match(text, start, end) is not None


def is_question(text: str, start: int, end: int) -> bool:
    """Return True if a clause is a question."""
    return get_pattern("sentence.question").match(text, start, end) is not None


# Clauses


def split_clauses(text: str, sentence: SentenceSpan) -> Iterator[Clause]:
    """Split a sentence into clauses.

    In a question, clauses beside the question are statements: "what fits, I'm tall?".
    """
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
            continue  # "my wife and I"
        if get_pattern("sentence.apposed").fullmatch(text, start, joint.start()):
            continue  # "Sanne, my sister, …"
        if get_pattern("sentence.time_only").fullmatch(text, start, joint.start()):
            continue  # "In 2009, I …"
        if joint.start() > start:
            yield start, joint.start(), continues
        start, continues = joint.end(), joint["on"] is not None
    if start < sentence.end:
        yield start, sentence.end, continues


def _is_continuation(text: str, start: int, joint: re.Match[str]) -> bool:
    """Return True if the text after a joint is a statement about the same subject."""
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
    """Return True if a clause gives a reason, which is a statement even in a question."""
    return get_pattern("sentence.reason").match(text, start, end) is not None


# Opening words


def skip_opening(text: str, start: int, end: int) -> tuple[int, float]:
    """Skip greetings and fillers; return the start of the clause and its confidence."""
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
"""Adjectives before a job noun that is not meant as a job: "a real athlete"."""


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value and its span."""

    text: str
    start: int
    end: int


def find_value_end(text: str, start: int, end: int) -> int:
    """Return the end of the value that begins at a position."""
    for match in get_pattern("value.end").finditer(text, start, end):
        if match[0] not in (".", ":") or not get_pattern("value.harmless_stop").match(
            text, match.start(), end
        ):
            return match.start()
    return end


def trim_value(text: str, start: int, end: int, *, strip_article: bool = True) -> ValueSpan:
    """Trim a span to its value, removing the article unless told otherwise."""
    if strip_article and (lead_match := get_pattern("value.before").match(text, start, end)):
        start = lead_match.end()
    while start < end and text[start] in " \n,\"'*_":
        start += 1
    if tail_match := get_pattern("value.after").search(text, start, end):
        end = tail_match.start()
    return ValueSpan(text[start:end], start, end)


def split_items(text: str, start: int, end: int) -> Iterator[ValueSpan]:
    """Split a list such as "hiking, chess and sushi", stopping at the first non-item."""
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


# Value types


def is_thing(value: str, max_words: int = 6) -> bool:
    """Return True if a value is meaningful on its own."""
    if (
        not 0 < len(value) <= _MAX_VALUE_CHARS
        or len(value.split()) > max_words
        or value.lower() in load_words("EMPTY_VALUES")
    ):
        return False
    if get_pattern("value.vague").search(value) or get_pattern("value.weak_start").match(value):
        return False
    return re.search(r"\w\w|[A-Z]|\d", value) is not None


def is_name(value: str, *, require_known: bool = False) -> bool:
    """Return True if a value can be a name.

    With `require_known`, it must be capitalised or a known given name.
    """
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
    """Return the words that describe people and are no names."""
    return (
        load_words("NATIONS")
        | load_words("DIETS")
        | load_words("STATES")
        | load_words("TRAIT_ADJECTIVES")
    )


def is_place(value: str) -> bool:
    """Return True if a value can be a place name."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or parts[0] in load_words("PLACE_STOPS") | load_words("MONTHS"):
        return False
    if value.lower() in load_words("EMPTY_VALUES") or (
        value[0].islower() and parts[0] in load_words("EMPTY_VALUES")
    ):
        return False
    if re.search(r"\d{4,}", value) or not re.match(r"[^\W\d_]", value):
        return False
    if value[0].isupper():
        return len(parts) <= 3 or sum(part[0].isupper() for part in value.split()) >= 2
    return (
        len(parts) <= 3
        and load_words("EMPTY_VALUES").isdisjoint(parts)
        and parts[-1] not in load_words("DWELLINGS")
    )


def is_organization(value: str) -> bool:
    """Return True if a value can be the name of an employer or a school."""
    parts = value.lower().split()
    if not 0 < len(parts) <= 6 or (value[0].islower() and parts[0] in load_words("NOT_WORKPLACES")):
        return False
    if len(parts) == 1 and parts[0] in load_words("EMPTY_VALUES") | load_words("PLACE_STOPS"):
        return False
    if get_pattern("value.duration").search(value):
        return False
    return value[0].isdigit() or any(c.isupper() for c in value) or len(parts) <= 3


def is_job(value: str) -> bool:
    """Return True if a value is a known occupation."""
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
    """Return True if a value ends like an occupation; an article must confirm it."""
    parts = value.lower().split()
    last = parts[-1] if parts else ""
    return (
        len(parts) <= _MAX_TRADE_WORDS
        and last not in load_words("NOT_TRADES")
        and get_pattern("value.trade").fullmatch(last) is not None
    )


def is_activity(value: str) -> bool:
    """Return True if a value can be an activity."""
    parts = value.lower().split()
    if get_pattern("slots.empty_activity").fullmatch(value):
        return False
    is_valid_start = parts and (
        parts[0] not in load_words("NOT_ACTIVITIES")
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
"""The check of each value type."""


PRESENT, PAST, ING = TENSES = ("present", "past", "ing")
_MIN_SWAP_LENGTH: Final = 5
_MAX_TOKENS: Final = 9
"""Maximum number of auxiliaries and adverbs before a verb."""


@cache
def load_verb_forms() -> dict[str, tuple[str, str]]:
    """Return the lemma and tense of each known verb form, including transposed letters."""
    table: dict[str, tuple[str, str]] = {}
    for row in load_sections("verbs.txt")["verbs"]:
        for tense, tense_forms in zip(TENSES, row.split(" / "), strict=False):
            for form in tense_forms.split():
                table.setdefault(form, (row.split()[0], tense))
    return {
        swapped: form for word, form in table.items() for swapped in _swap_neighbours(word)
    } | table


def _swap_neighbours(word: str) -> list[str]:
    """Return the variants of a long word with two neighbouring letters swapped."""
    if len(word) < _MIN_SWAP_LENGTH:
        return []
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]


@dataclass(frozen=True, slots=True)
class VerbFeatures:
    """Tense, polarity and mood of a verb.

    `ended` marks a state that is over, `supposed` a duty or a near miss, `wished` a conditional,
    and `able` an ability.
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
    """A verb with its features, its position and the start of its complement."""

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
"""Verbs before which "'s" usually means "has"."""
_INVARIANT_PARTICIPLES: Final = frozenset(
    "run read quit become come set put cut hit split hurt".split()
)
"""Verbs whose participle equals the present."""
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
    """also really realy relly just still actually absolutely totally definitely truly deeply
    literally especially particularly recently finally already only even very pretty quite so too
    simply genuinely certainly honestly obviously basically both all kinda kind sort of
    officially originally mainly primarily largely personally strongly much secretly mostly fully
    completely seriously super happily proudly lately since long strictly newly once soon right
    then slowly gradually quickly constantly actively steadily""".split()
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
    """Parse the verb at the start of a span, with its auxiliaries, negations and adverbs."""
    return _VerbParser(text, end).parse_from(start)


class _VerbParser:
    """A parser that collects the features of auxiliaries word by word."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.flags: dict[str, bool] = {}
        self.auxiliary = ""
        self.is_past = False
        self.auxiliary_start = 0

    def parse_from(self, position: int) -> ParsedVerb | None:
        """Return the verb, or `be`, `have` or `do` if no other verb follows."""
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
        """Consume an auxiliary, negation or adverb; return False if the word is the verb."""
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
        """Build the verb from a word and the auxiliary before it, or None if it is no verb."""
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
        """Build the verb from the auxiliary itself."""
        for lemma, auxiliaries in (("be", _BE), ("have", _HAVE), ("do", _DO)):
            if self.auxiliary in auxiliaries:
                is_double_had = self.flags.get("had", False)
                if lemma == "have" and not is_double_had:
                    self.flags.pop("perfect", None)
                if self.auxiliary == "having":
                    tense = ING
                else:
                    tense = PAST if self.is_past or is_double_had else PRESENT
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
"""Adjectives that distinguish relatives."""


_KIN_TITLES: Final = frozenset("uncle aunt auntie cousin grandma grandpa granny nana".split())
"""Titles before the name of a relative, e.g. "Uncle Ray"."""


@dataclass(frozen=True, slots=True)
class Referent:
    """The subject of claims.

    `relation` is the relation to the speaker. `is_person` is False if the name may not denote a
    person.
    """

    name: str
    is_speaker: bool = False
    relation: str = ""
    is_person: bool = True


@dataclass(frozen=True, slots=True)
class ClauseSubject:
    """The subject of a clause, the start of its verb, and its name if given with a relation."""

    referent: Referent
    verb_start: int
    name: str = ""
    name_start: int = 0


def parse_subject(
    text: str, start: int, end: int, speaker: str, last_referent: Referent | None
) -> ClauseSubject | None:
    """Parse the subject at the start of a clause, or return None."""
    if match := get_pattern("speaker.first").match(text, start, end):
        return ClauseSubject(Referent(speaker, is_speaker=True), match.end())
    for name in ("nested", "relative", "apposed", "household", "kin"):
        if match := get_pattern(f"speaker.{name}").match(text, start, end):
            return (
                _parse_nested_relative(match, speaker)
                if name == "nested"
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
    """Parse a relative of a relative, e.g. "my girlfriend's parents"."""
    relation = match["relation"].lower()
    return ClauseSubject(
        Referent(f"{speaker}'s {match['owner'].lower()}'s {relation}", relation=relation),
        match.end(),
    )


def find_mentioned_relative(text: str, start: int, end: int, speaker: str) -> Referent | None:
    """Return the only relative mentioned in a span, for resolving "she", or None."""
    mentions = get_pattern("speaker.anywhere").finditer(text, start, end)
    people = [match for match in mentions if match["relation"].lower() not in load_words("PETS")]
    return parse_relative(people[0], speaker).referent if len(people) == 1 else None


def parse_relative(match: re.Match[str], speaker: str) -> ClauseSubject:
    """Parse a relative of the speaker, by name if one is given."""
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
        first_word in load_words("NOT_PERSONS")
        or not is_name(name, require_known=True)
        or (first_word in load_verb_forms() and not is_first_name)
    ):
        return None
    return ClauseSubject(Referent(capitalise_name(name), is_person=is_first_name), match.end())


def capitalise_name(name: str) -> str:
    """Capitalise a name written in lower case."""
    return (
        name
        if name != name.lower()
        else " ".join(part[:1].upper() + part[1:] for part in name.split())
    )
