"""What was put off is done in the background, by one thread that lives as long as the memory it works for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from told.core.fork import at_fork

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class BackgroundWorker:
    """Does a piece of work whenever it is woken, and again after a growing pause for as long as it fails."""

    def __init__(self, work: Callable[[], bool], interval_seconds: float | None = None) -> None:
        """`work` does all there is to do and says whether nothing is left; it is done `every` so many seconds too."""
        self._work = work
        self._interval_seconds = interval_seconds
        self._closed = False
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing to do and no thread, as a child process does: its parent keeps its own."""
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._has_work = False

    def wake(self) -> None:
        """Say that there is something to do; the first time starts the thread."""
        with self._condition:
            if self._closed:
                return
            self._has_work = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="told-worker", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def stop(self, seconds: float) -> bool:
        """Finish what there is to do, for at most this long; whether it was finished. Nothing new is begun."""
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
        """Wait until there is something to do; False when there never will be."""
        with self._condition:
            while not self._has_work and not self._closed:
                notified = self._condition.wait(self._interval_seconds)
                self._has_work = self._has_work or not notified
            has_work, self._has_work = self._has_work, False
            return has_work
