"""Entries of a journal, as short as a test can say them."""

from collections.abc import Sequence

from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import DEFAULT_EDGES
from harness_actors.events import Event
from harness_actors.messages import Message, ToolCall
from harness_actors.records import Hop, RunAdded, RunChanged, RunSpec
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.state import StateDelta, Write

COMMAND = "batch tasks.jsonl"


def a_spec(run_id: str = "run-1", conversation_id: str | None = None) -> RunSpec:
    return RunSpec(
        run_id=run_id,
        conversation_id=conversation_id or f"talk-of-{run_id}",
        task=(Message.user(f"the task of {run_id}"),),
        code="c0de",
        config=HarnessConfig(),
        edges=DEFAULT_EDGES,
        metadata={"id": run_id},
    )


def added(
    run_id: str = "run-1",
    *,
    conversation_id: str | None = None,
    command: str = COMMAND,
    again: bool = False,
    at: float = 100.0,
) -> RunAdded:
    return RunAdded(spec=a_spec(run_id, conversation_id), command=command, at=at, again=again)


def changed(
    version: int,
    run_id: str = "run-1",
    *,
    writes: Sequence[Write] = (),
    messages: Sequence[Message] = (),
    events: Sequence[Event] = (),
    hop: Hop | None = None,
    losses: int = 0,
    end: HarnessResult | None = None,
) -> RunChanged:
    return RunChanged(
        run_id=run_id,
        version=version,
        delta=StateDelta(tuple(writes), tuple(messages), tuple(events)),
        hop=hop,
        losses=losses,
        end=end,
        at=100.0 + version,
    )


def a_round(version: int, run_id: str = "run-1") -> RunChanged:
    """A model call with one tool call, as a turn commits it."""
    call = ToolCall(f"call-{version}", "read_file", '{"path": "solution.py"}')
    return changed(
        version,
        run_id,
        writes=[Write("harness.usage", "increment", {"model_calls": 1, "tool_calls": 1})],
        messages=[
            Message.assistant(f"round {version} of {run_id}", [call]),
            Message.tool_result(call.id, f"def f{version}(): ..."),
        ],
    )


def an_end(run_id: str = "run-1") -> HarnessResult:
    return HarnessResult(
        run_id=run_id,
        status="done",
        reason=Reason(kind="completed", message="all done", details={"checks": [1, 2]}),
        turn_count=3,
        output_text="The order was late: ünïcode 漢字 🚚",
        completion_verified=True,
        usage=Usage(model_calls=4, tool_calls=3, input_tokens=900, cost_usd=0.015, working_s=1.25),
        wall_s=12.5,
    )
