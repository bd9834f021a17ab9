"""Deltas: lists of nine operations on memories, parsed from JSON.

`told.maintenance.delta_apply` turns operations into ledger entries. Closing a memory or changing
its confidence writes a new version or a retraction, so earlier beliefs stay readable as of their
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, TypeAlias

from told.errors import InvalidInput, ToldError
from told.model.beliefs import CONTRADICTS, DISTINCT_REFERENT, SUPERSEDES, SUPPORTS
from told.model.entry import NO_META
from told.model.scope import ID_LIMIT
from told.text.dates import format_iso, from_us, parse_instant, parse_moment
from told.text.tokens import format_value, parse_lenient_json, validate_label

POTENTIALLY_SAME: Final = "potentially_same"
REBUTS: Final = "rebuts"
ARGUMENT_RELATIONS: Final = (
    SUPPORTS,
    REBUTS,
    "undercuts",
    "endorses",
    SUPERSEDES,
    "qualifies",
    POTENTIALLY_SAME,
    "same_referent",
    "same_event",
    "explains",
    "alternative_analysis_of",
    "same_evidence_different_analysis",
    "same_claim_different_schema",
    CONTRADICTS,
)
"""The relations an argument between two memories may have."""

OPPOSING_RELATIONS: Final = frozenset({SUPERSEDES, CONTRADICTS, REBUTS, "undercuts"})
"""The argument relations that may weaken the target memory."""

IDENTITY_RELATIONS: Final = (
    "same_referent",
    "possibly_same_referent",
    DISTINCT_REFERENT,
    "not_enough_information",
)
CONFIDENCE_LANES: Final = ("human", "calibrated", "machine")
"""The sources of confidence values, in order of precedence."""

NEEDS_CONTRADICTION_REVIEW: Final = "needs_contradiction_review"
STALE_SESSION: Final = "stale_session"
MAX_OPERATIONS: Final = 100
"""The maximum number of operations in a delta."""

_POLARITIES: Final = ("asserted", "negated")
_LIST_KEYS: Final = ("operations", "deltas", "delta", "ops")


# Operations


@dataclass(frozen=True, slots=True)
class AssertClaim:
    """Assert a claim derived from source memories, which it supersedes; the sources are kept."""

    text: str
    sources: tuple[str, ...] = ()
    kind: str = "memory"
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    polarity: str = "asserted"
    confidence: float = 1.0
    valid_from: int | None = None
    valid_to: int | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class AssertFrame:
    """Assert a frame: an event type and the participant in each role."""

    type: str
    roles: Mapping[str, str]
    sources: tuple[str, ...] = ()
    text: str = ""
    kind: str = "memory"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class AddArgument:
    """Add an argument from one memory to another."""

    src: str
    rel: str
    dst: str
    strength: float = 1.0
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class AddIdentityEdge:
    """Add an identity edge: how likely two entities are the same, or that they are distinct."""

    one: str
    other: str
    relation: str = "same_referent"
    confidence: float = 1.0
    method: str = "reflection"


@dataclass(frozen=True, slots=True)
class CloseValidTime:
    """Set the end of a memory's valid time."""

    id: str
    at: int


@dataclass(frozen=True, slots=True)
class CloseTxTime:
    """Retract a memory."""

    id: str
    why: str = "closed"


@dataclass(frozen=True, slots=True)
class UpdateConfidence:
    """Set a memory's confidence in one lane."""

    id: str
    confidence: float
    lane: str = "machine"


@dataclass(frozen=True, slots=True)
class ScheduleReview:
    """Queue a memory for review, at once unless `due` is given."""

    id: str
    why: str = NEEDS_CONTRADICTION_REVIEW
    due: int | None = None


@dataclass(frozen=True, slots=True)
class LinkDerivedArtifact:
    """Record that an artifact, such as a summary, was derived from a memory.

    Erasing the memory erases the artifact too.
    """

    id: str
    artifact: str


Operation: TypeAlias = (
    AssertClaim
    | AssertFrame
    | AddArgument
    | AddIdentityEdge
    | CloseValidTime
    | CloseTxTime
    | UpdateConfidence
    | ScheduleReview
    | LinkDerivedArtifact
)
OPERATIONS: Final[Mapping[str, type[Operation]]] = {
    "assert_claim": AssertClaim,
    "assert_frame": AssertFrame,
    "add_argument": AddArgument,
    "add_identity_edge": AddIdentityEdge,
    "close_valid_time": CloseValidTime,
    "close_tx_time": CloseTxTime,
    "update_confidence": UpdateConfidence,
    "schedule_review": ScheduleReview,
    "link_derived_artifact": LinkDerivedArtifact,
}
_OPERATION_NAMES: Final = {cls: name for name, cls in OPERATIONS.items()}
ID_FIELDS: Final = ("id", "src", "dst", "one", "other", "artifact", "sources")
"""The fields that hold memory ids."""


def get_operation_name(operation: Operation) -> str:
    """Return the JSON name of an operation."""
    return _OPERATION_NAMES[type(operation)]


def list_memory_ids(operation: Operation) -> tuple[str, ...]:
    """Return the memory ids that an operation names."""
    values = (getattr(operation, name, ()) for name in ID_FIELDS)
    return tuple(
        dict.fromkeys(
            memory_id
            for value in values
            for memory_id in ([value] if isinstance(value, str) else value)
        )
    )


def operation_to_json(operation: Operation) -> dict[str, Any]:
    """Return an operation as a JSON object without default values."""
    body: dict[str, Any] = {"op": get_operation_name(operation)}
    for spec in fields(operation):
        value = getattr(operation, spec.name)
        default = None if spec.default_factory is MISSING else spec.default_factory()
        if value != (default if spec.default is MISSING else spec.default):
            body[spec.name] = _field_to_json(spec.name, value)
    return body


def _field_to_json(name: str, value: Any) -> Any:
    if name in _TIME_FIELDS:
        return format_iso(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


# Parsing


@dataclass(frozen=True, slots=True)
class DeltaClock:
    """The current time and the default time zone for parsing a delta."""

    now: int
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class RefusedOperation:
    """A rejected operation: its 1-based number, its name and the reason."""

    number: int
    op: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.number} ({self.op}): {self.reason}"
            if self.op
            else f"{self.number}: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Delta:
    """The parsed operations by number, and those that were rejected."""

    operations: Mapping[int, Operation]
    refused: tuple[RefusedOperation, ...] = ()

    def require_complete(self) -> tuple[Operation, ...]:
        """Return all operations; raise `InvalidInput` if any was rejected or there is none."""
        if self.refused:
            reasons = "; ".join(map(str, self.refused))
            raise InvalidInput(
                f"The delta was not applied. Operation {reasons}", hint=OPERATION_HINT
            )
        if not self.operations:
            raise InvalidInput("The delta has no operation.", hint=OPERATION_HINT)
        return tuple(self.operations.values())


OPERATION_HINT: Final = f'An operation is {{"op": …}} with one of {", ".join(OPERATIONS)}.'


def parse_delta(value: Any, clock: DeltaClock) -> Delta:
    """Parse a delta from JSON: one operation, a list, or an object that holds the list."""
    operations: dict[int, Operation] = {}
    refused: list[RefusedOperation] = []
    for number, item in enumerate(split_operations(value), 1):
        op = item.get("op") if isinstance(item, Mapping) else None
        name = op if isinstance(op, str) else ""
        try:
            operations[number] = parse_operation(item, clock)
        except ToldError as error:
            refused.append(RefusedOperation(number, name, str(error.message)))
    return Delta(operations, tuple(refused))


def split_operations(value: Any) -> Sequence[Any]:
    """Return the unparsed operations of a delta."""
    if isinstance(value, str):
        value = parse_lenient_json(value)
    if isinstance(value, Mapping):
        value = next(
            (value[name] for name in _LIST_KEYS if isinstance(value.get(name), list)), [value]
        )
    if not isinstance(value, list | tuple):
        raise InvalidInput(
            f"A delta is a list of operations, not {format_value(value)}.", hint=OPERATION_HINT
        )
    if len(value) > MAX_OPERATIONS:
        raise InvalidInput(
            f"The delta has {len(value)} operations; at most {MAX_OPERATIONS} are allowed.",
            hint="Split it.",
        )
    return value


def parse_operation(item: Any, clock: DeltaClock) -> Operation:
    """Parse one operation; raise `InvalidInput` naming a missing, unknown or invalid field."""
    if not isinstance(item, Mapping):
        raise InvalidInput(
            f"An operation is an object, not {format_value(item)}.", hint=OPERATION_HINT
        )
    name = item.get("op")
    cls = OPERATIONS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InvalidInput(f"There is no operation {format_value(name)}.", hint=OPERATION_HINT)
    specs = {spec.name: spec for spec in fields(cls)}
    given = {name: value for name, value in item.items() if name != "op" and value is not None}
    if unknown := [name for name in given if name not in specs]:
        raise InvalidInput(
            f"Unknown field {format_value(unknown[0])}; the fields are {', '.join(specs)}."
        )
    required = (
        name
        for name, spec in specs.items()
        if spec.default is MISSING and spec.default_factory is MISSING
    )
    if missing := [name for name in required if name not in given]:
        raise InvalidInput(f"The field {missing[0]!r} is required.")
    parsed = cls(
        **{name: _FIELD_PARSERS[name](value, name, clock) for name, value in given.items()}
    )
    _check_fields(parsed)
    return parsed


def _check_fields(operation: Operation) -> None:
    """Check the constraints between the fields of an operation."""
    match operation:
        case AddArgument(src=one, dst=other) | AddIdentityEdge(one=one, other=other) if (
            one == other
        ):
            raise InvalidInput("A memory cannot be linked to itself.")
        case LinkDerivedArtifact(id=one, artifact=other) if one == other:
            raise InvalidInput("A memory cannot be derived from itself.")
        case AssertClaim(valid_from=int(start), valid_to=int(end)) if start >= end:
            raise InvalidInput("valid_to must be after valid_from.")
        case AssertFrame(roles=roles) if not roles:
            raise InvalidInput("A frame needs at least one role.")
        case _:
            return


# Fields

FieldParser: TypeAlias = Callable[[Any, str, DeltaClock], Any]
MAX_TEXT_CHARS: Final = 2000
"""The maximum length of a text field in characters."""


def _parse_name(value: Any, name: str, _: DeltaClock) -> str:
    return validate_label(value, name, limit=ID_LIMIT)


def _parse_ids(value: Any, name: str, clock: DeltaClock) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"{name} must be a list of ids, not {format_value(value)}.")
    return tuple(dict.fromkeys(_parse_name(item, name, clock) for item in given))


def _parse_text(value: Any, name: str, _: DeltaClock) -> str:
    return validate_label(value, name, limit=MAX_TEXT_CHARS)


def _parse_fraction(value: Any, name: str, _: DeltaClock) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {format_value(value)}.")
    return float(value)


def _make_choice_parser(choices: Sequence[str]) -> FieldParser:
    def parse_choice(value: Any, name: str, _: DeltaClock) -> str:
        if value not in choices:
            raise InvalidInput(
                f"{name} must be one of {', '.join(choices)}, not {format_value(value)}."
            )
        return str(value)

    return parse_choice


def _parse_time(value: Any, name: str, clock: DeltaClock) -> int:
    if isinstance(value, str):
        return parse_moment(value, now=from_us(clock.now), zone=clock.zone)
    if isinstance(value, bool):
        raise InvalidInput(f"{name} must be a time, not {format_value(value)}.")
    return parse_instant(value, zone=clock.zone)


def _parse_roles(value: Any, name: str, clock: DeltaClock) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f'{name} must be an object such as {{"who": "Ann"}}, not {format_value(value)}.'
        )
    return dict(_parse_role_pairs(value, name, clock))


def _parse_role_pairs(
    value: Mapping[Any, Any], name: str, clock: DeltaClock
) -> Iterator[tuple[str, str]]:
    for role, filler in value.items():
        yield (
            _parse_name(role, f"A role of {name}", clock),
            _parse_text(filler, f"{name}.{role}", clock),
        )


def _parse_meta(value: Any, name: str, _: DeltaClock) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} must be an object, not {format_value(value)}.")
    return dict(value)


_TIME_FIELDS: Final = ("valid_from", "valid_to", "at", "due")
_FIELD_PARSERS: Final[Mapping[str, FieldParser]] = {
    **dict.fromkeys(ID_FIELDS, _parse_name),
    **dict.fromkeys(_TIME_FIELDS, _parse_time),
    **dict.fromkeys(("kind", "type", "method", "why", "predicate"), _parse_name),
    **dict.fromkeys(("text", "subject", "object"), _parse_text),
    **dict.fromkeys(("confidence", "strength"), _parse_fraction),
    "sources": _parse_ids,
    "roles": _parse_roles,
    "meta": _parse_meta,
    "rel": _make_choice_parser(ARGUMENT_RELATIONS),
    "relation": _make_choice_parser(IDENTITY_RELATIONS),
    "lane": _make_choice_parser(CONFIDENCE_LANES),
    "polarity": _make_choice_parser(_POLARITIES),
}
