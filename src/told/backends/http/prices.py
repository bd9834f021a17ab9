"""What models cost, from a small table; a model that is not in it costs nothing that we know of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from told.ports import Usage


@cache
def table() -> Mapping[str, tuple[float, float]]:
    """Dollars for a million tokens read and written, by the beginning of a model's name."""
    text = resources.files("told.backends.http").joinpath("prices.json").read_text("utf-8")
    return {name: (read, written) for name, (read, written) in json.loads(text)["prices"].items()}


def usage(model: str, read: object, written: object, *, calls: int = 1) -> Usage:
    """What one call took, priced by the longest name in the table that the model's begins with."""
    prompt, completion = (count if isinstance(count, int) and count > 0 else 0 for count in (read, written))
    name = model.rpartition("/")[2]
    known = max((each for each in table() if _is(name, each)), key=len, default="")
    to_read, to_write = table().get(known, (0.0, 0.0))
    return Usage(calls, prompt, completion, (prompt * to_read + completion * to_write) / 1_000_000)


def _is(name: str, known: str) -> bool:
    """Whether a name is the known one, or a version of it: `gpt-5-2025-08-07` is `gpt-5`, `gpt-5.4` is not."""
    return name == known or name.startswith((f"{known}-", f"{known}@", f"{known}:"))
