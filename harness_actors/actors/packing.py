"""Programs as content-addressed blobs: what runs in the actors is what the user has now."""

import dataclasses
import hashlib
import io
import os
import pickle
import sys
import sysconfig
import threading
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import cloudpickle

from harness_actors.actors.tapping import without_taps
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import AgentCodeError
from harness_actors.policies import Hook, Hooks
from harness_actors.policies.hooks import KINDS, hook_name

_MARKS = {
    id(mark): name
    for name, mark in vars(dataclasses).items()
    if type(mark).__module__ == dataclasses.__name__
}
"""`MISSING` and the others of `dataclasses` that are told by their identity."""


# Untyped, for cloudpickle has no types.
class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Names those marks: a copy of `MISSING`, in a class that travels by value, is a default."""

    dispatch_table: ClassVar[ChainMap[type, Any]] = ChainMap(
        {
            type(getattr(dataclasses, name)): lambda mark: _MARKS[id(mark)]
            for name in _MARKS.values()
        },
        cloudpickle.Pickler.dispatch_table,
    )


_registering = threading.Lock()
"""The pickler's list of modules is one per process."""


def pack(workflow: Workflow) -> tuple[str, bytes]:
    """Pickle a workflow with the code of the user's own modules.

    Returns:
        The hash of the blob, and the blob. Equal workflows may give different blobs.

    Raises:
        AgentCodeError: A part of it cannot be pickled; names the part.
    """
    with _own_modules_by_value(), without_taps():
        try:
            blob = _dumped(workflow)
        except Exception as error:
            raise _culprit(workflow, error) from error
    return hashlib.sha256(blob).hexdigest(), blob


def pack_tool(tool: object) -> bytes:
    """Pickle one tool with the code of the user's own modules.

    Raises:
        Exception: A part of it cannot be pickled; whatever that part raises.
    """
    with _own_modules_by_value(), without_taps():
        return _dumped(tool)


def _dumped(value: object) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def unpack(blob: bytes) -> Workflow:
    """What `pack` was given.

    Raises:
        AgentCodeError: A module that the blob names cannot be imported here.
    """
    try:
        workflow: Workflow = pickle.load(io.BytesIO(blob))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise AgentCodeError("the stored agent", f"it cannot be read here: {reason}") from error
    return workflow


def _culprit(workflow: Workflow, error: Exception) -> AgentCodeError:
    """Pickle the parts one by one to say which is at fault."""
    agent = workflow.agent
    parts: list[tuple[str, Any]] = [
        *((f"tool {tool.spec.name!r}", tool) for tool in agent.tools),
        ("the model", agent.model),
        ("the instructions", agent.instructions),
        *((f"hook {hook.name!r}", hook) for hook in _hooks_of(agent)),
        *((f"middleware {hook_name(one)!r}", one) for one in getattr(agent, "middleware", ())),
        *((f"predicate {name!r}", one) for name, one in _named(agent, "predicates")),
        *((f"judge {name!r}", one) for name, one in _named(agent, "judges")),
        ("the summarizer", getattr(agent, "summarizer", None)),
        *((f"strategy {one.name!r}", one) for one in getattr(agent, "strategies", None) or ()),
        *((f"sub-agent {spec.name!r}", spec) for spec in getattr(agent, "sub_agents", None) or ()),
        ("the output type", getattr(agent, "output_type", None)),
        *((f"executor {name!r}", executor) for name, executor in workflow.executors.items()),
    ]
    for name, part in parts:
        try:
            _dumped(part)
        except Exception as fault:  # noqa: BLE001 - picklers raise whatever a __reduce__ does
            return AgentCodeError(name, _first_line(fault))
    return AgentCodeError("the agent", _first_line(error))


def _named(agent: Any, name: str) -> list[tuple[str, Any]]:
    return list((getattr(agent, name, None) or {}).items())


def _hooks_of(agent: Any) -> list[Hook]:
    hooks = Hooks.given(getattr(agent, "hooks", None))
    return [hook for kind in KINDS for hook in hooks.of(kind)]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


@contextmanager
def _own_modules_by_value() -> Iterator[None]:
    """Pickle the code of modules that other processes would import stale, or not at all."""
    with _registering:
        registered = set(cloudpickle.list_registry_pickle_by_value())
        added = [
            module
            for name, module in list(sys.modules.items())
            if name not in registered and is_own_module(name, module)
        ]
        for module in added:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in added:
                cloudpickle.unregister_pickle_by_value(module)


def is_own_module(name: str, module: object) -> bool:
    """Whether a module is the user's: not ours, not the standard library's, not installed.

    An edited file of the user must not be yesterday's import in a process that is warm.
    """
    top = name.partition(".")[0]
    if (
        top in ("harness_actors", "__main__", "__mp_main__")
        or top in sys.stdlib_module_names
        or not isinstance(module, ModuleType)
    ):
        return False
    # Read past a module's own `__getattr__`, which may load or raise anything.
    facts = vars(module)
    file = facts.get("__file__")
    if (
        not isinstance(file, str)
        or not file.endswith(".py")
        or not os.path.isabs(file)
        or facts.get("__name__") != name
        or sys.modules.get(name) is not module
    ):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _installed_folders())


def _installed_folders() -> frozenset[Path]:
    return _folders_among(tuple(sys.path))


@lru_cache(maxsize=1)
def _folders_among(path: tuple[str, ...]) -> frozenset[Path]:
    paths = sysconfig.get_paths()
    folders = {Path(paths[kind]) for kind in ("purelib", "platlib", "stdlib", "platstdlib")}
    # Debian's own packages, and those of a user, are in folders that sysconfig leaves out.
    installed = (entry for entry in path if entry.endswith(("site-packages", "dist-packages")))
    return frozenset(folders.union(map(Path, installed)))
