"""Keeping Ray's talk off the terminal and out of the cells of notebooks."""

import ctypes
import logging
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

RAYLET_VARIABLE = "RAY_RAYLET_PID"
"""Names the raylet in the environment of what it starts."""
SIGACTION_BYTES = 256
"""More than a ``struct sigaction`` has on any Linux."""


def load_ray() -> None:
    """Import Ray, which in a notebook advises at that to install widgets."""
    widgets = logging.getLogger("ray.widgets.util")
    level = widgets.level
    widgets.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # tqdm's, which Ray's own progress bars stand on; its category goes with tqdm.
            warnings.filterwarnings("ignore", message="IProgress not found")
            with raylet_named():
                import ray  # noqa: F401
    finally:
        widgets.setLevel(level)


@contextmanager
def raylet_named() -> Iterator[None]:
    """Let Ray's part of this process bear the death of its raylet.

    It ends a process without a word that talks to a raylet which is dead, and takes it for dead
    where none is named when it is loaded and the process's own parent is gone, as under ``nohup``.
    So one is named that lives as long as this process.
    """
    before = os.environ.get(RAYLET_VARIABLE)
    os.environ[RAYLET_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        if before is None:
            del os.environ[RAYLET_VARIABLE]
        else:
            os.environ[RAYLET_VARIABLE] = before


def keep_quiet() -> None:
    """Silence what Ray says in this process; what matters comes as errors of our own."""
    import ray._private.worker

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # Unset, it makes each process warn of a default that has to do with GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # The one way in which raylet messages ("a worker died") reach a terminal; Ray has no
    # option for it. Deaths are told by our own events.
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = _say_nothing


def _say_nothing(*_args: object, **_kwargs: object) -> None:
    return


@contextmanager
def sigterm_kept() -> Iterator[None]:
    """Give SIGTERM back what it did before, where Ray takes it to print a stack from C++.

    From any thread, which Python's own functions do not allow.
    """
    libc = ctypes.CDLL(None)
    known, before = signal.getsignal(signal.SIGTERM), ctypes.create_string_buffer(SIGACTION_BYTES)
    libc.sigaction(signal.SIGTERM, None, before)
    try:
        yield
    finally:
        # What Python does not know of was not the program's own choice.
        if signal.getsignal(signal.SIGTERM) is known:
            libc.sigaction(signal.SIGTERM, before, None)
