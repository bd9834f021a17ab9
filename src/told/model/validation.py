"""Configuration parsing with errors that name the place, the value and a close match."""

from __future__ import annotations

import difflib
import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from told.errors import ConfigError


def suggest_option(value: object, options: Iterable[str]) -> str:
    """Return a hint naming the closest option, empty if none is close."""
    folded = {str(option).lower(): str(option) for option in options}
    matches = difflib.get_close_matches(str(value).lower(), folded, n=1)
    return f"Did you mean {folded[matches[0]]!r}?" if matches else ""


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """A location in a configuration file, for error messages."""

    file: str
    key: str = ""

    def child(self, key: object) -> ConfigLocation:
        """Return the location of a key below this one."""
        return ConfigLocation(self.file, f"{self.key}.{key}" if self.key else str(key))

    def value_error(self, value: object, allowed: str, options: Iterable[str] = ()) -> ConfigError:
        """Return the error for an invalid value."""
        return self.build_error(
            f"found {reprlib.repr(value)}", allowed, suggest_option(value, options)
        )

    def choice_error(self, value: object, options: Iterable[str]) -> ConfigError:
        """Return the error for a value that is none of the options."""
        names = [str(option) for option in options]
        return self.value_error(value, ", ".join(names), names)

    def missing_key_error(self, key: str, allowed: str) -> ConfigError:
        """Return the error for a missing key."""
        return self.child(key).build_error("missing", allowed)

    def build_error(self, problem: str, allowed: str, hint: str = "") -> ConfigError:
        """Return the error for a problem at this location."""
        message = ": ".join(
            part for part in (self.file, self.key, f"{problem}; allowed: {allowed}.") if part
        )
        return ConfigError(
            message, hint=hint, file=self.file, key=self.key, found=problem, allowed=allowed
        )


ValueParser: TypeAlias = Callable[[Any, ConfigLocation], Any]


def parse_text(value: Any, location: ConfigLocation) -> str:
    """Return a trimmed, non-empty text."""
    if not isinstance(value, str) or not value.strip():
        raise location.value_error(value, "a non-empty text")
    return value.strip()


def parse_flag(value: Any, location: ConfigLocation) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise location.value_error(value, "true or false", ("true", "false"))
    return value


def parse_number(
    value: Any, location: ConfigLocation, allowed: str, is_valid: Callable[[float], bool]
) -> float:
    """Return a number that passes a check; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_valid(value):
        raise location.value_error(value, allowed)
    return float(value)


def parse_fraction(value: Any, location: ConfigLocation) -> float:
    """Return a number from 0 to 1."""
    return parse_number(value, location, "a number from 0 to 1", lambda given: 0 <= given <= 1)


def choice_parser(choices: Mapping[str, Any] | Iterable[str]) -> ValueParser:
    """Return a parser of enum members or of the keys of a table."""
    table = choices if isinstance(choices, Mapping) else {str(choice): choice for choice in choices}

    def parse_choice(value: Any, location: ConfigLocation) -> Any:
        if not isinstance(value, str) or value not in table:
            raise location.choice_error(value, table)
        return table[value]

    return parse_choice


def list_parser(parse_item: ValueParser) -> ValueParser:
    """Return a parser of lists."""

    def parse_list(value: Any, location: ConfigLocation) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise location.value_error(value, "a list")
        return tuple(parse_item(item, location.child(index)) for index, item in enumerate(value))

    return parse_list


def parse_mapping(
    data: Any,
    parsers: Mapping[str, ValueParser],
    location: ConfigLocation,
    *,
    aliases: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Parse a mapping with one parser per key; aliases are alternative spellings."""
    if not isinstance(data, Mapping):
        raise location.value_error(data, "a mapping of keys to values")
    names = {name: name for name in parsers} | dict(aliases or {})
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in names:
            raise location.child(key).value_error(key, f"the keys {', '.join(names)}", names)
        name = names[key]
        if name in values:
            raise location.child(key).value_error(value, f"only one spelling of {name}")
        values[name] = parsers[name](value, location.child(key))
    return values


def check_unique(keys: Iterable[Any]) -> None:
    """Reject duplicate keys, which a parser would silently drop."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} appears twice")
        seen.add(key)


def parse_json(content: str) -> Any:
    """Parse JSON without duplicate keys."""

    def build_unique_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        check_unique(key for key, _ in pairs)
        return dict(pairs)

    return json.loads(content, object_pairs_hook=build_unique_dict)
