"""Disks with a chosen sync time, through the environment of a contender's process.

The disk of a virtual machine reports a sync after a tenth of a millisecond, the SSD of a laptop
after one to five. The cost of durability and the gain of group commits show only on the latter, so
a preloaded library makes every sync take that long. Run as a program, this prints the sync time.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "_slow_sync.c"
LIBRARY = HERE / "results" / "slow_sync.so"
TIMES = 50


@dataclass(frozen=True, slots=True)
class Disk:
    """The machine's disk, or one whose syncs take at least so many milliseconds."""

    least: float = 0.0

    @property
    def title(self) -> str:
        """Return a short description."""
        return (
            f"a disk as a laptop's, every sync {self.least:g} ms"
            if self.least
            else "the machine's own disk"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a process on this disk."""
        return {"LD_PRELOAD": str(LIBRARY), "SLOW_SYNC_MS": f"{self.least:g}"} if self.least else {}

    def measured(self) -> float:
        """Measure an fdatasync of 4 KB in milliseconds, in a process like the contenders'."""
        command = [sys.executable, str(Path(__file__).resolve()), str(HERE)]
        here = {**os.environ, **self.environment}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=here)
        return float(done.stdout)


OWN = Disk()


def slow(least: float) -> Disk | None:
    """Return a disk with slow syncs, or none if the library cannot be built."""
    problem = _built()
    if problem is not None:
        print(f"a disk whose sync takes {least:g} ms is left out: {problem}", file=sys.stderr)
        return None
    return Disk(least)


def _built() -> str | None:
    """Build the library if it is missing; return the reason for a failure."""
    if not sys.platform.startswith("linux"):
        return "that works on Linux alone"
    if LIBRARY.exists() and LIBRARY.stat().st_mtime >= SOURCE.stat().st_mtime:
        return None
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "it needs a C compiler (cc), and there is none"
    LIBRARY.parent.mkdir(exist_ok=True)
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(LIBRARY), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (
        None
        if done.returncode == 0
        else f"{compiler} cannot build {SOURCE.name}: {done.stderr.strip()}"
    )


def syncs() -> int | None:
    """Return the number of syncs of this process; unknown on the machine's disk."""
    counter = getattr(ctypes.CDLL(None), "slow_syncs", None)
    return None if counter is None else int(counter())


def one_sync(folder: Path) -> float:
    """Return the median time of an fdatasync of 4 KB in milliseconds."""
    spent = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(TIMES):
            file.write(os.urandom(4096))
            start = time.perf_counter()
            os.fdatasync(file)
            spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1e3


if __name__ == "__main__":
    print(one_sync(Path(sys.argv[1])))
