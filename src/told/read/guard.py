"""The last door before content leaves: what a caller may not see is counted, and nothing else of it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from told.core.fact import Fact

Guard: TypeAlias = Callable[[Fact], str | None]
"""Why a memory may not be shown; nothing, if it may."""


def allow_kinds(prefixes: Sequence[str]) -> Guard:
    """Lets through the kinds that begin with one of these, whole words of a dotted name at a time."""

    def deny(fact: Fact) -> str | None:
        is_allowed = any(
            fact.kind == prefix or fact.kind.startswith(f"{prefix}.") for prefix in prefixes
        )
        return None if is_allowed else "not subscribed to"

    return deny


def find_denials(facts: Iterable[Fact], guards: Sequence[Guard]) -> Mapping[int, str]:
    """Why each of the facts that some guard stops may not be shown, by position."""
    if not guards:
        return {}
    reasons = (
        (fact.seq, next((reason for guard in guards if (reason := guard(fact))), None))
        for fact in facts
    )
    return {seq: reason for seq, reason in reasons if reason}
