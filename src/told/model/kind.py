"""Kinds: what may be remembered, how it is written and how fast it fades.

An ontology concept and a YAML memory type are both a `Kind`. Three spellings are accepted: our own,
the schemas of context engines (`memory_type`, `operation_mode`, `owner_scope`, …) and ontology JSON
(`persistence_class`, `salience_weight`, …). Errors name the file, the key, the value found, the
values allowed and a close match if there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from told.errors import ConfigError, InvalidInput, UriError
from told.ids import hash_text
from told.model.salience import DEFAULT_PRUNE_THRESHOLD, DecayClock, DecayCurve, Tier, decay_per_day
from told.model.scope import Scope, Uri
from told.model.validation import (
    ConfigLocation,
    ValueParser,
    check_unique,
    choice_parser,
    list_parser,
    parse_flag,
    parse_fraction,
    parse_json,
    parse_mapping,
    parse_number,
    parse_text,
    suggest_option,
)
from told.runtime import lazy_regex, user_folder

if TYPE_CHECKING:
    import yaml

PLACEHOLDER_PATTERN = lazy_regex(r"\{\{\s*(\w+)\s*\}\}")
SCOPE_PLACEHOLDERS = ("account_id", "user_id", "agent_id", "run_id", "owner_space")
UNIQUE_PLACEHOLDERS = ("id", "ts")
SLUG_LIMIT = 120
_OWNER_PLACEHOLDERS = {"{{owner_space}}", "{{user_id}}", "{{agent_id}}", "{{run_id}}"}
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def slugify(text: str) -> str:
    """Return the text as one address segment: lower case, no blanks, separators or ".."."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).replace(
        "..", ""
    )
    short = "".join("_" if _is_unsafe_char(char) else char for char in folded).strip("_")
    if len(short) <= SLUG_LIMIT:
        return short
    return f"{short[: SLUG_LIMIT - 9]}-{hashlib.sha256(short.encode()).hexdigest()[:8]}"


def _is_unsafe_char(char: str) -> bool:
    return char in "/\\%" or char.isspace() or unicodedata.category(char) in _UNSAFE_CATEGORIES


def escape_segment(name: str) -> str:
    """Return an id as one address segment; different ids give different segments."""
    folded = unicodedata.normalize("NFKC", name)
    if (
        name.startswith("~")
        or folded in (".", "..")
        or any(map(_is_unsafe_char, folded.replace(" ", "")))
    ):
        return f"~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return name


def list_placeholders(template: str) -> tuple[str, ...]:
    """Return the names of a template's placeholders."""
    return tuple(PLACEHOLDER_PATTERN.findall(template))


def validate_template(template: str, field_names: Iterable[str], spot: ConfigLocation) -> None:
    """Reject a template with an unknown name or a path outside its account or owner."""
    allowed_names = (*SCOPE_PLACEHOLDERS, *UNIQUE_PLACEHOLDERS, *field_names)
    for name in list_placeholders(template):
        if name not in allowed_names:
            raise spot.choice_error(name, allowed_names)
    if set("{}") & set(PLACEHOLDER_PATTERN.sub("", template)):
        raise spot.value_error(template, "placeholders such as {{slug}}")
    parts = _split_template(template)
    if not template.startswith("ctx://") or parts[0] != "{{account_id}}" or "" in parts:
        raise spot.value_error(template, "ctx://{{account_id}}/ and what is below it")
    if not _OWNER_PLACEHOLDERS & set(parts[:-1]):
        raise spot.value_error(template, "a folder of its owner, such as {{owner_space}}")
    if any("{{owner_space}}" in part and part != "{{owner_space}}" for part in parts):
        raise spot.value_error(template, "{{owner_space}} as a folder of its own")


def fill_template(template: str, scope: Scope, owner: str, values: Mapping[str, object]) -> Uri:
    """Return the address a template gives to these values of an owner in a scope."""
    given_values = {
        name: value
        for name, value in values.items()
        if value is not None and name not in SCOPE_PLACEHOLDERS
    }
    replacements = {name: slugify(str(value)) for name, value in given_values.items()}
    replacements |= {
        name: escape_segment(value)
        for name, value in (scope.ids() | {"account_id": scope.account}).items()
    }

    def substitute(match: re.Match[str]) -> str:
        if not replacements.get(match[1]):
            raise UriError(
                f"The address {template} needs {match[1]}.",
                hint="Give it a value that is not empty.",
            )
        return replacements[match[1]]

    path: list[str] = []
    for part in _split_template(template):
        path += (
            owner_folder(scope, owner)
            if part == "{{owner_space}}"
            else [PLACEHOLDER_PATTERN.sub(substitute, part)]
        )
    return Uri(path[0], tuple(path[1:]))


def owner_folder(scope: Scope, owner: str) -> tuple[str, str]:
    """Return the folder of the scope's owner, or of the nearest id if it has none."""
    ids = scope.ids()
    spaces = sorted(("user", "agent", "run"), key=lambda space: space != owner)
    return next(
        (f"{space}s", escape_segment(ids[f"{space}_id"]))
        for space in spaces
        if f"{space}_id" in ids
    )


def _split_template(template: str) -> list[str]:
    return [
        PLACEHOLDER_PATTERN.sub(r"{{\1}}", part)
        for part in template.removeprefix("ctx://").split("/")
    ]


KindSource: TypeAlias = "Mapping[str, Any] | str | PathLike[str]"


class WriteMode(StrEnum):
    """The effect of a new memory on the existing memories of its kind."""

    MERGE = "merge"
    """One thread per owner; the new version replaces the old."""
    AGGREGATE = "aggregate"
    """One thread per routing key; the new version replaces the old."""
    APPEND = "append"
    """A new thread every time; nothing is overwritten."""
    CUMULATIVE = "cumulative"
    """One thread per routing key; every version extends the last."""


class Owner(StrEnum):
    """The owner space of a kind."""

    USER = "user"
    AGENT = "agent"


class Eviction(StrEnum):
    """The memory to evict over the cardinality: the oldest or the weakest."""

    RECENCY = "recency"
    SALIENCE = "salience"


class Semantics(StrEnum):
    """The effect of a second value: replace the first, coexist with it or contradict it."""

    FUNCTIONAL = "functional"
    MULTI = "multi"
    IMMUTABLE = "immutable"


class Level(StrEnum):
    """The level of detail of a text."""

    ABSTRACT = "L0"
    OVERVIEW = "L1"
    CONTENT = "L2"


class FieldType(StrEnum):
    """The type of a kind's field."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"

    def accepts(self, value: object) -> bool:
        """Return True if the value has this type; booleans are not numbers."""
        if isinstance(value, bool):
            return self is FieldType.BOOLEAN
        return isinstance(value, _PYTHON_TYPES[self])


_PYTHON_TYPES: Mapping[FieldType, tuple[type, ...]] = {
    FieldType.STRING: (str,),
    FieldType.NUMBER: (int, float),
    FieldType.INTEGER: (int,),
    FieldType.BOOLEAN: (),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind."""

    name: str
    type: FieldType = FieldType.STRING
    required: bool = False
    description: str = ""
    default: str | float | bool | None = None
    enum: tuple[str | float | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of memory and its rules.

    `key` is the field that routes a memory to its thread. `directory` and `filename` are templates
    of its ctx:// name, derived from the rest if empty. `cardinality` None is unlimited;
    `half_life_days` None is the tier's default. `clock` None is wall time for a kind with a
    half-life and turns otherwise. A `system` kind is created by told itself and never extracted
    from a conversation.
    """

    name: str
    label: str = ""
    description: str = ""
    write: WriteMode = WriteMode.APPEND
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
    clock: DecayClock | None = None

    def __post_init__(self) -> None:
        _validate_kind(self)

    @property
    def half_life(self) -> float | None:
        """Return the half-life in days by the wall clock, or None if it never fades."""
        return self.tier.half_life_days if self.half_life_days is None else self.half_life_days

    @property
    def decay_clock(self) -> DecayClock:
        """Return the clock by which its memories fade."""
        return self.clock or (DecayClock.TURNS if self.half_life_days is None else DecayClock.TIME)

    def build_curve(
        self, confidence: float = 1.0, floor: float = DEFAULT_PRUNE_THRESHOLD
    ) -> DecayCurve:
        """Return the decay curve of a memory of this kind with a given confidence."""
        by_time = self.decay_clock is DecayClock.TIME and self.half_life is not None
        decay = decay_per_day(self.half_life or 0.0) if by_time else self.tier.decay
        return DecayCurve(self.weight * confidence, decay, self.tier is Tier.PERMANENT, floor)

    @property
    def is_keyed(self) -> bool:
        """Return True if memories with the same routing key share a thread."""
        return self.write in (WriteMode.AGGREGATE, WriteMode.CUMULATIVE)

    @property
    def template(self) -> str:
        """Return the template of the kind's ctx:// names."""
        directory = (
            self.directory
            or f"ctx://{{{{account_id}}}}/{{{{owner_space}}}}/memories/{slugify(self.name)}"
        )
        if self.is_keyed:
            default_filename = f"{{{{{self.key}}}}}"
        else:
            default_filename = "current" if self.write is WriteMode.MERGE else "{{id}}"
        return f"{directory.rstrip('/')}/{self.filename or default_filename}"

    def build_uri(self, scope: Scope, values: Mapping[str, object]) -> Uri:
        """Return the ctx:// name of a memory with these values; `id` and `ts` are values too."""
        return fill_template(self.template, scope, self.owner, values)

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as `load_kind` reads them."""
        return _to_sparse_json(self, Kind(self.name))


@dataclass(frozen=True, slots=True)
class Ontology(Mapping[str, Kind]):
    """The kinds of an account by name, in order; immutable, see `with_kinds`."""

    kinds: tuple[Kind, ...] = ()
    version: str = ""
    description: str = ""
    _named: Mapping[str, Kind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_named", {kind.name: kind for kind in self.kinds})
        if len(self._named) < len(self.kinds):
            raise ConfigError(
                "Two kinds of an ontology have the same name.",
                hint="Use with_kinds() to replace a kind.",
            )

    def __getitem__(self, name: str) -> Kind:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the kinds, in order."""
        return tuple(self._named)

    def get_kind(self, name: str) -> Kind:
        """Return a kind by name, or raise an error that lists the kinds."""
        if name not in self._named:
            available = ", ".join(self.names) or "none"
            raise InvalidInput(
                f"There is no kind {name!r}; there are: {available}.",
                hint=suggest_option(name, self.names),
            )
        return self._named[name]

    def with_kinds(self, *kinds: Kind) -> Ontology:
        """Return an ontology with these kinds added or replaced."""
        by_name = {kind.name: kind for kind in (*self.kinds, *kinds)}
        return replace(self, kinds=tuple(by_name.values()))


def _validate_kind(kind: Kind) -> None:
    """Check the constraints between a kind's fields."""
    spot = ConfigLocation(f"kind {kind.name!r}")
    parse_text(kind.name, spot.child("name"))
    parse_fraction(kind.weight, spot.child("weight"))
    _parse_cardinality(kind.cardinality, spot.child("cardinality"))
    _parse_days(kind.half_life_days, spot.child("half_life_days"))
    if kind.tier is Tier.PERMANENT and kind.half_life_days is not None:
        raise spot.child("half_life_days").value_error(
            kind.half_life_days, "nothing, because a permanent kind does not fade"
        )
    names = [item.name for item in kind.fields]
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise spot.child("fields").value_error(sorted(duplicates), "unique names")
    if kind.key is None and kind.is_keyed:
        raise spot.missing_key_error(
            "key", f"the field that routes a memory to its thread, because write is {kind.write}"
        )
    if kind.key not in (None, *names, *SCOPE_PLACEHOLDERS):
        raise spot.child("key").choice_error(kind.key, (*names, *SCOPE_PLACEHOLDERS))
    validate_template(kind.template, names, spot.child("directory/filename"))
    placeholders = list_placeholders(kind.template)
    if kind.is_keyed and kind.key not in placeholders:
        raise spot.child("filename").value_error(
            kind.filename, f"a name with {{{{{kind.key}}}}}, the routing key"
        )
    if kind.write is WriteMode.APPEND and not set(placeholders) & set(UNIQUE_PLACEHOLDERS):
        raise spot.child("filename").value_error(
            kind.filename, "a name with {{ts}} or {{id}}, because append never overwrites"
        )


def _to_sparse_json(instance: Kind | Field, defaults: Kind | Field) -> dict[str, Any]:
    values = {item.name: getattr(instance, item.name) for item in fields(instance)}
    return {
        name: _to_plain_json(value)
        for name, value in values.items()
        if name == "name" or value != getattr(defaults, name)
    }


def _to_plain_json(value: Any) -> Any:
    match value:
        case Field():
            return _to_sparse_json(value, Field(value.name))
        case tuple():
            return [_to_plain_json(item) for item in value]
        case StrEnum():
            return value.value
        case _:
            return value


# Loading


def load_kind(source: KindSource) -> Kind:
    """Load a kind from a YAML file or a mapping, in any of the three spellings."""
    data, spot = _open_source(source, "kind")
    if isinstance(data, Mapping) and "update_policy" in data:
        _warn_deprecated(["update_policy"], spot)
    values = _parse_kind_values(data, spot)
    if "name" not in values:
        raise spot.missing_key_error("name", "the name of the kind")
    return _build_kind(values, spot)


def load_ontology(source: KindSource) -> Ontology:
    """Load an ontology from a file, a mapping or a folder of YAML kinds."""
    if not isinstance(source, Mapping) and _is_folder(Path(source)):
        return _load_folder(Path(source))
    data, spot = _open_source(source, "ontology")
    values = parse_mapping(data, _ONTOLOGY_READERS, spot)
    if "concepts" not in values:
        raise spot.missing_key_error("concepts", "a mapping of concept ids to their rules")
    concepts = values.pop("concepts")
    _warn_deprecated(
        [
            f"concepts.{name}.update_policy"
            for name, rules in concepts.items()
            if "update_policy" in rules
        ],
        spot,
    )
    kinds = [
        _parse_concept(name, rules, spot.child("concepts").child(name))
        for name, rules in concepts.items()
    ]
    return Ontology(tuple(kinds), **values)


@cache
def load_builtin_ontology() -> Ontology:
    """Return the built-in kinds."""
    files = sorted(Path(__file__).with_name("kinds").glob("*.yaml"))
    return Ontology(tuple(map(load_kind, _parse_yaml_cached(files))))


def _parse_yaml_cached(files: Iterable[Path]) -> list[Any]:
    """Parse YAML files, or read what an earlier process parsed from the user's cache folder."""
    contents = [file.read_text("utf-8") for file in files]
    digest = hash_text("\0".join(contents)).hex()[:16]
    with suppress(OSError, ValueError, RuntimeError):  # no cache, no home, or not readable
        cached = json.loads(_cache_file(digest).read_text("utf-8"))
        if isinstance(cached, list) and len(cached) == len(contents):
            return cached
    parsed = [parse_unique_yaml(content) for content in contents]
    with suppress(OSError, RuntimeError):
        file = _cache_file(digest)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial_file = file.with_suffix(f".{os.getpid()}")
        partial_file.write_text(json.dumps(parsed), "utf-8")
        partial_file.replace(file)
    return parsed


def _cache_file(digest: str) -> Path:
    return user_folder("cache") / f"kinds-{digest}.json"


def _is_folder(path: Path) -> bool:
    with suppress(OSError):  # not a path; opening it will report the error
        return path.is_dir()
    return False


def _load_folder(folder: Path) -> Ontology:
    kinds: dict[str, Kind] = {}
    for file in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        kind = load_kind(file)
        if kind.name in kinds:
            raise ConfigLocation(str(file), "name").value_error(
                kind.name, "a name no other file of the folder has"
            )
        kinds[kind.name] = kind
    if not kinds:
        raise ConfigError(
            f"{folder}: contains no kinds.",
            hint="Add one YAML file per kind.",
            file=str(folder),
        )
    return Ontology(tuple(kinds.values()))


def _parse_kind_values(data: Any, spot: ConfigLocation) -> dict[str, Any]:
    """Return a kind's values by canonical name; explicit keys override implied ones."""
    values = parse_mapping(data, _KIND_READERS, spot, aliases=_KEY_ALIASES)
    implied = dict(values.pop("update_policy", {}))
    if mode := values.pop("operation_mode", None):
        declared = {item.name for item in values.get("fields", ())}
        key = next(
            (name for name in list_placeholders(values.get("filename", "")) if name in declared),
            None,
        )
        implied |= {
            "write": WriteMode.MERGE if mode is WriteMode.AGGREGATE and key is None else mode,
            "key": key,
        }
    return implied | values


def _parse_concept(name: str, rules: Mapping[str, Any], spot: ConfigLocation) -> Kind:
    """Build the kind of an ontology concept, with one thread per value."""
    values = _parse_kind_values(rules, spot)
    if "tier" not in values:
        raise spot.missing_key_error("persistence_class", ", ".join(Tier))
    if "weight" not in values:
        raise spot.missing_key_error("salience_weight", "a number from 0 to 1")
    latest = values.get("cardinality") == 1 and values.get("eviction") is Eviction.RECENCY
    implied = {
        "label": name,
        "write": WriteMode.AGGREGATE,
        "key": "value",
        "fields": (Field("value", required=True, description=values.get("label", name)),),
        "semantics": Semantics.FUNCTIONAL if latest else Semantics.MULTI,
    }
    return _build_kind(implied | values | {"name": name}, spot)


def _build_kind(values: Mapping[str, Any], spot: ConfigLocation) -> Kind:
    try:
        return Kind(**values)
    except ConfigError as error:
        detail = error.detail | {"file": spot.file}
        raise ConfigError(f"{spot.file}: {error.message}", hint=error.hint, **detail) from None


def _warn_deprecated(keys: list[str], spot: ConfigLocation) -> None:
    if keys:
        advice = "use cardinality and eviction instead"
        warnings.warn(
            f"{spot.file}: {', '.join(keys)}: deprecated; {advice}.",
            DeprecationWarning,
            stacklevel=3,
        )


def _parse_field(value: Any, spot: ConfigLocation) -> Field:
    values = parse_mapping(value, _FIELD_READERS, spot)
    if "name" not in values:
        raise spot.missing_key_error("name", "the name of the field")
    parsed = Field(**values)
    for index, item in enumerate(parsed.enum):
        if not parsed.type.accepts(item):
            raise (
                spot.child("enum").child(index).value_error(item, f"a value of type {parsed.type}")
            )
    if parsed.default is not None and not parsed.type.accepts(parsed.default):
        raise spot.child("default").value_error(parsed.default, f"a value of type {parsed.type}")
    if parsed.default is not None and parsed.enum and parsed.default not in parsed.enum:
        raise spot.child("default").choice_error(parsed.default, map(str, parsed.enum))
    return parsed


def _parse_days(value: Any, spot: ConfigLocation) -> float | None:
    allowed = "a number of days above 0"
    return (
        None
        if value is None
        else parse_number(value, spot, allowed, lambda days: 0 < days < float("inf"))
    )


def _parse_cardinality(value: Any, spot: ConfigLocation) -> int | None:
    if value is None or value == "unlimited":
        return None
    if not FieldType.INTEGER.accepts(value) or value < 1:
        raise spot.value_error(value, 'a whole number from 1, or "unlimited"', ("unlimited",))
    return int(value)


def _parse_levels(value: Any, spot: ConfigLocation) -> tuple[Level, ...]:
    if not (levels := set(list_parser(choice_parser(Level))(value, spot))):
        raise spot.choice_error(value, Level)
    return tuple(sorted(levels))


def _accept_any(value: Any, _: ConfigLocation) -> Any:
    return value


def _parse_version(value: Any, spot: ConfigLocation) -> str:
    return parse_text(str(value) if FieldType.NUMBER.accepts(value) else value, spot)


def _parse_concepts(value: Any, spot: ConfigLocation) -> Mapping[str, Mapping[str, Any]]:
    allowed = "a mapping of keys to values"
    if not isinstance(value, Mapping):
        raise spot.value_error(value, allowed)
    for name, rules in value.items():
        parse_text(name, spot)
        if not isinstance(rules, Mapping):
            raise spot.child(name).value_error(rules, allowed)
    return value


_OPERATION_MODES = {"upsert": WriteMode.AGGREGATE, "add_only": WriteMode.APPEND}
_ACCUMULATING = {"cardinality": None, "eviction": Eviction.SALIENCE}
_UPDATE_POLICIES = {
    "superseded": {"cardinality": 1, "eviction": Eviction.RECENCY},
    "mutable": _ACCUMULATING,
    "monotonic": _ACCUMULATING,
}
_FIELD_READERS: Mapping[str, ValueParser] = {
    "name": parse_text,
    "type": choice_parser(FieldType),
    "required": parse_flag,
    "description": parse_text,
    "default": _accept_any,
    "enum": list_parser(_accept_any),
}
_KIND_READERS: Mapping[str, ValueParser] = {
    "name": parse_text,
    "label": parse_text,
    "description": parse_text,
    "write": choice_parser(WriteMode),
    "key": parse_text,
    "owner": choice_parser(Owner),
    "directory": parse_text,
    "filename": parse_text,
    "fields": list_parser(_parse_field),
    "levels": _parse_levels,
    "tier": choice_parser(Tier),
    "weight": parse_fraction,
    "cardinality": _parse_cardinality,
    "eviction": choice_parser(Eviction),
    "half_life_days": _parse_days,
    "semantics": choice_parser(Semantics),
    "examples": list_parser(parse_text),
    "enabled": parse_flag,
    "system": parse_flag,
    "clock": choice_parser(DecayClock),
    "operation_mode": choice_parser(_OPERATION_MODES),
    "update_policy": choice_parser(_UPDATE_POLICIES),
}
_KEY_ALIASES = {
    "memory_type": "name",
    "filename_template": "filename",
    "owner_scope": "owner",
    "persistence_class": "tier",
    "salience_weight": "weight",
}
_ONTOLOGY_READERS: Mapping[str, ValueParser] = {
    "version": _parse_version,
    "description": parse_text,
    "concepts": _parse_concepts,
}

# Files


def _open_source(source: KindSource, default_name: str) -> tuple[Any, ConfigLocation]:
    """Return the content of a source and its location for error messages."""
    if isinstance(source, Mapping):
        return source, ConfigLocation(default_name)
    file = str(source)
    try:
        content = Path(source).read_text(encoding="utf-8-sig")
        return (parse_json if file.endswith(".json") else parse_unique_yaml)(
            content
        ), ConfigLocation(file)
    except OSError as error:
        hint = "Check the path and its permissions."
        raise ConfigError(f"{file}: {error.strerror}.", hint=hint, file=file) from error
    except (ValueError, RecursionError) as error:
        hint = "Write plain YAML or JSON in UTF-8."
        raise ConfigError(f"{file}: cannot be read: {error}.", hint=hint, file=file) from error


FUNCTIONAL, MULTI, IMMUTABLE = Semantics.FUNCTIONAL, Semantics.MULTI, Semantics.IMMUTABLE
FAVOURITE_PREFIX = "favourite_"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate, its slot, the kind of memory it creates and its semantics."""

    name: str
    slot: str
    kind: str
    semantics: Semantics


def _build_predicates(kind: str, semantics: Semantics, names: str) -> list[Predicate]:
    """Build predicates of one kind; `slot:name` puts several into one slot."""
    pairs = (name.rpartition(":") for name in names.split())
    return [Predicate(name, slot or name, kind, semantics) for slot, _, name in pairs]


_PROFILE_VALUES = """name nickname pronouns age lives_in timezone email phone work:works_in
    work:works_at work:works_as study:studies_at study:studies married_to relationship_status diet
    height weight budget team manager"""
_PROFILE_CONSTANTS = "born_on birthday born_in comes_from native_language"
_PROFILE_LISTS = """speaks allergic_to has_condition takes has_partner has_child has_sibling
    has_parent has_relative has_friend has_colleague has_pet owns drives plays knows skilled_in
    graduated_from believes is has member_of"""
_PREFERENCES = "likes dislikes prefers wants avoids interested_in habit"
_EVENTS = "plans did attended visited bought started finished happened"
_PATTERNS = "goal learning works_on uses project_uses project_needs"

PREDICATES: Mapping[str, Predicate] = {
    row.name: row
    for row in (
        *_build_predicates("profile", FUNCTIONAL, _PROFILE_VALUES),
        *_build_predicates("profile", IMMUTABLE, _PROFILE_CONSTANTS),
        *_build_predicates("profile", MULTI, _PROFILE_LISTS),
        *_build_predicates("preference", MULTI, _PREFERENCES),
        *_build_predicates("preference", FUNCTIONAL, "reply_style"),
        *_build_predicates("event", MULTI, _EVENTS),
        *_build_predicates("pattern", FUNCTIONAL, "deadline"),
        *_build_predicates("pattern", MULTI, _PATTERNS),
    )
}


SAFETY_PREDICATES = frozenset({"allergic_to", "has_condition", "takes"})
"""Multi-valued predicates that are never evicted, because forgetting them is dangerous."""


def lookup_predicate(name: str) -> Predicate:
    """Return a predicate; unknown ones are multi-valued, favourites have their own slot."""
    known = PREDICATES.get(name)
    if known is not None:
        return known
    if name.startswith(FAVOURITE_PREFIX):
        return Predicate(name, name, "preference", FUNCTIONAL)
    return Predicate(name, name, "memory", MULTI)


def parse_unique_yaml(content: str) -> Any:
    """Parse YAML without duplicate keys, or raise ValueError."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(content)
    try:
        node = loader.get_single_node()
        _check_unique_yaml_keys(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()


def _check_unique_yaml_keys(node: yaml.Node | None) -> None:
    import yaml

    match node:
        case yaml.MappingNode(value=pairs):
            check_unique(key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode))
            for _, child in pairs:
                _check_unique_yaml_keys(child)
        case yaml.SequenceNode(value=items):
            for child in items:
                _check_unique_yaml_keys(child)
        case _:
            pass
