"""A circuit breaker: a server that keeps failing is left alone for a while, and then asked once to see."""

from __future__ import annotations

from collections.abc import Callable

from told.core.fork import at_fork


class CircuitBreaker:
    """Counts failures in a row; after too many nobody is let through for a while, and then one to begin with."""

    def __init__(self, max_failures: int, cooldown: float, clock: Callable[[], float]) -> None:
        self._max_failures, self._cooldown, self._clock = max_failures, cooldown, clock
        self._failure_count = 0
        self._opened_at: float | None = None
        self._probing = False
        at_fork(self, in_child="abandoned")

    def allow_request(self) -> bool:
        """Whether a request may go out now; a yes is followed by one of the three below."""
        if self._opened_at is None:
            return True
        if self._probing or self.cooldown_left > 0:
            return False
        self._probing = True
        return True

    @property
    def cooldown_left(self) -> float:
        """Seconds until somebody is let through again."""
        return (
            0.0
            if self._opened_at is None
            else max(0.0, self._opened_at + self._cooldown - self._clock())
        )

    def record_success(self) -> None:
        """The server answered."""
        self._failure_count, self._opened_at, self._probing = 0, None, False

    def record_failure(self) -> None:
        """The server did not answer, or said that it cannot."""
        self._failure_count, self._probing = self._failure_count + 1, False
        if self._failure_count >= self._max_failures:
            self._opened_at = self._clock()

    def abandoned(self) -> None:
        """Whoever asked went away before it was known."""
        self._probing = False
