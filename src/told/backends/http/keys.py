"""Keys: where they come from, whether they can be real, and how they are kept out of sight."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from told.core.errors import ConfigError
from told.core.lazy import lazy_regex

MASK = "[key]"
PLACEHOLDER_PATTERN = lazy_regex(
    r"""
    .*\b(?:your|my|insert|replace|paste|enter|put)\b.*\b(?:key|token|secret|here)\b.* |
    .*\b(?:placeholder|change\ ?me)\b.* | (?:api\ )?key(?:\ here)? | todo | none | null | example |
    (?:[a-z]{2,4}\ )?(?:proj\ |ant\ )?(?:x{3,}|\*{3,}|\.{3,}|…+|0{6,}) |
    <.*> | \$\{?[\w\ ]+\}? | \{\{?.*\}\}?
    """,
    re.VERBOSE,
)
"""What stands in templates where a key should be, in small letters, with spaces for dashes and underscores."""


def read_environment(names: Iterable[str]) -> str | None:
    """The first of these variables that is set."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)


def is_placeholder(key: str) -> bool:
    """Whether this is what a template writes where a key should be."""
    return PLACEHOLDER_PATTERN.fullmatch(re.sub(r"[-_\s]+", " ", key.strip().lower())) is not None


def validate_key(
    key: str | None, *, provider: str, variables: Sequence[str], url: str
) -> str | None:
    """A key that can be sent; a server on this machine may be given any."""
    if key is None:
        return None
    hint = f"Set {variables[0]}, or give api_key." if variables else "Give api_key."
    if (
        not isinstance(key, str)
        or not (key := key.strip())
        or not key.isascii()
        or not key.isprintable()
    ):
        raise ConfigError(f"The key for {provider} is no key.", hint=hint)
    if is_placeholder(key) and not is_loopback(url):
        raise ConfigError(f"The key for {provider} is a placeholder, not a key.", hint=hint)
    return key


def is_loopback(url: str) -> bool:
    """Whether a server is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


KEY_PATTERN = lazy_regex(r"\b(?:sk|pk|gsk|xai|AIza)[-_]?[\w*-]{6,}")
"""A key, or what a provider leaves of one when it says that it is wrong."""


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets in it."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return KEY_PATTERN.sub(MASK, text)


def find_set_variable(names: Iterable[str], variables: Mapping[str, str]) -> str | None:
    """The name of the first variable that holds something."""
    return next((name for name in names if variables.get(name, "").strip()), None)
