"""What models cost, from a small table; a model that is not in it costs nothing that we know of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from told.ports import Usage


@cache
def load_price_table() -> Mapping[str, tuple[float, float]]:
    """Dollars for a million tokens read and written, by the beginning of a model's name."""
    text = resources.files("told.backends.http").joinpath("prices.json").read_text("utf-8")
    return {
        name: (input_price, output_price)
        for name, (input_price, output_price) in json.loads(text)["prices"].items()
    }


def price_usage(
    model: str, input_tokens: object, output_tokens: object, *, calls: int = 1
) -> Usage:
    """What one call took, priced by the longest name in the table that the model's begins with."""
    prompt, completion = (
        count if isinstance(count, int) and count > 0 else 0
        for count in (input_tokens, output_tokens)
    )
    name = model.rpartition("/")[2]
    best_prefix = max(
        (prefix for prefix in load_price_table() if _is_version_of(name, prefix)),
        key=len,
        default="",
    )
    input_price, output_price = load_price_table().get(best_prefix, (0.0, 0.0))
    return Usage(
        calls, prompt, completion, (prompt * input_price + completion * output_price) / 1_000_000
    )


def _is_version_of(name: str, base: str) -> bool:
    """Whether a name is the known one, or a version of it: `gpt-5-2025-08-07` is `gpt-5`, `gpt-5.4` is not."""
    return name == base or name.startswith((f"{base}-", f"{base}@", f"{base}:"))
