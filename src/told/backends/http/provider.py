"""What is particular about a provider: its name, its address, the variables its key is in; and how it is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from told.backends.http import keys
from told.backends.http.wire import ClientLimits, ClientTiming, HttpClient
from told.core.errors import ConfigError, EmbeddingError, LLMError, ModelMissing, ToldError
from told.core.reading import suggest_option
from told.core.text import format_value

SendRequest: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""How a request gets to a model: a path and a body go out, the answer comes back as JSON."""

HeaderFactory: TypeAlias = Callable[[str | None], Mapping[str, str]]
"""The headers a server wants, given the key for it."""

CLIENT_DEFAULTS = {"temperature": None, "max_tokens": None}
"""What is left to a client that somebody else set up."""

OPTION_ALIASES = {
    "openai_base_url": "base_url", "ollama_base_url": "base_url", "anthropic_base_url": "base_url",
    "azure_endpoint": "base_url", "api_base": "base_url", "embedding_dims": "dimensions", "dim": "dimensions",
    "azure_deployment": "model",
}  # fmt: skip
"""Names that other libraries have for the same options."""

DEFAULT_LIMITS = ClientLimits()
NUMERIC_OPTIONS = ("temperature", "max_tokens", "dimensions", "timeout", "retries", "concurrency")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is to be opened; what is not given is the provider's to say."""

    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 2000
    dimensions: int | None = None
    local: bool = False
    timeout: float = DEFAULT_LIMITS.timeout
    retries: int = DEFAULT_LIMITS.retries
    concurrency: int = DEFAULT_LIMITS.concurrency
    api_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Put into every request as it stands."""
    client: Any = None
    """A client of the provider's own library, to be used instead of a connection of ours."""
    timing: ClientTiming | None = None

    @property
    def limits(self) -> ClientLimits:
        """The patience these options ask for."""
        return ClientLimits(
            timeout=self.timeout, retries=self.retries, concurrency=self.concurrency
        )


@dataclass(frozen=True, slots=True)
class HttpProvider:
    """A provider of models, callable with a model's name and options: the target of an entry point."""

    name: str
    title: str
    factory: Callable[[HttpProvider, ModelOptions], Any]
    base_url: str = ""
    model: str = ""
    key_variables: tuple[str, ...] = ()
    """Variables the key may be in."""
    host_variables: tuple[str, ...] = ()
    """Variables the address may be in."""
    model_variables: tuple[str, ...] = ()
    """Variables the model's name may be in."""
    needs_key: bool = True
    order: int = 100
    """Its place when a configured provider is looked for."""
    error_type: type[ToldError] = LLMError

    def __call__(
        self,
        model: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> Any:
        """The model of this name, or the provider's usual one."""
        defaults = CLIENT_DEFAULTS if overrides.get("client") is not None else settings or {}
        return self.factory(self, self.parse_options(model, {**defaults, **overrides}))

    def configured(self, environment: Mapping[str, str]) -> str | None:
        """The variable that says this provider may be used; None if nothing does."""
        required = () if self.base_url else (*self.host_variables, *self.model_variables)
        if not all(keys.find_set_variable([name], environment) for name in required):
            return None
        return keys.find_set_variable(
            self.key_variables if self.needs_key else self.host_variables, environment
        )

    def parse_options(self, model: str | None, raw_options: Mapping[str, Any]) -> ModelOptions:
        """The options of somebody's choice, or what is wrong with them."""
        options = {OPTION_ALIASES.get(name, name): value for name, value in raw_options.items()}
        options = {
            name: value
            for name, value in options.items()
            if value is not None or name in CLIENT_DEFAULTS
        }
        chosen = (
            model
            or options.pop("model", None)
            or keys.read_environment(self.model_variables)
            or self.model
        )
        options.pop("model", None)
        if not isinstance(chosen, str) or not chosen:
            raise ConfigError(
                f"Which model of {self.title}?", hint=f"Write it as {self.name}:MODEL."
            )
        allowed = [name for name in ModelOptions.__dataclass_fields__ if name != "model"]
        if unknown := [name for name in options if name not in allowed]:
            hint = (
                suggest_option(unknown[0], allowed)
                or f"Options: {', '.join(allowed)}; others go into extra."
            )
            raise ConfigError(f"{self.title} takes no option {unknown[0]!r}.", hint=hint)
        for name in NUMERIC_OPTIONS:
            if isinstance(value := options.get(name), bool) or not isinstance(
                value, int | float | None
            ):
                raise ConfigError(
                    f"{name} of {self.title} must be a number, not {format_value(value)}."
                )
        return ModelOptions(chosen, **options)

    def create_client(
        self, options: ModelOptions, headers: HeaderFactory, root: str | None = None
    ) -> HttpClient:
        """A connection to where the options or the environment say, with the key that belongs there.

        A key of the environment is sent where the provider or the environment says, never to an address in code.
        """
        url = options.base_url or keys.read_environment(self.host_variables) or self.base_url
        if not url:
            raise ConfigError(
                f"Where is {self.title}?", hint=f"Set {self.host_variables[0]}, or give base_url."
            )
        raw_key = options.api_key or (
            None if options.base_url else keys.read_environment(self.key_variables)
        )
        key = keys.validate_key(raw_key, provider=self.title, variables=self.key_variables, url=url)
        hint = f"Set {self.key_variables[0]}, or give api_key." if self.key_variables else ""
        if key is None and self.needs_key and not options.base_url:
            error_class = (
                ModelMissing if issubclass(self.error_type, EmbeddingError) else ConfigError
            )
            raise error_class(f"There is no key for {self.title}.", hint=hint)
        return HttpClient(
            self.title,
            root or url,
            headers(key),
            secret=key,
            hint=hint,
            error_type=self.error_type,
            limits=options.limits,
            timing=options.timing,
        )


def build_bearer_header(key: str | None) -> Mapping[str, str]:
    """The header most servers want a key in."""
    return {"authorization": f"Bearer {key}"} if key else {}
