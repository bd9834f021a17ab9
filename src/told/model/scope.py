"""Scopes, callers and ctx:// addresses.

A scope names an account and at least one of user, agent and run. No part of it is a pattern: values
that look like one are rejected, so no string can widen a read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from told.errors import ScopeError, UriError
from told.ids import canonical_json, sha256

ID_LIMIT = 256
WILDCARDS = frozenset("*%?")
DEFAULT_ACCOUNT = "default"


def validate_identifier(value: Any, name: str) -> str:
    """Return a trimmed id that is safe to store, compare and print."""
    if not isinstance(value, str):
        raise ScopeError(f"{name} must be a string, not {type(value).__name__}.")
    text = value.strip()
    is_plain = text.isascii() and text.isprintable()
    text = text if is_plain else unicodedata.normalize("NFC", text)
    if not text:
        raise ScopeError(f"{name} is empty.", hint="Leave it out, or give a real id.")
    if len(text) > ID_LIMIT:
        raise ScopeError(f"{name} is longer than {ID_LIMIT} characters.")
    if not WILDCARDS.isdisjoint(text):
        raise ScopeError(
            f"{name} looks like a pattern: {text!r}.", hint="Ids are compared exactly."
        )
    if not is_plain and any(
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text
    ):
        raise ScopeError(f"{name} contains a control or invisible character: {text!r}.")
    return text


@dataclass(frozen=True, slots=True)
class Scope:
    """An account and the user, agent and run inside it that own a memory."""

    account: str = DEFAULT_ACCOUNT
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    @classmethod
    def create(
        cls,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        account: Any = DEFAULT_ACCOUNT,
    ) -> Scope:
        """Return a validated scope; at least one of the three ids is required."""
        scope = cls(
            validate_identifier(account, "account"),
            None if user_id is None else validate_identifier(user_id, "user_id"),
            None if agent_id is None else validate_identifier(agent_id, "agent_id"),
            None if run_id is None else validate_identifier(run_id, "run_id"),
        )
        if scope.user_id is scope.agent_id is scope.run_id is None:
            raise ScopeError()
        return scope

    def ids(self) -> dict[str, str]:
        """Return the ids that are set."""
        ids = {} if self.user_id is None else {"user_id": self.user_id}
        if self.agent_id is not None:
            ids["agent_id"] = self.agent_id
        if self.run_id is not None:
            ids["run_id"] = self.run_id
        return ids

    def covers(self, other: Scope) -> bool:
        """Return True if a read in this scope may see memories of the other."""
        return (
            self.account == other.account
            and self.user_id in (None, other.user_id)
            and self.agent_id in (None, other.agent_id)
            and self.run_id in (None, other.run_id)
        )

    def partition_key(self) -> str:
        """Return the partition of this scope: its user, else its agent, else its run."""
        if self.user_id is not None:
            return f"u:{self.user_id}"
        return f"a:{self.agent_id}" if self.agent_id is not None else f"r:{self.run_id}"

    def digest(self) -> str:
        """Return a short digest of the ids.

        Anyone who guesses the ids can recompute it, so it is as sensitive as they are.
        """
        return sha256(canonical_json(self.ids())).hex()[:16]

    def as_json(self) -> dict[str, str]:
        """Return the ids as JSON, without the account."""
        return self.ids()

    @classmethod
    def from_json(cls, account: str, data: Mapping[str, str]) -> Scope:
        """Return the scope of a stored entry."""
        return cls(account, data.get("user_id"), data.get("agent_id"), data.get("run_id"))


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, its account and roles, and the kinds it reads (all if empty)."""

    name: str = "local"
    account: str = DEFAULT_ACCOUNT
    roles: frozenset[str] = frozenset({"owner"})
    subscribes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Uri:
    """A ctx:// address: an account and a path of safe segments."""

    account: str
    path: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: Any) -> Uri:
        """Parse an address strictly: no empty, dotted, encoded or invisible segment."""
        if not isinstance(text, str) or not text.startswith("ctx://"):
            raise UriError(f"The address {text!r} does not start with ctx://.")
        account, *path = text.removeprefix("ctx://").split("/")
        return cls(
            _check_segment(account, text), tuple(_check_segment(part, text) for part in path)
        )

    def __post_init__(self) -> None:
        for part in (self.account, *self.path):
            _check_segment(part, part)

    def __str__(self) -> str:
        return "ctx://" + "/".join((self.account, *self.path))

    def __truediv__(self, name: str) -> Uri:
        return Uri(self.account, (*self.path, name))


def _check_segment(part: str, address: str) -> str:
    """Return a validated segment; NFC is required so that equal addresses are equal bytes."""
    if part in ("", ".", ".."):
        raise UriError(f"The address {address!r} has an empty or dotted segment.")
    if unicodedata.normalize("NFC", part) != part:
        raise UriError(
            f"The address {address!r} is not in Unicode normal form C.",
            hint="Normalise it to NFC first.",
        )
    folded = unicodedata.normalize("NFKC", part)
    if folded in (".", "..") or any(char in "/\\%" for char in part + folded):
        raise UriError(f"The segment {part!r} of {address!r} contains an encoded separator.")
    if part != part.strip() or any(
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in part
    ):
        raise UriError(f"The segment {part!r} of {address!r} contains an invisible character.")
    if len(part) > ID_LIMIT:
        raise UriError(f"A segment of {address[:40]!r}… is longer than {ID_LIMIT} characters.")
    return part
