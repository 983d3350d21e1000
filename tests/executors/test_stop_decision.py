from typing import Any

import pytest

from harness_actors.errors import WorkflowError
from harness_actors.events import ContinuationPrompt, StopDecided
from harness_actors.executors.stop_decision import NUDGE
from harness_actors.results import LimitKind
from harness_actors.signals import (
    CustomSignal,
    Outcome,
    RepairTrigger,
    RunEnd,
    TurnComplete,
    TurnEnding,
)
from harness_actors.state import NUDGES, REQUEST_TOKENS, TURN_COUNT, StateDelta, Write
from tests.executors.driver import Driver, RecordingModel, SimpleAgent

IDLE = TurnComplete(ending="text", text="I think so.")


def a_driver(turns: int = 1, **settings: Any) -> Driver:
    driver = Driver(SimpleAgent(RecordingModel([])), **settings)
    driver.state.apply(StateDelta(writes=(Write(TURN_COUNT.name, "increment", turns),)))
    return driver


async def judge(driver: Driver, turn: TurnComplete) -> Outcome:
    return await driver.serve("stop_decision", turn)


def ended(outcome: Outcome) -> tuple[str, str]:
    assert isinstance(outcome, RunEnd)
    return outcome.status, outcome.reason.kind


async def test_a_completion_ends_the_run() -> None:
    outcome = await judge(a_driver(), TurnComplete(ending="completed", text="fixed it"))
    assert ended(outcome) == ("done", "completed")
    assert isinstance(outcome, RunEnd)
    assert (outcome.output_text, outcome.completion_verified) == ("fixed it", True)


async def test_a_completion_in_the_last_turn_is_a_success() -> None:
    outcome = await judge(a_driver(turns=3, max_turns=3), TurnComplete(ending="completed"))
    assert ended(outcome) == ("done", "completed")


@pytest.mark.parametrize("turns", [1, 3])
async def test_where_an_answer_ends_the_run_it_does(turns: int) -> None:
    outcome = await judge(a_driver(turns=turns, max_turns=3, completion="answer"), IDLE)
    assert ended(outcome) == ("done", "answered")
    assert isinstance(outcome, RunEnd)
    assert (outcome.output_text, outcome.completion_verified) == ("I think so.", True)


@pytest.mark.parametrize("kind", ["model_error", "agent_error"])
async def test_an_error_fails_the_run_and_says_what_it_was(kind: str) -> None:
    facts = {"reason": kind, "type": "ModelSetupError", "message": "wrong key"}
    outcome = await judge(a_driver(turns=2), TurnComplete(ending="error", error=facts))
    assert ended(outcome) == ("failed", kind)
    assert isinstance(outcome, RunEnd)
    assert outcome.reason.message == "ModelSetupError: wrong key"
    assert outcome.reason.details == {"turn": 2, "error": facts}


LIMITS: list[tuple[LimitKind, str]] = [
    ("model_calls", "7 model calls"),
    ("tool_calls", "6 tool calls"),
    ("tokens", "5 tokens"),
    ("cost", "0.5 USD"),
    ("time", "4 s of wall time"),
    ("working_time", "3 s of working time"),
    ("context", "context window"),
]


@pytest.mark.parametrize(("kind", "words"), LIMITS)
async def test_a_bound_ends_the_run_and_is_named(kind: LimitKind, words: str) -> None:
    limits = {
        "model_calls": 7,
        "tool_calls": 6,
        "tokens": 5,
        "cost_usd": 0.5,
        "time_s": 4,
        "working_s": 3,
    }
    outcome = await judge(a_driver(limits=limits), TurnComplete(ending="limit", limit=kind))
    assert ended(outcome) == ("limit", kind)
    assert isinstance(outcome, RunEnd)
    assert words in outcome.reason.message


@pytest.mark.parametrize("ending", ["text", "rounds"])
async def test_the_last_turn_ends_the_run_without_a_nudge(ending: TurnEnding) -> None:
    driver = a_driver(turns=3, max_turns=3)
    outcome = await judge(driver, TurnComplete(ending=ending, text="so far"))
    assert ended(outcome) == ("limit", "max_turns")
    assert isinstance(outcome, RunEnd)
    assert outcome.output_text == "so far"
    assert len(driver.state.log) == 0


async def test_an_idle_model_gets_one_user_message_that_names_the_cause() -> None:
    driver = a_driver()

    assert await judge(driver, IDLE) == RepairTrigger()

    (message,) = driver.state.log
    assert (message.role, message.text) == ("user", NUDGE)
    assert "work_complete" in NUDGE
    assert driver.happened(ContinuationPrompt) == [ContinuationPrompt(turn=1, count=1, max=5)]
    assert driver.happened(StopDecided) == [
        StopDecided(turn=1, decision="continue", reason="work_complete_not_called")
    ]
    assert driver.value(NUDGES) == 1
    assert driver.value(REQUEST_TOKENS) == message.tokens


@pytest.mark.parametrize(
    ("policy", "end"),
    [("interactive", ("done", "unverified")), ("strict_automation", ("stalled", "no_completion"))],
)
@pytest.mark.parametrize("continuation", [{"max_prompts": 2}, None])
async def test_when_the_nudges_are_spent_the_stop_policy_decides(
    policy: str, end: tuple[str, str], continuation: dict[str, int] | None
) -> None:
    driver = a_driver(stop_policy=policy, continuation=continuation)
    allowed = continuation["max_prompts"] if continuation else 0
    for _ in range(allowed):
        assert await judge(driver, IDLE) == RepairTrigger()

    outcome = await judge(driver, IDLE)

    assert ended(outcome) == end
    assert isinstance(outcome, RunEnd)
    assert outcome.completion_verified is False
    assert outcome.output_text == "I think so."
    assert len(driver.state.log) == allowed


async def test_progress_makes_nudges_available_again() -> None:
    driver = a_driver(continuation={"max_prompts": 1})
    worked = TurnComplete(ending="text", progressed=True)
    for _ in range(4):
        assert await judge(driver, worked) == RepairTrigger()
        assert driver.value(NUDGES) == 1
    assert ended(await judge(driver, IDLE)) == ("done", "unverified")


async def test_a_turn_of_all_its_rounds_goes_on_without_a_message() -> None:
    driver = a_driver(continuation={"max_prompts": 1})
    await judge(driver, IDLE)

    outcome = await judge(driver, TurnComplete(ending="rounds", progressed=True))

    assert outcome == RepairTrigger()
    assert len(driver.state.log) == 1
    assert driver.value(NUDGES) == 0
    assert driver.happened(StopDecided)[-1] == StopDecided(
        turn=1, decision="continue", reason="max_rounds_per_turn"
    )


@pytest.mark.parametrize("ending", ["completed", "text", "rounds", "limit", "error"])
async def test_every_turn_is_decided_once(ending: TurnEnding) -> None:
    limit: LimitKind | None = "time" if ending == "limit" else None
    driver = a_driver(limits={"time_s": 1.0})
    await judge(driver, TurnComplete(ending=ending, limit=limit))
    assert len(driver.happened(StopDecided)) == 1


async def test_a_signal_that_is_no_turn_is_refused_by_name() -> None:
    with pytest.raises(WorkflowError, match="critic"):
        await a_driver().serve("stop_decision", CustomSignal(name="critic"))
