"""What was put off is done in the background, by one thread that lives as long as the memory it works for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from told.core.fork import at_fork

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Worker:
    """Does a piece of work whenever it is woken, and again after a growing pause for as long as it fails."""

    def __init__(self, work: Callable[[], bool], every: float | None = None) -> None:
        """`work` does all there is to do and says whether nothing is left; it is done `every` so many seconds too."""
        self._work = work
        self._every = every
        self._closed = False
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nothing to do and no thread, as a child process does: its parent keeps its own."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wanted = False

    def wake(self) -> None:
        """Say that there is something to do; the first time starts the thread."""
        with self._changed:
            if self._closed:
                return
            self._wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="told-worker", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def rest(self, seconds: float) -> bool:
        """Finish what there is to do, for at most this long; whether it was finished. Nothing new is begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while self._next():
            if self._work():
                pause = FIRST_PAUSE
                continue
            with self._changed:
                if self._closed:
                    return
                self._changed.wait(pause)
                self._wanted, pause = True, min(pause * 2, LONGEST_PAUSE)

    def _next(self) -> bool:
        """Wait until there is something to do; False when there never will be."""
        with self._changed:
            while not self._wanted and not self._closed:
                woken = self._changed.wait(self._every)
                self._wanted = self._wanted or not woken
            wanted, self._wanted = self._wanted, False
            return wanted
