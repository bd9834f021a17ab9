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
from told.model.salience import DEFAULT_PRUNE_THRESHOLD
from told.model.validation import suggest_option
from told.runtime import config_folders, lazy_regex, user_folder
from told.text.tokens import format_value

ENV_PREFIX = "TOLD_"
MAX_NUMBER = 2**53
"""The largest number that every store and format keeps exactly."""


def define_setting(
    default: Any,
    about: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float = MAX_NUMBER,
    env_alias: str = "",
) -> Any:
    """Define a field with its help text, limits and an alternative environment variable."""
    limits = {"choices": choices, "least": minimum, "most": maximum}
    return field(default=default, metadata={"about": about, "known_as": env_alias, **limits})


@dataclass(frozen=True, slots=True)
class _Profile:
    """A nested group of settings that validates its own values."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not item.default:
                object.__setattr__(self, item.name, _check_value(item, value, type(self).__name__))


@dataclass(frozen=True, slots=True)
class RankingProfile(_Profile):
    """The weights and limits of retrieval, as `Memory(ranking={"hotness": 0.5})`."""

    depth: int = define_setting(150, "Candidates per retriever.", minimum=1)
    beside: int = define_setting(
        20, "Top candidates per retriever whose neighbouring turns are added.", minimum=0
    )
    spare: int = define_setting(
        5, "Extra facts to fetch, because some may be duplicates.", minimum=0
    )
    exact_rows: int = define_setting(
        4096, "Scan scopes of up to this many passages exactly, larger ones by sketch.", minimum=1
    )
    fusion_alpha: float = define_setting(
        0.7, "Weight of the vector score in `anchored` fusion.", minimum=0.0, maximum=1.0
    )
    rrf_k: int = define_setting(60, "The constant k of reciprocal rank fusion.", minimum=1)
    centre: float = define_setting(
        0.5,
        "Share of the scope's mean vector to subtract, which demotes generic passages.",
        minimum=0.0,
        maximum=1.0,
    )
    spread: float = define_setting(
        0.0,
        "Standard deviation of cosines of unrelated texts; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    usual: float = define_setting(
        0.0,
        "Mean cosine of unrelated texts; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    dense: float = define_setting(
        1.0, "Weight of the cosine, in standard deviations above the average.", minimum=0.0
    )
    cover: float = define_setting(1.2, "Weight of query word coverage.", minimum=0.0)
    speaker: float = define_setting(
        2.5, "Bonus for turns of the one speaker the query names.", minimum=0.0
    )
    time: float = define_setting(
        2.5, "Bonus for turns from the time the query asks about.", minimum=0.0
    )
    talk: float = define_setting(
        0.3, "Share of the best scores in a conversation added to its other turns.", minimum=0.0
    )
    when: float = define_setting(
        1.0, "Bonus for texts with time words if the query asks when.", minimum=0.0
    )
    assistant: float = define_setting(-3.0, "Bonus for assistant turns.", minimum=-100.0)
    reply: float = define_setting(
        1.0,
        "Bonus for assistant turns if the query asks what the assistant said.",
        minimum=-100.0,
    )
    trust: float = define_setting(
        3.0, "Penalty of tools and documents against the user's own statements.", minimum=0.0
    )
    kind: float = define_setting(
        2.0, "Bonus for skills or documents if the query asks for one.", minimum=0.0
    )
    recency: float = define_setting(
        0.0, "Weight of recency, by the half-life of the kind.", minimum=0.0
    )
    importance: float = define_setting(
        0.0, "Weight of importance, by metadata or kind.", minimum=0.0
    )
    salience: float = define_setting(0.0, "Weight of salience.", minimum=0.0)
    hotness: float = define_setting(0.0, "Weight of frequent and recent recalls.", minimum=0.0)
    entity: float = define_setting(
        0.0, "Bonus for memories that name an entity of the query.", minimum=0.0
    )
    recency_days: float = define_setting(
        30.0, "Half-life in days for kinds without one.", minimum=0.001
    )
    newest_among: int = define_setting(
        5, "Top hits among which the newest of similar ones is moved up.", minimum=0
    )
    newest_alike: float = define_setting(
        0.4, "Similarity from which the newer hit is moved up.", minimum=0.0, maximum=1.0
    )
    diversity: float = define_setting(0.0, "Penalty for hits similar to a better one.", minimum=0.0)
    expand_from: int = define_setting(10, "Top hits whose links are followed.", minimum=0)
    expand_width: int = define_setting(30, "Links followed at a time.", minimum=1)
    expand_rounds: int = define_setting(6, "Maximum rounds of link expansion.", minimum=0)
    expand_patience: int = define_setting(
        3, "Stop after this many rounds that left the top unchanged.", minimum=1
    )
    expand_top: int = define_setting(30, "Top hits that must stay unchanged for that.", minimum=1)
    expand_own: float = define_setting(
        0.5,
        "Share of a linked memory's own score; the rest comes from its parent.",
        minimum=0,
        maximum=1,
    )
    expand_hot: float = define_setting(
        0.2, "Weight of hotness for linked memories.", minimum=0.0, maximum=1.0
    )
    rerank_depth: int = define_setting(20, "Top hits passed to a reranker.", minimum=1)
    score_middle: float = define_setting(
        14.5, "Raw score reported as 0.5 among a thousand passages.", minimum=-100.0
    )
    score_width: float = define_setting(
        1.57, "Width of the score curve around the middle.", minimum=0.001
    )
    score_crowd: float = define_setting(
        1.3, "Reduction of reported scores in larger scopes.", minimum=0.0
    )
    hot_size: int = define_setting(
        20, "Recently recalled memories kept per scope.", minimum=0, maximum=1000
    )
    hotness_days: float = define_setting(7.0, "Half-life of hotness in days.", minimum=0.01)
    topic_members: int = define_setting(2, "Members of a topic added for each hit.", minimum=0)
    topic_own: float = define_setting(
        1.0,
        "Share of a topic member's own score; the rest comes from the hit.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_neighbours: int = define_setting(
        6, "Topics followed that co-occurred with those of the hits.", minimum=0
    )
    topic_reach: int = define_setting(
        30, "Top hits whose topics are counted as co-occurring.", minimum=0
    )


@dataclass(frozen=True, slots=True)
class MaintenanceProfile(_Profile):
    """The limits of decay, tiers, topics and background work."""

    turn_events: float = define_setting(
        1.0, "User messages per turn, for applications that send several.", minimum=0.001
    )
    turn_tokens: int = define_setting(
        200, "Tokens per turn, for kinds that fade by tokens.", minimum=1
    )
    tail_size: int = define_setting(
        20, "Newest turns of a conversation that form its tail.", minimum=1, maximum=1000
    )
    keep_importance: float = define_setting(
        0.5,
        "Importance a turn needs to stay in the index after it leaves the tail.",
        minimum=0.0,
        maximum=1.0,
    )
    index_days: float = define_setting(
        7.0, "Days until the recency of an indexed turn falls to 1/e.", minimum=0.001
    )
    registry_days: float = define_setting(
        30.0, "Days until the recency of an exchange in the registry falls to 1/e.", minimum=0.001
    )
    cold_recency: float = define_setting(
        0.2, "Recency below which the sweep moves a turn to a topic.", minimum=0.0, maximum=1.0
    )
    cold_minutes: float = define_setting(5.0, "Minimum age of such a turn in minutes.", minimum=0.0)
    pair_minutes: float = define_setting(
        30.0, "Maximum minutes between a user turn and the reply of its exchange.", minimum=0.0
    )
    index_most: int = define_setting(
        0, "Maximum turns in the index; older ones move to topics early. 0 is no limit.", minimum=0
    )
    judge_batch: int = define_setting(20, "Turns rated per model call.", minimum=1, maximum=1000)
    summary_chars: int = define_setting(
        240, "Maximum length of a turn summary in characters.", minimum=20
    )
    sweep_seconds: float = define_setting(
        300.0, "Seconds between background sweeps.", minimum=0.01, maximum=604_800.0
    )
    access_flush: int = define_setting(
        256, "Reads after which counted recalls are written to the access log.", minimum=1
    )
    consumer_batch: int = define_setting(256, "Ledger entries per consumer batch.", minimum=1)
    consumer_attempts: int = define_setting(
        3, "Failures before a consumer records an entry as a fault.", minimum=1
    )
    recalls_kept: int = define_setting(
        10, "Recalls logged per memory; 0 only counts them.", minimum=0
    )
    reconsolidate_window: int = define_setting(
        300, "Seconds before another recall of a queued memory is queued again.", minimum=0
    )
    reconsolidate_batch: int = define_setting(
        8, "Memories taken from the reconsolidation queue at a time.", minimum=1
    )
    reconsolidate_lease: int = define_setting(
        300, "Seconds until an unfinished reconsolidation task is released.", minimum=1
    )
    reconsolidate_poll: float = define_setting(
        5.0, "Polling interval of `told reconsolidate run --watch` in seconds.", minimum=0.05
    )
    topic_join: float = define_setting(
        0.0,
        "Cosine from which an exchange joins a topic; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_merge: float = define_setting(
        0.0,
        "Cosine from which two topics merge; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_near: float = define_setting(
        0.0,
        "Cosine from which a topic matches a query; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_hot: float = define_setting(
        0.0,
        "Cosine from which a hot memory matches a query; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_group: float = define_setting(
        0.0,
        "Cosine from which topics form a super-topic; 0 uses the embedder's value.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_cap: int = define_setting(
        20, "Exchanges above which a topic is split, if they form clusters.", minimum=1
    )


@dataclass(frozen=True, slots=True)
class IngestionProfile(_Profile):
    """The limits of the write path: gate, documents, tool output, extraction and curation."""

    group_limit: int = define_setting(
        256, "Maximum waiting writes that share one transaction.", minimum=1
    )
    conflict_retries: int = define_setting(100, "Retries of a write after a conflict.", minimum=1)
    pixel_limit: int = define_setting(
        40_000_000, "Maximum pixels of an image; larger ones are never decoded.", minimum=1
    )
    document_text: int = define_setting(
        2_000_000, "Maximum text of a document in characters.", minimum=1
    )
    document_part: int = define_setting(
        8_000, "Approximate size of a document part in characters, cut at sections.", minimum=600
    )
    pause_minutes: float = define_setting(
        30.0, "Maximum pause in minutes between turns of one conversation.", minimum=0.0
    )
    gate_least: int = define_setting(1, "Minimum letters and digits of a memory.", minimum=0)
    gate_most: int = define_setting(
        100_000, "Maximum characters of a memory; longer texts are evidence only.", minimum=1
    )
    near_duplicate: float = define_setting(
        0.92,
        "Cosine from which a text with the same content is a duplicate.",
        minimum=0.0,
        maximum=1.0,
    )
    echo_lines: int = define_setting(
        10_000, "Prompt lines remembered to recognise echoes.", minimum=0
    )
    topic_shift: float = define_setting(
        0.1,
        "Similarity below which a conversation is cut into two chunks.",
        minimum=0.0,
        maximum=1.0,
    )
    tool_chars: int = define_setting(
        8000, "Characters from which tool output is shortened.", minimum=1
    )
    tool_lines: int = define_setting(100, "Lines from which tool output is shortened.", minimum=1)
    tool_keep: int = define_setting(
        2000,
        "Approximate characters kept of it; the original can be fetched.",
        minimum=200,
    )
    extract_items: int = define_setting(500, "Maximum items read from one model answer.", minimum=1)
    extract_passes: int = define_setting(
        3, "Passes of the `deep` extractor.", minimum=1, maximum=10
    )
    extract_prior: int = define_setting(300, "Earlier statements shown to each pass.", minimum=0)
    extract_rounds: int = define_setting(
        6, "Maximum steps of the `react` extractor.", minimum=1, maximum=50
    )
    extract_replies: bool = define_setting(
        False, "Let the `closed` extractor read assistant replies too."
    )
    curate_near: int = define_setting(
        5, "Existing memories shown to the model beside each new fact.", minimum=1, maximum=100
    )
    curate_batch: int = define_setting(
        20, "New facts decided per model call.", minimum=1, maximum=1000
    )


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


PROFILES: Final[Mapping[str, type[_Profile]]] = {
    "ranking": RankingProfile,
    "maintenance": MaintenanceProfile,
    "ingestion": IngestionProfile,
}
_RANKING_PREFIX: Final = "rank_"
_RANKING_WEIGHTS: Final = frozenset(
    "dense cover speaker time talk when assistant reply trust kind recency importance salience "
    "hotness entity".split()
)


def _flat_name(name: str) -> str:
    return _RANKING_PREFIX + name if name in _RANKING_WEIGHTS else name


NESTED_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    _flat_name(item.name): (profile, item.name)
    for profile, cls in PROFILES.items()
    for item in dataclasses.fields(cls)
}
"""The profile and the nested name of each setting, by flat name."""

PUBLIC_FIELDS: Final[Mapping[str, dataclasses.Field[Any]]] = {
    item.name: item for item in dataclasses.fields(Settings)
}
"""The public settings; the profiles count as one each."""

SETTING_FIELDS: Final[Mapping[str, dataclasses.Field[Any]]] = {
    **{name: item for name, item in PUBLIC_FIELDS.items() if name not in PROFILES},
    **{
        _flat_name(item.name): item for cls in PROFILES.values() for item in dataclasses.fields(cls)
    },
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
        return {
            _flat_name(item.name): getattr(value, item.name) for item in dataclasses.fields(cls)
        }
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source}: {name} must be a mapping or a {cls.__name__}, not {format_value(value)}."
        )
    names = [item.name for item in dataclasses.fields(cls)]
    flat_names = {
        **{nested: nested for nested in names},
        **{_flat_name(nested): nested for nested in names},
    }
    for key in value:
        if key not in flat_names:
            raise ConfigError(
                f"{source}: {name} has no setting {format_value(key)}.",
                hint=suggest_option(key, names),
            )
    return {_flat_name(flat_names[key]): item for key, item in value.items()}


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
        variable = (
            own_variable
            if own_variable in environment
            else alias
            if environment.get(alias, "").strip()
            else None
        )
        if variable is not None:
            values[name], origin[name] = (
                check_setting(name, environment[variable], variable),
                variable,
            )
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
    return _check_value(setting, value, source, name)


def _check_value(
    setting: dataclasses.Field[Any], value: Any, source: str, name: str | None = None
) -> Any:
    name = name or setting.name
    expected_type = type(setting.default)
    value = _coerce_value(name, value, expected_type, source)
    choices, minimum, maximum = (
        setting.metadata[limit_name] for limit_name in ("choices", "least", "most")
    )
    if choices and value not in choices:
        raise ConfigError(
            f"{source}: {name} must be one of {', '.join(choices)}, not {format_value(value)}."
        )
    if minimum is not None and not value >= minimum:  # also rejects NaN
        raise ConfigError(
            f"{source}: {name} must be at least {minimum:g}, not {format_value(value)}."
        )
    if minimum is not None and value > maximum:
        raise ConfigError(
            f"{source}: {name} must be at most {maximum:g}, not {format_value(value)}."
        )
    return value


def _coerce_value(name: str, value: Any, expected_type: type, source: str) -> Any:
    if isinstance(value, str) and expected_type is bool and value.lower() in _BOOLEAN_WORDS:
        return _BOOLEAN_WORDS[value.lower()]
    if isinstance(value, str) and expected_type in (int, float):
        try:
            return expected_type(value)
        except ValueError:
            pass
    if expected_type is float and type(value) is int and abs(value) <= MAX_NUMBER:
        return float(value)
    if isinstance(value, str) and _UNWRITABLE.search(value):
        raise ConfigError(
            f"{source}: {name} contains a NUL or a lone surrogate: {format_value(value)}."
        )
    if type(value) is expected_type:
        return value
    raise ConfigError(
        f"{source}: {name} must be {expected_type.__name__}, not {format_value(value)}."
    )


_UNWRITABLE = lazy_regex("[\0\ud800-\udfff]")
_BOOLEAN_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
