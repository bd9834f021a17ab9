"""The `told` command line: parse arguments, call the SDK, print the result.

Importing this package is cheap: typer and rich load when a command runs, the engine when a command
needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    try:
        from told.cli.app import main as run
    except KeyboardInterrupt:  # let Ctrl-C end the process at once while modules load
        raise SystemExit(130) from None
    run(argv)
