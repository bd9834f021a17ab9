"""What is particular about a provider: its name, its address, the variables its key is in; and how it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from told.backends.http import keys
from told.backends.http.wire import Means, Patience, Wire
from told.core.errors import ConfigError, EmbeddingError, LLMError, ModelMissing, ToldError
from told.core.reading import meant
from told.core.text import shown

Send: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""How a request gets to a model: a path and a body go out, the answer comes back as JSON."""

Headers: TypeAlias = Callable[[str | None], Mapping[str, str]]
"""The headers a server wants, given the key for it."""

CLIENTS_OWN = {"temperature": None, "max_tokens": None}
"""What is left to a client that somebody else set up."""

ALIASES = {
    "openai_base_url": "base_url", "ollama_base_url": "base_url", "anthropic_base_url": "base_url",
    "azure_endpoint": "base_url", "api_base": "base_url", "embedding_dims": "dimensions", "dim": "dimensions",
    "azure_deployment": "model",
}  # fmt: skip
"""Names that other libraries have for the same options."""

USUAL = Patience()
NUMBERS = ("temperature", "max_tokens", "dimensions", "timeout", "retries", "concurrency")


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is to be opened; what is not given is the provider's to say."""

    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 2000
    dimensions: int | None = None
    local: bool = False
    timeout: float = USUAL.timeout
    retries: int = USUAL.retries
    concurrency: int = USUAL.concurrency
    api_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Put into every request as it stands."""
    client: Any = None
    """A client of the provider's own library, to be used instead of a connection of ours."""
    means: Means | None = None

    @property
    def patience(self) -> Patience:
        """The patience these options ask for."""
        return Patience(timeout=self.timeout, retries=self.retries, concurrency=self.concurrency)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models, callable with a model's name and options: the target of an entry point."""

    name: str
    title: str
    make: Callable[[Provider, Options], Any]
    base_url: str = ""
    model: str = ""
    keys: tuple[str, ...] = ()
    """Variables the key may be in."""
    hosts: tuple[str, ...] = ()
    """Variables the address may be in."""
    models: tuple[str, ...] = ()
    """Variables the model's name may be in."""
    needs_key: bool = True
    order: int = 100
    """Its place when a configured provider is looked for."""
    error: type[ToldError] = LLMError

    def __call__(self, model: str | None = None, *, settings: Mapping[str, Any] | None = None, **given: Any) -> Any:
        """The model of this name, or the provider's usual one."""
        usual = CLIENTS_OWN if given.get("client") is not None else settings or {}
        return self.make(self, self.options(model, {**usual, **given}))

    def configured(self, environment: Mapping[str, str]) -> str | None:
        """The variable that says this provider may be used; None if nothing does."""
        besides = () if self.base_url else (*self.hosts, *self.models)
        if not all(keys.present([name], environment) for name in besides):
            return None
        return keys.present(self.keys if self.needs_key else self.hosts, environment)

    def options(self, model: str | None, given: Mapping[str, Any]) -> Options:
        """The options of somebody's choice, or what is wrong with them."""
        named = {ALIASES.get(name, name): value for name, value in given.items()}
        named = {name: value for name, value in named.items() if value is not None or name in CLIENTS_OWN}
        chosen = model or named.pop("model", None) or keys.environment(self.models) or self.model
        named.pop("model", None)
        if not isinstance(chosen, str) or not chosen:
            raise ConfigError(f"Which model of {self.title}?", hint=f"Write it as {self.name}:MODEL.")
        known = [name for name in Options.__dataclass_fields__ if name != "model"]
        if unknown := [name for name in named if name not in known]:
            hint = meant(unknown[0], known) or f"Options: {', '.join(known)}; others go into extra."
            raise ConfigError(f"{self.title} takes no option {unknown[0]!r}.", hint=hint)
        for name in NUMBERS:
            if isinstance(value := named.get(name), bool) or not isinstance(value, int | float | None):
                raise ConfigError(f"{name} of {self.title} must be a number, not {shown(value)}.")
        return Options(chosen, **named)

    def wire(self, options: Options, headers: Headers, root: str | None = None) -> Wire:
        """A connection to where the options or the environment say, with the key that belongs there.

        A key of the environment is sent where the provider or the environment says, never to an address in code.
        """
        url = options.base_url or keys.environment(self.hosts) or self.base_url
        if not url:
            raise ConfigError(f"Where is {self.title}?", hint=f"Set {self.hosts[0]}, or give base_url.")
        found = options.api_key or (None if options.base_url else keys.environment(self.keys))
        key = keys.checked(found, provider=self.title, variables=self.keys, url=url)
        hint = f"Set {self.keys[0]}, or give api_key." if self.keys else ""
        if key is None and self.needs_key and not options.base_url:
            lacking = ModelMissing if issubclass(self.error, EmbeddingError) else ConfigError
            raise lacking(f"There is no key for {self.title}.", hint=hint)
        return Wire(
            self.title, root or url, headers(key), secret=key, hint=hint, error=self.error,
            patience=options.patience, means=options.means,
        )  # fmt: skip


def bearer(key: str | None) -> Mapping[str, str]:
    """The header most servers want a key in."""
    return {"authorization": f"Bearer {key}"} if key else {}
