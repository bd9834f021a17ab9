"""The ports to models: what embeds, what answers, what reads an image, what judges an order."""

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
"""Which of the four bytes of a float has its sign and the most of its exponent."""

DEFAULT_SPREAD = 0.08
"""How much cosines with unrelated texts vary under an embedder that does not say."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors; `local` ones are asked before the commit, remote ones after it.

    It may say by two numbers called `usual` and `spread` what its cosine of unrelated texts is and how much it varies.
    """

    @property
    def model(self) -> str:
        """The model's name; `plugin:name` for one that can be opened by name."""

    @property
    def dim(self) -> int:
        """The length of its vectors."""

    @property
    def local(self) -> bool:
        """Whether it answers on this machine, quickly and without a network."""

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One unit vector for each text, in order."""


@runtime_checkable
class LLM(Protocol):
    """A language model.

    One that says `local = False` works over a network: what it is asked while writing is asked later, by a consumer.
    """

    @property
    def model(self) -> str:
        """The model's name."""

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> str:
        """The model's reply."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What models were asked and what it cost; sums with `+`."""

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
        """The figures by name."""
        return {
            name: getattr(self, name)
            for name in ("calls", "prompt_tokens", "completion_tokens", "cost")
        }


class Reply(str):
    """A model's answer that knows what it cost; any plain string will do where a model cannot say."""

    __slots__ = ("usage",)
    usage: Usage

    def __new__(cls, text: str, usage: Usage) -> Self:
        """The text, with its cost beside it."""
        reply = super().__new__(cls, text)
        reply.usage = usage
        return reply


def get_usage(reply: object) -> Usage:
    """What an answer cost, as far as it says; one call at least."""
    usage = getattr(reply, "usage", None)
    return usage if isinstance(usage, Usage) else Usage(calls=1)


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may do; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to use a tool."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatLine:
    """One line of a conversation with a model: `user`, `assistant` (with its calls) or `tool` (answering a call)."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a model said and which tools it wants to use."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class ToolLLM(LLM, Protocol):
    """A language model that can use tools."""

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> ToolReply:
        """The model's next line in a conversation."""


@runtime_checkable
class ImageReader(Protocol):
    """Reads what an image says: by optical character recognition, or by a model that sees."""

    @property
    def model(self) -> str:
        """The reader's name."""

    def read(self, image: bytes, media_type: str) -> str:
        """The words of an image, or its description; empty when it has none."""


@runtime_checkable
class Vault(Protocol):
    """Keeps secrets so that only who has its key can read them."""

    def mark(self, secret: str) -> str:
        """A short name of a secret, the same every time, that says nothing about it without the key."""

    def seal(self, secret: str) -> str:
        """The secret as only this vault can read it."""

    def open(self, sealed: str) -> str:
        """A secret that was sealed, or `Denied`."""


@runtime_checkable
class Reranker(Protocol):
    """Judges how well texts answer a query, more slowly and better than the index does."""

    @property
    def model(self) -> str:
        """The model's name."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text, in order; the higher, the better it answers."""


def validate_vectors(embedder: Embedder, vectors: Any, count: int) -> Sequence[Vector]:
    """An embedder's answer, if it is as many vectors of finite numbers as were asked for, each of its dimension."""
    try:
        if len(vectors) == count and all(
            len(vec) == embedder.dim and _is_finite(vec) for vec in vectors
        ):
            return cast(Sequence[Vector], vectors)
    except TypeError as error:
        raise EmbeddingError(f"{embedder.model} did not answer with vectors: {error}.") from error
    raise EmbeddingError(
        f"{embedder.model} did not answer with {count} vectors of {embedder.dim} finite numbers."
    )


def _is_finite(vector: Any) -> bool:
    """Whether a vector holds numbers only: a float that is none has the exponent of the very largest."""
    if isinstance(vector, array) and vector.typecode == "f":
        exponents = vector.tobytes()[EXPONENT_BYTE::4]
        if 0x7F not in exponents and 0xFF not in exponents:
            return True
    return isfinite(vector.sum() if hasattr(vector, "sum") else sum(vector))
