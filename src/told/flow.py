"""Effects as generators, with one synchronous and one asynchronous driver.

`reply = yield from call(store.head, account)` requests an effect; `run` performs it and blocks,
`arun` performs it without blocking the event loop. A port method may be plain or `async def`; both
drivers accept either. asyncio is imported on first use because most callers never need it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from told.runtime import at_fork

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """An effect: call this port method with these arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gather:
    """An effect: run these flows concurrently and return their results in order."""

    flows: tuple[Generator[Any, Any, Any], ...]


Effect: TypeAlias = Call | Gather
Flow: TypeAlias = Generator[Effect, Any, T]


def call(
    function: Callable[P, T] | Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> Generator[Effect, Any, T]:
    """Request a call of a port method."""
    reply: T = yield Call(function, args, kwargs)
    return reply


def gather_flows(flows: Iterable[Flow[T]]) -> Generator[Effect, Any, Sequence[T]]:
    """Request that flows run concurrently."""
    return cast(Sequence[T], (yield Gather(tuple(flows))))


def map_reply(reply: Any, transform: Callable[[Any], T]) -> Any:
    """Apply a function to a port's reply, now or once it is awaited."""
    return _map_awaited(reply, transform) if hasattr(reply, "__await__") else transform(reply)


async def _map_awaited(reply: Awaitable[Any], transform: Callable[[Any], T]) -> T:
    return transform(await reply)


def run(flow: Flow[T]) -> T:
    """Drive a flow in this thread and block until it returns."""
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            effect = flow.throw(error) if error is not None else flow.send(reply)
            reply, error = None, None
            try:
                reply = _perform_effect(effect)
            except BaseException as raised:  # raised inside the flow, which cleans up
                error = raised
    except StopIteration as done:
        result: T = done.value
        return result


def _perform_effect(effect: Effect) -> Any:
    if isinstance(effect, Gather):
        if len(effect.flows) < 2:
            return [run(flow) for flow in effect.flows]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(effect.flows)) as pool:
            return list(pool.map(run, effect.flows))
    reply = effect.function(*effect.args, **effect.kwargs)
    return (
        _LOOP.run_coroutine(cast(Coroutine[Any, Any, Any], reply))
        if hasattr(reply, "__await__")
        else reply
    )


async def arun(flow: Flow[T]) -> T:
    """Drive a flow on the event loop; blocking port methods run in a worker thread."""
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            effect = flow.throw(error) if error is not None else flow.send(reply)
            reply, error = None, None
            try:
                reply = await _aperform_effect(effect)
            except BaseException as raised:  # cancellation is raised inside the flow too
                error = raised
    except StopIteration as done:
        return cast(T, done.value)


async def _aperform_effect(effect: Effect) -> Any:
    import asyncio

    if isinstance(effect, Gather):
        return await asyncio.gather(*(arun(flow) for flow in effect.flows))
    if inspect.iscoroutinefunction(effect.function):
        return await effect.function(*effect.args, **effect.kwargs)
    reply = await asyncio.to_thread(effect.function, *effect.args, **effect.kwargs)
    return await reply if hasattr(reply, "__await__") else reply


class _BackgroundLoop:
    """The event loop that runs `async def` port methods for synchronous callers."""

    def __init__(self) -> None:
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Drop the loop, as a forked child must."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop and block for its result."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self._ensure_loop()).result()

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="told-loop", daemon=True
                ).start()
            return self._loop


_LOOP = _BackgroundLoop()
