"""Kinds: what may be remembered, how it is written and how fast it fades.

An ontology concept and a YAML memory type are one thing, a `Kind`. Three spellings are read: our own, the schemas of
context engines (`memory_type`, `operation_mode`, `owner_scope`, …) and ontology JSON (`persistence_class`,
`salience_weight`, …). A mistake is refused by an error that names the file, the key, what was found, what is allowed
and, where something is near, what was probably meant.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from told.core import address
from told.core.errors import ConfigError, InvalidInput
from told.core.reading import Reader, Spot, flag, many, mapping, meant, number, one_of, parse_json, share, text
from told.core.salience import PRUNE, Clock, Curve, Tier, per_day
from told.core.scope import Scope, Uri

Source: TypeAlias = "Mapping[str, Any] | str | PathLike[str]"


class Write(StrEnum):
    """How a new memory of a kind meets the ones already there."""

    MERGE = "merge"
    """One thread for each owner; the new view takes the place of the old."""
    AGGREGATE = "aggregate"
    """One thread for each routing key; the new view takes the place of the old."""
    APPEND = "append"
    """A thread of its own every time; nothing is overwritten."""
    CUMULATIVE = "cumulative"
    """One thread for each routing key; every version adds to the last."""


class Owner(StrEnum):
    """Whose memory it is."""

    USER = "user"
    AGENT = "agent"


class Eviction(StrEnum):
    """Which memory leaves when a kind is over its cardinality: the oldest or the weakest."""

    RECENCY = "recency"
    SALIENCE = "salience"


class Semantics(StrEnum):
    """What a second value does to the first: it replaces it, stands beside it, or contradicts it."""

    FUNCTIONAL = "functional"
    MULTI = "multi"
    IMMUTABLE = "immutable"


class Level(StrEnum):
    """How much text."""

    ABSTRACT = "L0"
    OVERVIEW = "L1"
    CONTENT = "L2"


class Type(StrEnum):
    """What a field of a kind holds."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"

    def fits(self, value: object) -> bool:
        """Whether the value is of this type; true and false are not numbers."""
        if isinstance(value, bool):
            return self is Type.BOOLEAN
        return isinstance(value, _PYTHON[self])


_PYTHON: Mapping[Type, tuple[type, ...]] = {
    Type.STRING: (str,), Type.NUMBER: (int, float), Type.INTEGER: (int,), Type.BOOLEAN: (),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One thing a memory of a kind says."""

    name: str
    type: Type = Type.STRING
    required: bool = False
    description: str = ""
    default: str | float | bool | None = None
    enum: tuple[str | float | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of memory and its rules.

    `key` is the field that routes a memory to its thread. `directory` and `filename` are templates of its ctx:// name;
    left empty they follow from the rest. `cardinality` None is unlimited; `half_life_days` None is the tier's own.
    `clock` None is wall time for a kind that says its half-life, and turns for one that does not. A `system` kind is
    made by told itself and never extracted from a conversation.
    """

    name: str
    label: str = ""
    description: str = ""
    write: Write = Write.APPEND
    key: str | None = None
    owner: Owner = Owner.USER
    directory: str = ""
    filename: str = ""
    fields: tuple[Field, ...] = ()
    levels: tuple[Level, ...] = tuple(Level)
    tier: Tier = Tier.LONG_TERM
    weight: float = 0.5
    cardinality: int | None = None
    eviction: Eviction = Eviction.SALIENCE
    half_life_days: float | None = None
    semantics: Semantics = Semantics.MULTI
    examples: tuple[str, ...] = ()
    enabled: bool = True
    system: bool = False
    clock: Clock | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def half_life(self) -> float | None:
        """The days after which half of salience is left by the wall clock; None if it never fades."""
        return self.tier.half_life_days if self.half_life_days is None else self.half_life_days

    @property
    def pace(self) -> Clock:
        """The clock by which its memories fade."""
        return self.clock or (Clock.TURNS if self.half_life_days is None else Clock.TIME)

    def curve(self, confidence: float = 1.0, floor: float = PRUNE) -> Curve:
        """How a memory of this kind fades that is held with so much confidence."""
        by_time = self.pace is Clock.TIME and self.half_life is not None
        decay = per_day(self.half_life or 0.0) if by_time else self.tier.decay
        return Curve(self.weight * confidence, decay, self.tier is Tier.PERMANENT, floor)

    @property
    def keyed(self) -> bool:
        """Whether memories with the same routing key share a thread."""
        return self.write in (Write.AGGREGATE, Write.CUMULATIVE)

    @property
    def template(self) -> str:
        """The template of the kind's ctx:// names."""
        directory = self.directory or f"ctx://{{{{account_id}}}}/{{{{owner_space}}}}/memories/{address.slug(self.name)}"
        unsaid = f"{{{{{self.key}}}}}" if self.keyed else "current" if self.write is Write.MERGE else "{{id}}"
        return f"{directory.rstrip('/')}/{self.filename or unsaid}"

    def address(self, scope: Scope, values: Mapping[str, object]) -> Uri:
        """The ctx:// name of a memory with these values; `id` and `ts` are values too."""
        return address.fill(self.template, scope, self.owner, values)

    def as_json(self) -> dict[str, Any]:
        """What differs from the defaults, as `load_kind` reads it."""
        return _sparse(self, Kind(self.name))


@dataclass(frozen=True, slots=True)
class Ontology(Mapping[str, Kind]):
    """The kinds of an account by name, in order; it never changes, `plus` gives another."""

    kinds: tuple[Kind, ...] = ()
    version: str = ""
    description: str = ""
    _named: Mapping[str, Kind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_named", {kind.name: kind for kind in self.kinds})
        if len(self._named) < len(self.kinds):
            raise ConfigError("Two kinds of an ontology have the same name.", hint="Use plus() to replace a kind.")

    def __getitem__(self, name: str) -> Kind:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kinds, in order."""
        return tuple(self._named)

    def named(self, name: str) -> Kind:
        """The kind of this name, or an error that says which there are."""
        if name not in self._named:
            there = ", ".join(self.names) or "none"
            raise InvalidInput(f"There is no kind {name!r}; there are: {there}.", hint=meant(name, self.names))
        return self._named[name]

    def plus(self, *kinds: Kind) -> Ontology:
        """These kinds as well; one of a name already there takes its place."""
        named = {kind.name: kind for kind in (*self.kinds, *kinds)}
        return replace(self, kinds=tuple(named.values()))


def _check(kind: Kind) -> None:
    """What a kind must hold beyond the types of its parts."""
    spot = Spot(f"kind {kind.name!r}")
    text(kind.name, spot.at("name"))
    share(kind.weight, spot.at("weight"))
    _count(kind.cardinality, spot.at("cardinality"))
    _days(kind.half_life_days, spot.at("half_life_days"))
    if kind.tier is Tier.PERMANENT and kind.half_life_days is not None:
        raise spot.at("half_life_days").wrong(kind.half_life_days, "nothing, because a permanent kind does not fade")
    names = [item.name for item in kind.fields]
    if twice := {name for name in names if names.count(name) > 1}:
        raise spot.at("fields").wrong(sorted(twice), "each name once")
    if kind.key is None and kind.keyed:
        raise spot.missing("key", f"the field that routes a memory to its thread, because write is {kind.write}")
    if kind.key not in (None, *names, *address.SCOPE_NAMES):
        raise spot.at("key").unlike(kind.key, (*names, *address.SCOPE_NAMES))
    address.check(kind.template, names, spot.at("directory/filename"))
    used = address.holds(kind.template)
    if kind.keyed and kind.key not in used:
        raise spot.at("filename").wrong(kind.filename, f"a name with {{{{{kind.key}}}}}, the routing key")
    if kind.write is Write.APPEND and not set(used) & set(address.UNIQUE_NAMES):
        raise spot.at("filename").wrong(kind.filename, "a name with {{ts}} or {{id}}, because append never overwrites")


def _sparse(value: Kind | Field, blank: Kind | Field) -> dict[str, Any]:
    given = {item.name: getattr(value, item.name) for item in fields(value)}
    return {name: _plain(found) for name, found in given.items() if name == "name" or found != getattr(blank, name)}


def _plain(value: Any) -> Any:
    match value:
        case Field():
            return _sparse(value, Field(value.name))
        case tuple():
            return [_plain(item) for item in value]
        case StrEnum():
            return value.value
        case _:
            return value


# Reading --------------------------------------------------------------------------------------------------------------


def load_kind(source: Source) -> Kind:
    """A kind from a YAML file, or from a mapping with the same keys, in any of the three spellings."""
    data, spot = _open(source, "kind")
    if isinstance(data, Mapping) and "update_policy" in data:
        _deprecate(["update_policy"], spot)
    values = _values(data, spot)
    if "name" not in values:
        raise spot.missing("name", "the name of the kind")
    return _build(values, spot)


def load_ontology(source: Source) -> Ontology:
    """The kinds of an ontology file or mapping (version, description, concepts), or of a folder of YAML kinds."""
    if not isinstance(source, Mapping) and _is_folder(Path(source)):
        return _load_folder(Path(source))
    data, spot = _open(source, "ontology")
    values = mapping(data, _ONTOLOGY, spot)
    if "concepts" not in values:
        raise spot.missing("concepts", "a mapping of concept ids to their rules")
    concepts = values.pop("concepts")
    _deprecate([f"concepts.{name}.update_policy" for name, rules in concepts.items() if "update_policy" in rules], spot)
    kinds = [_concept(name, rules, spot.at("concepts").at(name)) for name, rules in concepts.items()]
    return Ontology(tuple(kinds), **values)


@cache
def builtin() -> Ontology:
    """The kinds told knows from the start: those of the folder `kinds`, packed into one file that is quick to read."""
    packed = parse_json(Path(__file__).with_name("kinds.json").read_text(encoding="utf-8"))
    return Ontology(tuple(map(load_kind, packed)))


def _is_folder(path: Path) -> bool:
    with suppress(OSError):  # a text that is no path at all; opening it will say so
        return path.is_dir()
    return False


def _load_folder(folder: Path) -> Ontology:
    kinds: dict[str, Kind] = {}
    for file in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        kind = load_kind(file)
        if kind.name in kinds:
            raise Spot(str(file), "name").wrong(kind.name, "a name no other file of the folder has")
        kinds[kind.name] = kind
    if not kinds:
        raise ConfigError(f"{folder}: holds no kind.", hint="Put one YAML file for each kind there.", file=str(folder))
    return Ontology(tuple(kinds.values()))


def _values(data: Any, spot: Spot) -> dict[str, Any]:
    """The values of a kind under our names; what is said outright counts more than what an older word stands for."""
    values = mapping(data, _KIND, spot, aliases=_ALIASES)
    implied = dict(values.pop("update_policy", {}))
    if mode := values.pop("operation_mode", None):
        declared = {item.name for item in values.get("fields", ())}
        key = next((name for name in address.holds(values.get("filename", "")) if name in declared), None)
        implied |= {"write": Write.MERGE if mode is Write.AGGREGATE and key is None else mode, "key": key}
    return implied | values


def _concept(name: str, rules: Mapping[str, Any], spot: Spot) -> Kind:
    """A concept of an ontology: a thread for each value, as many as its cardinality lets live."""
    values = _values(rules, spot)
    if "tier" not in values:
        raise spot.missing("persistence_class", ", ".join(Tier))
    if "weight" not in values:
        raise spot.missing("salience_weight", "a number from 0 to 1")
    latest = values.get("cardinality") == 1 and values.get("eviction") is Eviction.RECENCY
    implied = {
        "label": name,
        "write": Write.AGGREGATE,
        "key": "value",
        "fields": (Field("value", required=True, description=values.get("label", name)),),
        "semantics": Semantics.FUNCTIONAL if latest else Semantics.MULTI,
    }
    return _build(implied | values | {"name": name}, spot)


def _build(values: Mapping[str, Any], spot: Spot) -> Kind:
    try:
        return Kind(**values)
    except ConfigError as error:
        detail = error.detail | {"file": spot.file}
        raise ConfigError(f"{spot.file}: {error.message}", hint=error.hint, **detail) from None


def _deprecate(keys: list[str], spot: Spot) -> None:
    if keys:
        advice = "say cardinality and eviction instead: superseded is 1 and recency, the others unlimited and salience"
        warnings.warn(f"{spot.file}: {', '.join(keys)}: deprecated; {advice}.", DeprecationWarning, stacklevel=3)


def _field(value: Any, spot: Spot) -> Field:
    values = mapping(value, _FIELD, spot)
    if "name" not in values:
        raise spot.missing("name", "the name of the field")
    found = Field(**values)
    for place, item in enumerate(found.enum):
        if not found.type.fits(item):
            raise spot.at("enum").at(place).wrong(item, f"a value of type {found.type}")
    if found.default is not None and not found.type.fits(found.default):
        raise spot.at("default").wrong(found.default, f"a value of type {found.type}")
    if found.default is not None and found.enum and found.default not in found.enum:
        raise spot.at("default").unlike(found.default, map(str, found.enum))
    return found


def _days(value: Any, spot: Spot) -> float | None:
    allowed = "a number of days above 0"
    return None if value is None else number(value, spot, allowed, lambda days: 0 < days < float("inf"))


def _count(value: Any, spot: Spot) -> int | None:
    if value is None or value == "unlimited":
        return None
    if not Type.INTEGER.fits(value) or value < 1:
        raise spot.wrong(value, 'a whole number from 1, or "unlimited"', ("unlimited",))
    return int(value)


def _levels(value: Any, spot: Spot) -> tuple[Level, ...]:
    if not (levels := set(many(one_of(Level))(value, spot))):
        raise spot.unlike(value, Level)
    return tuple(sorted(levels))


def _any(value: Any, _: Spot) -> Any:
    return value


def _version(value: Any, spot: Spot) -> str:
    return text(str(value) if Type.NUMBER.fits(value) else value, spot)


def _concepts(value: Any, spot: Spot) -> Mapping[str, Mapping[str, Any]]:
    allowed = "a mapping of keys to values"
    if not isinstance(value, Mapping):
        raise spot.wrong(value, allowed)
    for name, rules in value.items():
        text(name, spot)
        if not isinstance(rules, Mapping):
            raise spot.at(name).wrong(rules, allowed)
    return value


_MODES = {"upsert": Write.AGGREGATE, "add_only": Write.APPEND}
_ACCUMULATING = {"cardinality": None, "eviction": Eviction.SALIENCE}
_UPDATE_POLICIES = {
    "superseded": {"cardinality": 1, "eviction": Eviction.RECENCY},
    "mutable": _ACCUMULATING,
    "monotonic": _ACCUMULATING,
}
_FIELD: Mapping[str, Reader] = {
    "name": text, "type": one_of(Type), "required": flag, "description": text, "default": _any, "enum": many(_any),
}  # fmt: skip
_KIND: Mapping[str, Reader] = {
    "name": text, "label": text, "description": text, "write": one_of(Write), "key": text, "owner": one_of(Owner),
    "directory": text, "filename": text, "fields": many(_field), "levels": _levels, "tier": one_of(Tier),
    "weight": share, "cardinality": _count, "eviction": one_of(Eviction), "half_life_days": _days,
    "semantics": one_of(Semantics), "examples": many(text), "enabled": flag, "system": flag,
    "clock": one_of(Clock),
    "operation_mode": one_of(_MODES), "update_policy": one_of(_UPDATE_POLICIES),
}  # fmt: skip
_ALIASES = {
    "memory_type": "name", "filename_template": "filename", "owner_scope": "owner",
    "persistence_class": "tier", "salience_weight": "weight",
}  # fmt: skip
_ONTOLOGY: Mapping[str, Reader] = {"version": _version, "description": text, "concepts": _concepts}

# Files ----------------------------------------------------------------------------------------------------------------

def _open(source: Source, unnamed: str) -> tuple[Any, Spot]:
    """What a source holds, and the place to point at when it is wrong."""
    if isinstance(source, Mapping):
        return source, Spot(unnamed)
    file = str(source)
    try:
        content = Path(source).read_text(encoding="utf-8-sig")
        return (parse_json if file.endswith(".json") else _parse_yaml)(content), Spot(file)
    except OSError as error:
        hint = "Check the path and its permissions."
        raise ConfigError(f"{file}: {error.strerror}.", hint=hint, file=file) from error
    except (ValueError, RecursionError) as error:
        hint = "Write plain YAML or JSON in UTF-8."
        raise ConfigError(f"{file}: cannot be read: {error}.", hint=hint, file=file) from error


def _parse_yaml(content: str) -> Any:
    from told.core.yaml_once import parse

    return parse(content)
