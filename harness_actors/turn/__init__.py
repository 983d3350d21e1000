"""The agent's inner loop: rounds of a model call and the tools that it asks for."""

from harness_actors.turn.gates import refused_input
from harness_actors.turn.loop import TurnLoop
from harness_actors.turn.preparation import PreparedAgent, prepare
from harness_actors.turn.services import RUN_VARIABLE, AgentTurnServices
from harness_actors.turn.session import begin_session, end_session
from harness_actors.turn.task import begin_task

__all__ = [
    "RUN_VARIABLE",
    "AgentTurnServices",
    "PreparedAgent",
    "TurnLoop",
    "begin_session",
    "begin_task",
    "end_session",
    "prepare",
    "refused_input",
]
