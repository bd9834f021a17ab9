"""The error tree: each class carries its code, HTTP status and default message.

    ToldError                       E000  500
    ├── InvalidInput                E100  400   also a ValueError
    │   ├── ScopeError              E101  400
    │   ├── FilterError             E102  400
    │   ├── TimeError               E103  400
    │   ├── UriError                E104  400
    │   ├── TooLarge                E105  413
    │   └── ConfigError             E106  400
    ├── Unsupported                 E110  501
    ├── NotFoundError               E200  404   also a LookupError
    ├── Conflict                    E300  409
    │   ├── IdempotencyConflict     E301  409
    │   └── Diverged                E302  409
    ├── Denied                      E400  403
    ├── StoreError                  E500  503
    │   ├── StoreBusy               E501  503
    │   ├── StoreFull               E502  507
    │   ├── StoreReadOnly           E503  503
    │   ├── StoreCorrupt            E504  500
    │   ├── StoreVersion            E505  503
    │   └── StoreClosed             E506  503
    ├── EmbeddingError              E600  502
    │   ├── ModelMissing            E601  503
    │   └── ModelMismatch           E602  409
    ├── LLMError                    E700  502
    └── MediaError                  E800  502
        ├── FetchError              E801  502
        └── ReaderMissing           E802  503

A class's docstring is its default message; `hint` says what to do next; `detail` holds
machine-readable values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

MAX_NAMED_ACCOUNTS = 3
"""The number of accounts listed by name in a rebuild hint."""


class ToldError(Exception):
    """Something went wrong inside told."""

    code: ClassVar[str] = "E000"
    status: ClassVar[int] = 500
    default_hint: ClassVar[str] = ""

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, **detail: Any
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = self.default_hint if hint is None else hint
        self.detail = detail
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip() if self.hint else self.message

    def as_dict(self) -> dict[str, Any]:
        """Return the error as a JSON object, the same in every interface."""
        body: dict[str, Any] = {
            "code": f"TOLD-{self.code}",
            "error": type(self).__name__,
            "message": self.message,
        }
        if self.hint:
            body["hint"] = self.hint
        if self.detail:
            body["detail"] = self.detail
        return body


class InvalidInput(ToldError, ValueError):
    """The input cannot be used."""

    code, status = "E100", 400


class ScopeError(InvalidInput):
    """At least one of user_id, agent_id, or run_id must be provided"""  # noqa: D415

    code = "E101"


class FilterError(InvalidInput):
    """The filter is not well formed."""

    code = "E102"


class TimeError(InvalidInput):
    """The time cannot be read."""

    code = "E103"
    default_hint = (
        "Use ISO 8601 with an offset, such as 2026-03-01T09:00:00+00:00, or a date such as "
        "2026-03-01."
    )


class UriError(InvalidInput):
    """The ctx:// address is not well formed."""

    code = "E104"


class TooLarge(InvalidInput):
    """The input is larger than the configured limit."""

    code, status = "E105", 413


class ConfigError(InvalidInput):
    """The configuration cannot be used."""

    code = "E106"


class Unsupported(ToldError):
    """This version of told does not support that."""

    code, status = "E110", 501


class NotFoundError(ToldError, LookupError):
    """There is no memory with that id here."""

    code, status = "E200", 404


class Conflict(ToldError):
    """Another writer committed first; read again and retry."""

    code, status = "E300", 409


class IdempotencyConflict(Conflict):
    """This idempotency key was used before with another request."""

    code = "E301"
    default_hint = "Use a fresh key for a new request, or send the first request unchanged."


class Diverged(Conflict):
    """The two ledgers have diverged."""

    code = "E302"
    default_hint = "Import into an empty store or another account."


class Denied(ToldError):
    """The caller may not do that."""

    code, status = "E400", 403


class StoreError(ToldError):
    """The store cannot serve the request."""

    code, status = "E500", 503


class StoreBusy(StoreError):
    """Another process held the store for too long."""

    code = "E501"
    default_hint = "Retry, or raise settings.busy_timeout."


class StoreFull(StoreError):
    """The disk is full; nothing was written and nothing was lost."""

    code, status = "E502", 507
    default_hint = "Free some space and retry."


class StoreReadOnly(StoreError):
    """The store's file cannot be written."""

    code = "E503"
    default_hint = "Check the permissions of the file and of its folder."


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    code, status = "E504", 500
    default_hint = "Run `told verify`, then restore the last backup."


class StoreVersion(StoreError):
    """The store cannot be opened by this version."""

    code = "E505"


class StoreClosed(StoreError):
    """The store has been closed."""

    code = "E506"
    default_hint = "Open a new Memory()."


class EmbeddingError(ToldError):
    """The embedder failed."""

    code, status = "E600", 502


class ModelMissing(EmbeddingError):
    """The model is not installed."""

    code, status = "E601", 503
    default_hint = "Run `told models install`."


class ModelMismatch(EmbeddingError):
    """The store was indexed with another embedder."""

    code, status = "E602", 409
    default_hint = "Open it with that embedder, or run `told reindex` to embed everything anew."


class LLMError(ToldError):
    """The language model failed."""

    code, status = "E700", 502


class MediaError(ToldError):
    """The image or document cannot be read."""

    code, status = "E800", 502


class FetchError(MediaError):
    """The URL cannot be fetched."""

    code = "E801"


class ReaderMissing(MediaError):
    """The required reader is not installed."""

    code, status = "E802", 503


def format_rebuild_command(accounts: Sequence[str]) -> str:
    """Return the shell commands that rebuild these accounts.

    Rows without an account are cleared by the rebuild of any account.
    """
    from shlex import quote

    commands = [
        f"`told rebuild --account {quote(name)}`" for name in accounts[:MAX_NAMED_ACCOUNTS]
    ] or ["`told rebuild`"]
    remaining = len(accounts) - MAX_NAMED_ACCOUNTS
    return " and ".join(
        [*commands, *([f"the same for {remaining} more accounts"] if remaining > 0 else [])]
    )
