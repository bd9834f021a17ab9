"""Reading configuration: values at a named place, and mistakes that say where, what and what was meant."""

from __future__ import annotations

import difflib
import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from told.core.errors import ConfigError


def meant(found: object, options: Iterable[str]) -> str:
    """A hint at the option nearest to what was found, empty when none is near."""
    folded = {str(option).lower(): str(option) for option in options}
    near = difflib.get_close_matches(str(found).lower(), folded, n=1)
    return f"Did you mean {folded[near[0]]!r}?" if near else ""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file that a mistake can be pointed out at."""

    file: str
    key: str = ""

    def at(self, key: object) -> Spot:
        """The place of a key below this one."""
        return Spot(self.file, f"{self.key}.{key}" if self.key else str(key))

    def wrong(self, found: object, allowed: str, options: Iterable[str] = ()) -> ConfigError:
        """The error for a value that cannot be used."""
        return self.error(f"found {reprlib.repr(found)}", allowed, meant(found, options))

    def unlike(self, found: object, options: Iterable[str]) -> ConfigError:
        """The error for a value that is none of the options."""
        listed = [str(option) for option in options]
        return self.wrong(found, ", ".join(listed), listed)

    def missing(self, key: str, allowed: str) -> ConfigError:
        """The error for a key that must be there."""
        return self.at(key).error("missing", allowed)

    def error(self, found: str, allowed: str, hint: str = "") -> ConfigError:
        """The error for what was found here."""
        message = ": ".join(part for part in (self.file, self.key, f"{found}; allowed: {allowed}.") if part)
        return ConfigError(message, hint=hint, file=self.file, key=self.key, found=found, allowed=allowed)


Reader: TypeAlias = Callable[[Any, Spot], Any]


def text(value: Any, spot: Spot) -> str:
    """A text that says something, trimmed."""
    if not isinstance(value, str) or not value.strip():
        raise spot.wrong(value, "a text that is not empty")
    return value.strip()


def flag(value: Any, spot: Spot) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise spot.wrong(value, "true or false", ("true", "false"))
    return value


def number(value: Any, spot: Spot, allowed: str, fits: Callable[[float], bool]) -> float:
    """A number that fits; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
        raise spot.wrong(value, allowed)
    return float(value)


def share(value: Any, spot: Spot) -> float:
    """A number from 0 to 1."""
    return number(value, spot, "a number from 0 to 1", lambda given: 0 <= given <= 1)


def one_of(choices: Mapping[str, Any] | Iterable[str]) -> Reader:
    """A reader of what some words stand for: the members of an enumeration, or the values of a table."""
    table = choices if isinstance(choices, Mapping) else {str(choice): choice for choice in choices}

    def read(value: Any, spot: Spot) -> Any:
        if not isinstance(value, str) or value not in table:
            raise spot.unlike(value, table)
        return table[value]

    return read


def many(read: Reader) -> Reader:
    """A reader of lists whose items another reader reads."""

    def read_all(value: Any, spot: Spot) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise spot.wrong(value, "a list")
        return tuple(read(item, spot.at(place)) for place, item in enumerate(value))

    return read_all


def mapping(
    data: Any, readers: Mapping[str, Reader], spot: Spot, *, aliases: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The values of a mapping, each read by the reader of its key; an alias is a second spelling of a key."""
    if not isinstance(data, Mapping):
        raise spot.wrong(data, "a mapping of keys to values")
    names = {name: name for name in readers} | dict(aliases or {})
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in names:
            raise spot.at(key).wrong(key, f"the keys {', '.join(names)}", names)
        name = names[key]
        if name in values:
            raise spot.at(key).wrong(value, f"only one spelling of {name}")
        values[name] = readers[name](value, spot.at(key))
    return values


def once(keys: Iterable[Any]) -> None:
    """Refuse keys that appear twice; a parser would keep the last and say nothing."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} appears twice")
        seen.add(key)


def parse_json(content: str) -> Any:
    """A JSON text whose objects name each key once."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        once(key for key, _ in pairs)
        return dict(pairs)

    return json.loads(content, object_pairs_hook=unique)
