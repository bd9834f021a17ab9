"""Every knob in one frozen dataclass; an argument beats the environment, which beats the file, which beats the default.

The environment is read when settings are loaded, never at import. `TOLD_DURABILITY=normal` sets `durability`; the file
is `$TOLD_CONFIG`, else `.told/config.yaml` here, else `config.yaml` in the user's configuration folder.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from told.core.errors import ConfigError
from told.core.lazy import regex
from told.core.salience import PRUNE
from told.core.text import shown

PREFIX = "TOLD_"
MOST = 2**53
"""The largest number that every store and every format keeps exactly."""


def knob(
    default: Any, about: str, *, choices: tuple[str, ...] = (), least: float | None = None, most: float = MOST,
    known_as: str = "",
) -> Any:  # fmt: skip
    """A field with its documentation, its limits, and the variable that others know it by."""
    limits = {"choices": choices, "least": least, "most": most}
    return field(default=default, metadata={"about": about, "known_as": known_as, **limits})


@dataclass(frozen=True, slots=True)
class Settings:
    """How this told behaves."""

    store: str = knob("", "Where memories live: `sqlite:///path`, `ram://`, or empty for the user's data folder.")
    account: str = knob("default", "The account (tenant) every call works in.")
    embedder: str = knob("auto", "`auto`, `none`, `local`, `local:<model>`, or the name of an installed plug-in.")
    kinds: str = knob("", "A file or folder of kinds; empty is `.told/kinds` here, else that beside the settings.")
    llm: str = knob(
        "none",
        "The language model: `none`, `provider:model` such as `openai:gpt-4o-mini` or `ollama:llama3.2`, with "
        "`@https://host/v1` for a server of your own; `auto` takes the first provider whose key or host is in the "
        "environment.",
    )
    llm_timeout: float = knob(60.0, "Seconds a model may take for one answer to its end.", least=0.01, most=3600.0)
    llm_retries: int = knob(3, "How often a model is asked again after a fault that may pass.", least=0, most=100)
    llm_concurrency: int = knob(4, "How many questions a model is asked at once.", least=1, most=1000)
    llm_max_tokens: int = knob(2000, "Tokens an answer of a model may have.", least=1)
    llm_cache: int = knob(256, "How many answers are kept in memory, so that no question is paid for twice.", least=0)
    durability: str = knob(
        "full",
        "`full` survives power loss; `normal` may lose the last acknowledged writes on power loss, "
        "never on a crash of the process.",
        choices=("full", "normal"),
    )
    busy_timeout: float = knob(60.0, "Seconds to wait for another process that is writing.", least=0.0, most=86_400.0)
    group_limit: int = knob(256, "How many waiting writes may share one transaction.", least=1)
    cache_bytes: int = knob(256 * 2**20, "Memory for index partitions kept in RAM.", least=0)
    exact_rows: int = knob(4096, "Scopes up to this many passages are scanned exactly; larger ones by sketch.", least=1)
    erase_vacuum: bool = knob(True, "Rewrite the whole file after an erasure, so that no freed page keeps a trace.")
    conflict_retries: int = knob(100, "How often a write is decided again after somebody else wrote first.", least=1)
    text_limit: int = knob(100_000, "Longest text of one memory, in characters.", least=1)
    batch_limit: int = knob(10_000, "Most messages in one add.", least=1)
    metadata_limit: int = knob(16_384, "Largest metadata of one memory, in bytes of JSON.", least=2)
    image_limit: int = knob(20 * 2**20, "Largest image, in bytes.", least=1)
    pixel_limit: int = knob(
        40_000_000, "Most pixels an image may claim to have; one that claims more is never decoded.", least=1
    )
    images_limit: int = knob(100, "Most images in one add.", least=0)
    document_limit: int = knob(50 * 2**20, "Largest document file, in bytes; what is packed in it counts too.", least=1)
    document_text: int = knob(2_000_000, "Longest text of one document, in characters.", least=1)
    document_part: int = knob(
        8_000, "A document is kept in parts of about this many characters, cut where its sections begin.", least=600
    )
    reader: str = knob(
        "auto",
        "What reads images: `auto` (tesseract, if it is installed), `none`, `tesseract`, `tesseract:deu+eng`, or the "
        "name of an installed plug-in.",
    )
    read_timeout: float = knob(60.0, "Seconds that reading one image or PDF may take.", least=0.1, most=3600.0)
    fetch_urls: bool = knob(
        False, "Fetch images and documents named by URL; only from public addresses, and never without this."
    )
    fetch_timeout: float = knob(10.0, "Seconds that fetching one URL may take.", least=0.1, most=600.0)
    pause_minutes: float = knob(
        30.0, "How long people may pause and still answer each other, so that turns are indexed together.", least=0.0
    )
    gate: bool = knob(
        True, "Whether greetings, noise and texts without words are kept out of memory; never of evidence."
    )
    gate_least: int = knob(1, "How many letters and digits a text must have to become a memory.", least=0)
    gate_most: int = knob(
        100_000, "Longest text that becomes a memory, in characters; a longer one is evidence only.", least=1
    )
    secrets: str = knob(
        "redact",
        "What becomes of a key, a password or a card number in what is said: `reject` the message, `redact` it, "
        "`encrypt` it with the key in TOLD_VAULT_KEY, or `keep` it, unencrypted and marked in the metadata.",
        choices=("reject", "redact", "encrypt", "keep"),
    )
    near_duplicate: float = knob(
        0.92, "The cosine from which a text with the same content as a held one is that one again.", least=0.0, most=1.0
    )
    echo_lines: int = knob(10_000, "How many lines put into prompts are known again when they come back.", least=0)
    extract_threshold: int = knob(
        0, "How many tokens of a session wait before claims are extracted from them; 0 extracts at once.", least=0
    )
    chunk_tokens: int = knob(2000, "About how many tokens an extractor is given at a time.", least=16)
    topic_shift: float = knob(
        0.1, "How little two stretches of a conversation have in common where a new topic begins.", least=0.0, most=1.0
    )
    tool_chars: int = knob(8000, "A tool's output of this many characters is shortened for the agent.", least=1)
    tool_lines: int = knob(100, "A tool's output of this many lines is shortened for the agent.", least=1)
    tool_keep: int = knob(2000, "About how many characters are left of it; the original can be fetched.", least=200)
    extract: str = knob(
        "auto", "Who finds facts in what is said: `auto` is `facts` with a language model and `local` without; "
        "`verbatim` finds none.",
        choices=("auto", "verbatim", "local", "facts", "closed", "apertures", "exhaustive", "deep", "react", "graph"),
    )  # fmt: skip
    curate: str = knob(
        "auto", "Who decides what becomes of facts: `rules` or the `model`; `auto` lets a model decide about its own, "
        "but for those whose kinds have rules (`closed`, `react`).",
        choices=("auto", "rules", "model"),
    )  # fmt: skip
    close_wait: float = knob(
        30.0, "Seconds that closing waits for a model to finish; what it does not reach is asked about next time.",
        least=0.0, most=86_400.0,
    )  # fmt: skip
    grounding: str = knob(
        "strict",
        "What becomes of a model's claim whose value is not in what was said: `strict` puts it into quarantine, "
        "`lenient` keeps it and marks it.",
        choices=("strict", "lenient"),
    )
    extract_items: int = knob(500, "Most items that are read from one answer of a language model.", least=1)
    extract_passes: int = knob(3, "How many passes the `deep` extractor makes.", least=1, most=10)
    extract_prior: int = knob(300, "How many statements a pass is told that were found before it.", least=0)
    extract_rounds: int = knob(6, "How many steps the `react` extractor may take.", least=1, most=50)
    extract_replies: bool = knob(False, "Whether the `closed` extractor reads the assistant's replies too.")
    curate_near: int = knob(5, "How many held memories a model is shown beside each new fact.", least=1, most=100)
    curate_batch: int = knob(20, "How many new facts a model decides about in one call.", least=1, most=1000)
    zone: str = knob("", "Time zone for naive times, such as `Europe/Berlin`; empty refuses them.")
    limit: int = knob(100, "How many results a read returns unless told otherwise.", least=1, most=1000)
    budget: int = knob(1000, "Tokens of a context unless told otherwise.", least=1)
    encoding: str = knob("o200k_base", "The tokenizer budgets are counted with.")
    depth: int = knob(150, "How many candidates each retriever may offer.", least=1)
    beside: int = knob(20, "Around how many of the best of each the turns before and after are looked at too.", least=0)
    spare: int = knob(5, "How many more facts are fetched than asked for, as some may say the same.", least=0)
    sources: str = knob(
        "hot time tree graph topics keys",
        "Where candidates come from beside vectors and words: `hot` what was just recalled, `time` what was said at "
        "the time asked about, `tree` parts of a whole, `graph` linked memories, `topics` members of the same topic, "
        "`keys` the words a fact was taken from.",
    )
    fusion: str = knob(
        "weighted", "How vectors and words are fused: `weighted`, `rrf`, `anchored` (vector first), or `fused`, which "
        "ranks by 0.6 similarity, 0.3 recency and 0.1 importance and by nothing else.",
        choices=("weighted", "rrf", "anchored", "fused"),
    )  # fmt: skip
    fusion_alpha: float = knob(0.7, "The vector's share in `anchored` fusion.", least=0.0, most=1.0)
    rrf_k: int = knob(60, "How flat reciprocal rank fusion is.", least=1)
    centre: float = knob(
        0.5, "How much of a scope's mean direction is taken off, so that what is near to everything is not.",
        least=0.0, most=1.0,
    )  # fmt: skip
    spread: float = knob(
        0.0, "How much cosines with unrelated texts vary under the embedder; 0 takes what the embedder says.",
        least=0.0, most=1.0,
    )  # fmt: skip
    usual: float = knob(
        0.0, "The cosine of unrelated texts under the embedder; 0 takes what the embedder says.", least=0.0, most=1.0
    )
    rank_dense: float = knob(1.0, "What a spread nearer than the average is worth.", least=0.0)
    rank_cover: float = knob(1.2, "What covering the query's words is worth.", least=0.0)
    rank_speaker: float = knob(2.5, "What it is worth to be said by the one person the query names.", least=0.0)
    rank_time: float = knob(2.5, "What it is worth to be said at the time the query asks about.", least=0.0)
    rank_talk: float = knob(0.3, "What the best turns of its conversation lend to a turn.", least=0.0)
    rank_when: float = knob(1.0, "What speaking of time is worth when the query asks when.", least=0.0)
    rank_assistant: float = knob(-3.0, "What it is worth to be said by an assistant.", least=-100.0)
    rank_reply: float = knob(1.0, "The same when the query asks what the assistant said.", least=-100.0)
    rank_trust: float = knob(
        3.0, "How much better a tool or a document must match to go before what the user said.", least=0.0
    )
    rank_kind: float = knob(2.0, "What it is worth to be a skill or a document when one is asked for.", least=0.0)
    rank_recency: float = knob(0.0, "What it is worth to be recent; each kind has its half-life.", least=0.0)
    rank_importance: float = knob(0.0, "What it is worth to be important, by metadata or by kind.", least=0.0)
    rank_salience: float = knob(0.0, "What salience is worth: what a memory still weighs.", least=0.0)
    rank_hotness: float = knob(0.0, "What it is worth to be recalled often and lately.", least=0.0)
    rank_entity: float = knob(0.0, "What it is worth to name whom the query names.", least=0.0)
    recency_days: float = knob(30.0, "The half-life of what has no kind with one.", least=0.001)
    newest_among: int = knob(5, "Among so many first hits the newest of what says the same goes first.", least=0)
    newest_alike: float = knob(0.4, "How alike two hits must be for the newer to go first.", least=0.0, most=1.0)
    diversity: float = knob(0.0, "How far a hit is set back that is like one before it.", least=0.0)
    expand_from: int = knob(10, "How many of the best hits are followed to what they point to.", least=0)
    expand_width: int = knob(30, "How many leads are followed at a time.", least=1)
    expand_rounds: int = knob(6, "How many times leads of leads are followed at most.", least=0)
    expand_patience: int = knob(3, "After so many rounds that changed nothing at the top it ends.", least=1)
    expand_top: int = knob(30, "How many of the first hits must stay the same for that.", least=1)
    expand_own: float = knob(0.5, "How much of a lead's score is its own; its parent gives the rest.", least=0, most=1)
    expand_hot: float = knob(0.2, "How much being in use counts for a lead.", least=0.0, most=1.0)
    rerank_depth: int = knob(20, "How many of the best hits a reranker judges.", least=1)
    pinned_kinds: str = knob("profile", "Kinds that stand first in every context.")
    pinned_share: float = knob(0.3, "The most of a budget that pinned kinds may take.", least=0.0, most=1.0)
    tail: int = knob(0, "How many of the last turns stand at the end of every context.", least=0, most=1000)
    score_middle: float = knob(14.5, "The score that is shown as 0.5 among a thousand passages.", least=-100.0)
    score_width: float = knob(1.57, "How fast the shown score rises around the middle.", least=0.001)
    score_crowd: float = knob(1.3, "How much less the same score tells among more passages.", least=0.0)
    hot_size: int = knob(20, "How many of the memories a scope recalled last are kept at hand.", least=0, most=1000)
    access_flush: int = knob(256, "Recalls are counted in memory and written down after this many reads.", least=1)
    hotness_days: float = knob(7.0, "Days in which the hotness of a memory that nobody recalls halves.", least=0.01)
    consumer_batch: int = knob(256, "Ledger entries a consumer takes at a time.", least=1)
    consumer_attempts: int = knob(3, "Failures before a consumer parks an entry as a fault and goes on.", least=1)
    prune_threshold: float = knob(
        PRUNE, "Salience below which a memory has faded; permanent ones never do. `PRUNE_THRESHOLD` says it too.",
        least=0.0, most=1.0, known_as="PRUNE_THRESHOLD",
    )  # fmt: skip
    turn_events: float = knob(
        1.0, "How many messages of a user make one turn, for applications that send several.", least=0.001
    )
    turn_tokens: int = knob(200, "How many tokens make one turn, for kinds that fade by tokens.", least=1)
    tail_size: int = knob(20, "How many of the newest turns of a conversation are its tail.", least=1, most=1000)
    keep_importance: float = knob(
        0.5, "How important a turn must be to stay in the index when it leaves the tail.", least=0.0, most=1.0
    )
    index_days: float = knob(7.0, "Days after which the recency of a turn in the index has fallen to 1/e.", least=0.001)
    registry_days: float = knob(30.0, "The same for an exchange in the registry.", least=0.001)
    cold_recency: float = knob(0.2, "Below this recency a turn is cold, and the sweep files it.", least=0.0, most=1.0)
    cold_minutes: float = knob(5.0, "So many minutes old a turn must be besides before the sweep files it.", least=0.0)
    pair_minutes: float = knob(
        30.0, "How long after a user's turn the agent's may come and be the other half of one exchange.", least=0.0
    )
    index_most: int = knob(
        0, "How many turns may wait in the index; what is beyond is filed before it is cold. 0 is no limit.", least=0
    )
    judge: bool = knob(False, "Ask the language model how important each turn is, some turns to a question.")
    judge_batch: int = knob(20, "How many turns a model judges in one call.", least=1, most=1000)
    summarise: bool = knob(False, "Ask the language model for a summary of each long turn that leaves the tail.")
    summary_chars: int = knob(240, "The longest summary of a turn, in characters.", least=20)
    sweep: bool = knob(False, "Consolidate in the background for as long as a memory is open.")
    sweep_seconds: float = knob(300.0, "Seconds between two sweeps in the background.", least=0.01, most=604_800.0)
    recalls_kept: int = knob(
        10, "How many recalls of each memory are noted one by one; 0 notes none and counts them only.", least=0
    )
    reconsolidate: bool = knob(True, "Whether what is recalled is queued to be thought over once somebody asks.")
    reconsolidate_window: int = knob(
        300, "Seconds after which a recall of a memory that is being thought over is queued anew.", least=0
    )
    reconsolidate_batch: int = knob(8, "How many memories are taken from the queue at a time.", least=1)
    reconsolidate_lease: int = knob(
        300, "Seconds after which a memory that somebody took from the queue and did not finish is free again.", least=1
    )
    reconsolidate_poll: float = knob(5.0, "Seconds between looks into the queue of `told reconsolidate run --watch`.",
                                     least=0.05)
    reflect: str = knob(
        "auto", "Who reflects on memories that are taken from the queue: `rules` alone, or the `model` as well; `auto` "
        "asks the model if there is one.",
        choices=("auto", "rules", "model"),
    )  # fmt: skip
    topic_join: float = knob(
        0.0, "The cosine from which an exchange joins a topic; 0 takes what the embedder says.", least=0.0, most=1.0
    )
    topic_merge: float = knob(
        0.0, "The cosine from which two topics are one; 0 takes what the embedder says.", least=0.0, most=1.0
    )
    topic_near: float = knob(
        0.0, "The cosine from which a topic bears on a query; 0 takes what the embedder says.", least=0.0, most=1.0
    )
    topic_hot: float = knob(
        0.0, "The cosine from which what was just recalled answers again; 0 takes what the embedder says.",
        least=0.0, most=1.0,
    )  # fmt: skip
    topic_group: float = knob(
        0.0, "The cosine from which topics make a topic of topics; 0 takes what the embedder says.", least=0.0, most=1.0
    )
    topic_cap: int = knob(20, "A topic with more exchanges than this is split, if they lie in clusters.", least=1)
    topic_members: int = knob(2, "How many members of a topic a hit brings along.", least=0)
    topic_own: float = knob(
        1.0, "How much of the score of a topic's member is its own; the hit that led to it gives the rest.",
        least=0.0, most=1.0,
    )  # fmt: skip
    topic_neighbours: int = knob(6, "How many topics that came up with those of the hits are followed.", least=0)
    topic_reach: int = knob(30, "Of how many of the best memories the topics count as having come up.", least=0)

    def replace(self, **changes: Any) -> Settings:
        """These settings with some changed; None keeps what is there."""
        given = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, **{name: check(name, value, "argument") for name, value in given.items()})


KNOBS: Mapping[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(Settings)}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where each value came from."""

    settings: Settings
    origin: Mapping[str, str]


def load(environment: Mapping[str, str] | None = None, file: Path | None = None, **arguments: Any) -> Loaded:
    """Settings from arguments, the environment and a file."""
    environment = os.environ if environment is None else environment
    path = file or config_file(environment)
    values: dict[str, Any] = {}
    origin = dict.fromkeys(KNOBS, "default")
    for name, value in _from_file(path).items() if path else ():
        values[name], origin[name] = check(name, value, str(path)), str(path)
    for name, knob in KNOBS.items():
        own, common = PREFIX + name.upper(), knob.metadata["known_as"]
        variable = own if own in environment else common if environment.get(common, "").strip() else None
        if variable is not None:
            values[name], origin[name] = check(name, environment[variable], variable), variable
    for name, value in arguments.items():
        if value is not None:
            values[name], origin[name] = check(name, value, "argument"), "argument"
    return Loaded(Settings(**values), origin)


def config_file(environment: Mapping[str, str]) -> Path | None:
    """The configuration file in force, if there is one."""
    if named := environment.get("TOLD_CONFIG"):
        if not Path(named).is_file():
            raise ConfigError(f"TOLD_CONFIG names {named}, which is not a file.", hint="Create it, or unset it.")
        return Path(named)
    home = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = (Path(".told/config.yaml"), home / "told" / "config.yaml")
    return next((place for place in places if place.is_file()), None)


def data_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where the default store lives."""
    environment = os.environ if environment is None else environment
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "told"


def store_url(settings: Settings) -> str:
    """The store in force."""
    return settings.store or f"sqlite:///{data_folder() / 'told.db'}"


def store_file(settings: Settings) -> Path | None:
    """The file of the store in force; None for a store that has none."""
    scheme, mark, path = store_url(settings).partition(":///")
    try:
        return Path(path).expanduser() if mark and scheme == "sqlite" else None
    except RuntimeError as error:
        raise ConfigError(f"{store_url(settings)!r} names a home that is not there.", hint="Write it out.") from error


def _from_file(path: Path) -> Mapping[str, Any]:
    try:
        written = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    if not written.strip():
        return {}
    import yaml

    try:
        data = yaml.safe_load(written) or {}
    except yaml.YAMLError as error:
        raise _unreadable(path, error) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold `name: value` lines.")
    return data


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}.", hint="Mend or remove the file.")


def check(name: str, value: Any, where: str) -> Any:
    """A value of the right type and range for a knob."""
    knob = KNOBS.get(name)
    if knob is None:
        near = get_close_matches(name, KNOBS, 1)
        hint = f"Did you mean `{near[0]}`?" if near else "Run `told config` for the list."
        raise ConfigError(f"{where}: there is no setting {name!r}.", hint=hint)
    kind = type(knob.default)
    value = _read(name, value, kind, where)
    choices, least, most = (knob.metadata[limit] for limit in ("choices", "least", "most"))
    if choices and value not in choices:
        raise ConfigError(f"{where}: {name} must be one of {', '.join(choices)}, not {shown(value)}.")
    if least is not None and not value >= least:  # written so that NaN is refused too
        raise ConfigError(f"{where}: {name} must be at least {least:g}, not {shown(value)}.")
    if least is not None and value > most:
        raise ConfigError(f"{where}: {name} must be at most {most:g}, not {shown(value)}.")
    return value


def _read(name: str, value: Any, kind: type, where: str) -> Any:
    if isinstance(value, str) and kind is bool and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if isinstance(value, str) and kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    if kind is float and type(value) is int and abs(value) <= MOST:
        return float(value)
    if isinstance(value, str) and _UNWRITABLE.search(value):
        raise ConfigError(f"{where}: {name} holds a NUL or half a character: {shown(value)}.")
    if type(value) is kind:
        return value
    raise ConfigError(f"{where}: {name} must be {kind.__name__}, not {shown(value)}.")


_UNWRITABLE = regex("[\0\ud800-\udfff]")
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
