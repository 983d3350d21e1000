"""What shipped executors answer, where that is known without their actors."""

from collections.abc import Awaitable, Mapping
from typing import Any, cast

from harness_actors.errors import HarnessError
from harness_actors.executors.compaction import Compaction
from harness_actors.executors.context import DeltaContext
from harness_actors.executors.repair import Repair
from harness_actors.executors.stop_decision import StopDecision
from harness_actors.ports import Agent, Executor
from harness_actors.records import RunSpec
from harness_actors.signals import Outcome, RepairTrigger, Signal
from harness_actors.state import COMPACTION, OPEN_CALLS, PRESSURE, REPAIR, STOP_DECISION, StateDelta

_EXECUTORS: Mapping[str, Executor] = {
    REPAIR: Repair(),
    COMPACTION: Compaction(),
    STOP_DECISION: StopDecision(),
}


def answer_at_once(
    executor: str, signal: Signal, spec: RunSpec, values: Mapping[str, Any], started_at: float
) -> tuple[StateDelta, Outcome] | None:
    """What an executor answers that has nothing to repair, to end, or to make room for.

    Args:
        executor: A shipped one but for the agent turn, by its name.
        signal: What it is to answer.
        spec: The run.
        values: The entries of its state.
        started_at: When it was first started, in seconds since the epoch.

    Returns:
        What changes, and the answer; None where the executor must be asked.
    """
    if _has_work(executor, signal, values):
        return None
    asked = _EXECUTORS[executor]
    context = DeltaContext(
        spec=spec,
        agent=cast(Agent, None),
        writer_name=executor,
        reads=asked.reads,
        values={key.name: values[key.name] for key in asked.reads if key.name in values},
        log=None,
        started_at=started_at,
        send=_send,
    )
    work = cast(Any, asked.handle(signal, context))
    try:
        work.send(None)
    except StopIteration as done:
        return context.last(done.value), done.value
    except HarnessError:
        # Its actor says so, as it does of whatever fails there.
        return None
    work.close()
    return None


def _has_work(executor: str, signal: Signal, values: Mapping[str, Any]) -> bool:
    match executor:
        case "repair":
            resumed = isinstance(signal, RepairTrigger) and signal.resumed
            return resumed or bool(values.get(OPEN_CALLS.name))
        case "compaction":
            return values.get(PRESSURE.name) is not None
    return False


def _send(_delta: StateDelta) -> Awaitable[None]:
    raise AssertionError("what is answered at once is not written before")
