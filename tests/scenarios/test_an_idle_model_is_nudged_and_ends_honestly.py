"""A model that only talks is nudged, and is never taken at its word."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors.testing import Reply
from tests.scenarios.stage import Played, Scenario, play, play_killed

NUDGE = "You answered without calling a tool"


def talks(body: dict[str, Any]) -> Reply:
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    return Reply.text(f"I will soon begin, in {9 - spoken} minutes.")


SCENARIO = Scenario(script=talks)
STRICT = Scenario(script=talks, settings={"stop_policy": "strict_automation"})


def check(played: Played) -> None:
    assert played.ending == ("done", "unverified", False)
    _check_nudges(played)


def _check_nudges(played: Played) -> None:
    assert len(played.requests) == 6
    assert len(played.told) == 5
    for told in played.told:
        assert told.count(NUDGE) == 1
        assert told.count("call `work_complete`") == 1
    assert played.result.output_text == "I will soon begin, in 4 minutes."
    assert played.result.turn_count == 6


async def test_of_a_user_it_is_done_and_unverified(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


async def test_of_automation_it_is_stalled(tmp_path: Path) -> None:
    played = await play(STRICT, tmp_path)
    assert played.ending == ("stalled", "no_completion", False)
    _check_nudges(played)


@pytest.mark.parametrize("seed", [1])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))
