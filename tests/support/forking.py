"""Fork a child process of a test."""

import os
import signal
import traceback
from collections.abc import Callable

PATIENCE = 30


def child(work: Callable[[], object]) -> int:
    """Fork a process that runs `work`, or dies if that takes too long."""
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
    """Wait for a child and check whether it succeeded."""
    return os.waitpid(number, 0)[1] == 0
