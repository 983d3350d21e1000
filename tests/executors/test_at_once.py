"""What is answered at once is what the executor would have answered, or nothing is."""

import asyncio
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.config import ContinuationConfig, HarnessConfig
from harness_actors.coordination.graph import DEFAULT_EDGES
from harness_actors.executors import Compaction, Repair, StopDecision
from harness_actors.executors.at_once import answer_at_once
from harness_actors.executors.context import DeltaContext
from harness_actors.messages import Message
from harness_actors.ports import Executor
from harness_actors.records import RunSpec
from harness_actors.signals import (
    CompactionComplete,
    Outcome,
    RepairComplete,
    RepairTrigger,
    Signal,
    TurnComplete,
)
from harness_actors.state import (
    NUDGES,
    OPEN_CALLS,
    PRESSURE,
    REQUEST_TOKENS,
    STARTED,
    TURN_COUNT,
    Pressure,
    StateDelta,
)

PRESSED = asdict(Pressure(window_tokens=10, request_tokens=10, overhead_tokens=0, plan=0))
CALL = {"call_id": "a", "tool_name": "write", "idempotent": False, "turn": 1}
VALUES = st.fixed_dictionaries(
    {},
    optional={
        STARTED.name: st.booleans(),
        TURN_COUNT.name: st.integers(0, 4),
        NUDGES.name: st.integers(0, 3),
        REQUEST_TOKENS.name: st.sampled_from([0, 100, 790, 800, 900, 5_000]),
    },
)
CONFIGS = st.builds(
    HarnessConfig,
    max_turns=st.integers(1, 4),
    max_input_tokens=st.just(1_000),
    completion=st.sampled_from(["explicit", "answer"]),
    stop_policy=st.sampled_from(["interactive", "strict_automation"]),
    continuation=st.sampled_from([None, ContinuationConfig(max_prompts=2)]),
)
TURNS = st.builds(
    TurnComplete,
    ending=st.sampled_from(["completed", "text", "rounds", "error", "limit", "stalled"]),
    text=st.sampled_from(["", "So."]),
    findings=st.sampled_from([(), ("it is not",)]),
    progressed=st.booleans(),
    stall=st.sampled_from(["", "goes in circles"]),
)
HOPS: st.SearchStrategy[tuple[str, Signal]] = st.one_of(
    st.tuples(st.just("repair"), st.just(RepairTrigger())),
    st.tuples(st.just("compaction"), st.just(RepairComplete())),
    st.tuples(st.just("stop_decision"), TURNS),
)
EXECUTORS: dict[str, Executor] = {
    "repair": Repair(),
    "compaction": Compaction(),
    "stop_decision": StopDecision(),
}


def a_spec(config: HarnessConfig) -> RunSpec:
    task = (Message.user("x" * 400, tokens=100),)
    return RunSpec(
        run_id="run",
        conversation_id="talk",
        task=task,
        code="code",
        config=config,
        edges=DEFAULT_EDGES,
    )


def as_its_actor_answers(
    executor: str, signal: Signal, spec: RunSpec, values: dict[str, Any]
) -> tuple[StateDelta, Outcome]:
    asked = EXECUTORS[executor]
    context = DeltaContext(
        spec=spec,
        agent=None,  # type: ignore[arg-type]
        writer_name=executor,
        reads=asked.reads,
        values={key.name: values[key.name] for key in asked.reads if key.name in values},
        log=None,
        started_at=0.0,
        send=lambda _: pytest.fail("it writes before it answers"),
    )
    outcome = asyncio.run(asked.handle(signal, context))
    return context.last(outcome), outcome


@given(HOPS, CONFIGS, VALUES)
def test_what_is_answered_at_once_is_what_the_actor_answers(
    hop: tuple[str, Signal], config: HarnessConfig, values: dict[str, Any]
) -> None:
    executor, signal = hop
    spec = a_spec(config)
    answered = answer_at_once(executor, signal, spec, values, 0.0)
    assert answered == as_its_actor_answers(executor, signal, spec, values)


@pytest.mark.parametrize(
    ("executor", "signal", "values"),
    [
        ("repair", RepairTrigger(resumed=True), {}),
        ("repair", RepairTrigger(), {OPEN_CALLS.name: [CALL]}),
        ("compaction", RepairComplete(), {PRESSURE.name: PRESSED}),
        ("stop_decision", CompactionComplete(), {}),
    ],
)
def test_whoever_has_something_to_do_is_asked(
    executor: str, signal: Signal, values: dict[str, Any]
) -> None:
    assert answer_at_once(executor, signal, a_spec(HarnessConfig()), values, 0.0) is None
