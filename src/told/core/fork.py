"""What becomes of locks and files in a child process, where whoever had them at the moment of the fork is not there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any


def at_fork(one: object, *, in_child: str, before: str = "", in_parent: str = "") -> None:
    """Call methods of something, by their names, around every fork, as long as somebody still has it."""
    if not hasattr(os, "register_at_fork"):
        return
    named = {"before": before, "after_in_parent": in_parent, "after_in_child": in_child}
    os.register_at_fork(**{moment: _method(one, name) for moment, name in named.items() if name})


def _method(one: object, name: str) -> Callable[[], Any]:
    known = weakref.ref(one)

    def act() -> None:
        if (found := known()) is not None:
            getattr(found, name)()

    return act
