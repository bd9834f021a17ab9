"""The table of rules: what a verb and its complement say, read from `english.txt` when it is first needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from told.write.local import words

_SLOT: Final = re.compile(r"\{([a-z]\w*)\}")
_NAMED: Final = re.compile(r"\((\w+)=")


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying something with a verb: the predicate, what follows the verb, how to say it, and when it holds."""

    predicate: str
    pattern: str
    phrase: str
    when: frozenset[str]

    @property
    def opposite(self) -> str:
        """The predicate that a denial asserts instead, if there is one."""
        return next((flag.removeprefix("not=") for flag in self.when if flag.startswith("not=")), "")


@cache
def rules() -> dict[str, tuple[Rule, ...]]:
    """All rules by the verb they belong to."""
    table: dict[str, tuple[Rule, ...]] = {}
    verbs: list[str] = []
    text = files("told.write.local").joinpath("english.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(("#", " ")):
            verbs = line[:-1].split()
        elif line.startswith("  "):
            for verb in verbs:
                table[verb] = (*table.get(verb, ()), _rule(line.strip()))
    return table


def _rule(line: str) -> Rule:
    predicate, pattern, phrase, when = (*line.split(" | "), "")[:4]
    return Rule(predicate, pattern, phrase, frozenset(when.split()))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern of a rule, compiled when it is first tried."""
    body = _NAMED.sub(r"(?P<\1>", re.sub(r"<([A-Z_]+)>", lambda name: lists()[name[1]], pattern))
    body = _SLOT.sub(lambda slot: f"(?P<{slot[1]}>)" if slot[1] == "verb" else rf"(?P<{slot[1]}>\S.*?)", body)
    body = re.sub(r"(?<!\[)(?<!\\) (?![?*\]])", r"\\s+", body)
    return re.compile(rf"\s*{body}{'$' if pattern.endswith('}') else ''}", re.IGNORECASE)


def _any(table: frozenset[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", "[ -]") for word in sorted(table, key=lambda word: (-len(word), word)))


@cache
def lists() -> dict[str, str]:
    """The lists of words that patterns name."""
    tables = ("DIETS", "FIELDS", "GADGETS", "MEDICINES", "LANGUAGES", "CONDITIONS", "STATES", "TRAITS", "NATIONS",
              "TRAIT_ADJECTIVES", "LOVE_LIFE", "APPOINTMENTS")  # fmt: skip
    return {name: _any(getattr(words, name)) for name in tables} | {
        "MEDICAL": words.MEDICAL,
        "LIFE": words.LIFE,
        "TOOLS": words.TOOLS,
        "REACTION": words.REACTION,
        "A": "(?:an? |the |my )?",
        "VERY": f"(?:(?:{words.VERY}) )*",
    }
