"""A run that only repeats itself is told so once, and ended if it goes on; others never are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors.config import StallConfig
from harness_actors.events import ContinuationPrompt, StallFound, StopDecided
from harness_actors.messages import Message
from harness_actors.records import WorkspaceSpec
from harness_actors.signals import RunEnd
from harness_actors.state import STALLED_ROUNDS
from harness_actors.testing.scripted import Reply
from harness_actors.tools import coding_tools
from harness_actors.turn.stalls import SAID_AGAIN
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    finishes,
)


def look(name: str) -> Reply:
    return Reply.call("look", {"at": name})


def warnings(messages: Sequence[Message]) -> list[str]:
    return [one.text for one in messages if one.text.startswith("You go in circles: ")]


def ended(outcome: object) -> tuple[str, str]:
    assert isinstance(outcome, RunEnd)
    return outcome.status, outcome.reason.kind


def driving(agent: SimpleAgent, *given: Any, **settings: Any) -> Driver:
    return Driver(agent, *given, **{"stall": StallConfig(), **settings})


def a_driver(replies: Sequence[Reply], *, idempotent: bool = True, **settings: Any) -> Driver:
    tool = a_tool("look", "the same", idempotent=idempotent)
    return driving(SimpleAgent(RecordingModel(replies), [tool]), **settings)


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("rounds_per_turn", [1, 2, 40])
async def test_the_same_call_for_ever_is_told_once_and_then_ends_the_run(
    idempotent: bool, rounds_per_turn: int
) -> None:
    driver = a_driver([look("a")] * 50, idempotent=idempotent, max_rounds_per_turn=rounds_per_turn)
    outcome = await driver.run()

    assert ended(outcome) == ("stalled", "repetition")
    assert isinstance(outcome, RunEnd)
    words = 'you made look({"at":"a"}) 3 times in a row, with the same result each time'
    # Each is told with how often it was by then.
    assert outcome.reason.message == words.replace("3", "5")
    told = [one.rounds for one in driver.events if isinstance(one, StallFound)]
    assert told == [3, 4, 5]
    assert len(driver.model.requests) == 5
    assert [len(warnings(request.messages)) for request in driver.model.requests] == [0, 0, 0, 1, 1]
    assert words in warnings(driver.model.requests[3].messages)[0]
    assert [one.round for one in driver.events if isinstance(one, StallFound)] == [
        1 + at % rounds_per_turn for at in (2, 3, 4)
    ]


async def test_whoever_does_something_else_when_told_goes_on() -> None:
    driver = a_driver([*[look("a")] * 3, look("b"), *[look("a")] * 3, look("c"), finishes()])
    outcome = await driver.run()

    assert ended(outcome) == ("done", "completed")
    # It was told twice: what it did in between was new.
    assert len(warnings(driver.state.log)) == 2
    assert driver.value(STALLED_ROUNDS) == 0


@pytest.mark.parametrize("rounds_per_turn", [1, 40])
@pytest.mark.parametrize(("repeated", "times"), [("a", 2), ("e", 3)])
async def test_who_gives_up_one_circle_for_another_is_told_of_that_too(
    repeated: str, times: int, rounds_per_turn: int
) -> None:
    wanders = [look(name) for name in "abcdeabcde"]
    script = [*wanders, *[look(repeated)] * 50]
    driver = a_driver(script, max_rounds_per_turn=rounds_per_turn)

    assert ended(await driver.run()) == ("stalled", "repetition")
    first, second = warnings(driver.state.log)
    assert "nothing new came of your last" in first
    assert f'you made look({{"at":"{repeated}"}}) {times} times in a row' in second
    told = [len(warnings(request.messages)) for request in driver.model.requests]
    assert told[-5:] == [0, 1, 1, 2, 2]


async def test_who_comes_back_when_told_of_the_second_circle_goes_on() -> None:
    wanders = [look(name) for name in "abcdeabcde"]
    driver = a_driver([*wanders, *[look("a")] * 2, look("f"), finishes()])
    assert ended(await driver.run()) == ("done", "completed")
    assert len(warnings(driver.state.log)) == 2


async def test_who_wanders_on_is_told_once() -> None:
    driver = a_driver([look("abcde"[number % 5]) for number in range(60)])
    assert ended(await driver.run()) == ("stalled", "repetition")
    assert len(warnings(driver.state.log)) == 1


@pytest.mark.parametrize(
    ("names", "kind", "at"),
    [("ab", "alternation", 6), ("abc", "no_news", 8), ("abcd", "no_news", 9)],
)
async def test_a_circle_is_told_whatever_its_length(names: str, kind: str, at: int) -> None:
    driver = a_driver([look(names[number % len(names)]) for number in range(60)])
    assert ended(await driver.run()) == ("stalled", "repetition")
    found = driver.happened(StallFound)
    assert found[0].round == at
    assert found[0].kind == kind
    assert len(driver.model.requests) == at + 2


async def test_a_failing_tool_is_told_of() -> None:
    tool = a_tool("look", ValueError("no"))
    script = [look(str(number)) for number in range(60)]
    driver = driving(SimpleAgent(RecordingModel(script), [tool]))
    outcome = await driver.run()
    assert isinstance(outcome, RunEnd)
    assert outcome.reason.message == "all calls of your last 7 answers failed, and all were of look"
    assert len(tool.calls) == 7


@pytest.mark.parametrize("policy", ["interactive", "strict_automation"])
async def test_the_same_words_are_told_with_the_nudge_and_end_nothing_by_themselves(
    policy: str,
) -> None:
    script = [Reply.text("It is done.")] * 20
    driver = driving(SimpleAgent(RecordingModel(script)), stop_policy=policy)
    outcome = await driver.run()

    interactive = ("done", "unverified")
    assert ended(outcome) == (
        interactive if policy == "interactive" else ("stalled", "no_completion")
    )
    nudges = [one.text for one in driver.state.log if one.role == "user"][1:]
    assert [SAID_AGAIN in nudge for nudge in nudges] == [False, False, True, True, True]
    assert len(driver.happened(ContinuationPrompt)) == 5


async def test_one_decision_is_made_for_each_turn() -> None:
    driver = a_driver([look("a")] * 50, max_rounds_per_turn=2)
    await driver.run()
    decided = [(one.turn, one.decision) for one in driver.happened(StopDecided)]
    assert decided == [(1, "continue"), (2, "continue"), (3, "stop")]


async def test_whoever_reads_the_same_files_again_and_again_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for number in range(5):
        (tmp_path / "notes" / f"{number}.txt").write_text(f"Nothing of use in {number}.")
    script = [Reply.call("read_file", {"path": f"notes/{number % 5}.txt"}) for number in range(80)]
    agent = SimpleAgent(RecordingModel(script), coding_tools())
    driver = driving(agent, workspace=WorkspaceSpec(path=str(tmp_path)))

    assert ended(await driver.run()) == ("stalled", "repetition")
    assert len(driver.model.requests) == 12
    assert len(warnings(driver.state.log)) == 1


# ---- who must not be stopped ----------------------------------------------------------------


async def test_a_job_may_be_asked_about_for_ever() -> None:
    async def running(_arguments: str, _context: Any) -> str:
        return "running"

    tool = SimpleTool("status", running, idempotent=True, volatile=True)
    script = [*[Reply.call("status", {})] * 30, finishes()]
    driver = driving(SimpleAgent(RecordingModel(script), [tool]))
    assert ended(await driver.run()) == ("done", "completed")
    assert not driver.happened(StallFound)
    assert len(tool.calls) == 30


async def test_tests_may_run_again_after_each_edit() -> None:
    tools = [a_tool("edit", "edited"), a_tool("test", "1 failed")]
    script = [
        reply
        for number in range(15)
        for reply in (Reply.call("edit", {"new": number}), Reply.call("test", {}))
    ]
    driver = driving(SimpleAgent(RecordingModel([*script, finishes()]), tools))
    assert ended(await driver.run()) == ("done", "completed")
    assert not driver.happened(StallFound)


async def test_where_it_is_turned_off_nobody_looks() -> None:
    driver = a_driver([*[look("a")] * 30, finishes()], stall=None)
    assert ended(await driver.run()) == ("done", "completed")
    assert STALLED_ROUNDS.name not in driver.state.values


async def test_a_run_that_is_never_told_has_no_byte_of_it() -> None:
    driver = a_driver([look("a"), look("b"), finishes()])
    await driver.run()
    assert STALLED_ROUNDS.name not in driver.state.values


async def test_an_earlier_run_of_the_conversation_is_no_part_of_a_circle() -> None:
    before = a_driver([*[look("a")] * 2, finishes()])
    await before.run()
    script = [*[look("a")] * 2, finishes()]
    model = RecordingModel(lambda log: script[sum(m.role == "assistant" for m in log) - 3])
    tool = a_tool("look", "the same", idempotent=True)
    driver = driving(SimpleAgent(model, [tool]), "another task", log=list(before.state.log))
    assert ended(await driver.run()) == ("done", "completed")
    assert not warnings(driver.state.log)


async def test_the_rules_are_settings() -> None:
    driver = a_driver([look("a")] * 9, stall=StallConfig(threshold=2, grace=1))
    assert ended(await driver.run()) == ("stalled", "repetition")
    assert len(driver.model.requests) == 3


# ---- deaths -----------------------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("rounds_per_turn", [2, 40])
async def test_a_death_anywhere_leaves_one_warning_and_the_same_end(
    idempotent: bool, rounds_per_turn: int
) -> None:
    for steps in range(1, 40):
        driver = a_driver([], idempotent=idempotent, max_rounds_per_turn=rounds_per_turn)

        async def act(arguments: str, _context: Any, driver: Driver = driver) -> str:
            await driver.step()
            return "the same"

        tool = SimpleTool("look", act, idempotent=idempotent)
        driver.agent = SimpleAgent(RecordingModel([look("a")] * 60), [tool])
        outcome = await driver.run_through_crashes(steps)
        assert ended(outcome) == ("stalled", "repetition"), steps
        # A call of unknown outcome is news; and so is the same call after it.
        assert 1 <= len(warnings(driver.state.log)) <= 2, steps
        assert len(driver.results()) <= 10, steps
        driver.check_log()
