"""The table of rules: what a verb and its complement say, read from `english.txt` when it is first needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.core.lazy import lazy_regex
from told.write.local.tables import expand_macros, load_sections

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
