"""Reading configuration: values at a named place, and mistakes that say where, what and what was meant."""

from __future__ import annotations

import difflib
import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from told.errors import ConfigError


def suggest_option(value: object, options: Iterable[str]) -> str:
    """A hint at the option nearest to what was found, empty when none is near."""
    folded = {str(option).lower(): str(option) for option in options}
    matches = difflib.get_close_matches(str(value).lower(), folded, n=1)
    return f"Did you mean {folded[matches[0]]!r}?" if matches else ""


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """A place in a file that a mistake can be pointed out at."""

    file: str
    key: str = ""

    def child(self, key: object) -> ConfigLocation:
        """The place of a key below this one."""
        return ConfigLocation(self.file, f"{self.key}.{key}" if self.key else str(key))

    def value_error(self, value: object, allowed: str, options: Iterable[str] = ()) -> ConfigError:
        """The error for a value that cannot be used."""
        return self.build_error(
            f"found {reprlib.repr(value)}", allowed, suggest_option(value, options)
        )

    def choice_error(self, value: object, options: Iterable[str]) -> ConfigError:
        """The error for a value that is none of the options."""
        names = [str(option) for option in options]
        return self.value_error(value, ", ".join(names), names)

    def missing_key_error(self, key: str, allowed: str) -> ConfigError:
        """The error for a key that must be there."""
        return self.child(key).build_error("missing", allowed)

    def build_error(self, problem: str, allowed: str, hint: str = "") -> ConfigError:
        """The error for what was found here."""
        message = ": ".join(
            part for part in (self.file, self.key, f"{problem}; allowed: {allowed}.") if part
        )
        return ConfigError(
            message, hint=hint, file=self.file, key=self.key, found=problem, allowed=allowed
        )


ValueParser: TypeAlias = Callable[[Any, ConfigLocation], Any]


def parse_text(value: Any, location: ConfigLocation) -> str:
    """A text that says something, trimmed."""
    if not isinstance(value, str) or not value.strip():
        raise location.value_error(value, "a text that is not empty")
    return value.strip()


def parse_flag(value: Any, location: ConfigLocation) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise location.value_error(value, "true or false", ("true", "false"))
    return value


def parse_number(
    value: Any, location: ConfigLocation, allowed: str, is_valid: Callable[[float], bool]
) -> float:
    """A number that fits; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_valid(value):
        raise location.value_error(value, allowed)
    return float(value)


def parse_fraction(value: Any, location: ConfigLocation) -> float:
    """A number from 0 to 1."""
    return parse_number(value, location, "a number from 0 to 1", lambda given: 0 <= given <= 1)


def choice_parser(choices: Mapping[str, Any] | Iterable[str]) -> ValueParser:
    """A reader of what some words stand for: the members of an enumeration, or the values of a table."""
    table = choices if isinstance(choices, Mapping) else {str(choice): choice for choice in choices}

    def parse_choice(value: Any, location: ConfigLocation) -> Any:
        if not isinstance(value, str) or value not in table:
            raise location.choice_error(value, table)
        return table[value]

    return parse_choice


def list_parser(parse_item: ValueParser) -> ValueParser:
    """A reader of lists whose items another reader reads."""

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
    """The values of a mapping, each read by the reader of its key; an alias is a second spelling of a key."""
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
    """Refuse keys that appear twice; a parser would keep the last and say nothing."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} appears twice")
        seen.add(key)


def parse_json(content: str) -> Any:
    """A JSON text whose objects name each key once."""

    def build_unique_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        check_unique(key for key, _ in pairs)
        return dict(pairs)

    return json.loads(content, object_pairs_hook=build_unique_dict)
