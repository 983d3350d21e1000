"""Tools: functions that a model can call, and the shipped ones that work on a workspace."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.tools.artifacts import read_artifact as read_artifact
    from harness_actors.tools.asking import ask_user as ask_user
    from harness_actors.tools.coding import coding_tools as coding_tools
    from harness_actors.tools.coding import find_object as find_object
    from harness_actors.tools.coding import find_tool as find_tool
    from harness_actors.tools.command import CommandRunner as CommandRunner
    from harness_actors.tools.compacting import compact_conversation as compact_conversation
    from harness_actors.tools.completion import work_complete as work_complete
    from harness_actors.tools.function import FunctionTool as FunctionTool
    from harness_actors.tools.function import tool as tool
    from harness_actors.tools.images import Image as Image
    from harness_actors.tools.resources import Resource as Resource
    from harness_actors.tools.resources import resource as resource
    from harness_actors.tools.workspace import copy_workspace as copy_workspace
    from harness_actors.tools.workspace import prepare_workspace as prepare_workspace

# Looked up when used: the names stay cheap to import.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "CommandRunner": "command",
        "FunctionTool": "function",
        "Image": "images",
        "Resource": "resources",
        "ask_user": "asking",
        "coding_tools": "coding",
        "compact_conversation": "compacting",
        "copy_workspace": "workspace",
        "find_object": "coding",
        "find_tool": "coding",
        "prepare_workspace": "workspace",
        "read_artifact": "artifacts",
        "resource": "resources",
        "tool": "function",
        "work_complete": "completion",
    },
)
