"""One at a time: what several threads may begin and only one should do."""

from __future__ import annotations

import threading

from told.core.fork import at_fork


class Mutex:
    """Lets one in; whoever finds it taken may wait a while and try again.

    Nobody owns it while waiting, so a task that is cancelled there leaves nothing locked; nor does a fork, for whoever
    was inside has stayed with the parent.
    """

    def __init__(self) -> None:
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nobody inside, as a child process does."""
        self._condition = threading.Condition()
        self._locked = False

    def try_acquire(self) -> bool:
        """Go in, if nobody is inside."""
        with self._condition:
            acquired, self._locked = not self._locked, True
            return acquired

    def release(self) -> None:
        """Let the next one in."""
        with self._condition:
            self._locked = False
            self._condition.notify_all()

    def wait_released(self, seconds: float) -> None:
        """Wait until nobody is inside, but no longer than this."""
        with self._condition:
            if self._locked:
                self._condition.wait(seconds)
