"""A local language model: llama.cpp serves it on loopback, the OpenAI adapter calls it."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from told.errors import ConfigError, ModelMissing
from told.providers.http.openai import OpenAILLM
from told.providers.http.openai import openai as adapter
from told.providers.local import registry
from told.runtime import at_fork, reset_on_fork

RUNTIME_MODULE = "xllamacpp"
CONTEXT_TOKENS = 4096


class LlamaServer:
    """A llama.cpp server on loopback that lives as long as this object."""

    def __init__(self, weights: Path, *, threads: int = 1, context: int = CONTEXT_TOKENS) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx, params.n_parallel, params.cpuparams.n_threads = context, 1, threads
        params.warmup, params.ui, params.verbosity = False, False, -1
        self._server = xllamacpp.Server(params)
        at_fork(self, in_child="abandon")

    @property
    def base_url(self) -> str:
        """Return the server's OpenAI-compatible URL."""
        return f"{self._server.listening_address}/v1"

    def abandon(self) -> None:
        """Skip destruction in a forked child, where the server's threads do not exist.

        The server keeps one reference forever, and the process exits before llama.cpp's own
        destructors run, where the system allows it.
        """
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))
        system = ctypes.CDLL(None)
        if hasattr(system, "on_exit"):
            system.on_exit(system["_exit"], None)


_servers_lock = reset_on_fork(threading.Lock())
_servers: dict[Path, LlamaServer] = {}


def get_server(name: str | None = None) -> LlamaServer:
    """Return the shared server of an installed model."""
    if find_spec(RUNTIME_MODULE) is None:
        hint = "Run `pip install 'told[llm-local]'`."
        raise ConfigError(f"Language models on this machine need {RUNTIME_MODULE}.", hint=hint)
    model = registry.get_model(name) if name else registry.find_best_installed("chat")
    folder = registry.path(model.name) if model else None
    wanted_name = name or registry.SMOLLM2.name
    if model is None or folder is None:
        raise ModelMissing(
            f"The model {wanted_name} is not installed.",
            hint=f"Run `told models install {wanted_name}`.",
        )
    if model.task != "chat":
        raise ConfigError(
            f"{model.name} is an embedder, not a language model.",
            hint=f"Use it as embedder=local:{model.name}.",
        )
    weights = folder / model.network_filename
    with _servers_lock:
        if weights not in _servers:
            _servers[weights] = LlamaServer(weights)
        return _servers[weights]


def open_llm(model: str | None = None, **options: Any) -> OpenAILLM:
    """Open the named or best installed language model."""
    name = (
        model
        or getattr(registry.find_best_installed("chat"), "name", None)
        or registry.SMOLLM2.name
    )
    local_llm = adapter(name, base_url=get_server(name).base_url, **options)
    local_llm.model = f"local:{name}"
    assert isinstance(local_llm, OpenAILLM)
    return local_llm
