"""The event loop that connections live on: one for the process, in a thread of its own, started by the first request.

A connection belongs to the loop it was opened on, and callers come from many: those of an application, the one that
serves blocking callers, one for each `asyncio.run`. So that all of them share connections, limits and breakers, every
request is made here and awaited there; what lives here needs no lock.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from told.core.fork import reset_on_fork

T = TypeVar("T")


class LoopThread:
    """An event loop that runs for as long as the process does."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="told-http", daemon=True).start()

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a piece of work that is done here, from any loop; who stops waiting stops the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def run_blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Block until a piece of work is done here; never called from here."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def run_detached(self, work: Coroutine[Any, Any, Any]) -> None:
        """Have a piece of work done here that nobody waits for, unless a fork has left the loop behind."""
        if self.pid == os.getpid():
            asyncio.run_coroutine_threadsafe(work, self.loop)
        else:
            work.close()


_loop_lock = reset_on_fork(threading.Lock())
_loop_threads: list[LoopThread] = []


def get_loop_thread() -> LoopThread:
    """The home of this process; a forked child gets its own."""
    with _loop_lock:
        if not _loop_threads or _loop_threads[-1].pid != os.getpid():
            _loop_threads[:] = [LoopThread()]
        return _loop_threads[-1]
