"""What happened in a run, as values: one class per kind of event, by subsystem.

Events are journaled with the change that they belong to and published once it is on
disk. What the messages of the log already say is not stored a second time:
`message_events` derives it.
"""

from harness_actors.events.children import ChildEnded as ChildEnded
from harness_actors.events.children import ChildrenStarted as ChildrenStarted
from harness_actors.events.custom import CustomEvent as CustomEvent
from harness_actors.events.derived import DERIVED_EVENTS as DERIVED_EVENTS
from harness_actors.events.derived import PREVIEW_CHARS as PREVIEW_CHARS
from harness_actors.events.derived import answer_event as answer_event
from harness_actors.events.derived import call_event as call_event
from harness_actors.events.derived import message_events as message_events
from harness_actors.events.derived import preview as preview
from harness_actors.events.event import Event as Event
from harness_actors.events.event import RunEvent as RunEvent
from harness_actors.events.gates import ContractVerified as ContractVerified
from harness_actors.events.gates import HookFailed as HookFailed
from harness_actors.events.gates import ToolsCounted as ToolsCounted
from harness_actors.events.registry import EVENT_TYPES as EVENT_TYPES
from harness_actors.events.registry import KINDS as KINDS
from harness_actors.events.registry import TOLD_EVENTS as TOLD_EVENTS
from harness_actors.events.registry import decode_event as decode_event
from harness_actors.events.registry import encode_event as encode_event
from harness_actors.events.runs import ExecutorLost as ExecutorLost
from harness_actors.events.runs import InputAwaited as InputAwaited
from harness_actors.events.runs import QuestionAnswered as QuestionAnswered
from harness_actors.events.runs import Repaired as Repaired
from harness_actors.events.runs import RunCompleted as RunCompleted
from harness_actors.events.runs import RunParked as RunParked
from harness_actors.events.runs import RunResumed as RunResumed
from harness_actors.events.runs import RunStarted as RunStarted
from harness_actors.events.stops import ContinuationPrompt as ContinuationPrompt
from harness_actors.events.stops import StopDecided as StopDecided
from harness_actors.events.texts import TextDelta as TextDelta
from harness_actors.events.texts import TextGap as TextGap
from harness_actors.events.texts import TextSink as TextSink
from harness_actors.events.turns import AgentResponse as AgentResponse
from harness_actors.events.turns import ContextCompacted as ContextCompacted
from harness_actors.events.turns import ContextPressure as ContextPressure
from harness_actors.events.turns import ModelFellBack as ModelFellBack
from harness_actors.events.turns import RoundCompleted as RoundCompleted
from harness_actors.events.turns import StallFound as StallFound
from harness_actors.events.turns import StrategyFailed as StrategyFailed
from harness_actors.events.turns import SummaryFailed as SummaryFailed
from harness_actors.events.turns import ToolCalled as ToolCalled
from harness_actors.events.turns import ToolProgress as ToolProgress
from harness_actors.events.turns import ToolReturned as ToolReturned
from harness_actors.events.turns import TurnCompleted as TurnCompleted
from harness_actors.events.turns import TurnStarted as TurnStarted
