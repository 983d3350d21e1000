"""The four executors that a run cycles through: plain classes, each serving many runs."""

from harness_actors.executors.agent_turn import AgentTurn as AgentTurn
from harness_actors.executors.compaction import Compaction as Compaction
from harness_actors.executors.context import DeltaContext as DeltaContext
from harness_actors.executors.repair import Repair as Repair
from harness_actors.executors.stop_decision import StopDecision as StopDecision
from harness_actors.turn.services import AgentTurnServices as AgentTurnServices
