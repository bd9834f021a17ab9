"""A language model on this machine: llama.cpp serves it on loopback, and the adapter for OpenAI's speech asks it."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from told.backends.http.openai import OpenAI
from told.backends.http.openai import openai as adapter
from told.backends.local import registry
from told.core.errors import ConfigError, ModelMissing
from told.core.fork import at_fork, freed

RUNTIME = "xllamacpp"
CONTEXT = 4096


class Server:
    """A model that is served on loopback for as long as this object lives."""

    def __init__(self, weights: Path, *, threads: int = 1, context: int = CONTEXT) -> None:
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


_lock = freed(threading.Lock())
_servers: dict[Path, Server] = {}


def serve(name: str | None = None) -> Server:
    """The server of an installed model, started once and shared by the whole process."""
    if find_spec(RUNTIME) is None:
        hint = "Run `pip install 'told[llm-local]'`."
        raise ConfigError(f"Language models on this machine need {RUNTIME}.", hint=hint)
    model = registry.find(name) if name else registry.best("chat")
    folder = registry.path(model.name) if model else None
    wanted = name or registry.SMOLLM2.name
    if model is None or folder is None:
        raise ModelMissing(f"The model {wanted} is not installed.", hint=f"Run `told models install {wanted}`.")
    if model.task != "chat":
        raise ConfigError(f"{model.name} answers nothing; it embeds.", hint=f"Use it as embedder=local:{model.name}.")
    weights = folder / model.network
    with _lock:
        if weights not in _servers:
            _servers[weights] = Server(weights)
        return _servers[weights]


def llm(model: str | None = None, **options: Any) -> OpenAI:
    """The language model of an installed name, or of the best one installed; options are those of the adapter."""
    name = model or getattr(registry.best("chat"), "name", None) or registry.SMOLLM2.name
    served = adapter(name, base_url=serve(name).base_url, **options)
    served.model = f"local:{name}"
    assert isinstance(served, OpenAI)
    return served
