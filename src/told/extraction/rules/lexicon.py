"""Load word lists, patterns and rules from text files on first use.

A file has sections: a name with a colon, followed by indented lines. Lines that begin with # are
comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.runtime import lazy_regex

_MACRO: Final = lazy_regex(r"<([A-Z_]+|[a-z]+\.[a-z_]+)>")
_SPACE: Final = lazy_regex(r"(?<!\[)(?<!\\) (?![?*+\]])")
_FLAGS: Final = {"s": re.DOTALL, "m": re.MULTILINE}
_KIN_PREDICATES: Final = (
    "has_partner",
    "has_child",
    "has_sibling",
    "has_parent",
    "has_relative",
    "has_friend",
    "has_colleague",
    "has",
    "manager",
)


@cache
def load_sections(file: str) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each section of a file in this package."""
    from importlib.resources import files  # slow to import and only needed for the first turn

    by_name: dict[str, list[str]] = {}
    name = ""
    for line in (
        files("told.extraction.rules").joinpath(file).read_text(encoding="utf-8").splitlines()
    ):
        if line.startswith("  "):
            by_name[name].append(line[2:])
        elif line.endswith(":") and not line.startswith("#"):
            name = line[:-1]
            by_name[name] = []
    return {name: tuple(lines) for name, lines in by_name.items()}


@cache
def load_words(name: str) -> frozenset[str]:
    """Load a word list; an underscore in the file is a space."""
    return frozenset(
        word.replace("_", " ") for line in load_sections("words.txt")[name] for word in line.split()
    )


@cache
def load_predicates(name: str) -> frozenset[str]:
    """Load a list of predicates, keeping underscores."""
    return frozenset(word for line in load_sections("words.txt")[name] for word in line.split())


@cache
def load_relatives() -> Mapping[str, str]:
    """Map each word for a relative to its predicate, e.g. sister to has_sibling."""
    return {word: predicate for predicate in _KIN_PREDICATES for word in load_words(predicate)}


@cache
def get_pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of `patterns.txt`."""
    flag_letters = _load_pattern_flags()[name]
    flags = re.NOFLAG if "c" in flag_letters else re.IGNORECASE
    for flag_letter in flag_letters.replace("c", ""):
        flags |= _FLAGS[flag_letter]
    return re.compile(expand_macros("|".join(_get_pattern_lines(name))), flags)


@cache
def _load_pattern_flags() -> Mapping[str, str]:
    return {
        head.partition(" ")[0]: head.partition(" ")[2] for head in load_sections("patterns.txt")
    }


def _get_pattern_lines(name: str) -> tuple[str, ...]:
    return load_sections("patterns.txt")[f"{name} {_load_pattern_flags()[name]}".strip()]


def expand_macros(text: str) -> str:
    """Expand the macros and spaces of a pattern."""
    while _MACRO.search(text):
        text = _MACRO.sub(lambda macro: _expand_macro(macro[1]), text)
    return _SPACE.sub(r"\\s+", text)


@cache
def _expand_macro(name: str) -> str:
    if "." in name:
        return f"(?:{'|'.join(_get_pattern_lines(name))})"
    match name:
        case "RELATIONS":
            return _build_alternation((*load_relatives(), *load_words("PETS")))
        case "ATTRIBUTES":
            return _build_alternation(
                noun for head in load_sections("attributes.txt") for noun in head.split("|")
            )
    return _build_alternation(load_words(name))


def _build_alternation(alternatives: Iterable[str]) -> str:
    """Build an alternation of words, longest first, allowing hyphens for spaces."""
    by_length = sorted(alternatives, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join('[ -]'.join(map(re.escape, word.split(' '))) for word in by_length)})"


_SLOT: Final = lazy_regex(r"\{([a-z]\w*)\}")
_NAMED_GROUP: Final = lazy_regex(r"\((\w+)=")


@dataclass(frozen=True, slots=True)
class VerbRule:
    """A rule for a verb: predicate, complement pattern, output phrase and flags."""

    predicate: str
    pattern: str
    phrase: str
    flags: frozenset[str]

    @property
    def opposite(self) -> str:
        """Return the predicate asserted by a denial, or ""."""
        return next(
            (flag.removeprefix("not=") for flag in self.flags if flag.startswith("not=")), ""
        )

    def has_literal_slot(self, slot: str) -> bool:
        """Return True if a slot only accepts words listed in the rule."""
        return f"({slot}=" in self.pattern


@cache
def load_verb_rules() -> dict[str, tuple[VerbRule, ...]]:
    """Return the rules of each verb in order of precedence."""
    table: dict[str, tuple[VerbRule, ...]] = {}
    for verbs, rows in load_sections("english.txt").items():
        for verb in verbs.split():
            table[verb] = (*table.get(verb, ()), *map(_parse_rule, rows))
    return table


def _parse_rule(row: str) -> VerbRule:
    predicate, pattern, phrase, flags = (*row.split(" | "), "")[:4]
    return VerbRule(predicate, pattern, phrase, frozenset(flags.split()))


@cache
def compile_rule_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a rule."""
    body = _NAMED_GROUP.sub(r"(?P<\1>", pattern)
    body = _SLOT.sub(
        lambda slot: f"(?P<{slot[1]}>)" if slot[1] == "verb" else rf"(?P<{slot[1]}>\S.*?)", body
    )
    return re.compile(
        expand_macros(rf"\s*{body}") + ("$" if pattern.endswith("}") else ""), re.IGNORECASE
    )
