"""Importance of a turn from 0 to 1, by its words, and extractive summaries.

Facts, decisions, rules, choices, deadlines, numbers and names score 0.7 and more; topical questions
and plain statements are in the middle; small talk is below 0.4. A low score requires that every
word is known filler, so text in an unknown language is never small talk.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Final

from told.runtime import lazy_regex
from told.text.lexicon import COMMON_WORDS, DECISION_CUE, NAME_PART_WORDS, OPEN_ITEM_CUE
from told.text.noise import is_filler, is_noise, is_prompt
from told.text.tokens import (
    STOP_WORDS,
    extract_terms,
    make_snippet,
    normalise_text,
    split_sentences,
)

NEUTRAL_SCORE: Final = 0.5
"""The default score of a turn, and the threshold for keeping it."""

NO_CONTENT_SCORE, SMALL_TALK_SCORE = 0.1, 0.25
QUESTION_SCORE, TOPICAL_SCORE = 0.5, 0.6
INFORMATIVE_SCORE, SIGNAL_BONUS = 0.7, 0.1
HEAD_CHARS: Final = 4000
"""The number of characters examined."""

ASSISTANT_PENALTY: Final = 0.1
"""The penalty for assistant turns, which repeat and explain more than they decide."""


def stated_importance(meta: Mapping[str, Any]) -> float | None:
    """Return the importance given in metadata, if any."""
    value = meta.get("importance")
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if is_valid and value is not None else None


def score_importance(text: str, role: str = "user") -> float:
    """Score a turn by its words; informative replies score slightly less."""
    if is_filler(text) or is_noise(text) or is_prompt(text):
        return NO_CONTENT_SCORE
    if is_small_talk(text):
        return SMALL_TALK_SCORE
    signals = _count_signals(text)
    if is_question(text):
        return TOPICAL_SCORE if signals else QUESTION_SCORE
    if not signals:
        return NEUTRAL_SCORE
    score = INFORMATIVE_SCORE + SIGNAL_BONUS * (signals - 1)
    return round(
        max(min(score, 1.0) - (ASSISTANT_PENALTY if role == "assistant" else 0.0), TOPICAL_SCORE), 2
    )


def is_question(text: str) -> bool:
    """Return True if a text consists only of questions."""
    parts = [
        part for part in re.split(r"(?<=[.!?。！？])\s*", text[:HEAD_CHARS].strip()) if part.strip()
    ]
    return bool(parts) and all(part.endswith(("?", "？")) for part in parts)


# Small talk

_SMALL_TALK_PHRASES: Final = lazy_regex(
    r"""(?x)\b(?:
        how(?:'s|\ is|\ are|\ was|\ were)\ (?:you|it|things|life|your\ (?:day|weekend|morning
            |evening)|everything)
            (?:\ (?:going|doing|today|so\ far|all))*
      | what(?:'s|\ is)\ (?:up|new|going\ on|cooking)
      | (?:have|enjoy)\ (?:a|an|your|the)\ (?:(?:very\ )?(?:nice|good|great|lovely|wonderful
          |fantastic|safe)\ )?
            (?:day|evening|night|weekend|morning|afternoon|one|trip|rest\ of\ (?:your
                |the)\ (?:day|week))
      | (?:nice|good|great|lovely)\ (?:to\ (?:meet|see|hear\ from|talk\ to|chat\ with)\ you
          |chatting|talking|weather)
      | (?:see|talk\ to|catch|speak\ to)\ you\ (?:later|soon|tomorrow|then|around|again)
      | (?:long\ time\ no\ see|no\ (?:problem|worries|rush|thanks)|not\ (?:much|a\ lot|bad
          |at\ all)|my\ pleasure)
      | you(?:'re|\ are)\ (?:(?:very|so|most)\ )?(?:welcome|funny|kind|nice|sweet|the\ best
          |awesome|great|right)
      | (?:happy|glad|here|pleased|delighted|ready)\ to\ (?:help|hear(?:\ (?:that|it))?|assist)
      | (?:let\ me\ know|feel\ free\ to\ ask)(?:\ if\ (?:you\ (?:need|have|want)|there(?:'s|\ is))
            \ (?:anything|any|more)(?:\ (?:else|questions|help|more))*)?
      | (?:is\ there\ )?anything\ else
            (?:\ (?:i\ can|you|to)\ (?:do|need|want|help|add)(?:\ (?:for|with)\ (?:you|that))*)?
      | (?:how|what)\ (?:can|may|could)\ i\ (?:help|do|assist)(?:\ (?:for\ )?you)?(?:\ (?:today
          |with|now))*
      | tell\ me\ (?:more|(?:a|another|one\ more)\ (?:joke|story))
      | (?:that|this|it)(?:'s|\ is|\ was|\ sounds|\ looks)\ (?:
            so\ |very\ |really\ |pretty\ |quite\ |too\ )?
            (?:funny|hilarious|nice|great|cool|awesome|interesting|good|fine|amazing|sad|crazy
                |weird|true|right|fun|
            okay|ok)
      | (?:i\ |we\ )?(?:(?:am|are)\ |i'm\ |we're\ )?(?:doing|feeling)?\ ?(?:fine|good|great|well
          |okay|ok),?
            \ (?:thanks|thank\ you)
      | what\ a\ (?:day|week|night|joke|beautiful\ day|nice\ day|lovely\ day)
      | (?:just\ )?(?:checking\ in|saying\ (?:hi|hello)|kidding|chilling|hanging\ out|bored)
      | got\ (?:it|you|ya)|makes\ sense|sounds\ (?:good|great|like\ a\ plan|fun)|never\ ?mind
          |same\ here|me\ too
      | fair\ enough
      | oh\ (?:my\ god|my|no|well|really)|by\ the\ way|of\ course|for\ sure|why\ not|i\ see
          |i\ know|you\ know|i\ guess
    )(?:\b|(?=\W|$))"""
)
_SMALL_TALK_WORDS: Final = STOP_WORDS | frozenset(
    """hello hi hey hiya yo bye goodbye cheers thanks thank please sorry welcome ok okay alright
        sure cool nice great awesome perfect amazing wonderful lovely fantastic good fine funny
        hilarious interesting boring bored wow haha hahaha lol lmao rofl hehe hmm hm uh um ah aha oh
        ooh huh ugh meh well anyway anyways yes yeah yep yup no nope nah today tonight morning
        afternoon evening night day again really pretty super quite kinda sorta maybe perhaps guess
        buddy bro dude mate man guys friend folks there here later soon then now still much lot bit
        glad happy joke jokes laugh laughing weather sunny rainy chat chatting talk talking wonder
        say saying said i'm i'll i'd i've you're you'll you've it's that's there's what's how's
        let's we're they're don't didn't can't won't isn't wasn't thing things something anything
        nothing stuff like love feel feeling going go come back getting get got let see look looks
        sound sounds seem seems true right fun""".split()
)
_MAX_SMALL_TALK_CHARS: Final = 160
_WORD: Final = lazy_regex(r"[^\W_]+(?:['-][^\W_]+)*")


def is_small_talk(text: str) -> bool:
    """Return True if a text contains only small talk and no number."""
    if len(text) > _MAX_SMALL_TALK_CHARS or any(char.isdigit() for char in text):
        return False
    normalised = normalise_text(text).replace("\u2019", "'")
    rest, phrase_count = _SMALL_TALK_PHRASES.subn(" ", normalised)
    words = _WORD.findall(rest)
    if not phrase_count and not (words and _has_chat_marker(words)):
        return False
    return all(word in _SMALL_TALK_WORDS for word in words)


_CHAT_MARKERS: Final = frozenset(
    "haha hahaha lol lmao rofl hehe hello hi hey wow bored boring funny joke weather".split()
)


def _has_chat_marker(words: list[str]) -> bool:
    """Return True if one of the words only occurs in small talk."""
    return not _CHAT_MARKERS.isdisjoint(words)


# Signals

_RULE_SIGNAL: Final = lazy_regex(
    r"(?i)\b(?:always|never|must(?:n't)?|have to|has to|required?|requirement|mandatory|"
    r"forbidden|not allowed|rules?|"
    r"polic(?:y|ies)|from now on|do(?:n't| not) (?:ever|use|push|commit|deploy|call|mention|"
    r"share|send)|make sure|"
    r"immer|niemals?|muss|müssen|darf|siempre|nunca|debe|toujours|jamais|doit)\b"
)
_CHOICE_SIGNAL: Final = lazy_regex(
    r"(?i)\b(?:we(?:'re| are| will|'ll)? (?:us(?:e|ing)|run(?:ning)?|switch(?:ed|ing)?|mov(?:ed|"
    r"ing)|migrat\w+|"
    r"deploy(?:ed|ing)?|ship(?:ped|ping)?|stor(?:e|ing)|host(?:ed|ing)?|cach(?:e|ing)|"
    r"target(?:ing)?|support)|"
    r"switched (?:to|from)|migrat(?:ed|ing|e) (?:to|from)|moved? (?:to|from)|upgraded? to|"
    r"replaced? \S+ (?:with|by)|"
    r"(?:is|are) (?:stored|hosted|deployed|written|built|configured|cached) (?:in|on|with|by|at)|"
    r"instead of|prefer(?:s|red)?|default(?:s)? to|root cause|fix(?:ed)? by|caused by|because of)\b"
)
_FACT_SIGNAL: Final = lazy_regex(
    r"(?i)\b(?:my (?:full |first |last |new |old )?(?:name|wife|husband|partner|son|daughter|"
    r"sister|brother|mother|"
    r"father|mom|dad|boss|manager|team|dog|cat|birthday|address|email|phone|job|company|"
    r"favou?rite|doctor|password|"
    r"project|budget|goal|plan|flight|car|house|apartment|allergy)|"
    r"i(?:'m| am) (?:an?|from|allergic|vegan|vegetarian|deaf|blind|married|divorced|single|"
    r"pregnant|learning|living|"
    r"working|based|called|named|moving|planning|responsible)|"
    r"i (?:live|work|study|studied|moved|grew up|was born|graduated|own|bought|have (?:an?|two|"
    r"three|four|five)|hate|"
    r"(?:like|love|enjoy|need|want)(?! (?:it|that|this|them|you)\b)|speak|play|drive|take|use|"
    r"started|stopped|quit|"
    r"joined|can't|cannot|don't (?:eat|drink|like|want|use))|we (?:have|live|are (?:getting|"
    r"moving|planning))|call me|"
    r"remember that|for the record|note that|important)\b"
)
_DEADLINE_SIGNAL: Final = lazy_regex(
    r"(?i)\b(?:deadline|due|no later than|at the latest|until|by (?:the end of|tomorrow|tonight|"
    r"noon|eod|next|monday|"
    r"tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|"
    r"july|august|september|"
    r"october|november|december|\d)|tomorrow|next (?:week|month|year|monday|tuesday|wednesday|"
    r"thursday|friday|"
    r"saturday|sunday)|appointment|meeting (?:is|at|on)|scheduled|release(?:d)? on)\b"
)
_NUMBER_SIGNAL: Final = lazy_regex(r"\d|[\w.+-]{1,64}@[\w-]{1,255}\.\w|https?://|`[^`]{1,200}`")
_NAME_PATTERN: Final = lazy_regex(r"(?<=[\w,;:)] )[A-Z][\w'-]+|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}\b")
_SIGNAL_CUES: Final = (DECISION_CUE, OPEN_ITEM_CUE)
_SIGNAL_PATTERNS: Final = (
    _RULE_SIGNAL,
    _CHOICE_SIGNAL,
    _FACT_SIGNAL,
    _DEADLINE_SIGNAL,
    _NUMBER_SIGNAL,
)


def _count_signals(text: str) -> int:
    """Count the types of informative signals in a text."""
    head = text[:HEAD_CHARS].replace("\u2019", "'")
    cue_count = sum(cue.matches(head.lower()) for cue in _SIGNAL_CUES)
    return (
        cue_count
        + sum(pattern.search(head) is not None for pattern in _SIGNAL_PATTERNS)
        + _has_name(head)
    )


def _has_name(text: str) -> bool:
    """Return True if a name occurs inside a sentence; all capitals do not count."""
    if text.isupper():
        return False
    words = (match[0].lower() for match in _NAME_PATTERN.finditer(text))
    return any(word not in COMMON_WORDS or word in NAME_PART_WORDS - STOP_WORDS for word in words)


SUMMARY_LENGTH = 240
"""The default maximum length of a summary in characters."""

MAX_INPUT_CHARS = 20_000
"""The number of characters read for a summary."""

FIRST_SENTENCE_BONUS = 0.15
"""The bonus of the first sentence, which usually states the topic."""


def extract_summary(text: str, max_chars: int = SUMMARY_LENGTH) -> str:
    """Return the most informative sentences that fit, or the whole text if it fits.

    The result depends on the text alone, so it is the same on every machine.
    """
    flat_text = " ".join(text.split())
    if len(flat_text) <= max_chars:
        return flat_text
    parts = [" ".join(sentence.split()) for sentence in split_sentences(text[:MAX_INPUT_CHARS])]
    selected = _select_sentences(parts, _score_sentences(parts), max_chars)
    return " ".join(parts[index] for index in sorted(selected)) or make_snippet(
        flat_text, max_chars
    )


def _score_sentences(parts: Sequence[str]) -> list[float]:
    """Score sentences by importance and by the share of the text's frequent terms."""
    term_lists = [extract_terms(part) for part in parts]
    counts = Counter(term for part_terms in term_lists for term in set(part_terms))
    max_count = max(counts.values(), default=1)
    return [
        score_importance(part)
        + sum(counts[term] for term in set(part_terms))
        / (max_count * sqrt(len(part_terms) or 1))
        / 4
        + (FIRST_SENTENCE_BONUS if index == 0 else 0.0)
        for index, (part, part_terms) in enumerate(zip(parts, term_lists, strict=True))
    ]


def _select_sentences(parts: Sequence[str], scores: Sequence[float], max_chars: int) -> set[int]:
    """Select the best sentences that fit, skipping those that are too long."""
    selected: set[int] = set()
    remaining = max_chars + 1
    for index in sorted(range(len(parts)), key=lambda index: (-scores[index], index)):
        if len(parts[index]) + 1 <= remaining:
            selected.add(index)
            remaining -= len(parts[index]) + 1
    return selected
