"""What stands around a language model: a meter of what it costs, and a memory for questions that come again."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from told.core.errors import InvalidInput
from told.core.fork import reset_on_fork
from told.core.text import parse_lenient_json
from told.flow import map_reply
from told.ports import LLM, ChatLine, Reply, Tool, ToolLLM, ToolReply, Usage, get_usage


class UsageMeter:
    """What models were asked and what it cost, by operation; threads may share it."""

    def __init__(self) -> None:
        self._lock = reset_on_fork(threading.Lock())
        self._usage: dict[str, Usage] = {}

    def add(self, operation: str, usage: Usage) -> None:
        """Count what something cost."""
        with self._lock:
            self._usage[operation] = self._usage.get(operation, Usage()) + usage

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """What each operation cost so far."""
        with self._lock:
            return dict(self._usage)

    @property
    def total(self) -> Usage:
        """What everything cost so far."""
        return sum(self.by_operation.values(), Usage())


class LLMWrapper:
    """A language model around another; it is plain or awaitable as the one inside is."""

    def __init__(self, inner: LLM) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def model(self) -> str:
        """The model's name."""
        return self.inner.model

    @property
    def local(self) -> bool:
        """Whether the model inside answers on this machine; one that does not say does."""
        return bool(getattr(self.inner, "local", True))


class MeteredLLM(LLMWrapper):
    """A language model whose every answer is counted."""

    def __init__(self, inner: LLM, meter: UsageMeter, operation: str) -> None:
        super().__init__(inner)
        self.meter, self.operation = meter, operation

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """The model's reply."""
        return map_reply(self.inner.ask(system, user, schema=schema), self._record_usage)

    def _record_usage(self, reply: Any) -> Any:
        self.meter.add(self.operation, get_usage(reply))
        return reply


class MeteredToolLLM(MeteredLLM):
    """The same for one that can use tools."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """The model's next line in a conversation."""
        return map_reply(self.inner.tools(system, lines, tools), self._record_usage)


def wrap_with_meter(llm: LLM, meter: UsageMeter, operation: str) -> MeteredLLM:
    """The same model, counted under the name of an operation."""
    return (MeteredToolLLM if isinstance(llm, ToolLLM) else MeteredLLM)(llm, meter, operation)


class CachedLLM(LLMWrapper):
    """A language model that is not asked the same thing twice; an answer from memory cost nothing.

    An answer that is no JSON where JSON was asked for is not kept, so that asking again can help.
    """

    def __init__(self, inner: LLM, size: int) -> None:
        super().__init__(inner)
        self._max_entries, self._lock = size, reset_on_fork(threading.Lock())
        self._replies: OrderedDict[str, Any] = OrderedDict()

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """The model's reply, or the one it gave before."""
        key = json.dumps([system, user, schema], sort_keys=True, default=repr)
        ask = self.inner.ask
        return self._get_or_ask(
            key,
            lambda: ask(system, user, schema=schema),
            lambda reply: _is_cacheable(reply, schema),
        )

    def _get_or_ask(
        self, key: str, ask: Callable[[], Any], is_cacheable: Callable[[Any], bool]
    ) -> Any:
        with self._lock:
            if key in self._replies:
                self._replies.move_to_end(key)
                return self._replies[key]
        return map_reply(
            ask(), lambda reply: self._store_reply(key, reply) if is_cacheable(reply) else reply
        )

    def _store_reply(self, key: str, reply: Any) -> Any:
        with self._lock:
            self._replies[key] = _strip_usage(reply)
            while len(self._replies) > self._max_entries:
                self._replies.popitem(last=False)
        return reply


class CachedToolLLM(CachedLLM):
    """The same for one that can use tools."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[ChatLine], tools: Sequence[Tool]) -> Any:
        """The model's next line in a conversation, or the one it gave before."""
        key, ask_tools = repr([system, list(lines), list(tools)]), self.inner.tools
        return self._get_or_ask(key, lambda: ask_tools(system, lines, tools), lambda _: True)


def wrap_with_cache(llm: LLM, size: int) -> LLM:
    """The same model with a memory for so many answers; none for 0."""
    if not size:
        return llm
    return (CachedToolLLM if isinstance(llm, ToolLLM) else CachedLLM)(llm, size)


def _strip_usage(reply: Any) -> Any:
    """An answer that costs nothing any more."""
    if isinstance(reply, ToolReply):
        return ToolReply(reply.text, reply.calls, Usage())
    return Reply(str(reply), Usage())


def _is_cacheable(reply: Any, schema: Mapping[str, Any] | None) -> bool:
    if schema is None:
        return True
    try:
        parse_lenient_json(str(reply))
    except InvalidInput:
        return False
    return True
