"""Tables of examples that run as one test and report every row that fails."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for every row of a table, as one test case.

    It takes the arguments of `pytest.mark.parametrize`. Use it for cheap tests of pure functions:
    fixtures are shared by all rows.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(keys)) for row in rows]
    labels = list(map(str, ids)) if ids is not None and not callable(ids) else []

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures = []
            for number, values in enumerate(table):
                try:
                    test(**fixtures, **dict(zip(keys, values, strict=True)))
                except FAILURES as error:
                    label = labels[number] if labels else ", ".join(map(_short, values))
                    failures.append((label, error))
            if failures:
                lines = [f"{label}: {type(error).__name__}: {error}" for label, error in failures]
                count = f"{len(failures)} of {len(table)} rows fail"
                raise AssertionError("\n\n".join([count, *lines])) from failures[0][1]

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        del run.__wrapped__
        return run

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    """Return the values of a row."""
    if hasattr(row, "marks"):
        assert not row.marks, "a row of a table has no marks"
        row = row.values
        return tuple(row)
    return tuple(row) if count > 1 else (row,)


def _short(value: object) -> str:
    """Return a value in few words."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
