"""A child process of the test's own, made by a real fork."""

import os
import signal
import traceback
from collections.abc import Callable

PATIENCE = 30


def child(work: Callable[[], object]) -> int:
    """Fork a process that does some work, or dies if that takes too long."""
    number = os.fork()
    if number == 0:
        signal.alarm(PATIENCE)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return number


def went_well(number: int) -> bool:
    """Whether a child did its work."""
    return os.waitpid(number, 0)[1] == 0
