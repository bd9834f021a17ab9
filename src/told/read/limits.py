"""From which cosines on topics and hot memories count, by embedder."""

from __future__ import annotations

from dataclasses import fields

from told.core.topics import Thresholds
from told.ports import Embedder
from told.settings import Settings


def resolve_thresholds(settings: Settings, embedder: Embedder | None) -> Thresholds:
    """From which cosines on: as the settings say, else as the embedder does, else as the seed does."""
    defaults = getattr(embedder, "topics", Thresholds())
    overrides = {name.name: getattr(settings, f"topic_{name.name}") for name in fields(Thresholds)}
    return Thresholds(
        **{name: value or getattr(defaults, name) for name, value in overrides.items()}
    )
