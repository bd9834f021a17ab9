"""One function locates the user's folders on every system."""

from pathlib import Path

import pytest

from told import runtime
from told.runtime import user_folder


@pytest.fixture(autouse=True)
def no_xdg(monkeypatch):
    for kind in ("DATA", "CONFIG", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_xdg_counts_on_every_system(monkeypatch, platform, tmp_path):
    monkeypatch.setattr(runtime.sys, "platform", platform)
    assert user_folder("data", {"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "told"


def test_the_folders_on_linux_are_the_usual_ones():
    assert user_folder("data", {}) == Path.home() / ".local" / "share" / "told"
    assert user_folder("config", {}) == Path.home() / ".config" / "told"
    assert user_folder("cache", {}) == Path.home() / ".cache" / "told"


def test_elsewhere_the_platform_decides_unless_an_earlier_folder_exists(monkeypatch, tmp_path):
    native = tmp_path / "Application Support" / "told"
    monkeypatch.setattr(runtime.sys, "platform", "darwin")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: native)
    assert user_folder("data", {}) == native
    earlier = Path.home() / ".local" / "share" / "told"
    earlier.mkdir(parents=True)
    assert user_folder("data", {}) == earlier
