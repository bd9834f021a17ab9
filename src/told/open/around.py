"""What stands around a language model: a meter of what it costs, and a memory for questions that come again."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from told.core.errors import InvalidInput
from told.core.fork import freed
from told.core.text import loads_forgiving
from told.flow import after
from told.ports import LLM, Line, Reply, Tool, ToolLLM, ToolReply, Usage, usage_of


class Meter:
    """What models were asked and what it cost, by operation; threads may share it."""

    def __init__(self) -> None:
        self._lock = freed(threading.Lock())
        self._spent: dict[str, Usage] = {}

    def add(self, operation: str, usage: Usage) -> None:
        """Count what something cost."""
        with self._lock:
            self._spent[operation] = self._spent.get(operation, Usage()) + usage

    @property
    def by_operation(self) -> Mapping[str, Usage]:
        """What each operation cost so far."""
        with self._lock:
            return dict(self._spent)

    @property
    def total(self) -> Usage:
        """What everything cost so far."""
        return sum(self.by_operation.values(), Usage())


class Around:
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


class Metered(Around):
    """A language model whose every answer is counted."""

    def __init__(self, inner: LLM, meter: Meter, operation: str) -> None:
        super().__init__(inner)
        self.meter, self.operation = meter, operation

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """The model's reply."""
        return after(self.inner.ask(system, user, schema=schema), self._count)

    def _count(self, reply: Any) -> Any:
        self.meter.add(self.operation, usage_of(reply))
        return reply


class MeteredTools(Metered):
    """The same for one that can use tools."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> Any:
        """The model's next line in a conversation."""
        return after(self.inner.tools(system, lines, tools), self._count)


def metered(llm: LLM, meter: Meter, operation: str) -> Metered:
    """The same model, counted under the name of an operation."""
    return (MeteredTools if isinstance(llm, ToolLLM) else Metered)(llm, meter, operation)


class Cached(Around):
    """A language model that is not asked the same thing twice; an answer from memory cost nothing.

    An answer that is no JSON where JSON was asked for is not kept, so that asking again can help.
    """

    def __init__(self, inner: LLM, size: int) -> None:
        super().__init__(inner)
        self._size, self._lock = size, freed(threading.Lock())
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def ask(self, system: str, user: str, *, schema: Mapping[str, Any] | None = None) -> Any:
        """The model's reply, or the one it gave before."""
        key = json.dumps([system, user, schema], sort_keys=True, default=repr)
        ask = self.inner.ask
        return self._remembered(key, lambda: ask(system, user, schema=schema), lambda reply: _usable(reply, schema))

    def _remembered(self, key: str, ask: Callable[[], Any], worth: Callable[[Any], bool]) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        return after(ask(), lambda reply: self._keep(key, reply) if worth(reply) else reply)

    def _keep(self, key: str, reply: Any) -> Any:
        with self._lock:
            self._kept[key] = _free(reply)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return reply


class CachedTools(Cached):
    """The same for one that can use tools."""

    inner: ToolLLM

    def tools(self, system: str, lines: Sequence[Line], tools: Sequence[Tool]) -> Any:
        """The model's next line in a conversation, or the one it gave before."""
        key, use = repr([system, list(lines), list(tools)]), self.inner.tools
        return self._remembered(key, lambda: use(system, lines, tools), lambda _: True)


def cached(llm: LLM, size: int) -> LLM:
    """The same model with a memory for so many answers; none for 0."""
    if not size:
        return llm
    return (CachedTools if isinstance(llm, ToolLLM) else Cached)(llm, size)


def _free(reply: Any) -> Any:
    """An answer that costs nothing any more."""
    if isinstance(reply, ToolReply):
        return ToolReply(reply.text, reply.calls, Usage())
    return Reply(str(reply), Usage())


def _usable(reply: Any, schema: Mapping[str, Any] | None) -> bool:
    if schema is None:
        return True
    try:
        loads_forgiving(str(reply))
    except InvalidInput:
        return False
    return True
