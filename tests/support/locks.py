"""Find every lock that told holds by following references."""

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
    """Return the locks reachable from told and some objects, each with its owner's name."""
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
