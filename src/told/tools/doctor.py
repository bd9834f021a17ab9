"""Health checks of an installation and a store, each with a finding and a fix.

Nothing of the user's is written: a missing store is not created, and the round trip uses a
temporary store beside the real one.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from told.api.memory import Memory
from told.errors import ConfigError, StoreVersion, TimeError, ToldError
from told.flow import call, run
from told.ledger import verify
from told.model.validation import suggest_option
from told.plugins import (
    EMBEDDER_GROUP,
    list_configured_providers,
    load_plugin,
    open_embedder,
    open_llm,
)
from told.ports import Embedder
from told.settings import (
    ENV_PREFIX,
    SETTING_FIELDS,
    LoadedSettings,
    find_config_file,
    load_settings,
    resolve_store_file,
    resolve_store_url,
)
from told.text.dates import format_iso, to_zone

CheckState: TypeAlias = Literal["ok", "warn", "fail"]

MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 51, 3)
CRITICAL_DISK_BYTES, LOW_DISK_BYTES = 50 * 2**20, 500 * 2**20
"""Bytes of free disk below which writing will fail soon, and below which it is time to look."""

MAX_VERIFIED_ENTRIES = 20_000
"""Ledgers up to this length are verified whole; longer ones from this far back."""

MAX_CLOCK_SKEW = 5_000_000
"""Tolerated clock skew in microseconds."""

OTHER_VARIABLES = {"CONFIG", "USER", "MODELS"}
"""TOLD_ variables that are not settings."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check: its name, state, finding and fix."""

    name: str
    state: CheckState
    detail: str
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the check as JSON."""
        return {"name": self.name, "state": self.state, "what": self.detail, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The settings, store and environment that the checks examine."""

    loaded: LoadedSettings
    environment: Mapping[str, str]
    memory: Memory | None = None
    """The user's open store, or None if it does not exist."""

    @property
    def url(self) -> str:
        """Return the store URL."""
        return resolve_store_url(self.loaded.settings)

    @property
    def file(self) -> Path | None:
        """Return the store file, or None if the store has no file."""
        return resolve_store_file(self.loaded.settings)

    @property
    def folder(self) -> Path:
        """Return the nearest existing folder of the store file."""
        parent = Path.cwd() if self.file is None else self.file.absolute().parent
        return next(folder for folder in (parent, *parent.parents) if folder.is_dir())

    @property
    def account(self) -> str:
        """Return the configured account."""
        return self.loaded.settings.account


def is_healthy(checks: Sequence[DoctorCheck]) -> bool:
    """Return whether no check failed."""
    return all(check.state != "fail" for check in checks)


def run_checks(environment: Mapping[str, str] | None = None, **arguments: Any) -> list[DoctorCheck]:
    """Run every check in order; skip those that need something that cannot be opened."""
    environment = os.environ if environment is None else environment
    checks = [check() for check in MACHINE_CHECKS]
    try:
        ctx = DoctorContext(load_settings(environment, **arguments), environment)
    except ConfigError as error:
        return [
            *checks,
            DoctorCheck(
                "configuration", "fail", error.message, error.hint or "Fix the configuration."
            ),
        ]
    checks += [check(ctx) for check in LOCATION_CHECKS]
    with ExitStack() as stack:
        try:
            memory = stack.enter_context(_open_memory(ctx)) if _store_exists(ctx) else None
        except ToldError as error:
            name = "schema" if isinstance(error, StoreVersion) else "store opens"
            return [
                *checks,
                DoctorCheck(name, "fail", error.message, error.hint or "Restore the last backup."),
            ]
        ctx = DoctorContext(ctx.loaded, environment, memory)
        checks += [*_check_store(ctx), *_check_embedder(ctx), check_language_model(ctx)]
    return checks


def _store_exists(ctx: DoctorContext) -> bool:
    return ctx.file is None or ctx.file.exists()


def _open_memory(ctx: DoctorContext) -> Memory:
    return Memory(embedder="none", llm="none", settings=ctx.loaded.settings)


# Machine


def check_python() -> DoctorCheck:
    """Check the Python version."""
    version = ".".join(map(str, sys.version_info[:3]))
    is_supported = sys.version_info >= MIN_PYTHON
    return (
        DoctorCheck("Python", "ok", version)
        if is_supported
        else DoctorCheck("Python", "fail", version, "Install Python 3.11 or newer.")
    )


def check_sqlite() -> DoctorCheck:
    """Check that SQLite is free of the WAL corruption bug."""
    if find_spec("apsw") is None:
        return DoctorCheck("SQLite", "fail", "apsw is not installed", "Run `pip install apsw`.")
    import apsw

    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < MIN_SQLITE:
        return DoctorCheck(
            "SQLite", "fail", f"{version} can corrupt a shared store", "Run `pip install -U apsw`."
        )
    return DoctorCheck("SQLite", "ok", f"{version}, free of the WAL bug before 3.51.3")


def check_numpy() -> DoctorCheck:
    """Check that NumPy is available for vector search."""
    if find_spec("numpy") is None:
        fix = "Run `pip install 'told[local]'` for search by meaning."
        return DoctorCheck("numpy", "warn", "not installed: search uses words only", fix)
    return DoctorCheck("numpy", "ok", "installed")


MACHINE_CHECKS: tuple[Callable[[], DoctorCheck], ...] = (check_python, check_sqlite, check_numpy)


# Configuration and paths


def check_configuration(ctx: DoctorContext) -> DoctorCheck:
    """Check that the configuration is readable and has no unknown names."""
    file = find_config_file(ctx.environment)
    known = {*SETTING_FIELDS, *(name.lower() for name in OTHER_VARIABLES)}
    variables = [
        name.removeprefix(ENV_PREFIX).lower()
        for name in ctx.environment
        if name.startswith(ENV_PREFIX)
    ]
    unknown = sorted(name for name in variables if name not in known)
    if unknown:
        name = ENV_PREFIX + unknown[0].upper()
        hint = suggest_option(unknown[0], known)
        return DoctorCheck(
            "configuration",
            "warn",
            f"{name} is not a setting",
            hint or f"Unset {name}; see `told config`.",
        )
    try:
        to_zone(0, ctx.loaded.settings.zone or None)
    except TimeError as error:
        return DoctorCheck("configuration", "fail", f"zone: {error.message}", error.hint)
    changed = sorted(name for name, origin in ctx.loaded.origin.items() if origin != "default")
    detail = f"{file or 'no file'}; changed: {', '.join(changed) or 'nothing'}"
    return DoctorCheck("configuration", "ok", detail)


def check_durability(ctx: DoctorContext) -> DoctorCheck:
    """Check that acknowledged writes survive power loss."""
    if ctx.loaded.settings.durability == "full":
        return DoctorCheck("durability", "ok", "full: acknowledged writes survive power loss")
    detail = "normal: power loss may take the last acknowledged writes"
    return DoctorCheck("durability", "warn", detail, "Set `durability: full` unless you mean it.")


def check_writable(ctx: DoctorContext) -> DoctorCheck:
    """Check that the store's file and folder are writable."""
    if ctx.file is None:
        return DoctorCheck("store writable", "ok", f"{ctx.url} has no file")
    if ctx.file.is_dir():
        fix = f"Name a file in it, such as sqlite:///{ctx.file / 'told.db'}."
        return DoctorCheck("store writable", "fail", f"{ctx.file} is a folder", fix)
    for path in (ctx.folder, ctx.file):
        if path.exists() and not os.access(path, os.W_OK):
            return DoctorCheck(
                "store writable", "fail", f"{path} cannot be written", f"Run `chmod u+w {path}`."
            )
    return DoctorCheck("store writable", "ok", str(ctx.file))


def check_disk(ctx: DoctorContext) -> DoctorCheck:
    """Check that there is disk space to write and to rewrite the file after an erase."""
    free = shutil.disk_usage(ctx.folder).free
    size = ctx.file.stat().st_size if ctx.file and ctx.file.exists() else 0
    detail = f"{_format_size(free)} free in {ctx.folder}, the store has {_format_size(size)}"
    if free < CRITICAL_DISK_BYTES:
        return DoctorCheck("disk space", "fail", detail, "Free some space.")
    if free < max(LOW_DISK_BYTES, 2 * size):
        return DoctorCheck(
            "disk space",
            "warn",
            detail,
            "Free some space: erasing and backups need room for a copy.",
        )
    return DoctorCheck("disk space", "ok", detail)


def _format_size(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"


def check_permissions(ctx: DoctorContext) -> DoctorCheck:
    """Check that other users of this machine cannot read the store."""
    if ctx.file is None or not ctx.file.is_file() or os.name != "posix":
        return DoctorCheck("file permissions", "ok", "no file to protect yet")
    mode = stat.S_IMODE(ctx.file.stat().st_mode)
    if mode & 0o007:
        detail = f"{mode:o}: everybody on this machine can open it"
        return DoctorCheck("file permissions", "warn", detail, f"Run `chmod 600 {ctx.file}`.")
    return DoctorCheck("file permissions", "ok", f"{mode:o}")


def check_round_trip(ctx: DoctorContext) -> DoctorCheck:
    """Check that a write can be read back, in a temporary store."""
    name = "round trip"
    settings = ctx.loaded.settings
    try:
        with TemporaryDirectory(prefix=".told-doctor-", dir=ctx.folder) as folder:
            url = "ram://" if ctx.file is None else f"sqlite:///{folder}/told.db"
            with Memory(url, embedder="none", llm="none", settings=settings) as memory:
                written_id = memory.add("The doctor was here.", user_id="doctor", infer=False)[
                    "results"
                ][0]["id"]
                found_ids = [
                    row["id"] for row in memory.search("doctor", user_id="doctor")["results"]
                ]
                is_sound = memory.verify()["ok"]
    except (ToldError, OSError) as error:
        detail = getattr(error, "strerror", None) or str(error)
        return DoctorCheck(
            name, "fail", detail, f"Make {ctx.folder} writable, or set another store."
        )
    if found_ids != [written_id] or not is_sound:
        return DoctorCheck(
            name, "fail", "what was written did not come back", "Reinstall told and apsw."
        )
    return DoctorCheck(name, "ok", "written, found and verified in a temporary store")


LOCATION_CHECKS: tuple[Callable[[DoctorContext], DoctorCheck], ...] = (
    check_configuration,
    check_durability,
    check_writable,
    check_disk,
    check_permissions,
    check_round_trip,
)


# Store


def _check_store(ctx: DoctorContext) -> Iterator[DoctorCheck]:
    """Run the checks of an open store; skip them if it does not exist."""
    if ctx.memory is None:
        yield DoctorCheck(
            "store opens", "ok", f"{ctx.url} does not exist yet; the first `told add` creates it"
        )
        return
    yield DoctorCheck("store opens", "ok", ctx.url)
    for check in STORE_CHECKS:
        try:
            yield check(ctx, ctx.memory)
        except ToldError as error:
            yield DoctorCheck(
                check.__name__, "fail", error.message, error.hint or "Restore the last backup."
            )


def schema(_: DoctorContext, memory: Memory) -> DoctorCheck:
    """Check that this version can read the file's schema."""
    version = memory.stats().get("schema")
    return DoctorCheck(
        "schema", "ok", "readable by this version" if version is None else f"version {version}"
    )


def ledger(ctx: DoctorContext, memory: Memory) -> DoctorCheck:
    """Verify the ledger, or the end of a long one."""
    store, account = memory.engine.store, ctx.account
    head = store.get_head(account)
    if head.seq <= MAX_VERIFIED_ENTRIES:
        result = run(verify.verify_ledger(store, account))
        problem = "" if result.ok else f"entry {result.seq}: {result.problem}"
    else:
        problem = _verify_tail(memory, account, head.seq - MAX_VERIFIED_ENTRIES)
    if problem:
        return DoctorCheck(
            "ledger", "fail", problem, "Run `told verify`, then restore the last backup."
        )
    return DoctorCheck(
        "ledger", "ok", f"{min(head.seq, MAX_VERIFIED_ENTRIES)} of {head.seq} entries verified"
    )


def _verify_tail(memory: Memory, account: str, start: int) -> str:
    """Return the first invalid entry after a position, or an empty string."""
    store = memory.engine.store
    previous, *entries = store.scan_entries(account, start - 1, MAX_VERIFIED_ENTRIES + 1)
    erased = store.tombstoned_digests([entry.digest for entry in entries if entry.envelope is None])
    for entry in entries:
        if problem := verify.find_entry_flaw(account, entry, previous.hash, previous.seq + 1):
            return f"entry {previous.seq + 1}: {problem}"
        if entry.envelope is None and entry.digest not in erased:
            return f"entry {entry.seq}: the content is missing and was never erased"
        previous = entry
    return ""


def index(_: DoctorContext, memory: Memory) -> DoctorCheck:
    """Check that the file and its index are consistent."""
    problems = memory.engine.store.check_integrity()
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        detail, _sep, remedy = problems[0].rstrip(".").partition("; ")
        fix = remedy or "run `told rebuild`"
        return DoctorCheck("index", "fail", f"{detail}{more}", f"{fix[:1].upper()}{fix[1:]}.")
    return DoctorCheck("index", "ok", "no problem found")


def clock(ctx: DoctorContext, memory: Memory) -> DoctorCheck:
    """Check that this machine's clock is not behind the last entry."""
    head, now = memory.engine.store.get_head(ctx.account), memory.engine.store.mint.now()
    if head.at > now + MAX_CLOCK_SKEW:
        detail = f"the last entry is of {format_iso(head.at)}, in the future"
        return DoctorCheck("clock", "warn", detail, "Set this machine's clock.")
    return DoctorCheck("clock", "ok", f"it is {format_iso(now)[:19]}Z")


def pending(_: DoctorContext, memory: Memory) -> DoctorCheck:
    """Check that every memory has a vector."""
    store = memory.engine.store
    if store.current_model() is None:
        return DoctorCheck("pending vectors", "ok", "the store has no vectors")
    pending_count = len(store.pending_texts(1000))
    if pending_count:
        detail = (
            f"{'1000 or more' if pending_count == 1000 else pending_count} texts have no vector yet"
        )
        return DoctorCheck("pending vectors", "warn", detail, "Run `told reindex`.")
    return DoctorCheck("pending vectors", "ok", "none")


def faults(_: DoctorContext, memory: Memory) -> DoctorCheck:
    """Check for failed work that was set aside."""
    failures = run(memory.engine.faults())
    if failures:
        detail = f"{len(failures)} set aside; the last: {failures[-1].error}"
        return DoctorCheck(
            "faults",
            "warn",
            detail,
            "See `told faults list`, fix the cause, then run `told faults retry`.",
        )
    return DoctorCheck("faults", "ok", "none")


STORE_CHECKS: tuple[Callable[[DoctorContext, Memory], DoctorCheck], ...] = (
    schema,
    ledger,
    index,
    clock,
    pending,
    faults,
)


# Embedder


def _check_embedder(ctx: DoctorContext) -> Iterator[DoctorCheck]:
    """Check which embedder is used, that it works and that it matches the store."""
    choice = ctx.loaded.settings.embedder
    with ExitStack() as stack:
        memory = ctx.memory or stack.enter_context(Memory("ram://", embedder="none", llm="none"))
        bound = memory.engine.store.current_model()
        try:
            embedder = open_embedder(choice, memory.engine.store)
        except ToldError as error:
            yield DoctorCheck(
                "embedder", "fail", error.message, error.hint or "Choose another with `--embedder`."
            )
            return
    if embedder is None:
        yield _check_no_embedder(choice, bound)
        return
    yield DoctorCheck("embedder", "ok", f"{embedder.model}, {_embedder_origin(ctx, bound)}")
    yield _check_embedder_output(embedder, bound)


def _embedder_origin(ctx: DoctorContext, bound: tuple[str, int] | None) -> str:
    if ctx.loaded.settings.embedder != "auto":
        return f"chosen by {ctx.loaded.origin['embedder']}"
    return "which the store is indexed with" if bound else "the best that is installed"


def _check_no_embedder(choice: str, bound: tuple[str, int] | None) -> DoctorCheck:
    """Explain why there is no embedder."""
    if choice == "none":
        return DoctorCheck("embedder", "ok", "none, as chosen: search uses words only")
    if bound:
        provider, _, name = bound[0].partition(":")
        detail = f"the store's embedder {bound[0]} is not available: search uses words only"
        install_hint = f"Run `told models install {name}`."
        remote_hint = f"Pass `--embedder {bound[0]}`, or run `told reindex --embedder local`."
        return DoctorCheck(
            "embedder", "warn", detail, install_hint if provider == "local" else remote_hint
        )
    try:
        load_plugin(EMBEDDER_GROUP, "local")(None)
    except ToldError as error:
        return DoctorCheck("embedder", "warn", f"none: {error.message}", error.hint)
    return DoctorCheck("embedder", "warn", "none", "Run `told models install`.")


def _check_embedder_output(embedder: Embedder, bound: tuple[str, int] | None) -> DoctorCheck:
    """Check that the embedder returns vectors that match the store."""
    name = "embedder works"
    try:
        width = len(run(call(embedder.embed, ["told"], "query"))[0])
    except ToldError as error:
        return DoctorCheck(name, "fail", error.message, error.hint or "Run `told models verify`.")
    if width != embedder.dim:
        return DoctorCheck(
            name,
            "fail",
            f"it returns {width} dimensions but declares {embedder.dim}",
            "Run `told models verify`.",
        )
    if bound and bound != (embedder.model, embedder.dim):
        detail = (
            f"it is {embedder.model} of {embedder.dim}; the store is indexed with "
            f"{bound[0]} of {bound[1]}"
        )
        return DoctorCheck(
            name,
            "fail",
            detail,
            f"Run `told reindex --embedder {embedder.model}`, or choose {bound[0]}.",
        )
    return DoctorCheck(name, "ok", f"{width} dimensions{', as in the store' if bound else ''}")


# Language model


def check_language_model(ctx: DoctorContext) -> DoctorCheck:
    """Report which language model is configured, without calling it."""
    name, choice = "language model", ctx.loaded.settings.llm
    configured_providers = list_configured_providers(ctx.environment)
    if choice in ("", "none"):
        alternative = (
            f"; {configured_providers[0][1]} is set, so `llm: auto` would use "
            f"{configured_providers[0][0]}"
            if configured_providers
            else ""
        )
        return DoctorCheck(name, "ok", f"none, so no text leaves this machine{alternative}")
    try:
        llm = open_llm(choice, ctx.loaded.settings)
    except ToldError as error:
        return DoctorCheck(
            name, "fail", error.message, error.hint or "Choose another, or `llm: none`."
        )
    if llm is None:
        fix = "Set a provider's key, such as OPENAI_API_KEY, or choose one: `llm: provider:model`."
        return DoctorCheck(
            name, "warn", "none: `llm` is auto, and the environment names no provider", fix
        )
    why = (
        f"for {configured_providers[0][1]} is set"
        if choice == "auto"
        else f"chosen by {ctx.loaded.origin['llm']}"
    )
    return DoctorCheck(name, "ok", f"{llm.model}, {why}")
