"""Match the example sentences of a concept against turns, without a model.

In "I love X" the X is a placeholder: "I really love jazz and chess" yields two values and "I don't
love jazz any more" a negated one. "I'm deaf" has no placeholder: its own content words are the
value. Questions are skipped, except an assistant's question that the user answers with yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from told.extraction.grounding import extract_search_tokens
from told.extraction.rules.grammar import find_value_end, is_thing, split_items, trim_value
from told.extraction.rules.normalise import mask_foreign_text
from told.runtime import lazy_regex
from told.text.tokens import split_sentences

PLACEHOLDER: Final = lazy_regex(r"(?<![\w'])(?:[XYZ]|\.{3}|\u2026|<[^>]+>|\{[^}]+\})(?![\w'])")
AFFIRMATION: Final = lazy_regex(
    r"\W*(?:yes|yeah|yep|yup|right|correct|exactly|indeed|sure|absolutely|definitely"
    r"|of course|that's right|i do|i am)\b",
    re.IGNORECASE,
)
_FILLERS: Final = (
    "really just only also still actually absolutely truly honestly always so very quite rather "
    "totally simply mostly especially particularly currently now usually today even too "
    "definitely certainly mainly pretty".split()
)
_FILLER_GAP: Final = (
    rf"(?:\s+(?:{'|'.join(_FILLERS)}|kind\s+of|sort\s+of|a\s+bit|a\s+lot)){{0,4}}\s+"
)
_APPROXIMATION: Final = lazy_regex(
    r"(?:about|around|roughly|nearly|almost|maybe|perhaps|probably|like)\s+", re.IGNORECASE
)
_OWN_POSSESSIVE: Final = lazy_regex(r"(?:my|our|your)\s+", re.IGNORECASE)
_DURATION: Final = lazy_regex(
    r"an?\s+(?:half[\s-]|quarter[\s-])?(?:second|minute|hour|day|night|week|month|year)s?\b",
    re.IGNORECASE,
)
_NEGATION: Final = r"(?:don't|do\s+not|didn't|did\s+not|doesn't|no\s+longer|never|not)"
PRONOUN_FORMS: Final = {
    "i": ("I", "you"),
    "i'm": (r"(?:I'm|I\s+am|im)", r"(?:you're|you\s+are)"),
    "i've": (r"(?:I've|I\s+have)", r"(?:you've|you\s+have)"),
    "i'd": (r"(?:I'd|I\s+would)", r"(?:you'd|you\s+would)"),
    "i'll": (r"(?:I'll|I\s+will)", r"(?:you'll|you\s+will)"),
    "my": ("my", "your"),
    "me": ("me", "you"),
    "am": ("am", "are"),
}
_SUBJECT_PRONOUNS: Final = ("i", "i'm", "i've", "i'd", "i'll")


@dataclass(frozen=True, slots=True)
class ExampleMatch:
    """A value matched by an example, with its spans, its polarity and the example's specificity."""

    value: str
    start: int
    value_start: int
    end: int
    is_negated: bool
    specificity: int


@dataclass(frozen=True, slots=True)
class ExamplePattern:
    """A compiled example; without a placeholder its own content words are the value."""

    pattern: re.Pattern[str]
    has_placeholder: bool
    specificity: int


def match_examples(
    examples: Sequence[str], text: str, *, second_person: bool = False
) -> list[ExampleMatch]:
    """Return the values that match examples in a text.

    With `second_person`, "I" in an example also matches "you".
    """
    plain = text.replace("\u2019", "'") if second_person else mask_foreign_text(text)
    spans = [
        (start, end)
        for start, end in _split_sentence_spans(plain)
        if not plain[start:end].rstrip().endswith("?")
    ]
    return list(_match_patterns(examples, plain, spans, second_person=second_person))


def match_confirmed(examples: Sequence[str], question: str, answer: str) -> list[ExampleMatch]:
    """Return the values in an assistant's turn if the answer to it begins with a yes."""
    plain = question.replace("\u2019", "'")
    return (
        list(
            _match_patterns(examples, plain, list(_split_sentence_spans(plain)), second_person=True)
        )
        if AFFIRMATION.match(answer)
        else []
    )


def _match_patterns(
    examples: Sequence[str], text: str, spans: Sequence[tuple[int, int]], *, second_person: bool
) -> Iterator[ExampleMatch]:
    for example_pattern in filter(
        None, (_compile_example(example, second_person) for example in examples)
    ):
        for start, end in spans:
            for match in example_pattern.pattern.finditer(text, start, end):
                yield from _extract_values(
                    example_pattern, text, match, end, second_person=second_person
                )


def _extract_values(
    example_pattern: ExamplePattern,
    text: str,
    match: re.Match[str],
    end: int,
    *,
    second_person: bool,
) -> Iterator[ExampleMatch]:
    """Yield the values of a match: the example's own words, or the items in its placeholder."""
    is_negated = match["no"] is not None
    if not example_pattern.has_placeholder:
        plain = " ".join(match["value"].split())
        yield ExampleMatch(
            plain,
            match.start(),
            match.start("value"),
            match.end(),
            is_negated,
            example_pattern.specificity,
        )
        return
    start = match.start("value")
    for lead in (_APPROXIMATION, _OWN_POSSESSIVE):
        if lead_match := lead.match(text, start):
            start = lead_match.end()
    stop = (
        match.end("value")
        if match["after"]
        else find_value_end(text, start, _find_comma(text, start, end) if second_person else end)
    )
    values = (
        [trim_value(text, start, stop, strip_article=False)]
        if _DURATION.match(text, start)
        else split_items(text, start, stop)
    )
    for value in values:
        if is_thing(value.text):
            yield ExampleMatch(
                value.text,
                match.start(),
                value.start,
                value.end,
                is_negated,
                example_pattern.specificity,
            )


def _find_comma(text: str, start: int, end: int) -> int:
    """Return the position of the next comma, or `end`: assistants continue with advice after it."""
    comma = text.find(",", start, end)
    return end if comma < 0 else comma


def _split_sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    position = 0
    for sentence in split_sentences(text):
        start = text.find(sentence, position)
        position = start + len(sentence)
        yield start, position


# Patterns


@lru_cache(maxsize=1 << 10)
def _compile_example(example: str, second_person: bool) -> ExamplePattern | None:
    """Compile an example to a pattern; return None if it has only a placeholder."""
    text = example.replace("\u2019", "'")
    before, *rest = PLACEHOLDER.split(text, maxsplit=1)
    if not rest:
        return _compile_literal(text, second_person)
    lead, tail = _tokenize_example(before), _tokenize_example(rest[0])
    if not lead and not tail:
        return None
    lead_pattern = (
        _build_lead_pattern(lead, second_person) + _FILLER_GAP
        if lead
        else r"(?P<no>(?!))?(?:(?<=^)|(?<=[.,;!]\s))"
    )
    tail_pattern = rf"{_FILLER_GAP}{_join_tokens(tail, second_person)}\b" if tail else ""
    value_pattern = r"(?P<value>\S(?:.{0,60}?\S)?)" if tail_pattern else r"(?P<value>\S.*)"
    pattern = rf"(?<![\w']){lead_pattern}{value_pattern}(?P<after>{tail_pattern})"
    return ExamplePattern(re.compile(pattern, re.IGNORECASE), True, len(lead) + len(tail))


def _compile_literal(example: str, second_person: bool) -> ExamplePattern | None:
    """Compile an example without a placeholder: its content words are the value."""
    tokens = _tokenize_example(example)
    start = 1 if tokens and tokens[0].lower() in PRONOUN_FORMS else 0
    rest = " ".join(tokens[start:])
    informative = (
        {needle.token.form for needle in extract_search_tokens(rest, is_sentence=True)}
        if rest
        else frozenset[str]()
    )
    value_index = next(
        (
            index
            for index, token in enumerate(tokens)
            if index >= start and token.lower() in informative
        ),
        None,
    )
    if value_index is None:
        return None
    lead_pattern = (
        _build_lead_pattern(tokens[:value_index], second_person) + _FILLER_GAP
        if value_index
        else "(?P<no>(?!))?"
    )
    value_pattern = _join_tokens(tokens[value_index:], second_person)
    pattern = rf"(?<![\w']){lead_pattern}(?P<value>{value_pattern})(?![\w'])"
    return ExamplePattern(re.compile(pattern, re.IGNORECASE), False, len(tokens) + 1)


def _tokenize_example(text: str) -> list[str]:
    return [token for token in (part.strip('.,;:!?"()') for part in text.split()) if token]


def _build_lead_pattern(tokens: Sequence[str], second_person: bool) -> str:
    """Build the pattern of the words before the value, allowing fillers and a negation."""
    head, *tail = tokens
    negation = (
        rf"(?P<no>{_FILLER_GAP}{_NEGATION})?"
        if head.lower() in _SUBJECT_PRONOUNS
        else "(?P<no>(?!))?"
    )
    tail_pattern = f"{_FILLER_GAP}{_join_tokens(tail, second_person)}" if tail else ""
    return f"{_build_token_pattern(head, second_person)}{negation}{tail_pattern}"


def _join_tokens(tokens: Sequence[str], second_person: bool) -> str:
    return _FILLER_GAP.join(_build_token_pattern(token, second_person) for token in tokens)


def _build_token_pattern(token: str, second_person: bool) -> str:
    variants = PRONOUN_FORMS.get(token.lower())
    if variants is not None:
        return variants[second_person]
    if token.lower() in ("can't", "cannot"):
        return r"(?:can't|can\s*not)"
    return re.escape(token).replace("n't", r"(?:n't|\s+not)")
