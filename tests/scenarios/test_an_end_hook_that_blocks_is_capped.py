"""An `agent_stop` hook that never agrees, hangs or raises holds no run for ever."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from harness_actors.policies import AgentStop, Deny, Hook, Hooks
from harness_actors.testing import Reply
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, play_killed

CAUSE = "the auditor has not signed"


def never(_: AgentStop) -> Deny:
    return Deny(CAUSE)


async def hangs(_: AgentStop) -> None:
    await asyncio.Event().wait()


def raises(_: AgentStop) -> None:
    raise ZeroDivisionError(CAUSE)


SCENARIO = Scenario(
    script=in_order(DONE),
    agent={"hooks": Hooks(agent_stop=never)},
    settings={"stop_policy": "strict_automation"},
)


def check(played: Played) -> None:
    assert played.ending == ("stalled", "blocked", False)
    _check_told(played)


def _check_told(played: Played) -> None:
    assert len(played.requests) == 6
    assert [told.count(CAUSE) for told in played.told] == [1] * 5
    assert played.result.reason.details == {"causes": [CAUSE]}


async def test_of_automation_it_is_stalled(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


async def test_of_a_user_it_is_done_and_unverified(tmp_path: Path) -> None:
    scenario = Scenario(script=in_order(DONE), agent=SCENARIO.agent)
    played = await play(scenario, tmp_path)
    assert played.ending == ("done", "unverified", False)
    _check_told(played)


@pytest.mark.parametrize(
    ("hook", "on_error", "ending"),
    [
        (hangs, "deny", ("stalled", "blocked", False)),
        (raises, "deny", ("stalled", "blocked", False)),
        (hangs, None, ("done", "completed", True)),
        (raises, None, ("done", "completed", True)),
    ],
)
async def test_one_that_fails_does_what_was_asked_of_it(
    tmp_path: Path, hook: Any, on_error: Any, ending: tuple[str, str, bool]
) -> None:
    hooks = Hooks(agent_stop=Hook(hook, timeout_s=0.1, on_error=on_error))
    settings = {**SCENARIO.settings, "continuation": {"max_prompts": 2}}
    began = time.monotonic()
    scenario = Scenario(script=in_order(DONE), agent={"hooks": hooks}, settings=settings)
    played = await play(scenario, tmp_path)

    assert played.ending == ending
    assert len(played.told) == (2 if on_error else 0)
    assert time.monotonic() - began < 20


async def test_who_works_on_between_refusals_is_ended_by_its_turns(tmp_path: Path) -> None:
    def works(body: dict[str, Any]) -> Reply:
        name = f"{len(body['messages'])}.txt"
        write = ("write_file", {"path": name, "content": name})
        return Reply.calls([write, ("work_complete", {"summary": "done"})])

    scenario = Scenario(script=works, agent=SCENARIO.agent, settings={"max_turns": 8})
    played = await play(scenario, tmp_path)

    assert played.ending == ("limit", "max_turns", False)
    assert len(played.requests) == 8
    assert [told.count(CAUSE) for told in played.told] == [1] * 7


@pytest.mark.parametrize("seed", [2])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))
