"""Clients of the providers' own libraries, used in place of a connection of ours; none of them is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from told.backends.http.provider import SendRequest
from told.core.errors import LLMError


def create_method_sender(method: Callable[..., Any]) -> SendRequest:
    """Requests as calls of a client's method: what would be the body are its arguments."""

    async def send(_: str, body: Mapping[str, Any]) -> Any:
        return response_to_json(await call_method(method, **body))

    return send


async def call_method(method: Callable[..., Any], **arguments: Any) -> Any:
    """What a method answers, whichever colour it has; one that blocks does so in a thread."""
    reply = await asyncio.to_thread(method, **arguments)
    return await reply if hasattr(reply, "__await__") else reply


def response_to_json(reply: Any) -> Any:
    """An answer as the JSON it was made from."""
    if isinstance(reply, Mapping):
        return dict(reply)
    if callable(dump := getattr(reply, "model_dump", None)):
        return dump(mode="json", by_alias=True, exclude_none=True)
    raise LLMError(f"A client answered with a {type(reply).__name__}, which told cannot read.")
