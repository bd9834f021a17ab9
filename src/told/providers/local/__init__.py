"""Local models: a registry, an installer, an ONNX embedder and a llama.cpp server.

Importing this package is cheap: numpy and onnxruntime load at first use.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from told.errors import ConfigError, ModelMissing
from told.providers.local import registry

if TYPE_CHECKING:
    from told.providers.local.onnx import OnnxEmbedder

RUNTIME_MODULES = ("numpy", "onnxruntime")


def open_embedder(name: str | None = None, *, threads: int = 1, batch: int = 8) -> OnnxEmbedder:
    """Open the named or best installed embedder."""
    require_runtime()
    model = registry.get_model(name) if name else registry.find_best_installed()
    if model is not None and model.task != "embed":
        raise ConfigError(
            f"{model.name} is a language model, not an embedder.",
            hint=f"Use it as llm=local:{model.name}.",
        )
    if model is None:
        raise ModelMissing(
            "No local embedding model is installed.", hint="Run `told models install`."
        )
    folder = registry.path(model.name)
    if folder is None:
        hint = f"Run `told models install {model.name}`."
        raise ModelMissing(f"The model {model.name} is not installed.", hint=hint)
    from told.providers.local.onnx import OnnxEmbedder  # imports numpy, so only here

    return OnnxEmbedder(model, folder, threads=threads, batch=batch)


def require_runtime() -> None:
    """Raise if the model runtime is not installed."""
    missing = [module for module in RUNTIME_MODULES if find_spec(module) is None]
    if missing:
        raise ModelMissing(
            f"Local models need {' and '.join(missing)}.", hint="Run `pip install 'told[local]'`."
        )
