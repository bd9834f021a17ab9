"""From an item of an answer to a proposal: a sentence, a triple, or an object with either, as a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from told.core.entry import Claim
from told.core.lazy import regex
from told.core.predicates import FAVOURITE, predicate
from told.write.extract.parse import Unread, first, flag, line, share

Reader: TypeAlias = Callable[[str], Claim | None]
"""Reads one sentence in the third person as a claim with subject, predicate and object, if it can."""

STATED, INFERRED, HYPOTHESIS = "stated", "inferred", "hypothesis_only"
ASSERTED, NEGATED = "asserted", "negated"
TEXT: Final = ("fact", "text", "memory", "statement", "claim", "sentence", "content", "description", "data", "abstract")
SUBJECT: Final = ("subject", "s", "entity", "source")
PREDICATE: Final = ("predicate", "p", "relation", "property", "attribute")
OBJECT: Final = ("object", "o", "object_iri", "object_lit", "value", "target")
QUOTE: Final = ("evidence", "quote", "evidence_quote", "span", "source_text")
CONFIDENCE: Final = ("confidence", "score", "probability", "certainty")
MARKS: Final = (*TEXT[:7], "subject", "predicate", "object_iri", "object_lit")

_SELF: Final = frozenset("user speaker i me you self myself agent:you person:user person:speaker".split())
_NOUNS: Final = frozenset(
    """name nickname pronouns age timezone email phone relationship_status diet height weight budget team manager
    birthday native_language reply_style habit goal has_name occupation profession job hobby title role""".split()
)
_PREFIX: Final = regex(r"^(?:[A-Za-z][\w.-]*:|https?://\S*[/#])(?=\S)")
_HUMP: Final = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAK: Final = regex(r"[\s_\-./:]+")
_MODALITIES: Final = {
    "inferred": INFERRED, "inference": INFERRED, "reconstructed": INFERRED, "hypothesis": HYPOTHESIS,
    "hypothesis_only": HYPOTHESIS, "hypothetical": HYPOTHESIS, "presupposed": HYPOTHESIS, "conceivable": HYPOTHESIS,
    "hedged": "hedged", "planned": "planned",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proposal:
    """A claim somebody makes, the words quoted for it, and whether its object is a thing rather than a value."""

    claim: Claim
    quote: str = ""
    thing: bool = False


def unread(_: str) -> None:
    """A reader that reads nothing, so that sentences stay sentences."""
    return


# Sentences ------------------------------------------------------------------------------------------------------------


def sentence(text: str) -> str:
    """A sentence as memories have it: without its full stop."""
    return text.rstrip(" .\u3002") if not text.endswith(("...", "\u2026")) else text


def from_sentence(text: str, reader: Reader) -> Claim:
    """What a sentence claims: read if it can be, else as it stands."""
    said = sentence(text)
    read = reader(said)
    return Claim(said) if read is None else replace(read, text=said, span=None, evidence=None)


def worded(subject: str, name: str, value: str, *, negated: bool = False) -> str:
    """A triple as a sentence: "User works at Acme", "User's name is Alice"."""
    verb = name.replace("_", " ").strip()
    if name in _NOUNS or name.startswith(FAVOURITE):
        return f"{subject}'s {verb.removeprefix('has ')} is {'not ' if negated else ''}{value}"
    if verb.split()[:1] in (["is"], ["has"], ["was"]) and negated:
        first_word, _, rest = verb.partition(" ")
        return " ".join(part for part in (subject, first_word, "not", rest, value) if part)
    return f"{subject} {'no longer ' if negated else ''}{verb} {value}"


# Names ----------------------------------------------------------------------------------------------------------------


def named(value: str, speaker: str) -> str:
    """Whom or what an identifier names: `person:annie-davis` is Annie Davis, `agent:you` is the speaker."""
    if value.casefold() in _SELF:
        return speaker
    bare = _PREFIX.sub("", value)
    if bare == value:
        return value
    if bare.casefold() in _SELF:
        return speaker
    spaced = " ".join(_BREAK.sub(" ", bare).split())
    return spaced.title() if spaced.islower() else spaced


def verb(value: str) -> str:
    """A predicate in told's spelling: `ex:worksAt` and "works at" are both `works_at`."""
    bare = _HUMP.sub("_", _PREFIX.sub("", value))
    return "_".join(part for part in _BREAK.split(bare.casefold()) if part)


# Items ----------------------------------------------------------------------------------------------------------------


def proposal(item: Any, speaker: str, reader: Reader) -> Proposal | Unread:
    """An item as a proposal, whatever its shape."""
    if isinstance(item, Claim):
        return Proposal(item)
    if isinstance(item, str):
        text = line(item)
        return Unread() if text is None else Proposal(from_sentence(text, reader))
    if isinstance(item, list | tuple):
        return _listed(item, speaker, reader)
    return _object(item, speaker, reader) if isinstance(item, Mapping) else Unread()


def _listed(item: list[Any] | tuple[Any, ...], speaker: str, reader: Reader) -> Proposal | Unread:
    parts = [line(part) for part in item]
    match parts:
        case [str(text)]:
            return Proposal(from_sentence(text, reader))
        case [str(subject), str(name), str(value)]:
            return _object({"subject": subject, "predicate": name, "object": value}, speaker, reader)
    return Unread()


def _object(item: Mapping[str, Any], speaker: str, reader: Reader) -> Proposal | Unread:
    quote = line(first(item, *QUOTE)) or ""
    text = line(first(item, *TEXT))
    made = triple(item, speaker)
    if isinstance(made, Claim):
        said = made if text is None else replace(made, text=sentence(text))
    elif text is not None:
        said = from_sentence(text, reader)
    else:
        return made
    return Proposal(_shaded(said, item), quote, line(first(item, "object_iri")) is not None)


def triple(item: Mapping[str, Any], speaker: str) -> Claim | Unread:
    """The triple an object holds: a subject, a predicate, and exactly one object."""
    subject, name = line(first(item, *SUBJECT)), line(first(item, *PREDICATE))
    iri, literal = first(item, "object_iri"), first(item, "object_lit")
    if subject is None or name is None:
        return Unread()
    if iri is not None and literal is not None:
        return Unread("two objects where one was asked for")
    value = line(_literal(first(item, *OBJECT)))
    if value is None:
        return Unread("no object")
    return spoken_of(named(subject, speaker), verb(name), named(value, speaker) if iri is not None else value)


def spoken_of(subject: str, name: str, value: str, *, negated: bool = False) -> Claim:
    """A claim made of a triple."""
    polarity = NEGATED if negated else ASSERTED
    text = worded(subject, name, value, negated=negated)
    return Claim(text, predicate(name).kind, subject, name, value, polarity=polarity)


def _literal(value: Any) -> Any:
    """The value of a literal, given bare or as `{"v": …, "dt": …}`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return first(value, "v", "value", "@value") if isinstance(value, Mapping) else value


def _shaded(claim: Claim, item: Mapping[str, Any]) -> Claim:
    """The claim with the confidence, modality and polarity the item gives it."""
    modality = _MODALITIES.get(str(first(item, "modality")).strip().casefold(), claim.modality)
    if flag(first(item, "hypothesis_only")):
        modality = HYPOTHESIS
    polarity = str(first(item, "polarity")).strip().casefold()
    return replace(
        claim, modality=modality, confidence=share(first(item, *CONFIDENCE), claim.confidence),
        polarity=polarity if polarity in (ASSERTED, NEGATED) else claim.polarity,
    )  # fmt: skip
