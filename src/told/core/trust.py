"""Whom to believe: what a user says stands above a tool's answer, that above a guess, and that above a document.

What was made of several things is worth no more than the least of them, and what is worth less may never replace or
retire what is worth more. What does not come from the user's own mouth makes no rule about the user or the agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from told.core.entry import Claim
from told.core.fact import Fact

TRUST_KEY = "trust"
"""The metadata that says a memory is worth less than its role; nothing in it can make a memory worth more."""

TURN_SORT = "turn"
INFERRED_MODALITIES = frozenset({"inferred", "hypothesis_only", "reconstructed", "model_output"})
"""Modalities of what nobody said: somebody concluded it."""

USER_ONLY_KINDS = frozenset({"profile", "preference", "skill", "tool"})
"""Kinds that steer what an agent does, and so are made of the user's own words only."""


class Trust(IntEnum):
    """How far a source is believed; the greater, the farther."""

    DOCUMENT = 0
    INFERENCE = 1
    TOOL = 2
    USER = 3

    @property
    def label(self) -> str:
        """The name as metadata has it."""
        return self.name.lower()


EXTERNAL_SOURCES = frozenset({Trust.TOOL, Trust.DOCUMENT})
"""Sources from outside the conversation, whose words were said by nobody in it."""

_TRUST_BY_ROLE = {"user": Trust.USER, "tool": Trust.TOOL, "assistant": Trust.INFERENCE}
_TRUST_BY_LABEL = {trust.label: trust for trust in Trust}


def trust_of_channel(role: str | None, sort: str = TURN_SORT, author: str = "user") -> Trust:
    """Where something came in: what is no turn is a document, and what nobody spoke is worth what its author is."""
    if sort != TURN_SORT:
        return Trust.DOCUMENT
    if role is None:
        return Trust.USER if author == "user" else Trust.INFERENCE
    return _TRUST_BY_ROLE.get(role, Trust.DOCUMENT)


def trust_of_source(claim: Claim | Fact, sort: str = TURN_SORT) -> Trust:
    """How far whoever said it is believed: the channel it came in by, less if it is stamped lower."""
    author = claim.author if isinstance(claim, Fact) else "user"
    trust = trust_of_channel(claim.role, sort, author)
    stamped = claim.meta.get(TRUST_KEY) if claim.meta else None
    return min(trust, _TRUST_BY_LABEL.get(stamped, trust)) if isinstance(stamped, str) else trust


def trust_of_claim(claim: Claim | Fact, sort: str = TURN_SORT) -> Trust:
    """How far a claim or a memory is believed: as far as its source, less if it is a guess."""
    trust = trust_of_source(claim, sort)
    return min(trust, Trust.INFERENCE) if claim.modality in INFERRED_MODALITIES else trust


def lowest_trust(sources: Iterable[Trust]) -> Trust:
    """What something made of these is worth: the least of them, and nothing more than a guess if there are none."""
    return min(sources, default=Trust.INFERENCE)


def may_replace(new: Trust, current: Trust) -> bool:
    """Whether a claim may replace or retire what is held."""
    return new >= current


def safe_kind(kind: str, source: Trust) -> str:
    """The kind a claim of a source may have: a rule comes from the user, from anybody else it is a plain memory."""
    return "memory" if kind in USER_ONLY_KINDS and source < Trust.USER else kind
