"""A background thread for deferred work."""

from __future__ import annotations

import threading
from collections.abc import Callable

from told.runtime import at_fork

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class BackgroundWorker:
    """A thread that works when woken, and retries with growing pauses while the work fails."""

    def __init__(self, work: Callable[[], bool], interval_seconds: float | None = None) -> None:
        """Call `work` when woken and after each interval; it returns whether nothing is left."""
        self._work = work
        self._interval_seconds = interval_seconds
        self._closed = False
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Start without a thread, as a forked child must: the parent keeps its own."""
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._has_work = False

    def wake(self) -> None:
        """Signal that there is work; start the thread on first use."""
        with self._condition:
            if self._closed:
                return
            self._has_work = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="told-worker", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def stop(self, seconds: float) -> bool:
        """Finish current work within a timeout and accept no more; return whether it finished."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while self._wait_for_work():
            if self._work():
                pause = FIRST_PAUSE
                continue
            with self._condition:
                if self._closed:
                    return
                self._condition.wait(pause)
                self._has_work, pause = True, min(pause * 2, LONGEST_PAUSE)

    def _wait_for_work(self) -> bool:
        """Wait until there is work; return False once the worker is closed."""
        with self._condition:
            while not self._has_work and not self._closed:
                notified = self._condition.wait(self._interval_seconds)
                self._has_work = self._has_work or not notified
            has_work, self._has_work = self._has_work, False
            return has_work
