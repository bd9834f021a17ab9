"""The long tail of providers, through the library that knows them all; it is heavy, and loaded when it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from told.backends.http import sdk
from told.backends.http.openai import OpenAILLM
from told.backends.http.provider import HttpProvider, ModelOptions
from told.core.errors import ConfigError


def _create_llm(provider: HttpProvider, options: ModelOptions) -> OpenAILLM:
    if find_spec("litellm") is None:
        raise ConfigError("litellm is not installed.", hint="Run `pip install 'told[litellm]'`.")
    connection = {
        "api_key": options.api_key,
        "base_url": options.base_url,
        "api_version": options.api_version,
    }
    connection_options = {name: value for name, value in connection.items() if value is not None}
    limits = {"timeout": options.timeout, "num_retries": options.retries}

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        from importlib import import_module

        return sdk.response_to_json(
            await sdk.call_method(
                import_module("litellm").acompletion, **body, **connection_options, **limits
            )
        )

    return OpenAILLM(provider, options, send)


litellm = HttpProvider("litellm", "litellm", _create_llm, needs_key=False, order=99)
