"""Real small things to test with: scripted and recorded models, a model server, a clock."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.testing.agents import an_agent as an_agent
    from harness_actors.testing.clock import ManualClock as ManualClock
    from harness_actors.testing.loopback import LoopbackServer as LoopbackServer
    from harness_actors.testing.loopback_process import LoopbackProcess as LoopbackProcess
    from harness_actors.testing.recorded import RecordedModel as RecordedModel
    from harness_actors.testing.scripted import Reply as Reply
    from harness_actors.testing.scripted import ScriptedModel as ScriptedModel
    from harness_actors.testing.scripts import over_messages as over_messages

__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "LoopbackProcess": "loopback_process",
        "LoopbackServer": "loopback",
        "ManualClock": "clock",
        "RecordedModel": "recorded",
        "Reply": "scripted",
        "ScriptedModel": "scripted",
        "an_agent": "agents",
        "over_messages": "scripts",
    },
)
