"""A conversation many times its window: every request fits, and what was left out can be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_actors.testing import Reply
from tests.scenarios.stage import DONE, TASK, Played, Scenario, play, play_killed, runs

WINDOW = 8_000
ROUNDS = 30
BYTES_PER_TOKEN = 4
"""As the server counts."""
READ_BACK = 12
"""The message with the result of the sixth command."""


def command(number: int) -> Reply:
    return runs(f"echo {number} && seq -s ' ' {number} {number + 400}")


def counts_on(body: dict[str, Any]) -> Reply:
    """The command behind the newest one, and once a look at what is not shown any more."""
    calls = [call for one in body["messages"] for call in one.get("tool_calls") or ()]
    if not calls:
        return command(1)
    arguments = json.loads(calls[-1]["function"]["arguments"])
    if "id" in arguments:
        return command(ROUNDS)
    number = int(arguments["command"].split()[1])
    if number == ROUNDS - 1:
        return Reply.call("read_artifact", {"id": f"m{READ_BACK}"})
    return DONE if number == ROUNDS else command(number + 1)


SCENARIO = Scenario(
    script=counts_on, settings={"max_input_tokens": WINDOW, "max_rounds_per_turn": 100}
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    requests = played.requests
    assert len(requests) == ROUNDS + 2
    assert max(map(len, played.bodies)) // BYTES_PER_TOKEN <= WINDOW
    for request in requests:
        words = [one["content"] for one in request["messages"] if one["role"] == "user"]
        assert words[0] == TASK
    # The last request shows less than there was, and says how to see the rest.
    shown = json.dumps(requests[-1]["messages"])
    assert "read_artifact" in shown
    assert f"{READ_BACK}: " not in shown
    (result,) = (one for one in played.answers if one.startswith("[Characters 0 to"))
    assert "\n6\n6 7 8 " in result
    assert "read_artifact" not in names_of(requests[0])
    assert "read_artifact" in names_of(requests[-1])


def names_of(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


async def test_every_request_fits(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))
