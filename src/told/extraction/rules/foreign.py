"""Parse common self-descriptions in other languages.

Values keep their original wording; the claim text is English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.extraction.rules.attributes import build_favourite
from told.extraction.rules.claim import ASSERTED, NEGATED, RuleClaim, TurnContext, build_sentence
from told.extraction.rules.grammar import SentenceSpan, ValueSpan, capitalise_name, is_name
from told.extraction.rules.lexicon import expand_macros, get_pattern, load_sections
from told.extraction.rules.people import build_relation_claim
from told.runtime import lazy_regex

_PHRASES: Final = {
    "name": "'s name is {}",
    "lives_in": "live in {}",
    "works_at": "work at {}",
    "works_as": "work as {}",
    "likes": "like {}",
    "dislikes": "dislike {}",
    "allergic_to": "be allergic to {}",
    "comes_from": "come from {}",
    "age": "be {} years old",
    "diet": "be {}",
    "speaks": "speak {}",
    "has_pet": "have {}",
    "has_child": "have {}",
    "learning": "be learning {}",
    "nickname": "go by {}",
    "relationship_status": "be {}",
    "studies": "study {}",
    "studies_at": "study at {}",
    "has_condition": "have {}",
    "avoids": "avoid {}",
    "has_sibling": "have {}",
    "has_partner": "be with {}",
    "plays": "play {}",
    "uses": "use {}",
    "drives": "drive {}",
    "bought": "=bought {}",
    "born_in": "=was born in {}",
    "is": "be {}",
    "prefers": "prefer {}",
    "birthday": "'s birthday is {}",
    "reply_style": "want the assistant to {}",
    "born_on": "=was born on {}",
    "manager": "'s manager is {}",
    "married_to": "be married to {}",
    "takes": "take {}",
    "budget": "'s budget is {}",
    "habit": "have the habit of {}",
    "goal": "want {}",
    "plans": "plan {}",
}
_NAMED_PHRASES: Final = {
    "has_sibling": "have a sibling named {}",
    "has_child": "have a child named {}",
    "has_pet": "have a pet named {}",
}
_I_AM: Final = lazy_regex(r"\b(?:soy|sono|sou) ", re.IGNORECASE)
"""Words for "I am", which often precede something other than a name."""
_CONFIDENCE = 0.85
_MAX_WORDS = 5
_MAX_SENTENCE_CHARS: Final = 800
"""Maximum number of characters of a sentence that are read."""
_MAX_ENGLISH_WORDS = 1
"""Maximum number of English words in a foreign sentence."""


@dataclass(frozen=True, slots=True)
class _ForeignPattern:
    """A sentence pattern with its predicate and polarity."""

    predicate: str
    is_negated: bool
    pattern: re.Pattern[str]


@cache
def _load_marker_words() -> dict[str, tuple[str, ...]]:
    """Return the languages of each marker word."""
    table: dict[str, tuple[str, ...]] = {}
    for language, rows in load_sections("languages.txt").items():
        for word in rows[0].removeprefix("markers: ").split():
            table[word] = (*table.get(word, ()), language)
    return table


@cache
def _load_kin_words(language: str) -> Mapping[str, str]:
    """Return the words for relatives in a language, mapped to English."""
    rows = (
        row.removeprefix("kin: ")
        for row in load_sections("languages.txt")[language]
        if row.startswith("kin: ")
    )
    pairs = (pair.partition("=") for row in rows for pair in row.split())
    return {word: relation for word, _, relation in pairs}


@cache
def _load_patterns(language: str) -> tuple[_ForeignPattern, ...]:
    """Return the sentence patterns of a language."""
    rows = (row.partition(": ") for row in load_sections("languages.txt")[language])
    return tuple(
        _ForeignPattern(
            head.rpartition(" ")[2], head.startswith("NOT "), _compile_template(template, language)
        )
        for head, _, templates in rows
        if head not in ("markers", "kin")
        for template in templates.split("; ")
    )


def _compile_template(template: str, language: str) -> re.Pattern[str]:
    name = r"(?P<name>[^\W\d_][\w'-]*(?: (?-i:[A-ZÀ-Þ])[\w'-]*)?)"
    kin = rf"<foreign.mine> ?(?:[\w-]+ )?(?P<kin>{'|'.join(_load_kin_words(language))})"
    kin = rf"{kin}(?: (?P<called>(?-i:[A-ZÀ-Þ])[\w-]+))?<foreign.resumption>"
    body = template.replace("{name}", name).replace("{n}", r"(?P<n>\d{1,3})").replace("{kin}", kin)
    body = re.sub(r"\{(v|l)\}", r"(?P<\1>\\S.*?)", body)
    end = "$" if template.endswith(("{v}", "{l}")) else r"(?!\w)"
    return re.compile(expand_macros(f"<foreign.open>(?:{body})") + end, re.IGNORECASE)


def is_foreign(text: str) -> bool:
    """Return True if a text seems to be in a supported foreign language."""
    return bool(_detect_languages(text))


def _detect_languages(text: str) -> list[str]:
    """Return the languages a text may be in, or [] if it is English."""
    marker_words = _load_marker_words()
    if not text.isascii() and (script := get_pattern("foreign.script").search(text)):
        return ["ja" if get_pattern("foreign.kana").search(text) else script.lastgroup or ""]
    detected = [
        name
        for word in get_pattern("foreign.words").findall(text.lower())
        for name in marker_words.get(word, ())
    ]
    return (
        detected
        if detected and len(get_pattern("foreign.english").findall(text)) <= _MAX_ENGLISH_WORDS
        else []
    )


def parse_foreign(ctx: TurnContext, sentence: SentenceSpan) -> list[RuleClaim]:
    """Parse a foreign sentence; return [] for English."""
    sentence = replace(sentence, end=min(sentence.end, sentence.start + _MAX_SENTENCE_CHARS))
    text = ctx.text[sentence.start : sentence.end].lstrip()
    detected = dict.fromkeys(_detect_languages(text))
    named_claims = [
        claim for language in detected for claim in _parse_named_relatives(ctx, sentence, language)
    ]
    if sentence.is_question:
        return named_claims
    claims = [
        claim
        for language in detected
        for foreign_pattern in _load_patterns(language)
        for match in foreign_pattern.pattern.finditer(text)
        for claim in _build_claims(
            foreign_pattern,
            _find_subject_name(ctx, match, language),
            match,
            sentence.end - len(text),
        )
    ]
    return named_claims + [
        claim for claim in claims if not any(_is_more_specific(other, claim) for other in claims)
    ]


def _is_more_specific(claim: RuleClaim, other: RuleClaim) -> bool:
    """Return True if a claim contains the other one and says more."""
    is_same_slot = (claim.subject, claim.predicate, claim.polarity) == (
        other.subject,
        other.predicate,
        other.polarity,
    )
    is_within = (
        claim.end - len(claim.object) <= other.end - len(other.object) and other.end <= claim.end
    )
    return (
        is_same_slot
        and is_within
        and len(claim.object) > len(other.object)
        and other.object in claim.object
    )


@cache
def _build_kin_pattern(language: str) -> re.Pattern[str] | None:
    """Build the pattern for a named relative, e.g. "mi novio Iker"."""
    kin = "|".join(_load_kin_words(language))
    form = rf"(?<!\w)<foreign.mine> (?P<kin>{kin}),? (?P<name>(?-i:[A-ZÀ-Þ])[\w-]+)"
    return re.compile(expand_macros(form), re.IGNORECASE) if kin else None


def _parse_named_relatives(
    ctx: TurnContext, sentence: SentenceSpan, language: str
) -> Iterator[RuleClaim]:
    """Parse every relative of the speaker named in a sentence."""
    kin_pattern = _build_kin_pattern(language)
    for match in (
        kin_pattern.finditer(ctx.text, sentence.start, sentence.end) if kin_pattern else ()
    ):
        if is_name(match["name"], require_known=True):
            relation = _load_kin_words(language)[match["kin"].lower()]
            yield build_relation_claim(ctx.speaker, relation, match["name"], *match.span())


def _find_subject_name(ctx: TurnContext, match: re.Match[str], language: str) -> str:
    """Return the subject of a match: the speaker or a relative."""
    relation = match.groupdict().get("kin")
    if relation is None:
        return ctx.speaker
    return match["called"] or f"{ctx.speaker}'s {_load_kin_words(language)[relation.lower()]}"


def _build_claims(
    foreign_pattern: _ForeignPattern, subject: str, match: re.Match[str], offset: int
) -> Iterator[RuleClaim]:
    """Build the claims of a match, one per value."""
    if foreign_pattern.predicate == "lives_in" and get_pattern("foreign.temporary").search(
        match.string, match.start()
    ):
        return
    polarity = NEGATED if foreign_pattern.is_negated else ASSERTED
    start = offset + match.end() - len(match[0].lstrip(" ,.;:!\u00a1\u3001\uff0c"))
    for value in _parse_match_values(match):
        shown = capitalise_name(value.text) if match.groupdict().get("name") else value.text
        end = offset + value.end
        if foreign_pattern.predicate == "favourite":
            yield build_favourite(
                subject, match["topic"].lower(), replace(value, end=end), start, end
            )
            continue
        phrases = (
            _NAMED_PHRASES if shown[:1].isupper() and "w" not in match.re.groupindex else _PHRASES
        )
        phrase = phrases.get(foreign_pattern.predicate, _PHRASES[foreign_pattern.predicate]).format(
            shown
        )
        ended = get_pattern("foreign.no_longer").search(match[0]) is not None
        text = build_sentence(subject, phrase, polarity, is_ended=ended)
        yield RuleClaim(
            subject,
            foreign_pattern.predicate,
            shown,
            text,
            start,
            end,
            polarity,
            confidence=_CONFIDENCE,
        )


def _parse_match_values(match: re.Match[str]) -> list[ValueSpan]:
    """Return the values of a match by the kind of its group."""
    group = next(name for name in ("name", "n", "w", "v", "l") if match.groupdict().get(name))
    text, (start, end) = match.string, match.span(group)
    if group in ("n", "w") or (
        group == "name" and is_name(match[group], require_known=_I_AM.search(match[0]) is not None)
    ):
        return [ValueSpan(match[group], start, end)]
    if group == "name":
        return []
    stop_match = next(
        (
            stop_match.start()
            for stop_match in get_pattern("foreign.stop").finditer(text, start, end)
            if stop_match.start() > start and not (group == "l" and stop_match[0] == ",")
        ),
        end,
    )
    return (
        _split_list(text, start, stop_match)
        if group == "l"
        else _keep_short_values([_trim_foreign_value(text, start, stop_match)])
    )


def _split_list(text: str, start: int, end: int) -> list[ValueSpan]:
    commas = list(get_pattern("foreign.list").finditer(text, start, end))
    starts = [start, *(comma.end() for comma in commas)]
    ends = [*(comma.start() for comma in commas), end]
    return _keep_short_values(
        [_trim_foreign_value(text, first, last) for first, last in zip(starts, ends, strict=True)]
    )


def _keep_short_values(values: list[ValueSpan]) -> list[ValueSpan]:
    """Return the values up to the first that is empty or too long."""
    validity = (
        0 < len(value.text.split()) <= _MAX_WORDS and not _is_addressee_owned(value)
        for value in values
    )
    first_invalid = next(
        (number for number, is_valid in enumerate(validity) if not is_valid), len(values)
    )
    return values[:first_invalid]


def _is_addressee_owned(value: ValueSpan) -> bool:
    """Return True if a value belongs to the addressee, e.g. "your answer"."""
    return get_pattern("foreign.addressee").match(value.text) is not None


def _trim_foreign_value(text: str, start: int, end: int) -> ValueSpan:
    """Strip the article and punctuation around a value."""
    while start < end and text[start] in " '\"":
        start += 1
    if match := get_pattern("foreign.article").match(text, start, end):
        start = match.end()
    while end > start and text[end - 1] in " '\"!.,":
        end -= 1
    return ValueSpan(text[start:end], start, end)
