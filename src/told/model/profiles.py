"""Nested settings: profiles of ranking, maintenance and ingestion, and the checks of values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from told.errors import ConfigError
from told.runtime import lazy_regex
from told.text.tokens import format_value

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
class SettingsProfile:
    """A nested group of settings that validates its own values."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not item.default:
                object.__setattr__(self, item.name, check_value(item, value, type(self).__name__))


@dataclass(frozen=True, slots=True)
class RankingProfile(SettingsProfile):
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
class MaintenanceProfile(SettingsProfile):
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
class IngestionProfile(SettingsProfile):
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


PROFILES: Final[Mapping[str, type[SettingsProfile]]] = {
    "ranking": RankingProfile,
    "maintenance": MaintenanceProfile,
    "ingestion": IngestionProfile,
}
_RANKING_PREFIX: Final = "rank_"
_RANKING_WEIGHTS: Final = frozenset(
    "dense cover speaker time talk when assistant reply trust kind recency importance salience "
    "hotness entity".split()
)


def flat_name(name: str) -> str:
    """Return the flat name of a nested setting."""
    return _RANKING_PREFIX + name if name in _RANKING_WEIGHTS else name


NESTED_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    flat_name(item.name): (profile, item.name)
    for profile, cls in PROFILES.items()
    for item in dataclasses.fields(cls)
}
"""The profile and the nested name of each setting, by flat name."""


def check_value(
    setting: dataclasses.Field[Any], value: Any, source: str, name: str | None = None
) -> Any:
    """Convert and validate a value; `name` is the name to report."""
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
