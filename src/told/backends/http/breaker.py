"""A circuit breaker: a server that keeps failing is left alone for a while, and then asked once to see."""

from __future__ import annotations

from collections.abc import Callable

from told.core.fork import at_fork


class Breaker:
    """Counts failures in a row; after too many nobody is let through for a while, and then one to begin with."""

    def __init__(self, failures: int, rest: float, clock: Callable[[], float]) -> None:
        self._most, self._rest, self._clock = failures, rest, clock
        self._failed = 0
        self._opened: float | None = None
        self._trying = False
        at_fork(self, in_child="abandoned")

    def admits(self) -> bool:
        """Whether a request may go out now; a yes is followed by one of the three below."""
        if self._opened is None:
            return True
        if self._trying or self.rest_left > 0:
            return False
        self._trying = True
        return True

    @property
    def rest_left(self) -> float:
        """Seconds until somebody is let through again."""
        return 0.0 if self._opened is None else max(0.0, self._opened + self._rest - self._clock())

    def worked(self) -> None:
        """The server answered."""
        self._failed, self._opened, self._trying = 0, None, False

    def failed(self) -> None:
        """The server did not answer, or said that it cannot."""
        self._failed, self._trying = self._failed + 1, False
        if self._failed >= self._most:
            self._opened = self._clock()

    def abandoned(self) -> None:
        """Whoever asked went away before it was known."""
        self._trying = False
