"""From an item of an answer to a proposal: a sentence, a triple, or an object with either, as a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from told.core.entry import Claim
from told.core.lazy import lazy_regex
from told.core.predicates import FAVOURITE_PREFIX, lookup_predicate
from told.write.extract.parse import RejectedItem, get_first, parse_confidence, parse_flag, to_line

SentenceReader: TypeAlias = Callable[[str], Claim | None]
"""Reads one sentence in the third person as a claim with subject, predicate and object, if it can."""

STATED, INFERRED, HYPOTHESIS = "stated", "inferred", "hypothesis_only"
ASSERTED, NEGATED = "asserted", "negated"
TEXT_KEYS: Final = (
    "fact",
    "text",
    "memory",
    "statement",
    "claim",
    "sentence",
    "content",
    "description",
    "data",
    "abstract",
)
SUBJECT_KEYS: Final = ("subject", "s", "entity", "source")
PREDICATE_KEYS: Final = ("predicate", "p", "relation", "property", "attribute")
OBJECT_KEYS: Final = ("object", "o", "object_iri", "object_lit", "value", "target")
QUOTE_KEYS: Final = ("evidence", "quote", "evidence_quote", "span", "source_text")
CONFIDENCE_KEYS: Final = ("confidence", "score", "probability", "certainty")
ITEM_KEYS: Final = (*TEXT_KEYS[:7], "subject", "predicate", "object_iri", "object_lit")

_SPEAKER_NAMES: Final = frozenset(
    "user speaker i me you self myself agent:you person:user person:speaker".split()
)
_NOUN_PREDICATES: Final = frozenset(
    """name nickname pronouns age timezone email phone relationship_status diet height weight budget team manager
    birthday native_language reply_style habit goal has_name occupation profession job hobby title role""".split()
)
_PREFIX: Final = lazy_regex(r"^(?:[A-Za-z][\w.-]*:|https?://\S*[/#])(?=\S)")
_CAMEL_BOUNDARY: Final = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS: Final = lazy_regex(r"[\s_\-./:]+")
_MODALITIES: Final = {
    "inferred": INFERRED, "inference": INFERRED, "reconstructed": INFERRED, "hypothesis": HYPOTHESIS,
    "hypothesis_only": HYPOTHESIS, "hypothetical": HYPOTHESIS, "presupposed": HYPOTHESIS, "conceivable": HYPOTHESIS,
    "hedged": "hedged", "planned": "planned",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClaimProposal:
    """A claim somebody makes, the words quoted for it, and whether its object is a thing rather than a value."""

    claim: Claim
    quote: str = ""
    is_entity: bool = False


def read_nothing(_: str) -> None:
    """A reader that reads nothing, so that sentences stay sentences."""
    return


# Sentences ------------------------------------------------------------------------------------------------------------


def strip_full_stop(text: str) -> str:
    """A sentence as memories have it: without its full stop."""
    return text.rstrip(" .\u3002") if not text.endswith(("...", "\u2026")) else text


def claim_from_sentence(text: str, reader: SentenceReader) -> Claim:
    """What a sentence claims: read if it can be, else as it stands."""
    stripped = strip_full_stop(text)
    parsed = reader(stripped)
    return (
        Claim(stripped)
        if parsed is None
        else replace(parsed, text=stripped, span=None, evidence=None)
    )


def render_triple(subject: str, predicate_name: str, value: str, *, negated: bool = False) -> str:
    """A triple as a sentence: "User works at Acme", "User's name is Alice"."""
    words = predicate_name.replace("_", " ").strip()
    if predicate_name in _NOUN_PREDICATES or predicate_name.startswith(FAVOURITE_PREFIX):
        return f"{subject}'s {words.removeprefix('has ')} is {'not ' if negated else ''}{value}"
    if words.split()[:1] in (["is"], ["has"], ["was"]) and negated:
        first_word, _, rest = words.partition(" ")
        return " ".join(part for part in (subject, first_word, "not", rest, value) if part)
    return f"{subject} {'no longer ' if negated else ''}{words} {value}"


# Names ----------------------------------------------------------------------------------------------------------------


def resolve_name(value: str, speaker: str) -> str:
    """Whom or what an identifier names: `person:annie-davis` is Annie Davis, `agent:you` is the speaker."""
    if value.casefold() in _SPEAKER_NAMES:
        return speaker
    bare = _PREFIX.sub("", value)
    if bare == value:
        return value
    if bare.casefold() in _SPEAKER_NAMES:
        return speaker
    spaced = " ".join(_SEPARATORS.sub(" ", bare).split())
    return spaced.title() if spaced.islower() else spaced


def normalise_predicate(value: str) -> str:
    """A predicate in told's spelling: `ex:worksAt` and "works at" are both `works_at`."""
    bare = _CAMEL_BOUNDARY.sub("_", _PREFIX.sub("", value))
    return "_".join(part for part in _SEPARATORS.split(bare.casefold()) if part)


# Items ----------------------------------------------------------------------------------------------------------------


def parse_proposal(item: Any, speaker: str, reader: SentenceReader) -> ClaimProposal | RejectedItem:
    """An item as a proposal, whatever its shape."""
    if isinstance(item, Claim):
        return ClaimProposal(item)
    if isinstance(item, str):
        text = to_line(item)
        return RejectedItem() if text is None else ClaimProposal(claim_from_sentence(text, reader))
    if isinstance(item, list | tuple):
        return _parse_list(item, speaker, reader)
    return _parse_object(item, speaker, reader) if isinstance(item, Mapping) else RejectedItem()


def _parse_list(
    item: list[Any] | tuple[Any, ...], speaker: str, reader: SentenceReader
) -> ClaimProposal | RejectedItem:
    parts = [to_line(part) for part in item]
    match parts:
        case [str(text)]:
            return ClaimProposal(claim_from_sentence(text, reader))
        case [str(subject), str(predicate_name), str(value)]:
            return _parse_object(
                {"subject": subject, "predicate": predicate_name, "object": value}, speaker, reader
            )
    return RejectedItem()


def _parse_object(
    item: Mapping[str, Any], speaker: str, reader: SentenceReader
) -> ClaimProposal | RejectedItem:
    quote = to_line(get_first(item, *QUOTE_KEYS)) or ""
    text = to_line(get_first(item, *TEXT_KEYS))
    triple = parse_triple(item, speaker)
    if isinstance(triple, Claim):
        claim = triple if text is None else replace(triple, text=strip_full_stop(text))
    elif text is not None:
        claim = claim_from_sentence(text, reader)
    else:
        return triple
    return ClaimProposal(
        _apply_qualifiers(claim, item), quote, to_line(get_first(item, "object_iri")) is not None
    )


def parse_triple(item: Mapping[str, Any], speaker: str) -> Claim | RejectedItem:
    """The triple an object holds: a subject, a predicate, and exactly one object."""
    subject, predicate_name = (
        to_line(get_first(item, *SUBJECT_KEYS)),
        to_line(get_first(item, *PREDICATE_KEYS)),
    )
    iri, literal = get_first(item, "object_iri"), get_first(item, "object_lit")
    if subject is None or predicate_name is None:
        return RejectedItem()
    if iri is not None and literal is not None:
        return RejectedItem("two objects where one was asked for")
    value = to_line(_unwrap_literal(get_first(item, *OBJECT_KEYS)))
    if value is None:
        return RejectedItem("no object")
    return claim_from_triple(
        resolve_name(subject, speaker),
        normalise_predicate(predicate_name),
        resolve_name(value, speaker) if iri is not None else value,
    )


def claim_from_triple(
    subject: str, predicate_name: str, value: str, *, negated: bool = False
) -> Claim:
    """A claim made of a triple."""
    polarity = NEGATED if negated else ASSERTED
    text = render_triple(subject, predicate_name, value, negated=negated)
    return Claim(
        text,
        lookup_predicate(predicate_name).kind,
        subject,
        predicate_name,
        value,
        polarity=polarity,
    )


def _unwrap_literal(value: Any) -> Any:
    """The value of a literal, given bare or as `{"v": …, "dt": …}`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return get_first(value, "v", "value", "@value") if isinstance(value, Mapping) else value


def _apply_qualifiers(claim: Claim, item: Mapping[str, Any]) -> Claim:
    """The claim with the confidence, modality and polarity the item gives it."""
    modality = _MODALITIES.get(str(get_first(item, "modality")).strip().casefold(), claim.modality)
    if parse_flag(get_first(item, "hypothesis_only")):
        modality = HYPOTHESIS
    polarity = str(get_first(item, "polarity")).strip().casefold()
    return replace(
        claim,
        modality=modality,
        confidence=parse_confidence(get_first(item, *CONFIDENCE_KEYS), claim.confidence),
        polarity=polarity if polarity in (ASSERTED, NEGATED) else claim.polarity,
    )
