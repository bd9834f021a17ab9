"""The model ports: embedders, language models, image readers, rerankers and vaults."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from sys import byteorder
from typing import Any, Literal, Protocol, Self, TypeAlias, cast, runtime_checkable

from told.errors import EmbeddingError

Vector: TypeAlias = Sequence[float]
Purpose: TypeAlias = Literal["query", "passage"]
EXPONENT_BYTE = 3 if byteorder == "little" else 0
"""The index of the byte with the sign and most of the exponent of a 4-byte float."""

DEFAULT_SPREAD = 0.08
"""The standard deviation of unrelated cosines for embedders without `spread`."""


@runtime_checkable
class Embedder(Protocol):
    """A model that turns texts into unit vectors.

    Local embedders run before the commit, remote ones after it. The optional attributes `usual`
    and `spread` are the mean and the deviation of the cosine of unrelated texts.
    """

    @property
    def model(self) -> str:
        """The model's name, `plugin:name` if it can be opened by name."""

    @property
    def dim(self) -> int:
        """The length of its vectors."""

    @property
    def local(self) -> bool:
        """True if it runs on this machine without a network."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """Return one unit vector for each text, in order."""


@runtime_checkable
class LLM(Protocol):
    """A language model.

    A model with `local = False` works over a network; writes ask it later, in a consumer.
    """

    @property
    def model(self) -> str:
        """The model's name."""

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """Return the model's reply."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of model calls, their tokens and cost; add two with `+`."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
        )

    def as_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return {
            name: getattr(self, name)
            for name in ("calls", "prompt_tokens", "completion_tokens", "cost")
        }


class Reply(str):
    """A reply with its usage; a model that knows no usage may return a plain string."""

    __slots__ = ("usage",)
    usage: Usage

    def __new__(cls, text: str, usage: Usage) -> Self:
        """Create a reply from a text and its usage."""
        reply = super().__new__(cls, text)
        reply.usage = usage
        return reply


def get_usage(reply: object) -> Usage:
    """Return the usage of a reply, one call if it has none."""
    usage = getattr(reply, "usage", None)
    return usage if isinstance(usage, Usage) else Usage(calls=1)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool a model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A message of a conversation with a model; a `tool` message answers the call `call_id`."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A model's message and its tool calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class ToolLLM(LLM, Protocol):
    """A language model that can use tools."""

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """Return the model's next message in a conversation."""


@runtime_checkable
class ImageReader(Protocol):
    """A reader of images, by optical character recognition or a vision model."""

    @property
    def model(self) -> str:
        """The reader's name."""

    def read(self, image: bytes, media_type: str) -> str:
        """Return the text or description of an image, empty if there is none."""


@runtime_checkable
class Vault(Protocol):
    """A vault that encrypts secrets with its key."""

    def mark(self, secret: str) -> str:
        """Return a short keyed hash of a secret."""

    def seal(self, secret: str) -> str:
        """Encrypt a secret."""

    def open(self, sealed: str) -> str:
        """Decrypt a sealed secret, or raise `Denied`."""


@runtime_checkable
class Reranker(Protocol):
    """A model that scores how well texts answer a query."""

    @property
    def model(self) -> str:
        """The model's name."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, in order; higher is better."""


def validate_vectors(embedder: Embedder, vectors: Any, count: int) -> Sequence[Vector]:
    """Return an embedder's vectors, or raise `EmbeddingError` unless count and shape are right."""
    try:
        if len(vectors) == count and all(
            len(vec) == embedder.dim and _is_finite(vec) for vec in vectors
        ):
            return cast(Sequence[Vector], vectors)
    except TypeError as error:
        raise EmbeddingError(f"{embedder.model} did not return vectors: {error}.") from error
    raise EmbeddingError(
        f"{embedder.model} did not return {count} vectors of {embedder.dim} finite numbers."
    )


def _is_finite(vector: Any) -> bool:
    """Return whether all numbers of a vector are finite; infinities and NaN share an exponent."""
    if isinstance(vector, array) and vector.typecode == "f":
        exponents = vector.tobytes()[EXPONENT_BYTE::4]
        if 0x7F not in exponents and 0xFF not in exponents:
            return True
    return isfinite(vector.sum() if hasattr(vector, "sum") else sum(vector))
