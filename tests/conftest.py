"""Shared fixtures: no network beyond loopback, an empty home, no settings from the machine."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
GUARD = Path(__file__).parent / "guard"

FOUND_PATHS = [
    path
    for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if path not in ("", str(GUARD))
]


class Environment(dict[str, str]):
    """Environment variables with a repr that hides their values."""

    def __repr__(self) -> str:
        return f"<{len(self)} environment variables>"


OUTSIDE = Environment(os.environ, PYTHONPATH=os.pathsep.join(FOUND_PATHS))
"""The environment before this suite changed it."""

KNOBS = {"TOLD_EVAL_DATA", "TOLD_KILLS"}
"""Variables that control the suite, not the product."""

FOREIGN = (
    "TOLD_",
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "AZURE_",
    "OLLAMA_",
    "XDG_",
    "HF_",
)
"""Prefixes of machine settings that would change told's behaviour."""

# Properties have no deadline: a busy machine may be slow.
settings.register_profile(
    "told", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("told")


def _start_guard() -> None:
    """Load the guard, unless Python loaded it at startup, as in an xdist worker."""
    if "network_guard" not in sys.modules:
        spec = importlib.util.spec_from_file_location("network_guard", GUARD / "sitecustomize.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def pytest_configure(config: pytest.Config) -> None:
    """Install the guard in this process and, through PYTHONPATH, in every child process."""
    _start_guard()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), *FOUND_PATHS])


class Refusals:
    """The refused network attempts of one test, in this process and its children."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def take(self) -> list[str]:
        """Return and forget the attempts so far; call this in a test that expects some."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture(autouse=True)
def refusals(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Refusals]:
    """Fail a test that tried to reach the network, even if it swallowed the error."""
    seen = Refusals(tmp_path_factory.getbasetemp() / "network-guard.log")
    monkeypatch.setenv("NETWORK_GUARD_LOG", str(seen.log))
    yield seen
    attempts = seen.take()
    assert not attempts, f"this test tried to leave the machine: {attempts}"


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty home for this test and none of the machine's settings."""
    for name in os.environ:
        if name.startswith(FOREIGN) and name not in KNOBS:
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("home", numbered=True)
    monkeypatch.setenv("HOME", str(folder))
    for kind in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(folder / f".{kind.lower()}"))
    monkeypatch.setenv("NO_COLOR", "1")
    return folder


@pytest.fixture(scope="session")
def outside() -> dict[str, str]:
    """Return the environment for a program that may use the network, such as pip."""
    return OUTSIDE


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT
