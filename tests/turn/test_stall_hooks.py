"""Hooks have a say in whether a round came to something: the first that knows counts."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness_actors.config import StallConfig
from harness_actors.events import HookFailed, StallFound, StopDecided
from harness_actors.policies import AfterRound, Allow, Circling, Deny, Hook, Hooks, Novel
from harness_actors.signals import RunEnd
from harness_actors.state import STALLED_ROUNDS
from harness_actors.testing.scripted import Reply
from tests.executors.driver import Driver, RecordingModel, a_tool, finishes
from tests.turn.test_gates import GatedAgent, says
from tests.turn.test_stalls import look, warnings

POLLS = "you ask how the job is, again and again"


def a_driver(
    hooks: Any, replies: Sequence[Reply], *, volatile: bool = False, **settings: Any
) -> Driver:
    tool = a_tool("look", "the same", idempotent=True, volatile=volatile)
    agent = GatedAgent(RecordingModel(replies), [tool], hooks=hooks)
    return Driver(agent, **{"stall": StallConfig(), **settings})


def ended(outcome: object) -> tuple[str, str, str]:
    assert isinstance(outcome, RunEnd)
    return outcome.status, outcome.reason.kind, outcome.reason.message or ""


async def test_what_a_hook_calls_novel_is_no_circle() -> None:
    driver = a_driver(Hooks(stall=says(Novel())), [*[look("a")] * 12, finishes()])

    assert ended(await driver.run())[:2] == ("done", "completed")

    assert warnings(driver.state.log) == []
    assert driver.happened(StallFound) == []


@pytest.mark.parametrize("rounds_per_turn", [1, 40])
async def test_a_circle_that_a_hook_knows_is_told_once_and_then_ends_the_run(
    rounds_per_turn: int,
) -> None:
    driver = a_driver(
        Hooks(stall=says(Circling(POLLS))),
        [look("a")] * 9,
        volatile=True,
        max_rounds_per_turn=rounds_per_turn,
    )

    assert ended(await driver.run()) == ("stalled", "repetition", POLLS)

    # Two more rounds than the one that it was told of.
    assert len(driver.model.requests) == 3
    (warning,) = warnings(driver.state.log)
    assert warning.startswith(f"You go in circles: {POLLS}. ")
    found = driver.happened(StallFound)
    assert [(one.kind, one.what) for one in found] == [("hook", POLLS)] * 3
    assert driver.happened(StopDecided)[-1].decision == "stop"


async def test_whoever_comes_back_when_a_hook_had_it_told_goes_on() -> None:
    async def stall(event: AfterRound) -> Circling | None:
        (call,) = event.messages[-2].tool_calls
        return Circling(POLLS) if call.arguments == '{"at":"a"}' else None

    driver = a_driver(Hooks(stall=stall), [look("a"), look("b"), look("a"), look("b"), finishes()])

    assert ended(await driver.run())[:2] == ("done", "completed")

    assert len(warnings(driver.state.log)) == 2
    assert driver.value(STALLED_ROUNDS) == 0


async def test_the_first_hook_that_knows_counts_and_nobody_is_asked_after_it() -> None:
    asked: list[str] = []

    async def last(event: AfterRound) -> Circling:
        asked.append(event.run_id)
        return Circling("no")

    driver = a_driver(
        Hooks(stall=[says(Allow()), says(Novel()), last]), [*[look("a")] * 4, finishes()]
    )

    assert ended(await driver.run())[:2] == ("done", "completed")
    assert asked == []


async def test_a_hook_is_told_the_round_the_conversation_and_what_the_rules_say() -> None:
    told: list[AfterRound] = []

    def stall(event: AfterRound) -> None:
        told.append(event)

    driver = a_driver(Hooks(stall=stall), [*[look("a")] * 3, look("b"), finishes()])

    assert ended(await driver.run())[:2] == ("done", "completed")

    assert [event.round for event in told] == [1, 2, 3, 4]
    assert [len(event.messages) for event in told] == [3, 5, 7, 10]
    circle = 'you made look({"at":"a"}) 3 times in a row, with the same result each time'
    assert [event.stall for event in told] == ["", "", circle, ""]
    # What it left open the rules decide.
    assert len(warnings(driver.state.log)) == 1


@pytest.mark.parametrize("on_error", ["deny", "allow"])
@pytest.mark.parametrize("answer", [ValueError("no"), Deny("no"), 7])
async def test_where_a_hook_fails_the_rules_count(answer: Any, on_error: Any) -> None:
    driver = a_driver(Hooks(stall=Hook(says(answer), on_error=on_error)), [look("a")] * 9)

    assert ended(await driver.run())[:2] == ("stalled", "repetition")

    assert len(driver.model.requests) == 5
    assert [one.kind for one in driver.happened(HookFailed)] == ["stall"] * 5


async def test_words_without_a_call_are_judged_too_and_told_with_the_nudge() -> None:
    driver = a_driver(Hooks(stall=says(Circling("you only talk"))), [Reply.text("hm"), finishes()])

    assert ended(await driver.run())[:2] == ("done", "completed")

    assert [one.kind for one in driver.happened(StallFound)] == ["hook"]
    assert warnings(driver.state.log) == []
    assert any("you only talk" in one.text for one in driver.state.log if one.role == "user")


async def test_where_nobody_looks_for_circles_no_hook_is_asked() -> None:
    driver = a_driver(
        Hooks(stall=says(Circling(POLLS))), [*[look("a")] * 9, finishes()], stall=None
    )

    assert ended(await driver.run())[:2] == ("done", "completed")
    assert warnings(driver.state.log) == []
