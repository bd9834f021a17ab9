"""What becomes of locks and files in a child process, where whoever had them at the moment of the fork is not there.

A class makes its lock in a method that `at_fork` calls in the child, or the lock itself is `freed` or `awaited`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

T = TypeVar("T")

BEFORE, IN_PARENT, IN_CHILD = "before", "after_in_parent", "after_in_child"
_HOOK_IDS: Final = count()
_HOOKS: Final[dict[int, tuple[weakref.ref[Any], Mapping[str, str]]]] = {}
"""What is called around a fork, in the order in which it came; what nobody has any longer is not in it."""


def at_fork(target: object, *, in_child: str, before: str = "", in_parent: str = "") -> None:
    """Call methods of something, by their names, around every fork, as long as somebody still has it."""
    hook_id = next(_HOOK_IDS)
    reference = weakref.ref(target, lambda _: _HOOKS.pop(hook_id, None))
    _HOOKS[hook_id] = reference, {BEFORE: before, IN_PARENT: in_parent, IN_CHILD: in_child}


def reset_on_fork(lock: T) -> T:
    """A lock that nobody has in a child process: for what is sound whenever its holder is interrupted."""
    at_fork(lock, in_child="_at_fork_reinit")
    return lock


def acquire_on_fork(lock: T) -> T:
    """A lock that every fork waits for: for what is sound only while nobody has it."""
    at_fork(lock, before="acquire", in_parent="release", in_child="release")
    return lock


def _list_hooks(moment: str) -> list[Callable[[], Any]]:
    targets = [(ref(), names[moment]) for ref, names in list(_HOOKS.values())]
    return [getattr(target, name) for target, name in targets if target is not None and name]


def _run_hooks(moment: str) -> None:
    """Call the newest first before a fork and the oldest first after it, each of them whatever another may raise."""
    methods = _list_hooks(moment)
    with ExitStack() as calls:  # which calls what came last first
        for method in methods if moment == BEFORE else reversed(methods):
            calls.callback(method)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        **{moment: partial(_run_hooks, moment) for moment in (BEFORE, IN_PARENT, IN_CHILD)}
    )
