"""Location of the user's folders on each platform."""

from pathlib import Path

import pytest

from told import runtime
from told.runtime import user_folder


@pytest.fixture(autouse=True)
def no_xdg(monkeypatch):
    for kind in ("DATA", "CONFIG", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_xdg_variables_are_used_on_every_platform(monkeypatch, platform, tmp_path):
    monkeypatch.setattr(runtime.sys, "platform", platform)
    assert user_folder("data", {"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "told"


def test_linux_folders_follow_the_xdg_defaults():
    assert user_folder("data", {}) == Path.home() / ".local" / "share" / "told"
    assert user_folder("config", {}) == Path.home() / ".config" / "told"
    assert user_folder("cache", {}) == Path.home() / ".cache" / "told"


def test_other_platforms_use_their_own_folder_unless_an_older_one_exists(monkeypatch, tmp_path):
    native = tmp_path / "Application Support" / "told"
    monkeypatch.setattr(runtime.sys, "platform", "darwin")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: native)
    assert user_folder("data", {}) == native
    earlier = Path.home() / ".local" / "share" / "told"
    earlier.mkdir(parents=True)
    assert user_folder("data", {}) == earlier
