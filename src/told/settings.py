"""Settings from arguments, environment, configuration file and defaults, in this order.

The environment is read when settings are loaded, never at import. `TOLD_DURABILITY=normal` sets
`durability`; the file is `$TOLD_CONFIG`, else `.told/config.yaml` here, else `config.yaml` in the
user's configuration folder.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Final

from told.errors import ConfigError
from told.model.profiles import (
    NESTED_NAMES,
    PROFILES,
    IngestionProfile,
    MaintenanceProfile,
    RankingProfile,
    check_value,
    define_setting,
    flat_name,
)
from told.model.salience import DEFAULT_PRUNE_THRESHOLD
from told.model.validation import suggest_option
from told.runtime import config_folders, user_folder
from told.text.tokens import format_value

__all__ = [
    "ENV_PREFIX",
    "NESTED_NAMES",
    "PROFILES",
    "PUBLIC_FIELDS",
    "SETTING_FIELDS",
    "IngestionProfile",
    "LoadedSettings",
    "MaintenanceProfile",
    "RankingProfile",
    "Settings",
    "check_setting",
    "find_config_file",
    "flatten_settings",
    "load_settings",
    "resolve_store_file",
    "resolve_store_url",
]

ENV_PREFIX = "TOLD_"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a memory.

    Arguments may use the flat names of nested settings, such as `rank_hotness`, and
    `settings.rank_hotness` reads `settings.ranking.hotness`.
    """

    store: str = define_setting(
        "", "Store URL: `sqlite:///path` or `ram://`; empty uses the user's data folder."
    )
    account: str = define_setting("default", "The account (tenant) of every call.")
    embedder: str = define_setting(
        "auto", "`auto`, `none`, `local`, `local:<model>`, or the name of an installed plug-in."
    )
    kinds: str = define_setting(
        "",
        "File or folder of kinds; empty uses `.told/kinds` here or in the configuration folder.",
    )
    llm: str = define_setting(
        "none",
        "Language model: `none`, or `provider:model` such as `openai:gpt-4o-mini` or "
        "`ollama:llama3.2`, with `@https://host/v1` for your own server; `auto` uses the first "
        "provider whose key or host is in the environment.",
    )
    llm_timeout: float = define_setting(
        60.0, "Seconds a model may take for one answer.", minimum=0.01, maximum=3600.0
    )
    llm_retries: int = define_setting(
        3, "Retries after a transient model error.", minimum=0, maximum=100
    )
    llm_concurrency: int = define_setting(
        4, "Maximum concurrent model calls.", minimum=1, maximum=1000
    )
    llm_max_tokens: int = define_setting(2000, "Maximum tokens of a model answer.", minimum=1)
    llm_cache: int = define_setting(
        256, "Model answers cached in memory; a cached call costs nothing.", minimum=0
    )
    durability: str = define_setting(
        "full",
        "`full` survives power loss; `normal` may lose the last acknowledged writes on power "
        "loss, but not on a crash of the process.",
        choices=("full", "normal"),
    )
    busy_timeout: float = define_setting(
        60.0, "Seconds to wait for another writing process.", minimum=0.0, maximum=86_400.0
    )
    cache_bytes: int = define_setting(
        256 * 2**20, "Memory for cached index partitions in bytes.", minimum=0
    )
    erase_vacuum: bool = define_setting(
        True, "Rewrite the whole file after an erasure, so that freed pages keep no content."
    )
    text_limit: int = define_setting(100_000, "Maximum text of a memory in characters.", minimum=1)
    batch_limit: int = define_setting(10_000, "Maximum messages in one add.", minimum=1)
    metadata_limit: int = define_setting(
        16_384, "Maximum metadata of a memory in bytes of JSON.", minimum=2
    )
    image_limit: int = define_setting(20 * 2**20, "Maximum size of an image in bytes.", minimum=1)
    images_limit: int = define_setting(100, "Maximum images in one add.", minimum=0)
    document_limit: int = define_setting(
        50 * 2**20, "Maximum size of a document in bytes, unpacked content included.", minimum=1
    )
    reader: str = define_setting(
        "auto",
        "Image reader: `auto` (tesseract, if installed), `none`, `tesseract`, "
        "`tesseract:deu+eng`, or the name of an installed plug-in.",
    )
    read_timeout: float = define_setting(
        60.0, "Seconds to read one image or PDF.", minimum=0.1, maximum=3600.0
    )
    fetch_urls: bool = define_setting(
        False, "Fetch images and documents by URL, from public addresses only."
    )
    fetch_timeout: float = define_setting(
        10.0, "Seconds to fetch one URL.", minimum=0.1, maximum=600.0
    )
    gate: bool = define_setting(
        True, "Keep greetings, noise and texts without words out of memory, but in evidence."
    )
    secrets: str = define_setting(
        "redact",
        "Handling of keys, passwords and card numbers: `reject` the message, `redact` them, "
        "`encrypt` them with TOLD_VAULT_KEY, or `keep` them, marked in the metadata.",
        choices=("reject", "redact", "encrypt", "keep"),
    )
    extract_threshold: int = define_setting(
        0, "Tokens of a session to collect before extraction; 0 extracts at once.", minimum=0
    )
    chunk_tokens: int = define_setting(
        2000, "Approximate tokens passed to an extractor at a time.", minimum=16
    )
    extract: str = define_setting(
        "auto",
        "Extractor: `auto` is `facts` with a language model and `local` without; `verbatim` "
        "extracts nothing.",
        choices=(
            "auto",
            "verbatim",
            "local",
            "facts",
            "closed",
            "apertures",
            "exhaustive",
            "deep",
            "react",
            "graph",
        ),
    )
    curate: str = define_setting(
        "auto",
        "Curator: `rules` or `model`; `auto` lets the model decide about its own facts, except "
        "for kinds with rules (`closed`, `react`).",
        choices=("auto", "rules", "model"),
    )
    close_wait: float = define_setting(
        30.0,
        "Seconds that closing waits for a model; the rest is extracted next time.",
        minimum=0.0,
        maximum=86_400.0,
    )
    grounding: str = define_setting(
        "strict",
        "Handling of model claims not found in the input: `strict` quarantines them, `lenient` "
        "keeps and marks them.",
        choices=("strict", "lenient"),
    )
    zone: str = define_setting(
        "", "Time zone of naive times, such as `Europe/Berlin`; empty rejects them."
    )
    limit: int = define_setting(100, "Default number of results.", minimum=1, maximum=1000)
    budget: int = define_setting(1000, "Default tokens of a context.", minimum=1)
    encoding: str = define_setting("o200k_base", "Tokenizer that counts budgets.")
    sources: str = define_setting(
        "hot time tree graph topics keys",
        "Candidate sources besides vectors and words: `hot` recent recalls, `time` the time "
        "asked about, `tree` parts of a whole, `graph` linked memories, `topics` members of the "
        "same topic, `keys` the source text of a fact.",
    )
    fusion: str = define_setting(
        "weighted",
        "Fusion of vector and word scores: `weighted`, `rrf`, `anchored` (vector first), or "
        "`fused`, which ranks only by 0.6 similarity, 0.3 recency and 0.1 importance.",
        choices=("weighted", "rrf", "anchored", "fused"),
    )
    pinned_kinds: str = define_setting("profile", "Kinds placed first in every context.")
    pinned_share: float = define_setting(
        0.3, "Maximum share of a budget for pinned kinds.", minimum=0.0, maximum=1.0
    )
    tail: int = define_setting(
        0, "Recent turns appended to every context.", minimum=0, maximum=1000
    )
    prune_threshold: float = define_setting(
        DEFAULT_PRUNE_THRESHOLD,
        "Salience below which a memory has faded; permanent ones never fade. Also read from "
        "`PRUNE_THRESHOLD`.",
        minimum=0.0,
        maximum=1.0,
        env_alias="PRUNE_THRESHOLD",
    )
    judge: bool = define_setting(False, "Let the language model rate the importance of turns.")
    summarise: bool = define_setting(
        False, "Let the language model summarise long turns that leave the tail."
    )
    sweep: bool = define_setting(False, "Consolidate in the background while a memory is open.")
    reconsolidate: bool = define_setting(True, "Queue recalled memories for reconsolidation.")
    reflect: str = define_setting(
        "auto",
        "Reconsolidation by `rules` alone or by the `model` as well; `auto` uses the model if "
        "there is one.",
        choices=("auto", "rules", "model"),
    )
    ranking: RankingProfile = field(
        default_factory=RankingProfile, metadata={"about": "Weights and limits of retrieval."}
    )
    maintenance: MaintenanceProfile = field(
        default_factory=MaintenanceProfile,
        metadata={"about": "Limits of decay, tiers, topics and background work."},
    )
    ingestion: IngestionProfile = field(
        default_factory=IngestionProfile, metadata={"about": "Limits of the write path."}
    )

    def __getattr__(self, name: str) -> Any:
        """Return a nested setting by its flat name."""
        if name not in NESTED_NAMES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        profile, nested_name = NESTED_NAMES[name]
        return getattr(getattr(self, profile), nested_name)

    def replace(self, **changes: Any) -> Settings:
        """Return a copy with changed values; None keeps the current one."""
        given = {name: value for name, value in changes.items() if value is not None}
        checked = {
            name: check_setting(name, value, "argument")
            for name, value in flatten_settings(given, "argument").items()
        }
        return _replace_flat(self, checked)


PUBLIC_FIELDS: Final[Mapping[str, dataclasses.Field[Any]]] = {
    item.name: item for item in dataclasses.fields(Settings)
}
"""The public settings; the profiles count as one each."""

SETTING_FIELDS: Final[Mapping[str, dataclasses.Field[Any]]] = {
    **{name: item for name, item in PUBLIC_FIELDS.items() if name not in PROFILES},
    **{flat_name(item.name): item for cls in PROFILES.values() for item in dataclasses.fields(cls)},
}
"""Every single setting by flat name, as environment variables spell them."""


def flatten_settings(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Replace profiles, given as mappings or dataclasses, by their settings under flat names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flatten_profile(name, value, source) if name in PROFILES else {name: value}
    return flat


def _flatten_profile(name: str, value: Any, source: str) -> dict[str, Any]:
    cls = PROFILES[name]
    if isinstance(value, cls):
        return {flat_name(item.name): getattr(value, item.name) for item in dataclasses.fields(cls)}
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source}: {name} must be a mapping or a {cls.__name__}, not {format_value(value)}."
        )
    names = [item.name for item in dataclasses.fields(cls)]
    flat_names = {
        **{nested: nested for nested in names},
        **{flat_name(nested): nested for nested in names},
    }
    for key in value:
        if key not in flat_names:
            raise ConfigError(
                f"{source}: {name} has no setting {format_value(key)}.",
                hint=suggest_option(key, names),
            )
    return {flat_name(flat_names[key]): item for key, item in value.items()}


def _update_profiles(settings: Settings, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profiles of the settings with values changed by flat name."""
    changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        profile, nested_name = NESTED_NAMES[name]
        changes.setdefault(profile, {})[nested_name] = value
    return {
        profile: dataclasses.replace(getattr(settings, profile), **nested)
        for profile, nested in changes.items()
    }


def _replace_flat(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return settings with values changed by flat name."""
    nested = {name: value for name, value in values.items() if name in NESTED_NAMES}
    others = {name: value for name, value in values.items() if name not in NESTED_NAMES}
    return dataclasses.replace(settings, **others, **_update_profiles(settings, nested))


def _accept_flat_names(cls: type[Settings]) -> None:
    """Let the constructor take flat names, and mappings for profiles."""
    init: Any = cls.__init__

    @wraps(init)
    def init_with_flat_names(self: Settings, *args: Any, **values: Any) -> None:
        nested = {
            name: value
            for name, value in values.items()
            if name in NESTED_NAMES or (name in PROFILES and isinstance(value, Mapping))
        }
        init(self, *args, **{name: value for name, value in values.items() if name not in nested})
        if nested:
            flat = flatten_settings(nested, cls.__name__)
            for profile, value in _update_profiles(self, flat).items():
                object.__setattr__(self, profile, value)

    cls.__init__ = init_with_flat_names  # type: ignore[method-assign]


_accept_flat_names(Settings)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and the origin of each value."""

    settings: Settings
    origin: Mapping[str, str]


def load_settings(
    environment: Mapping[str, str] | None = None, file: Path | None = None, **arguments: Any
) -> LoadedSettings:
    """Load settings from arguments, the environment and a file."""
    environment = os.environ if environment is None else environment
    path = file or find_config_file(environment)
    values: dict[str, Any] = {}
    origin = dict.fromkeys(SETTING_FIELDS, "default")
    in_file = flatten_settings(_load_file(path), str(path)) if path else {}
    for name, value in in_file.items():
        values[name], origin[name] = check_setting(name, value, str(path)), str(path)
    for name, setting in SETTING_FIELDS.items():
        own_variable, alias = ENV_PREFIX + name.upper(), setting.metadata["known_as"]
        variable = alias if environment.get(alias, "").strip() else None
        if own_variable in environment:
            variable = own_variable
        if variable is not None:
            values[name] = check_setting(name, environment[variable], variable)
            origin[name] = variable
    given = {name: value for name, value in arguments.items() if value is not None}
    for name, value in flatten_settings(given, "argument").items():
        values[name], origin[name] = check_setting(name, value, "argument"), "argument"
    return LoadedSettings(_replace_flat(Settings(), values), origin)


def find_config_file(environment: Mapping[str, str]) -> Path | None:
    """Return the configuration file in use, if any."""
    if configured := environment.get("TOLD_CONFIG"):
        if not Path(configured).is_file():
            raise ConfigError(
                f"TOLD_CONFIG names {configured}, which is not a file.",
                hint="Create it, or unset it.",
            )
        return Path(configured)
    candidates = (folder / "config.yaml" for folder in config_folders(environment))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def resolve_store_url(settings: Settings) -> str:
    """Return the URL of the configured store."""
    return settings.store or f"sqlite:///{user_folder('data') / 'told.db'}"


def resolve_store_file(settings: Settings) -> Path | None:
    """Return the file of the configured store, or None if it has none."""
    scheme, mark, path = resolve_store_url(settings).partition(":///")
    try:
        return Path(path).expanduser() if mark and scheme == "sqlite" else None
    except RuntimeError as error:
        raise ConfigError(
            f"{resolve_store_url(settings)!r} names an unknown home folder.",
            hint="Use an absolute path.",
        ) from error


def _load_file(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable_error(path, error) from error
    if not text.strip():
        return {}
    import yaml

    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise _unreadable_error(path, error) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must contain `name: value` lines.")
    return data


def _unreadable_error(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read: {' '.join(str(error).split())}.", hint="Fix or remove the file."
    )


def check_setting(name: str, value: Any, source: str) -> Any:
    """Convert and validate the value of a setting."""
    setting = SETTING_FIELDS.get(name)
    if setting is None:
        matches = get_close_matches(name, SETTING_FIELDS, 1)
        hint = f"Did you mean `{matches[0]}`?" if matches else "Run `told config` for the list."
        raise ConfigError(f"{source}: there is no setting {name!r}.", hint=hint)
    return check_value(setting, value, source, name)
