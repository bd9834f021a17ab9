"""Functions of somebody's own as models: texts to vectors, a query and texts to numbers, a prompt to a reply."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.errors import ConfigError, EmbeddingError, LLMError
from told.engine import answer
from told.flow import after, call, run
from told.ledger.consume import attempt
from told.ports import Purpose, Vector


@dataclass(frozen=True, slots=True)
class CallableReranker:
    """Any function from a query and texts to numbers as a reranker."""

    function: Callable[[str, Sequence[str]], Sequence[float]]
    model: str

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text."""
        return self.function(query, texts)


@dataclass(frozen=True, slots=True)
class CallableEmbedder:
    """Any function from texts to vectors as an embedder; it counts as remote, so its failures lose nothing."""

    function: Callable[[Sequence[str]], Sequence[Vector]]
    model: str
    dim: int
    local: bool = False

    @classmethod
    def probe(cls, function: Callable[[Sequence[str]], Sequence[Vector]]) -> CallableEmbedder:
        """Learn the dimension by asking once."""
        name = f"custom:{named(function)}"
        vectors = answer(name, run(attempt(call(function, ["told"]))))
        try:
            (vector,) = vectors
            width = len(vector)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"The embedder {name} gave no vector for one text: {error}.") from error
        if not width:
            raise EmbeddingError(f"The embedder {name} gave a vector without numbers.")
        return cls(function, name, width)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:  # noqa: ARG002
        """One vector for each text; a plain function does not ask what it is for."""
        return self.function(texts)


@dataclass(frozen=True, slots=True)
class CallableLLM:
    """Any function from a prompt to a reply as a language model; it is asked at once unless it says `local = False`."""

    function: Callable[..., Any]
    model: str
    local: bool
    whole: bool
    """Whether it takes one prompt and not the system's and the user's part."""
    shaped: bool
    """Whether it takes a schema."""

    @classmethod
    def of(cls, function: Callable[..., Any], model: str = "", local: bool | None = None) -> CallableLLM:
        """See what a function takes: (system, user), or (prompt), and perhaps a keyword `schema`."""
        name = model or f"custom:{named(function)}"
        hint = "Such as def ask(system, user): ..., or def ask(prompt): ...; `schema` may be a keyword."
        try:
            parts = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ConfigError(f"What {name} takes cannot be seen.", hint=f"Wrap it. {hint}") from error
        count = sum(part.kind in POSITIONAL and part.name != "schema" for part in parts)
        many = any(part.kind is inspect.Parameter.VAR_POSITIONAL for part in parts)
        if not count and not many:
            raise ConfigError(f"{name} takes no prompt.", hint=hint)
        shaped = any(part.name == "schema" or part.kind is inspect.Parameter.VAR_KEYWORD for part in parts)
        here = bool(getattr(function, "local", True)) if local is None else local
        return cls(function, name, here, count == 1 and not many, shaped)

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What the function says."""
        given = (f"{system}\n\n{user}",) if self.whole else (system, user)
        return after(self.function(*given, **({"schema": schema} if self.shaped else {})), self._said)

    def _said(self, reply: Any) -> str:
        if not isinstance(reply, str):
            raise LLMError(f"{self.model} answered with {type(reply).__name__}, not with text.")
        return reply


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def named(thing: Any) -> str:
    """What a function or an object is called."""
    return str(getattr(thing, "__qualname__", type(thing).__name__))
