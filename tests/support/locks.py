"""Every lock that told holds on to, found by following what refers to what."""

import gc
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

LOCKS = (type(threading.Lock()), type(threading.RLock()))
CONTAINERS = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    deque,
    OrderedDict,
    threading.Condition,
    threading.Event,
)


def locks(*roots: Any) -> Iterator[tuple[str, Any]]:
    """The locks that told's modules and some objects lead to, each with the name of what has it."""
    globals_ = [
        (name, vars(module))
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "told"
    ]
    waiting: list[tuple[str, Any]] = [*(("", root) for root in roots), *globals_]
    seen: dict[int, Any] = {}
    while waiting:
        owner, one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, LOCKS):
            yield owner, one
        elif type(one).__module__.partition(".")[0] == "told":
            waiting += ((type(one).__name__, other) for other in gc.get_referents(one))
        elif isinstance(one, CONTAINERS):
            waiting += ((owner, other) for other in gc.get_referents(one))
