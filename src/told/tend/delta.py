"""A delta: what reflection wants done to memories, as a closed union of nine operations that can be read from JSON.

An operation says what, never how: `told.tend.apply` turns it into ledger entries. Seven of the nine only add. The two
that close something, and the one that changes a confidence, make a new version or a retraction, so that whatever was
believed before stays readable as of then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, TypeAlias

from told.core.belief import CONTRADICTS, SUPERSEDES, SUPPORTS
from told.core.entry import NO_META
from told.core.errors import InvalidInput, ToldError
from told.core.identity import DISTINCT
from told.core.scope import ID_LIMIT
from told.core.text import label, loads_forgiving, shown
from told.core.when import from_us, instant, iso, moment

POTENTIALLY_SAME: Final = "potentially_same"
REBUTS: Final = "rebuts"
ARGUMENTS: Final = (
    SUPPORTS, REBUTS, "undercuts", "endorses", SUPERSEDES, "qualifies", POTENTIALLY_SAME, "same_referent",
    "same_event", "explains", "alternative_analysis_of", "same_evidence_different_analysis",
    "same_claim_different_schema", CONTRADICTS,
)  # fmt: skip
"""How one memory may bear on another."""

AGAINST: Final = frozenset({SUPERSEDES, CONTRADICTS, REBUTS, "undercuts"})
"""Arguments after which the other memory may count for less."""

IDENTITIES: Final = ("same_referent", "possibly_same_referent", DISTINCT, "not_enough_information")
LANES: Final = ("human", "calibrated", "machine")
"""Whose confidence counts, the first that there is."""

NEEDS_CONTRADICTION_REVIEW: Final = "needs_contradiction_review"
STALE_SESSION: Final = "stale_session"
MOST: Final = 100
"""How many operations one delta may have."""

_POLARITIES: Final = ("asserted", "negated")
_LISTS: Final = ("operations", "deltas", "delta", "ops")


# The nine operations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssertClaim:
    """Hold a claim that was made of others: it is derived from them and supersedes them, and they stay."""

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
    """Hold a claim of more than two: a sort of happening, and who or what plays which role in it."""

    type: str
    roles: Mapping[str, str]
    sources: tuple[str, ...] = ()
    text: str = ""
    kind: str = "memory"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class AddArgument:
    """Say that one memory bears on another."""

    src: str
    rel: str
    dst: str
    strength: float = 1.0
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class AddIdentityEdge:
    """Say how sure it is that two mean the same, or cannot."""

    one: str
    other: str
    relation: str = "same_referent"
    confidence: float = 1.0
    method: str = "reflection"


@dataclass(frozen=True, slots=True)
class CloseValidTime:
    """Say until when a memory held in the world."""

    id: str
    at: int


@dataclass(frozen=True, slots=True)
class CloseTxTime:
    """Believe a memory no longer."""

    id: str
    why: str = "closed"


@dataclass(frozen=True, slots=True)
class UpdateConfidence:
    """Say how sure a memory is, by a person, by a calibrated measure or by a machine."""

    id: str
    confidence: float
    lane: str = "machine"


@dataclass(frozen=True, slots=True)
class ScheduleReview:
    """Have somebody look at a memory, from when on; nothing said is at once."""

    id: str
    why: str = NEEDS_CONTRADICTION_REVIEW
    due: int | None = None


@dataclass(frozen=True, slots=True)
class LinkDerivedArtifact:
    """Say that a memory, such as a summary or a document, was made of another; whoever erases that erases it too."""

    id: str
    artifact: str


Operation: TypeAlias = (
    AssertClaim | AssertFrame | AddArgument | AddIdentityEdge | CloseValidTime | CloseTxTime | UpdateConfidence
    | ScheduleReview | LinkDerivedArtifact
)  # fmt: skip
OPERATIONS: Final[Mapping[str, type[Operation]]] = {
    "assert_claim": AssertClaim, "assert_frame": AssertFrame, "add_argument": AddArgument,
    "add_identity_edge": AddIdentityEdge, "close_valid_time": CloseValidTime, "close_tx_time": CloseTxTime,
    "update_confidence": UpdateConfidence, "schedule_review": ScheduleReview,
    "link_derived_artifact": LinkDerivedArtifact,
}  # fmt: skip
_NAMES: Final = {cls: name for name, cls in OPERATIONS.items()}
IDS: Final = ("id", "src", "dst", "one", "other", "artifact", "sources")
"""The fields that name memories."""


def name_of(operation: Operation) -> str:
    """What an operation is called in JSON."""
    return _NAMES[type(operation)]


def touched(operation: Operation) -> tuple[str, ...]:
    """The memories an operation names."""
    named = (getattr(operation, name, ()) for name in IDS)
    return tuple(dict.fromkeys(one for each in named for one in ([each] if isinstance(each, str) else each)))


def as_json(operation: Operation) -> dict[str, Any]:
    """An operation as `read` reads it, without what is as usual."""
    body: dict[str, Any] = {"op": name_of(operation)}
    for each in fields(operation):
        value = getattr(operation, each.name)
        usual = None if each.default_factory is MISSING else each.default_factory()
        if value != (usual if each.default is MISSING else each.default):
            body[each.name] = _plain(each.name, value)
    return body


def _plain(name: str, value: Any) -> Any:
    if name in _TIMES:
        return iso(value)
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


# Reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clock:
    """The time at which a delta is read, and the zone of times that name none."""

    now: int
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation that will not be done: its number, counted from 1, what it was, and why not."""

    number: int
    op: str
    reason: str

    def __str__(self) -> str:
        return f"{self.number} ({self.op}): {self.reason}" if self.op else f"{self.number}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Delta:
    """The operations that could be read, by their numbers, and those that could not."""

    operations: Mapping[int, Operation]
    refused: tuple[Refused, ...] = ()

    def whole(self) -> tuple[Operation, ...]:
        """All operations, or an error that names every one that cannot be read: half a delta is never done."""
        if self.refused:
            reasons = "; ".join(map(str, self.refused))
            raise InvalidInput(f"The delta was not applied. Operation {reasons}", hint=HINT)
        if not self.operations:
            raise InvalidInput("The delta has no operation.", hint=HINT)
        return tuple(self.operations.values())


HINT: Final = f'An operation is {{"op": …}} with one of {", ".join(OPERATIONS)}.'


def read(value: Any, clock: Clock) -> Delta:
    """A delta from JSON: one operation, a list of them, or an object that holds the list; each is read by itself."""
    done: dict[int, Operation] = {}
    refused: list[Refused] = []
    for number, item in enumerate(items(value), 1):
        op = item.get("op") if isinstance(item, Mapping) else None
        name = op if isinstance(op, str) else ""
        try:
            done[number] = operation(item, clock)
        except ToldError as error:
            refused.append(Refused(number, name, str(error.message)))
    return Delta(done, tuple(refused))


def items(value: Any) -> Sequence[Any]:
    """The operations of a delta, still to be read."""
    if isinstance(value, str):
        value = loads_forgiving(value)
    if isinstance(value, Mapping):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), [value])
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"A delta is a list of operations, not {shown(value)}.", hint=HINT)
    if len(value) > MOST:
        raise InvalidInput(f"The delta has {len(value)} operations; at most {MOST} are done at once.", hint="Cut it.")
    return value


def operation(item: Any, clock: Clock) -> Operation:
    """One operation from JSON; a field that is missing, unknown or wrong is an error that names it."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An operation is an object, not {shown(item)}.", hint=HINT)
    name = item.get("op")
    cls = OPERATIONS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InvalidInput(f"There is no operation {shown(name)}.", hint=HINT)
    known = {each.name: each for each in fields(cls)}
    given = {name: value for name, value in item.items() if name != "op" and value is not None}
    if unknown := [name for name in given if name not in known]:
        raise InvalidInput(f"It has no field {shown(unknown[0])}; its fields are {', '.join(known)}.")
    needed = (name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING)
    if missing := [name for name in needed if name not in given]:
        raise InvalidInput(f"It needs the field {missing[0]!r}.")
    made = cls(**{name: _FIELDS[name](value, name, clock) for name, value in given.items()})
    _sound(made)
    return made


def _sound(made: Operation) -> None:
    """What must hold between the fields of an operation."""
    match made:
        case AddArgument(src=one, dst=other) | AddIdentityEdge(one=one, other=other) if one == other:
            raise InvalidInput("A memory does not bear on itself.")
        case LinkDerivedArtifact(id=one, artifact=other) if one == other:
            raise InvalidInput("A memory is not made of itself.")
        case AssertClaim(valid_from=int(start), valid_to=int(end)) if start >= end:
            raise InvalidInput("valid_to must be after valid_from.")
        case AssertFrame(roles=roles) if not roles:
            raise InvalidInput("A frame has at least one role.")
        case _:
            return


# Fields ---------------------------------------------------------------------------------------------------------------

Check: TypeAlias = Callable[[Any, str, Clock], Any]
WORDS: Final = 2000
"""The longest text of an operation, in characters."""


def _name(value: Any, name: str, _: Clock) -> str:
    return label(value, name, limit=ID_LIMIT)


def _ids(value: Any, name: str, clock: Clock) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"{name} must be a list of ids, not {shown(value)}.")
    return tuple(dict.fromkeys(_name(each, name, clock) for each in given))


def _text(value: Any, name: str, _: Clock) -> str:
    return label(value, name, limit=WORDS)


def _share(value: Any, name: str, _: Clock) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {shown(value)}.")
    return float(value)


def _one_of(choices: Sequence[str]) -> Check:
    def check(value: Any, name: str, _: Clock) -> str:
        if value not in choices:
            raise InvalidInput(f"{name} must be one of {', '.join(choices)}, not {shown(value)}.")
        return str(value)

    return check


def _time(value: Any, name: str, clock: Clock) -> int:
    if isinstance(value, str):
        return moment(value, now=from_us(clock.now), zone=clock.zone)
    if isinstance(value, bool):
        raise InvalidInput(f"{name} must be a time, not {shown(value)}.")
    return instant(value, zone=clock.zone)


def _roles(value: Any, name: str, clock: Clock) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f'{name} must be an object such as {{"who": "Ann"}}, not {shown(value)}.')
    return dict(_pairs(value, name, clock))


def _pairs(value: Mapping[Any, Any], name: str, clock: Clock) -> Iterator[tuple[str, str]]:
    for role, filler in value.items():
        yield _name(role, f"A role of {name}", clock), _text(filler, f"{name}.{role}", clock)


def _meta(value: Any, name: str, _: Clock) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} must be an object, not {shown(value)}.")
    return dict(value)


_TIMES: Final = ("valid_from", "valid_to", "at", "due")
_FIELDS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(IDS, _name), **dict.fromkeys(_TIMES, _time),
    **dict.fromkeys(("kind", "type", "method", "why", "predicate"), _name),
    **dict.fromkeys(("text", "subject", "object"), _text), **dict.fromkeys(("confidence", "strength"), _share),
    "sources": _ids, "roles": _roles, "meta": _meta, "rel": _one_of(ARGUMENTS), "relation": _one_of(IDENTITIES),
    "lane": _one_of(LANES), "polarity": _one_of(_POLARITIES),
}  # fmt: skip
