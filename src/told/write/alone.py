"""One at a time: what several threads may begin and only one should do."""

from __future__ import annotations

import threading

from told.core.fork import at_fork


class Turnstile:
    """Lets one in; whoever finds it taken may wait a while and try again.

    Nobody owns it while waiting, so a task that is cancelled there leaves nothing locked; nor does a fork, for whoever
    was inside has stayed with the parent.
    """

    def __init__(self) -> None:
        self.renew()
        at_fork(self, in_child="renew")

    def renew(self) -> None:
        """Begin with nobody inside, as a child process does."""
        self._changed = threading.Condition()
        self._taken = False

    def enter(self) -> bool:
        """Go in, if nobody is inside."""
        with self._changed:
            entered, self._taken = not self._taken, True
            return entered

    def leave(self) -> None:
        """Let the next one in."""
        with self._changed:
            self._taken = False
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until nobody is inside, but no longer than this."""
        with self._changed:
            if self._taken:
                self._changed.wait(seconds)
