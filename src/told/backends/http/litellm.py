"""The long tail of providers, through the library that knows them all; it is heavy, and loaded when it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from told.backends.http import sdk
from told.backends.http.openai import OpenAI
from told.backends.http.provider import Options, Provider
from told.core.errors import ConfigError


def _chat(provider: Provider, options: Options) -> OpenAI:
    if find_spec("litellm") is None:
        raise ConfigError("litellm is not installed.", hint="Run `pip install 'told[litellm]'`.")
    where = {"api_key": options.api_key, "base_url": options.base_url, "api_version": options.api_version}
    given = {name: value for name, value in where.items() if value is not None}
    limits = {"timeout": options.timeout, "num_retries": options.retries}

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        from importlib import import_module

        return sdk.plain(await sdk.called(import_module("litellm").acompletion, **body, **given, **limits))

    return OpenAI(provider, options, send)


litellm = Provider("litellm", "litellm", _chat, needs_key=False, order=99)
