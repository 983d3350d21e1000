"""Tools: functions that a model can call, and the shipped ones that work on a workspace."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.tools.artifacts import read_artifact as read_artifact
    from harness_actors.tools.asking import ask_user as ask_user
    from harness_actors.tools.coding import coding_tools as coding_tools
    from harness_actors.tools.coding import find_object as find_object
    from harness_actors.tools.coding import find_tool as find_tool
    from harness_actors.tools.command import CommandRunner as CommandRunner
    from harness_actors.tools.completion import work_complete as work_complete
    from harness_actors.tools.function import FunctionTool as FunctionTool
    from harness_actors.tools.function import tool as tool
    from harness_actors.tools.images import Image as Image
    from harness_actors.tools.resources import Resource as Resource
    from harness_actors.tools.resources import resource as resource
    from harness_actors.tools.workspace import copy_workspace as copy_workspace
    from harness_actors.tools.workspace import prepare_workspace as prepare_workspace

_HOMES = {
    "CommandRunner": "command",
    "FunctionTool": "function",
    "Image": "images",
    "Resource": "resources",
    "ask_user": "asking",
    "coding_tools": "coding",
    "copy_workspace": "workspace",
    "find_object": "coding",
    "find_tool": "coding",
    "prepare_workspace": "workspace",
    "read_artifact": "artifacts",
    "resource": "resources",
    "tool": "function",
    "work_complete": "completion",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Looked up when used: the names stay cheap to import.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
