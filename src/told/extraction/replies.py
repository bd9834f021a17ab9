"""Out of whatever a model answers: the items that can be read, and the answer itself where none can."""

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
"""How many characters of an answer are read, and kept where it cannot be read."""
TEXT_LIMIT: Final = 2_000
MAX_DEPTH: Final = 6
DISPLAY_LIMIT: Final = 200

MALFORMED: Final = "not in the shape asked for"
TOO_MANY_ITEMS: Final = "more items than are read"
DUPLICATE: Final = "said twice"

_WRAPPERS: Final = (
    "facts", "memories", "memory", "claims", "triples", "statements", "results", "result", "data", "items", "output",
    "response", "answer", "arguments", "parameters", "input", "function", "function_call", "tool_call", "tool_calls",
    "choices", "message", "content",
)  # fmt: skip
_FENCE: Final = lazy_regex(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_JOINERS: Final = "\u200c\u200d"
_TRUE, _FALSE = frozenset(("true", "yes", "1", "on")), frozenset(("false", "no", "0", "off", ""))


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What could be read of a model's answer; a fault is an answer of which nothing could be."""

    items: tuple[Any, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    unreadable_replies: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: ParsedReply) -> ParsedReply:
        """Both; a fault that came twice is one."""
        return ParsedReply(
            self.items + other.items,
            self.rejected + other.rejected,
            tuple(dict.fromkeys(self.unreadable_replies + other.unreadable_replies)),
            self.warnings + other.warnings,
        )


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """Why an item was not taken, and what it would have been where somebody may want to look at it."""

    reason: str = MALFORMED
    rejected_claim: RejectedClaim | None = None


# Answers --------------------------------------------------------------------------------------------------------------


def parse_items(
    raw: object, keys: Sequence[str], *, item_keys: Sequence[str], max_items: int, label: str
) -> ParsedReply:
    """The items of an answer: a list, or a list inside an object under one of the keys.

    An object that has one of the `marks` is itself an item. What broke off loses its unfinished end only.
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
        [f"The answer of {label} broke off; the {len(items)} items before that were kept."]
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
    """The items as something; those that are not go to the dropped, and if all are malformed the answer is a fault."""
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
    """The last fenced block, where there are several: a draft may stand before the answer."""
    blocks = _FENCE.findall(raw[:REPLY_LIMIT])
    last = blocks[-1] if len(blocks) > 1 else None
    return last if last is not None and last.strip() not in ("", "[]", "{}") else None


def _find_items(
    value: object, keys: Sequence[str], item_keys: Sequence[str], depth: int
) -> list[Any] | None:
    """The items in a value; an empty object holds none, anything that cannot be understood is None."""
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
    """The items of a list, or of the lists that stand in its members, such as the choices of an API."""
    if not depth or not items or not all(isinstance(item, dict) for item in items):
        return items
    if any(_has_key(item, item_keys) for item in items):
        return items
    inner = [_find_items(item, keys, item_keys, depth - 1) for item in items]
    return [member for group in inner if group for member in group] if any(inner) else items


def _has_key(item: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(str(key).strip().casefold() in names for key in item)


# Values ---------------------------------------------------------------------------------------------------------------


def get_first(item: Mapping[str, Any], *names: str) -> Any:
    """The first value an object has under any of these names, however they are capitalised."""
    if not isinstance(item, Mapping):
        return None
    lowered = {str(key).strip().casefold(): value for key, value in item.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def to_line(value: object, limit: int = TEXT_LIMIT) -> str | None:
    """A value as one clean line of text: a string or a plain number; None if it is neither, broken or too long."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > limit * 4:
        return None
    try:
        text = " ".join(
            _strip_invisible(to_plain_str(value) if isinstance(value, str) else str(value)).split()
        )
        text.encode()
    except ValueError:  # half a character, or a number with more digits than Python agrees to write
        return None
    return text if text and len(text) <= limit else None


def _strip_invisible(text: str) -> str:
    """The text without controls and marks that nobody sees, but for those that join letters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _is_control(char) else char for char in text if not _is_invisible(char))


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" and char not in _JOINERS


def parse_confidence(value: object, default: float = 1.0) -> float:
    """A confidence from 0 to 1 out of a number, a numeral or a percentage."""
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
    """A boolean out of a boolean, a word or a number; None if it is none."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int | float) else None
    return True if word in _TRUE else False if word in _FALSE else None


def format_item(item: object) -> str:
    """An item as a report shows it."""
    try:
        return make_snippet(json.dumps(item, ensure_ascii=False, default=str), DISPLAY_LIMIT)
    except (TypeError, ValueError, RecursionError):
        return format_value(item)


def split_duplicates(items: Iterable[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """The items whose key comes for the first time, and those whose key came before."""
    seen: set[object] = set()
    unique: list[T] = []
    duplicates: list[T] = []
    for item in items:
        item_key = key(item)
        (duplicates if item_key in seen else unique).append(item)
        seen.add(item_key)
    return unique, duplicates


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


USER_ROLE: Final = "user"
UNGROUNDED: Final = "its value is not in what was said"
ASSISTANT_ONLY: Final = "only the assistant said so"


@dataclass(frozen=True, slots=True)
class GroundingOptions:
    """How strictly proposals are held against what was said.

    `strict` quarantines what cannot be found there; `replies` lets an assistant's own words count.
    """

    strict: bool = True
    replies: bool = False


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Claims in their places, and what was not let through."""

    claims: tuple[ExtractedClaim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()


def build_result(
    validated: ValidationResult, parsed: ParsedReply, usage: Usage
) -> ExtractionResult:
    """Claims in their places, with everything that is to be said of the answer they came from."""
    rejected = (*parsed.rejected, *validated.rejected)
    return ExtractionResult(
        validated.claims, (), (), rejected, parsed.warnings, parsed.unreadable_replies, usage
    )


def get_speaker_name(inputs: ExtractionInput) -> str:
    """Whom facts are about unless they say so: the user who speaks, by name if there is one name."""
    names = {turn.evidence.name for turn in inputs.turns if turn.evidence.role == USER_ROLE}
    return names.pop() or DEFAULT_SPEAKER if len(names) == 1 else DEFAULT_SPEAKER


def validate_proposals(
    inputs: ExtractionInput,
    grounding: GroundingIndex,
    proposals: Iterable[ClaimProposal],
    options: GroundingOptions,
) -> ValidationResult:
    """Every proposal as a claim in its place, or why it is none."""
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
    """Where the claim's value was said; the quotation is the place if the value is in its turn or was said yes to."""
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
    """The claim with who said it, when and where; it holds from then on unless it says otherwise."""
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
    """The claim about whoever said it, by name where there is one."""
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
    """The claim as it waits for somebody to look at it; its own kind and the reason stand in its metadata."""
    meta = {**claim.meta, "kind": claim.kind, "why": reason, "modality": claim.modality}
    return replace(claim, kind=QUARANTINE, modality=QUARANTINED, meta=meta)


def _mark_ungrounded(claim: Claim) -> Claim:
    return replace(claim, meta={**claim.meta, "grounded": False})
