"""A language model that sees, as a reader of images."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, Protocol, runtime_checkable


@runtime_checkable
class VisionLLM(Protocol):
    """A language model that can be shown an image."""

    @property
    def model(self) -> str:
        """The model's name."""

    def see(self, image: bytes, media_type: str, prompt: str) -> str:
        """What the model says of an image when asked this."""


@dataclass(frozen=True, slots=True)
class VisionReader:
    """Describes images by asking a model that sees; what it says stands under a heading of its own."""

    llm: VisionLLM
    sees: ClassVar[bool] = True

    @property
    def model(self) -> str:
        """The model's name."""
        return self.llm.model

    def read(self, image: bytes, media_type: str) -> Any:
        """A description; a promise of one, if the model answers asynchronously."""
        return self.llm.see(
            image, media_type, files("told.write").joinpath("prompts", "see.md").read_text("utf-8")
        )
