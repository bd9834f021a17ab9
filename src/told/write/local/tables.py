"""The tables of the rules, which are data: lists of words and patterns, read from text files when first needed.

A file is made of sections: a name with a colon, and under it indented lines; a line that begins with # is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from told.core.lazy import regex

_MACRO: Final = regex(r"<([A-Z_]+|[a-z]+\.[a-z_]+)>")
_SPACE: Final = regex(r"(?<!\[)(?<!\\) (?![?*+\]])")
_FLAGS: Final = {"s": re.DOTALL, "m": re.MULTILINE}
_KIN: Final = "has_partner has_child has_sibling has_parent has_relative has_friend has_colleague has manager".split()


@cache
def sections(file: str) -> Mapping[str, tuple[str, ...]]:
    """The sections of a file of this package, each with its lines."""
    from importlib.resources import files  # it loads much, and is needed at the first turn only

    found: dict[str, list[str]] = {}
    name = ""
    for line in files("told.write.local").joinpath(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            found[name].append(line[2:])
        elif line.endswith(":") and not line.startswith("#"):
            name = line[:-1]
            found[name] = []
    return {name: tuple(lines) for name, lines in found.items()}


@cache
def words(name: str) -> frozenset[str]:
    """A list of words; an underscore in the file stands for a space inside one."""
    return frozenset(word.replace("_", " ") for line in sections("words.txt")[name] for word in line.split())


@cache
def names(name: str) -> frozenset[str]:
    """A list of predicates, whose underscores are their own."""
    return frozenset(word for line in sections("words.txt")[name] for word in line.split())


@cache
def relatives() -> Mapping[str, str]:
    """What having somebody is called, by the word for them: has_sibling for a sister."""
    return {word: predicate for predicate in _KIN for word in words(predicate)}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern of `patterns.txt` by its name, compiled when first asked for."""
    letters = _letters()[name]
    flags = re.NOFLAG if "c" in letters else re.IGNORECASE
    for letter in letters.replace("c", ""):
        flags |= _FLAGS[letter]
    return re.compile(spelled("|".join(_lines(name))), flags)


@cache
def _letters() -> Mapping[str, str]:
    return {head.partition(" ")[0]: head.partition(" ")[2] for head in sections("patterns.txt")}


def _lines(name: str) -> tuple[str, ...]:
    return sections("patterns.txt")[f"{name} {_letters()[name]}".strip()]


def spelled(text: str) -> str:
    """A pattern with its macros and spaces written out."""
    while _MACRO.search(text):
        text = _MACRO.sub(lambda macro: _written(macro[1]), text)
    return _SPACE.sub(r"\\s+", text)


@cache
def _written(name: str) -> str:
    if "." in name:
        return f"(?:{'|'.join(_lines(name))})"
    match name:
        case "RELATIONS":
            return _any((*relatives(), *words("PETS")))
        case "ATTRIBUTES":
            return _any(noun for head in sections("attributes.txt") for noun in head.split("|"))
    return _any(words(name))


def _any(table: Iterable[str]) -> str:
    """One of these words, the longest first; what is written in two words may have a hyphen."""
    longest = sorted(table, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join('[ -]'.join(map(re.escape, word.split(' '))) for word in longest)})"
