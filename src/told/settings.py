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
from pathlib import Path
from typing import Any

from told.errors import ConfigError
from told.model.salience import DEFAULT_PRUNE_THRESHOLD
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
class Settings:
    """The settings of a memory."""

    store: str = define_setting(
        "", "Where memories live: `sqlite:///path`, `ram://`, or empty for the user's data folder."
    )
    account: str = define_setting("default", "The account (tenant) every call works in.")
    embedder: str = define_setting(
        "auto", "`auto`, `none`, `local`, `local:<model>`, or the name of an installed plug-in."
    )
    kinds: str = define_setting(
        "", "A file or folder of kinds; empty is `.told/kinds` here, else that beside the settings."
    )
    llm: str = define_setting(
        "none",
        "The language model: `none`, `provider:model` such as `openai:gpt-4o-mini` or `ollama:llama3.2`, with "
        "`@https://host/v1` for a server of your own; `auto` takes the first provider whose key or host is in the "
        "environment.",
    )
    llm_timeout: float = define_setting(
        60.0, "Seconds a model may take for one answer to its end.", minimum=0.01, maximum=3600.0
    )
    llm_retries: int = define_setting(
        3, "How often a model is asked again after a fault that may pass.", minimum=0, maximum=100
    )
    llm_concurrency: int = define_setting(
        4, "How many questions a model is asked at once.", minimum=1, maximum=1000
    )
    llm_max_tokens: int = define_setting(2000, "Tokens an answer of a model may have.", minimum=1)
    llm_cache: int = define_setting(
        256,
        "How many answers are kept in memory, so that no question is paid for twice.",
        minimum=0,
    )
    durability: str = define_setting(
        "full",
        "`full` survives power loss; `normal` may lose the last acknowledged writes on power loss, "
        "never on a crash of the process.",
        choices=("full", "normal"),
    )
    busy_timeout: float = define_setting(
        60.0, "Seconds to wait for another process that is writing.", minimum=0.0, maximum=86_400.0
    )
    group_limit: int = define_setting(
        256, "How many waiting writes may share one transaction.", minimum=1
    )
    cache_bytes: int = define_setting(
        256 * 2**20, "Memory for index partitions kept in RAM.", minimum=0
    )
    exact_rows: int = define_setting(
        4096,
        "Scopes up to this many passages are scanned exactly; larger ones by sketch.",
        minimum=1,
    )
    erase_vacuum: bool = define_setting(
        True, "Rewrite the whole file after an erasure, so that no freed page keeps a trace."
    )
    conflict_retries: int = define_setting(
        100, "How often a write is decided again after somebody else wrote first.", minimum=1
    )
    text_limit: int = define_setting(
        100_000, "Longest text of one memory, in characters.", minimum=1
    )
    batch_limit: int = define_setting(10_000, "Most messages in one add.", minimum=1)
    metadata_limit: int = define_setting(
        16_384, "Largest metadata of one memory, in bytes of JSON.", minimum=2
    )
    image_limit: int = define_setting(20 * 2**20, "Largest image, in bytes.", minimum=1)
    pixel_limit: int = define_setting(
        40_000_000,
        "Most pixels an image may claim to have; one that claims more is never decoded.",
        minimum=1,
    )
    images_limit: int = define_setting(100, "Most images in one add.", minimum=0)
    document_limit: int = define_setting(
        50 * 2**20, "Largest document file, in bytes; what is packed in it counts too.", minimum=1
    )
    document_text: int = define_setting(
        2_000_000, "Longest text of one document, in characters.", minimum=1
    )
    document_part: int = define_setting(
        8_000,
        "A document is kept in parts of about this many characters, cut where its sections begin.",
        minimum=600,
    )
    reader: str = define_setting(
        "auto",
        "What reads images: `auto` (tesseract, if it is installed), `none`, `tesseract`, `tesseract:deu+eng`, or the "
        "name of an installed plug-in.",
    )
    read_timeout: float = define_setting(
        60.0, "Seconds that reading one image or PDF may take.", minimum=0.1, maximum=3600.0
    )
    fetch_urls: bool = define_setting(
        False,
        "Fetch images and documents named by URL; only from public addresses, and never without this.",
    )
    fetch_timeout: float = define_setting(
        10.0, "Seconds that fetching one URL may take.", minimum=0.1, maximum=600.0
    )
    pause_minutes: float = define_setting(
        30.0,
        "How long people may pause and still answer each other, so that turns are indexed together.",
        minimum=0.0,
    )
    gate: bool = define_setting(
        True,
        "Whether greetings, noise and texts without words are kept out of memory; never of evidence.",
    )
    gate_least: int = define_setting(
        1, "How many letters and digits a text must have to become a memory.", minimum=0
    )
    gate_most: int = define_setting(
        100_000,
        "Longest text that becomes a memory, in characters; a longer one is evidence only.",
        minimum=1,
    )
    secrets: str = define_setting(
        "redact",
        "What becomes of a key, a password or a card number in what is said: `reject` the message, `redact` it, "
        "`encrypt` it with the key in TOLD_VAULT_KEY, or `keep` it, unencrypted and marked in the metadata.",
        choices=("reject", "redact", "encrypt", "keep"),
    )
    near_duplicate: float = define_setting(
        0.92,
        "The cosine from which a text with the same content as a held one is that one again.",
        minimum=0.0,
        maximum=1.0,
    )
    echo_lines: int = define_setting(
        10_000, "How many lines put into prompts are known again when they come back.", minimum=0
    )
    extract_threshold: int = define_setting(
        0,
        "How many tokens of a session wait before claims are extracted from them; 0 extracts at once.",
        minimum=0,
    )
    chunk_tokens: int = define_setting(
        2000, "About how many tokens an extractor is given at a time.", minimum=16
    )
    topic_shift: float = define_setting(
        0.1,
        "How little two stretches of a conversation have in common where a new topic begins.",
        minimum=0.0,
        maximum=1.0,
    )
    tool_chars: int = define_setting(
        8000, "A tool's output of this many characters is shortened for the agent.", minimum=1
    )
    tool_lines: int = define_setting(
        100, "A tool's output of this many lines is shortened for the agent.", minimum=1
    )
    tool_keep: int = define_setting(
        2000, "About how many characters are left of it; the original can be fetched.", minimum=200
    )
    extract: str = define_setting(
        "auto",
        "Who finds facts in what is said: `auto` is `facts` with a language model and `local` without; "
        "`verbatim` finds none.",
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
        "Who decides what becomes of facts: `rules` or the `model`; `auto` lets a model decide about its own, "
        "but for those whose kinds have rules (`closed`, `react`).",
        choices=("auto", "rules", "model"),
    )
    close_wait: float = define_setting(
        30.0,
        "Seconds that closing waits for a model to finish; what it does not reach is asked about next time.",
        minimum=0.0,
        maximum=86_400.0,
    )
    grounding: str = define_setting(
        "strict",
        "What becomes of a model's claim whose value is not in what was said: `strict` puts it into quarantine, "
        "`lenient` keeps it and marks it.",
        choices=("strict", "lenient"),
    )
    extract_items: int = define_setting(
        500, "Most items that are read from one answer of a language model.", minimum=1
    )
    extract_passes: int = define_setting(
        3, "How many passes the `deep` extractor makes.", minimum=1, maximum=10
    )
    extract_prior: int = define_setting(
        300, "How many statements a pass is told that were found before it.", minimum=0
    )
    extract_rounds: int = define_setting(
        6, "How many steps the `react` extractor may take.", minimum=1, maximum=50
    )
    extract_replies: bool = define_setting(
        False, "Whether the `closed` extractor reads the assistant's replies too."
    )
    curate_near: int = define_setting(
        5, "How many held memories a model is shown beside each new fact.", minimum=1, maximum=100
    )
    curate_batch: int = define_setting(
        20, "How many new facts a model decides about in one call.", minimum=1, maximum=1000
    )
    zone: str = define_setting(
        "", "Time zone for naive times, such as `Europe/Berlin`; empty refuses them."
    )
    limit: int = define_setting(
        100, "How many results a read returns unless told otherwise.", minimum=1, maximum=1000
    )
    budget: int = define_setting(1000, "Tokens of a context unless told otherwise.", minimum=1)
    encoding: str = define_setting("o200k_base", "The tokenizer budgets are counted with.")
    depth: int = define_setting(150, "How many candidates each retriever may offer.", minimum=1)
    beside: int = define_setting(
        20,
        "Around how many of the best of each the turns before and after are looked at too.",
        minimum=0,
    )
    spare: int = define_setting(
        5, "How many more facts are fetched than asked for, as some may say the same.", minimum=0
    )
    sources: str = define_setting(
        "hot time tree graph topics keys",
        "Where candidates come from beside vectors and words: `hot` what was just recalled, `time` what was said at "
        "the time asked about, `tree` parts of a whole, `graph` linked memories, `topics` members of the same topic, "
        "`keys` the words a fact was taken from.",
    )
    fusion: str = define_setting(
        "weighted",
        "How vectors and words are fused: `weighted`, `rrf`, `anchored` (vector first), or `fused`, which "
        "ranks by 0.6 similarity, 0.3 recency and 0.1 importance and by nothing else.",
        choices=("weighted", "rrf", "anchored", "fused"),
    )
    fusion_alpha: float = define_setting(
        0.7, "The vector's share in `anchored` fusion.", minimum=0.0, maximum=1.0
    )
    rrf_k: int = define_setting(60, "How flat reciprocal rank fusion is.", minimum=1)
    centre: float = define_setting(
        0.5,
        "How much of a scope's mean direction is taken off, so that what is near to everything is not.",
        minimum=0.0,
        maximum=1.0,
    )
    spread: float = define_setting(
        0.0,
        "How much cosines with unrelated texts vary under the embedder; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    usual: float = define_setting(
        0.0,
        "The cosine of unrelated texts under the embedder; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    rank_dense: float = define_setting(
        1.0, "What a spread nearer than the average is worth.", minimum=0.0
    )
    rank_cover: float = define_setting(
        1.2, "What covering the query's words is worth.", minimum=0.0
    )
    rank_speaker: float = define_setting(
        2.5, "What it is worth to be said by the one person the query names.", minimum=0.0
    )
    rank_time: float = define_setting(
        2.5, "What it is worth to be said at the time the query asks about.", minimum=0.0
    )
    rank_talk: float = define_setting(
        0.3, "What the best turns of its conversation lend to a turn.", minimum=0.0
    )
    rank_when: float = define_setting(
        1.0, "What speaking of time is worth when the query asks when.", minimum=0.0
    )
    rank_assistant: float = define_setting(
        -3.0, "What it is worth to be said by an assistant.", minimum=-100.0
    )
    rank_reply: float = define_setting(
        1.0, "The same when the query asks what the assistant said.", minimum=-100.0
    )
    rank_trust: float = define_setting(
        3.0,
        "How much better a tool or a document must match to go before what the user said.",
        minimum=0.0,
    )
    rank_kind: float = define_setting(
        2.0, "What it is worth to be a skill or a document when one is asked for.", minimum=0.0
    )
    rank_recency: float = define_setting(
        0.0, "What it is worth to be recent; each kind has its half-life.", minimum=0.0
    )
    rank_importance: float = define_setting(
        0.0, "What it is worth to be important, by metadata or by kind.", minimum=0.0
    )
    rank_salience: float = define_setting(
        0.0, "What salience is worth: what a memory still weighs.", minimum=0.0
    )
    rank_hotness: float = define_setting(
        0.0, "What it is worth to be recalled often and lately.", minimum=0.0
    )
    rank_entity: float = define_setting(
        0.0, "What it is worth to name whom the query names.", minimum=0.0
    )
    recency_days: float = define_setting(
        30.0, "The half-life of what has no kind with one.", minimum=0.001
    )
    newest_among: int = define_setting(
        5, "Among so many first hits the newest of what says the same goes first.", minimum=0
    )
    newest_alike: float = define_setting(
        0.4, "How alike two hits must be for the newer to go first.", minimum=0.0, maximum=1.0
    )
    diversity: float = define_setting(
        0.0, "How far a hit is set back that is like one before it.", minimum=0.0
    )
    expand_from: int = define_setting(
        10, "How many of the best hits are followed to what they point to.", minimum=0
    )
    expand_width: int = define_setting(30, "How many leads are followed at a time.", minimum=1)
    expand_rounds: int = define_setting(
        6, "How many times leads of leads are followed at most.", minimum=0
    )
    expand_patience: int = define_setting(
        3, "After so many rounds that changed nothing at the top it ends.", minimum=1
    )
    expand_top: int = define_setting(
        30, "How many of the first hits must stay the same for that.", minimum=1
    )
    expand_own: float = define_setting(
        0.5,
        "How much of a lead's score is its own; its parent gives the rest.",
        minimum=0,
        maximum=1,
    )
    expand_hot: float = define_setting(
        0.2, "How much being in use counts for a lead.", minimum=0.0, maximum=1.0
    )
    rerank_depth: int = define_setting(
        20, "How many of the best hits a reranker judges.", minimum=1
    )
    pinned_kinds: str = define_setting("profile", "Kinds that stand first in every context.")
    pinned_share: float = define_setting(
        0.3, "The most of a budget that pinned kinds may take.", minimum=0.0, maximum=1.0
    )
    tail: int = define_setting(
        0, "How many of the last turns stand at the end of every context.", minimum=0, maximum=1000
    )
    score_middle: float = define_setting(
        14.5, "The score that is shown as 0.5 among a thousand passages.", minimum=-100.0
    )
    score_width: float = define_setting(
        1.57, "How fast the shown score rises around the middle.", minimum=0.001
    )
    score_crowd: float = define_setting(
        1.3, "How much less the same score tells among more passages.", minimum=0.0
    )
    hot_size: int = define_setting(
        20,
        "How many of the memories a scope recalled last are kept at hand.",
        minimum=0,
        maximum=1000,
    )
    access_flush: int = define_setting(
        256, "Recalls are counted in memory and written down after this many reads.", minimum=1
    )
    hotness_days: float = define_setting(
        7.0, "Days in which the hotness of a memory that nobody recalls halves.", minimum=0.01
    )
    consumer_batch: int = define_setting(
        256, "Ledger entries a consumer takes at a time.", minimum=1
    )
    consumer_attempts: int = define_setting(
        3, "Failures before a consumer parks an entry as a fault and goes on.", minimum=1
    )
    prune_threshold: float = define_setting(
        DEFAULT_PRUNE_THRESHOLD,
        "Salience below which a memory has faded; permanent ones never do. `PRUNE_THRESHOLD` says it too.",
        minimum=0.0,
        maximum=1.0,
        env_alias="PRUNE_THRESHOLD",
    )
    turn_events: float = define_setting(
        1.0,
        "How many messages of a user make one turn, for applications that send several.",
        minimum=0.001,
    )
    turn_tokens: int = define_setting(
        200, "How many tokens make one turn, for kinds that fade by tokens.", minimum=1
    )
    tail_size: int = define_setting(
        20, "How many of the newest turns of a conversation are its tail.", minimum=1, maximum=1000
    )
    keep_importance: float = define_setting(
        0.5,
        "How important a turn must be to stay in the index when it leaves the tail.",
        minimum=0.0,
        maximum=1.0,
    )
    index_days: float = define_setting(
        7.0, "Days after which the recency of a turn in the index has fallen to 1/e.", minimum=0.001
    )
    registry_days: float = define_setting(
        30.0, "The same for an exchange in the registry.", minimum=0.001
    )
    cold_recency: float = define_setting(
        0.2, "Below this recency a turn is cold, and the sweep files it.", minimum=0.0, maximum=1.0
    )
    cold_minutes: float = define_setting(
        5.0, "So many minutes old a turn must be besides before the sweep files it.", minimum=0.0
    )
    pair_minutes: float = define_setting(
        30.0,
        "How long after a user's turn the agent's may come and be the other half of one exchange.",
        minimum=0.0,
    )
    index_most: int = define_setting(
        0,
        "How many turns may wait in the index; what is beyond is filed before it is cold. 0 is no limit.",
        minimum=0,
    )
    judge: bool = define_setting(
        False, "Ask the language model how important each turn is, some turns to a question."
    )
    judge_batch: int = define_setting(
        20, "How many turns a model judges in one call.", minimum=1, maximum=1000
    )
    summarise: bool = define_setting(
        False, "Ask the language model for a summary of each long turn that leaves the tail."
    )
    summary_chars: int = define_setting(
        240, "The longest summary of a turn, in characters.", minimum=20
    )
    sweep: bool = define_setting(
        False, "Consolidate in the background for as long as a memory is open."
    )
    sweep_seconds: float = define_setting(
        300.0, "Seconds between two sweeps in the background.", minimum=0.01, maximum=604_800.0
    )
    recalls_kept: int = define_setting(
        10,
        "How many recalls of each memory are noted one by one; 0 notes none and counts them only.",
        minimum=0,
    )
    reconsolidate: bool = define_setting(
        True, "Whether what is recalled is queued to be thought over once somebody asks."
    )
    reconsolidate_window: int = define_setting(
        300,
        "Seconds after which a recall of a memory that is being thought over is queued anew.",
        minimum=0,
    )
    reconsolidate_batch: int = define_setting(
        8, "How many memories are taken from the queue at a time.", minimum=1
    )
    reconsolidate_lease: int = define_setting(
        300,
        "Seconds after which a memory that somebody took from the queue and did not finish is free again.",
        minimum=1,
    )
    reconsolidate_poll: float = define_setting(
        5.0,
        "Seconds between looks into the queue of `told reconsolidate run --watch`.",
        minimum=0.05,
    )
    reflect: str = define_setting(
        "auto",
        "Who reflects on memories that are taken from the queue: `rules` alone, or the `model` as well; `auto` "
        "asks the model if there is one.",
        choices=("auto", "rules", "model"),
    )
    topic_join: float = define_setting(
        0.0,
        "The cosine from which an exchange joins a topic; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_merge: float = define_setting(
        0.0,
        "The cosine from which two topics are one; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_near: float = define_setting(
        0.0,
        "The cosine from which a topic bears on a query; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_hot: float = define_setting(
        0.0,
        "The cosine from which what was just recalled answers again; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_group: float = define_setting(
        0.0,
        "The cosine from which topics make a topic of topics; 0 takes what the embedder says.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_cap: int = define_setting(
        20, "A topic with more exchanges than this is split, if they lie in clusters.", minimum=1
    )
    topic_members: int = define_setting(
        2, "How many members of a topic a hit brings along.", minimum=0
    )
    topic_own: float = define_setting(
        1.0,
        "How much of the score of a topic's member is its own; the hit that led to it gives the rest.",
        minimum=0.0,
        maximum=1.0,
    )
    topic_neighbours: int = define_setting(
        6, "How many topics that came up with those of the hits are followed.", minimum=0
    )
    topic_reach: int = define_setting(
        30, "Of how many of the best memories the topics count as having come up.", minimum=0
    )

    def replace(self, **changes: Any) -> Settings:
        """Return a copy with changed values; None keeps the current one."""
        given = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(
            self, **{name: check_setting(name, value, "argument") for name, value in given.items()}
        )


SETTING_FIELDS: Mapping[str, dataclasses.Field[Any]] = {
    f.name: f for f in dataclasses.fields(Settings)
}


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
    for name, value in _load_file(path).items() if path else ():
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
    for name, value in arguments.items():
        if value is not None:
            values[name], origin[name] = check_setting(name, value, "argument"), "argument"
    return LoadedSettings(Settings(**values), origin)


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
            f"{resolve_store_url(settings)!r} names a home that is not there.", hint="Write it out."
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
        raise ConfigError(f"{path} must hold `name: value` lines.")
    return data


def _unreadable_error(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read: {' '.join(str(error).split())}.", hint="Mend or remove the file."
    )


def check_setting(name: str, value: Any, source: str) -> Any:
    """Convert and validate the value of a setting."""
    setting = SETTING_FIELDS.get(name)
    if setting is None:
        matches = get_close_matches(name, SETTING_FIELDS, 1)
        hint = f"Did you mean `{matches[0]}`?" if matches else "Run `told config` for the list."
        raise ConfigError(f"{source}: there is no setting {name!r}.", hint=hint)
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
            f"{source}: {name} holds a NUL or half a character: {format_value(value)}."
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
