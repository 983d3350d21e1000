"""The agent's inner loop: rounds of a model call and the tools that it asks for."""

from harness_actors.turn.gates import refused_input as refused_input
from harness_actors.turn.loop import TurnLoop as TurnLoop
from harness_actors.turn.preparation import PreparedAgent as PreparedAgent
from harness_actors.turn.preparation import may_delegate as may_delegate
from harness_actors.turn.preparation import prepare as prepare
from harness_actors.turn.services import RUN_VARIABLE as RUN_VARIABLE
from harness_actors.turn.services import AgentTurnServices as AgentTurnServices
from harness_actors.turn.session import begin_session as begin_session
from harness_actors.turn.session import end_session as end_session
from harness_actors.turn.stalls import KnownProgress as KnownProgress
from harness_actors.turn.task import begin_task as begin_task
