"""What hooks are told: one frozen value for each kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.messages import Disposition, Message, ToolCall
from harness_actors.ports import Effect
from harness_actors.results import Status, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """Where in which run something happens.

    Attributes:
        run_id: The run.
        agent_path: Names of the agents from the one that the user began to the one at work.
        turn: The turn, from 1.
    """

    run_id: str
    agent_path: tuple[str, ...]
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(HookEvent):
    """A run begins. Told once more where its process died before its first record.

    Attributes:
        task: The messages that it was given.
        conversation_id: The conversation that it speaks in.
    """

    task: tuple[Message, ...]
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd(HookEvent):
    """A run is over, and that is on disk. Told at most once.

    Attributes:
        status: How it ended.
        reason: The kind of reason, such as ``"completed"``.
        message: What is said of it; empty where nothing is.
        output_text: Its last words.
    """

    status: Status
    reason: str
    message: str
    output_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeModel(HookEvent):
    """The model is about to be asked.

    Attributes:
        round: The round of the turn, from 1.
        messages: The conversation.
    """

    round: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterModel(HookEvent):
    """The model has answered. Its text may have been read by then, where somebody reads along.

    Attributes:
        round: The round of the turn, from 1.
        text: What it said; empty where it only called tools.
        tool_calls: What it asks for.
        usage: Of this call.
    """

    round: int
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeTool(HookEvent):
    """A call is about to be made.

    Attributes:
        call_id: The call, unique in its message.
        tool_name: What it calls.
        arguments: As parsed, or as a hook before has changed them; a copy of one's own. None
            where the model wrote no JSON.
        raw_arguments: What the model wrote.
        effect: What the tool may change.
        idempotent: It may be made twice.
    """

    call_id: str
    tool_name: str
    arguments: Any
    raw_arguments: str
    effect: Effect
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterTool(HookEvent):
    """A call has its result, made or not.

    Attributes:
        call_id: The call.
        tool_name: What it calls.
        arguments: Those that it was made with; None where they are no JSON.
        disposition: What became of it.
        text: What the model is told; a hook before may have replaced it.
    """

    call_id: str
    tool_name: str
    arguments: Any
    disposition: Disposition
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterRound(HookEvent):
    """A round is over: its answer, and the results of its calls.

    Attributes:
        round: The round of the turn, from 1.
        messages: The conversation.
        stall: How the run goes in circles by the rules of the harness; empty where it does not.
    """

    round: int
    messages: tuple[Message, ...]
    stall: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStop(HookEvent):
    """The agent says that it is done.

    Attributes:
        text: Its summary, or its last answer.
        tool_usage: Calls of each tool in this run that were made, by name.
    """

    text: str
    tool_usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputText(HookEvent):
    """What the user said, before the model is asked for the first time.

    Attributes:
        text: That of all user messages of the task, a line break between them.
        task: The messages.
    """

    text: str
    task: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputText(HookEvent):
    """What the agent wants to end with, before that is accepted.

    Attributes:
        text: Its summary, or its last answer.
    """

    text: str
