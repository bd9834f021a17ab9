"""Counting tokens with a real tokenizer whose vocabulary is on board; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence

from told.core.errors import ConfigError


def count_tokens_batch(texts: Sequence[str], encoding: str) -> list[int]:
    """How many tokens each text costs."""
    import toktok

    try:
        return list(toktok.batch_count(texts, encoding, threads=1))
    except KeyError as error:
        raise ConfigError(
            f"There is no tokenizer {encoding!r}.", hint="Use o200k_base or cl100k_base."
        ) from error


def count_tokens(text: str, encoding: str) -> int:
    """How many tokens a text costs."""
    return count_tokens_batch([text], encoding)[0] if text else 0
