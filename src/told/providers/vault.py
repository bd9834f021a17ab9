"""A vault that encrypts and authenticates secrets with a key that told never stores."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping

from told.errors import ConfigError, Denied

KEY_VARIABLE = "TOLD_VAULT_KEY"
KEY_HINT = (
    "Make one with `python -c 'import secrets; print(secrets.token_hex(32))'` and keep it "
    "apart from the store."
)
MARK_LENGTH = 8


class KeyedVault:
    """Encrypts secrets with AES-GCM under a 32-byte key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(hashlib.sha256(b"told vault cipher" + key).digest())
        self._mark_key = hashlib.sha256(b"told vault marks" + key).digest()

    def mark(self, secret: str) -> str:
        """Return a short keyed fingerprint of a secret."""
        return hmac.new(self._mark_key, secret.encode(), hashlib.sha256).hexdigest()[:MARK_LENGTH]

    def seal(self, secret: str) -> str:
        """Encrypt a secret."""
        nonce = os.urandom(12)
        return (nonce + self._cipher.encrypt(nonce, secret.encode(), None)).hex()

    def open(self, sealed: str) -> str:
        """Decrypt a secret; raise `Denied` if the key is wrong or the text was changed."""
        from cryptography.exceptions import InvalidTag

        try:
            data = bytes.fromhex(sealed)
            return self._cipher.decrypt(data[:12], data[12:], None).decode()
        except (InvalidTag, ValueError) as error:
            hint = f"Set {KEY_VARIABLE} to the key it was encrypted with."
            raise Denied("The vault key cannot decrypt this secret.", hint=hint) from error


def open_vault(environment: Mapping[str, str] | None = None) -> KeyedVault:
    """Open the vault with the key from the environment."""
    variables = os.environ if environment is None else environment
    try:
        key = bytes.fromhex(variables.get(KEY_VARIABLE, "").strip())
    except ValueError as error:
        raise ConfigError(f"{KEY_VARIABLE} is not hexadecimal.", hint=KEY_HINT) from error
    if len(key) != 32:
        raise ConfigError(
            f"Encrypting secrets needs a 32-byte key in {KEY_VARIABLE}.",
            hint=KEY_HINT,
        )
    try:
        return KeyedVault(key)
    except ImportError as error:
        raise ConfigError(
            "Encryption needs the package cryptography.", hint="pip install 'told[vault]'"
        ) from error
