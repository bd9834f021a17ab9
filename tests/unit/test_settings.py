"""Nested profiles and the flat names of their settings."""

import pytest

from told import Memory, Settings
from told.errors import ConfigError
from told.settings import (
    NESTED_NAMES,
    PUBLIC_FIELDS,
    SETTING_FIELDS,
    RankingProfile,
    load_settings,
)


def test_at_most_fifty_settings_are_public():
    assert len(PUBLIC_FIELDS) <= 50


@pytest.mark.parametrize("given", [{"hotness": 1}, RankingProfile(hotness=1.0)])
def test_a_profile_can_be_a_mapping_or_a_dataclass(given):
    for settings in (
        Settings(ranking=given),
        load_settings({}, ranking=given).settings,
        Settings().replace(ranking=given),
    ):
        assert settings.ranking == RankingProfile(hotness=1.0)


def test_a_profile_is_a_nested_table_in_the_config_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("ranking:\n  hotness: 1\nrank_talk: 0.5\n")
    loaded = load_settings({"TOLD_RANK_COVER": "2"}, file)
    assert loaded.settings.ranking == RankingProfile(hotness=1.0, talk=0.5, cover=2.0)
    assert loaded.origin["rank_hotness"] == str(file)
    assert loaded.origin["rank_cover"] == "TOLD_RANK_COVER"


@pytest.mark.parametrize("name", NESTED_NAMES)
def test_flat_names_keep_working(name):
    profile, nested = NESTED_NAMES[name]
    value = SETTING_FIELDS[name].default
    for settings in (Settings(**{name: value}), load_settings({}, **{name: value}).settings):
        assert getattr(settings, name) == getattr(getattr(settings, profile), nested) == value


def test_a_memory_accepts_profiles_and_flat_names():
    with Memory("ram://", embedder="none", ranking={"talk": 0.5}, rank_hotness=1) as memory:
        assert memory.engine.settings.ranking == RankingProfile(talk=0.5, hotness=1.0)
    config = {"vector_store": {"provider": "memory"}, "embedder": "none", "ranking": {"talk": 0.5}}
    with Memory.from_config(config) as memory:
        assert memory.engine.settings.ranking.talk == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hottness": 1}, "Did you mean 'hotness'"),
        ({"hotness": -1}, "must be at least 0"),
        ("high", "must be a mapping or a RankingProfile"),
    ],
)
def test_errors_in_a_profile_are_named(given, message):
    with pytest.raises(ConfigError, match=message):
        load_settings({}, ranking=given)


def test_a_profile_validates_its_values():
    with pytest.raises(ConfigError, match="hotness must be at least 0"):
        RankingProfile(hotness=-1.0)
