"""Parse model replies into items, proposals and grounded claims."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Final, TypeAlias, TypeVar

from told.errors import InvalidInput
from told.extraction.grounding import DEFAULT_SPEAKER, GroundingIndex, TextLocation
from told.ingest.messages import InputTurn
from told.ingest.types import (
    QUARANTINED,
    ExtractedClaim,
    ExtractionInput,
    ExtractionResult,
    RejectedClaim,
)
from told.model.entry import Claim
from told.model.fact import QUARANTINE
from told.model.kind import FAVOURITE_PREFIX, lookup_predicate
from told.ports import Usage
from told.runtime import lazy_regex
from told.text.dates import ALWAYS
from told.text.tokens import (
    JsonReply,
    format_value,
    make_snippet,
    normalise_text,
    parse_reply,
    to_plain_str,
)

T = TypeVar("T")

REPLY_LIMIT: Final = 400_000
"""Maximum number of characters of a reply that are read and kept."""
TEXT_LIMIT: Final = 2_000
MAX_DEPTH: Final = 6
MAX_ITEMS: Final = 500
LIST_KEYS: Final = ("facts", "memories")
DISPLAY_LIMIT: Final = 200

MALFORMED: Final = "not in the shape asked for"
TOO_MANY_ITEMS: Final = "more items than are read"
DUPLICATE: Final = "said twice"

_WRAPPERS: Final = (
    "facts",
    "memories",
    "memory",
    "claims",
    "triples",
    "statements",
    "results",
    "result",
    "data",
    "items",
    "output",
    "response",
    "answer",
    "arguments",
    "parameters",
    "input",
    "function",
    "function_call",
    "tool_call",
    "tool_calls",
    "choices",
    "message",
    "content",
)
_FENCE: Final = lazy_regex(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_JOINERS: Final = "\u200c\u200d"
_TRUE, _FALSE = frozenset(("true", "yes", "1", "on")), frozenset(("false", "no", "0", "off", ""))


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The items parsed from a reply, and the raw reply if none could be parsed."""

    items: tuple[Any, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: ParsedReply) -> ParsedReply:
        """Concatenate two parsed replies, keeping each unreadable reply once."""
        return ParsedReply(
            self.items + other.items,
            self.rejected + other.rejected,
            tuple(dict.fromkeys(self.unreadable_replies + other.unreadable_replies)),
            self.warnings + other.warnings,
        )


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """The reason an item was rejected, with the claim it would have been, if kept for review."""

    reason: str = MALFORMED
    rejected_claim: RejectedClaim | None = None


# Replies


def parse_items(
    raw: object, keys: Sequence[str], *, item_keys: Sequence[str], max_items: int, label: str
) -> ParsedReply:
    """Parse the items of a reply: a list, or a list under one of the keys of an object.

    An object with one of the `item_keys` is itself an item. A truncated reply loses only its
    unfinished end.
    """
    if not isinstance(raw, str):
        return ParsedReply(unreadable_replies=(format_value(raw),))
    reply = _parse_reply(raw)
    items = (
        None
        if reply is None
        else _find_items(reply.value, (*keys, *_WRAPPERS), item_keys, MAX_DEPTH)
    )
    is_truncated = reply is not None and (reply.truncated or len(raw) > REPLY_LIMIT)
    if items is None or (is_truncated and not items):
        return ParsedReply(unreadable_replies=(raw[:REPLY_LIMIT],))
    if not items and (last_block := _find_last_fenced(raw)) is not None:
        return parse_items(last_block, keys, item_keys=item_keys, max_items=max_items, label=label)
    warnings = (
        [f"The reply of {label} was truncated; {len(items)} complete items were kept."]
        if is_truncated
        else []
    )
    if len(items) > max_items:
        warnings.append(f"{label} gave {len(items)} items; the first {max_items} were read.")
    excess = tuple(
        RejectedClaim(TOO_MANY_ITEMS, format_item(item))
        for item in items[max_items : max_items + 1]
    )
    return ParsedReply(tuple(items[:max_items]), excess, (), tuple(warnings))


def convert_items(
    parsed: ParsedReply, raw: object, convert: Callable[[Any], T | RejectedItem]
) -> tuple[list[T], ParsedReply]:
    """Convert items and collect the rejected ones.

    If every item is malformed, the reply is reported as unreadable.
    """
    converted: list[T] = []
    rejected: list[RejectedClaim] = []
    for item in parsed.items:
        result = convert(item)
        if isinstance(result, RejectedItem):
            rejected.append(
                result.rejected_claim or RejectedClaim(result.reason, format_item(item))
            )
        else:
            converted.append(result)
    is_malformed = (
        bool(rejected)
        and not converted
        and all(rejected_claim.reason == MALFORMED for rejected_claim in rejected)
    )
    reply = raw[:REPLY_LIMIT] if isinstance(raw, str) else format_value(raw)
    unreadable_replies = (
        (*parsed.unreadable_replies, reply) if is_malformed else parsed.unreadable_replies
    )
    return converted, ParsedReply(
        parsed.items, (*parsed.rejected, *rejected), unreadable_replies, parsed.warnings
    )


def _parse_reply(raw: str) -> JsonReply | None:
    try:
        return parse_reply(raw[:REPLY_LIMIT].lstrip("\ufeff"))
    except InvalidInput:
        return None


def _find_last_fenced(raw: str) -> str | None:
    """Return the last fenced block if there are several, since a draft may come first."""
    blocks = _FENCE.findall(raw[:REPLY_LIMIT])
    last = blocks[-1] if len(blocks) > 1 else None
    return last if last is not None and last.strip() not in ("", "[]", "{}") else None


def _find_items(
    value: object, keys: Sequence[str], item_keys: Sequence[str], depth: int
) -> list[Any] | None:
    """Return the items in a value, [] for an empty object, or None if it has no known shape."""
    if isinstance(value, list):
        return _unwrap_list(value, keys, item_keys, depth)
    if isinstance(value, str):
        inner = (
            _parse_reply(value) if depth and value.lstrip().startswith(("[", "{", '"')) else None
        )
        return None if inner is None else _find_items(inner.value, keys, item_keys, depth - 1)
    if not isinstance(value, dict) or not depth:
        return None
    if not value:
        return []
    members = {str(key).strip().casefold(): member for key, member in value.items()}
    if any(item_key in members for item_key in item_keys):
        return [value]
    if all(name.isdecimal() for name in members):
        return list(value.values())
    candidates = (
        _find_items(members[key], keys, item_keys, depth - 1) for key in keys if key in members
    )
    return next((items for items in candidates if items is not None), None)


def _unwrap_list(
    items: list[Any], keys: Sequence[str], item_keys: Sequence[str], depth: int
) -> list[Any]:
    """Return the items of a list, or those nested in its members, such as an API's choices."""
    if not depth or not items or not all(isinstance(item, dict) for item in items):
        return items
    if any(_has_key(item, item_keys) for item in items):
        return items
    inner = [_find_items(item, keys, item_keys, depth - 1) for item in items]
    return [member for group in inner if group for member in group] if any(inner) else items


def _has_key(item: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(str(key).strip().casefold() in names for key in item)


# Values


def get_first(item: Mapping[str, Any], *names: str) -> Any:
    """Return the first non-null value under any of these names, ignoring case."""
    if not isinstance(item, Mapping):
        return None
    lowered = {str(key).strip().casefold(): value for key, value in item.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def to_line(value: object, limit: int = TEXT_LIMIT) -> str | None:
    """Return a string or number as one clean line, or None if it is invalid or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > limit * 4:
        return None
    try:
        text = " ".join(
            _strip_invisible(to_plain_str(value) if isinstance(value, str) else str(value)).split()
        )
        text.encode()
    except ValueError:  # lone surrogate, or an integer over Python's digit limit
        return None
    return text if text and len(text) <= limit else None


def _strip_invisible(text: str) -> str:
    """Remove invisible characters except joiners and replace controls with spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _is_control(char) else char for char in text if not _is_invisible(char))


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in _JOINERS


def parse_confidence(value: object, default: float = 1.0) -> float:
    """Parse a confidence between 0 and 1 from a number or a percentage."""
    number = _parse_float(value)
    return default if number is None else min(max(number, 0.0), 1.0)


def _parse_float(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            text = value.strip()
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        elif isinstance(value, int | float):
            number = float(value)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def parse_flag(value: object) -> bool | None:
    """Parse a boolean from a boolean, a word or a number, or return None."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int | float) else None
    return True if word in _TRUE else False if word in _FALSE else None


def format_item(item: object) -> str:
    """Format an item for a report."""
    try:
        return make_snippet(json.dumps(item, ensure_ascii=False, default=str), DISPLAY_LIMIT)
    except (TypeError, ValueError, RecursionError):
        return format_value(item)


def split_duplicates(items: Iterable[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """Split items into those with a new key and those whose key occurred before."""
    seen: set[object] = set()
    unique: list[T] = []
    duplicates: list[T] = []
    for item in items:
        item_key = key(item)
        (duplicates if item_key in seen else unique).append(item)
        seen.add(item_key)
    return unique, duplicates


SentenceReader: TypeAlias = Callable[[str], Claim | None]
"""Parses a sentence in the third person into a claim, or returns None."""

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
    """name nickname pronouns age timezone email phone relationship_status diet height weight budget
    team manager birthday native_language reply_style habit goal has_name occupation profession
    job hobby title role""".split()
)
_PREFIX: Final = lazy_regex(r"^(?:[A-Za-z][\w.-]*:|https?://\S*[/#])(?=\S)")
_CAMEL_BOUNDARY: Final = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS: Final = lazy_regex(r"[\s_\-./:]+")
_MODALITIES: Final = {
    "inferred": INFERRED,
    "inference": INFERRED,
    "reconstructed": INFERRED,
    "hypothesis": HYPOTHESIS,
    "hypothesis_only": HYPOTHESIS,
    "hypothetical": HYPOTHESIS,
    "presupposed": HYPOTHESIS,
    "conceivable": HYPOTHESIS,
    "hedged": "hedged",
    "planned": "planned",
}


@dataclass(frozen=True, slots=True)
class ClaimProposal:
    """A proposed claim with its quote.

    `is_entity` is set if its object is an entity rather than a literal.
    """

    claim: Claim
    quote: str = ""
    is_entity: bool = False


def read_nothing(_: str) -> None:
    """Parse nothing: the null sentence reader."""
    return


# Sentences


def strip_full_stop(text: str) -> str:
    """Remove the final full stop, but not an ellipsis."""
    return text.rstrip(" .\u3002") if not text.endswith(("...", "\u2026")) else text


def claim_from_sentence(text: str, reader: SentenceReader) -> Claim:
    """Parse a sentence into a claim, or use it as the text of a claim."""
    stripped = strip_full_stop(text)
    parsed = reader(stripped)
    return (
        Claim(stripped)
        if parsed is None
        else replace(parsed, text=stripped, span=None, evidence=None)
    )


def render_triple(subject: str, predicate_name: str, value: str, *, negated: bool = False) -> str:
    """Render a triple as a sentence, e.g. "User works at Acme" or "User's name is Alice"."""
    words = predicate_name.replace("_", " ").strip()
    if predicate_name in _NOUN_PREDICATES or predicate_name.startswith(FAVOURITE_PREFIX):
        return f"{subject}'s {words.removeprefix('has ')} is {'not ' if negated else ''}{value}"
    if words.split()[:1] in (["is"], ["has"], ["was"]) and negated:
        first_word, _, rest = words.partition(" ")
        return " ".join(part for part in (subject, first_word, "not", rest, value) if part)
    return f"{subject} {'no longer ' if negated else ''}{words} {value}"


# Names


def resolve_name(value: str, speaker: str) -> str:
    """Convert an identifier to a name, e.g. `person:annie-davis` to Annie Davis."""
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
    """Normalise a predicate: `ex:worksAt` and "works at" become `works_at`."""
    bare = _CAMEL_BOUNDARY.sub("_", _PREFIX.sub("", value))
    return "_".join(part for part in _SEPARATORS.split(bare.casefold()) if part)


# Items


def parse_proposal(item: Any, speaker: str, reader: SentenceReader) -> ClaimProposal | RejectedItem:
    """Parse an item of any supported shape into a proposal."""
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
    """Parse a triple with a subject, a predicate and exactly one object."""
    subject = to_line(get_first(item, *SUBJECT_KEYS))
    predicate_name = to_line(get_first(item, *PREDICATE_KEYS))
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
    """Build a claim from a triple."""
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
    """Return the value of a literal, bare or in the form `{"v": …, "dt": …}`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return get_first(value, "v", "value", "@value") if isinstance(value, Mapping) else value


def _apply_qualifiers(claim: Claim, item: Mapping[str, Any]) -> Claim:
    """Apply the confidence, modality and polarity of the item to the claim."""
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


USER_ROLE: Final = "user"
UNGROUNDED: Final = "its value is not in what was said"
ASSISTANT_ONLY: Final = "only the assistant said so"


@dataclass(frozen=True, slots=True)
class GroundingOptions:
    """Options for grounding proposals.

    `strict` quarantines ungrounded claims; `replies` accepts an assistant's own words.
    """

    strict: bool = True
    replies: bool = False


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The grounded claims and the rejected ones."""

    claims: tuple[ExtractedClaim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()


def build_result(
    validated: ValidationResult, parsed: ParsedReply, usage: Usage
) -> ExtractionResult:
    """Combine validated claims, the parse report and usage into an extraction result."""
    rejected = (*parsed.rejected, *validated.rejected)
    return ExtractionResult(
        validated.claims, (), (), rejected, parsed.warnings, parsed.unreadable_replies, usage
    )


def get_speaker_name(inputs: ExtractionInput) -> str:
    """Return the name of the only named user in the turns, else the default speaker."""
    names = {turn.evidence.name for turn in inputs.turns if turn.evidence.role == USER_ROLE}
    return names.pop() or DEFAULT_SPEAKER if len(names) == 1 else DEFAULT_SPEAKER


def validate_proposals(
    inputs: ExtractionInput,
    grounding: GroundingIndex,
    proposals: Iterable[ClaimProposal],
    options: GroundingOptions,
) -> ValidationResult:
    """Drop duplicates and ground every proposal."""
    unique, duplicates = split_duplicates(
        proposals, lambda proposal: (normalise_text(proposal.claim.text), proposal.claim.polarity)
    )
    rejected = [RejectedClaim(DUPLICATE, proposal.claim.text) for proposal in duplicates]
    claims: list[ExtractedClaim] = []
    for proposal in unique:
        result = _validate_proposal(inputs, grounding, proposal, options)
        if isinstance(result, RejectedClaim):
            rejected.append(result)
        else:
            claims.append(result)
    return ValidationResult(tuple(claims), tuple(rejected))


def _validate_proposal(
    inputs: ExtractionInput,
    grounding: GroundingIndex,
    proposal: ClaimProposal,
    options: GroundingOptions,
) -> ExtractedClaim | RejectedClaim:
    """Ground one proposal; quarantine or mark it if it was said nowhere."""
    quote_location = grounding.locate_quote(proposal.quote) if proposal.quote else None
    location = _locate_proposal(grounding, proposal, quote_location)
    if location is None:
        turn = quote_location.turn if quote_location else grounding.get_fallback_turn()
        claim = attach_source(
            proposal.claim, inputs.turns[turn], quote_location.span if quote_location else None
        )
        return ExtractedClaim(
            quarantine_claim(claim, UNGROUNDED) if options.strict else _mark_ungrounded(claim), turn
        )
    if location.unconfirmed and not options.replies:
        return RejectedClaim(ASSISTANT_ONLY, proposal.claim.text, location.turn)
    return ExtractedClaim(
        attach_source(proposal.claim, inputs.turns[location.turn], location.span), location.turn
    )


def _locate_proposal(
    grounding: GroundingIndex, proposal: ClaimProposal, quote_location: TextLocation | None
) -> TextLocation | None:
    """Locate the claim's value.

    The quote is used if its turn, or the turn it confirms, contains the value.
    """
    claim = proposal.claim
    if quote_location is not None and not quote_location.unconfirmed:
        candidates = [
            location
            for location in (quote_location, grounding.find_confirmed_turn(quote_location))
            if location is not None
        ]
        if any(grounding.is_claim_at(claim, location) for location in candidates):
            return quote_location
    location = grounding.locate_claim(claim)
    if (
        location is None
        and claim.modality in (INFERRED, HYPOTHESIS)
        and claim.subject not in (None, DEFAULT_SPEAKER)
    ):
        return grounding.find_value(str(claim.subject))
    return location


def attach_source(claim: Claim, turn: InputTurn, span: tuple[int, int] | None) -> Claim:
    """Return the claim with its speaker, time, source and span.

    A claim without a validity of its own gets the turn's.
    """
    evidence = turn.evidence
    return replace(
        _name_subject(claim, evidence.name if evidence.role == USER_ROLE else None),
        span=span,
        role=evidence.role,
        actor=evidence.name,
        said_at=evidence.said_at,
        source=evidence.source,
        valid=turn.valid if claim.valid == ALWAYS else claim.valid,
    )


def _name_subject(claim: Claim, name: str | None) -> Claim:
    """Replace the default speaker with the user's name in the subject and the text."""
    if name is None or claim.subject not in (None, DEFAULT_SPEAKER):
        return claim
    head, rest = claim.text[: len(DEFAULT_SPEAKER)], claim.text[len(DEFAULT_SPEAKER) :]
    text = (
        f"{name}{rest}"
        if head == DEFAULT_SPEAKER and rest[:1] in (" ", "'", "\u2019")
        else claim.text
    )
    return replace(claim, text=text, subject=claim.subject and name)


def quarantine_claim(claim: Claim, reason: str) -> Claim:
    """Move a claim to quarantine, keeping its kind and the reason in the metadata."""
    meta = {**claim.meta, "kind": claim.kind, "why": reason, "modality": claim.modality}
    return replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)


def _mark_ungrounded(claim: Claim) -> Claim:
    return replace(claim, meta={**claim.meta, "grounded": False})


def extract_given_facts(inputs: ExtractionInput, reader: SentenceReader) -> ExtractionResult:
    """Convert facts given by the caller to claims; none of them is quarantined as ungrounded."""
    speaker = get_speaker_name(inputs)
    proposals, parsed = convert_items(
        ParsedReply(inputs.facts), inputs.facts, lambda item: parse_proposal(item, speaker, reader)
    )
    validated = validate_proposals(
        inputs,
        GroundingIndex(inputs.turns),
        proposals,
        GroundingOptions(strict=False, replies=True),
    )
    return build_result(validated, parsed, Usage())
