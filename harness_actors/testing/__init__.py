"""Real small things to test with: scripted, recorded and fallible models, servers, a clock."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.testing.agents import an_agent as an_agent
    from harness_actors.testing.checkable import CheckableTask as CheckableTask
    from harness_actors.testing.checkable import checkable_task as checkable_task
    from harness_actors.testing.clock import ManualClock as ManualClock
    from harness_actors.testing.fallible import FallibleModel as FallibleModel
    from harness_actors.testing.fallible import ToolNames as ToolNames
    from harness_actors.testing.fallible import fallible_server as fallible_server
    from harness_actors.testing.loopback import LoopbackServer as LoopbackServer
    from harness_actors.testing.loopback_process import LoopbackProcess as LoopbackProcess
    from harness_actors.testing.recorded import RecordedModel as RecordedModel
    from harness_actors.testing.scripted import Reply as Reply
    from harness_actors.testing.scripted import ScriptedModel as ScriptedModel
    from harness_actors.testing.scripts import over_messages as over_messages

__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "CheckableTask": "checkable",
        "FallibleModel": "fallible",
        "LoopbackProcess": "loopback_process",
        "LoopbackServer": "loopback",
        "ManualClock": "clock",
        "RecordedModel": "recorded",
        "Reply": "scripted",
        "ScriptedModel": "scripted",
        "ToolNames": "fallible",
        "an_agent": "agents",
        "checkable_task": "checkable",
        "fallible_server": "fallible",
        "over_messages": "scripts",
    },
)
