"""Hooks have a say in whether a round came to something: the first that knows counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness_actors.config import StallConfig
from harness_actors.events import HookFailed, StallFound, StopDecided
from harness_actors.policies import AfterRound, Allow, Circling, Deny, Hook, Hooks, Novel
from harness_actors.signals import RunEnd
from harness_actors.state import STALLED_ROUNDS, UNJUDGED
from harness_actors.testing.scripted import Reply
from tests.executors.driver import (
    CrashPlan,
    Driver,
    RecordingModel,
    SimpleTool,
    a_tool,
    finishes,
)
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


# ---- deaths -----------------------------------------------------------------------------------


def a_driver_that_dies(
    script: Sequence[Reply], at: set[int], circle: str, told: list[int], **rules: int
) -> Driver:
    """One whose hook calls the rounds of one tool a circle.

    Args:
        script: What the model answers, by how many answers there are.
        at: The process dies so: in the call of `write` of that number, or in the model call of
            the number below zero.
        circle: The tool.
        told: Is given the rounds that the hook is asked about.
        rules: Those of circles.
    """

    async def stall(event: AfterRound) -> Circling | None:
        told.append(event.round)
        answer = next(one for one in reversed(event.messages) if one.role == "assistant")
        return Circling(POLLS) if answer.tool_calls[0].name == circle else None

    async def die(number: int) -> None:
        if number in at:
            driver.crash = CrashPlan(0)
            await driver.step()

    async def act(_arguments: str, _context: Any) -> str:
        await die(len(write.calls))
        return "written"

    model = RecordingModel(lambda log: script[sum(one.role == "assistant" for one in log)])

    async def asked() -> None:
        await die(-len(model.requests))

    model.before = asked
    write = SimpleTool("write", act)
    tools = [a_tool("look", "the same", idempotent=True), write]
    agent = GatedAgent(model, tools, hooks=Hooks(stall=stall))
    driver = Driver(agent, stall=StallConfig(**rules))
    return driver


WRITE = Reply.call("write", {})
LIVES = 1_000
"""Steps after which no process of these tests dies by itself."""


async def test_a_round_that_a_death_cuts_off_is_judged_and_begins_the_count_anew() -> None:
    told: list[int] = []
    script = [look("a"), WRITE, look("a"), finishes()]
    driver = a_driver_that_dies(script, {1}, "look", told, grace=1)

    assert ended(await driver.run_through_crashes(LIVES))[:2] == ("done", "completed")

    assert len(driver.results()) == 4
    assert told == [1, 2, 3]
    # It did something else in between, whatever came of that.
    assert len(warnings(driver.state.log)) == 2


async def test_a_round_that_a_death_cuts_off_counts_once_however_often_the_run_dies() -> None:
    told: list[int] = []
    driver = a_driver_that_dies([WRITE] * 9, {2, -3, -4}, "write", told, grace=2)

    outcome = await driver.run_through_crashes(LIVES, LIVES, LIVES)

    assert ended(outcome) == ("stalled", "repetition", POLLS)
    assert told == [1, 2, 3]
    assert len(driver.results()) == 3
    assert len(warnings(driver.state.log)) == 1


async def test_a_round_that_a_death_cuts_off_may_be_the_last_that_a_circle_may_have() -> None:
    told: list[int] = []
    driver = a_driver_that_dies([WRITE] * 9, {2}, "write", told, grace=1)

    assert ended(await driver.run_through_crashes(LIVES)) == ("stalled", "repetition", POLLS)

    assert told == [1, 2]
    assert len(driver.model.requests) == 2


async def test_of_a_run_that_nobody_watches_no_round_is_left_to_be_judged() -> None:
    told: list[int] = []
    driver = a_driver_that_dies([WRITE, finishes()], {1}, "write", told)
    driver.spec = replace(driver.spec, config=replace(driver.spec.config, stall=None))

    assert ended(await driver.run_through_crashes(LIVES))[:2] == ("done", "completed")

    assert told == []
    assert UNJUDGED.name not in driver.state.values
