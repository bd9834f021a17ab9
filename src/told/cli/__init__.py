"""`told` on the command line: every verb is parsed here, done by the SDK, and printed; nothing is decided here.

Importing this package is cheap: typer and rich are loaded when a command runs, the engine when a command needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line of this process, or another, and exit with its code."""
    try:
        from told.cli.main import main as run
    except KeyboardInterrupt:  # a command is as quick to stop while it is loading
        raise SystemExit(130) from None
    run(argv)
