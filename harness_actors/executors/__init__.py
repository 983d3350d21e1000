"""The four executors that a run cycles through: plain classes, each serving many runs."""

from harness_actors.executors.agent_turn import AgentTurn
from harness_actors.executors.compaction import Compaction
from harness_actors.executors.context import DeltaContext
from harness_actors.executors.repair import Repair
from harness_actors.executors.stop_decision import StopDecision
from harness_actors.turn.services import AgentTurnServices

__all__ = [
    "AgentTurn",
    "AgentTurnServices",
    "Compaction",
    "DeltaContext",
    "Repair",
    "StopDecision",
]
