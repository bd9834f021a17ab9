"""The configurations of the sqlite store that must answer like the ram store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from histories import Stage, stage
from told.backends.sqlite import index
from told.backends.sqlite.partition_python import PythonPartition

STORES: dict[str, dict[str, Any]] = {
    "sqlite with NumPy": {},
    "sqlite without NumPy": {"plain": True},
    "sqlite by sketch": {"exact_rows": 1},
    "sqlite with no cache": {"cache_bytes": 0},
}


@contextmanager
def opened(name: str, **more: Any) -> Iterator[Stage]:
    """Open a stage of a store by its name."""
    options = {**STORES[name], **more}
    with ExitStack() as stack:
        if options.pop("plain", False):
            stack.enter_context(
                mock.patch.object(index, "choose_partition_class", return_value=PythonPartition)
            )
        yield stack.enter_context(stage("sqlite", **options))
