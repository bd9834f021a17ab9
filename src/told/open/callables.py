"""Functions of somebody's own as models: texts to vectors, a query and texts to numbers, a prompt to a reply."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from told.core.errors import ConfigError, EmbeddingError, LLMError
from told.engine import unwrap_embedding
from told.flow import call, map_reply, run
from told.ledger.consume import catch_failure
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
    def from_function(
        cls, function: Callable[[Sequence[str]], Sequence[Vector]]
    ) -> CallableEmbedder:
        """Learn the dimension by asking once."""
        name = f"custom:{get_display_name(function)}"
        vectors = unwrap_embedding(name, run(catch_failure(call(function, ["told"]))))
        try:
            (vector,) = vectors
            dim = len(vector)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(
                f"The embedder {name} gave no vector for one text: {error}."
            ) from error
        if not dim:
            raise EmbeddingError(f"The embedder {name} gave a vector without numbers.")
        return cls(function, name, dim)

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[Vector]:
        """One vector for each text; a plain function does not ask what it is for."""
        return self.function(texts)


@dataclass(frozen=True, slots=True)
class CallableLLM:
    """Any function from a prompt to a reply as a language model; it is asked at once unless it says `local = False`."""

    function: Callable[..., Any]
    model: str
    local: bool
    single_prompt: bool
    """Whether it takes one prompt and not the system's and the user's part."""
    accepts_schema: bool
    """Whether it takes a schema."""

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], model: str = "", local: bool | None = None
    ) -> CallableLLM:
        """See what a function takes: (system, user), or (prompt), and perhaps a keyword `schema`."""
        name = model or f"custom:{get_display_name(function)}"
        hint = "Such as def ask(system, user): ..., or def ask(prompt): ...; `schema` may be a keyword."
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"What {name} takes cannot be seen.", hint=f"Wrap it. {hint}"
            ) from error
        positional_count = sum(
            parameter.kind in POSITIONAL_KINDS and parameter.name != "schema"
            for parameter in parameters
        )
        is_variadic = any(
            parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters
        )
        if not positional_count and not is_variadic:
            raise ConfigError(f"{name} takes no prompt.", hint=hint)
        accepts_schema = any(
            parameter.name == "schema" or parameter.kind is inspect.Parameter.VAR_KEYWORD
            for parameter in parameters
        )
        is_local = bool(getattr(function, "local", True)) if local is None else local
        return cls(
            function, name, is_local, positional_count == 1 and not is_variadic, accepts_schema
        )

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """What the function says."""
        prompts = (f"{system}\n\n{user}",) if self.single_prompt else (system, user)
        return map_reply(
            self.function(*prompts, **({"schema": schema} if self.accepts_schema else {})),
            self._require_text,
        )

    def _require_text(self, reply: Any) -> str:
        if not isinstance(reply, str):
            raise LLMError(f"{self.model} answered with {type(reply).__name__}, not with text.")
        return reply


POSITIONAL_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def get_display_name(target: Any) -> str:
    """What a function or an object is called."""
    return str(getattr(target, "__qualname__", type(target).__name__))
