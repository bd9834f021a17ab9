"""A language model on this machine: llama.cpp serves it on loopback, and the adapter for OpenAI's speech asks it."""

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
    """A model that is served on loopback for as long as this object lives."""

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
        """Where it answers, in the OpenAI way of speaking."""
        return f"{self._server.listening_address}/v1"

    def abandon(self) -> None:
        """Destroy nothing of it when this process ends: in a child the threads that it would wait for are not there.

        That of the server is one reference that is never given back. What llama.cpp itself destroys at the end of every
        process is not come to, where the system lets a process end before that with the code it was ending with.
        """
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))
        system = ctypes.CDLL(None)
        if hasattr(system, "on_exit"):
            system.on_exit(system["_exit"], None)


_servers_lock = reset_on_fork(threading.Lock())
_servers: dict[Path, LlamaServer] = {}


def get_server(name: str | None = None) -> LlamaServer:
    """The server of an installed model, started once and shared by the whole process."""
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
            f"{model.name} answers nothing; it embeds.",
            hint=f"Use it as embedder=local:{model.name}.",
        )
    weights = folder / model.network_filename
    with _servers_lock:
        if weights not in _servers:
            _servers[weights] = LlamaServer(weights)
        return _servers[weights]


def open_llm(model: str | None = None, **options: Any) -> OpenAILLM:
    """The language model of an installed name, or of the best one installed; options are those of the adapter."""
    name = (
        model
        or getattr(registry.find_best_installed("chat"), "name", None)
        or registry.SMOLLM2.name
    )
    local_llm = adapter(name, base_url=get_server(name).base_url, **options)
    local_llm.model = f"local:{name}"
    assert isinstance(local_llm, OpenAILLM)
    return local_llm
