"""Real small things to test with: scripted and recorded models, a model server, a clock."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.testing.agents import an_agent as an_agent
    from harness_actors.testing.clock import ManualClock as ManualClock
    from harness_actors.testing.loopback import LoopbackServer as LoopbackServer
    from harness_actors.testing.loopback_process import LoopbackProcess as LoopbackProcess
    from harness_actors.testing.recorded import RecordedModel as RecordedModel
    from harness_actors.testing.scripted import Reply as Reply
    from harness_actors.testing.scripted import ScriptedModel as ScriptedModel
    from harness_actors.testing.scripts import over_messages as over_messages

_HOMES = {
    "LoopbackProcess": "loopback_process",
    "LoopbackServer": "loopback",
    "ManualClock": "clock",
    "RecordedModel": "recorded",
    "Reply": "scripted",
    "ScriptedModel": "scripted",
    "an_agent": "agents",
    "over_messages": "scripts",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
