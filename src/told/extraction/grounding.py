"""Ground claims: find where in the turns a claim was said.

Numbers must match exactly, names up to a typo or two, and at least half of the words in any
inflection. A date may have been said in other words ("last Friday"). Words of an assistant count
only if the user confirms them. Words of a tool or a document are never combined with a user's words
or attributed to the user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final

from told.extraction.prompting import is_fact_source
from told.ingest.messages import InputTurn
from told.model.beliefs import Trust, trust_of_channel
from told.model.entry import Claim
from told.model.kind import PREDICATES
from told.runtime import lazy_regex
from told.text import date_lexicon
from told.text.tokens import STOP_WORDS, normalise_text, split_sentences, stem_word

_TOKEN: Final = lazy_regex(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[^\W_]+")
_POSSESSIVE: Final = lazy_regex("['\u2019]s?$")
_DIGITS: Final = lazy_regex(r"\d+(?:[.,]\d+)*")
_YEAR: Final = lazy_regex(r"(?:1[89]|20)\d\d")
_MIN_SHARED_PREFIX: Final = 5
_MAX_ENDING: Final = 4
_ROOT_SYNONYMS: Final = {
    "kid": "child",
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "hubby": "husband",
}
_AGE_WORDS: Final = frozenset(("year", "yr", "old", "age"))
_COMMON_VERBS: Final = "loves enjoys hates moved called named said feels thinks".split()
_UNINFORMATIVE_ROOTS: Final = frozenset(
    stem_word(word) for name in (*PREDICATES, *_COMMON_VERBS) for word in name.split("_")
)


class MatchMode(Enum):
    """The comparison mode of a word."""

    WORD = "word"
    NAME = "name"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class TextToken:
    """A word with its span and the forms it is compared by."""

    start: int
    end: int
    form: str
    root: str
    value: str | None = None
    is_capitalised: bool = False


@dataclass(frozen=True, slots=True)
class SearchToken:
    """A word to search for and its comparison mode."""

    token: TextToken
    mode: MatchMode


def tokenize(text: str) -> list[TextToken]:
    """Split a text into tokens."""
    return [_build_token(text, match.start(), match.end()) for match in _TOKEN.finditer(text)]


def _build_token(text: str, start: int, end: int) -> TextToken:
    raw = text[start:end]
    plain = date_lexicon.fold_text(raw) or raw
    form = _POSSESSIVE.sub("", plain) or plain
    root = stem_word(form)
    return TextToken(
        start, end, form, _ROOT_SYNONYMS.get(root, root), parse_number(form), raw[0].isupper()
    )


@lru_cache(maxsize=1 << 12)
def parse_number(form: str) -> str | None:
    """Return the number a word denotes, in digits: "1,200", "1200" and "three".

    Articles are not numbers.
    """
    if _DIGITS.fullmatch(form):
        plain = re.sub(r",(?=\d{3}\b)", "", form).replace(",", ".")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"
    if form in STOP_WORDS or len(form) < 3:
        return None
    value = date_lexicon.NUMBER_WORDS.get(form)
    return None if value is None else str(value)


def extract_search_tokens(
    text: str, *, exclude: Collection[str] = (), is_sentence: bool = False
) -> list[SearchToken]:
    """Return the content words of a text, without stop words and the excluded forms.

    With `is_sentence`, a capital letter does not make the first word a name, and common verbs are
    not content words: "likes trains" must not ground "likes planes".
    """
    tokens = tokenize(text)
    has_date = any(_is_date(token) for token in tokens)
    content_tokens = [
        token for token in tokens if token.form not in exclude and token.form not in STOP_WORDS
    ]
    uninformative = (_UNINFORMATIVE_ROOTS | _AGE_WORDS) if is_sentence else _AGE_WORDS
    informative = (
        [token for token in content_tokens if token.root not in uninformative]
        or content_tokens
        or tokens
    )
    return [
        SearchToken(token, _get_match_mode(token, is_sentence and token.start == 0, has_date))
        for token in informative
    ]


def _get_match_mode(token: TextToken, is_leading: bool, has_date: bool) -> MatchMode:
    value = token.value
    if has_date and (
        _is_date(token) or (value is not None and value.isdecimal() and int(value) <= 31)
    ):
        return MatchMode.DATE
    if value is not None:
        return MatchMode.NUMBER
    return MatchMode.NAME if token.is_capitalised and not is_leading else MatchMode.WORD


def _is_date(token: TextToken) -> bool:
    return _YEAR.fullmatch(token.form) is not None or (
        token.is_capitalised and token.form in date_lexicon.CALENDAR_NAMES
    )


def is_token_match(search_token: SearchToken, token: TextToken) -> bool:
    """Return True if a token matches a search token."""
    wanted = search_token.token
    if wanted.form == token.form:
        return True
    if search_token.mode in (MatchMode.NUMBER, MatchMode.DATE):
        return wanted.value is not None and wanted.value == token.value
    if token.value is not None or wanted.value is not None:
        return False
    if wanted.root == token.root or is_within_edits(
        wanted.form, token.form, get_max_typos(wanted.form)
    ):
        return True
    return search_token.mode is MatchMode.WORD and _has_same_root(wanted.root, token.root)


def get_max_typos(form: str) -> int:
    """Return the number of typos allowed in a word of this length."""
    return 0 if len(form) < 5 else 1 if len(form) < 9 else 2


def _has_same_root(left: str, right: str) -> bool:
    """Return True if two roots share a prefix and differ only in a short ending."""
    shared = next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    return shared >= _MIN_SHARED_PREFIX and max(len(left), len(right)) - shared <= _MAX_ENDING


@lru_cache(maxsize=1 << 14)
def is_within_edits(left: str, right: str, max_edits: int) -> bool:
    """Return True if two words are within `max_edits` edits, counting a transposition as one."""
    if abs(len(left) - len(right)) > max_edits:
        return False
    if not max_edits:
        return left == right
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, 1):
            best = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        if min(row) > max_edits:
            return False
    return row[-1] <= max_edits


def build_initials(search_tokens: list[SearchToken]) -> list[str]:
    """Return the initials of the multi-word name each search token belongs to, else "".

    Both words of "San Francisco" have the initials "sf".
    """
    short_forms: list[str] = []
    for is_name, run in groupby(
        search_tokens, key=lambda search_token: search_token.mode is MatchMode.NAME
    ):
        letters = [search_token.token.form[0] for search_token in run]
        short_forms += ["".join(letters) if is_name and len(letters) > 1 else ""] * len(letters)
    return short_forms


MIN_WORD_SHARE: Final = 0.5
MAX_WINDOW: Final = 3
"""Maximum number of consecutive sentences that may support one claim."""
MIN_QUOTE_SHARE: Final = 0.8
"""Minimum share of a quote's words that must match."""

DEFAULT_SPEAKER: Final = "User"
"""Subject of claims when the speaker has no name."""

FIRST_UNSPACED_CHAR: Final = "\u0e00"
"""Scripts from here on mostly have no spaces, or attach particles to words."""

_AFFIRMATION: Final = lazy_regex(
    r"\W*(?:yes|yeah|yep|yup|yea|right|correct|exactly|indeed|sure|absolutely|definitely|true"
    r"|of course|that'?s right"
    r"|i do|i am|i did|ja|genau|stimmt|oui|si|s[ií]|claro|sim|da|да|はい|是)(?!\w)",
    re.IGNORECASE,
)
_ELLIPSIS: Final = lazy_regex(r"\s*(?:\.\.\.|\u2026|\[\.\.\.\])\s*")


@dataclass(frozen=True, slots=True)
class TextLocation:
    """A turn and a span in it.

    `unconfirmed` is set if only an assistant said it.
    """

    turn: int
    span: tuple[int, int]
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class _IndexedSentence:
    turn: int
    start: int
    end: int
    plain: str
    tokens: tuple[TextToken, ...]


class GroundingIndex:
    """An index of the turns for finding quotes, values and claims."""

    def __init__(self, turns: Sequence[InputTurn]) -> None:
        self.turns = turns
        self._tiers = _group_by_trust(turns)
        self._sentences = [
            sentence
            for number, turn in enumerate(turns)
            for sentence in _split_sentences(number, turn.evidence.content)
        ]
        self._has_time = [
            date_lexicon.count_time_words(turn.evidence.content, 1) > 0 for turn in turns
        ]
        self._by_form: dict[str, set[int]] = {}
        self._by_number: dict[str, set[int]] = {}
        self._by_letter: dict[str, dict[str, TextToken]] = {}
        self._similar_cache: dict[tuple[str, MatchMode], set[int]] = {}
        for number, sentence in enumerate(self._sentences):
            for token in sentence.tokens:
                self._by_form.setdefault(token.form, set()).add(number)
                self._by_letter.setdefault(token.form[0], {}).setdefault(token.form, token)
                if token.value is not None:
                    self._by_number.setdefault(token.value, set()).add(number)

    def find_value(
        self, value: str, *, exclude: Collection[str] = (), is_sentence: bool = False
    ) -> TextLocation | None:
        """Return the location of a value, searching the most trusted turns first, or None."""
        locations = self._find_locations(value, exclude=exclude, is_sentence=is_sentence)
        return next(locations, None)

    def locate_claim(self, claim: Claim) -> TextLocation | None:
        """Return the location of a claim's value that shares the most words with the claim.

        Only turns that are a source of facts compete; otherwise the first location wins.
        """
        query = _build_claim_query(claim)
        locations = list(
            self._find_locations(query.value, exclude=query.exclude, is_sentence=query.is_sentence)
        )
        people_locations = [
            location
            for location in locations
            if is_fact_source(self.turns[location.turn]) and not location.unconfirmed
        ]
        if len(people_locations) < 2:
            return next(iter(locations), None)
        roots = {
            token.token.root
            for token in extract_search_tokens(claim.text, exclude=_get_subject_forms(claim))
        }
        return max(people_locations, key=lambda location: len(roots & self._get_roots_at(location)))

    def is_claim_at(self, claim: Claim, location: TextLocation) -> bool:
        """Return True if the sentences at a location contain the value of a claim."""
        query = _build_claim_query(claim)
        search_tokens = extract_search_tokens(
            query.value, exclude=query.exclude, is_sentence=query.is_sentence
        )
        return bool(search_tokens) and self._is_supported(
            search_tokens,
            self._find_sentences(search_tokens),
            self._get_sentences_at(location),
            location.turn,
        )

    def locate_quote(self, text: str) -> TextLocation | None:
        """Return the location of a quote, allowing small differences and an ellipsis."""
        parts = [part for part in _ELLIPSIS.split(text) if tokenize(part)]
        for number in (number for tier in self._tiers for number in tier):
            if span := _find_quote(parts, self.turns[number].evidence.content):
                return self._resolve_confirmation(TextLocation(number, span))
        return None

    def find_confirmed_turn(self, location: TextLocation) -> TextLocation | None:
        """Return the assistant turn that a turn confirms, or None."""
        before = location.turn - 1
        if (
            before < 0
            or is_fact_source(self.turns[before])
            or not self._is_agreement(location.turn)
        ):
            return None
        return TextLocation(before, (0, len(self.turns[before].evidence.content)))

    def get_fallback_turn(self) -> int:
        """Return the last turn of the least trusted source, for claims without a location.

        An assistant's turn is used only if there is no other.
        """
        people = [tier for tier in self._tiers if is_fact_source(self.turns[tier[-1]])]
        return people[-1][-1] if people else max(len(self.turns) - 1, 0)

    def _find_locations(
        self, value: str, *, exclude: Collection[str], is_sentence: bool
    ) -> Iterator[TextLocation]:
        """Yield the best location of a value in each trust tier, the most trusted first."""
        if not value.strip():
            return
        search_tokens = extract_search_tokens(value, exclude=exclude, is_sentence=is_sentence)
        for tier in self._tiers:
            location = self._find_verbatim(value, tier) or self._find_window(search_tokens, tier)
            if location is not None:
                yield self._resolve_confirmation(location)

    def _get_sentences_at(self, location: TextLocation) -> set[int]:
        return {
            number
            for number, sentence in enumerate(self._sentences)
            if _has_overlap(sentence, location)
        }

    def _get_roots_at(self, location: TextLocation) -> set[str]:
        return {
            token.root
            for number in self._get_sentences_at(location)
            for token in self._sentences[number].tokens
        }

    def _is_agreement(self, turn: int) -> bool:
        """Return True if a turn is a user's and begins with a yes."""
        evidence = self.turns[turn].evidence
        return (
            trust_of_channel(evidence.role, evidence.sort) is Trust.USER
            and _AFFIRMATION.match(evidence.content) is not None
        )

    def _resolve_confirmation(self, location: TextLocation) -> TextLocation:
        """Move an assistant's location to the user turn confirming it, or mark it unconfirmed."""
        after = location.turn + 1
        if is_fact_source(self.turns[location.turn]):
            return location
        if after < len(self.turns) and self._is_agreement(after):
            return TextLocation(after, (0, len(self.turns[after].evidence.content)))
        return TextLocation(location.turn, location.span, unconfirmed=True)

    def _find_verbatim(self, value: str, tier: Sequence[int]) -> TextLocation | None:
        """Find the sentence with the exact value; this also works in scripts without spaces."""
        plain = normalise_text(value)
        if len(plain) < 2 and plain < FIRST_UNSPACED_CHAR:
            return None
        edges = (r"(?<!\w)" if plain[0].isascii() else "", r"(?!\w)" if plain[-1].isascii() else "")
        pattern = re.compile(f"{edges[0]}{re.escape(plain)}{edges[1]}")
        tier_turns = frozenset(tier)
        for sentence in self._sentences:
            if sentence.turn in tier_turns and pattern.search(sentence.plain):
                return TextLocation(sentence.turn, (sentence.start, sentence.end))
        return None

    def _find_window(
        self, search_tokens: list[SearchToken], tier: Sequence[int]
    ) -> TextLocation | None:
        """Find the shortest run of sentences that contains the value, else the best sentence."""
        sentence_sets, tier_turns = self._find_sentences(search_tokens), frozenset(tier)
        best_match: tuple[float, int, TextLocation] | None = None
        for begin in sorted(set().union(*sentence_sets)):
            turn = self._sentences[begin].turn
            if turn not in tier_turns:
                continue
            for end in range(begin + 1, min(begin + MAX_WINDOW, len(self._sentences)) + 1):
                if self._sentences[end - 1].turn != turn:
                    break
                window = set(range(begin, end))
                score = sum(not window.isdisjoint(sentence_set) for sentence_set in sentence_sets)
                if self._is_supported(search_tokens, sentence_sets, window, turn) and (
                    best_match is None or (score, begin - end) > best_match[:2]
                ):
                    location = TextLocation(
                        turn, (self._sentences[begin].start, self._sentences[end - 1].end)
                    )
                    best_match = (score, begin - end, location)
        if best_match:
            return best_match[2]
        if is_fact_source(self.turns[tier[0]]):
            return self._find_scattered(search_tokens, sentence_sets, tier)
        return None

    def _find_scattered(
        self, search_tokens: list[SearchToken], sentence_sets: list[set[int]], tier: Sequence[int]
    ) -> TextLocation | None:
        """Find the best sentence if the value is spread over several turns of a tier."""
        tier_turns = frozenset(tier)
        everything = {
            number
            for number, candidate in enumerate(self._sentences)
            if candidate.turn in tier_turns
        }
        if not self._is_supported(search_tokens, sentence_sets, everything, *tier):
            return None
        number = max(
            everything,
            key=lambda candidate: (
                sum(candidate in sentence_set for sentence_set in sentence_sets),
                candidate,
            ),
        )
        candidate = self._sentences[number]
        return TextLocation(candidate.turn, (candidate.start, candidate.end))

    def _is_supported(
        self,
        search_tokens: list[SearchToken],
        sentence_sets: list[set[int]],
        window: set[int],
        *turns: int,
    ) -> bool:
        """Return True if all numbers, dates and names and half of the words are in the window."""
        has_time = any(self._has_time[turn] for turn in turns)
        present = [
            not window.isdisjoint(sentence_set) or (token.mode is MatchMode.DATE and has_time)
            for token, sentence_set in zip(search_tokens, sentence_sets, strict=True)
        ]
        if not all(
            is_present or token.mode is MatchMode.WORD
            for token, is_present in zip(search_tokens, present, strict=True)
        ):
            return False
        word_presence = [
            is_present
            for token, is_present in zip(search_tokens, present, strict=True)
            if token.mode in (MatchMode.WORD, MatchMode.NAME)
        ]
        return any(word_presence or present) and sum(word_presence) >= MIN_WORD_SHARE * len(
            word_presence
        )

    def _find_sentences(self, search_tokens: list[SearchToken]) -> list[set[int]]:
        """Return the sentences that contain each search token.

        Other spellings count only if the exact word occurs nowhere.
        """
        short_forms = build_initials(search_tokens)
        return [
            self._by_form.get(token.token.form)
            or self._find_similar(token)
            or self._by_form.get(short_form, set())
            for token, short_form in zip(search_tokens, short_forms, strict=True)
        ]

    def _find_similar(self, search_token: SearchToken) -> set[int]:
        """Return the sentences with the same number or a similar word.

        Only words that begin with one of the first two letters are compared.
        """
        if search_token.token.value is not None:
            return self._by_number.get(search_token.token.value, set())
        form = search_token.token.form
        key = (form, search_token.mode)
        if key not in self._similar_cache:
            same_letter = (self._by_letter.get(letter, {}) for letter in dict.fromkeys(form[:2]))
            forms = (
                other
                for tokens_by_form in same_letter
                for other, token in tokens_by_form.items()
                if is_token_match(search_token, token)
            )
            self._similar_cache[key] = self._find_substring(form).union(
                *(self._by_form[other] for other in forms)
            )
        return self._similar_cache[key]

    def _find_substring(self, form: str) -> set[int]:
        """Return the sentences that contain a word of a script without spaces as a substring."""
        if form < FIRST_UNSPACED_CHAR:
            return set()
        return {
            number
            for number, sentence in enumerate(self._sentences)
            if form in date_lexicon.fold_text(sentence.plain)
        }


@dataclass(frozen=True, slots=True)
class _ClaimQuery:
    """The text to look up for a claim: its object, or its text without the subject."""

    value: str
    exclude: frozenset[str]
    is_sentence: bool


def _build_claim_query(claim: Claim) -> _ClaimQuery:
    if claim.object is not None:
        return _ClaimQuery(claim.object, frozenset(), is_sentence=False)
    return _ClaimQuery(claim.text, _get_subject_forms(claim), is_sentence=True)


def _get_subject_forms(claim: Claim) -> frozenset[str]:
    """Return the word forms of a claim's subject."""
    return frozenset(token.form for token in tokenize(f"{DEFAULT_SPEAKER} {claim.subject or ''}"))


def _group_by_trust(turns: Sequence[InputTurn]) -> list[Sequence[int]]:
    """Group turn numbers by trust, the most trusted first and assistants last."""
    tiers: dict[tuple[bool, Trust], list[int]] = {}
    for number, turn in enumerate(turns):
        key = is_fact_source(turn), trust_of_channel(turn.evidence.role, turn.evidence.sort)
        tiers.setdefault(key, []).append(number)
    return [tiers[key] for key in sorted(tiers, reverse=True)]


def _has_overlap(sentence: _IndexedSentence, location: TextLocation) -> bool:
    return (
        sentence.turn == location.turn
        and sentence.start < location.span[1]
        and location.span[0] < sentence.end
    )


def _split_sentences(turn: int, content: str) -> list[_IndexedSentence]:
    """Split a turn into sentences with their spans and tokens."""
    indexed: list[_IndexedSentence] = []
    position = 0
    for sentence in split_sentences(content):
        start = content.index(sentence, position)
        position = start + len(sentence)
        indexed.append(
            _IndexedSentence(
                turn, start, position, normalise_text(sentence), tuple(tokenize(sentence))
            )
        )
    return indexed


def _find_quote(parts: Sequence[str], content: str) -> tuple[int, int] | None:
    """Return the span of a text that contains all parts of a quote in order, or None."""
    tokens = tokenize(content)
    spans: list[tuple[int, int]] = []
    for part in parts:
        span = _align_tokens(
            [SearchToken(token, MatchMode.NAME) for token in tokenize(part)], tokens
        )
        if span is None:
            return None
        spans.append(span)
    if not spans or any(later[0] < earlier[0] for earlier, later in pairwise(spans)):
        return None
    return spans[0][0], spans[-1][1]


def _align_tokens(
    search_tokens: list[SearchToken], tokens: list[TextToken]
) -> tuple[int, int] | None:
    """Return the span of the best match of consecutive words, tolerating one mismatch in five."""
    best, span = 0, None
    for begin in range(max(len(tokens) - len(search_tokens), 0) + 1):
        run = tokens[begin : begin + len(search_tokens)]
        matching = sum(
            is_token_match(search_token, token)
            for search_token, token in zip(search_tokens, run, strict=False)
        )
        if matching > best and matching >= MIN_QUOTE_SHARE * len(search_tokens):
            best, span = matching, (run[0].start, run[-1].end)
    return span
