"""The doctor: small checks of an installation and of a store, each with what it saw and how to mend it.

Nothing of the user's is written: a store that does not exist is not made, and the round trip goes through a temporary
store beside the real one.
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

from told.core.errors import ConfigError, StoreVersion, TimeError, ToldError
from told.core.reading import meant
from told.core.when import by_clock, iso
from told.faces.sdk import Memory
from told.flow import call, run
from told.ledger import verify
from told.open import EMBEDDERS, configured, open_embedder, open_llm, plugin
from told.ports import Embedder
from told.settings import KNOBS, PREFIX, Loaded, config_file, load, store_file, store_url

State: TypeAlias = Literal["ok", "warn", "fail"]

LEAST_PYTHON = (3, 11)
LEAST_SQLITE = (3, 51, 3)
SCARCE, LOW = 50 * 2**20, 500 * 2**20
"""Bytes of free disk below which writing will fail soon, and below which it is time to look."""

WHOLE = 20_000
"""Ledgers up to this many entries are verified whole, longer ones this far back from their end."""

AHEAD = 5_000_000
"""Microseconds by which two honest clocks may differ."""

BESIDE = {"CONFIG", "USER", "MODELS"}
"""Variables of ours that are not settings."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, what was seen, and how to mend it."""

    name: str
    state: State
    what: str
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        """The check as JSON."""
        return {"name": self.name, "state": self.state, "what": self.what, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at."""

    loaded: Loaded
    environment: Mapping[str, str]
    memory: Memory | None = None
    """The user's store, open; None where there is none yet."""

    @property
    def url(self) -> str:
        """The store's URL."""
        return store_url(self.loaded.settings)

    @property
    def file(self) -> Path | None:
        """The store's file; None for one that has none."""
        return store_file(self.loaded.settings)

    @property
    def folder(self) -> Path:
        """The folder the store's file is in or will be in, as far as it exists."""
        wanted = Path.cwd() if self.file is None else self.file.absolute().parent
        return next(place for place in (wanted, *wanted.parents) if place.is_dir())

    @property
    def account(self) -> str:
        """The account the settings name."""
        return self.loaded.settings.account


def healthy(checks: Sequence[Check]) -> bool:
    """Whether nothing failed."""
    return all(check.state != "fail" for check in checks)


def examine(environment: Mapping[str, str] | None = None, **arguments: Any) -> list[Check]:
    """Every check that can be made, in order; what cannot be opened ends the checks that need it."""
    environment = os.environ if environment is None else environment
    checks = [check() for check in MACHINE]
    try:
        patient = Patient(load(environment, **arguments), environment)
    except ConfigError as error:
        return [*checks, Check("configuration", "fail", error.message, error.hint or "Mend the configuration.")]
    checks += [check(patient) for check in PLACE]
    with ExitStack() as stack:
        try:
            memory = stack.enter_context(_open(patient)) if _exists(patient) else None
        except ToldError as error:
            name = "schema" if isinstance(error, StoreVersion) else "store opens"
            return [*checks, Check(name, "fail", error.message, error.hint or "Restore the last backup.")]
        patient = Patient(patient.loaded, environment, memory)
        checks += [*_opened(patient), *_embedding(patient), language_model(patient)]
    return checks


def _exists(patient: Patient) -> bool:
    return patient.file is None or patient.file.exists()


def _open(patient: Patient) -> Memory:
    return Memory(embedder="none", llm="none", settings=patient.loaded.settings)


# The machine


def python() -> Check:
    """Is Python new enough?"""
    found = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= LEAST_PYTHON
    return Check("Python", "ok", found) if fine else Check("Python", "fail", found, "Install Python 3.11 or newer.")


def sqlite() -> Check:
    """Is SQLite new enough not to corrupt a store that two processes share?"""
    if find_spec("apsw") is None:
        return Check("SQLite", "fail", "apsw is not installed", "Run `pip install apsw`.")
    import apsw

    found = apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < LEAST_SQLITE:
        return Check("SQLite", "fail", f"{found} can corrupt a shared store", "Run `pip install -U apsw`.")
    return Check("SQLite", "ok", f"{found}, free of the WAL bug before 3.51.3")


def numpy() -> Check:
    """Is there something to scan vectors with?"""
    if find_spec("numpy") is None:
        fix = "Run `pip install 'told[local]'` for search by meaning."
        return Check("numpy", "warn", "not installed: memories are found by their words only", fix)
    return Check("numpy", "ok", "installed")


MACHINE: tuple[Callable[[], Check], ...] = (python, sqlite, numpy)


# The configuration and the place


def configuration(patient: Patient) -> Check:
    """Is the configuration readable, and is every name in it known?"""
    file = config_file(patient.environment)
    known = {*KNOBS, *(name.lower() for name in BESIDE)}
    given = [name.removeprefix(PREFIX).lower() for name in patient.environment if name.startswith(PREFIX)]
    unknown = sorted(name for name in given if name not in known)
    if unknown:
        name = PREFIX + unknown[0].upper()
        hint = meant(unknown[0], known)
        return Check("configuration", "warn", f"{name} is no setting", hint or f"Unset {name}; see `told config`.")
    try:
        by_clock(0, patient.loaded.settings.zone or None)
    except TimeError as error:
        return Check("configuration", "fail", f"zone: {error.message}", error.hint)
    changed = sorted(name for name, origin in patient.loaded.origin.items() if origin != "default")
    about = f"{file or 'no file'}; changed: {', '.join(changed) or 'nothing'}"
    return Check("configuration", "ok", about)


def durability(patient: Patient) -> Check:
    """Do acknowledged writes survive power loss?"""
    if patient.loaded.settings.durability == "full":
        return Check("durability", "ok", "full: acknowledged writes survive power loss")
    what = "normal: power loss may take the last acknowledged writes"
    return Check("durability", "warn", what, "Set `durability: full` unless you mean it.")


def writable(patient: Patient) -> Check:
    """May the store's file and its folder be written?"""
    if patient.file is None:
        return Check("store writable", "ok", f"{patient.url} has no file")
    if patient.file.is_dir():
        fix = f"Name a file in it, such as sqlite:///{patient.file / 'told.db'}."
        return Check("store writable", "fail", f"{patient.file} is a folder", fix)
    for place in (patient.folder, patient.file):
        if place.exists() and not os.access(place, os.W_OK):
            return Check("store writable", "fail", f"{place} cannot be written", f"Run `chmod u+w {place}`.")
    return Check("store writable", "ok", str(patient.file))


def disk(patient: Patient) -> Check:
    """Is there room to write, and to rewrite the file when something is erased?"""
    free = shutil.disk_usage(patient.folder).free
    size = patient.file.stat().st_size if patient.file and patient.file.exists() else 0
    about = f"{_megabytes(free)} free in {patient.folder}, the store has {_megabytes(size)}"
    if free < SCARCE:
        return Check("disk space", "fail", about, "Free some space.")
    if free < max(LOW, 2 * size):
        return Check("disk space", "warn", about, "Free some space: erasing and backups need room for a copy.")
    return Check("disk space", "ok", about)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"


def permissions(patient: Patient) -> Check:
    """Can other users of this machine read the memories?"""
    if patient.file is None or not patient.file.is_file() or os.name != "posix":
        return Check("file permissions", "ok", "no file to protect yet")
    mode = stat.S_IMODE(patient.file.stat().st_mode)
    if mode & 0o007:
        what = f"{mode:o}: everybody on this machine can open it"
        return Check("file permissions", "warn", what, f"Run `chmod 600 {patient.file}`.")
    return Check("file permissions", "ok", f"{mode:o}")


def round_trip(patient: Patient) -> Check:
    """Does what is written come back, in a temporary store beside the real one?"""
    name = "round trip"
    settings = patient.loaded.settings
    try:
        with TemporaryDirectory(prefix=".told-doctor-", dir=patient.folder) as folder:
            url = "ram://" if patient.file is None else f"sqlite:///{folder}/told.db"
            with Memory(url, embedder="none", llm="none", settings=settings) as memory:
                written = memory.add("The doctor was here.", user_id="doctor", infer=False)["results"][0]["id"]
                found = [row["id"] for row in memory.search("doctor", user_id="doctor")["results"]]
                sound = memory.verify()["ok"]
    except (ToldError, OSError) as error:
        what = getattr(error, "strerror", None) or str(error)
        return Check(name, "fail", what, f"Make {patient.folder} writable, or set another store.")
    if found != [written] or not sound:
        return Check(name, "fail", "what was written did not come back", "Reinstall told and apsw.")
    return Check(name, "ok", "written, found and verified in a temporary store")


PLACE: tuple[Callable[[Patient], Check], ...] = (configuration, durability, writable, disk, permissions, round_trip)


# The store


def _opened(patient: Patient) -> Iterator[Check]:
    """The checks of a store that is open; of one that does not exist yet there is nothing to check."""
    if patient.memory is None:
        yield Check("store opens", "ok", f"{patient.url} does not exist yet; the first `told add` makes it")
        return
    yield Check("store opens", "ok", patient.url)
    for check in STORE:
        try:
            yield check(patient, patient.memory)
        except ToldError as error:
            yield Check(check.__name__, "fail", error.message, error.hint or "Restore the last backup.")


def schema(_: Patient, memory: Memory) -> Check:
    """Is the file of an age this told reads? A file of another age has refused to open."""
    found = memory.stats().get("schema")
    return Check("schema", "ok", "the one this told reads" if found is None else f"version {found}")


def ledger(patient: Patient, memory: Memory) -> Check:
    """Is the ledger, or the end of a long one, what was written?"""
    store, account = memory.engine.store, patient.account
    head = store.head(account)
    if head.seq <= WHOLE:
        verdict = run(verify.verify(store, account))
        problem = "" if verdict.ok else f"entry {verdict.seq}: {verdict.problem}"
    else:
        problem = _tail_problem(memory, account, head.seq - WHOLE)
    if problem:
        return Check("ledger", "fail", problem, "Run `told verify`, then restore the last backup.")
    return Check("ledger", "ok", f"{min(head.seq, WHOLE)} of {head.seq} entries verified")


def _tail_problem(memory: Memory, account: str, start: int) -> str:
    """The first entry after a position that does not fit, or nothing."""
    store = memory.engine.store
    last, *entries = store.scan(account, start - 1, WHOLE + 1)
    gone = store.tombstoned(account, [entry.digest for entry in entries if entry.envelope is None])
    for entry in entries:
        if problem := verify.flaw(account, entry, last.hash, last.seq + 1):
            return f"entry {last.seq + 1}: {problem}"
        if entry.envelope is None and entry.digest not in gone:
            return f"entry {entry.seq}: the content is missing and was never erased"
        last = entry
    return ""


def index(_: Patient, memory: Memory) -> Check:
    """Do the file and the derived index hold together?"""
    problems = memory.engine.store.check()
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        what, _sep, way = problems[0].rstrip(".").partition("; ")
        fix = way or "run `told rebuild`"
        return Check("index", "fail", f"{what}{more}", f"{fix[:1].upper()}{fix[1:]}.")
    return Check("index", "ok", "no problem found")


def clock(patient: Patient, memory: Memory) -> Check:
    """Does this machine's clock stand after the last entry?"""
    head, now = memory.engine.store.head(patient.account), memory.engine.store.mint.now()
    if head.at > now + AHEAD:
        what = f"the last entry is of {iso(head.at)}, in the future"
        return Check("clock", "warn", what, "Set this machine's clock.")
    return Check("clock", "ok", f"it is {iso(now)[:19]}Z")


def pending(_: Patient, memory: Memory) -> Check:
    """Does every memory have its vector?"""
    store = memory.engine.store
    if store.model() is None:
        return Check("pending vectors", "ok", "the store has no vectors")
    waiting = len(store.pending(1000))
    if waiting:
        what = f"{'1000 or more' if waiting == 1000 else waiting} texts have no vector yet"
        return Check("pending vectors", "warn", what, "Run `told reindex`.")
    return Check("pending vectors", "ok", "none")


def faults(_: Patient, memory: Memory) -> Check:
    """Is there work that failed and was set aside?"""
    found = run(memory.engine.faults())
    if found:
        what = f"{len(found)} set aside; the last: {found[-1].error}"
        return Check("faults", "warn", what, "See `told faults list`, mend the cause, then run `told faults retry`.")
    return Check("faults", "ok", "none")


STORE: tuple[Callable[[Patient, Memory], Check], ...] = (schema, ledger, index, clock, pending, faults)


# The embedder


def _embedding(patient: Patient) -> Iterator[Check]:
    """Which embedder is in use and why, and whether it works and fits the store."""
    choice = patient.loaded.settings.embedder
    with ExitStack() as stack:
        memory = patient.memory or stack.enter_context(Memory("ram://", embedder="none", llm="none"))
        bound = memory.engine.store.model()
        try:
            embedder = open_embedder(choice, memory.engine.store)
        except ToldError as error:
            yield Check("embedder", "fail", error.message, error.hint or "Choose another with `--embedder`.")
            return
    if embedder is None:
        yield _none(choice, bound)
        return
    yield Check("embedder", "ok", f"{embedder.model}, {_reason(patient, bound)}")
    yield _working(embedder, bound)


def _reason(patient: Patient, bound: tuple[str, int] | None) -> str:
    if patient.loaded.settings.embedder != "auto":
        return f"chosen by {patient.loaded.origin['embedder']}"
    return "which the store is indexed with" if bound else "the best that is installed"


def _none(choice: str, bound: tuple[str, int] | None) -> Check:
    """Why there is no embedder."""
    if choice == "none":
        return Check("embedder", "ok", "none, as chosen: memories are found by their words only")
    if bound:
        provider, _, name = bound[0].partition(":")
        what = f"the store is indexed with {bound[0]}, which is not here: memories are found by their words only"
        here = f"Run `told models install {name}`."
        away = f"Pass `--embedder {bound[0]}`, or run `told reindex --embedder local`."
        return Check("embedder", "warn", what, here if provider == "local" else away)
    try:
        plugin(EMBEDDERS, "local")(None)
    except ToldError as error:
        return Check("embedder", "warn", f"none: {error.message}", error.hint)
    return Check("embedder", "warn", "none", "Run `told models install`.")


def _working(embedder: Embedder, bound: tuple[str, int] | None) -> Check:
    name = "embedder works"
    try:
        width = len(run(call(embedder.embed, ["told"], "query"))[0])
    except ToldError as error:
        return Check(name, "fail", error.message, error.hint or "Run `told models verify`.")
    if width != embedder.dim:
        return Check(name, "fail", f"it gives {width} numbers and promises {embedder.dim}", "Run `told models verify`.")
    if bound and bound != (embedder.model, embedder.dim):
        what = f"it is {embedder.model} of {embedder.dim}; the store is indexed with {bound[0]} of {bound[1]}"
        return Check(name, "fail", what, f"Run `told reindex --embedder {embedder.model}`, or choose {bound[0]}.")
    return Check(name, "ok", f"{width} numbers a text{', as in the store' if bound else ''}")


# The language model


def language_model(patient: Patient) -> Check:
    """Which language model is in use and why; nobody is asked anything."""
    name, choice = "language model", patient.loaded.settings.llm
    able = configured(patient.environment)
    if choice in ("", "none"):
        could = f"; {able[0][1]} is set, so `llm: auto` would use {able[0][0]}" if able else ""
        return Check(name, "ok", f"none, so no text leaves this machine{could}")
    try:
        found = open_llm(choice, patient.loaded.settings)
    except ToldError as error:
        return Check(name, "fail", error.message, error.hint or "Choose another, or `llm: none`.")
    if found is None:
        fix = "Set a provider's key, such as OPENAI_API_KEY, or choose one: `llm: provider:model`."
        return Check(name, "warn", "none: `llm` is auto, and the environment names no provider", fix)
    why = f"for {able[0][1]} is set" if choice == "auto" else f"chosen by {patient.loaded.origin['llm']}"
    return Check(name, "ok", f"{found.model}, {why}")
