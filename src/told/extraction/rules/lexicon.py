"""The tables of the rules, which are data: lists of words and patterns, read from text files when first needed.

A file is made of sections: a name with a colon, and under it indented lines; a line that begins with # is a remark.
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
_KIN_PREDICATES: Final = "has_partner has_child has_sibling has_parent has_relative has_friend has_colleague has manager".split()


@cache
def load_sections(file: str) -> Mapping[str, tuple[str, ...]]:
    """The sections of a file of this package, each with its lines."""
    from importlib.resources import files  # it loads much, and is needed at the first turn only

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
    """A list of words; an underscore in the file stands for a space inside one."""
    return frozenset(
        word.replace("_", " ") for line in load_sections("words.txt")[name] for word in line.split()
    )


@cache
def load_predicates(name: str) -> frozenset[str]:
    """A list of predicates, whose underscores are their own."""
    return frozenset(word for line in load_sections("words.txt")[name] for word in line.split())


@cache
def load_relatives() -> Mapping[str, str]:
    """What having somebody is called, by the word for them: has_sibling for a sister."""
    return {word: predicate for predicate in _KIN_PREDICATES for word in load_words(predicate)}


@cache
def get_pattern(name: str) -> re.Pattern[str]:
    """A pattern of `patterns.txt` by its name, compiled when first asked for."""
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
    """A pattern with its macros and spaces written out."""
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
    """One of these words, the longest first; what is written in two words may have a hyphen."""
    by_length = sorted(alternatives, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join('[ -]'.join(map(re.escape, word.split(' '))) for word in by_length)})"


_SLOT: Final = lazy_regex(r"\{([a-z]\w*)\}")
_NAMED_GROUP: Final = lazy_regex(r"\((\w+)=")


@dataclass(frozen=True, slots=True)
class VerbRule:
    """One way of saying something with a verb: predicate, what follows the verb, how to say it, and when it holds."""

    predicate: str
    pattern: str
    phrase: str
    flags: frozenset[str]

    @property
    def opposite(self) -> str:
        """The predicate that a denial asserts instead, if there is one."""
        return next(
            (flag.removeprefix("not=") for flag in self.flags if flag.startswith("not=")), ""
        )

    def has_literal_slot(self, slot: str) -> bool:
        """Whether a slot takes only words the rule itself names."""
        return f"({slot}=" in self.pattern


@cache
def load_verb_rules() -> dict[str, tuple[VerbRule, ...]]:
    """All rules by the verb they belong to, in the order in which they are tried."""
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
    """The pattern of a rule, compiled when it is first tried."""
    body = _NAMED_GROUP.sub(r"(?P<\1>", pattern)
    body = _SLOT.sub(
        lambda slot: f"(?P<{slot[1]}>)" if slot[1] == "verb" else rf"(?P<{slot[1]}>\S.*?)", body
    )
    return re.compile(
        expand_macros(rf"\s*{body}") + ("$" if pattern.endswith("}") else ""), re.IGNORECASE
    )
