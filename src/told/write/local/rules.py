"""The table of rules: what a verb and its complement say, read from `english.txt` when it is first needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from told.core.lazy import regex
from told.write.local.tables import sections, spelled

_SLOT: Final = regex(r"\{([a-z]\w*)\}")
_NAMED: Final = regex(r"\((\w+)=")


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying something with a verb: predicate, what follows the verb, how to say it, and when it holds."""

    predicate: str
    pattern: str
    phrase: str
    when: frozenset[str]

    @property
    def opposite(self) -> str:
        """The predicate that a denial asserts instead, if there is one."""
        return next((flag.removeprefix("not=") for flag in self.when if flag.startswith("not=")), "")

    def spells_out(self, slot: str) -> bool:
        """Whether a slot takes only words the rule itself names."""
        return f"({slot}=" in self.pattern


@cache
def rules() -> dict[str, tuple[Rule, ...]]:
    """All rules by the verb they belong to, in the order in which they are tried."""
    table: dict[str, tuple[Rule, ...]] = {}
    for verbs, rows in sections("english.txt").items():
        for verb in verbs.split():
            table[verb] = (*table.get(verb, ()), *map(_rule, rows))
    return table


def _rule(row: str) -> Rule:
    predicate, pattern, phrase, when = (*row.split(" | "), "")[:4]
    return Rule(predicate, pattern, phrase, frozenset(when.split()))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern of a rule, compiled when it is first tried."""
    body = _NAMED.sub(r"(?P<\1>", pattern)
    body = _SLOT.sub(lambda slot: f"(?P<{slot[1]}>)" if slot[1] == "verb" else rf"(?P<{slot[1]}>\S.*?)", body)
    return re.compile(spelled(rf"\s*{body}") + ("$" if pattern.endswith("}") else ""), re.IGNORECASE)
